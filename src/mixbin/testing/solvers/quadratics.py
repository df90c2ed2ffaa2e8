"""Quadratics over every set, as finite sums: problems with gradients that are easily believed, for solvers to run on."""

from collections.abc import Callable

import numpy as np

from mixbin.problem import Evaluation, Floats, Indices, Problem, Warm
from mixbin.sets import BinarySet, Box, Budget, Hypercube, Knapsack, OneHot


class QuadraticSum:
    """``scale`` times the mean over i of 1/2 theta'Q_i theta + c_i'theta + 1/2 |lam - B_i theta|^2, as a finite sum.

    Parameters
    ----------
    theta_set : BinarySet
        Where theta lives; its entries are taken as one vector of length p.
    Q, c, B : arrays of shape (n_terms, p, p), (n_terms, p) and (n_terms, q, p)
        The terms.
    lam_set : Box
        Where lam lives, of shape (q,).
    scale : float
        A factor of the whole.
    """

    def __init__(self, theta_set: BinarySet, Q: Floats, c: Floats, B: Floats, lam_set: Box, scale: float = 1.0) -> None:
        self.theta_set, self.lam_set, self.n_terms = theta_set, lam_set, len(c)
        self.Q, self.c, self.B, self.scale = Q, c, B, scale

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """The mean of all terms."""
        return self.evaluate_terms(theta, lam, np.arange(self.n_terms))

    def evaluate_terms(self, theta: Floats, lam: Floats, terms: Indices, *, warm: Warm | None = None) -> Evaluation:
        """The mean of these terms."""
        x = theta.ravel()
        Qx, gap = self.Q[terms] @ x, lam - self.B[terms] @ x
        value = 0.5 * Qx @ x + self.c[terms] @ x + 0.5 * np.sum(gap * gap, axis=1)
        grad = Qx + self.c[terms] - np.einsum("iq,iqp->ip", gap, self.B[terms])
        means = value.mean(), grad.mean(axis=0).reshape(theta.shape), gap.mean(axis=0)
        return Evaluation(*(self.scale * mean for mean in means))


def quadratic_sum(
    theta_set: BinarySet, seed: int, kind: str = "indefinite", n_lam: int = 0, n_terms: int = 20, scale: float = 1.0
) -> QuadraticSum:
    """A random sum of quadratics that differ in all their parts.

    ``kind`` is "convex", "strong" (convex, with all curvatures of every term at least 1/4), "concave" or "indefinite".
    """
    rng = np.random.default_rng(seed)
    p = theta_set.size
    A = rng.normal(size=(n_terms, p, p))
    squares, sums = A @ A.transpose(0, 2, 1) / p, (A + A.transpose(0, 2, 1)) / 2
    kinds = {"convex": squares, "strong": squares + 0.25 * np.eye(p), "concave": -squares, "indefinite": sums + sums[0]}
    c = rng.normal(size=p) + rng.normal(size=(n_terms, p))
    B = (rng.normal(size=(n_lam, p)) + rng.normal(size=(n_terms, n_lam, p))) / np.sqrt(p)
    return QuadraticSum(theta_set, kinds[kind], c, B, Box(np.full(n_lam, -1.0), np.full(n_lam, 2.0)), scale)


CONVEX: dict[str, Callable[[int], Problem]] = {
    "a convex quadratic on a hypercube": lambda seed: quadratic_sum(Hypercube(12), seed, "convex"),
    "a convex quadratic on a budget, with lam": lambda seed: quadratic_sum(Budget(15, 4), seed, "strong", n_lam=2),
    "a convex quadratic on a knapsack": lambda seed: quadratic_sum(Knapsack(np.arange(1.0, 9.0), 9.5), seed, "strong"),
}
"""Problems whose stationary points are their minima, by name and from a seed."""
QUADRATICS = CONVEX | {
    "a concave quadratic on a budget of at most 4, with lam": lambda seed: quadratic_sum(
        Budget(12, 4, at_most=True), seed, "concave", n_lam=1
    ),
    "an indefinite quadratic on one-hot rows": lambda seed: quadratic_sum(OneHot(5, 4), seed),
    "an indefinite quadratic on a knapsack, with lam": lambda seed: quadratic_sum(
        Knapsack(np.arange(1.0, 11.0), 20.0), seed, n_lam=1
    ),
    "an indefinite quadratic on a hypercube of shape (3, 4), with lam": lambda seed: quadratic_sum(
        Hypercube((3, 4)), seed, n_lam=3
    ),
}
"""All problems that a solver is run on."""
