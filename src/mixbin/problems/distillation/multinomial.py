"""Train a multinomial logistic regression on weighted rows by Newton's method with preconditioned conjugate gradients.

The model B of shape (K, q) minimises f(B) = 1/m sum_i v_i (log sum_k exp(B_k z_i) - B_{y_i} z_i) + alpha/2 |B|^2. With p_i the
class probabilities at row i, the Hessian applied to D is 1/m sum_i v_i (diag p_i - p_i p_i') D z_i z_i' + alpha D. That takes two
thin products over the rows; the Hessian itself, with its K q columns, is never formed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from mixbin._validate import Floats
from mixbin.errors import DivergedError

Codes = NDArray[np.intp]
Spectrum = tuple[Floats, Floats]
"""The eigenvalues and eigenvectors of the mean of z z' over some rows."""

MOST_STEPS = 60
"""Training gives up after this many Newton steps."""
MOST_PRODUCTS = 1_000
"""A linear system is left as it is after this many conjugate gradient steps, each a product with the Hessian."""
FORCING = 0.1
"""A Newton system is solved to at most this share of the gradient, and more exactly as the gradient falls."""
TIGHT = 1e-9
"""The model counts as trained when no entry of the gradient exceeds this share of the scale of the terms that it sums."""
SUFFICIENT, NEGLIGIBLE_FALL = 1e-4, 1e-13
"""Armijo's test accepts a step if f falls by at least SUFFICIENT of what the slope promises. If the slope promises less than
NEGLIGIBLE_FALL of f, the test would only compare rounding errors and is skipped."""


class Trained(NamedTuple):
    """The lower level's solution."""

    B: Floats
    P: Floats
    """The class probabilities of the rows with weight, of shape (rows, K)."""
    steps: int
    residual: float
    """The largest entry of the gradient, as a share of ``Multinomial.scale``."""
    gradient: Floats
    """df/dB at B: how far B is from the solution."""


