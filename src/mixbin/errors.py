"""The errors and warnings of mixbin: each message names the argument, its value and the remedy."""


class InvalidInput(ValueError):
    """An argument cannot be used; raised before any work is done.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.Knapsack([1.0, -2.0], capacity=3.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    mixbin.errors.InvalidInput: weights must be positive, ... at index 1, got -2.0; leave entries without weight out ...
    """


class InfeasibleSet(InvalidInput):
    """A set that holds no binary point, such as a budget larger than its number of entries.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.Budget(5, 9)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    mixbin.errors.InfeasibleSet: k must be a whole number from 1 to 5, got 9; select from 1 to 5 entries, or a fraction ...
    """


class CannotWrite(OSError):
    """A file cannot be written: no space, no permission, too long a name. What was there before is still there.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> problem = mb.QuadraticProblem(np.eye(3), np.zeros(3), mb.Budget(3, 1))
    >>> result = mb.enumerate_binary(problem)
    >>> try:
    ...     result.save("a" * 300)  # no file can have so long a name
    ... except mb.CannotWrite as error:
    ...     print("nothing was written:", isinstance(error, OSError))
    nothing was written: True
    """


class DivergedError(ArithmeticError):
    """A value or gradient that is not a number, with the iteration where it appeared.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> problem = mb.FunctionProblem(lambda theta: (np.nan, theta), mb.Budget(4, 2))
    >>> mb.relax_and_penalize(problem, seed=0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    mixbin.errors.DivergedError: value is nan in evaluation 1 (start 0, first point); check the function ...
    """


class Unsolved(RuntimeError):
    """A run ended without an answer that can be used; the text says why and what to do."""


class ClusterLost(RuntimeError):
    """The Dask scheduler of a run is gone; from a checkpoint the run goes on with another.

    Examples
    --------
    >>> import mixbin as mb
    >>> try:  # here a fit on Dask collections, with checkpoint="run.checkpoint"
    ...     raise mb.ClusterLost("the scheduler is gone")
    ... except mb.ClusterLost as error:
    ...     print(error, "- start another one, and call fit again")
    the scheduler is gone - start another one, and call fit again
    """


class WorkersLost(ClusterLost):
    """Workers have died again and again under the same blocks."""


class CheckpointMismatch(InvalidInput):
    """A checkpoint that belongs to another problem, other settings or another version.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import mixbin as mb
    >>> first, other = (mb.QuadraticProblem(np.eye(3), c * np.ones(3), mb.Budget(3, 1)) for c in (1.0, 2.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "run.checkpoint"
    ...     _ = mb.relax_and_penalize(first, seed=0, checkpoint=file)
    ...     try:
    ...         mb.relax_and_penalize(other, seed=0, checkpoint=file)
    ...     except mb.CheckpointMismatch:
    ...         print("another problem: pass another file")
    another problem: pass another file
    """


class ConvergenceWarning(UserWarning):
    """An answer is returned, but a solver stopped before its own test of convergence held.

    Examples
    --------
    >>> import warnings
    >>> import mixbin as mb
    >>> with warnings.catch_warnings():  # answers from loose fits are errors in this block
    ...     warnings.simplefilter("error", mb.ConvergenceWarning)
    ...     problem = mb.FunctionProblem(lambda theta: (theta.sum(), theta * 0 + 1), mb.Budget(4, 2))
    ...     print(mb.relax_and_penalize(problem, seed=0).status)
    BINARY
    """


class GradientWarning(UserWarning):
    """Differences of the value contradict the gradient of a problem near the first point of a run.

    Examples
    --------
    >>> import warnings
    >>> import mixbin as mb
    >>> problem = mb.FunctionProblem(lambda theta: ((theta**2).sum(), theta), mb.Hypercube(3))  # 2 * theta would be right
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = mb.relax_and_penalize(problem, seed=0)
    >>> [it.category.__name__ for it in caught]
    ['GradientWarning']
    """
