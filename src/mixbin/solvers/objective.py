"""The objective G + phi/eps in the form that solvers use: G and phi as separate numbers, lam as a point of a unit box."""

from collections.abc import Callable

import numpy as np

from mixbin.checked_problem import CheckedProblem
from mixbin.penalties import Penalty
from mixbin.problem import Evaluation, Floats, Improved, Indices, Warm


class OutOfEvaluations(Exception):
    """Raised before an evaluation that would exceed a limit of the run; the run then keeps the last accepted state."""


class Objective:
    """P(eps): min G(theta, lam) + phi(theta)/eps; eps = inf is the plain relaxation.

    Solvers see lam through ``u`` in [0, 1]^q, where ``problem.lam_set.decode(u)`` is lam.
    """

    def __init__(
        self, problem: CheckedProblem, penalty: Penalty, epsilon: float = np.inf, may_evaluate: Callable[[], bool] = lambda: True
    ) -> None:
        self.problem, self.penalty, self.epsilon, self.may_evaluate = problem, penalty, epsilon, may_evaluate

    def evaluate(self, theta: Floats, u: Floats, warm: Warm | None, gradient: bool = True) -> Evaluation:
        """G and its gradients in (theta, u)."""
        lam = self._decoded(u)
        got = self.problem.evaluate(theta, lam, warm=warm, gradient=gradient)
        if got.grad_lam is None:
            return got
        return got._replace(grad_lam=self.problem.lam_set.encode_gradient(lam, got.grad_lam))

    def evaluate_terms(self, theta: Floats, u: Floats, terms: Indices, warm: Warm | None) -> Evaluation:
        """The mean of these terms of a finite sum, with gradients in (theta, u)."""
        lam = self._decoded(u)
        got = self.problem.evaluate_terms(theta, lam, terms, warm=warm)
        assert got.grad_lam is not None
        return got._replace(grad_lam=self.problem.lam_set.encode_gradient(lam, got.grad_lam))

    def evaluate_moves(self, theta: Floats, u: Floats, off: Indices, on: Indices, warm: Warm | None) -> Floats:
        """G after each of these moves, for problems with ``evaluate_moves``."""
        return self.problem.evaluate_moves(theta, self._decoded(u), off, on, warm=warm)

    def improve(self, theta: Floats, u: Floats, warm: Warm | None) -> Improved:
        """Single moves found by the problem's own search, for problems with ``improve``."""
        return self.problem.improve(theta, self._decoded(u), warm=warm)

    def _decoded(self, u: Floats) -> Floats:
        if not self.may_evaluate():
            raise OutOfEvaluations
        return self.problem.lam_set.decode(u)

    def project_theta(self, x: Floats) -> Floats:
        """The nearest point of Theta."""
        return self.problem.theta_set.project(x)

    def oracle_theta(self, g: Floats) -> Floats:
        """A point of Theta that minimises <g, .>."""
        return self.problem.theta_set.linear_oracle(g)

    def project_lam(self, u: Floats) -> Floats:
        """The nearest point of the unit box."""
        return np.asarray(np.clip(u, 0.0, 1.0))

    def phi(self, theta: Floats) -> float:
        """The penalty, unweighted."""
        return self.penalty.value(theta)

    def total(self, value: float, phi: float) -> float:
        """G + phi/eps."""
        return value + phi / self.epsilon

    def slope(self, grad_theta: Floats, theta: Floats) -> Floats:
        """The gradient of G + phi/eps in theta."""
        return grad_theta if self.epsilon == np.inf else self.penalty.add_gradient(grad_theta, theta, 1.0 / self.epsilon)

    def scale(self, grad_theta: Floats) -> float:
        """The largest entry, in absolute value, of the part of the gradient along which theta can move within the set."""
        return self.problem.theta_set.tangent_size(grad_theta)


class FixedTheta(Objective):
    """G(theta, .) at one binary theta, to minimise over lam alone. Solvers are given a theta without entries."""

    def __init__(self, parent: Objective, theta: Floats) -> None:
        super().__init__(parent.problem, parent.penalty, np.inf, parent.may_evaluate)
        self.theta = theta

    def evaluate(self, theta: Floats, u: Floats, warm: Warm | None, gradient: bool = True) -> Evaluation:
        """G and its gradient in u."""
        got = super().evaluate(self.theta, u, warm, gradient)
        return got._replace(grad_theta=np.empty(0))

    def evaluate_terms(self, theta: Floats, u: Floats, terms: Indices, warm: Warm | None) -> Evaluation:
        """The mean of these terms of a finite sum, with its gradient in u."""
        return super().evaluate_terms(self.theta, u, terms, warm)._replace(grad_theta=np.empty(0))

    def project_theta(self, x: Floats) -> Floats:
        """``x`` unchanged: there is no theta to project."""
        return x

    def oracle_theta(self, g: Floats) -> Floats:
        """``g`` unchanged: there is no theta to choose."""
        return g

    def scale(self, grad_theta: Floats) -> float:
        """0: there is no theta, so its gradient has no scale."""
        return 0.0
