"""The curvature of G at binary points, learnt from gradients: the difference of two gradients one flip apart is a column of it.

Not every flip stays in the set: a budget only exchanges. The gradient after an exchange tells the difference of two columns. Entries
are nodes and moves are edges of a graph, with one more node for "no entry". A tree of moves then gives every column up to a vector
that is common to all entries connected by moves. The vector does not matter, because moves keep the number of ones among these
entries (or the node "no entry" is among them, and its column is 0).

For a quadratic G the columns are exact everywhere, and a search needs no evaluations of G. For other G they are a local model.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixbin.methods.polish import AT_ONCE, moved
from mixbin.methods.tabu import Quadratic
from mixbin.problem import Floats, Indices
from mixbin.sets import BinarySet
from mixbin.solvers import Objective

Bools = NDArray[np.bool_]

LARGEST_LEARNT = 1_000
"""Columns are learnt if theta has at most this many entries; the matrix then takes at most 8 MB."""
MOST_OF_BUDGET = 0.5
"""Columns are learnt beforehand if that takes at most this share of the evaluations that are left."""
EXACT = 1e-7
"""The model counts as exact if it misses no value by more than this share of the size of the values and gradients."""


@dataclass(frozen=True, kw_only=True)
class Curvature:
    """G near one binary point, as far as it is learnt. A checkpoint holds this state. All arrays but ``theta`` are flat."""

    theta: Bools
    lam: Floats
    """lam scaled to the unit box."""
    value: float
    grad: Floats
    columns: Floats
    """Row j is the change of the gradient when entry j becomes 1, up to a vector (see the top of this module)."""
    off: Indices
    on: Indices
    """The moves to learn from, a tree in an order in which each move adds one entry to those reached."""
    child: Indices
    """The entry that each move adds."""
    learnt: int = 0
    """The number of these moves that were evaluated."""
    exact: bool = True
    """Whether no value was found to differ from the model."""

    @property
    def ready(self) -> bool:
        """Whether all columns are known."""
        return self.learnt >= self.off.size

    def model(self) -> Quadratic:
        """The quadratic function with this curvature."""
        pairs = 0.5 * (self.columns + self.columns.T)
        return Quadratic(self.theta.ravel(), self.value, self.grad, self.columns, pairs)


def begin_learning(theta_set: BinarySet, theta: Bools, lam: Floats, value: float, grad: Floats) -> Curvature:
    """Nothing is learnt yet; the moves to learn from are chosen."""
    off, on, child = _tree(theta_set, theta)
    zeros = np.zeros((theta.size, theta.size))
    return Curvature(theta=theta, lam=lam, value=value, grad=grad.ravel(), columns=zeros, off=off, on=on, child=child)


def learn(objective: Objective, at: Curvature) -> Curvature:
    """Evaluate G after the next moves of the tree, and add the columns that they tell."""
    columns, exact, last = at.columns.copy(), at.exact, min(at.learnt + AT_ONCE, at.off.size)
    for i in range(at.learnt, last):
        off, on = int(at.off[i]), int(at.on[i])
        got = objective.evaluate(moved(at.theta, off, on).astype(np.float64), at.lam, None)
        if not np.isfinite(got.value):
            exact = False  # no model can be trained there, as for an empty selection, and the gradient tells nothing
            continue
        assert got.grad_theta is not None
        change = got.grad_theta.ravel() - at.grad
        if at.child[i] == on:
            columns[on] = change + (columns[off] if off >= 0 else 0.0)
        else:
            columns[off] = (columns[on] if on >= 0 else 0.0) - change
    return replace(at, columns=columns, exact=exact, learnt=last)


def correct(columns: Floats, off: int, on: int, change: Floats) -> Floats:
    """The columns, corrected such that they tell the change of the gradient that was seen after a move."""
    columns = columns.copy()
    if off < 0:
        columns[on] = change
    elif on < 0:
        columns[off] = -change
    else:
        missed = 0.5 * (change - columns[on] + columns[off])
        columns[on] += missed
        columns[off] -= missed
    return columns


def is_exact(at: Curvature, expected: Quadratic, value: float, grad: Floats) -> bool:
    """Whether the model, known at a point, has the value and the gradient of G there."""
    if not np.isfinite(value):
        return False
    size = float(max(np.abs(at.grad).max(initial=0.0), np.abs(grad).max(initial=0.0)))
    missed = float(np.abs(_along_moves(at, expected.grad - grad)).max(initial=0.0))
    return abs(expected.value - value) <= EXACT * (abs(at.value) + abs(value) + size) and missed <= EXACT * size


def _along_moves(at: Curvature, grad: Floats) -> Floats:
    """The change of each move of the tree in the linear model, which the vector common to several entries does not enter."""
    g = np.append(grad, 0.0)
    return np.asarray(g[at.on] - g[at.off])


def _tree(theta_set: BinarySet, theta: Bools) -> tuple[Indices, Indices, Indices]:
    """Moves that connect all entries which moves can connect: off, on, and the entry that each adds; breadth first."""
    n = theta.size
    joined = np.zeros((n + 1, n + 1), dtype=np.bool_)  # index -1, "no entry", is the last node
    for some_off, some_on in theta_set.moves(theta):
        joined[some_off, some_on] = joined[some_on, some_off] = True
    reached = np.asarray(~joined.any(axis=1))
    moves: list[tuple[int, int, int]] = []
    is_on = np.append(theta.ravel(), False)
    for root in (n, *range(n)):
        if reached[root]:
            continue
        reached[root] = True
        queue = [root]
        for node in queue:
            for child in np.flatnonzero(joined[node] & ~reached).tolist():
                reached[child] = True
                queue.append(child)
                off, on = (node, child) if is_on[node] or (node == n and not is_on[child]) else (child, node)
                moves.append((off if off < n else -1, on if on < n else -1, child))
    listed = np.array(moves, dtype=np.intp).reshape(-1, 3)
    return listed[:, 0], listed[:, 1], listed[:, 2]
