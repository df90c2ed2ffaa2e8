"""``TableEncoder``: tables of text, categories, dates and missing values as numbers, in scikit-learn's conventions."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mixbin import _validate as check
from mixbin.data.encoding import MOST_CATEGORIES, Encoding, words
from mixbin.data.leaves import NotEncodable
from mixbin.errors import InvalidInput
from mixbin.estimators._common import sklearn_errors_about

if TYPE_CHECKING:
    import pyarrow as pa

Table = Any
"""A DataFrame of pandas or polars, a table of pyarrow, or whatever shows itself to Arrow; also an array of numbers."""


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn the columns of a table into numbers, as the commands do with files.

    Text and categories become indicator columns (scikit-learn's OneHotEncoder; two texts become one column), dates become year,
    month and day (and the hour, where there is one), yes and no become 1 and 0, times of day hours, durations seconds, and nested
    columns are taken apart. A missing number is filled by the median; a missing text is a text of its own. Text of which nearly
    all values differ, and columns without a value, are left out. Numbers stay as they are.

    Parameters
    ----------
    max_categories : int, default 30
        The most indicator columns for one column of text; the rarer texts share the last of them.

    Attributes
    ----------
    encoding_ : str
        What became of the columns, in a sentence.
    columns_ : dict
        For each column that comes out the column it is made from, and how.
    n_features_in_ : int
        The columns of the table.
    feature_names_in_ : array of str
        Their names, if they have some.

    Examples
    --------
    >>> import pandas as pd, mixbin as mb
    >>> table = pd.DataFrame({"size": [1.5, None, 3.5], "city": ["Bonn", "Rom", "Ulm"]})
    >>> table["sold"] = pd.to_datetime(["2020-01-31", "2021-02-01", "2022-03-02"])
    >>> encoder = mb.TableEncoder().fit(table)
    >>> encoder.encoding_
    '1 text column as 3 indicator columns, 1 date as year, month, day; 1 missing value filled by the median'
    >>> encoder.transform(table)[1]
    array([2.500e+00, 0.000e+00, 1.000e+00, 0.000e+00, 2.021e+03, 2.000e+00,
           1.000e+00])

    In a pipeline, an estimator takes such tables:

    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(mb.TableEncoder(), mb.DistillationRegressor(budget=0.1))
    """

    def __init__(self, max_categories: int = MOST_CATEGORIES) -> None:
        self.max_categories = max_categories

    def fit(self, X: Table, y: object = None) -> Self:
        """Learn what each column becomes; y is not used."""
        most = check.whole("max_categories", self.max_categories, low=2, remedy="30 is the default")
        table = self._arrow(X, reset=True)
        if table.num_rows == 0:
            raise InvalidInput("X must have rows, got 0 sample(s); a minimum of 1 is required")
        with _about_x():
            self._encoding = Encoding.of(table, most)
        if not self._encoding.names:
            raise InvalidInput(f"X must have a column that can be used, got none ({words(self._encoding, 0)}); add columns")
        encoded = self._encoding.transform(table)
        self.columns_ = self._encoding.about
        self.encoding_ = words(self._encoding, sum(encoded.filled.values())) or "all columns are numbers"
        return self

    def transform(self, X: Table) -> NDArray[np.float64]:
        """The numbers of a table with the columns of fit."""
        check_is_fitted(self)
        # The names are those of fit, as was checked, or one of the tables has no texts for names: then places count, as in
        # scikit-learn.
        table = self._arrow(X, reset=False).rename_columns(self._encoding.columns)
        with _about_x():
            return self._encoding.transform(table).X

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The names of the columns that come out."""
        check_is_fitted(self)
        columns = list(self._encoding.columns)
        if input_features is not None:
            names = check.loose_array("input_features", input_features, "the names of the columns of fit")
            # Names are compared one by one: what is no text may have an == of its own.
            same = (isinstance(given, str) and given == name for given, name in zip(names.flat, columns, strict=False))
            if names.shape != (len(columns),) or not all(same):
                raise InvalidInput("input_features must be the columns of fit (feature_names_in_), got others; leave it out")
        return np.asarray(self._encoding.names, dtype=object)

    def _arrow(self, X: Table, reset: bool) -> "pa.Table":
        """The table as one of Arrow, with its columns checked against those of fit."""
        must = "X must be a table" if reset else "X must be a table with the columns of fit"
        if not _has_columns(X):
            with sklearn_errors_about(must):
                array = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
            return _of_array(array)
        table = _of_frame(X)
        with sklearn_errors_about(must):
            validate_data(self, _with_names(X, table), reset=reset, skip_check_array=True)
        return table

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that text and missing values are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


@contextmanager
def _about_x() -> Iterator[None]:
    """Columns that cannot be encoded are columns of X."""
    try:
        yield
    except NotEncodable as error:
        raise InvalidInput(f"X must hold numbers, text or dates: {error}") from None


def _has_columns(X: Any) -> bool:
    if hasattr(X, "iloc") and not hasattr(X, "columns"):
        return False  # a series of pandas, which shows itself to Arrow, too
    return hasattr(X, "columns") or hasattr(X, "column_names") or hasattr(X, "__arrow_c_stream__")


def _with_names(X: Any, table: "pa.Table") -> Any:
    """What scikit-learn can read the names of the columns from; it does not know the tables of Arrow."""
    if hasattr(X, "iloc") or type(X).__module__.startswith("polars"):
        return X
    import pandas as pd

    return pd.DataFrame(columns=table.column_names)


def _of_array(array: NDArray[np.float64]) -> "pa.Table":
    """The columns of an array, by their numbers; infinite numbers are refused."""
    import pyarrow as pa

    for j, column in enumerate(array.T):
        if np.isinf(column).any():
            raise InvalidInput(f"X must be finite, got infinity in column {j}; replace it")
    return pa.table([pa.array(column, from_pandas=True) for column in array.T], names=[f"x{j}" for j in range(array.shape[1])])


def _of_frame(X: Any) -> "pa.Table":
    """A table of Arrow from a frame; all columns that mix types, or have a name twice, are refused at once."""
    import pyarrow as pa

    if hasattr(X, "iloc"):
        table = _of_pandas(X)
    else:
        try:
            table = X if isinstance(X, pa.Table) else pa.table(X)
        except Exception as error:  # whatever the other library raises
            raise InvalidInput(f"X must be a table that Arrow can read: {check.one_line(str(error))}; pass a DataFrame") from None
    names = table.column_names
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise InvalidInput(f"X must name its columns differently, got {check.listed(twice)} twice; rename one of them")
    infinite = [name for name in names if _is_infinite(table.column(name))]
    if infinite:
        raise InvalidInput(f"X must be finite, got infinity in {check.listed(infinite, 20)}; replace it")
    return table


def _of_pandas(X: Any) -> "pa.Table":
    import pyarrow as pa

    columns, mixed = [], []
    names = [str(name) for name in X.columns]
    for j, name in enumerate(names):
        try:
            columns.append(pa.Array.from_pandas(X.iloc[:, j]))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            mixed.append(name)
    if mixed:
        raise InvalidInput(
            f"X must have values of one type in a column, got several in {check.listed(mixed, 20)}; make them numbers or text"
        )
    return pa.table(columns, names=names)


def _is_infinite(values: "pa.ChunkedArray") -> bool:
    from pyarrow import compute, float32, types

    if types.is_float16(values.type):  # pyarrow before 21 cannot ask half floats
        values = values.cast(float32())
    return bool(types.is_floating(values.type) and compute.any(compute.is_inf(values)).as_py())
