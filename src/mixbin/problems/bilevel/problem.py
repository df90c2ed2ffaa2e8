"""``bilevel`` makes a Problem from two JAX functions and two sets; ``mixbin.torch.bilevel`` is the one for PyTorch modules.

An evaluation computes in float64 without touching the user's JAX setting. It is compiled in two parts: the lower level, which is
most of the work for the compiler and which evaluations without gradient use too, and G with its gradient at the w found.
``Unrolled`` differentiates the steps themselves, so its evaluation with gradient is compiled as a whole.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.errors import InvalidInput
from mixbin.problem import Evaluation, Indices, Warm
from mixbin.problems.bilevel._jax import double, need_jax
from mixbin.problems.bilevel.hypergradient import FirstOrder, Implicit, Unrolled
from mixbin.problems.bilevel.jax_hypergradient import Derivatives, bind_hypergradient
from mixbin.problems.bilevel.jax_lower import LowerLevel, Model, bind_lower
from mixbin.problems.bilevel.lower import FixedPoint, Minimise, OwnSolver
from mixbin.problems.bilevel.shared import check_sets, lower_info, singular
from mixbin.sets import BinarySet, Box

Function = Callable[[Any, Any, Any], Any]


class BilevelProblem:
    """What ``bilevel`` returns: G(theta, lam) = outer(w(theta, lam), theta, lam), with its hypergradient."""

    check_first_gradient = True
    """A lower level that is solved too coarsely, or has no isolated minimiser, makes the hypergradient wrong."""

    def __init__(
        self,
        outer: Function,
        inner: Function | None,
        w0: Any,
        theta_set: BinarySet,
        lam_set: Box,
        lower: Minimise | FixedPoint | OwnSolver,
        hypergradient: Implicit | Unrolled | FirstOrder,
    ) -> None:
        import jax
        from jax.flatten_util import ravel_pytree

        self.theta_set, self.lam_set, self.lower, self.hypergradient = theta_set, lam_set, lower, hypergradient
        self.n_compiled = 0
        """How many functions JAX has compiled: the lower level, G with gradient and G without, each once if it is needed."""
        with double():
            flat, unravel = ravel_pytree(_doubles(w0))
            self._w0 = np.asarray(flat)
            self._unravel = unravel
            self._model = Model(None if inner is None else _scalar("inner", inner, unravel), self._w0.size, unravel)
            self._lower: LowerLevel = bind_lower(lower, self._model)
            self._outer = _scalar("outer", outer, unravel)
            self._solver = jax.jit(self._counted(self._solved))
            self._with_gradient = jax.jit(self._differentiated(self._outer))
            self._value = jax.jit(self._counted(self._outer))
            self._check_once()

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """G and its hypergradient at (theta, lam); an implicit lower level starts from the w in ``warm``."""
        start = self._start(warm)
        with double():
            if gradient:
                return self._evaluation(start, theta, lam, self._with_gradient)
            if isinstance(self.hypergradient, FirstOrder):  # the value needs the second training, and its gradient costs little
                return self._evaluation(start, theta, lam, self._with_gradient)._replace(grad_theta=None, grad_lam=None)
            w, steps, residual = self._solver(start, theta, lam)
            info = self._info(float(residual), float(steps))
            return Evaluation(float(self._value(w, theta, lam)), None, None, self._warm(w), info)

    def model(self, theta: Floats, lam: Any = ()) -> Any:
        """The trained w at (theta, lam): NumPy arrays in the shapes of w0."""
        import jax

        theta = check.array("theta", np.asarray(theta, dtype=np.float64), shape=self.theta_set.shape)
        lam = check.array("lam", lam, shape=self.lam_set.shape)
        w = self.evaluate(theta, lam, gradient=False).warm["w"]
        with double():
            return jax.tree.map(np.asarray, self._unravel(w))

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def traced(*args: Any) -> Any:
            self.n_compiled += 1  # Python runs this line while JAX traces the function, never afterwards
            return function(*args)

        return traced

    def _differentiated(self, outer: Function) -> Callable[..., Any]:
        """G with its gradient from w, or from w0 through the steps of ``Unrolled``, whose residual comes along."""
        how = self.hypergradient
        derivatives = bind_hypergradient(how, outer, self._lower, self._model, lambda model: bind_lower(self.lower, model))
        if not isinstance(how, Unrolled):
            return self._counted(derivatives)

        def through_steps(start: Any, theta: Any, lam: Any) -> tuple[Derivatives, Any]:
            got = derivatives(start, theta, lam)
            return got, self._residual(got.w, theta, lam)

        return self._counted(through_steps)

    def _solved(self, start: Any, theta: Any, lam: Any) -> tuple[Any, Any, Any]:
        """The w of the lower level, its steps, and the residual there."""
        if isinstance(self.hypergradient, Unrolled):
            assert self._lower.unroll is not None
            w, steps = self._lower.unroll(start, theta, lam, self.hypergradient.q), self.hypergradient.q
        else:
            w, steps = self._lower.solve(start, theta, lam)
        return w, steps, self._residual(w, theta, lam)

    def _residual(self, w: Any, theta: Any, lam: Any) -> Any:
        import jax.numpy as jnp

        return jnp.max(jnp.abs(self._lower.residual(w, theta, lam)), initial=0.0)

    def _evaluation(self, start: Any, theta: Any, lam: Any, with_gradient: Callable[..., Any]) -> Evaluation:
        """One evaluation by ``with_gradient``, a compiled function of ``_differentiated``."""
        if isinstance(self.hypergradient, Unrolled):
            steps: Any = 0
            got, residual = with_gradient(start, theta, lam)
        else:
            w, steps, residual = self._solver(start, theta, lam)
            got = with_gradient(w, theta, lam)
        info = self._info(float(residual), float(steps + got.steps)) | {"linear_residual": float(got.linear_residual)}
        if isinstance(self.hypergradient, FirstOrder):
            info["outer"] = float(got.outer)
        grads = np.asarray(got.grad_theta), np.asarray(got.grad_lam)
        if isinstance(self.hypergradient, Implicit) and np.isfinite(got.value) and not all(map(check.is_finite, grads)):
            raise singular(self.lower)
        return Evaluation(float(got.value), *grads, self._warm(got.w), info)

    def _start(self, warm: Warm | None) -> Floats:
        """The w from which the lower level starts. Unrolled steps always start from w0: else G would depend on the run's path."""
        if not warm or "w" not in warm or isinstance(self.hypergradient, Unrolled):
            return self._w0
        return check.array("warm['w']", warm["w"], shape=self._w0.shape, remedy="pass the warm state of an evaluation")

    def _warm(self, w: Any) -> Warm:
        return {"w": np.asarray(w)}

    def _info(self, residual: float, steps: float) -> dict[str, float]:
        return lower_info(self.lower, residual, steps, fixed_steps=isinstance(self.hypergradient, Unrolled))

    def _check_once(self) -> None:
        """Trace the functions at the centre of the sets, so that shapes that do not fit are an error before any work is done."""
        import jax

        theta, lam = self.theta_set.start(), self.lam_set.start()
        jax.eval_shape(self._lower.residual, self._w0, theta, lam)
        if isinstance(self.lower, OwnSolver):
            jax.eval_shape(self._lower.solve, self._w0, theta, lam)
        jax.eval_shape(self._outer, self._w0, theta, lam)


