"""What ``RidgeDistillation`` refuses about its settings and tables, and the range of ``alpha=None``."""

import numpy as np

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.errors import InvalidInput

DEFAULT_ALPHA_RANGE = (1e-6, 1e2)
"""``alpha=None`` means this range times the mean variance of the columns of X."""
LARGEST_SQUARE = 1e120
"""Columns whose squares exceed this are refused: gradients multiply such squares, and solvers square the gradients."""


def checked_alpha(alpha: object) -> float | tuple[float, float] | None:
    """A number, a range, or None for the default range."""
    if alpha is None:
        return None
    remedy = "pass a number to fix it, a pair (low, high) to optimise it, or None"
    return check.positive_or_range("alpha", alpha, remedy)


def checked_outer_alpha(outer_alpha: object) -> float | None:
    """The strength of the penalty in the upper level; None if cross-validation is to choose it."""
    remedy = 'pass 0 for none, a number in the units of alpha, or "cv"'
    if isinstance(outer_alpha, str):
        if outer_alpha != "cv":
            raise check.fail("outer_alpha", outer_alpha, 'a number of at least 0 or "cv"', remedy)
        return None
    return check.real("outer_alpha", outer_alpha, low=0, remedy=remedy)


def checked_outer_coef(outer_coef: object, outer_alpha: float | None, shape: tuple[int, ...]) -> Floats | None:
    """The prior coefficients as an array of shape (e, d)."""
    if outer_coef is None:
        return None
    if outer_alpha == 0:
        raise InvalidInput('outer_coef has no use with outer_alpha = 0; pass outer_alpha="cv" or a number above 0')
    return np.reshape(check.array("outer_coef", outer_coef, shape=shape), (-1, shape[-1]))


def check_squares(names: str, squares: Floats) -> None:
    """Refuse columns whose squares overflow, or would in a product."""
    if not check.is_finite(squares) or squares.max() > LARGEST_SQUARE:
        must = f"squares that fit in float64, with room for their products ({LARGEST_SQUARE:g})"
        raise InvalidInput(f"{names} must have {must}, got columns that overflow; rescale them")


def default_alpha_range(variances: Floats) -> tuple[float, float]:
    """The range of ``alpha=None`` for columns that are not standardised."""
    scale = float(variances.mean())
    if scale <= 0:
        raise InvalidInput("alpha=None needs a column of X that varies, got constant columns only; pass a number or check X")
    low, high = (bound * scale for bound in DEFAULT_ALPHA_RANGE)
    if low <= 0:
        raise InvalidInput(f"X must have columns of a larger variance than {scale:g}, which is lost in rounding; rescale them")
    return low, high
