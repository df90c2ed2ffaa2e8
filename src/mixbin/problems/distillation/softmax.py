"""Choose which rows to train a classifier on: multinomial logistic regression with weighted rows, judged by others or by all."""

from __future__ import annotations

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
from mixbin.problems.distillation.class_shares import rows_to_choose
from mixbin.problems.distillation.judge import Judge
from mixbin.problems.distillation.multinomial import MOST_STEPS, TIGHT, Codes, Multinomial, Spectrum, Trained, losses
from mixbin.problems.strength import Strength
from mixbin.sets import Budget, GroupBudget, Hypercube

DEFAULT_ALPHA = 0.03
"""``alpha=None`` means this number times the mean variance of the columns of X, times the share of the rows that the budget
keeps: the lower level divides by all rows, so that few kept rows would otherwise be outweighed by the penalty."""
JUDGE_PENALTY = 0.1
"""If all rows judge, their loss is joined by this number times alpha/2 |B|^2. The whole penalty would pull too hard: the bounded
loss is flatter than the cross entropy of the lower level, so that dropping right rows, which makes B smaller, would pay. With
20 % of the labels of digits and of a synthetic table wrong, dropped rows had F1 .96 and .90 at 0.1, .82 and .42 at 1."""
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
LOOSE_ADJOINT = 30.0
"""On the way it is solved to this number times ``path_tol``."""
LOOSEST = 1e-2
"""The largest ``path_tol``."""


