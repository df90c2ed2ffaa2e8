"""Fit and predict on Dask collections, whose rows are not read into this process."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin.data.dask_tables import dask_tables, rows_where
from mixbin.errors import InvalidInput
from mixbin.estimators._common import Candidates, split_rows
from mixbin.problems import RidgeDistillation


def candidates_on_dask(
    estimator: Any, X: Any, y: Any, X_val: Any, y_val: Any, rng: np.random.RandomState, whole: bool
) -> Candidates:
    """The numbers of the candidate rows, how many rows X has, and the problem; the rows themselves stay with the workers.

    If ``whole``, all rows of X are candidates; otherwise validation rows are split off.
    The split draws the same validation rows as for arrays in memory, but keeps them in ascending order: Dask selects rows with a
    mask, block by block.
    """
    if whole:
        problem = RidgeDistillation(X, y, X_val, y_val, **estimator._settings(rng))
        n_rows = problem.theta_set.size
        candidates = np.arange(n_rows)
    else:
        table, targets = _known_tables(X, y)
        n_rows = table.shape[0]
        candidates = np.sort(split_rows(n_rows, estimator.validation_fraction, rng)[0])
        chosen = np.zeros(n_rows, dtype=bool)
        chosen[candidates] = True
        train, held_out = ((rows_where(table, mask), rows_where(targets, mask)) for mask in (chosen, ~chosen))
        problem = RidgeDistillation(*train, *held_out, **estimator._settings(rng))
    _note_features(estimator, X)
    return candidates, n_rows, problem


def predicted(estimator: Any, X: Any) -> Any:
    """The predictions for a Dask collection, as a Dask array that is not computed yet."""
    _check_features(estimator, X)
    table = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    return table @ estimator.coef_.T + estimator.intercept_


def _note_features(estimator: Any, X: Any) -> None:
    """Set ``n_features_in_`` and, if the columns of X have names, ``feature_names_in_``."""
    estimator.n_features_in_ = int(X.shape[1])
    names = _names(X)
    if names is not None:
        estimator.feature_names_in_ = names
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def _check_features(estimator: Any, X: Any) -> None:
    """Refuse an X whose features are not those of ``fit``."""
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


def _known_tables(X: Any, y: Any) -> tuple[Any, Any]:
    """X and y as Dask arrays whose blocks have known sizes. For dataframes, finding the sizes takes a pass over the data."""
    table, targets = dask_tables(X, y, ("X", "y"))
    for it in (table, targets):
        if np.isnan(it.shape[0]):
            it.compute_chunk_sizes()
    return dask_tables(table, targets, ("X", "y"))
