"""The implicit and the unrolled lower level over many tasks, behind one interface: a model per task, and a summed hypergradient.

Tasks are cut into blocks of fixed size, which are shared out among threads. Each block adds up its tasks in order, and the blocks
are added up in order, so that the number of threads does not change a bit of the result.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np

from mixbin._validate import Floats
from mixbin.data.tasks import Tasks
from mixbin.problem import Indices
from mixbin.problems.group_lasso.compiled import compiled, half_mean_square
from mixbin.problems.group_lasso.implicit import Whole
from mixbin.problems.group_lasso.tasks import implicit_block
from mixbin.problems.group_lasso.unrolled import reverse, run, whitened

TASKS_PER_CALL = 16
"""A kernel is called with this many tasks at a time, whatever the number of threads: the order of the sums depends on it."""

R = TypeVar("R")


class TaskSolutions(NamedTuple):
    """The solutions of the lower level for k tasks at one (theta, lam)."""

    values: Floats  # (k,): the validation losses
    grad_theta: Floats  # (P, L): summed over the tasks
    grad_lam: float
    coef: Floats  # (k, P)
    state: (
        Floats  # (k, L): from which the next solve of the task starts; (k, 0) for the unrolled lower level, which starts from 0
    )
    steps: Floats  # (k,): factorisations, or steps of the unrolled method
    residuals: Floats  # (k,): the size of the last step, relative to the solution
    work: Whole  # (k,): the multiply-adds of model and loss
    gradient_work: Whole  # (k,): those of the hypergradient, whether it was asked for or not


class LowerLevel(Protocol):
    """Trains the models of some tasks and differentiates their validation losses."""

    state_size: int

    def solve(self, theta: Floats, lam: float, terms: Indices, state: Floats, gradient: bool) -> TaskSolutions:
        """Solve the tasks ``terms``, starting from the states of these tasks (0 is a cold start)."""


class ImplicitModels:
    """Models solved to convergence, with hypergradients by the implicit function theorem."""

    def __init__(self, train: Tasks, val: Tasks, n_groups: int, ridge: float, n_jobs: int) -> None:
        self.train, self.val, self.ridge, self.n_jobs = train, val, ridge, n_jobs
        self.scales, self.state_size = train.scales(), n_groups

    def solve(self, theta: Floats, lam: float, terms: Indices, state: Floats, gradient: bool) -> TaskSolutions:
        """Solve every task from its s; for a one-hot theta, over the groups that are not at zero."""
        nothing = np.empty(0, dtype=np.int64)
        return self._solved(theta, lam, terms, state, gradient, nothing, nothing)[0]

    def moves(self, theta: Floats, lam: float, state: Floats, feature: Indices, target: Indices) -> tuple[Floats, Floats, int]:
        """The validation losses at a one-hot theta, the sum of their changes by each row move, and the multiply-adds."""
        terms, moves = np.arange(self.train.n_tasks), (feature.astype(np.int64), target.astype(np.int64))
        here, changes = self._solved(theta, lam, terms, state, False, *moves)
        return here.values, changes, int(here.work.sum())

    def _solved(
        self, theta: Floats, lam: float, terms: Indices, state: Floats, gradient: bool, feature: Whole, target: Whole
    ) -> tuple[TaskSolutions, Floats]:
        """The solutions of the tasks, and the sum of the changes of their losses by each row move."""
        theta_t, labels, state = np.ascontiguousarray(theta.T), one_hot_labels(theta), state.copy()

        def block(part: slice) -> tuple[TaskSolutions, Floats]:
            out, changes = _empty_solutions(theta, terms[part], state[part]), np.zeros(len(feature))
            data = (*self.train, *self.val, terms[part], theta_t, labels, feature, target)
            filled = (out.state, out.values, out.steps, out.residuals, out.coef, out.grad_theta)
            strength = (lam, self.ridge, self.scales, gradient)
            grad_lam = implicit_block(*data, *strength, *filled, changes, out.work, out.gradient_work)
            return out._replace(grad_lam=grad_lam), changes

        solutions, changes = zip(*in_blocks(block, len(terms), self.n_jobs), strict=True)
        return _joined(list(solutions)), summed(list(changes))


class UnrolledModels:
    """Models after the paper's q steps, with hypergradients by reverse mode."""

    state_size = 0

    def __init__(self, train: Tasks, val: Tasks, ridge: float, q: int, n_jobs: int) -> None:
        self.train, self.val, self.ridge, self.q, self.n_jobs = train, val, ridge, q, n_jobs
        parts = zip(train.starts[:-1], train.starts[1:], strict=True)
        self.R = np.concatenate([whitened(train.X[first:last], ridge) for first, last in parts])

    def solve(self, theta: Floats, lam: float, terms: Indices, state: Floats, gradient: bool) -> TaskSolutions:
        """Run the q steps for every task, from u = 0."""
        theta_t = np.ascontiguousarray(theta.T)

        def block(part: slice) -> TaskSolutions:
            out = _empty_solutions(theta, terms[part], state[part])
            kernel = (*self.train, *self.val, self.R, terms[part], theta_t, lam, self.ridge, self.q, gradient)
            grad_lam = unrolled_block(*kernel, out.values, out.residuals, out.coef, out.grad_theta)
            rows, rows_val = (np.diff(tasks.starts)[terms[part]] for tasks in (self.train, self.val))
            # Each step applies R and its transpose and two products with theta; in reverse, two more.
            P, L = theta.shape
            work = (self.q + 1) * 2 * P * (rows + L) + 2 * P * rows_val
            gradient_work = (self.q + 1) * 2 * P * (rows + 2 * L)
            steps = np.full(len(out.values), float(self.q))
            return out._replace(grad_lam=grad_lam, steps=steps, work=work, gradient_work=gradient_work)

        return _joined(in_blocks(block, len(terms), self.n_jobs))


