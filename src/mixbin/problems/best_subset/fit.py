"""The result of training on some columns, and what best subset asks of a loss."""

from typing import NamedTuple, Protocol

from mixbin._validate import Floats
from mixbin.problem import Indices
from mixbin.problems.best_subset.columns import Columns
from mixbin.problems.best_subset.swaps import QuadraticModel


class Fit(NamedTuple):
    """A model trained at one theta."""

    value: float
    support: Indices
    """The entries with theta > 0; all other coefficients are 0."""
    coef: Floats
    """The coefficients on the support, of shape (targets, len(support))."""
    intercept: float
    """The constant of a logistic regression on centred columns; 0 for squared loss, whose targets are centred, too."""
    residual: Floats
    """A dual point of shape (n, targets): y - X w for squared loss, y - p for logistic loss."""


class Loss(Protocol):
    """What best subset asks of a loss."""

    columns: Columns
    gamma: float
    n_targets: int
    exact_model: bool
    """Whether the exchanges of ``model_of`` are exact."""

    def with_gamma(self, gamma: float) -> "Loss":
        """The loss on the same data with another ridge weight."""

    def fit(self, theta: Floats) -> Fit:
        """Train with weights ``theta`` of the features."""

    def gains(self, residual: Floats) -> Floats:
        """For each feature, how much its theta lowers the dual value at this point: minus the gradient of G."""

    def bound(self, residual: Floats, most: float) -> float:
        """A lower bound of G at all theta for which the sum of theta_j gains_j is at most ``most``."""

    def affordable(self, residual: Floats, cutoff: float) -> float:
        """The largest ``most`` at which ``bound`` is still at least ``cutoff``."""

    def model_of(self, support: Indices, gamma: float | None = None) -> QuadraticModel:
        """G around the model with these features, as a quadratic function of all coefficients; ``gamma`` may differ."""

    def values(self, supports: Indices) -> Floats:
        """G for each row of ``supports``, which holds the numbers of the features of one model."""

    def lowest(self, supports: Indices, coef: Floats) -> tuple[int, float]:
        """The row of ``supports`` with the lowest G, and this G; training may start from the rows of ``coef``."""
