"""The argument checks of the whole library, whose messages all name the argument, its value and the remedy in the same form."""

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin.errors import InvalidInput

Floats = NDArray[np.float64]

FEW_ENTRIES = 4096
"""Up to this many entries, a temporary array costs less than a second pass."""
LARGEST_SIZE = 2**36
"""theta may have at most this many entries, which take half a terabyte."""


def shown(value: object) -> str:
    """A bad value as a short text for an error message."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    try:
        text = one_line(repr(value))
    except Exception:  # a user's __repr__ may raise anything
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def listed(names: Iterable[Hashable], most: int = 6) -> str:
    """The first of some names for a message, and how many more there are; long names are cut."""
    plain = [name.item() if isinstance(name, np.generic) else name for name in names]
    first = ", ".join(repr(f"{it[:57]}..." if isinstance(it, str) and len(it) > 60 else it) for it in plain[:most])
    return first if len(plain) <= most else f"{first} and {len(plain) - most} more"


def one_line(text: str) -> str:
    """The text on one line, without the memory addresses of objects, which tell nothing and differ from run to run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(text.split()))


def fail(name: str, value: object, must: str, remedy: str = "", error: type[InvalidInput] = InvalidInput) -> InvalidInput:
    """The error for argument ``name``. It is returned, not raised: type checkers see the caller's ``raise``."""
    return error(f"{name} must be {must}, got {shown(value)}" + (f"; {remedy}" if remedy else ""))


def real(
    name: str,
    value: object,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    open_low: bool = False,
    open_high: bool = False,
    remedy: str = "",
) -> float:
    """``value`` as a float, if it is a finite number between ``low`` and ``high``."""
    if type(value) is float and low < value < high:
        return value
    left, right = ("(" if open_low else "["), (")" if open_high else "]")
    bounds = "" if low == -np.inf and high == np.inf else f" in {left}{low:g}, {high:g}{right}"
    if high == np.inf and low > -np.inf:
        bounds = f" {'greater than' if open_low else 'of at least'} {low:g}"
    must = f"a finite number{bounds}"
    # True and False are numbers to Python; as an argument they are most likely a mistake.
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise fail(name, value, must, remedy)
    try:
        number = float(value)
    except OverflowError:
        raise fail(name, value, must, remedy) from None
    inside = (number > low if open_low else number >= low) and (number < high if open_high else number <= high)
    if not np.isfinite(number) or not inside:
        raise fail(name, value, must, remedy)
    return number


def positive_or_range(name: str, value: object, remedy: str) -> float | tuple[float, float]:
    """``value`` as a float, if it is a number above 0, or as a tuple (low, high), if it is a pair of such numbers."""
    if not isinstance(value, (tuple, list, np.ndarray)) or np.ndim(value) == 0:
        return real(name, value, low=0, open_low=True, remedy=remedy)
    if len(value) != 2:
        raise fail(name, value, "a pair (low, high)", remedy)
    low, high = (real(f"{name}[{i}]", bound, low=0, open_low=True, remedy=remedy) for i, bound in enumerate(value))
    if low >= high:
        raise fail(name, value, "a pair with low below high", "swap them, or pass one number to fix it")
    return low, high


def whole(
    name: str, value: object, *, low: int, high: int | None = None, remedy: str = "", error: type[InvalidInput] = InvalidInput
) -> int:
    """``value`` as an int, if it is a whole number from ``low`` to ``high``; ``error`` is for whole numbers out of range."""
    must = f"a whole number of at least {low}" if high is None else f"a whole number from {low} to {high}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise fail(name, value, must, remedy)
    number = int(value)
    if number < low or (high is not None and number > high):
        raise fail(name, value, must, remedy, error)
    return number


def flag(name: str, value: object) -> bool:
    """``value`` as a bool; only True and False are accepted, not 0, 1 or None."""
    if not isinstance(value, (bool, np.bool_)):
        raise fail(name, value, "True or False")
    return bool(value)


def choice(name: str, value: object, options: Sequence[Any]) -> Any:
    """``value``, if it is one of ``options``."""
    for option in options:
        # Compare the types first: an array == a string would give an array, or a warning.
        if value is option or (type(value) is type(option) and value == option):
            return option
    raise fail(name, value, "one of " + ", ".join(repr(option) for option in options))


def is_text(value: object, text: str) -> bool:
    """Whether ``value`` is this text; comparing an array or pandas.NA with a text gives an array or NA instead of an answer."""
    return isinstance(value, str) and value == text


def is_finite(x: Floats) -> bool:
    """Whether all entries are finite. For large arrays, min and max need no temporary array as np.isfinite(x) does."""
    if x.size <= FEW_ENTRIES:
        return bool(np.isfinite(x).all())
    return bool(np.isfinite(x.min()) and np.isfinite(x.max()))