def one_hot_labels(theta: Floats) -> Whole:
    """The group of each feature if theta is one-hot, else an empty array."""
    if np.all((theta == 0.0) | (theta == 1.0)) and np.all(theta.sum(axis=1) == 1.0):
        return np.asarray(theta.argmax(axis=1), dtype=np.int64)
    return np.empty(0, dtype=np.int64)


def in_blocks(block: Callable[[slice], R], size: int, n_jobs: int) -> list[R]:
    """The results of ``block`` for consecutive slices of TASKS_PER_CALL entries, in order, computed on ``n_jobs`` threads."""
    parts = [slice(i, i + TASKS_PER_CALL) for i in range(0, size, TASKS_PER_CALL)]
    if len(parts) == 1 or n_jobs == 1:
        return [block(part) for part in parts]
    results: list[R | None] = [None] * len(parts)
    numbers = iter(range(len(parts)))

    def work() -> None:
        # All threads, this one too, take the next number from one iterator: a future for every block would cost as much as a
        # small block does.
        for i in numbers:
            results[i] = block(parts[i])

    with ThreadPoolExecutor(min(n_jobs, len(parts)) - 1) as pool:
        others = [pool.submit(work) for _ in range(min(n_jobs, len(parts)) - 1)]
        work()
        for other in others:
            other.result()
    return cast(list[R], results)


def _empty_solutions(theta: Floats, terms: Indices, state: Floats) -> TaskSolutions:
    k, (P, L) = len(terms), theta.shape
    work, gradient_work = np.zeros((2, k), dtype=np.int64)
    return TaskSolutions(
        np.empty(k), np.zeros((L, P)), 0.0, np.empty((k, P)), state, np.empty(k), np.empty(k), work, gradient_work
    )


def _joined(blocks: list[TaskSolutions]) -> TaskSolutions:
    values, grads, grad_lams, coefs, states, steps, residuals, work, gradient_work = zip(*blocks, strict=True)
    grad_theta = np.ascontiguousarray(summed(list(grads)).T)
    rest = (np.concatenate(x) for x in (coefs, states, steps, residuals, work, gradient_work))
    return TaskSolutions(np.concatenate(values), grad_theta, float(sum(grad_lams)), *rest)


def summed(parts: list[Floats]) -> Floats:
    """The sum, added up in order, so that it does not depend on the threads."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


@compiled
def unrolled_block(
    X: Floats,
    y: Floats,
    starts: Whole,
    X_val: Floats,
    y_val: Floats,
    starts_val: Whole,
    R: Floats,
    terms: Whole,
    theta: Floats,
    lam: float,
    ridge: float,
    q: int,
    gradient: bool,
    values: Floats,
    residuals: Floats,
    coef: Floats,
    grad: Floats,
) -> float:
    """Solve these tasks one after the other and add their dG/dtheta to ``grad``; returns the sum of their dG/dlam."""
    L, P = theta.shape
    theta2 = theta * theta
    c, e, h, z, grad_lam = np.empty((q + 1, P)), np.empty((q + 1, L)), np.empty((q + 1, P)), np.empty(P), 0.0
    for k in range(len(terms)):
        t = terms[k]
        part, part_val = slice(starts[t], starts[t + 1]), slice(starts_val[t], starts_val[t + 1])
        residuals[k] = run(X[part], y[part], R[part], theta2, lam, ridge, q, c, e, h, coef[k])
        values[k] = half_mean_square(X_val[part_val], y_val[part_val], coef[k], z)
        if gradient:
            grad_lam += reverse(R[part], theta, theta2, lam, ridge, c, e, h, z, grad)
    return grad_lam
