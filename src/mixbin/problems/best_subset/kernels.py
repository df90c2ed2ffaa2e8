"""Smooth losses on a small table, for many vectors of coefficients at once: what the relaxed problem is solved with.

Coefficients are arrays of shape (rows, targets, p): one row per node of a branch and bound, or a single row. With squared loss
and few columns, all is computed from X'X and X'y, so that the number of rows of X does not matter. With many columns, X'X would
be larger than X, and it is not formed.
"""

from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit, xlogy

from mixbin._validate import Floats
from mixbin.problem import Indices
from mixbin.problems.best_subset.logistic import LogisticLoss
from mixbin.problems.best_subset.squared import SquaredLoss


class At(NamedTuple):
    """The loss at some coefficients."""

    loss: Floats
    """In the units of G, without the penalty; shape (rows,)."""
    slope: Floats
    """X'v for the dual point v, of shape (rows, targets, p): minus the gradient in the units of ``step``."""
    dual: tuple[Floats, ...]
    """What ``bounds`` needs of the dual points."""


class Kernel(Protocol):
    """A loss on some columns."""

    gain_scale: float
    """The gain of a feature is this times the sum over targets of slope^2."""
    value_scale: float
    """G = loss + value_scale * g * sum w^2 / theta."""
    step: float
    """A step size at which a gradient step never raises the loss."""
    targets: int

    def at(self, w: Floats, constants: Floats) -> tuple[At, Floats]:
        """The loss at w, and the constants for which the loss is stationary, or better ones than those given."""

    def bounds(self, at: At, most: Floats) -> Floats:
        """Lower bounds of G where the gains can sum to ``most``."""

    def affordable(self, at: At, most: Floats, cutoff: float) -> Floats:
        """What the gains can sum to while the bound is at least ``cutoff``; ``most`` says where this should be tight."""


class SquaredKernel:
    """Squared loss on the columns ``which``."""

    value_scale = 1.0

    def __init__(self, loss: SquaredLoss, which: Indices) -> None:
        X = loss.columns.some(which)
        # The factors whose product is X'X.
        self._factors = (X.T @ X,) if X.shape[1] <= 2 * X.shape[0] else (np.ascontiguousarray(X.T), np.ascontiguousarray(X))
        self.b, self.norm = np.asarray((X.T @ loss.Y).T), loss.norm
        self.gain_scale, self.targets = 1.0 / loss.gamma, len(self.b)
        self.step = 1.0 / largest_eigenvalue(*self._factors)

    def at(self, w: Floats, constants: Floats) -> tuple[At, Floats]:
        """The loss at w, its slope, and the constants."""
        image = w
        for factor in self._factors:
            image = image @ factor
        slope = self.b - image
        fitted = np.einsum("rtp,tp->r", w, self.b)
        square = self.norm - fitted - np.einsum("rtp,rtp->r", w, slope)
        return At(square, slope, (self.norm - fitted,)), constants

    def bounds(self, at: At, most: Floats) -> Floats:
        """Lower bounds of G where the gains can sum to ``most``."""
        below = np.maximum(at.loss, 0.0) + most
        return np.asarray(np.where(at.dual[0] > 0, np.square(at.dual[0]) / np.maximum(below, 1e-300), 0.0))

    def affordable(self, at: At, most: Floats, cutoff: float) -> Floats:
        """``bounds`` solved for ``most``."""
        if cutoff <= 0.0:
            return np.full(len(most), np.inf)
        return np.asarray(np.where(at.dual[0] > 0, np.square(at.dual[0]) / cutoff - np.maximum(at.loss, 0.0), -np.inf))


