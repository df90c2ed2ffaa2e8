"""A set, a solver and a problem as a stranger would write them: from the contracts alone, with nothing private of the package."""

import hashlib
import itertools
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

import mixbin as mb
from mixbin.problem import Improved
from mixbin.sets import BinarySet
from mixbin.solvers import State


class AtLeast(BinarySet):
    """All theta in [0, 1]^m with a sum of at least k."""

    def __init__(self, size, k):
        self.shape, self.k = (size,), k

    def project(self, x):
        """clip(x + t, 0, 1) with the smallest t >= 0 that reaches the sum k, by bisection and one exact step."""
        x = np.asarray(x, float)
        if np.clip(x, 0, 1).sum() >= self.k:
            return np.clip(x, 0, 1)
        low, high = 0.0, 1.0 - x.min()
        for _ in range(200):
            t = 0.5 * (low + high)
            low, high = (low, t) if np.clip(x + t, 0, 1).sum() >= self.k else (t, high)
        p = np.clip(x + high, 0, 1)
        free = (p > 0) & (p < 1)
        if free.any():
            p[free] += (self.k - p.sum()) / free.sum()
        return np.clip(p, 0, 1)

    def vertex(self, x):
        x = np.asarray(x)
        v = x >= 0.5
        v[np.argsort(-x, kind="stable")[: self.k]] = True
        return v

    def linear_oracle(self, g):
        g = np.asarray(g)
        z = g < 0
        z[np.argsort(g, kind="stable")[: self.k]] = True
        return z.astype(float)

    def contains(self, x):
        x = np.asarray(x)
        return bool(x.min() >= -1e-9 and x.max() <= 1 + 1e-9 and x.sum() >= self.k - 1e-9)

    def start(self, rng=None):
        centre = max(self.k / self.size, 0.5)
        if rng is None:
            return np.full(self.shape, centre)
        return self.project(centre + (1 - centre) * rng.uniform(-1, 1, size=self.size))

    def moves(self, theta, grad=None):
        theta = np.asarray(theta) > 0.5
        on, off = np.append(np.flatnonzero(~theta), -1), np.flatnonzero(theta)
        on_each, off_each = [j for j in on for _ in off], [i for _ in on for i in off]
        if theta.sum() == self.k:  # nothing may go without something that comes
            kept = [(i, j) for i, j in zip(off_each, on_each, strict=True) if j >= 0]
        else:
            kept = list(zip(off_each, on_each, strict=True))
        kept += [(-1, j) for j in on[:-1]]
        if kept:
            off, on = np.array(kept, dtype=np.intp).T
            if grad is not None:
                g = np.append(grad, 0.0)
                order = np.argsort(g[on] - g[off], kind="stable")
                off, on = off[order], on[order]
            yield off, on

    def n_moves(self, theta):
        ones = int(np.count_nonzero(theta))
        zeros = self.size - ones
        return ones * zeros + zeros + (ones if ones > self.k else 0)

    def epsilon_star(self, theta, grad):
        theta, grad = np.asarray(theta) > 0.5, np.asarray(grad)
        gains = [-grad[~theta].min(initial=np.inf)]
        if theta.sum() > self.k:
            gains.append(grad[theta].max(initial=-np.inf))
        if theta.any() and not theta.all():
            gains.append((grad[theta].max() - grad[~theta].min()) / 2)
        weight = max(gains)
        return 1 / weight if weight > 0 else np.inf

    def violation(self, theta):
        return float(max(self.k - np.count_nonzero(theta), 0))

    def cardinality(self):
        return sum(math.comb(self.size, n) for n in range(self.k, self.size + 1))

    def vertices(self):
        for bits in itertools.product((False, True), repeat=self.size):
            if sum(bits) >= self.k:
                yield np.array(bits)


@dataclass(frozen=True, kw_only=True)
class HalvingState(State):
    length: float
    moved: float = np.inf


