"""The upper level of data distillation as published, for comparison: sampled coordinates and a fixed step.

See docs/maths.md, "The published step".

In each step the published algorithm computes the first term of the gradient on a few random coordinates only, without its factor
1/m, and the second term on all coordinates. The value is exact. ``ProjectedGradient(step_size=...)`` makes the fixed step.
"""

from typing import Any

import numpy as np

from mixbin import _validate as check
from mixbin.problem import Evaluation, Floats, Warm
from mixbin.problems.distillation.ridge import RidgeDistillation


class PublishedGradient:
    """A ``RidgeDistillation`` with the gradient of the published algorithm in place of its own.

    Parameters
    ----------
    problem : RidgeDistillation
        The problem to evaluate. Its alpha must be fixed, as in the published experiments.
    batch : int, default 600
        How many coordinates get the first term of the gradient in each step.
    seed : int, default 0
        Draws the coordinates. The warm state carries the number of the draw from step to step, so that an evaluation stays a
        pure function.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    >>> ridge = mb.RidgeDistillation(X[:20], y[:20], X[20:], y[20:], budget=5, alpha=1.0)
    >>> published = mb.PublishedGradient(ridge, batch=10)
    >>> theta = ridge.theta_set.start()
    >>> published.evaluate(theta, np.empty(0)).value == ridge.evaluate(theta, np.empty(0)).value
    True
    """

    def __init__(self, problem: RidgeDistillation, batch: int = 600, seed: int = 0) -> None:
        if not isinstance(problem, RidgeDistillation):
            raise check.fail("problem", problem, "a RidgeDistillation")
        if problem.lam_set.size:
            raise check.fail("problem", problem, "a RidgeDistillation with a fixed alpha", "the published one has alpha=100")
        self.problem = problem
        self.batch = check.whole("batch", batch, low=1, high=problem.theta_set.size)
        self.seed = check.whole("seed", seed, low=0)
        self.theta_set, self.lam_set = problem.theta_set, problem.lam_set

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """The exact value, and the published gradient."""
        draw = 0 if warm is None or "draws" not in warm else int(warm["draws"])
        after: dict[str, Any] = {"draws": np.array(draw + 1)}
        value = self.problem.evaluate(theta, lam, gradient=False)
        if not gradient or not np.isfinite(value.value):
            return self.problem.evaluate(theta, lam, gradient=gradient)._replace(warm=after)
        first, second = self.problem.gradient_terms(theta, lam)
        chosen = np.random.default_rng([self.seed, draw]).choice(theta.size, self.batch, replace=False)
        grad = second
        grad[chosen] += first[chosen]
        return Evaluation(value.value, grad, np.empty(0), after, value.info)

    def fingerprint(self) -> str:
        """The fingerprint of the problem, together with ``batch`` and ``seed``."""
        return f"PublishedGradient {self.batch} {self.seed} {self.problem.fingerprint()}"