class BilevelSum(BilevelProblem):
    """A bilevel problem whose outer objective is a mean over terms, for Saga and StochasticGradient."""

    def __init__(self, outer_terms: Callable[[Any, Any, Any, Any], Any], n_terms: int, *args: Any) -> None:
        import jax

        super().__init__(*args)
        self.n_terms = n_terms

        def evaluation(start: Any, theta: Any, lam: Any, terms: Any) -> Any:
            mean = _scalar("outer_terms", lambda w, t, s: outer_terms(w, t, s, terms), self._unravel)
            return self._differentiated(mean)(start, theta, lam)

        with double():
            self._terms = jax.jit(evaluation)

    def evaluate_terms(self, theta: Floats, lam: Floats, terms: Indices, *, warm: Warm | None = None) -> Evaluation:
        """The mean over these terms; compiled once for each number of terms."""
        terms = np.asarray(terms)
        if terms.ndim != 1 or terms.size == 0 or terms.dtype.kind not in "iu" or terms.min() < 0 or terms.max() >= self.n_terms:
            raise check.fail("terms", terms, f"whole numbers from 0 to {self.n_terms - 1} in one dimension, at least one")
        with double():
            return self._evaluation(self._start(warm), theta, lam, lambda *at: self._terms(*at, terms))


def bilevel(
    outer: Function,
    inner: Function | None,
    w0: Any,
    *,
    theta_set: BinarySet,
    lam_set: Box | None = None,
    lower: Any = None,
    hypergradient: Implicit | Unrolled | FirstOrder | None = None,
    outer_terms: Callable[[Any, Any, Any, Any], Any] | None = None,
    n_terms: int | None = None,
) -> BilevelProblem:
    """Make a Problem from two JAX functions: minimise outer(w, theta, lam) over the sets, where w = argmin inner(., theta, lam).

    Parameters
    ----------
    outer : callable
        ``outer(w, theta, lam)`` returns the validation loss, one number. It closes over its data; NumPy arrays stay float64.
    inner : callable or None
        ``inner(w, theta, lam)`` returns the training objective, one number; it must be smooth, with an isolated minimiser in w.
        None if ``lower`` is a FixedPoint.
    w0 : pytree of arrays
        Where training starts; it also fixes the shapes of w. An array, or dictionaries, lists and tuples of arrays.
    theta_set : BinarySet
        The set of the yes/no variables. Both functions see theta in its shape, with entries relaxed to [0, 1].
    lam_set : Box, optional
        The box of the continuous hyperparameters; without it, lam has shape (0,).
    lower : optional
        How to find w: ``Minimise(...)``, the default (an optimistix minimiser stands for ``Minimise`` with that minimiser),
        ``FixedPoint(step)`` for a map of your own, or ``OwnSolver(solve)``.
    hypergradient : Implicit, Unrolled or FirstOrder, optional
        How to differentiate through the training; ``Implicit()`` by default.
    outer_terms : callable, optional
        ``outer_terms(w, theta, lam, idx)`` returns the mean of outer over the terms ``idx``, for the solvers "saga" and
        "stochastic"; needs ``n_terms``.
    n_terms : int, optional
        The number of terms.

    Returns
    -------
    BilevelProblem
        A problem for ``relax_and_penalize`` and all other methods; ``problem.model(theta, lam)`` returns the trained w.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> noisy = np.array([1.0, 1.1, 0.9, 8.0])  # choose three of these measurements so that their mean is near 1
    >>> problem = mb.bilevel(
    ...     outer=lambda w, theta, lam: (w - 1.0) ** 2,
    ...     inner=lambda w, theta, lam: (theta * (w - noisy) ** 2).sum(),
    ...     w0=0.0,
    ...     theta_set=mb.Budget(4, 3),
    ... )
    >>> mb.relax_and_penalize(problem, seed=0).theta
    array([ True,  True,  True, False])
    """
    need_jax()
    for name, function in (("outer", outer), ("inner", inner)):
        if not callable(function) and not (name == "inner" and function is None):
            raise check.fail(name, function, "a function of (w, theta, lam) that returns one number")
    box = check_sets(theta_set, lam_set)
    if hypergradient is not None and not isinstance(hypergradient, (Implicit, Unrolled, FirstOrder)):
        raise check.fail("hypergradient", hypergradient, "Implicit(...), Unrolled(...), FirstOrder(...) or None")
    if (outer_terms is None) != (n_terms is None):
        raise InvalidInput("outer_terms and n_terms must be given together; pass both or none of them")
    made = _lower(lower)
    parts = outer, inner, w0, theta_set, box, made, hypergradient or Implicit()
    if outer_terms is None:
        return BilevelProblem(*parts)
    if not callable(outer_terms):
        raise check.fail("outer_terms", outer_terms, "a function of (w, theta, lam, idx)")
    return BilevelSum(outer_terms, check.whole("n_terms", n_terms, low=1), *parts)


