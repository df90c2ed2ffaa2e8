"""The contract of a problem and what it may offer beyond; a problem from a function; the counting and checking wrapper."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin.errors import DivergedError, InvalidInput
from mixbin.sets import BinarySet, Box

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Warm = Mapping[str, NDArray[Any]]

FALL = 1e-12
"""G has fallen when it is lower by more than this share of it: rounding is no progress."""
LARGEST_DERIVATIVE = 1e150
"""Solvers square gradients: beyond this the squares overflow."""
PREFERENCES = ("inner_steps", "starts")
"""The settings that a problem may have a preference for."""
KEPT_FROM_SEARCHES = 2
"""Evaluations that a search must leave of a limit: one at the point that it found, one for the answer of the run."""


class Evaluation(NamedTuple):
    """G at one point, with what the lower level hands on."""

    value: float
    """G, never penalised; +inf where the model cannot be trained, such as an empty selection."""
    grad_theta: Floats | None
    """theta_set.shape; None when gradient=False."""
    grad_lam: Floats | None
    """lam_set.shape, which is (0,) without a lam; None when gradient=False."""
    warm: Warm = MappingProxyType({})
    """The lower level's state, arrays only, handed back at the next point nearby."""
    info: Mapping[str, float] = MappingProxyType({})
    """Lower-level steps, residual, ...: goes to the trace."""


@runtime_checkable
class Problem(Protocol):
    """min G(theta, lam) over the sets. ``evaluate`` is pure: same (theta, lam, warm), same bits.

    The two sets and ``evaluate`` are all that a problem needs. It may offer more, each on its own: ``FiniteSum``, ``FastMoves``,
    ``LocalSearch``, ``Suggests``, ``Bounded`` (see there), and

    - ``fingerprint()``, a text that differs where data or settings differ: a checkpoint of another problem is refused by it;
    - ``preferred_settings``, a mapping such as ``{"inner_steps": 5, "starts": 1}``: what methods use where their caller leaves
      these settings open. Allowed are ``inner_steps``, which counts in ``relax_and_penalize`` unless ``polish=False``, and
      ``starts``. Without it, methods use their general defaults.

    An attribute that is None is not offered. What is offered and cannot be used is refused when a method is called.
    """

    @property
    def theta_set(self) -> BinarySet:
        """Where theta lives."""

    @property
    def lam_set(self) -> Box:
        """Where lam lives."""

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """G and, unless ``gradient=False``, its gradients at (theta, lam)."""


@runtime_checkable
class Suggests(Problem, Protocol):
    """Optional: the data tell where to start."""

    def suggest(self, rng: np.random.Generator) -> Floats:
        """A point of theta_set to start from."""


@runtime_checkable
class FiniteSum(Problem, Protocol):
    """Optional: G is a mean over terms, for stochastic solvers."""

    @property
    def n_terms(self) -> int:
        """The number of terms."""

    def evaluate_terms(self, theta: Floats, lam: Floats, terms: Indices, *, warm: Warm | None = None) -> Evaluation:
        """The mean over these terms."""


@runtime_checkable
class FastMoves(Problem, Protocol):
    """Optional: exact G after single moves, cheaper than an evaluation each."""

    def evaluate_moves(self, theta: Floats, lam: Floats, off: Indices, on: Indices, *, warm: Warm | None = None) -> Floats:
        """G after each move (flat indices, -1 = none) from a binary theta."""


