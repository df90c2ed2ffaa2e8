"""Choose which rows to train a classifier on, or which labels to trust: multinomial logistic regression with weighted rows."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin import _validate as check
from mixbin._digest import digest
from mixbin._validate import Floats
from mixbin.errors import DivergedError, InvalidInput
from mixbin.problem import Evaluation, Warm
from mixbin.problems.distillation.multinomial import MOST_STEPS, Codes, Multinomial, Trained, losses
from mixbin.problems.strength import Strength
from mixbin.sets import Budget, Hypercube
from mixbin.sets.budget import resolve_budget

DEFAULT_ALPHA = 0.03
"""``alpha=None`` means this number times the mean variance of the columns of X (measured by benchmarks/label_cleaning.py)."""
INTERCEPT = 30.0
"""The intercept is the coefficient of a constant column. The constant is this number times the typical deviation of the columns
of X, which penalises the intercept very weakly. The penalty only matters if a class has no row left: its intercept would tend to
-inf without it."""
ALPHA_BOUNDS = (1e-15, 1e15)
"""The smallest and the largest alpha allowed, in units of the mean variance of X. Added to the Hessian, a smaller alpha is lost
in rounding, and next to a larger one the Hessian is lost."""
LARGEST_VARIANCE = 1e100
"""X is refused if its variance exceeds this: the product of two squared entries must not overflow."""
ADJOINT = 1e-8
"""The linear system of the hypergradient is solved to this share of its right-hand side."""


class SoftmaxDistillation:
    """Choose the rows whose logistic regression predicts the classes of a validation set best.

    With z = (x - mean, constant), the lower level is B(v) = argmin 1/m sum_i v_i CE(B z_i, y_i) + alpha/2 |B|^2 and the upper
    level G(v, alpha) = 1/n sum_j CE(B z_j / temperature, y_j) over the validation rows, where CE is the cross entropy of the
    softmax. On selected rows this is scikit-learn's ``LogisticRegression(C=1 / (m * alpha))`` (``2 / (m * alpha)`` for two
    classes), where m counts all candidate rows. The one difference is the intercept, which is penalised a little here.

    Parameters
    ----------
    X : array of shape (m, d)
        The candidate rows; copied once.
    y : array of shape (m,)
        Their classes: whole numbers, texts or any labels that can be sorted; some may be wrong.
    X_val : array of shape (n, d)
        The validation rows.
    y_val : array of shape (n,)
        Their classes, which are trusted.
    budget : int, float or None, default None
        How many rows to keep: a count, or a fraction in (0, 1] of the candidate rows. None lets the validation
        loss decide how many: the rows whose labels do harm are left out.
    alpha : float, pair of floats or None, default None
        The strength of the penalty. A number fixes it; None is 0.03 times the mean variance of the columns of X. A pair
        (low, high) makes it the continuous variable ``lam``, optimised together with the rows: the model then fits the
        validation rows more closely, but wrong labels are found less reliably.
    temperature : float, default 3.0
        Divides the scores in the validation loss. Above 1, all validation rows count. At 1, the few rows near the border between
        two classes dominate, and many choices of rows fit these few.

    Attributes
    ----------
    theta_set : Budget or Hypercube
        Where the row weights v live.
    lam_set : Box
        Where alpha lives: shape (), in logarithmic scale; without dimensions when alpha is fixed.
    alpha : float or tuple of two floats
        The number or the pair in use; ``strength.value(lam)`` is the number that belongs to ``lam``.
    classes : array of shape (K,)
        The classes, sorted.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X, X_val = rng.normal(size=(60, 2)), rng.normal(size=(30, 2))
    >>> y, y_val = X[:, 0] > 0, X_val[:, 0] > 0
    >>> wrong = np.argsort(-np.abs(X[:, 0]))[:6]  # six labels far from the border
    >>> y[wrong] = ~y[wrong]
    >>> keep = mb.relax_and_penalize(mb.SoftmaxDistillation(X, y, X_val, y_val), seed=0, polish=False).theta
    >>> bool(keep[wrong].any()), int(keep.sum()) > 40
    (False, True)
    """

    preferred_settings: Mapping[str, int] = MappingProxyType({"starts": 1})
    """One start is enough: if alpha is fixed and the rows separate the classes, other starts lead to the same answer."""

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: ArrayLike,
        y_val: ArrayLike,
        budget: int | float | None = None,
        alpha: float | tuple[float, float] | None = None,
        temperature: float = 3.0,
    ) -> None:
        table, held = _table("X", X), _table("X_val", X_val)
        if held.shape[1] != table.shape[1]:
            raise InvalidInput(
                f"X_val must have the columns of X, got {held.shape[1]} columns against {table.shape[1]}; "
                "pass the same features in the same order"
            )
        self.classes, self._y = _classes(y, len(table))
        self._y_val = _codes(y_val, len(held), self.classes)
        m, self.n_features = table.shape
        self.theta_set: Budget | Hypercube = Hypercube(m) if budget is None else Budget(m, resolve_budget("budget", budget, m))
        self.temperature = check.real("temperature", temperature, low=1e-6, high=1e6, remedy="1 is the plain cross entropy")
        self._centre = table.mean(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            variance = float(np.square(table - self._centre).mean())
        if not variance <= LARGEST_VARIANCE:
            raise InvalidInput(f"X must have variances of at most {LARGEST_VARIANCE:g}, got {variance:g}; rescale its columns")
        self._constant = INTERCEPT * (variance**0.5 or 1.0)
        self.alpha = _checked_alpha(alpha, variance)
        self.strength = Strength(self.alpha)
        self.lam_set = self.strength.box()
        self._Z, self._Z_val = self._extended(table), self._extended(held)

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """G and its exact gradient by the implicit function theorem; +inf with zero gradients when no row is selected."""
        v, alpha = self._weights(theta), self.strength.value(lam)
        if not v.any():
            zeros = np.zeros(self.theta_set.shape), np.zeros(self.lam_set.shape)
            return Evaluation(np.inf, zeros[0] if gradient else None, zeros[1] if gradient else None, info={"rows": 0.0})
        rows, lower, got = self._trained(v, alpha, self._state(warm, "B"))
        n = len(self._y_val)
        loss, P_val = losses(self._Z_val @ (got.B.T / self.temperature), self._y_val)
        info = {"rows": float(len(rows)), "lower_steps": float(got.steps), "lower_residual": got.residual}
        if not gradient:
            return Evaluation(float(loss.mean()), None, None, {"B": got.B}, info)
        P_val[np.arange(n), self._y_val] -= 1.0
        dG = P_val.T @ self._Z_val / (n * self.temperature)
        # A = H^-1 dG/dB; then dG/dv_i = -<A z_i, p_i - e_{y_i}> / m and dG/dalpha = -<A, B>.
        A = lower.solve(got.P, dG, self._state(warm, "A"), ADJOINT)
        m = len(self._y)
        miss = losses(self._Z @ got.B.T, self._y)[1]
        miss[np.arange(m), self._y] -= 1.0
        grad_theta = np.einsum("ik,ik->i", self._Z @ A.T, miss) / -m
        grad_lam = np.asarray(-np.vdot(A, got.B)) if self.lam_set.size else np.empty(0)
        return Evaluation(float(loss.mean()), grad_theta, grad_lam, {"B": got.B, "A": A}, info)

    def suggest(self, rng: np.random.Generator) -> Floats:
        """The same weight for every row."""
        return self.theta_set.start()

    def model(self, theta: ArrayLike, lam: ArrayLike = ()) -> tuple[Floats, Floats]:
        """The logistic regression trained with (theta, lam).

        Returns
        -------
        coef : array of shape (K, d)
        intercept : array of shape (K,)
        """
        v = self._weights(theta)
        if not v.any():
            raise InvalidInput("theta must select at least one row, got none; use top-k rounding or a larger budget")
        B = self._trained(v, self.strength.value(lam), None)[2].B
        coef = B[:, :-1]
        return coef, B[:, -1] * self._constant - coef @ self._centre

    def fingerprint(self) -> str:
        """A hash of the data and the settings, for checkpoints."""
        settings = f"SoftmaxDistillation 1 {self.theta_set!r} {self.alpha!r} {self.temperature!r} {self.classes.tolist()!r}"
        return digest(self._Z, self._y, self._Z_val, self._y_val, settings=settings)

    def _trained(self, v: Floats, alpha: float, start: Floats | None) -> tuple[NDArray[np.intp], Multinomial, Trained]:
        """The rows with weight, the lower level on them, and its solution."""
        rows = np.flatnonzero(v)
        lower = Multinomial(self._Z[rows], self._y[rows], v[rows], alpha, len(v))
        got = lower.train(np.zeros((len(self.classes), self.n_features + 1)) if start is None else start)
        if got.steps == MOST_STEPS or not np.isfinite(got.residual):
            raise DivergedError(
                f"the logistic regression is not trained after {got.steps} Newton steps at alpha = {alpha:g} (residual "
                f"{got.residual:.2g}); raise alpha or rescale the columns of X"
            )
        return rows, lower, got

    def _extended(self, table: Floats) -> Floats:
        return np.hstack([table - self._centre, np.full((len(table), 1), self._constant)])

    def _weights(self, theta: ArrayLike) -> Floats:
        v = check.array("theta", theta, shape=self.theta_set.shape)
        if v.min() < 0:
            raise InvalidInput(f"theta must not be negative, got {v.min():g} at index {v.argmin()}; project it on theta_set")
        if v.max() > LARGEST_VARIANCE:
            raise InvalidInput(f"theta must be weights, got {v.max():g} at index {v.argmax()}; project it on theta_set")
        return v

    def _state(self, warm: Warm | None, name: str) -> Floats | None:
        if not warm or name not in warm:
            return None
        shape = len(self.classes), self.n_features + 1
        return check.array(f"warm[{name!r}]", warm[name], shape=shape, remedy="pass the warm of an evaluation")


def _table(name: str, value: ArrayLike) -> Floats:
    table = check.array(name, value)
    if table.ndim != 2 or 0 in table.shape:
        remedy = "reshape it or check how it was read"
        raise check.fail(name, value, "a table of shape (rows, columns), neither of them 0", remedy)
    return table


def _labels(name: str, value: ArrayLike, table: str, rows: int) -> NDArray[Any]:
    """One label per row; numbers must be finite."""
    labels = check.loose_array(name, value, f"an array of shape ({rows},)")
    if labels.shape != (rows,):
        raise check.fail(name, labels, f"an array of shape ({rows},)", f"give one class per row of {table}")
    if labels.dtype.kind in "fc":
        check.array(name, labels)
    return labels


def _classes(y: ArrayLike, rows: int) -> tuple[NDArray[Any], Codes]:
    """The classes, sorted, and for each row the position of its label among them."""
    labels = _labels("y", y, "X", rows)
    classes, codes = _unique("y", labels)
    if len(classes) < 2:
        raise InvalidInput(f"y must hold at least two classes, got only {classes[0]!r}; there is nothing to tell apart")
    return classes, codes


def _codes(y_val: ArrayLike, rows: int, classes: NDArray[Any]) -> Codes:
    labels = _labels("y_val", y_val, "X_val", rows)
    found, codes = _unique("y_val", labels)
    position = {label: code for code, label in enumerate(classes.tolist())}
    strange = [label for label in found.tolist() if label not in position]
    if strange:
        raise InvalidInput(f"y_val must hold classes of y, got {strange[0]!r}, which no row of X has; remove these rows")
    return np.array([position[label] for label in found.tolist()], dtype=np.intp)[codes]


def _unique(name: str, labels: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except (TypeError, ValueError):
        raise check.fail(name, labels, "labels of one kind", "turn them into texts or whole numbers") from None
    return classes, codes


def _checked_alpha(alpha: object, variance: float) -> float | tuple[float, float]:
    if alpha is None:
        if variance <= 0:
            raise InvalidInput("alpha=None needs a column of X that varies, got constant columns only; pass a number or check X")
        return DEFAULT_ALPHA * variance
    checked = check.positive_or_range("alpha", alpha, "pass a number to fix it, a pair (low, high) to optimise it, or None")
    least, most = (bound * (variance or 1.0) for bound in ALPHA_BOUNDS)
    if np.min(checked) < least or np.max(checked) > most:
        must = f"from {least:.3g} to {most:.3g}, {ALPHA_BOUNDS[0]:g} to {ALPHA_BOUNDS[1]:g} times the mean variance of X"
        raise check.fail("alpha", alpha, must, "beyond that it is lost in rounding; choose it nearer, or rescale X")
    return checked