def _lower(lower: Any) -> Minimise | FixedPoint | OwnSolver:
    import optimistix as optx

    if lower is None:
        return Minimise()
    if isinstance(lower, optx.AbstractMinimiser):
        return Minimise(lower)
    if not isinstance(lower, (Minimise, FixedPoint, OwnSolver)):
        must = "an optimistix minimiser, Minimise(...), FixedPoint(step) or OwnSolver(solve)"
        raise check.fail("lower", lower, must, "such as optimistix.LBFGS(rtol=1e-8, atol=1e-8)")
    return lower


def _doubles(w0: Any) -> Any:
    """w0 with all its arrays converted to float64."""
    import jax

    refused = check.fail("w0", w0, "an array or a pytree of arrays, not empty", "such as numpy.zeros(10)")
    try:
        with warnings.catch_warnings():
            # JAX warns of iterators, which have no shape; it raises a ValueError for keys of a dictionary that have no order.
            warnings.simplefilter("error", DeprecationWarning)
            leaves, shape = jax.tree.flatten(w0)
    except (DeprecationWarning, ValueError):
        raise refused from None
    if not leaves:
        raise refused
    return jax.tree.unflatten(shape, [np.array(check.array("w0", leaf)) for leaf in leaves])


def _scalar(name: str, function: Function, unravel: Callable[[Any], Any]) -> Function:
    """``function`` as a function of the flat w, with a check that it returns one real number."""
    import jax.numpy as jnp

    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError as error:
        raise check.fail(name, function, f"a function of (w, theta, lam) ({error})", "let it take all three") from None
    except ValueError:  # a compiled function has no signature that Python can inspect
        pass

    def checked(w: Any, theta: Any, lam: Any) -> Any:
        value = jnp.asarray(function(unravel(w), theta, lam))
        if value.shape != () or value.dtype.kind != "f":
            raise check.fail(
                f"the return value of {name}",
                f"shape {value.shape}, dtype {value.dtype}",
                "one real number",
                "add .sum() or .mean()",
            )
        return value.astype(jnp.float64)

    return checked