@runtime_checkable
class LocalSearch(FastMoves, Protocol):
    """Optional: the problem knows a faster way through its single moves than trying them."""

    def best_move(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> tuple[int, int, float] | None:
        """(off, on, G afterwards) for the best of all moves from a binary theta; (-1, -1, inf) if theta has no move.

        None if looking through all moves is out of reach.
        """

    def improve(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> "Improved":
        """A binary point reached from theta by single moves that each lower G; theta unchanged when the search finds none.

        A search that can stop early has one more keyword, ``max_cost``: if the run has a limit, the engine passes the largest
        ``cost`` that fits. A search without that keyword may exceed the limit by one call.
        """


@runtime_checkable
class Bounded(Problem, Protocol):
    """Optional: a proof of how good an answer can be at best, for certificates."""

    def lower_bound(self, theta: Floats, lam: Floats) -> float:
        """A number that G does not fall below at any binary theta with any lam of their sets.

        It may depend on the point (theta, lam), where it should be as large as possible. -inf means that nothing is known.
        """


class Improved(NamedTuple):
    """What a problem's own search found."""

    theta: NDArray[np.bool_]
    tried: int = 0
    """How many single moves of this theta are known not to lower G."""
    best_change: float = np.nan
    """The change of G by the best of these; NaN if none is known."""
    cost: int = 1
    """How many evaluations of G the call was worth, at least 1: its multiply-adds over those of one evaluation with gradient."""


@dataclass(frozen=True)
class Capabilities:
    """What a problem offers beyond ``evaluate``: looked up and checked once, so that no algorithm asks a problem what it is.

    Each is the problem itself, under the contract that it meets, or None if the problem does not offer it.
    """

    terms: FiniteSum | None = None
    moves: FastMoves | None = None
    search: LocalSearch | None = None
    search_takes_limit: bool = False
    """Whether ``improve`` has the keyword ``max_cost``."""
    start: Suggests | None = None
    bound: Bounded | None = None
    fingerprint: Callable[[], object] | None = None
    preferred_settings: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Any) -> "Capabilities":
        """What ``problem`` offers; an offer that cannot be used is refused, with what is missing."""
        search = _methods(problem, "LocalSearch", ("improve", "best_move"), needs=("evaluate_moves",))
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
            start=problem if _methods(problem, "Suggests", ("suggest",)) else None,
            bound=problem if _methods(problem, "Bounded", ("lower_bound",)) else None,
            fingerprint=problem.fingerprint if _methods(problem, "Problem", ("fingerprint",)) else None,
            preferred_settings=_preferences(getattr(problem, "preferred_settings", None)),
        )


def _methods(problem: Any, contract: str, names: tuple[str, ...], needs: tuple[str, ...] = ()) -> bool:
    """Whether a problem has all these methods (and what they need); one without another is refused."""
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
    except ValueError:  # a function without a signature that Python can see
        return False


def _preferences(given: object) -> Mapping[str, int]:
    """The preferred settings of a problem, each checked."""
    if given is None:
        return {}
    allowed = " and ".join(PREFERENCES)
    if not isinstance(given, Mapping) or not set(given) <= set(PREFERENCES):
        must = f"a mapping whose names are among {allowed}"
        raise check.fail("problem.preferred_settings", given, must, 'such as {"inner_steps": 5, "starts": 1}')
    return {name: check.whole(f"problem.preferred_settings[{name!r}]", number, low=1) for name, number in given.items()}


