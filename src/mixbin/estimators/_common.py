"""The parts of ``fit`` that the estimators share: checks, the split, the call of the method, and the attributes it sets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_array, validate_data

from mixbin import _validate as check
from mixbin.data.kinds import is_dask
from mixbin.errors import InvalidInput
from mixbin.methods import relax_and_penalize, relax_and_round
from mixbin.methods.settings import checked_limit
from mixbin.problem import Problem
from mixbin.progress import ProgressDisplay
from mixbin.result import Result

BASELINES: dict[str, Literal["top-k", "simple"] | None] = {"top-k": "top-k", "simple": "simple", "relax": None}
"""The methods other than "penalize", and the ``rounding`` that each passes to ``relax_and_round``."""
LONGEST_MESSAGE = 500
"""Messages of scikit-learn are cut to about this many letters."""
Split = tuple[NDArray[np.intp], NDArray[np.intp]]
"""The numbers of the candidate rows, and of the rows to validate on."""
Candidates = tuple[NDArray[np.intp], int, Any]
"""The numbers of the candidate rows, how many rows X has, and the problem of choosing among the candidates."""


def check_settings(estimator: Any, whose_rows: str = "", all_may_judge: bool = False) -> None:
    """Check the settings that all estimators have; ``whose_rows`` completes the sentence about the rows to split off.

    ``all_may_judge``: the fraction may be None, which splits nothing off.
    """
    check.choice("method", estimator.method, ("penalize", *BASELINES))
    fraction, remedy = estimator.validation_fraction, f"0.2 splits off a fifth of the rows{whose_rows}"
    if fraction is not None or not all_may_judge:
        check.real("validation_fraction", fraction, low=0, high=1, open_low=True, open_high=True, remedy=remedy)
    check.flag("verbose", estimator.verbose)
    checked_limit(estimator.max_evaluations)
    check_limits(estimator)


def check_limits(estimator: Any, seen: str = "an Event", may_be_zero: bool = False) -> None:
    """Check time_limit and callbacks, which are functions of what is ``seen``."""
    if estimator.time_limit is not None:
        remedy = "pass seconds such as 60, or None"
        check.real("time_limit", estimator.time_limit, low=0, open_low=not may_be_zero, remedy=remedy)
    callbacks = estimator.callbacks
    if callbacks is not None and not (np.iterable(callbacks) and all(callable(it) for it in callbacks)):
        raise check.fail("callbacks", callbacks, f"a list of functions of {seen}", "pass [function], or None")


def check_jobs(n_jobs: object) -> None:
    """Check a number of jobs, as joblib understands it."""
    if n_jobs is not None and check.whole("n_jobs", n_jobs, low=-(2**31), remedy="-1 uses all cores") == 0:
        raise check.fail("n_jobs", 0, "None or a whole number other than 0", "-1 uses all cores")


def threads(n_jobs: int | None, n_tasks: int) -> int | None:
    """The threads to start: more than there are tasks have no work, and joblib cannot make any number of them."""
    return n_jobs if n_jobs is None or n_jobs < 0 else min(int(n_jobs), n_tasks)


def generator(random_state: object) -> np.random.RandomState:
    """scikit-learn's generator for a ``random_state``."""
    must, remedy = "None, a whole number from 0 to 2**32 - 1 or a RandomState", "pass a seed such as 0"
    if isinstance(random_state, (bool, np.bool_)):
        raise check.fail("random_state", random_state, must, remedy)
    try:
        rng: np.random.RandomState = check_random_state(random_state)
    except Exception:  # an error may also come from the repr of a strange object
        raise check.fail("random_state", random_state, must, remedy) from None
    return rng


def validated(estimator: Any, X: Any, *y: Any, **settings: Any) -> Any:
    """Run scikit-learn's ``validate_data`` after a few checks that it lacks; every error becomes an InvalidInput."""
    check.plain_table("X", X)
    for targets in y:
        (check.plain_table if settings.get("y_numeric") else check.unmasked)("y", targets)
    must = "X must be a table of numbers and y its targets" if y else "X must be a table of numbers with the columns of fit"
    with sklearn_errors_about(must), np.errstate(over="ignore", invalid="ignore"):
        return validate_data(estimator, X, *y, **settings)


def linear(table: Any, coef: NDArray[Any], intercept: Any) -> NDArray[Any]:
    """The predictions of a linear model. Rows so large that their predictions overflow are refused."""
    with np.errstate(over="ignore", invalid="ignore"):
        out = np.asarray(table @ coef.T + intercept)
    if not check.is_finite(out):
        raise InvalidInput("X must have finite predictions, got entries so large that these overflow; rescale it as in fit")
    return out


class _WrongType(InvalidInput, TypeError):
    """An InvalidInput that is also a TypeError, which the conventions of scikit-learn ask for in some cases."""


@contextmanager
def sklearn_errors_about(must: str) -> Iterator[None]:
    """Turn errors of scikit-learn, which always name X and y, into InvalidInput whose text begins with ``must``."""
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:  # the conversion of an object may raise anything
        kind = _WrongType if isinstance(error, TypeError) else InvalidInput
        raise kind(f"{must}: {_shortened(check.one_line(str(error)))}") from None


def _shortened(text: str) -> str:
    """Beginning and end of a long message: scikit-learn puts whole arrays between what is wrong and the remedy."""
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE // 2]} ... {text[-LONGEST_MESSAGE // 2 :]}"