class Multinomial:
    """The training objective f at one (v, alpha), over the rows with weight."""

    def __init__(
        self,
        Z: Floats,
        y: Codes,
        v: Floats,
        alpha: float,
        m: int,
        spectrum: Spectrum | None = None,
        largest: Floats | None = None,
    ) -> None:
        """``largest`` holds the largest absolute entry of each row of Z, if the caller knows them."""
        self.Z, self.y, self.alpha, self.spectrum = Z, y, alpha, spectrum
        self.weights = v / m
        self.scale = float(self.weights @ (np.abs(Z).max(axis=1) if largest is None else largest)) or 1.0
        self._at = np.arange(len(y)), y
        self._factor: Floats | None = None

    def value(self, B: Floats) -> tuple[float, Floats]:
        """f and the class probabilities."""
        loss, P = losses(self.Z @ B.T, self.y)
        return float(self.weights @ loss) + 0.5 * self.alpha * float(np.vdot(B, B)), P

    def gradient(self, B: Floats, P: Floats) -> Floats:
        """df/dB."""
        miss = P * self.weights[:, None]
        miss[self._at] -= self.weights
        return np.asarray(miss.T @ self.Z + self.alpha * B)

    def solve(self, P: Floats, rhs: Floats, start: Floats | None, share: float) -> Floats:
        """Solve H x = rhs by conjugate gradients to ``share`` of rhs, where H is the Hessian at these class probabilities.

        The preconditioner has the same block for every class: in H, (diag p - p p') is replaced by the mean of its diagonal. It
        is computed at the first P and then kept: it need not be exact, and it costs as much as several products. With a
        ``spectrum``, that mean is also replaced by its mean over the rows, so that no block need be computed and factored at all;
        this is enough if few digits are wanted.
        """
        weighted = P * self.weights[:, None]

        def product(D: Floats) -> Floats:
            Q = self.Z @ D.T
            Q -= np.einsum("ik,ik->i", P, Q)[:, None]
            Q *= weighted
            return np.asarray(Q.T @ self.Z + self.alpha * D)

        return conjugate_gradients(product, self._preconditioner(P), rhs, start, share)

    def _preconditioner(self, P: Floats) -> Callable[[Floats], Floats]:
        """The inverse of the block."""
        if self.spectrum is not None:
            values, vectors = self.spectrum
            mean = float(self.weights @ (1.0 - np.einsum("ik,ik->i", P, P))) / P.shape[1]
            scaled = vectors / (mean * values + self.alpha)
            return lambda R: np.asarray((R @ scaled) @ vectors.T)
        if self._factor is None:
            self._factor = self._block_factor(P)
        factor = (self._factor, False)
        return lambda R: np.asarray(cho_solve(factor, R.T, check_finite=False).T)

    def _block_factor(self, P: Floats) -> Floats:
        """The upper Cholesky factor of the block."""
        spread = self.weights * (1.0 - np.einsum("ik,ik->i", P, P)) / P.shape[1]
        M = (self.Z * spread[:, None]).T @ self.Z
        M[np.diag_indices(len(M))] += self.alpha
        try:
            return np.linalg.cholesky(M).T
        except np.linalg.LinAlgError:
            raise DivergedError(
                f"the logistic regression is singular at alpha = {self.alpha:g}; raise alpha or rescale the columns of X"
            ) from None

    def train(self, B: Floats, tol: float = TIGHT, least: int = 0) -> Trained:
        """Run Newton's method from ``B`` until no entry of the gradient exceeds ``tol`` times its scale.

        At least ``least`` and at most MOST_STEPS steps are made.
        """
        value, P = self.value(B)
        g = self.gradient(B, P)
        residual = float(np.abs(g).max()) / self.scale
        for step in range(MOST_STEPS):
            if (residual <= tol and step >= least) or residual == 0.0:
                return Trained(B, P, step, residual, g)
            share = max(min(FORCING, residual**0.5), min(FORCING, 0.1 * tol / residual))
            D = -self.solve(P, g, None, share)
            slope, t = float(np.vdot(g, D)), 1.0
            there, P_there = self.value(B + D)
            # Near the minimum f falls by less than its rounding error. The full Newton step is then taken without the test.
            while there > value + SUFFICIENT * t * slope and -t * slope > NEGLIGIBLE_FALL * abs(value):
                t *= 0.5
                there, P_there = self.value(B + t * D)
            B, value, P = B + t * D, there, P_there
            g = self.gradient(B, P)
            residual = float(np.abs(g).max()) / self.scale
        return Trained(B, P, MOST_STEPS, residual, g)


def losses(scores: Floats, y: Codes) -> tuple[Floats, Floats]:
    """The cross entropy of each row and its class probabilities; ``scores`` is overwritten."""
    # Without the maximum the largest exponent of each row is 0, so exp cannot overflow.
    scores -= scores.max(axis=1, keepdims=True)
    own = scores[np.arange(len(y)), y].copy()
    P = np.exp(scores, out=scores)
    total = P.sum(axis=1)
    P /= total[:, None]
    return np.log(total) - own, P


def conjugate_gradients(
    product: Callable[[Floats], Floats],
    precondition: Callable[[Floats], Floats],
    rhs: Floats,
    start: Floats | None,
    share: float,
) -> Floats:
    """Find x with |H x - rhs| <= share |rhs| in the norm of the preconditioner, in at most MOST_PRODUCTS steps."""
    x = np.zeros_like(rhs) if start is None else start.copy()
    r = rhs.copy() if start is None else rhs - product(x)
    s = precondition(r)
    rs = float(np.vdot(r, s))
    scale = float(np.vdot(rhs, precondition(rhs))) if start is not None else rs
    d = s
    for _ in range(MOST_PRODUCTS):
        if rs <= share * share * scale:
            break
        Hd = product(d)
        curvature = float(np.vdot(d, Hd))
        if not curvature > 0:  # rounding hides the curvature: float64 cannot solve the system any further
            break
        a = rs / curvature
        x += a * d
        r -= a * Hd
        s = precondition(r)
        before, rs = rs, float(np.vdot(r, s))
        d = s + (rs / before) * d
    return x
