"""Problems with known answers that the tests and benchmarks share: quadratics over each set, with and without lam."""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

import mixbin as mb
from mixbin.sets import BinarySet


@dataclass(frozen=True)
class QuadraticG:
    """G(theta, lam) = 1/2 theta'Q theta + c'theta + 1/2 |lam - B theta|^2 (the last term only where there is a lam)."""

    Q: np.ndarray
    c: np.ndarray
    B: np.ndarray | None = None

    def __call__(self, theta: np.ndarray, lam: np.ndarray | None = None):
        x = theta.ravel()
        value, grad = 0.5 * x @ self.Q @ x + self.c @ x, self.Q @ x + self.c
        if self.B is None:
            return value, grad.reshape(theta.shape)
        gap = lam - self.B @ x
        return value + 0.5 * gap @ gap, (grad - self.B.T @ gap).reshape(theta.shape), gap

    def lipschitz(self) -> float:
        """A bound of |gradient| over the unit cube (without lam): the constant L of the theorems."""
        reach = np.abs(self.Q).sum(1) + np.abs(self.c)
        return float(np.linalg.norm(reach))


def quadratic(theta_set: BinarySet, seed: int, kind: str = "indefinite", n_lam: int = 0) -> mb.FunctionProblem:
    """A random quadratic of that kind: "convex", "concave" or "indefinite"."""
    rng = np.random.default_rng(seed)
    p = theta_set.size
    A = rng.normal(size=(p, p))
    Q = {"convex": A @ A.T / p, "concave": -A @ A.T / p, "indefinite": (A + A.T) / 2}[kind]
    G = QuadraticG(Q, rng.normal(size=p), rng.normal(size=(n_lam, p)) / np.sqrt(p) if n_lam else None)
    return mb.FunctionProblem(G, theta_set, mb.Box(np.full(n_lam, -1.0), np.full(n_lam, 2.0)) if n_lam else None)


def tiny_instances(n: int = 200) -> list[mb.FunctionProblem]:
    """Indefinite quadratics on Budget, OneHot and Hypercube in turn, with at most 2^16 binary points."""
    made = []
    for seed in range(n):
        rng = np.random.default_rng([2026, seed])
        kind = seed % 3
        if kind == 0:
            size = int(rng.integers(6, 19))
            theta_set: BinarySet = mb.Budget(size, int(rng.integers(1, size)))
        elif kind == 1:
            columns = int(rng.integers(2, 6))
            theta_set = mb.OneHot(int(rng.integers(2, int(16 / np.log2(columns)) + 1)), columns)
        else:
            theta_set = mb.Hypercube(int(rng.integers(4, 17)))
        assert theta_set.cardinality() <= 2**16
        made.append(quadratic(theta_set, seed))
    return made


def all_points(theta_set: BinarySet) -> np.ndarray:
    """Every binary point as a row, listed independently of ``theta_set.vertices``."""
    if isinstance(theta_set, mb.Budget):
        rows = list(combinations(range(theta_set.size), theta_set.k))
        points = np.zeros((len(rows), theta_set.size))
        np.put_along_axis(points, np.array(rows), 1.0, axis=1)
        return points
    if isinstance(theta_set, mb.OneHot):
        n_rows, n_columns = theta_set.shape
        chosen = np.array(list(product(range(n_columns), repeat=n_rows)))
        return np.eye(n_columns)[chosen].reshape(len(chosen), -1)
    bits = np.arange(2**theta_set.size)[:, None] >> np.arange(theta_set.size)
    return (bits & 1).astype(float)


def optimum(problem: mb.FunctionProblem) -> float:
    """The lowest value over all binary points (no lam), by brute force."""
    points, G = all_points(problem.theta_set), problem.function
    return float((0.5 * np.einsum("ij,ij->i", points @ G.Q, points) + points @ G.c).min())
