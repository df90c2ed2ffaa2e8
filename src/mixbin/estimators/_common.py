"""What the estimators share: splitting, solving, how the baselines round, random numbers, whose argument an error is about."""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from mixbin import _validate as check
from mixbin.errors import InvalidInput
from mixbin.methods import relax_and_penalize, relax_and_round
from mixbin.problem import Problem
from mixbin.progress import ProgressDisplay
from mixbin.result import Result

ROUNDING: dict[str, Literal["top-k", "simple"] | None] = {"top-k": "top-k", "simple": "simple", "relax": None}
"""How each baseline rounds."""


def generator(random_state: object) -> np.random.RandomState:
    """scikit-learn's generator for a ``random_state``."""
    must, remedy = "None, a whole number from 0 to 2**32 - 1 or a RandomState", "pass a seed such as 0"
    if isinstance(random_state, (bool, np.bool_)):
        raise check.fail("random_state", random_state, must, remedy)
    try:
        rng: np.random.RandomState = check_random_state(random_state)
    except Exception:  # also what the repr of a strange object raises
        raise check.fail("random_state", random_state, must, remedy) from None
    return rng


def validated(estimator: Any, X: Any, *y: Any, **settings: Any) -> Any:
    """scikit-learn's ``validate_data``, before it what scikit-learn takes without a word; all errors are InvalidInput."""
    check.plain_table("X", X)
    for targets in y:
        (check.plain_table if settings.get("y_numeric") else check.unmasked)("y", targets)
    must = "X must be a table of numbers and y its targets" if y else "X must be a table of numbers with the columns of fit"
    with saying(must), np.errstate(over="ignore", invalid="ignore"):
        return validate_data(estimator, X, *y, **settings)


def linear(table: Any, coef: NDArray[Any], intercept: Any) -> NDArray[Any]:
    """What a linear model says of rows; rows so far away that it overflows are refused."""
    with np.errstate(over="ignore", invalid="ignore"):
        out = np.asarray(table @ coef.T + intercept)
    if not check.is_finite(out):
        raise InvalidInput("X must have finite predictions, got entries so large that these overflow; rescale it as in fit")
    return out


class _WrongType(InvalidInput, TypeError):
    """Where scikit-learn's conventions ask for a TypeError."""


@contextmanager
def saying(must: str) -> Iterator[None]:
    """Turn scikit-learn's errors, which speak of X and y, into ours; ``must`` says first which argument was meant."""
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:  # whatever an object's own conversion raises
        kind = _WrongType if isinstance(error, TypeError) else InvalidInput
        raise kind(f"{must}: {check.one_line(str(error))}") from None


def check_both(X_val: object, y_val: object) -> None:
    """A validation set is given whole or not at all."""
    if (X_val is None) != (y_val is None):
        missing, given = ("X_val", "y_val") if X_val is None else ("y_val", "X_val")
        raise InvalidInput(f"{missing} must be given together with {given}, got None; pass both or none of them")


def split_rows(
    rows: int, fraction: float, rng: np.random.RandomState, stratify: NDArray[Any] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The candidate rows and those to validate on."""
    try:
        candidates, held_out = train_test_split(np.arange(rows), test_size=fraction, random_state=rng, stratify=stratify)
    except ValueError:
        must = f"a fraction that leaves at least one of {rows} rows to choose from"
        raise check.fail("validation_fraction", fraction, must, "lower it, or pass X_val and y_val") from None
    return candidates, held_out


def check_some_row(method: str, weights: NDArray[Any]) -> None:
    """A method must leave something to train on."""
    if not weights.any():
        raise InvalidInput(
            f'method="{method}" must leave a row to train on, got weights that all round to 0; '
            'use method="top-k" or "penalize", or a larger budget'
        )


def solve(estimator: Any, problem: Problem, rng: np.random.RandomState, **settings: Any) -> Result:
    """The estimator's method on its problem; ``settings`` are further ones of relax_and_penalize."""
    # An int seeds the method as it is, whether or not a split was drawn before: splitting by hand gives the same bits.
    random_state = estimator.random_state
    seed = int(random_state) if isinstance(random_state, Integral) else int(rng.randint(2**31 - 1))
    common: dict[str, Any] = {
        "seed": seed,
        "max_evaluations": estimator.max_evaluations,
        "callbacks": [ProgressDisplay("distilling")] if estimator.verbose else [],
    }
    if estimator.method == "penalize":
        return relax_and_penalize(problem, **common, **settings)
    return relax_and_round(problem, rounding=ROUNDING[estimator.method], **common)