def check_both(X_val: object, y_val: object) -> None:
    """Refuse X_val without y_val, and y_val without X_val."""
    if (X_val is None) != (y_val is None):
        missing, given = ("X_val", "y_val") if X_val is None else ("y_val", "X_val")
        raise InvalidInput(f"{missing} must be given together with {given}, got None; pass both or none of them")


def split_rows(rows: int, fraction: float, rng: np.random.RandomState, stratify: NDArray[Any] | None = None) -> Split:
    """Draw which rows are candidates and which are for validation."""
    try:
        candidates, held_out = train_test_split(np.arange(rows), test_size=fraction, random_state=rng, stratify=stratify)
    except ValueError:
        must = f"a fraction that leaves at least one of {rows} rows to choose from"
        raise check.fail("validation_fraction", fraction, must, "lower it, or pass X_val and y_val") from None
    return candidates, held_out


def four_tables(
    estimator: Any, table: Any, targets: Any, X_val: Any, y_val: Any, draw: Callable[[], Split], **of_y_val: Any
) -> tuple[NDArray[np.intp], tuple[Any, Any, Any, Any]]:
    """The numbers of the candidate rows, and the tables and targets to train on and to validate on.

    The validation set is the one that the caller passed or, without one, a split that ``draw`` makes. ``of_y_val`` holds settings
    of scikit-learn's ``check_array`` for y_val.
    """
    if X_val is None:
        candidates, held_out = draw()
        return candidates, (table[candidates], targets[candidates], table[held_out], targets[held_out])
    numeric = of_y_val.get("dtype", "numeric") is not None
    check.plain_table("X_val", X_val)
    (check.plain_table if numeric else check.unmasked)("y_val", y_val)
    sparse = "csr" if estimator.__sklearn_tags__().input_tags.sparse else False
    with sklearn_errors_about("X_val must be a table of numbers with the columns of X"):
        held = check_array(X_val, accept_sparse=sparse, dtype=np.float64, input_name="X_val", estimator=estimator)
        validate_data(estimator, X_val, reset=False, skip_check_array=True)
    kind = "numbers with the targets of y" if numeric else "classes"
    with sklearn_errors_about(f"y_val must be an array of {kind}"):
        held_targets = check_array(y_val, ensure_2d=False, input_name="y_val", estimator=estimator, **of_y_val)
    return np.arange(table.shape[0]), (table, targets, held, held_targets)


def choose_rows(
    estimator: Any, problem: Any, candidates: NDArray[np.intp], n_rows: int, rng: np.random.RandomState, **settings: Any
) -> tuple[Any, Any]:
    """Solve the problem, set the attributes about the rows on the estimator, and return the model trained on the rows chosen."""
    result = run_method(estimator, problem, method_seed(estimator.random_state, rng), "distilling", **settings)
    weights = result.theta.astype(np.float64)
    if not weights.any():
        raise InvalidInput(
            f'method="{estimator.method}" must leave a row to train on, got weights that all round to 0; '
            'use method="top-k" or "penalize", or a larger budget'
        )
    estimator.result_ = result
    estimator.weights_ = np.zeros(n_rows)
    estimator.weights_[candidates] = weights
    estimator.support_ = estimator.weights_ > 0
    estimator.alpha_ = problem.strength.value(result.lam)
    model: tuple[Any, Any] = problem.model(weights, result.lam)
    return model


class KeepsRows:
    """Gives estimators that choose rows the method by which pipelines of imbalanced-learn take them as a step."""

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Choose rows, and return those of ``support_``: for the next step of a pipeline of imbalanced-learn.

        In such a pipeline the steps that follow are trained on these rows, and predict all rows that they are given.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            The rows, as in ``fit``, but in memory.
        y : array-like of shape (n_samples,)
            Their targets.

        Returns
        -------
        X, y
            The rows kept and their targets in the types they came in, such as a DataFrame and a Series.
        """
        if is_dask(X) or is_dask(y):
            raise InvalidInput(
                "X and y of fit_resample must be in memory, got a Dask collection; call fit, and select the rows by support_"
            )
        rows = np.flatnonzero(self.fit(X, y).support_)  # type: ignore[attr-defined]
        return _safe_indexing(X, rows), _safe_indexing(y, rows)


def method_seed(random_state: object, rng: np.random.RandomState) -> int:
    """The seed of the method: ``random_state`` itself if it is a whole number, else a draw from ``rng``.

    A whole number is used as it is, although ``fit`` may have drawn a split with it: so a caller who makes the same split by hand
    gets the same result to the bit.
    """
    return int(random_state) if isinstance(random_state, Integral) else int(rng.randint(2**31 - 1))


def run_method(
    estimator: Any, problem: Problem, seed: int, label: str, theta0: NDArray[Any] | None = None, **settings: Any
) -> Result:
    """Run the method that the estimator names; ``settings`` are passed on to ``relax_and_penalize`` only."""
    common: dict[str, Any] = {
        "theta0": theta0,
        "seed": seed,
        "max_evaluations": estimator.max_evaluations,
        "time_limit": estimator.time_limit,
        "callbacks": [
            *(() if estimator.callbacks is None else estimator.callbacks),
            *([ProgressDisplay(label)] if estimator.verbose else []),
        ],
    }
    if estimator.method == "penalize":
        return relax_and_penalize(problem, **common, **settings)
    return relax_and_round(problem, rounding=BASELINES[estimator.method], **common)
