"""What a problem must have and what it may offer, a problem made from a function, and the wrapper that counts and checks."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin.errors import DivergedError, InvalidInput
from mixbin.sets import BinarySet, Box

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Warm = Mapping[str, NDArray[Any]]
Entries = TypeVar("Entries", bound=np.generic)

FALL = 1e-12
"""A value counts as lower only if G falls by more than this share of its size: a smaller fall may be rounding."""
LARGEST_DERIVATIVE = 1e150
"""Larger derivatives are refused: solvers square gradients, and the squares would overflow."""
PREFERENCES = ("inner_steps", "starts", "portfolio_starts")
"""The settings that ``preferred_settings`` of a problem may contain."""
KEPT_FROM_SEARCHES = 2
"""A search must leave this many evaluations of the limit: one at the point that it finds, one for the answer of the run."""


class Evaluation(NamedTuple):
    """G at one point, its gradients, and the state of the lower level."""

    value: float
    """G without the penalty; +inf if no model can be trained, as for an empty selection."""
    grad_theta: Floats | None
    """dG/dtheta, of shape theta_set.shape; None if gradient=False."""
    grad_lam: Floats | None
    """dG/dlam, of shape lam_set.shape, which is (0,) if the problem has no lam; None if gradient=False."""
    warm: Warm = MappingProxyType({})
    """The state of the lower level, arrays only. The engine passes it to the evaluation of the next point nearby."""
    info: Mapping[str, float] = MappingProxyType({})
    """Numbers about the lower level, such as its steps and its residual; the trace records them."""


@runtime_checkable
class Problem(Protocol):
    """Minimise G(theta, lam) over two sets. ``evaluate`` is pure: the same (theta, lam, warm) gives the same result to the bit.

    A problem needs only the two sets and ``evaluate``. It may offer any of the capabilities ``FiniteSum``, ``FastMoves``,
    ``LocalSearch``, ``ManyPoints``, ``Suggests``, ``Proposes`` and ``Bounded`` (see these classes), and

    - ``fingerprint()``, a text that differs if data or settings differ: so a run can refuse the checkpoint of another problem;
    - ``preferred_settings``, a mapping such as ``{"inner_steps": 5, "starts": 1}``: the values that methods use for settings
      which their caller leaves open. It may contain ``starts``, ``portfolio_starts``, which takes its place with
      ``search="portfolio"``, and ``inner_steps``, which only ``relax_and_penalize`` uses and only with polish. Without the
      mapping, methods use their general defaults;
    - ``check_first_gradient = True``, if the gradient comes from a user: a run then compares it with a few differences of the
      value at its first point, and warns if it is clearly wrong (see ``mixbin.check_gradient``).

    An attribute that is None counts as missing. A method refuses a problem that offers something unusable or incomplete.
    """

    @property
    def theta_set(self) -> BinarySet:
        """The set of theta."""

    @property
    def lam_set(self) -> Box:
        """The set of lam."""

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """G and, unless ``gradient=False``, its gradients at (theta, lam)."""


@runtime_checkable
class Suggests(Problem, Protocol):
    """Optional: the problem suggests a point to start from."""

    def suggest(self, rng: np.random.Generator) -> Floats:
        """A point of theta_set to start from."""


@runtime_checkable
class Proposes(Problem, Protocol):
    """Optional: the problem proposes binary points from which to search on, once there is a first answer."""

    def propose(self, theta: Floats, lam: Floats, rng: np.random.Generator) -> "NDArray[np.bool_] | Improved":
        """A binary point of theta_set to search from next; ``theta`` and ``lam`` are the best answer so far.

        The point should depend on the arguments alone; it may be worse than the best answer, but should not lead back to it. The
        engine polishes it by exact moves. A call counts as one evaluation.

        A problem whose proposals take longer accepts one more keyword, ``max_cost``, and returns an ``Improved``, of which
        ``theta`` and ``cost`` are used: the cost counts, and must not exceed ``max_cost`` evaluations.
        """


@runtime_checkable
class FiniteSum(Problem, Protocol):
    """Optional: G is a mean over terms, for stochastic solvers."""

    @property
    def n_terms(self) -> int:
        """The number of terms."""

    def evaluate_terms(self, theta: Floats, lam: Floats, terms: Indices, *, warm: Warm | None = None) -> Evaluation:
        """The mean of G over these terms only, with its gradients."""


@runtime_checkable
class FastMoves(Problem, Protocol):
    """Optional: the problem computes G after single moves exactly, for less than one evaluation per move."""

    def evaluate_moves(self, theta: Floats, lam: Floats, off: Indices, on: Indices, *, warm: Warm | None = None) -> Floats:
        """G after each single move from a binary theta: entry ``off[i]`` becomes 0 and ``on[i]`` becomes 1.

        The entries are flat indices; -1 means that no entry changes on that side.
        """


@runtime_checkable
class LocalSearch(FastMoves, Protocol):
    """Optional: the problem searches its single moves faster than by trying each of them."""

    def best_move(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> tuple[int, int, float] | None:
        """(off, on, G afterwards) for the best of all moves from a binary theta; (-1, -1, inf) if theta has no move.

        None if looking through all moves would take too long.
        """

    def improve(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> "Improved":
        """Make single moves that each lower G, and return the binary point reached; theta unchanged if no move does.

        A search that can stop early accepts one more keyword, ``max_cost``: if the run has a limit, the engine passes the largest
        ``cost`` that the limit allows. A search without that keyword may exceed the limit by one call.
        """


@runtime_checkable
class ManyPoints(Problem, Protocol):
    """Optional: the problem computes G at many binary points together, in far less time than one after the other.

    If the set has few binary points, a run then compares all of them.
    """

    def evaluate_points(self, theta: NDArray[np.bool_], lam: Floats, *, max_cost: float = np.inf) -> "PointValues | None":
        """G at each binary point ``theta[i]`` with each ``lam[i, j]``; None if that costs more than ``max_cost`` evaluations.

        ``theta`` has the shape (points, *theta_set.shape), ``lam`` the shape (points, values per point, *lam_set.shape).
        """


@runtime_checkable
class Bounded(Problem, Protocol):
    """Optional: the problem proves how good an answer can be at best, for certificates."""

    def lower_bound(self, theta: Floats, lam: Floats) -> float:
        """A number such that no binary theta of its set, with any lam of its set, has a lower G.

        The number may depend on (theta, lam): the bound should be tight near that point. -inf means that no bound is known.
        """


class Improved(NamedTuple):
    """The result of a problem's own search."""

    theta: NDArray[np.bool_]
    tried: int = 0
    """The number of single moves from this theta that are known not to lower G."""
    best_change: float = np.nan
    """The lowest change of G among these moves; NaN if ``tried`` is 0."""
    cost: int = 1
    """The cost of the call in evaluations, at least 1: its multiply-adds divided by those of one evaluation with gradient."""


