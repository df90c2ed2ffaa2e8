"""The contracts between problems, solvers and methods; a problem from a function; the counting and checking wrapper."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

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


class Evaluation(NamedTuple):
    """G at one point, with what the lower level hands on."""

    value: float
    """G, never penalised; +inf where the model cannot be trained, such as an empty selection."""
    grad_theta: Floats | None
    """theta_set.shape; None when gradient=False."""
    grad_lam: Floats | None
    """lam_set.shape; shape (0,) where there is no lam; None when gradient=False."""
    warm: Warm = MappingProxyType({})
    """The lower level's state, arrays only, handed back at the next point nearby."""
    info: Mapping[str, float] = MappingProxyType({})
    """Lower-level steps, residual, ...: goes to the trace."""


@runtime_checkable
class Problem(Protocol):
    """min G(theta, lam) over the sets. ``evaluate`` is pure: same (theta, lam, warm), same bits."""

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
    """Optional: the data say where to start."""

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
        """(off, on, G afterwards) for the best of all moves from a binary theta; (-1, -1, inf) where there is none.

        None where looking through all of them is out of reach.
        """

    def improve(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> "Improved":
        """A binary point reached from theta by some single moves that each lower G; theta itself ends the search."""


class Improved(NamedTuple):
    """What a problem's own search found."""

    theta: NDArray[np.bool_]
    tried: int = 0
    """How many single moves of this theta are known not to lower G."""
    best_change: float = np.nan
    """The change of G by the best of these; NaN where there is none."""


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
        """Call the function; without ``gradient`` the value-only function where there is one."""
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
    """A problem as the engine sees it: evaluations counted, every answer checked, errors told with their iteration.

    ``where`` is set by the engine to the place it is in, such as "penalise, outer iteration 3, step 7".
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
        self.problem = problem
        self.theta_set, self.lam_set = problem.theta_set, problem.lam_set
        self.n_terms = problem.n_terms if isinstance(problem, FiniteSum) else None
        self.n_full = self.n_term_evaluations = 0
        self.where = "start"

    @property
    def n_evaluations(self) -> int:
        """Evaluations of G so far; single terms of a finite sum count for their share, rounded up."""
        return self.n_full + (-(-self.n_term_evaluations // self.n_terms) if self.n_terms else 0)

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """One counted and checked evaluation."""
        self.n_full += 1
        # A user's function that writes into its arguments must fail there, not corrupt the solver's state.
        theta, lam = read_only(theta), read_only(lam)
        try:
            got = self.problem.evaluate(theta, lam, warm=warm, gradient=gradient)
        except Exception as error:
            error.add_note(f"mixbin: raised in evaluation {self.n_evaluations} ({self.where})")
            raise
        return self._checked(got, gradient)

    def evaluate_terms(self, theta: Floats, lam: Floats, terms: Indices, *, warm: Warm | None = None) -> Evaluation:
        """The mean over these terms of a finite sum, counted and checked."""
        # Not isinstance: a runtime protocol takes longer to check than a small term to evaluate.
        problem = cast(FiniteSum, self.problem)
        self.n_term_evaluations += len(terms)
        try:
            got = problem.evaluate_terms(read_only(theta), read_only(lam), terms, warm=warm)
        except Exception as error:
            error.add_note(f"mixbin: raised in evaluation {self.n_evaluations} ({self.where})")
            raise
        return self._checked(got, True)

    def evaluate_moves(self, theta: Floats, lam: Floats, off: Indices, on: Indices, *, warm: Warm | None = None) -> Floats:
        """G after each of these moves, checked; one call counts as one evaluation."""
        assert isinstance(self.problem, FastMoves)
        self.n_full += 1
        place = f"in evaluation {self.n_evaluations} ({self.where})"
        try:
            got = self.problem.evaluate_moves(read_only(theta), read_only(lam), off, on, warm=warm)
        except Exception as error:
            error.add_note(f"mixbin: raised {place}")
            raise
        values = np.asarray(got, dtype=np.float64)
        if values.shape != off.shape:
            raise InvalidInput(f"evaluate_moves must return {off.size} values, got shape {values.shape} {place}")
        if np.isnan(values).any():
            raise DivergedError(f"evaluate_moves gave nan {place}; check it at this theta and lam")
        return values

    def best_move(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> tuple[int, int, float] | None:
        """The best single move; counts as one evaluation."""
        return cast("tuple[int, int, float] | None", self._searched("best_move", theta, lam, warm))

    def improve(self, theta: Floats, lam: Floats, *, warm: Warm | None = None) -> Improved:
        """Some single moves that lower G; counts as one evaluation."""
        return cast(Improved, self._searched("improve", theta, lam, warm))

    def _searched(self, name: str, theta: Floats, lam: Floats, warm: Warm | None) -> Any:
        self.n_full += 1
        try:
            return getattr(self.problem, name)(read_only(theta), read_only(lam), warm=warm)
        except Exception as error:
            error.add_note(f"mixbin: raised in evaluation {self.n_evaluations} ({self.where})")
            raise

    def _checked(self, got: Evaluation, gradient: bool) -> Evaluation:
        place = f"in evaluation {self.n_evaluations} ({self.where})"
        if not isinstance(got, Evaluation):
            raise InvalidInput(f"evaluate must return an Evaluation, got {check.shown(got)} {place}; see mixbin.Evaluation")
        try:
            given: Any = got.value
            if np.iscomplexobj(given) or isinstance(given, (str, bytes, np.ma.MaskedArray)):
                raise TypeError
            with np.errstate(over="ignore"):
                value = float(given)
        except Exception:  # whatever an object's own conversion raises
            raise InvalidInput(f"value must be one number, got {check.shown(got.value)} {place}; return a float") from None
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
