"""Tabu search for a quadratic function of binary variables, in O(n) per flip or row move and O(n^2) per exchange.

Every step makes the best single move, even if it raises the value. An entry that has just changed must stay for some steps (it is
tabu), unless the move leads to the best value so far. So the search leaves local minima without falling back at once.

The function is known by its value and gradient at one binary point and by the columns of its second derivative. Columns may be
known up to a vector that is common to all entries which only exchange with each other (see ``mixbin.methods.curvature``).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin.problem import FALL, Floats
from mixbin.sets import BinarySet, Budget, Hypercube, Knapsack, OneHot

Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]
Move = tuple[int, int, float]
"""An entry that becomes 0, one that becomes 1 (-1 for none), and the change of the value."""
BestMove = Callable[[Bools, Floats, Bools, float], Move]
"""The best move from (theta, gradient) that changes no tabu entry, or else one that changes the value by less than the number."""

LONGEST_TENURE, TENURE_SHARE = 20, 4
"""An entry stays tabu for up to about LONGEST_TENURE steps, or n / TENURE_SHARE if that is less."""
WITHIN_CAPACITY = 5e-13
"""A knapsack holds its capacity up to 1e-12; half of that leaves room for the rounding of sums in another order."""
NO_MOVE: Move = (-1, -1, np.inf)


class Quadratic(NamedTuple):
    """A quadratic function near one binary point. All arrays are flat."""

    theta: Bools
    value: float
    grad: Floats
    columns: Floats
    """Row j is the change of the gradient when entry j becomes 1."""
    pairs: Floats
    """(columns + columns') / 2: the second derivative, apart from what is common to entries that exchange."""

    def at(self, theta: Bools) -> "Quadratic":
        """The same function, known at another point."""
        step = theta.astype(np.float64) - self.theta
        change = step @ self.columns
        return self._replace(theta=theta, value=float(self.value + step @ (self.grad + 0.5 * change)), grad=self.grad + change)


class Walk(NamedTuple):
    """The best point of a tabu search."""

    theta: Bools
    value: float
    steps: int


def tabu_search(theta_set: BinarySet, at: Quadratic, rng: np.random.Generator, steps: int, patience: int) -> Walk:
    """Make the best single moves from ``at``, at most ``steps``, and at most ``patience`` since the best point was found."""
    best_move = neighbourhood(theta_set, at.pairs)
    n = at.theta.size
    x, g, value = at.theta.copy(), at.grad.copy(), at.value
    best, best_value, found = x.copy(), value, 0
    free_after = np.zeros(n, dtype=np.int64)
    tenure_on, tenure_off = tenures(theta_set, x)
    slack = rng.integers(0, max(2, min(10, n // TENURE_SHARE)), size=(steps, 2)).tolist()
    step = 0
    for step in range(1, steps + 1):
        lowest = best_value - FALL * abs(best_value)
        off, on, change = best_move(x, g, free_after > step, lowest - value)
        if change == np.inf:
            break
        if off >= 0:
            x[off] = False
            g -= at.columns[off]
            free_after[off] = step + tenure_off + slack[step - 1][0]
        if on >= 0:
            x[on] = True
            g += at.columns[on]
            free_after[on] = step + tenure_on + slack[step - 1][1]
        value += change
        if value < lowest:
            best, best_value, found = x.copy(), value, step
        elif step - found >= patience:
            break
    return Walk(best, best_value, step)


def tenures(theta_set: BinarySet, x: Bools) -> tuple[int, int]:
    """For how many steps an entry stays on, and off, after it has changed. Never so long that all entries are tabu."""
    n, on = x.size, int(np.count_nonzero(x))
    if isinstance(theta_set, Hypercube):
        tenure = min(LONGEST_TENURE, n // TENURE_SHARE)
        return tenure, tenure
    tenure_on = min(LONGEST_TENURE // 2, on // TENURE_SHARE)
    return tenure_on, min(LONGEST_TENURE, (n - on) // TENURE_SHARE)


def neighbourhood(theta_set: BinarySet, pairs: Floats) -> BestMove:
    """The function that finds the best single move of this set."""
    half = 0.5 * pairs.diagonal()
    if isinstance(theta_set, Hypercube):
        return _flips(half)
    if isinstance(theta_set, OneHot):
        return _row_moves(theta_set, half, pairs)
    limit = capacity_of(theta_set)
    if limit is not None:
        return _exchanges(half, pairs, *limit)
    if isinstance(theta_set, Budget):
        return _exchanges(half, pairs, None, np.inf)
    return _listed(theta_set, half, pairs)


def capacity_of(theta_set: BinarySet) -> tuple[Floats, float] | None:
    """The weights and the capacity of a set that limits a sum; None for other sets."""
    if isinstance(theta_set, Budget) and theta_set.at_most:
        return np.ones(theta_set.size), float(theta_set.k)
    if isinstance(theta_set, Knapsack):
        return theta_set.weights, theta_set.capacity * (1.0 + WITHIN_CAPACITY)
    return None


def _flips(half: Floats) -> BestMove:
    def best(x: Bools, g: Floats, tabu: Bools, bar: float) -> Move:
        change = np.where(x, -g, g)
        change += half
        i = _choose(change, tabu, bar)
        return (i, -1, float(change[i])) if x[i] else (-1, i, float(change[i]))

    return best


def _choose(change: Floats, tabu: Bools, bar: float) -> int:
    """The index of the lowest change that is not tabu or is below ``bar``; if there is none, of the lowest of all."""
    i = int(change.argmin())
    if not tabu[i] or change[i] < bar:
        return i
    j = int(np.where(tabu, np.inf, change).argmin())
    return i if tabu[j] else j


def _row_moves(theta_set: OneHot, half: Floats, pairs: Floats) -> BestMove:
    rows, columns = theta_set.shape
    first, entry = np.arange(rows) * columns, np.arange(rows * columns)

    def best(x: Bools, g: Floats, tabu: Bools, bar: float) -> Move:
        if columns == 1:
            return NO_MOVE
        chosen = first + x.reshape(rows, columns).argmax(axis=1)
        off = np.repeat(chosen, columns)
        change = g + half + (half - g)[off] - pairs[entry, off]
        change[chosen] = np.inf
        i = _choose(change, tabu | tabu[off] | x, bar)
        return int(off[i]), i, float(change[i])

    return best


def _exchanges(half: Floats, pairs: Floats, weights: Floats | None, capacity: float) -> BestMove:
    """Exchanges; with ``weights`` those that fit the capacity, and also the removals and the additions that fit."""

    def best(x: Bools, g: Floats, tabu: Bools, bar: float) -> Move:
        ons, offs = np.flatnonzero(~x), np.flatnonzero(x)
        put, taken = (g + half)[ons], (half - g)[offs]
        chosen, fallback = NO_MOVE, NO_MOVE
        room = np.inf
        if weights is not None:
            room = capacity - float(weights @ x)
            for side, change, open_to in ((offs, taken, None), (ons, put, weights[ons] <= room)):
                if side.size:
                    usable = change if open_to is None else np.where(open_to, change, np.inf)
                    i = _choose(usable, tabu[side], bar)
                    move = (int(side[i]), -1, float(usable[i])) if open_to is None else (-1, int(side[i]), float(usable[i]))
                    allowed = not tabu[side[i]] or usable[i] < bar
                    if move[2] < (chosen if allowed else fallback)[2]:
                        chosen, fallback = (move, fallback) if allowed else (chosen, move)
        if ons.size and offs.size:
            change = taken[:, None] + put[None, :]
            change -= pairs[offs[:, None], ons[None, :]]
            if weights is not None:
                change[weights[ons][None, :] - weights[offs][:, None] > room] = np.inf
            k = int(change.argmin())
            i, j = divmod(k, ons.size)
            lowest = float(change[i, j])
            if (tabu[offs[i]] or tabu[ons[j]]) and not lowest < bar:
                if lowest < fallback[2]:
                    fallback = int(offs[i]), int(ons[j]), lowest
                change[tabu[offs], :] = np.inf
                change[:, tabu[ons]] = np.inf
                i, j = divmod(int(change.argmin()), ons.size)
                lowest = float(change[i, j])
            if lowest < chosen[2]:
                chosen = int(offs[i]), int(ons[j]), lowest
        return chosen if chosen[2] < np.inf else fallback

    return best


def _listed(theta_set: BinarySet, half: Floats, pairs: Floats) -> BestMove:
    """For sets of a user's own: all moves that the set lists."""

    def best(x: Bools, g: Floats, tabu: Bools, bar: float) -> Move:
        batches = list(theta_set.moves(x.reshape(theta_set.shape)))
        if not batches:
            return NO_MOVE
        off, on = (np.concatenate(side) for side in zip(*batches, strict=True))
        put, taken = np.append(g + half, 0.0), np.append(half - g, 0.0)
        change = put[on] + taken[off] - np.where((off >= 0) & (on >= 0), pairs[off, on], 0.0)
        locked = np.append(tabu, False)
        i = _choose(change, locked[off] | locked[on], bar)
        return int(off[i]), int(on[i]), float(change[i])

    return best