@dataclass(frozen=True)
class Halving:
    """Projected gradient steps whose length is halved until the value falls."""

    tol: float = 1e-7

    state_type: ClassVar = HalvingState

    def init(self, objective, theta, lam, rng, warm=None):
        got = objective.evaluate(theta, lam, warm)
        if not np.isfinite(got.value):
            raise mb.InvalidInput("theta0 must be a point of finite value")
        return self.state(objective, theta, lam, got, 1.0, np.inf)

    def state(self, objective, theta, lam, got, length, moved):
        return HalvingState(
            theta=theta,
            lam=lam,
            value=got.value,
            phi=objective.phi(theta),
            grad_theta=got.grad_theta,
            grad_lam=got.grad_lam,
            warm=got.warm,
            info=got.info,
            step=length,
            length=length,
            moved=moved,
        )

    def step(self, objective, state):
        slope, length = objective.slope(state.grad_theta, state.theta), 2 * state.length
        now = objective.total(state.value, state.phi)
        while length > 1e-12:
            theta = objective.project_theta(state.theta - length * slope)
            lam = objective.project_lam(state.lam - length * state.grad_lam)
            fall = np.vdot(slope, theta - state.theta) + np.vdot(state.grad_lam, lam - state.lam)
            got = objective.evaluate(theta, lam, state.warm)
            if objective.total(got.value, objective.phi(theta)) <= now + 1e-4 * fall:
                moved = max(np.abs(theta - state.theta).max(), np.abs(lam - state.lam).max(initial=0.0))
                return self.state(objective, theta, lam, got, length, float(moved))
            length /= 2
        return replace(state, converged=True)

    def reweight(self, objective, state):
        return replace(state, length=1.0, moved=np.inf, converged=False)

    def done(self, objective, state):
        return state.converged or state.moved <= self.tol


class Fit:
    """Half the mean over i of (a_i'theta - b_i - lam)^2, with everything that a problem may offer.

    The warm state is the last sum A theta; nothing depends on it.
    """

    def __init__(self, seed=0, terms=12, size=6, k=2):
        rng = np.random.default_rng(seed)
        self.A, self.b = rng.normal(size=(terms, size)), rng.normal(size=terms)
        self.theta_set, self.lam_set, self.n_terms = AtLeast(size, k), mb.Box(-1.0, 2.0), terms

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        return self.evaluate_terms(theta, lam, np.arange(self.n_terms))

    def evaluate_terms(self, theta, lam, terms, *, warm=None):
        A = self.A[terms]
        gap = A @ theta - self.b[terms] - lam
        return mb.Evaluation(
            0.5 * float(np.mean(gap**2)),
            A.T @ gap / len(terms),
            np.asarray(-gap.mean()),
            {"sums": self.A @ theta},
            {"terms": len(terms)},
        )

    def moved(self, theta, off, on):
        after = np.array(theta)
        if off >= 0:
            after[off] = 0
        if on >= 0:
            after[on] = 1
        return after

    def evaluate_moves(self, theta, lam, off, on, *, warm=None):
        return np.array([self.evaluate(self.moved(theta, i, j), lam).value for i, j in zip(off, on, strict=True)])

    def best_move(self, theta, lam, *, warm=None):
        moves = [(int(i), int(j)) for off, on in self.theta_set.moves(theta) for i, j in zip(off, on, strict=True)]
        if not moves:
            return -1, -1, np.inf
        values = self.evaluate_moves(theta, lam, *np.array(moves).T)
        best = int(values.argmin())
        return (*moves[best], float(values[best]))

    def improve(self, theta, lam, *, warm=None):
        value, (off, on, after) = self.evaluate(theta, lam).value, self.best_move(theta, lam)
        if after < value:
            return Improved(self.moved(theta, off, on) > 0.5)
        return Improved(np.asarray(theta) > 0.5, self.theta_set.n_moves(theta), after - value)

    def suggest(self, rng):
        return self.theta_set.project(rng.uniform(size=self.theta_set.shape))

    def lower_bound(self, theta, lam):
        """The least squares over all theta and lam, whatever the sets."""
        table = np.column_stack([self.A, -np.ones(self.n_terms)])
        gap = table @ np.linalg.lstsq(table, self.b, rcond=None)[0] - self.b
        return 0.5 * float(np.mean(gap**2))

    def fingerprint(self):
        return hashlib.sha256(self.A.tobytes() + self.b.tobytes()).hexdigest()