class SoftmaxDistillation:
    """Choose the rows whose logistic regression predicts the classes of a validation set, or of all rows, best.

    With z = (x - mean, constant) and p(z) the softmax of B z, the lower level is
    B(v) = argmin 1/m sum_i v_i CE(B z_i, y_i) + alpha/2 |B|^2, where CE is the cross entropy. The upper level is
    G(v, alpha) = 1/n sum_j (1 - p_{y_j}(z_j)) over the validation rows. Without a validation set it is this mean over all rows of
    X, plus a tenth of alpha/2 |B|^2. On selected rows the model is scikit-learn's ``LogisticRegression(C=1 / (m * alpha))``
    (``2 / (m * alpha)`` for two classes), where m counts all candidate rows. The one difference is the intercept, which is
    penalised a little here.

    Parameters
    ----------
    X : array of shape (m, d)
        The candidate rows; copied once.
    y : array of shape (m,)
        Their classes: whole numbers, texts or any labels that can be sorted; some may be wrong.
    X_val : array of shape (n, d), optional
        The validation rows, at least some hundreds. Without them all rows of X judge.
    y_val : array of shape (n,), optional
        Their classes, which are trusted.
    budget : int, float or None, default None
        How many rows to keep: a count, or a fraction in (0, 1] of the candidate rows. None lets the validation
        loss decide how many: the rows whose labels do harm are left out.
    alpha : float, pair of floats or None, default None
        The strength of the penalty. A number fixes it; None is 0.03 times the mean variance of the columns of X, times the share
        of the rows that the budget keeps. A pair (low, high) makes it the continuous variable ``lam``, optimised together with
        the rows: the model then fits the rows that judge more closely, but wrong labels are found less reliably.
    judge_loss : {"bounded", "cross-entropy"}, default "bounded"
        The loss of the upper level. "bounded" is 1 - p of the given label: a row whose label is wrong costs at most 1.
        "cross-entropy" is -log p at the scores divided by ``temperature``; one wrong label can cost any amount.
    temperature : float, optional
        Divides the scores in the cross entropy, 3 by default. Above 1, all validation rows count. At 1, the few rows near the
        border between two classes dominate, and many choices of rows fit these few. Only with ``judge_loss="cross-entropy"``.
    balanced : bool, default False
        Whether the mean over the rows that judge is replaced by the mean over classes of the means over their rows, so that a
        rare class counts as much as a frequent one.
    class_shares : float, optional
        Keeps classes from vanishing. With a budget, the share of every class among the kept rows lies within this fraction of its
        share among all rows, such as 0.2 for 20 %, and every class keeps a row where the budget allows it. Without a budget,
        every class keeps at least this fraction of its rows. None lets the loss decide.
    path_tol : float, optional
        How exactly the models on the way are trained, as a share of the scale of the gradient, such as 1e-3: evaluations with a
        warm state, which methods make on the way to an answer, then cost a fraction. Evaluations without one, such as the value
        that a result reports, are trained to 1e-9 in any case. None trains all of them to 1e-9.

    Attributes
    ----------
    theta_set : Budget, GroupBudget or Hypercube
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
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        budget: int | float | None = None,
        alpha: float | tuple[float, float] | None = None,
        judge_loss: str = "bounded",
        temperature: float | None = None,
        balanced: bool = False,
        class_shares: float | None = None,
        path_tol: float | None = None,
    ) -> None:
        judge = Judge.of(judge_loss, temperature, balanced)
        self.judge_loss, self.temperature = judge.loss, judge.temperature
        self.path_tol = None if path_tol is None else check.real("path_tol", path_tol, low=TIGHT, high=LOOSEST)
        table = _table("X", X)
        self.classes, self._y = _classes(y, len(table))
        self.n_features = table.shape[1]
        held, self._y_val = self._judges(X_val, y_val)
        self.theta_set: Budget | GroupBudget | Hypercube = rows_to_choose(self._y, budget, class_shares)
        self._centre = table.mean(axis=0)
        variance = _variance("X", table, self._centre)
        if held is not None:
            _variance("X_val", held, self._centre)
        self._constant = INTERCEPT * (variance**0.5 or 1.0)
        kept = 1.0 if isinstance(self.theta_set, Hypercube) or self.theta_set.k is None else self.theta_set.k / len(table)
        self.alpha = _checked_alpha(alpha, variance, kept)
        self.strength = Strength(self.alpha)
        self.lam_set = self.strength.box()
        self._Z = self._extended(table)
        self._largest = np.abs(self._Z).max(axis=1)
        self._cold: tuple[Floats, float, Floats] | None = None
        self._Z_val = self._Z if held is None else self._extended(held)
        self._judge = judge._replace(penalty=0.0 if held is not None else JUDGE_PENALTY * _one_alpha(self.alpha, kept * variance))
        self._judge_weights = judge.weights(self._y_val)
        self._spectrum = None if self.path_tol is None else _spectrum(self._Z)

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """G and its exact gradient by the implicit function theorem; +inf with zero gradients when no row is selected."""
        v, alpha = self._weights(theta), self.strength.value(lam)
        if not v.any():
            zeros = np.zeros(self.theta_set.shape), np.zeros(self.lam_set.shape)
            return Evaluation(np.inf, zeros[0] if gradient else None, zeros[1] if gradient else None, info={"rows": 0.0})
        B, A = self._state(warm, "B"), self._state(warm, "A")
        loose = self.path_tol is not None and B is not None
        rows, lower, got = self._trained(v, alpha, B, loose)
        if B is None:
            self._cold = v.copy(), alpha, got.B
        value, dG = self._judge(got.B, self._Z_val, self._y_val, self._judge_weights, gradient)
        info = {"rows": float(len(rows)), "lower_steps": float(got.steps), "lower_residual": got.residual}
        if dG is not None:
            # A = H^-1 dG/dB; then dG/dv_i = -<A z_i, p_i - e_{y_i}> / m and dG/dalpha = -<A, B>.
            A = lower.solve(got.P, dG, A, LOOSE_ADJOINT * self.path_tol if loose and self.path_tol else ADJOINT)
        if loose and A is not None:
            # To first order, the model lacks -H^-1 (df/dB), and G with it -<dG/dB, H^-1 df/dB> = -<A, df/dB>.
            value -= float(np.vdot(A, got.gradient))
        if not gradient or A is None:
            return Evaluation(value, None, None, {"B": got.B} if A is None else {"B": got.B, "A": A}, info)
        m = len(self._y)
        miss = losses(self._Z @ got.B.T, self._y)[1]
        miss[np.arange(m), self._y] -= 1.0
        grad_theta = np.einsum("ik,ik->i", self._Z @ A.T, miss) / -m
        grad_lam = np.asarray(-np.vdot(A, got.B)) if self.lam_set.size else np.empty(0)
        return Evaluation(value, grad_theta, grad_lam, {"B": got.B, "A": A}, info)

    def suggest(self, rng: np.random.Generator) -> Floats:
        """The same weight for every row."""
        return self.theta_set.start()

    def model(self, theta: ArrayLike, lam: ArrayLike = ()) -> tuple[Floats, Floats]:
        """The logistic regression trained with (theta, lam).

        Returns
        -------
        coef : array of shape (K, d)
            Its coefficients, one row for each class.
        intercept : array of shape (K,)
            Its constants.
        """
        B = self._model(theta, lam)
        coef = B[:, :-1]
        return coef, B[:, -1] * self._constant - coef @ self._centre

    def loss(self, model: tuple[Floats, Floats], X_new: ArrayLike, y_new: ArrayLike) -> float:
        """The loss of the upper level, without penalty, of a model on other rows.

        Parameters
        ----------
        model : tuple of arrays
            Coefficients and intercepts, as ``model`` returns them.
        X_new : array of shape (n, d)
            The rows.
        y_new : array of shape (n,)
            Their classes, each of which some candidate row has.

        Returns
        -------
        float
            The loss: less is better.
        """
        table = self._same_columns("X_new", X_new)
        codes = _codes("y_new", y_new, "X_new", len(table), self.classes)
        (coef, intercept), judge = model, self._judge._replace(penalty=0.0)
        B = np.hstack([coef, ((intercept + coef @ self._centre) / self._constant)[:, None]])
        return judge(B, self._extended(table), codes, judge.weights(codes), False)[0]

    def fingerprint(self) -> str:
        """A hash of the data and the settings, for checkpoints."""
        settings = (
            f"SoftmaxDistillation 2 {self.theta_set.fingerprint()} {self.alpha!r} {self._judge!r} {self.path_tol!r} "
            f"{self.classes.tolist()!r}"
        )
        return digest(self._Z, self._y, self._Z_val, self._y_val, settings=settings)

    def _judges(self, X_val: ArrayLike | None, y_val: ArrayLike | None) -> tuple[Floats | None, Codes]:
        """The validation rows, or None if all rows of X judge, and the classes of the rows that judge."""
        if (X_val is None) != (y_val is None):
            missing, given = ("X_val", "y_val") if X_val is None else ("y_val", "X_val")
            raise InvalidInput(f"{missing} must be given together with {given}, got None; pass both or none of them")
        if X_val is None or y_val is None:
            return None, self._y
        held = self._same_columns("X_val", X_val)
        return held, _codes("y_val", y_val, "X_val", len(held), self.classes)

    def _same_columns(self, name: str, value: ArrayLike) -> Floats:
        table = _table(name, value)
        if table.shape[1] != self.n_features:
            raise InvalidInput(
                f"{name} must have the columns of X, got {table.shape[1]} columns against {self.n_features}; "
                "pass the same features in the same order"
            )
        return table

    def _model(self, theta: ArrayLike, lam: ArrayLike) -> Floats:
        """B, trained from zero."""
        v = self._weights(theta)
        if not v.any():
            raise InvalidInput("theta must select at least one row, got none; use top-k rounding or a larger budget")
        alpha = self.strength.value(lam)
        # The last evaluation of a run is that of its answer, from zero, too: the same model to the bit.
        if self._cold is not None and self._cold[1] == alpha and np.array_equal(self._cold[0], v):
            return self._cold[2].copy()
        return self._trained(v, alpha, None)[2].B

    def _trained(
        self, v: Floats, alpha: float, start: Floats | None, loose: bool = False
    ) -> tuple[NDArray[np.intp], Multinomial, Trained]:
        """The rows with weight, the lower level on them, and its solution; ``loose`` if one of ``path_tol`` is enough.

        A loose solution takes at least one Newton step: from the warm state of a point nearby, ``path_tol`` may hold before any.
        """
        rows = np.flatnonzero(v)
        # Without zeros the rows need not be copied.
        Z, y = (self._Z, self._y) if len(rows) == len(v) else (self._Z[rows], self._y[rows])
        lower = Multinomial(Z, y, v[rows], alpha, len(v), self._spectrum if loose else None, self._largest[rows])
        tol, least = (self.path_tol, 1) if loose and self.path_tol else (TIGHT, 0)
        got = lower.train(np.zeros((len(self.classes), self.n_features + 1)) if start is None else start, tol, least)
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


def _variance(name: str, table: Floats, centre: Floats) -> float:
    """The mean variance of the columns around the centre of X, if it is not too large."""
    with np.errstate(over="ignore", invalid="ignore"):
        variance = float(np.square(table - centre).mean())
    if not variance <= LARGEST_VARIANCE:
        raise InvalidInput(f"{name} must have variances of at most {LARGEST_VARIANCE:g}, got {variance:g}; rescale its columns")
    return variance


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


def _codes(name: str, y: ArrayLike, table: str, rows: int, classes: NDArray[Any]) -> Codes:
    """For each row the position of its label among the classes."""
    labels = _labels(name, y, table, rows)
    found, codes = _unique(name, labels)
    position = {label: code for code, label in enumerate(classes.tolist())}
    strange = [label for label in found.tolist() if label not in position]
    if strange:
        raise InvalidInput(f"{name} must hold classes of y, got {strange[0]!r}, which no row of X has; remove these rows")
    return np.array([position[label] for label in found.tolist()], dtype=np.intp)[codes]


def _unique(name: str, labels: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except (TypeError, ValueError):
        raise check.fail(name, labels, "labels of one kind", "turn them into texts or whole numbers") from None
    return classes, codes


def _spectrum(Z: Floats) -> Spectrum:
    """Of all rows; rounding can leave eigenvalues slightly below 0."""
    values, vectors = np.linalg.eigh(Z.T @ Z / len(Z))
    return np.maximum(values, 0.0), vectors


def _one_alpha(alpha: float | tuple[float, float], variance: float) -> float:
    """The alpha that penalises B in the upper level: ``alpha`` itself or, of a range, the number nearest to the default."""
    return min(max(DEFAULT_ALPHA * variance, alpha[0]), alpha[1]) if isinstance(alpha, tuple) else alpha


def _checked_alpha(alpha: object, variance: float, kept: float) -> float | tuple[float, float]:
    if alpha is None:
        if variance <= 0:
            raise InvalidInput("alpha=None needs a column of X that varies, got constant columns only; pass a number or check X")
        return DEFAULT_ALPHA * variance * kept
    checked = check.positive_or_range("alpha", alpha, "pass a number to fix it, a pair (low, high) to optimise it, or None")
    least, most = (bound * (variance or 1.0) for bound in ALPHA_BOUNDS)
    if np.min(checked) < least or np.max(checked) > most:
        must = f"from {least:.3g} to {most:.3g}, {ALPHA_BOUNDS[0]:g} to {ALPHA_BOUNDS[1]:g} times the mean variance of X"
        raise check.fail("alpha", alpha, must, "beyond that it is lost in rounding; choose it nearer, or rescale X")
    return checked
