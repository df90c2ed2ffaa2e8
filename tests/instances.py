"""Problems with known answers that the tests and benchmarks share: quadratics over each set, with and without lam."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

import mixbin as mb
from mixbin.sets import BinarySet
from mixbin.testing.solvers import QuadraticSum
from mixbin.testing.solvers import quadratic_sum as finite_sum


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


def strongly_convex_sum(
    n_terms: int = 500, size: int = 12, n_lam: int = 2, seed: int = 0
) -> tuple[QuadraticSum, Callable[[np.ndarray, np.ndarray], float]]:
    """Strongly convex terms that disagree, their mean's minimum inside the sets, and gap(theta, lam) = G - min G, uncancelled."""
    rng = np.random.default_rng(seed)
    drawn = finite_sum(mb.Hypercube(size), seed, "strong", n_lam, n_terms)
    shape = np.logspace(0, -0.5, size)
    Q, B = drawn.Q * np.outer(shape, shape), drawn.B
    mean_Q, mean_B = Q.mean(axis=0), B.mean(axis=0)
    best = rng.uniform(0.3, 0.7, size)
    best_lam = mean_B @ best
    noise = rng.normal(size=(n_terms, size))
    pull = np.einsum("iq,iqp->p", best_lam - B @ best, B) / n_terms
    c = noise - noise.mean(axis=0) - mean_Q @ best + pull
    hessian = np.block([[mean_Q + np.einsum("iqp,iqr->pr", B, B) / n_terms, -mean_B.T], [-mean_B, np.eye(n_lam)]])

    def gap(theta: np.ndarray, lam: np.ndarray) -> float:
        d = np.concatenate([theta - best, lam - best_lam])
        return 0.5 * float(d @ hessian @ d)

    return QuadraticSum(drawn.theta_set, Q, c, B, mb.Box(best_lam - 1.0, best_lam + 2.0)), gap


def tiny_set(name: str, rng: np.random.Generator) -> BinarySet:
    """A random set of that kind with at most 2^16 binary points."""
    if name == "OneHot":
        columns = int(rng.integers(2, 6))
        return mb.OneHot(int(rng.integers(2, int(16 / np.log2(columns)) + 1)), columns)
    if name == "Hypercube":
        return mb.Hypercube(int(rng.integers(4, 17)))
    if name == "Knapsack":
        size = int(rng.integers(6, 17))
        weights = rng.uniform(1.0, 10.0, size)
        return mb.Knapsack(weights, float(rng.uniform(0.2, 0.7) * weights.sum()))
    size = int(rng.integers(6, 17 if name == "at most" else 19))
    return mb.Budget(size, int(rng.integers(1, size)), at_most=name == "at most")


TINY_SETS = ("Budget", "at most", "Hypercube", "Knapsack", "OneHot")


def tiny_on(name: str, n: int = 300, first: int = 0) -> list[mb.FunctionProblem]:
    """Indefinite quadratics on random sets of one kind (see ``tiny_set``); ``first`` is the seed of the first one."""
    place = TINY_SETS.index(name)
    return [quadratic(tiny_set(name, np.random.default_rng([2027, place, seed])), seed) for seed in range(first, first + n)]


def tiny_instances(n: int = 200) -> list[mb.FunctionProblem]:
    """Indefinite quadratics on Budget, OneHot and Hypercube in turn, with at most 2^16 binary points."""
    kinds = ("Budget", "OneHot", "Hypercube")
    return [quadratic(tiny_set(kinds[seed % 3], np.random.default_rng([2026, seed])), seed) for seed in range(n)]


def all_points(theta_set: BinarySet) -> np.ndarray:
    """Every binary point as a row, listed independently of ``theta_set.vertices``."""
    if isinstance(theta_set, mb.OneHot):
        n_rows, n_columns = theta_set.shape
        chosen = np.array(list(product(range(n_columns), repeat=n_rows)))
        return np.eye(n_columns)[chosen].reshape(len(chosen), -1)
    if isinstance(theta_set, mb.Budget) and not theta_set.at_most:
        rows = list(combinations(range(theta_set.size), theta_set.k))
        points = np.zeros((len(rows), theta_set.size))
        np.put_along_axis(points, np.array(rows), 1.0, axis=1)
        return points
    bits = np.arange(2**theta_set.size)[:, None] >> np.arange(theta_set.size)
    points = (bits & 1).astype(float)
    if isinstance(theta_set, mb.Budget):
        return points[points.sum(axis=1) <= theta_set.k]
    if isinstance(theta_set, mb.Knapsack):
        return points[points @ theta_set.weights <= theta_set.capacity * (1.0 + 1e-12)]
    return points


def optimum(problem: mb.FunctionProblem) -> float:
    """The lowest value over all binary points (no lam), by brute force."""
    points, G = all_points(problem.theta_set), problem.function
    return float((0.5 * np.einsum("ij,ij->i", points @ G.Q, points) + points @ G.c).min())


def readme_example() -> mb.FunctionProblem:
    """The first example of the README: the 5 of 20 items that are least alike."""
    A = np.random.default_rng(0).normal(size=(20, 20))
    return mb.FunctionProblem(QuadraticG(A @ A.T, np.zeros(20)), mb.Budget(20, 5))


def planted(kind: str, seed: int) -> tuple[mb.FunctionProblem, np.ndarray]:
    """A problem of 40 variables and its planted optimum, which is one by construction.

    "budget", "one-hot", "hypercube": 1/2 |A (theta - planted)|^2 with half as many rows in A as variables: the relaxed
    problem has a whole subspace of solutions; the value at the planted point is 0. "spins": an energy -s'Js in
    s = 2 theta - 1 whose couplings all agree with the planted signs, so that no other point has a lower one; a small field breaks
    the symmetry.
    """
    rng = np.random.default_rng([40, seed])
    sets = {"budget": mb.Budget(40, 12), "one-hot": mb.OneHot(10, 4), "hypercube": mb.Hypercube(40), "spins": mb.Hypercube(40)}
    theta_set = sets[kind]
    star = theta_set.vertex(rng.uniform(size=theta_set.shape))
    if kind == "spins":
        s = np.where(star, 1.0, -1.0)
        J = np.abs(rng.normal(size=(40, 40))) * (rng.uniform(size=(40, 40)) < 0.2)
        J = np.triu(J, 1) * np.outer(s, s)
        J = J + J.T
        # -s'Js/2 - 0.1 s_planted's with s = 2 theta - 1, written out in theta.
        return mb.FunctionProblem(QuadraticG(-4 * J, 2 * J.sum(1) - 0.2 * s), theta_set), star
    A = rng.normal(size=(20, 40))
    Q = A.T @ A
    return mb.FunctionProblem(QuadraticG(Q, -Q @ star.ravel().astype(float)), theta_set), star
