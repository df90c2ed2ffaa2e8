"""The errors and warnings of mixbin: each message names the argument, its value and the remedy."""


class InvalidInput(ValueError):
    """An argument cannot be used; raised before any work is done."""


class InfeasibleSet(InvalidInput):
    """A set that holds no binary point, such as a budget larger than its number of entries."""


class CannotWrite(OSError):
    """A file cannot be written: no space, no permission, too long a name. What was there before is still there."""


class DivergedError(ArithmeticError):
    """A value or gradient that is not a number, with the iteration where it appeared."""


class Unsolved(RuntimeError):
    """A run ended without an answer that can be used; the text says why and what to do."""


class ClusterLost(RuntimeError):
    """The Dask scheduler of a run is gone; from a checkpoint the run goes on with another."""


class WorkersLost(ClusterLost):
    """Workers have died again and again under the same blocks."""


class CheckpointMismatch(InvalidInput):
    """A checkpoint that belongs to another problem, other settings or another version."""


class ConvergenceWarning(UserWarning):
    """An answer is returned, but a solver stopped before its own test of convergence held."""


class GradientWarning(UserWarning):
    """Differences of the value contradict the gradient of a problem near the first point of a run."""