class PointValues(NamedTuple):
    """G at many binary points."""

    values: Floats
    """Of shape (points, values of lam per point); +inf if no model can be trained."""
    cost: int = 1
    """The cost of the call in evaluations, as in ``Improved``."""


@dataclass(frozen=True)
class Capabilities:
    """What a problem offers beyond ``evaluate``, looked up and checked once, so that no algorithm needs ``isinstance``.

    Each of the first fields holds the problem itself, typed by the contract that it meets, or None if the problem does not meet
    that contract.
    """

    terms: FiniteSum | None = None
    moves: FastMoves | None = None
    search: LocalSearch | None = None
    search_takes_limit: bool = False
    """Whether ``improve`` accepts the keyword ``max_cost``."""
    points: ManyPoints | None = None
    start: Suggests | None = None
    proposals: Proposes | None = None
    proposals_take_limit: bool = False
    """Whether ``propose`` accepts the keyword ``max_cost``."""
    bound: Bounded | None = None
    fingerprint: Callable[[], object] | None = None
    preferred_settings: Mapping[str, int] = field(default_factory=dict)
    check_first_gradient: bool = False
    """Whether a run compares the gradient at its first point with differences of the value."""

    @classmethod
    def of(cls, problem: Any) -> "Capabilities":
        """Look up what ``problem`` offers. An incomplete offer is refused, and the error names what is missing."""
        search = _methods(problem, "LocalSearch", ("improve", "best_move"), needs=("evaluate_moves",))
        proposes = _methods(problem, "Proposes", ("propose",))
        terms = _methods(problem, "FiniteSum", ("evaluate_terms",), needs=("n_terms",))
        if getattr(problem, "n_terms", None) is not None:
            check.whole("problem.n_terms", problem.n_terms, low=1, remedy="it is the number of terms of a FiniteSum")
            if not terms:
                raise _incomplete(problem, "FiniteSum", "n_terms", "evaluate_terms")
        return cls(
            terms=problem if terms else None,
            moves=problem if _methods(problem, "FastMoves", ("evaluate_moves",)) else None,
            search=problem if search else None,
            search_takes_limit=search and _takes(problem.improve, "max_cost"),
            points=problem if _methods(problem, "ManyPoints", ("evaluate_points",)) else None,
            start=problem if _methods(problem, "Suggests", ("suggest",)) else None,
            proposals=problem if proposes else None,
            proposals_take_limit=proposes and _takes(problem.propose, "max_cost"),
            bound=problem if _methods(problem, "Bounded", ("lower_bound",)) else None,
            fingerprint=problem.fingerprint if _methods(problem, "Problem", ("fingerprint",)) else None,
            preferred_settings=_preferences(getattr(problem, "preferred_settings", None)),
            check_first_gradient=getattr(problem, "check_first_gradient", False) is True,
        )