class LogisticKernel:
    """Logistic loss on the columns ``which``."""

    value_scale, targets = 0.5, 1

    def __init__(self, loss: LogisticLoss, which: Indices) -> None:
        self.X, self.y, self.intercept = np.ascontiguousarray(loss.columns.some(which)), loss.y, loss.intercept
        self.gain_scale = 0.5 / loss.gamma
        self.step = 4.0 / largest_eigenvalue(self.X.T @ self.X)

    def at(self, w: Floats, constants: Floats) -> tuple[At, Floats]:
        """The loss at w, its slope, and the constants."""
        u = w[:, 0] @ self.X.T
        if self.intercept:
            constants = self._constants(u, constants)
            u = u + constants[:, None]
        a = self.y - expit(u)
        return At(np.logaddexp(0.0, u).sum(axis=1) - u @ self.y, (a @ self.X)[:, None], (a,)), constants

    def _constants(self, u: Floats, b: Floats) -> Floats:
        """The constants at which y - p sums to 0, which the dual asks for: Newton's method, from those of the last step."""
        for _ in range(50):
            p = expit(u + b[:, None])
            change = (self.y - p).sum(axis=1) / np.maximum((p * (1.0 - p)).sum(axis=1), 1e-10)
            b = b + np.clip(change, -1.0, 1.0)
            if np.abs(change).max(initial=0.0) <= 1e-12:
                break
        return b

    def bounds(self, at: At, most: Floats) -> Floats:
        """Lower bounds of G where the gains can sum to ``most``."""
        s, entropy = self._multiples(at, most)
        return np.asarray(entropy - s * s * most)

    def affordable(self, at: At, most: Floats, cutoff: float) -> Floats:
        """What ``most`` can be at the same multiple of the dual point."""
        s, entropy = self._multiples(at, most)
        return np.asarray((entropy - cutoff) / (s * s))

    def _multiples(self, at: At, most: Floats) -> tuple[Floats, Floats]:
        """Multiples s of the dual points with high sum_i H(s |a_i|) - s^2 most, and these entropies; any multiple is valid."""
        size = np.abs(at.dual[0])
        if self.intercept:
            up, down = (np.where(self.y > 0.5, size, 0.0).sum(axis=1), np.where(self.y > 0.5, 0.0, size).sum(axis=1))
            least = np.minimum(up, down)
            with np.errstate(divide="ignore", invalid="ignore"):
                factors = np.where(self.y > 0.5, (least / up)[:, None], (least / down)[:, None])
            size = np.minimum(size * np.nan_to_num(factors), 1.0)
        # At the solution s = 1 is best, and nearby it is near 1: two of Newton's steps on the concave function.
        s = np.full(len(size), 0.999)
        for _ in range(2):
            t = np.clip(s[:, None] * size, 1e-300, 1.0 - 1e-15)
            slope = np.where(size > 0, size * np.log((1.0 - t) / t), 0.0).sum(axis=1) - 2.0 * s * most
            curve = -(size / (s[:, None] * (1.0 - t))).sum(axis=1) - 2.0 * most
            s = np.clip(s - slope / np.minimum(curve, -1e-300), 0.5 * s, 1.0)
        t = s[:, None] * size
        return s, -xlogy(t, t).sum(axis=1) - xlogy(1.0 - t, 1.0 - t).sum(axis=1)


def kernel_of(loss: object, which: Indices) -> Kernel:
    """The kernel of a loss on some of its columns."""
    if isinstance(loss, SquaredLoss):
        return SquaredKernel(loss, which)
    assert isinstance(loss, LogisticLoss)
    return LogisticKernel(loss, which)


def largest_eigenvalue(*factors: Floats) -> float:
    """An upper estimate of the largest eigenvalue of a positive semidefinite matrix, by power iteration; never 0.

    The matrix is the product of ``factors``.
    """
    v = np.ones(factors[0].shape[0])
    for factor in factors:
        v = v @ np.abs(factor)
    roof = float(v.max(initial=0.0))
    if roof <= 0.0:
        return 1.0
    estimate = 0.0
    for _ in range(30):
        v = v / np.linalg.norm(v)
        for factor in factors:
            v = v @ factor
        estimate = float(np.linalg.norm(v))
    # Power iteration comes from below; 2 % more is enough for a step size, and no proof depends on it.
    return min(1.02 * estimate, roof) if estimate > 0 else roof
