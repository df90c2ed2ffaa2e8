"""What ``LabelCleaner.fit`` is given, checked before any work is done."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.errors import InvalidInput
from mixbin.estimators._common import check_jobs, check_limits, sklearn_errors_about, validated
from mixbin.problems.distillation.multinomial import Codes

MANY_NUMBERS = 20
"""A numeric target with more distinct values than this, none of which is frequent, is taken for a quantity."""
FOR_NUMBERS = (
    "for numbers with wrong entries use a robust regression, such as scikit-learn's HuberRegressor or RANSACRegressor, and look "
    "at its residuals"
)


def check_settings(cleaner: Any) -> None:
    """Check the constructor's arguments."""
    check.choice("lift", cleaner.lift, ("auto", None))
    check.whole("cv", cleaner.cv, low=2, remedy="5 is usual")
    check.flag("guard", cleaner.guard)
    remedy = "0.9 keeps at least a tenth of every class"
    check.real("max_class_loss", cleaner.max_class_loss, low=0, high=1, remedy=remedy)
    check_jobs(cleaner.n_jobs)
    check_limits(cleaner, "a PassEvent")
    estimator = cleaner.estimator
    if estimator is None:
        return
    remedy = "pass an unfitted one, such as RandomForestClassifier()"
    if isinstance(estimator, type) or not all(hasattr(estimator, name) for name in ("fit", "get_params")):
        raise check.fail("estimator", estimator, "None or a scikit-learn classifier", remedy)
    with sklearn_errors_about("estimator must be None or a scikit-learn classifier"):
        suits = is_classifier(estimator) and hasattr(estimator, "predict_proba")
    if not suits:
        raise check.fail("estimator", type(estimator).__name__, "a classifier with predict_proba", remedy)


def table_and_labels(cleaner: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """X and y, checked. A user's classifier gets X as it is, so it may hold what only that classifier understands."""
    if cleaner.estimator is None:
        table, labels = validated(cleaner, X, y, accept_sparse="csr", dtype=np.float64, order="C", ensure_min_samples=2)
        return table, labels
    check.unmasked("y", y)
    if y is None:
        raise InvalidInput("LabelCleaner requires y to be passed, but the target y is None; pass one class per row of X")
    X = untouched("X", X)
    with sklearn_errors_about("y must hold one class per row of X"):
        validate_data(cleaner, X, skip_check_array=True)
        labels = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
        if len(labels) != X.shape[0]:
            raise InvalidInput(f"y must hold one class per row of X, got {len(labels)} for {X.shape[0]} rows")
    return X, labels


def takes_sparse(estimator: Any) -> bool:
    """Whether a classifier accepts sparse tables; what is no classifier is refused by ``fit``, and accepts nothing before."""
    try:
        return bool(get_tags(estimator).input_tags.sparse)
    except Exception:  # the tags of a user's class may raise anything
        return False


def untouched(name: str, X: Any) -> Any:
    """A table for the user's classifier: of any contents, but with rows and columns."""
    check.unmasked(name, X)
    with sklearn_errors_about(f"{name} must be a table"):
        X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2:
        raise InvalidInput(
            f"{name} must be a table with rows and columns, got shape {X.shape}. Reshape your data to two dimensions"
        )
    return X.tocsr() if issparse(X) else X


def classes_of(labels: Any, cv: int) -> tuple[Any, Codes]:
    """The classes, sorted, and the number of each row's class. A numeric target is refused."""
    with sklearn_errors_about("y must hold classes"), np.errstate(invalid="ignore"):
        kind = type_of_target(labels, input_name="y")
        if kind.startswith("continuous"):
            raise InvalidInput(f"y must hold classes, got a continuous target (Unknown label type: {kind}); {FOR_NUMBERS}")
        if kind not in ("binary", "multiclass"):
            raise InvalidInput(f"y must hold one class per row, got Unknown label type: {kind}; pass one column of classes")
        classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInput(f"y must hold at least two classes, got one class only, {classes[0]!r}; add rows of another")
    if classes.dtype.kind in "iuf" and len(classes) > MANY_NUMBERS and np.bincount(codes).max() < cv:
        raise InvalidInput(
            f"y must hold classes, got {len(classes)} different numbers in {len(codes)} rows, none of them {cv} times; "
            f"{FOR_NUMBERS}"
        )
    return classes, codes.astype(np.intp)


def trusted_rows(cleaner: Any, X_trusted: Any, y_trusted: Any, classes: Any) -> tuple[Any, Codes] | None:
    """The trusted rows and the numbers of their classes."""
    if (X_trusted is None) != (y_trusted is None):
        missing, given = ("X_trusted", "y_trusted") if X_trusted is None else ("y_trusted", "X_trusted")
        raise InvalidInput(f"{missing} must be given together with {given}, got None; pass both or none of them")
    if X_trusted is None:
        return None
    with sklearn_errors_about("X_trusted must be a table with the columns of X"):
        if cleaner.estimator is None:
            check.plain_table("X_trusted", X_trusted)
            table = check_array(X_trusted, accept_sparse="csr", dtype=np.float64, input_name="X_trusted")
        else:
            table = untouched("X_trusted", X_trusted)
        validate_data(cleaner, X_trusted, reset=False, skip_check_array=True)
    check.unmasked("y_trusted", y_trusted)
    with sklearn_errors_about("y_trusted must hold one class per row of X_trusted"):
        labels = check_array(y_trusted, ensure_2d=False, dtype=None, input_name="y_trusted")
        if labels.shape != (table.shape[0],):
            raise InvalidInput(f"y_trusted must hold one class per row of X_trusted, got shape {labels.shape}")
        unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise InvalidInput(f"y_trusted must hold classes of y, got {check.listed(unknown.tolist())}; add such rows to X and y")
    return table, np.searchsorted(classes, labels).astype(np.intp)


def ready_probabilities(pred_probs: Any, rows: int, n_classes: int) -> Floats:
    """The caller's out-of-fold probabilities, one column per class in sorted order; rows are divided by their sums."""
    remedy = "pass a row per row of X and a column per class, classes sorted, as cross_val_predict(method='predict_proba') does"
    P = check.array("pred_probs", pred_probs, shape=(rows, n_classes), remedy=remedy)
    if P.min() < 0:
        raise check.fail("pred_probs", float(P.min()), "at least 0 everywhere", remedy)
    sums = P.sum(axis=1)
    if np.abs(sums - 1.0).max() > 1e-3:
        worst = int(np.abs(sums - 1.0).argmax())
        raise InvalidInput(f"pred_probs must sum to 1 in every row, got {sums[worst]:g} in row {worst}; {remedy}")
    return np.asarray(P / sums[:, None])


def stacked(X: Any, more: Any) -> Any:
    """The rows of X and then the rows of ``more``, in the kind of X."""
    if hasattr(X, "columns"):
        import pandas as pd

        return pd.concat([X, more], ignore_index=True)
    if issparse(X):
        return sparse_vstack([X, more]).tocsr()
    return np.concatenate([X, more.toarray() if issparse(more) else np.asarray(more)])