def _methods(problem: Any, contract: str, names: tuple[str, ...], needs: tuple[str, ...] = ()) -> bool:
    """Whether a problem has all methods ``names`` and the attributes ``needs``. Having only some of them is an error."""
    found = [name for name in names if getattr(problem, name, None) is not None]
    for name in found:
        if not callable(getattr(problem, name)):
            remedy = "define it as a method, or leave it out"
            raise check.fail(f"problem.{name}", getattr(problem, name), f"a method (see mixbin.problem.{contract})", remedy)
        for other in (*names, *needs):
            if getattr(problem, other, None) is None:
                raise _incomplete(problem, contract, name, other)
    return bool(found)


def _incomplete(problem: object, contract: str, has: str, lacks: str) -> InvalidInput:
    return check.fail(
        "problem",
        problem,
        f"a whole {contract}, which has {has} and {lacks} (see mixbin.problem.{contract})",
        f"it lacks {lacks}: add that, or leave {has} out",
    )


def _takes(method: Callable[..., Any], keyword: str) -> bool:
    try:
        return keyword in inspect.signature(method).parameters
    except ValueError:  # Python cannot see the signature of some functions that are written in C
        return False


def _preferences(given: object) -> Mapping[str, int]:
    """The preferred settings of a problem, each checked."""
    if given is None:
        return {}
    allowed = f"{', '.join(PREFERENCES[:-1])} and {PREFERENCES[-1]}"
    if not isinstance(given, Mapping) or not set(given) <= set(PREFERENCES):
        must = f"a mapping whose names are among {allowed}"
        raise check.fail("problem.preferred_settings", given, must, 'such as {"inner_steps": 5, "starts": 1}')
    return {name: check.whole(f"problem.preferred_settings[{name!r}]", number, low=1) for name, number in given.items()}


class FunctionProblem:
    """A problem around a user's own function.

    Parameters
    ----------
    function : callable
        ``function(theta)``, which returns (G, dG/dtheta); if there is a ``lam_set``, ``function(theta, lam)``, which returns
        (G, dG/dtheta, dG/dlam).
    theta_set : BinarySet
        The set of theta, such as ``Budget(100, 10)``.
    lam_set : Box, optional
        The set of lam; without it the problem has no continuous hyperparameters.
    value : callable, optional
        A function of the same arguments that returns G alone. It is called when no gradient is needed.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> cost = np.array([3.0, 1.0, 2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(3, 2))
    >>> mb.relax_and_penalize(problem, seed=0).theta
    array([False,  True,  True])
    """

    check_first_gradient = True

    def __init__(
        self,
        function: Callable[..., Any],
        theta_set: BinarySet,
        lam_set: Box | None = None,
        *,
        value: Callable[..., Any] | None = None,
    ) -> None:
        if not callable(function):
            raise check.fail(
                "function", function, "callable", "pass a function of theta (and lam) that returns value and gradient"
            )
        if not isinstance(theta_set, BinarySet):
            raise check.fail("theta_set", theta_set, "a set of binary variables", "such as Budget(100, 10) or Hypercube(20)")
        if lam_set is not None and not isinstance(lam_set, Box):
            raise check.fail("lam_set", lam_set, "a Box or None", "such as Box(0.0, 1.0)")
        if value is not None and not callable(value):
            raise check.fail("value", value, "callable or None")
        self.function, self.value = function, value
        self.theta_set, self.lam_set = theta_set, Box.empty() if lam_set is None else lam_set
        self._has_lam = lam_set is not None

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """Call ``function`` or, if no gradient is needed and the problem has it, ``value``."""
        arguments = (theta, lam) if self._has_lam else (theta,)
        if not gradient and self.value is not None:
            return Evaluation(self.value(*arguments), None, None)
        parts = self.function(*arguments)
        expected = "(value, grad_theta, grad_lam)" if self._has_lam else "(value, grad_theta)"
        if not isinstance(parts, tuple) or len(parts) != len(arguments) + 1:
            raise check.fail("the return value of function", parts, f"a tuple {expected}")
        grad_lam = parts[2] if self._has_lam else np.empty(0)
        return Evaluation(parts[0], parts[1], grad_lam)


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
