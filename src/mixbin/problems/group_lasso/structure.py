"""Which features belong together: G(theta, lam) over many group lasso regressions that share one structure.

See docs/maths.md, "Group structures".
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin import _validate as check
from mixbin._digest import digest
from mixbin._validate import Floats
from mixbin.data.tasks import Tasks, packed, together
from mixbin.errors import DivergedError, InvalidInput
from mixbin.problem import FALL, Evaluation, Improved, Indices, Warm
from mixbin.problems.group_lasso.proposals import proposed
from mixbin.problems.group_lasso.start import by_evidence, log_evidence_of, move_gains, structure_of
from mixbin.problems.strength import Strength
from mixbin.problems.work import OutOfWork, Work
from mixbin.sets import OneHot

if TYPE_CHECKING:
    from mixbin.problems.group_lasso.lower import ImplicitModels, TaskSolutions, UnrolledModels

log = logging.getLogger(__name__)

START_NOISE = 0.1
"""The standard deviation of the noise in the published random start, relative to the equal weights 1/L."""
LARGEST_LOSS_OF_EVIDENCE = 30.0
"""With ``moves="supported"``, a move that lowers the logarithm of the evidence by more than this is not made."""
CAUTION = 4
"""What it takes to train models is only known afterwards: under a limit, this many times what others took is set aside."""
AT_ONCE = 64
"""Row moves that are evaluated in one call under a limit."""


class GroupLassoStructure:
    """Find the groups of features whose group lasso predicts the validation data of many tasks best.

    The lower level of task t is w_t = argmin 1/(2N) |X_t w - y_t|^2 + lam sum_l |theta_l ∘ w|_2 + ridge/2 |w|^2, the upper level
    G(theta, lam) = mean over tasks of 1/(2n) |X_t^val w_t - y_t^val|^2. The models have no intercept: centre the columns and the
    targets of each task if they need one, as ``GroupStructureRegressor`` does. A constant column is a feature like any other.

    Parameters
    ----------
    X : array of shape (tasks, rows, features), or list of arrays of shape (rows, features)
        The training rows of at least two tasks, which may have different numbers of rows; they are copied.
    y : array of shape (tasks, rows), or list of arrays of shape (rows,)
        Their targets.
    X_val, y_val : like X and y
        The validation rows of the same tasks.
    n_groups : int, default 10
        The largest number of groups, from 2 to the number of features; some groups may stay empty.
    ridge : float, default 1e-3
        The strength of the squared penalty, which makes the model of every task unique.
    lam_bounds : pair of floats or float, default (1e-3, 1.0)
        The range of lam, which is optimised together with the groups; a single number fixes lam.
    lam_scale : {"log", "linear"}, default "log"
        Whether solvers take their steps in log(lam) or in lam; the published step sizes are for "linear".
    lower : {"implicit", "unrolled"}, default "implicit"
        How the models are trained and differentiated. "implicit" trains to convergence and uses the implicit function theorem;
        "unrolled" is the published method, ``q`` steps and reverse mode through them.
    q : int, default 500
        The number of steps of the unrolled lower level.
    start : {"data", "training", "random"}, default "data"
        Where methods start. "training" clusters the features that the training rows show to be used together (docs/maths.md, "A
        start from the data"); "data" then corrects these groups by the training and the validation rows; "random" is the
        published start, equal weights with a little noise.
    moves : {"supported", "all"}, default "supported"
        Which of the row moves that lower G the polish may make: "supported" leaves out moves that strongly lower the evidence of
        the data (of the rows that ``start`` uses), "all" leaves out none. Judged by G alone, a few per cent can be gained
        by breaking up groups that are too large for the one lam that all groups share, but the structure gets worse.
    n_jobs : int, optional
        Threads over the tasks; None takes all cores that this process may use. The results do not depend on it.

    Attributes
    ----------
    theta_set : OneHot
        The set of theta, which has shape (features, groups).
    lam_set : Box
        The box of lam, of shape (); without dimensions if lam is fixed.
    n_terms : int
        The number of tasks, over which G is a mean.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X, X_val = rng.normal(size=(2, 30, 8, 4))
    >>> coef = np.repeat(rng.permuted(np.tile([0.0, 1.0], (30, 1)), axis=1), 2, axis=1)
    >>> y, y_val = (np.einsum("tnp,tp->tn", A, coef) for A in (X, X_val))
    >>> problem = mb.GroupLassoStructure(X, y, X_val, y_val, n_groups=2, lam_bounds=0.1)
    >>> right, wrong = np.eye(2)[[0, 0, 1, 1]], np.eye(2)[[0, 1, 0, 1]]
    >>> bool(problem.evaluate(right, np.empty(0)).value < problem.evaluate(wrong, np.empty(0)).value)
    True
    """

    preferred_settings: Mapping[str, int] = MappingProxyType({"inner_steps": 5, "starts": 1, "portfolio_starts": 3})
    """One start, from the structure that the data suggest; few steps per eps, since the search for row moves makes up for the
    rest. Searches from other structures may take twice as long as this start did."""

    def __init__(
        self,
        X: Any,
        y: Any,
        X_val: Any,
        y_val: Any,
        n_groups: int = 10,
        ridge: float = 1e-3,
        lam_bounds: float | tuple[float, float] = (1e-3, 1.0),
        lam_scale: Literal["log", "linear"] = "log",
        lower: Literal["implicit", "unrolled"] = "implicit",
        q: int = 500,
        start: Literal["data", "training", "random"] = "data",
        moves: Literal["supported", "all"] = "supported",
        n_jobs: int | None = None,
    ) -> None:
        self._train, self._val = _checked_tasks(X, y, X_val, y_val)
        P = self._train.n_features
        remedy = "one group leaves nothing to choose, and there cannot be more groups than features"
        self.n_groups = check.whole("n_groups", n_groups, low=2, high=P, remedy=remedy)
        self.ridge = check.real("ridge", ridge, low=0, open_low=True, remedy="such as 1e-3; it makes the models unique")
        self.lam_bounds = _checked_bounds(lam_bounds)
        self.lam_scale = check.choice("lam_scale", lam_scale, ("log", "linear"))
        self.lower = check.choice("lower", lower, ("implicit", "unrolled"))
        self.q = check.whole("q", q, low=1, remedy="the published experiments take 500 steps")
        self.start = check.choice("start", start, ("data", "training", "random"))
        self.moves = check.choice("moves", moves, ("supported", "all"))
        self.n_jobs = None if n_jobs is None else check.whole("n_jobs", n_jobs, low=1, remedy="None takes all cores")
        self.theta_set = OneHot(P, self.n_groups)
        self.strength = Strength(self.lam_bounds)
        self.lam_set = self.strength.box(log=lam_scale == "log")
        self.n_terms = self._train.n_tasks

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """G at (theta, lam), with the lower level started from ``warm``.

        At a binary theta the gradient of every entry that is off is 0, because theta enters squared.
        """
        return self._mean(theta, lam, np.arange(self.n_terms), warm, gradient)

    def evaluate_terms(self, theta: Floats, lam: Floats, terms: Indices, *, warm: Warm | None = None) -> Evaluation:
        """The mean of the validation losses over these tasks."""
        terms = np.asarray(terms)
        if terms.ndim != 1 or terms.size == 0 or terms.dtype.kind not in "iu":
            raise check.fail("terms", terms, "whole numbers in one dimension, at least one")
        if terms.min() < 0 or terms.max() >= self.n_terms:
            raise check.fail("terms", terms, f"from 0 to {self.n_terms - 1}", "there is one term per task")
        return self._mean(theta, lam, terms, warm, True)

    def evaluate_moves(self, theta: Floats, lam: Floats, off: Indices, on: Indices, *, warm: Warm | None = None) -> Floats:
        """G after each row move from a binary theta, exactly; tasks that cannot change are not solved again (see ``tasks``)."""
        return self._evaluate_moves(theta, lam, off, on, warm)[0]

    def _evaluate_moves(self, theta: Floats, lam: Floats, off: Indices, on: Indices, warm: Warm | None) -> tuple[Floats, int]:
        """G after each row move, and the multiply-adds."""
        binary = check.binary("theta", theta, shape=self.theta_set.shape)
        if self.theta_set.violation(binary):
            raise check.fail("theta", theta, "one-hot in every row", "start from a vertex of the set")
        off, on = np.asarray(off), np.asarray(on)
        _check_moves(binary, off, on)
        feature, target = np.divmod(on, self.n_groups)
        start = binary.astype(np.float64)
        lower = self._lower
        if not hasattr(lower, "moves"):
            solved = [self._moved(start, lam, p, group) for p, group in zip(feature, target, strict=True)]
            return np.array([value for value, _ in solved]), sum(work for _, work in solved)
        values, changes, work = lower.moves(start, self.strength.value(lam), self._state(warm), feature, target)
        return np.asarray((values.sum() + changes) / self.n_terms), int(work)

    def suggest(self, rng: np.random.Generator) -> Floats:
        """A starting point: a binary structure found in the data, or equal weights with a little noise, as ``start`` says."""
        if self.start == "random":
            noisy = (1.0 + START_NOISE * rng.standard_normal(self.theta_set.shape)) / self.n_groups
            return self.theta_set.project(noisy)
        labels = structure_of(self._train, self.n_groups, int(rng.integers(2**31)), self._threads)
        if self.start == "data":
            labels = by_evidence(self._evidence_rows, labels, self.n_groups, self._threads)
        return np.eye(self.n_groups)[labels]

    def propose(self, theta: Floats, lam: Floats, rng: np.random.Generator, *, max_cost: float = np.inf) -> Improved:
        """Another structure that explains the data well, from which to search on; ``theta`` is the best answer so far.

        It begins with a random structure, with a clustering of the data, or with groups of the answer merged and split (see
        ``proposals``). ``cost`` counts the multiply-adds of the evidence; lam enters only through what an evaluation costs.
        """
        if max_cost < 1:
            return Improved(theta > 0.5)
        here = self._solve(theta, lam, np.arange(self.n_terms), None, False)
        work = Work(int(here.work.sum() + here.gradient_work.sum()), max_cost)
        work.note(int(here.work.sum()))
        labels = proposed(self._evidence_rows, np.argmax(theta, axis=1), self.n_groups, rng, self._threads, work)
        return Improved(np.arange(self.n_groups) == labels[:, None], cost=work.cost)

    def best_move(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> tuple[int, int, float]:
        """The best of all row moves, found by evaluating every one of them."""
        off, on = (np.concatenate(side) for side in zip(*self.theta_set.moves(theta), strict=True))
        values = self.evaluate_moves(theta, lam, off, on, warm=warm)
        k = int(np.argmin(values))
        return int(off[k]), int(on[k]), float(values[k])

    def improve(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, max_cost: float = np.inf) -> Improved:
        """Make as many row moves that lower G as help when made together.

        With ``moves="supported"`` only moves are considered that do not strongly lower the evidence of the data.

        ``cost`` counts the multiply-adds of the evidence and of all models that were trained. With ``max_cost``, the moves with
        the best evidence are tried, as many as fit.
        """
        labels = np.argmax(theta, axis=1)
        if max_cost < 1:
            return Improved(theta > 0.5)
        here = self._solve(theta, lam, np.arange(self.n_terms), warm, False)
        work, training = Work(int(here.work.sum() + here.gradient_work.sum()), max_cost), int(here.work.sum())
        try:
            work.add(training)
            gains = move_gains(self._evidence_rows, labels, self.n_groups, self._threads, work=work)
        except OutOfWork:
            return Improved(theta > 0.5, cost=work.cost)
        gains[np.arange(len(labels)), labels] = -np.inf
        on = np.flatnonzero(gains > (-LARGEST_LOSS_OF_EVIDENCE if self.moves == "supported" else -np.inf))
        if max_cost < np.inf:
            on = on[np.argsort(-gains.reshape(-1)[on], kind="stable")]
        value, values = float(here.values.sum() / self.n_terms), self._affordable(theta, lam, on, warm, work, training)
        if not values.size:
            return Improved(theta > 0.5, cost=work.cost)
        feature, group = np.divmod(on[: values.size], self.n_groups)
        best = np.flatnonzero(values < value * (1.0 - FALL))
        best = best[np.argsort(values[best], kind="stable")]
        best = best[np.sort(np.unique(feature[best], return_index=True)[1])]
        while best.size:
            if work.left < CAUTION * training:
                best = best[:1]
            moved = labels.copy()
            moved[feature[best]] = group[best]
            there = np.eye(self.n_groups)[moved]
            # A single move is known to lower G. Several together may not, because each was evaluated alone: try half as many
            # then.
            if best.size == 1 or self._counted_value(there, lam, warm, work) < values[best[0]]:
                return Improved(there > 0.5, cost=work.cost)
            best = best[: best.size // 2]
        tried = on.size if values.size == on.size else 0
        return Improved(theta > 0.5, tried, float(values.min()) - value if tried else np.nan, work.cost)

    def _affordable(self, theta: Floats, lam: Floats, on: Indices, warm: Warm | None, work: Work, training: int) -> Floats:
        """G after the first of these row moves: all of them, or as many as ``work`` is likely to allow.

        ``training`` is what it takes to train all models once, which every call does first.
        """
        off = on // self.n_groups * self.n_groups + np.argmax(theta, axis=1)[on // self.n_groups]
        found, each, limited = [np.empty(0)], float(CAUTION * training), work.left < np.inf
        done = 0
        while done < on.size:
            size = on.size - done
            if limited:
                size = int(min(size, AT_ONCE, (work.left - training) // each))
            if size < 1:
                break
            part = slice(done, done + size)
            values, products = self._evaluate_moves(theta, lam, off[part], on[part], warm)
            work.note(products)
            found.append(values)
            done, each = part.stop, CAUTION * max(1.0, products / size)
        return np.concatenate(found)

    def _counted_value(self, theta: Floats, lam: Floats, warm: Warm | None, work: Work) -> float:
        solved = self._solve(theta, lam, np.arange(self.n_terms), warm, False)
        work.note(int(solved.work.sum()))
        return float(solved.values.sum() / self.n_terms)

    def coef(self, theta: ArrayLike, lam: ArrayLike = ()) -> Floats:
        """The models trained with (theta, lam), of shape (tasks, features)."""
        return self._solve(theta, lam, np.arange(self.n_terms), None, False).coef

    def log_evidence(self, labels: ArrayLike) -> float:
        """How well groups explain the rows (docs/maths.md, "A start from the data"), up to a constant.

        ``labels`` are the group numbers of the features, any whole numbers from 0.
        """
        numbers = np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64)
        return log_evidence_of(self._evidence_rows, numbers, self._threads)

    def loss(self, theta: ArrayLike, lam: ArrayLike, X: Any, y: Any) -> float:
        """G of the models trained with (theta, lam) on other data of the same tasks, such as a test set."""
        data = packed("X", X, "y", y)
        _check_same_tasks("X", data, "the training data", self._train)
        return float(data.half_mean_squares(self.coef(theta, lam)).mean())

    def fingerprint(self) -> str:
        """A hash of the data and the settings, by which a checkpoint recognises the problem."""
        lower = f"unrolled {self.q}" if self.lower == "unrolled" else "implicit"
        settings = (
            f"GroupLassoStructure 1 {self.theta_set!r} {self.ridge!r} {self.lam_bounds!r} {lower} {self.start} {self.moves}"
        )
        return digest(*self._train, *self._val, settings=settings)

    def _mean(self, theta: Floats, lam: Floats, terms: Indices, warm: Warm | None, gradient: bool) -> Evaluation:
        got = self._solve(theta, lam, terms, warm, gradient)
        k = len(terms)
        state = self._state(warm)
        state[terms] = got.state
        there = {"s": state} if state.size else {}
        info = {"lower_steps": float(got.steps.mean()), "lower_residual": float(got.residuals.max())}
        value = float(got.values.sum() / k)
        if not gradient:
            return Evaluation(value, None, None, there, info)
        grad_lam = np.asarray(got.grad_lam / k) if self.lam_set.size else np.empty(0)
        return Evaluation(value, got.grad_theta / k, grad_lam, there, info)

    def _solve(self, theta: ArrayLike, lam: ArrayLike, terms: Indices, warm: Warm | None, gradient: bool) -> TaskSolutions:
        theta = check.array("theta", theta, shape=self.theta_set.shape)
        if theta.min() < 0:
            i = np.unravel_index(theta.argmin(), theta.shape)
            raise InvalidInput(f"theta must not be negative, got {theta[i]:g} at index {i}; project it on theta_set")
        number = self.strength.value(lam)
        got = self._lower.solve(theta, number, terms.astype(np.int64), self._state(warm)[terms], gradient)
        if not check.is_finite(got.values):
            raise DivergedError(
                f"the model of task {terms[~np.isfinite(got.values)][0]} has a loss that is not finite at lam = {number:g}; "
                "rescale the columns and targets of this task"
            )
        return got

    def _moved(self, theta: Floats, lam: Floats, feature: int, group: int) -> tuple[float, int]:
        """G after one row move, and the multiply-adds."""
        moved = theta.copy()
        moved[feature] = np.arange(self.n_groups) == group
        solved = self._solve(moved, lam, np.arange(self.n_terms), None, False)
        return float(solved.values.sum() / self.n_terms), int(solved.work.sum())

    def _state(self, warm: Warm | None) -> Floats:
        """A copy of the states from which the tasks' solves start; 0 means a cold start."""
        size = self.n_groups if self.lower == "implicit" else 0
        if not warm or "s" not in warm:
            return np.zeros((self.n_terms, size))
        return np.array(
            check.array("warm['s']", warm["s"], shape=(self.n_terms, size), remedy="pass the warm state of an evaluation")
        )

    @cached_property
    def _evidence_rows(self) -> Tasks:
        """The rows whose evidence decides which moves are supported."""
        return together(self._train, self._val) if self.start == "data" else self._train

    @property
    def _threads(self) -> int:
        return self.n_jobs or usable_cores()

    @cached_property
    def _lower(self) -> ImplicitModels | UnrolledModels:
        """The lower level. The first evaluation of a problem compiles its kernels, or reads them from numba's cache."""
        began = time.perf_counter()
        log.info("loading the group lasso kernels")
        from mixbin.problems.group_lasso.lower import ImplicitModels, UnrolledModels

        lower: ImplicitModels | UnrolledModels
        if self.lower == "implicit":
            lower = ImplicitModels(self._train, self._val, self.n_groups, self.ridge, self._threads)
        else:
            lower = UnrolledModels(self._train, self._val, self.ridge, self.q, self._threads)
        one, lam = np.zeros(1, dtype=np.int64), float(np.max(self.lam_bounds))
        lower.solve(self.theta_set.start(), lam, one, self._state(None)[one], True)
        log.info("group lasso kernels ready after %.1f s", time.perf_counter() - began)
        return lower


def lam_at_bound(strength: Strength, lam: float) -> str | None:
    """A sentence if ``lam`` ended at a bound of its range."""
    remedy = "scale the targets such that they differ within a task by about 1, or give lam as a number"
    return strength.at_bound("lam", lam, remedy)


def usable_cores() -> int:
    """The number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _checked_tasks(X: Any, y: Any, X_val: Any, y_val: Any) -> tuple[Tasks, Tasks]:
    """The training and the validation rows, with a check that they have the same tasks and features."""
    train, val = packed("X", X, "y", y), packed("X_val", X_val, "y_val", y_val)
    if train.n_tasks < 2:
        raise InvalidInput(
            f"X must hold at least two tasks, got {train.n_tasks}; one task cannot show which features belong together"
        )
    _check_same_tasks("X_val", val, "X", train)
    return train, val


def _check_same_tasks(name: str, data: Tasks, other: str, train: Tasks) -> None:
    if data.n_tasks != train.n_tasks:
        raise InvalidInput(
            f"{name} must have the tasks of {other}, got {data.n_tasks} tasks against {train.n_tasks}; "
            "pass the same tasks in the same order"
        )
    if data.n_features != train.n_features:
        raise InvalidInput(
            f"{name} must have the features of {other}, got {data.n_features} columns against {train.n_features}; "
            "pass the same features in the same order"
        )


def _checked_bounds(bounds: object) -> float | tuple[float, float]:
    remedy = "pass a number to fix lam, or a pair (low, high) to optimise it"
    return check.positive_or_range("lam_bounds", bounds, remedy)


def _check_moves(theta: NDArray[np.bool_], off: Indices, on: Indices) -> None:
    """Check that every pair is a row move: an entry that is 1, and another entry of the same row."""
    remedy = "take them from theta_set.moves"
    for name, entries in (("off", off), ("on", on)):
        if entries.ndim != 1 or entries.dtype.kind not in "iu" or entries.shape != off.shape:
            raise check.fail(name, entries, "a one-dimensional array of whole numbers, one per move", remedy)
        if entries.size and not (entries.min() >= 0 and entries.max() < theta.size):
            raise check.fail(name, entries, f"flat indices from 0 to {theta.size - 1}", remedy)
    rows_differ = off // theta.shape[1] != on // theta.shape[1]
    if rows_differ.any() or not theta.reshape(-1)[off].all():
        i = int(np.argmax(rows_differ | ~theta.reshape(-1)[off]))
        raise InvalidInput(
            f"off and on must move the 1 of a row to another column of that row, got ({off[i]}, {on[i]}) at index {i}; {remedy}"
        )
