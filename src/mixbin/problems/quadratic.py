"""A quadratic function of binary variables over any set: what people bring from QUBO and quadratic knapsacks."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mixbin import _validate as check
from mixbin._digest import digest
from mixbin.methods.annealing import MOST_DESCENTS, Annealing, is_annealed
from mixbin.methods.quadratic_search import MOST_STEPS, quadratic_search
from mixbin.methods.tabu import NO_MOVE, Quadratic, neighbourhood
from mixbin.problem import FALL, Evaluation, Floats, Improved, Indices, Warm
from mixbin.problems.work import Work
from mixbin.sets import BinarySet, Box, Hypercube, OneHot

LARGEST_SEARCHED = 4_000
"""Up to this many entries, the problem has tabu search for a dense Q; beyond that it has a search only if Q is annealed."""
SWEEPS, LEAST_SWEEPS = 1_000, 20
"""Annealing makes SWEEPS sweeps, or at least LEAST_SWEEPS if fewer can be paid for."""
ANNEALINGS = 8
"""The default of ``starts`` if Q is annealed: each start is then far longer."""
SHIFT = 1e-10
"""Q counts as positive semidefinite if Q + s I has a Cholesky factor, where s is this share of the largest row sum of |Q|. The
lower bound allows for s."""
LARGEST = 1e100
"""Larger numbers are refused: sums of them, and squares of the gradient, must not overflow."""
ROUNDING = 1e-12
"""The lower bound is lowered by this share of the numbers that it is computed from."""


class QuadraticProblem:
    """Minimise 1/2 theta'Q theta + c'theta over the binary points of a set.

    Parameters
    ----------
    Q : array or scipy sparse matrix of shape (p, p)
        Only its symmetric part (Q + Q')/2 matters. p is the number of entries of ``theta_set``; those of a matrix theta, as in
        ``OneHot``, are counted row by row.
    c : array of shape (p,), or of the shape of theta
        The linear term.
    theta_set : BinarySet
        The set of theta, such as ``Hypercube(p)`` for a QUBO.

    Notes
    -----
    For binary theta, theta_i^2 = theta_i: a linear term may also be written as twice its amount on the diagonal of Q. If Q is
    positive semidefinite, certificates of the answer contain a lower bound.

    Over a ``Hypercube`` of at least 500 entries, simulated annealing improves theta if Q is sparse: if at most a tenth of its
    entries are not zero, and at most 512 in a row beside the diagonal. Otherwise tabu search does, up to 4,000 entries.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> Q = np.array([[0.0, 4.0, 1.0], [4.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    >>> problem = mb.QuadraticProblem(Q, [-2.0, -3.0, -2.0], mb.Hypercube(3))
    >>> result = mb.relax_and_penalize(problem, seed=0)
    >>> result.theta, result.value
    (array([False,  True,  True]), -4.0)
    """

    preferred_settings: Mapping[str, int] = MappingProxyType({"inner_steps": 5, "starts": 32})

    def __init__(self, Q: ArrayLike | sparse.sparray | sparse.spmatrix, c: ArrayLike, theta_set: BinarySet) -> None:
        if not isinstance(theta_set, BinarySet):
            raise check.fail("theta_set", theta_set, "a set of binary variables", "such as Hypercube(20) or Budget(100, 10)")
        size = theta_set.size
        linear = check.array("c", c)
        if linear.shape not in ((size,), theta_set.shape):
            raise check.fail("c", c, f"an array of shape ({size},)", "one number per entry of theta")
        _check_size("c", linear)
        self.c = np.array(linear, dtype=np.float64).ravel()
        self.Q = _symmetric(Q, size)
        self._annealed = isinstance(theta_set, Hypercube) and is_annealed(self.Q)
        if self._annealed:
            self.Q = sparse.csr_array(self.Q)
        self.theta_set, self.lam_set = theta_set, Box.empty()
        self._entries = int(self.Q.nnz) if sparse.issparse(self.Q) else size * size
        self._convex: bool | None = None
        self._annealing: Annealing | None = None
        if self._annealed:
            self.preferred_settings = MappingProxyType({**self.preferred_settings, "starts": ANNEALINGS})
        elif size > LARGEST_SEARCHED:
            # Methods that are None count as missing: single moves are then evaluated by ``evaluate_moves`` alone.
            self.__dict__.update(best_move=None, improve=None)

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """The value and, unless ``gradient=False``, the gradient Q theta + c."""
        x = theta.ravel()
        product = self.Q @ x
        value = float(0.5 * (x @ product) + self.c @ x)
        if not gradient:
            return Evaluation(value, None, None)
        return Evaluation(value, (product + self.c).reshape(self.theta_set.shape), np.empty(0))

    def evaluate_moves(self, theta: Floats, lam: Floats, off: Indices, on: Indices, *, warm: Warm | None = None) -> Floats:
        """The value after each single move, from the gradient at theta and the entries of Q."""
        at = self._at(theta)
        half = np.append(0.5 * self.Q.diagonal(), 0.0)
        g = np.append(at.grad, 0.0)
        both = (off >= 0) & (on >= 0)
        crossed = np.zeros(off.size)
        crossed[both] = np.asarray(self.Q[off[both], on[both]]).ravel()
        return np.asarray(at.value + g[on] + half[on] - g[off] + half[off] - crossed)

    def best_move(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> tuple[int, int, float] | None:
        """The best of all single moves, and the value after it."""
        at = self._at(theta)
        off, on, change = self._best_change(at)
        return off, on, at.value + change if change < np.inf else np.inf

    def improve(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, max_cost: float = math.inf) -> Improved:
        """Search from theta, by annealing or tabu search: the best point that is found, if that is better than theta."""
        at, start = self._at(theta), theta > 0.5
        work = Work(self._entries + theta.size, max_cost)
        # The same theta gives the same search: its random numbers come from theta.
        seed = int.from_bytes(hashlib.blake2b(np.packbits(start).tobytes(), digest_size=8).digest(), "little")
        rng = np.random.default_rng(seed)
        found = self._better(at, self._anneal(at, rng, work) if self._annealed else self._tabu(at, rng, work))
        if not work.done:
            return Improved(start)
        change = self._best_change(found)[2]
        if change < -FALL * abs(found.value):
            return Improved(self._shaped(found.theta), cost=work.cost)
        total = self.theta_set.n_moves(self._shaped(found.theta))
        return Improved(self._shaped(found.theta), total, change if total else np.nan, work.cost)

    def _anneal(self, at: Quadratic, rng: np.random.Generator, work: Work) -> NDArray[np.bool_]:
        if self._annealing is None:
            self._annealing = Annealing(self.Q)
        per_sweep = self._annealing.work
        sweeps = int(min(SWEEPS, work.left // per_sweep - MOST_DESCENTS))
        if sweeps < LEAST_SWEEPS:
            return at.theta
        theta, done = self._annealing.run(at.theta, at.grad, rng, sweeps)
        work.note(done * per_sweep)
        return theta

    def _tabu(self, at: Quadratic, rng: np.random.Generator, work: Work) -> NDArray[np.bool_]:
        per_step = self._work_per_step(at.theta)
        steps = int(min(MOST_STEPS, work.left // per_step))
        if steps < 1:
            return at.theta
        walk = quadratic_search(self.theta_set, at, rng, steps)
        work.note(walk.steps * per_step)
        return walk.theta

    def _better(self, at: Quadratic, theta: NDArray[np.bool_]) -> Quadratic:
        """The function at theta, if theta is in the set and better; else as it is known."""
        found = self._at(theta.astype(np.float64))
        better = found.value < at.value - FALL * abs(at.value) and not self.theta_set.violation(self._shaped(theta)) > 0
        return found if better else at

    def lower_bound(self, theta: Floats, lam: Floats) -> float:
        """The least value of the tangent at theta, if Q is positive semidefinite, so that the function is nowhere below it."""
        shift = SHIFT * self._row_sum()
        if not self._is_convex(shift):
            return -np.inf
        got = self.evaluate(theta, lam)
        assert got.grad_theta is not None
        grad, x = got.grad_theta.ravel(), theta.ravel()
        lowest = self.theta_set.linear_oracle(got.grad_theta).ravel()
        size = float(np.abs(grad).sum() + np.abs(self.c).sum()) + abs(got.value)
        # (x - theta)'Q(x - theta) >= -2 s |x - theta|^2, where |x - theta|^2 is at most the number of entries.
        return got.value + float(grad @ (lowest - x)) - ROUNDING * size - shift * x.size

    def fingerprint(self) -> str:
        """A hash of Q, c and the set, for checkpoints."""
        parts = (self.Q.data, self.Q.indices, self.Q.indptr) if sparse.issparse(self.Q) else (self.Q,)
        return digest(*parts, self.c, settings=f"QuadraticProblem 1 {self.theta_set.fingerprint()}")

    def _at(self, theta: Floats) -> Quadratic:
        """The function as the search sees it, known at a binary theta."""
        got = self.evaluate(theta, np.empty(0))
        assert got.grad_theta is not None
        return Quadratic(theta.ravel() > 0.5, got.value, got.grad_theta.ravel(), self.Q, self.Q)

    def _best_change(self, at: Quadratic) -> tuple[int, int, float]:
        best = neighbourhood(self.theta_set, self.Q)(at.theta, at.grad, np.zeros(at.theta.size, dtype=np.bool_), np.inf)
        return best if best[2] < np.inf else NO_MOVE

    def _work_per_step(self, theta: NDArray[np.bool_]) -> int:
        """The multiply-adds of one step of the search: a pass over the moves, and the update of the gradient."""
        n, on = theta.size, int(np.count_nonzero(theta))
        return 4 * n if isinstance(self.theta_set, (Hypercube, OneHot)) else 4 * n + 2 * on * (n - on)

    def _shaped(self, theta: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return theta.reshape(self.theta_set.shape)

    def _row_sum(self) -> float:
        """The largest sum of |Q| over a row, a bound of its eigenvalues."""
        return float(np.max(np.asarray(abs(self.Q).sum(axis=1)), initial=0.0))

    def _is_convex(self, shift: float) -> bool:
        if self._convex is None:
            dense = self.Q.toarray() if sparse.issparse(self.Q) and self.theta_set.size <= LARGEST_SEARCHED else self.Q
            self._convex = self.theta_set.size <= LARGEST_SEARCHED and _has_factor(dense, shift)
        return self._convex


def _has_factor(Q: Floats, shift: float) -> bool:
    """Whether Q + shift I has a Cholesky factor."""
    if Q.diagonal().min(initial=0.0) < -shift:
        return False
    try:
        np.linalg.cholesky(Q + shift * np.eye(len(Q)))
    except np.linalg.LinAlgError:
        return False
    return True


def _symmetric(Q: Any, size: int) -> Any:
    """(Q + Q')/2: a dense array up to LARGEST_SEARCHED entries, beyond that sparse if Q is."""
    # Before anything is done with it: SciPy follows wrong indices out of the memory of the matrix.
    check.plain_table("Q", Q)
    if sparse.issparse(Q):
        if Q.shape != (size, size):
            raise _wrong_shape(Q, size)
        rows = cast(Any, Q).tocsr()
        if rows.dtype.kind not in "buif" or not check.is_finite(rows.data.astype(np.float64)):
            raise check.fail("Q", Q, "a matrix of finite numbers")
        _check_size("Q", rows.data)
        if size > LARGEST_SEARCHED:
            half = sparse.csr_array(rows, dtype=np.float64)
            return sparse.csr_array(0.5 * (half + half.T))
        Q = rows.toarray()
    table = check.array("Q", Q, ndim=2)
    if table.shape != (size, size):
        raise _wrong_shape(Q, size)
    _check_size("Q", table)
    half = 0.5 * np.asarray(table, dtype=np.float64)
    return half + half.T


def _wrong_shape(Q: Any, size: int) -> Exception:
    return check.fail("Q", Q, f"a matrix of shape ({size}, {size})", "one row and one column per entry of theta")


def _check_size(name: str, numbers: Floats) -> None:
    if numbers.size and max(float(numbers.max()), -float(numbers.min())) > LARGEST:
        raise check.fail(name, numbers, f"numbers of at most {LARGEST:g}", "divide Q and c by the same number")
