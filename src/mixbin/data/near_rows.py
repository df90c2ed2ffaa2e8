"""The few rows that have weight late in a run, kept in the workers' memory where X itself is read in every pass.

A value needs the rows with weight alone. Once these are few, a pass for a gradient, which reads all rows anyway, leaves the rows
with weight of each block with the workers, together with the rows of the lowest gradient: those rows get weight next.
As long as all rows with weight are among those kept, a value reads nothing. The sums are those of the block itself, to the bit,
because they are computed from copies of the same numbers, as many at a time (see ``blocks``).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.blocks import Weights, gradient, taken
from mixbin.data.dask_tasks import Recipe, Source
from mixbin.data.parts import RowsInParts

FEW = 0.05
"""Rows are kept if at most this share of all rows has weight."""
SPARE = 2.0
"""Beside the rows with weight, about this many times as many rows are kept."""
SAMPLE = 100_000
"""The lowest gradients are those below a quantile of this many entries of the gradient before."""
LARGEST_BLOCK = 2**26
"""A pass for a gradient keeps rows of blocks of at most this many bytes: each is held in memory while its rows are chosen."""

Arguments = Sequence[tuple[Any, ...] | None]
LocalRows = NDArray[np.int32]


class _Kept(NamedTuple):
    """The rows of one block that the workers keep, in ascending order, and where they are."""

    rows: LocalRows
    source: Source


class KeptRecipe(Recipe):
    """X and y of rows that a task has left with a worker, for some blocks; ``number`` is the place of the block among them."""

    def __init__(self, number: int) -> None:
        super().__init__({}, [None], (None, None))
        self.number = number

    def follow(self, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """The rows as they were gathered."""
        _, _, X, y = inputs[0][self.number]
        return X, y


class NearRows:
    """What the client knows about the rows that workers keep."""

    def __init__(self, sizes: Sequence[int], nbytes: Sequence[int], columns: int, memory: float) -> None:
        self._sizes, self._nbytes, self._columns, self._memory = sizes, nbytes, columns, memory
        self._n_rows = float(sum(sizes))
        self._kept: dict[int, _Kept] = {}
        self._given: list[LocalRows | None] | None = None
        self._sample: Floats | None = None
        self._share = 0.0

    def forget(self) -> None:
        """Keep nothing any more."""
        self._kept, self._given = {}, None

    def expect(self, gradient: Floats) -> None:
        """Remember about how low the lowest gradients are."""
        self._sample = gradient[:: max(1, gradient.size // SAMPLE)].copy()

    def sources(
        self, blocks: Sequence[Source], arguments: Arguments
    ) -> tuple[list[Source], list[tuple[Any, ...] | None], list[bool]]:
        """For a value: where the rows with weight of each block come from, the arguments that go with them, and what is read."""
        sources, changed, read = list(blocks), list(arguments), [args is not None for args in arguments]
        count = sum(0 if args is None else int(np.count_nonzero(args[0].values)) for args in arguments)
        if not 0 < count <= FEW * self._n_rows or 8.0 * self._columns * (1.0 + SPARE) * count > self._memory:
            self.forget()
            return sources, changed, read
        self._share = count / self._n_rows
        self._given = [None if args is None else self._rows(n, args[0]) for n, args in enumerate(arguments)]
        for n, (rows, args) in enumerate(zip(self._given, arguments, strict=True)):
            kept = self._kept.get(n)
            if rows is None or args is None or kept is None:
                continue
            place = np.searchsorted(kept.rows, rows)
            if place[-1] < kept.rows.size and np.array_equal(kept.rows[place], rows):
                sources[n], read[n] = kept.source, False
                changed[n] = (Weights(args[0].values, place.astype(np.int32)), *args[1:])
        return sources, changed, read

    def gradient_arguments(self, arguments: Arguments) -> list[tuple[Any, ...] | None] | None:
        """For a gradient that leaves rows with the workers: what ``gradient_and_rows`` needs. None if no rows are to be kept."""
        if self._given is None or max(self._nbytes) > LARGEST_BLOCK:
            return None
        low = -np.inf if self._sample is None else float(np.quantile(self._sample, min(1.0, SPARE * self._share)))
        none = np.empty(0, dtype=np.int32)
        most = [int(2 * SPARE * self._share * size) + 1 for size in self._sizes]
        rows = [none if it is None else it for it in self._given]
        return [None if a is None else (r, low, n, *a) for a, r, n in zip(arguments, rows, most, strict=True)]

    def keep(self, block: int, rows: LocalRows, source: Source) -> None:
        """Note that a worker has these rows of a block."""
        self._kept[block] = _Kept(rows, source)

    def _rows(self, block: int, weights: Weights) -> LocalRows:
        """The rows that the weights belong to."""
        return np.arange(self._sizes[block], dtype=np.int32) if weights.rows is None else weights.rows


def gradient_and_rows(
    X: Any, y: Any, rows: LocalRows, low: float, most: int, K: Floats, A: Floats, offset: Floats, mean: Floats
) -> tuple[Floats, LocalRows, Floats, Floats]:
    """The gradient of a block; ``rows`` and at most ``most`` others of a gradient up to ``low``, with their X and y."""
    if isinstance(X, RowsInParts):
        X, y = X.loaded(), np.asarray(y)  # read once for both
    out = gradient(X, y, K, A, offset, mean)
    near = np.flatnonzero(out <= low)
    if near.size > most:
        near = near[np.argpartition(out[near], most)[:most]]
    kept = np.union1d(rows, near).astype(np.int32)
    Z = taken(X, y, kept.astype(np.intp), np.zeros(len(mean))) if kept.size else np.empty((0, len(mean)))
    return out, kept, Z[:, : X.shape[1]], Z[:, X.shape[1] :]


def without_rows(results: list[tuple[Floats, LocalRows, Floats, Floats]]) -> list[tuple[Floats, LocalRows]]:
    """What of that goes to the client."""
    return [(out, kept) for out, kept, _, _ in results]
