"""Simulated annealing of a sparse quadratic function over the hypercube, many flips at a time.

Entries that Q does not connect flip independently of each other. So the entries are put into classes without connections inside;
a class is flipped at once, and one product with its columns of Q updates the gradient. A sweep, which offers every entry a flip,
takes about as long as an evaluation. Tabu search makes one flip in a pass over all entries.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mixbin.methods.tabu import Bools
from mixbin.problem import Floats

HOT, COLD = 0.5, 0.05
"""The first and the last temperature, in units of the typical change of the function by a flip."""
LEAST_ENTRIES, LARGEST_DEGREE, LARGEST_SHARE = 500, 512, 0.1
"""Q is annealed from this many entries on, if no row has more other entries than this and at most this share is not zero. Then
the classes are few, and far fewer products are needed than flips."""
MOST_DESCENTS = 50
"""Sweeps without heat at the end; a few are enough, unless rounding keeps a flip going to and fro."""
ROUNDING = 1e-12
"""A flip must lower the function by this share of the typical change."""


class Annealing:
    """The entries of theta in classes, and the columns of Q of each class; Q is symmetric."""

    def __init__(self, Q: Any) -> None:
        rows = sparse.csr_array(Q)
        classes = _classes(_off_diagonal(rows))
        self.order = np.argsort(classes, kind="stable")
        ends = np.cumsum(np.bincount(classes)).tolist()
        ordered = sparse.csc_array(rows[self.order][:, self.order])
        self._parts = [_Part(slice(*place), ordered[:, slice(*place)]) for place in pairwise([0, *ends])]
        self.work = int(ordered.nnz) + 6 * self.order.size
        """The multiply-adds of a sweep, and the other passes over theta."""
        diagonal = ordered.diagonal()
        self._half = 0.5 * diagonal
        # At a random point, the derivative for an entry deviates by half the root of the squares in its row of Q.
        squares = np.square(ordered.data).sum() - np.square(diagonal).sum()
        self._typical = float(np.sqrt(0.25 * max(squares, 0.0) / diagonal.size))

    def run(self, theta: Bools, grad: Floats, rng: np.random.Generator, sweeps: int) -> tuple[Bools, int]:
        """From ``theta``, lower the temperature sweep by sweep, then flip until no flip lowers the function; also all sweeps."""
        x = theta[self.order].astype(np.float64)
        g = grad[self.order]
        linear = g - self._product(x)
        for temperature in self._typical * np.geomspace(HOT, COLD, sweeps):
            # A flip that raises the function by r is accepted with the probability exp(-r / temperature).
            self._sweep(x, g, temperature * rng.standard_exponential(x.size))
        g = linear + self._product(x)  # without the rounding of all these updates
        still, done = np.full(x.size, -ROUNDING * self._typical), 1
        while self._sweep(x, g, still) and done < MOST_DESCENTS:
            done += 1
        found = np.empty_like(theta)
        found[self.order] = x > 0.5
        return found, sweeps + done

    def _sweep(self, x: Floats, g: Floats, bar: Floats) -> bool:
        """Flip, class by class, each entry whose flip changes the function by less than ``bar``; whether there was one."""
        flipped = False
        for place, columns in self._parts:
            sign = 1.0 - 2.0 * x[place]
            step = np.where(sign * g[place] + self._half[place] < bar[place], sign, 0.0)
            if step.any():
                x[place] += step
                g += columns @ step
                flipped = True
        return flipped

    def _product(self, x: Floats) -> Floats:
        total = np.zeros_like(x)
        for place, columns in self._parts:
            total += columns @ x[place]
        return total


class _Part(NamedTuple):
    """A class: where its entries are in the order, and their columns of Q."""

    place: slice
    columns: Any


def is_annealed(Q: Any) -> bool:
    """Whether Q, sparse or dense, is large and sparse enough."""
    n = Q.shape[0]
    if n < LEAST_ENTRIES:
        return False
    entries = np.diff(Q.indptr) if sparse.issparse(Q) else np.count_nonzero(Q, axis=1)
    return int(entries.max()) - 1 <= LARGEST_DEGREE and int(entries.sum()) <= LARGEST_SHARE * n * n


def _off_diagonal(rows: Any) -> Any:
    others = sparse.csr_array(rows - sparse.diags_array(rows.diagonal()))
    others.eliminate_zeros()
    return others


def _classes(others: Any) -> NDArray[np.intp]:
    """The number of the class of each entry: one maximal set of unconnected entries after the other."""
    n = others.shape[0]
    found, rank = np.full(n, -1, dtype=np.intp), np.random.default_rng(0).permutation(n)
    row, other = np.repeat(np.arange(n), np.diff(others.indptr)), others.indices
    number = 0
    while (found < 0).any():
        both = (found[row] < 0) & (found[other] < 0)
        row, other = row[both], other[both]
        free, a, b = found < 0, row, other
        while free.any():
            # An entry joins the class if its rank is the highest among its free neighbours, which then cannot.
            lower = np.zeros(n, dtype=np.bool_)
            lower[a[rank[b] > rank[a]]] = True
            joins = free & ~lower
            found[joins] = number
            free &= ~joins
            free[b[joins[a]]] = False
            left = free[a] & free[b]
            a, b = a[left], b[left]
        number += 1
    return found
