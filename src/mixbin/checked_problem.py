"""The wrapper around a problem through which the engine evaluates it: every answer is counted and checked."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin.errors import DivergedError, InvalidInput
from mixbin.problem import Capabilities, Evaluation, Floats, Improved, Indices, PointValues, Problem, Warm
from mixbin.sets import BinarySet, Box

Entries = TypeVar("Entries", bound=np.generic)

LARGEST_DERIVATIVE = 1e150
"""Larger derivatives are refused: solvers square gradients, and the squares would overflow."""
KEPT_FROM_SEARCHES = 2
"""A search must leave this many evaluations of the limit: one at the point that it finds, one for the answer of the run."""


class CheckedProblem:
    """Wraps a problem for the engine: counts evaluations, checks every answer, and notes on errors where they arose.

    The engine sets ``where`` to what it is doing, such as "penalise, outer iteration 3, step 7", and ``max_evaluations`` to the
    limit of the run. ``offers`` holds what the problem offers beyond ``evaluate``.
    """

    def __init__(self, problem: Problem) -> None:
        for name, kind in (("theta_set", BinarySet), ("lam_set", Box)):
            if not isinstance(getattr(problem, name, None), kind):
                raise check.fail(
                    "problem",
                    problem,
                    f"a Problem whose {name} is a {kind.__name__}",
                    "see FunctionProblem for the shortest way to make one",
                )
        if not callable(getattr(problem, "evaluate", None)):
            raise check.fail("problem", problem, "a Problem with an evaluate method")
        self.problem, self.name = problem, type(problem).__name__
        self.offers = Capabilities.of(problem)
        self.theta_set, self.lam_set = problem.theta_set, problem.lam_set
        self.n_terms = None if self.offers.terms is None else self.offers.terms.n_terms
        self.n_full = self.n_term_evaluations = 0
        self.max_evaluations = np.inf
        self.where = "start"

    @property
    def n_evaluations(self) -> int:
        """Evaluations of G so far. Terms of a finite sum count as their share, rounded up in total; searches as their cost."""
        return self.n_full + (-(-self.n_term_evaluations // self.n_terms) if self.n_terms else 0)

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """One counted and checked evaluation."""
        self.n_full += 1
        # Read-only arrays make a user's function fail in the line where it writes to an argument; otherwise it would silently
        # corrupt the state of the solver.
        got = self._noted(self.problem.evaluate, read_only(theta), read_only(lam), warm=warm, gradient=gradient)
        return self._checked(got, gradient)

    def evaluate_uncounted(self, theta: Floats, lam: Floats) -> Evaluation:
        """Evaluate the problem without counting the evaluation or checking the answer."""
        return self.problem.evaluate(read_only(theta), read_only(lam))

    def checked(self, got: Evaluation) -> Evaluation:
        """An evaluation with gradient, checked as those that are counted."""
        return self._checked(got, True)

    def evaluate_terms(self, theta: Floats, lam: Floats, terms: Indices, *, warm: Warm | None = None) -> Evaluation:
        """One counted and checked evaluation of the mean over these terms of a finite sum."""
        assert self.offers.terms is not None
        self.n_term_evaluations += len(terms)
        got = self._noted(self.offers.terms.evaluate_terms, read_only(theta), read_only(lam), terms, warm=warm)
        return self._checked(got, True)

    def evaluate_moves(self, theta: Floats, lam: Floats, off: Indices, on: Indices, *, warm: Warm | None = None) -> Floats:
        """G after each of these moves, checked; one call counts as one evaluation."""
        assert self.offers.moves is not None
        self.n_full += 1
        place = self._place()
        got = self._noted(self.offers.moves.evaluate_moves, read_only(theta), read_only(lam), off, on, warm=warm)
        values = np.asarray(got, dtype=np.float64)
        if values.shape != off.shape:
            raise InvalidInput(f"evaluate_moves must return {off.size} values, got shape {values.shape} {place}")
        if np.isnan(values).any():
            raise DivergedError(f"evaluate_moves gave nan {place}; check it at this theta and lam")
        return values

    def evaluate_points(self, theta: NDArray[np.bool_], lam: Floats, max_cost: float) -> Floats | None:
        """G at many binary points, checked; counts as ``cost`` evaluations. None if that exceeds ``max_cost``."""
        assert self.offers.points is not None
        got = self._noted(self.offers.points.evaluate_points, read_only(theta), read_only(lam), max_cost=max_cost)
        if got is None:
            return None
        place, expected = self._place(), lam.shape[:2]
        if not isinstance(got, PointValues) or np.shape(got.values) != expected:
            must = f"PointValues with values of shape {expected}, or None"
            raise InvalidInput(f"evaluate_points must return {must}, got {check.shown(got)} {place}; see mixbin.problem")
        values = np.asarray(got.values, dtype=np.float64)
        if np.isnan(values).any() or (values == -np.inf).any():
            raise DivergedError(f"evaluate_points gave nan or -inf {place}; return inf where no model can be trained")
        self.n_full += check.whole("cost of what evaluate_points returns", got.cost, low=1, remedy="count what it computes")
        return values

    def best_move(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> tuple[int, int, float] | None:
        """The best single move; counts as one evaluation."""
        assert self.offers.search is not None
        self.n_full += 1
        found: tuple[int, int, float] | None = self._noted(
            self.offers.search.best_move, read_only(theta), read_only(lam), warm=warm
        )
        return found

    def improve(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> Improved:
        """Run the problem's own search for single moves that lower G; it counts as ``cost`` evaluations."""
        assert self.offers.search is not None
        limit = self._cost_left() if self.offers.search_takes_limit else {}
        self.n_full += 1
        got = self._noted(self.offers.search.improve, read_only(theta), read_only(lam), warm=warm, **limit)
        if not isinstance(got, Improved):
            raise InvalidInput(f"improve must return an Improved, got {check.shown(got)} {self._place()}; see mixbin.problem")
        self._binary_point("improve", got.theta)
        cost = check.whole("cost of what improve returns", got.cost, low=1, remedy="count what the search computes")
        self.n_full += cost - 1
        return got

    def propose(self, theta: Floats, lam: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
        """A binary point that the problem proposes to search from next; counts as one evaluation or as its ``cost``."""
        assert self.offers.proposals is not None
        limit = self._cost_left() if self.offers.proposals_take_limit else {}
        self.n_full += 1
        got: object = self._noted(self.offers.proposals.propose, read_only(theta), read_only(lam), rng, **limit)
        if isinstance(got, Improved):
            self.n_full += check.whole("cost of what propose returns", got.cost, low=1, remedy="count what it computes") - 1
            got = got.theta
        self._binary_point("propose", got)
        return np.array(got)

    def suggest(self, rng: np.random.Generator) -> Floats:
        """The point that the problem suggests to start from."""
        assert self.offers.start is not None
        theta: Floats = self._noted(self.offers.start.suggest, rng)
        return theta

    def lower_bound(self, theta: Floats, lam: Floats) -> float:
        """The problem's lower bound for the point (theta, lam); -inf if the problem has none. Not counted as an evaluation."""
        if self.offers.bound is None:
            return -np.inf
        got = self._noted(self.offers.bound.lower_bound, read_only(theta), read_only(lam))
        number = self._number("lower_bound", got, self._place())
        if np.isnan(number) or number == np.inf:
            raise DivergedError(f"lower_bound is {number} {self._place()}; return a number, or -inf where nothing is known")
        return number

    def _cost_left(self) -> dict[str, float]:
        """The keyword that tells a search what it may cost; none if the run has no limit."""
        left = self.max_evaluations - self.n_evaluations - KEPT_FROM_SEARCHES
        return {"max_cost": left} if left < np.inf else {}

    def _binary_point(self, method: str, found: object) -> None:
        """Refuse what a method of the problem returned as theta, unless it is a binary point of the set."""
        if not isinstance(found, np.ndarray) or found.dtype != np.bool_ or found.shape != self.theta_set.shape:
            must = f"a boolean array of shape {self.theta_set.shape}"
            raise InvalidInput(f"{method} must return a theta that is {must}, got {check.shown(found)} {self._place()}")
        if self.theta_set.violation(found) > 0:
            raise InvalidInput(f"{method} must return a point of {self.theta_set!r}, got one outside {self._place()}")

    def _noted(self, method: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Call a method of the problem. If it raises an error, the error keeps its type and gets a note of where it arose."""
        try:
            return method(*arguments, **keywords)
        except Exception as error:
            error.add_note(f"mixbin: raised {self._place()}")
            raise

    def _place(self) -> str:
        return f"in evaluation {self.n_evaluations} ({self.where})"

    @staticmethod
    def _number(name: str, given: Any, place: str) -> float:
        """Turn ``given`` into one real number, or refuse it."""
        try:
            if np.iscomplexobj(given) or isinstance(given, (str, bytes, np.ma.MaskedArray)):
                raise TypeError
            with np.errstate(over="ignore"):
                return float(given)
        except Exception:  # the conversion of an object may raise anything
            raise InvalidInput(f"{name} must be one number, got {check.shown(given)} {place}; return a float") from None

    def _checked(self, got: Evaluation, gradient: bool) -> Evaluation:
        if gradient and self._is_plain(got):
            return got
        place = self._place()
        if not isinstance(got, Evaluation):
            raise InvalidInput(f"evaluate must return an Evaluation, got {check.shown(got)} {place}; see mixbin.Evaluation")
        value = self._number("value", got.value, place)
        if np.isnan(value) or value == -np.inf:
            raise DivergedError(f"value is {value} {place}; check the function at this theta and lam, or bound lam more tightly")
        if not gradient:
            return Evaluation(value, None, None, got.warm, got.info)
        grad_theta = self._gradient("grad_theta", got.grad_theta, self.theta_set.shape, value, place)
        # No limit for dG/dlam: solvers see lam scaled to the unit box, where the derivative in a narrow range becomes moderate.
        grad_lam = self._gradient("grad_lam", got.grad_lam, self.lam_set.shape, value, place, largest=np.inf)
        return Evaluation(value, grad_theta, grad_lam, got.warm, got.info)

    def _is_plain(self, got: Evaluation) -> bool:
        """Whether there is nothing to convert or to refuse, as nearly always: the quick form of the checks below."""
        if type(got) is not Evaluation or type(got.value) is not float or not math.isfinite(got.value):
            return False
        for grad, shape in ((got.grad_theta, self.theta_set.shape), (got.grad_lam, self.lam_set.shape)):
            if type(grad) is not np.ndarray or grad.dtype != np.float64 or grad.shape != shape:
                return False
            # NaN and infinite entries fail both comparisons.
            if grad.size and not (grad.max() <= LARGEST_DERIVATIVE and grad.min() >= -LARGEST_DERIVATIVE):
                return False
        return True

    @staticmethod
    def _gradient(
        name: str, grad: object, shape: tuple[int, ...], value: float, place: str, largest: float = LARGEST_DERIVATIVE
    ) -> Floats:
        try:
            check.plain_table(name, grad)
            raw = np.asarray(grad)
            if raw.dtype.kind in "cSU":
                raise TypeError
            with np.errstate(over="ignore"):
                g = raw.astype(np.float64, copy=False)
        except Exception:  # the conversion of an object may raise anything
            raise InvalidInput(f"{name} must be an array of real numbers, got {check.shown(grad)} {place}") from None
        if g.shape != shape:
            raise InvalidInput(f"{name} must have shape {shape}, got {g.shape} {place}; return one derivative per entry")
        if value < np.inf and not check.is_finite(g):
            bad = tuple(int(i) for i in np.argwhere(~np.isfinite(g))[0])
            raise DivergedError(f"{name} is {g[bad]} at index {bad} {place}; check the gradient at this theta and lam")
        if g.size and value < np.inf and max(g.max(), -g.min()) > largest:
            raise InvalidInput(
                f"{name} must be at most {largest:g}, got {max(g.max(), -g.min()):g} {place}; "
                "divide the function by a constant or, if it is computed from X and y, rescale these"
            )
        return g


def read_only(x: NDArray[Entries]) -> NDArray[Entries]:
    """A view of ``x`` that cannot be written to."""
    view = x.view()
    view.flags.writeable = False
    return view