def array(
    name: str,
    value: object,
    *,
    shape: tuple[int, ...] | None = None,
    ndim: int | None = None,
    remedy: str = "",
    keep_single: bool = False,
) -> Floats:
    """``value`` as a finite float64 array of that shape.

    A float64 array is returned as it is, not copied; with ``keep_single`` a float32 array too.
    """
    # What solvers pass, many times in a run: nothing to convert, and no message to prepare.
    if type(value) is np.ndarray and value.dtype == np.float64 and value.shape == shape and ndim is None and is_finite(value):
        return value
    plain_table(name, value)
    must = "an array of numbers" if shape is None else f"an array of numbers of shape {shape}"
    if ndim is not None:
        must = f"an array of numbers with {ndim} dimension{'s' if ndim != 1 else ''}"
    try:
        raw = np.asarray(value)
        # Refuse text, even "1.5": a column of texts is a mistake in the user's table.
        if raw.dtype.kind not in "buif":
            raise TypeError
        with np.errstate(over="ignore"):  # a longdouble may overflow; the infinity is reported below
            x = raw if keep_single and raw.dtype == np.float32 else raw.astype(np.float64, copy=False)
    except Exception:
        # A user's __array__ may raise anything; whatever it is, the value is no array of numbers.
        raise fail(name, value, must, remedy) from None
    if (shape is not None and x.shape != shape) or (ndim is not None and x.ndim != ndim):
        raise fail(name, x, must, remedy)
    if not is_finite(x):
        position = tuple(int(i) for i in np.argwhere(~np.isfinite(x))[0])
        where = position[0] if len(position) == 1 else position
        raise InvalidInput(
            f"{name} must be finite, got {x[position]} at index {where}; "
            + (remedy or "remove or replace missing and infinite values")
        )
    return x


def unmasked(name: str, value: object) -> None:
    """Refuse an array with masked entries, for which np.asarray returns the numbers below the mask."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        masked = int(np.count_nonzero(np.ma.getmaskarray(value)))
        raise InvalidInput(
            f"{name} must have a value in every entry, got {masked} masked ones; fill them, as by {name}.filled(0.0), or leave "
            "their rows out"
        )


def plain_table(name: str, value: object) -> None:
    """Refuse what NumPy would silently take for numbers or misread: masked entries, dates, duplicate columns, broken indices."""
    unmasked(name, value)
    if type(value).__module__.startswith("scipy.sparse"):
        _check_indices(name, value)
    for column, dtype in _dtypes(name, value):
        if getattr(dtype, "kind", "") in ("M", "m"):
            what = f"dtype {dtype}" if column is None else f"column {column!r} of dtype {dtype}"
            raise InvalidInput(f"{name} must hold numbers, got {what}; turn it into numbers or leave it out")


def _dtypes(name: str, value: Any) -> list[tuple[object, object]]:
    """(column, dtype) for each column of a dataframe, or (None, dtype) for an array or series."""
    columns, dtypes = getattr(value, "columns", None), getattr(value, "dtypes", None)
    if columns is None or not isinstance(dtypes, Iterable):
        return [(None, getattr(value, "dtype", None))]
    names = list(columns)
    if twice := [column for i, column in enumerate(names) if column in names[:i]]:
        raise InvalidInput(f"{name} must name its columns differently, got {twice[0]!r} twice; rename one of them")
    return list(zip(names, dtypes, strict=False))


def _check_indices(name: str, value: Any) -> None:
    """Refuse a sparse matrix with wrong indices: SciPy's products would read and write outside of their memory."""
    try:
        if value.format in ("csr", "csc", "bsr"):
            value.check_format(full_check=True)
            # SciPy leaves this out if the matrix seems to have no entries.
            if np.any(np.diff(value.indptr) < 0):
                raise ValueError("indptr must be a non-decreasing sequence")
        elif value.format == "coo" and value.ndim == 2:
            for index, side in zip((value.row, value.col), value.shape, strict=True):
                if index.size and not (index.min() >= 0 and index.max() < side):
                    raise ValueError("an index lies outside of the shape")
    except ValueError as error:
        raise InvalidInput(
            f"{name} must be a valid sparse matrix, got one with broken indices ({error}); build it again"
        ) from None


def shape_that_fits(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """``shape``, if an array of that shape can fit into a machine's memory."""
    if math.prod(shape) > LARGEST_SIZE:
        raise fail(name, shape, f"at most {LARGEST_SIZE} entries in all", "no machine holds more")
    return shape


def loose_array(name: str, value: object, must: str) -> NDArray[Any]:
    """``value`` as an array of any dtype; lists of different lengths are refused, because they form no array."""
    unmasked(name, value)
    try:
        return np.asarray(value)
    except Exception:  # a user's __array__ may raise anything
        raise fail(name, value, must) from None


def generator(name: str, seed: object) -> np.random.Generator:
    """The NumPy generator for a seed, which is None, a whole number of at least 0, or a generator (returned as it is)."""
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is None:
        return np.random.default_rng()
    return np.random.default_rng(whole(name, seed, low=0, remedy="pass None, a seed such as 0, or a numpy Generator"))


def binary(name: str, value: object, *, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """``value`` as a boolean array of that shape; numbers must be exactly 0 or 1."""
    if isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.shape == shape:
        return value
    x = array(name, value, shape=shape)
    ones = np.asarray(x == 1.0)
    if not np.all(ones | (x == 0.0)):
        raise fail(name, value, "binary", "every entry must be 0 or 1; round it with vertex first")
    return ones
