"""The relaxed problem, min G over theta in the convex hull of the subsets, by accelerated proximal gradient steps.

The steps are taken in the coefficients (see ``shrinkage``), on a working set of features: those of the largest gains so far.
Every dual point gives a lower bound over all features, however far the steps have come.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.problem import Indices
from mixbin.problems.best_subset.choices import Choices
from mixbin.problems.best_subset.fit import Loss
from mixbin.problems.best_subset.kernels import At, Kernel, kernel_of
from mixbin.problems.best_subset.shrinkage import relaxed_weights

GAP = 1e-4
"""The relaxed problem is solved when its value and its bound differ by at most this share of the value."""
SLACK, MOST_SLACK, HOPELESS = 0.01, 0.02, 0.05
"""It is also solved when they differ by at most SLACK of the distance from the value to that of a subset already known, and by at
most MOST_SLACK of the value: a better bound could make the gap of that subset smaller by no more than SLACK. If the value is
below HOPELESS of the known one, the gap is above 95 % whatever the bound, and SLACK alone counts: with MOST_SLACK, a fit of
``FeatureSelector`` at such a tiny gamma took six to nine times as long (500 rows, 2,000 columns)."""
ROUNDS = 12
"""The working set grows at most this many times."""
STEPS = 400
"""Steps on each working set at most; a few dozen are enough unless gamma is tiny."""
FIRST_SET = 60
"""The first working set has this many features more than four times k."""


class Relaxed(NamedTuple):
    """A solution of the relaxed problem."""

    theta: Floats
    value: float
    bound: float
    residual: Floats
    """The dual point that proves the bound."""


class Steps:
    """Accelerated proximal gradient steps for many relaxed problems on the same columns.

    Parameters
    ----------
    kernel : Kernel
        The loss.
    gamma : float
        The ridge weight.
    free, fixed : bool arrays of shape (rows, p)
        The features whose theta is to be found, and those whose theta is 1; all others have theta 0.
    k : array of shape (rows,)
        What theta of the free features sums to.
    w : array of shape (rows, targets, p), optional
        Coefficients to start from.
    groups, caps : arrays, optional
        See ``relaxed_weights``.
    """

    def __init__(
        self,
        kernel: Kernel,
        gamma: float,
        free: NDArray[np.bool_],
        fixed: NDArray[np.bool_],
        k: NDArray[np.intp],
        w: Floats | None = None,
        groups: Floats | None = None,
        caps: Floats | None = None,
    ) -> None:
        rows, p = free.shape
        self.kernel, self.gamma = kernel, gamma
        self.free, self.fixed, self.k, self.groups, self.caps = free, fixed, k, groups, caps
        self.w = np.zeros((rows, kernel.targets, p)) if w is None else w * (free | fixed)[:, None]
        self.theta = np.zeros((rows, p))
        self._ahead, self._t, self._c = self.w, np.ones(rows), np.ones(rows)
        self._constants = np.zeros(rows)

    def run(self, steps: int) -> None:
        """Take some steps in all rows."""
        beta = self.kernel.step * self.gamma
        for _ in range(steps):
            at, self._constants = self.kernel.at(self._ahead, self._constants)
            u = self._ahead + self.kernel.step * at.slope
            size = np.abs(u[:, 0]) if u.shape[1] == 1 else np.sqrt(np.square(u).sum(axis=1))
            theta, self._c = relaxed_weights(np.where(self.free, size, 0.0), beta, self.k, self._c, self.groups, self.caps)
            self.theta = np.where(self.fixed, 1.0, theta)
            w = u * (self.theta / (self.theta + beta))[:, None]
            # Momentum starts anew in the rows where it points uphill.
            back = np.einsum("rtp,rtp->r", self._ahead - w, w - self.w) > 0
            t = np.where(back, 1.0, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self._t**2)))
            momentum = np.where(back, 0.0, (self._t - 1.0) / t)
            self._ahead = w + momentum[:, None, None] * (w - self.w)
            self.w, self._t = w, t

    def at(self) -> tuple[At, Floats, Floats]:
        """The loss at the coefficients, the value of the relaxed problem there, and the gain of each feature."""
        at, constants = self.kernel.at(self.w, self._constants)
        self._constants = constants
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.theta > 0, np.square(self.w).sum(axis=1) / self.theta, 0.0)
        value = at.loss + self.kernel.value_scale * self.gamma * ratio.sum(axis=1)
        return at, np.asarray(value), self.kernel.gain_scale * np.square(at.slope).sum(axis=1)

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Go on with these rows only."""
        for name in ("free", "fixed", "k", "w", "theta", "_ahead", "_t", "_c", "_constants", "caps"):
            if (part := getattr(self, name)) is not None:
                setattr(self, name, part[rows])


def allowed(value: float, known: float, least: float = GAP) -> float:
    """How much the bound may be below the value of the relaxed problem, if some subset has the value ``known``."""
    slack = SLACK * (known - value)
    return max(least * value, slack if value < HOPELESS * known else min(slack, MOST_SLACK * value))


def relax(loss: Loss, choices: Choices, known: float = -np.inf) -> tuple[Floats, float, Floats]:
    """Minimise G over the relaxed set: theta, G there, and the dual point whose lower bound is the best that was met.

    ``known`` is G of some subset; without it, the problem is solved up to ``GAP``.
    """
    p, k = choices.p, choices.k
    groups, caps = choices.indicators()
    theta, fit = np.zeros(p), loss.fit(np.zeros(p))
    gains = loss.gains(fit.residual)
    working = np.sort(np.argsort(-gains, kind="stable")[: min(p, 4 * k + FIRST_SET)])
    if groups is not None:
        working = np.union1d(working, choices.best(gains))
    best_value, best_bound, best_residual = np.inf, -np.inf, fit.residual
    w: Floats | None = None
    for _ in range(ROUNDS):
        size = working.size
        steps = Steps(
            kernel_of(loss, working), loss.gamma, np.ones((1, size), np.bool_), np.zeros((1, size), np.bool_), np.array([k]),
            w, None if groups is None else groups[working], caps,
        )  # fmt: skip
        for _ in range(0, STEPS, 20):
            steps.run(20)
            at, value, own = steps.at()
            most = np.array([choices.most_of(own[0], working)])
            if value[0] - steps.kernel.bounds(at, most)[0] <= 0.3 * allowed(float(value[0]), known):
                break
        there = np.zeros(p)
        there[working] = steps.theta[0]
        fit = loss.fit(there)
        gains = loss.gains(fit.residual)
        bound = loss.bound(fit.residual, choices.most(gains))
        if bound > best_bound:
            best_bound, best_residual = bound, fit.residual
        if fit.value < best_value:
            best_value, theta = fit.value, there
        on = steps.theta[0] > 0
        more = _missing(gains, working, float(gains[working[on]].min(initial=np.inf)), size)
        if best_value - best_bound <= allowed(best_value, known) or more.size == 0:
            break
        before, working = working, np.union1d(working, more)
        w = np.zeros((1, steps.w.shape[1], working.size))
        w[:, :, np.searchsorted(working, before)] = steps.w
    return choices.theta_set.project(theta), best_value, best_residual


def _missing(gains: Floats, working: Indices, level: float, most: int) -> Indices:
    """The features outside of the working set whose gains exceed the least gain of a feature in use: at most ``most``."""
    outside = gains.copy()
    outside[working] = -np.inf
    order = np.argsort(-outside, kind="stable")[:most]
    return np.asarray(order[outside[order] > level])
