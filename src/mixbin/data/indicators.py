"""A column of text as indicator columns: scikit-learn's OneHotEncoder, learnt from how often each text occurs.

Counts are all that the encoder needs to know, and counts of several parts of a table can be added up. A table is encoded by its
different texts: the encoder sees each of them once, whatever the number of rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats

MISSING, OTHER = "(missing)", "(other)"
"""How the names of the indicators of missing values and of rare texts end."""


class Indicators:
    """What one column of text becomes.

    ``counts`` says how often each of ``texts`` occurs, and ``missing`` in how many rows there is none. At most ``most`` columns
    come out; the rarer texts share the last of them.
    """

    def __init__(self, texts: Sequence[str], counts: NDArray[np.int64], missing: int, most: int) -> None:
        order = sorted(range(len(texts)), key=texts.__getitem__)
        known: list[str | None] = [texts[i] for i in order]
        times = np.asarray(counts, dtype=np.int64)[order]
        if missing:  # scikit-learn sorts None behind all texts
            known, times = [*known, None], np.append(times, missing)
        # The encoder is shown each text once, and the frequent ones twice: then it parts them as if it had seen all rows.
        frequent = np.argsort(times, kind="stable")[-(most - 1) :] if len(known) >= most else np.arange(0)
        self._most = most
        self._encoder = _fitted([*known, *(known[i] for i in frequent)], most)

    @property
    def known(self) -> list[str | None]:
        """The texts that were learnt; None if some rows have none."""
        return list(self._encoder.categories_[0])

    @property
    def rare(self) -> list[str | None]:
        """Those that share a column."""
        found = self._encoder.infrequent_categories_[0]
        return [] if found is None else list(found)

    def columns(self, column: str) -> list[tuple[str, dict[str, Any]]]:
        """The names of the indicator columns, in the encoder's order, and what each of them says."""
        rare = set(self.rare)
        every = [*(it for it in self.known if it not in rare), *([OTHER] if rare else [])]
        # The encoder names the dropped one by its place among all texts, the rare ones included.
        place = self._encoder.drop_idx_[0] if self._encoder.drop_idx_ is not None else None
        dropped = None if place is None else len(every) - 1 if self.known[place] in rare else every.index(self.known[place])
        return [_one(column, it, self.rare) for i, it in enumerate(every) if i != dropped]

    def transform(self, texts: Sequence[str | None], codes: NDArray[np.intp]) -> Floats:
        """The indicators of rows, given the different texts and the place of each row's text among them."""
        known, rare = set(self.known), self.rare
        # What was not learnt is a rare text, or none at all; the encoder would warn, which is not safe among threads.
        seen = [it in known or bool(rare) for it in texts]
        told = [it if it in known else rare[0] for it, ok in zip(texts, seen, strict=True) if ok]
        out = np.zeros((len(texts), len(self.columns(""))))
        if told:
            out[seen] = self._encoder.transform(_column(told))
        return out[codes]

    def unknown(self, texts: Sequence[str | None], counts: NDArray[np.int64]) -> int:
        """How many rows have a text that was not learnt."""
        known = set(self.known)
        return int(sum(times for text, times in zip(texts, counts, strict=True) if times and text not in known))

    def short(self) -> "Indicators":
        """The same for workers, without a long list of rare texts: an unknown text is one of them anyway."""
        rare = self.rare
        if len(rare) < 2:
            return self
        frequent = [it for it in self.known if it not in set(rare)]
        out: Indicators = object.__new__(Indicators)
        out._most, out._encoder = self._most, _fitted([*frequent, *frequent, rare[0]], self._most)
        return out


def _fitted(texts: Sequence[str | None], most: int) -> Any:
    from sklearn.preprocessing import OneHotEncoder

    how: dict[str, Any] = {"drop": "if_binary", "handle_unknown": "infrequent_if_exist", "sparse_output": False}
    return OneHotEncoder(max_categories=most, **how).fit(_column(texts))


def _column(texts: Sequence[str | None]) -> NDArray[Any]:
    out = np.empty((len(texts), 1), dtype=object)
    out[:, 0] = texts
    return out


def _one(column: str, category: str | None, others: list[str | None]) -> tuple[str, dict[str, Any]]:
    if category is None:
        return f"{column}={MISSING}", {"column": column, "is": "indicator", "of": None}
    if category == OTHER and others:
        return f"{column}={OTHER}", {"column": column, "is": "indicator", "of_any": others}
    return f"{column}={category}", {"column": column, "is": "indicator", "of": category}
