"""What a problem must have and what it may offer, and a problem made from a function."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin.errors import InvalidInput
from mixbin.sets import BinarySet, Box

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Warm = Mapping[str, NDArray[Any]]

FALL = 1e-12
"""A value counts as lower only if G falls by more than this share of its size: a smaller fall may be rounding."""
PREFERENCES = ("inner_steps", "starts", "portfolio_starts")
"""The settings that ``preferred_settings`` of a problem may contain."""


class Evaluation(NamedTuple):
    """G at one point, its gradients, and the state of the lower level.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> problem = mb.QuadraticProblem(np.eye(2), np.zeros(2), mb.Budget(2, 1))
    >>> got = problem.evaluate(np.array([0.5, 0.5]), np.empty(0))
    >>> got.value, got.grad_theta
    (0.25, array([0.5, 0.5]))
    """

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

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> class Sum:  # any class with these three will do
    ...     theta_set, lam_set = mb.Budget(3, 1), mb.Box.empty()
    ...     def evaluate(self, theta, lam, *, warm=None, gradient=True):
    ...         return mb.Evaluation(float(theta @ [3.0, 1.0, 2.0]), np.array([3.0, 1.0, 2.0]), np.empty(0))
    >>> isinstance(Sum(), mb.Problem), mb.relax_and_penalize(Sum(), seed=0).theta
    (True, array([False,  True, False]))
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
