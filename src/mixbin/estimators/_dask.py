"""What the estimators do with Dask collections, whose rows are not read into this process."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.data.dask_tables import dask_tables
from mixbin.errors import InvalidInput


def note_features(estimator: Any, X: Any) -> None:
    """Keep the number of the features of X and, if X has them, their names."""
    estimator.n_features_in_ = int(X.shape[1])
    names = _names(X)
    if names is not None:
        estimator.feature_names_in_ = names
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def check_features(estimator: Any, X: Any) -> None:
    """Refuse other features than those of ``fit``."""
    n, names = int(X.shape[1]), _names(X)
    if n != estimator.n_features_in_:
        must = f"a table with the {estimator.n_features_in_} columns of X in fit"
        raise check.fail("X", f"{n} columns", must, "pass the same features in the same order")
    before = getattr(estimator, "feature_names_in_", None)
    if names is not None and before is not None and list(names) != list(before):
        raise InvalidInput("X must have the columns of X in fit, in their order, got other names; select them by name")


def _names(X: Any) -> NDArray[Any] | None:
    columns = list(getattr(X, "columns", []))
    return np.asarray(columns, dtype=object) if columns and all(isinstance(name, str) for name in columns) else None


def known_tables(X: Any, y: Any) -> tuple[Any, Any]:
    """X and y as Dask arrays whose blocks have known sizes; for dataframes this takes a pass."""
    table, targets = dask_tables(X, y, ("X", "y"))
    for it in (table, targets):
        if np.isnan(it.shape[0]):
            it.compute_chunk_sizes()
    return dask_tables(table, targets, ("X", "y"))


def predicted(X: Any, coef: Floats, intercept: Any) -> Any:
    """The predictions for a Dask collection, as a Dask array that is not computed yet."""
    table = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    return table @ coef.T + intercept
