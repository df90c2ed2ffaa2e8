"""The object under test, and the one error that says which promise it breaks, at which input, and what was expected."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_SHOWN = 24
"""Arrays of more entries than this are shown by their first and last ones; the seed in the message brings the others back."""


class ConformanceError(AssertionError):
    """A class breaks a promise of its contract: the message names the promise, the input, what was expected and what came.

    Examples
    --------
    >>> import mixbin as mb
    >>> class Wrong(mb.Hypercube):
    ...     def project(self, x):
    ...         return super().project(x) + 1
    >>> try:
    ...     mb.testing.check_set(Wrong(3))
    ... except mb.testing.ConformanceError as error:
    ...     print(str(error).splitlines()[0])
    Wrong.project must return a point of the set.
    """


class Subject:
    """An object under test: calls its methods as the engine does, and tells which promise a wrong answer breaks.

    Parameters
    ----------
    made : object
        A set, a solver or a problem.
    seed : int
        What the inputs were drawn from; every message repeats it.
    """

    def __init__(self, made: Any, seed: int) -> None:
        self.made, self.seed, self.name = made, seed, type(made).__name__

    def call(self, method: str, inputs: Mapping[str, Any], **keywords: Any) -> Any:
        """The answer of ``method`` to these inputs, by position; its arrays are read-only, as those of the engine."""
        try:
            return getattr(self.made, method)(*(locked(value) for value in inputs.values()), **keywords)
        except ConformanceError:
            raise
        except Exception as error:
            raise self.raised(method, error, inputs) from error

    def raised(self, method: str, error: Exception, inputs: Mapping[str, Any]) -> ConformanceError:
        """The error for a method that raised where it should have answered."""
        if isinstance(error, ValueError) and "read-only" in str(error):
            promise, expected = "must not write into its arguments", "arguments left as they are; work on a copy of them"
        else:
            promise, expected = "must take this input", "an answer"
        return self.broken(method, promise, inputs, expected, f"{type(error).__name__}: {error}")

    def require(
        self, holds: bool | np.bool_, method: str, promise: str, inputs: Mapping[str, Any], expected: object, got: object
    ) -> None:
        """Raise unless ``holds``."""
        if not holds:
            raise self.broken(method, promise, inputs, expected, got)

    def broken(self, method: str, promise: str, inputs: Mapping[str, Any], expected: object, got: object) -> ConformanceError:
        """The error for a broken promise, to be raised by the caller."""
        lines = [f"{self.name}.{method} {promise}." if method else f"{self.name} {promise}."]
        lines += [f"  input     {name} = {shown(value)}" for name, value in inputs.items()]
        lines += [f"  expected  {shown(expected)}", f"  got       {shown(got)}", f"  seed      {self.seed}"]
        return ConformanceError("\n".join(lines))

    def array(
        self, method: str, got: object, inputs: Mapping[str, Any], shape: tuple[int, ...], dtype: type[Any]
    ) -> NDArray[Any]:
        """``got`` as an array, which it must be: of this shape and dtype, and finite."""
        expected = f"a NumPy array of shape {shape} and dtype {np.dtype(dtype)}"
        promise = "must return an array of the promised shape and dtype"
        if not isinstance(got, np.ndarray):
            raise self.broken(method, promise, inputs, expected, f"a {type(got).__name__}: {shown(got)}")
        if got.shape != shape or got.dtype != dtype:
            raise self.broken(method, promise, inputs, expected, f"an array of shape {got.shape} and dtype {got.dtype}")
        if not np.isfinite(got).all():
            raise self.broken(method, "must return finite numbers", inputs, "finite entries", got)
        return got

    def number(self, method: str, got: object, inputs: Mapping[str, Any]) -> float:
        """``got`` as a float, which must be one number; infinity is a number, NaN is none."""
        try:
            # Arrays without dimensions, of NumPy or another library, count as numbers; text and truth values do not.
            if np.ndim(got) or isinstance(got, (bool, np.bool_, str, bytes)):  # type: ignore[arg-type]
                raise TypeError
            value = float(got)  # type: ignore[arg-type]
        except Exception:  # whatever an object's own conversion raises
            value = np.nan
        if np.isnan(value):
            raise self.broken(method, "must return one real number", inputs, "a float that is not NaN", got)
        return value


def locked(value: Any) -> Any:
    """A copy of an array that cannot be written to; anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    copy = value.copy()
    copy.flags.writeable = False
    return copy


def shown(value: object) -> str:
    """A value as a message shows it: text as it is, short arrays with all their digits, long ones by their ends."""
    if isinstance(value, str):
        return value
    if isinstance(value, np.ndarray):
        with np.printoptions(threshold=MOST_SHOWN, floatmode="unique", linewidth=10_000):
            text = re.sub(r"\s*([\[\],])\s*", r"\1", np.array2string(value, separator=",")).replace(",", ", ")
        return text if value.size <= MOST_SHOWN else f"{text} of shape {value.shape}"
    return str(value) if isinstance(value, np.generic) else repr(value)