class FunctionProblem:
    """A problem around a user's own function.

    Parameters
    ----------
    function : callable
        ``function(theta)`` returning (G, dG/dtheta), or with a ``lam_set``, ``function(theta, lam)`` returning
        (G, dG/dtheta, dG/dlam).
    theta_set : BinarySet
        Where theta lives, such as ``Budget(100, 10)``.
    lam_set : Box, optional
        Where lam lives; without it the problem has no continuous hyperparameters.
    value : callable, optional
        The same arguments, returning G alone; used where no gradient is needed.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> cost = np.array([3.0, 1.0, 2.0])
    >>> problem = mb.FunctionProblem(lambda theta: (cost @ theta, cost), mb.Budget(3, 2))
    >>> mb.relax_and_penalize(problem, seed=0).theta
    array([False,  True,  True])
    """

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
        """Call the function; without ``gradient`` the value-only function, if the problem has one."""
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
    """A problem as the engine sees it: evaluations counted, every answer checked, errors with a note of where they arose.

    ``where`` is set by the engine to the place it is in, such as "penalise, outer iteration 3, step 7", and ``max_evaluations``
    to the limit of the run. ``offers`` is what the problem offers beyond ``evaluate``.
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
        """Evaluations of G so far; terms of a finite sum count for their share, searches for their cost, both rounded up."""
        return self.n_full + (-(-self.n_term_evaluations // self.n_terms) if self.n_terms else 0)

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """One counted and checked evaluation."""
        self.n_full += 1
        # A user's function that writes into its arguments must fail in that line, not corrupt the solver's state.
        got = self._noted(self.problem.evaluate, read_only(theta), read_only(lam), warm=warm, gradient=gradient)
        return self._checked(got, gradient)

    def evaluate_uncounted(self, theta: Floats, lam: Floats) -> Evaluation:
        """The answer of the problem as it is, neither counted nor checked."""
        return self.problem.evaluate(read_only(theta), read_only(lam))

    def evaluate_terms(self, theta: Floats, lam: Floats, terms: Indices, *, warm: Warm | None = None) -> Evaluation:
        """The mean over these terms of a finite sum, counted and checked."""
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

    def best_move(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> tuple[int, int, float] | None:
        """The best single move; counts as one evaluation."""
        assert self.offers.search is not None
        self.n_full += 1
        found: tuple[int, int, float] | None = self._noted(
            self.offers.search.best_move, read_only(theta), read_only(lam), warm=warm
        )
        return found

    def improve(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> Improved:
        """Single moves that lower G, by the problem's own search; counts as many evaluations as its ``cost``."""
        assert self.offers.search is not None
        left = self.max_evaluations - self.n_evaluations - KEPT_FROM_SEARCHES
        limit = {"max_cost": left} if self.offers.search_takes_limit and left < np.inf else {}
        self.n_full += 1
        got = self._noted(self.offers.search.improve, read_only(theta), read_only(lam), warm=warm, **limit)
        if not isinstance(got, Improved):
            raise InvalidInput(f"improve must return an Improved, got {check.shown(got)} {self._place()}; see mixbin.problem")
        found = got.theta
        if not isinstance(found, np.ndarray) or found.dtype != np.bool_ or found.shape != self.theta_set.shape:
            must = f"a boolean array of shape {self.theta_set.shape}"
            raise InvalidInput(f"improve must return a theta that is {must}, got {check.shown(found)} {self._place()}")
        if self.theta_set.violation(found) > 0:
            raise InvalidInput(f"improve must return a point of {self.theta_set!r}, got one outside {self._place()}")
        cost = check.whole("cost of what improve returns", got.cost, low=1, remedy="count what the search computes")
        self.n_full += cost - 1
        return got

    def suggest(self, rng: np.random.Generator) -> Floats:
        """The point that the problem suggests to start from."""
        assert self.offers.start is not None
        theta: Floats = self._noted(self.offers.start.suggest, rng)
        return theta

    def lower_bound(self, theta: Floats, lam: Floats) -> float:
        """The problem's lower bound, asked for at this point; -inf if it offers none. Not counted as an evaluation."""
        if self.offers.bound is None:
            return -np.inf
        got = self._noted(self.offers.bound.lower_bound, read_only(theta), read_only(lam))
        number = self._number("lower_bound", got, self._place())
        if np.isnan(number) or number == np.inf:
            raise DivergedError(f"lower_bound is {number} {self._place()}; return a number, or -inf where nothing is known")
        return number

    def _noted(self, method: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Call the problem; an error of its own keeps its type and gets a note."""
        try:
            return method(*arguments, **keywords)
        except Exception as error:
            error.add_note(f"mixbin: raised {self._place()}")
            raise

    def _place(self) -> str:
        return f"in evaluation {self.n_evaluations} ({self.where})"

    @staticmethod
    def _number(name: str, given: Any, place: str) -> float:
        """One real number."""
        try:
            if np.iscomplexobj(given) or isinstance(given, (str, bytes, np.ma.MaskedArray)):
                raise TypeError
            with np.errstate(over="ignore"):
                return float(given)
        except Exception:  # whatever an object's own conversion raises
            raise InvalidInput(f"{name} must be one number, got {check.shown(given)} {place}; return a float") from None

    def _checked(self, got: Evaluation, gradient: bool) -> Evaluation:
        place = self._place()
        if not isinstance(got, Evaluation):
            raise InvalidInput(f"evaluate must return an Evaluation, got {check.shown(got)} {place}; see mixbin.Evaluation")
        value = self._number("value", got.value, place)
        if np.isnan(value) or value == -np.inf:
            raise DivergedError(f"value is {value} {place}; check the function at this theta and lam, or bound lam more tightly")
        if not gradient:
            return Evaluation(value, None, None, got.warm, got.info)
        grad_theta = self._gradient("grad_theta", got.grad_theta, self.theta_set.shape, value, place)
        # In lam's own unit box, where solvers see it, its gradient may be moderate all the same.
        grad_lam = self._gradient("grad_lam", got.grad_lam, self.lam_set.shape, value, place, largest=np.inf)
        return Evaluation(value, grad_theta, grad_lam, got.warm, got.info)

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
        except Exception:  # whatever an object's own conversion raises
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


def read_only(x: Floats) -> Floats:
    """A view of ``x`` that cannot be written to."""
    view = x.view()
    view.flags.writeable = False
    return view
