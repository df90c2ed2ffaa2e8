"""The names of the indicator columns that text becomes, and what each of them says."""

from typing import Any

MISSING, OTHER = "(missing)", "(other)"
"""How the names of the indicators of missing values and of rare texts end."""


def indicators(column: str, encoder: Any, place: int) -> list[tuple[str, dict[str, Any]]]:
    """The indicator columns of one column of text, in the order of scikit-learn's OneHotEncoder."""
    known, rare = list(encoder.categories_[place]), encoder.infrequent_categories_[place]
    others = [] if rare is None else list(rare)
    # drop_idx_ counts all categories, also the rare ones that share a column; of two columns it drops one.
    dropped = encoder.drop_idx_[place] if encoder.drop_idx_ is not None else None
    kept = [it for i, it in enumerate(known) if it not in others and i != dropped]
    if others and (dropped is None or known[dropped] not in others):
        kept.append(OTHER)
    return [_one(column, it, others) for it in kept]


def _one(column: str, category: Any, others: list[Any]) -> tuple[str, dict[str, Any]]:
    if category is None:
        return f"{column}={MISSING}", {"column": column, "is": "indicator", "of": None}
    if category == OTHER and others:
        return f"{column}={OTHER}", {"column": column, "is": "indicator", "of_any": others}
    return f"{column}={category}", {"column": column, "is": "indicator", "of": category}
