"""The upper level of choosing rows for a classifier: how a model is judged by rows with labels."""

from typing import NamedTuple

import numpy as np

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.errors import InvalidInput
from mixbin.problems.distillation.multinomial import Codes, losses

DEFAULT_TEMPERATURE = 3.0
"""``temperature=None`` means this number with the cross entropy. At 1 the few rows near the border of two classes dominate."""


class Judge(NamedTuple):
    """The weighted mean loss of a model over some rows, plus penalty/2 |B|^2."""

    loss: str
    temperature: float | None
    balanced: bool
    """Whether all classes count alike."""
    penalty: float = 0.0

    @classmethod
    def of(cls, judge_loss: object, temperature: object, balanced: object) -> "Judge":
        """The settings, checked; the penalty is 0."""
        weight = check.flag("balanced", balanced)
        loss: str = check.choice("judge_loss", judge_loss, ("bounded", "cross-entropy"))
        if loss == "bounded":
            if temperature is not None:
                raise InvalidInput(
                    f'temperature must be None with judge_loss="bounded", got {check.shown(temperature)}; a temperature belongs '
                    'to judge_loss="cross-entropy": pass that, too, or leave temperature out'
                )
            return cls(loss, None, weight)
        if temperature is None:
            return cls(loss, DEFAULT_TEMPERATURE, weight)
        remedy = "1 is the plain cross entropy"
        return cls(loss, check.real("temperature", temperature, low=1e-6, high=1e6, remedy=remedy), weight)

    def weights(self, y: Codes) -> Floats:
        """The weight of each row: the same for all or, if balanced, such that all classes among them have the same total."""
        if not self.balanced:
            return np.full(len(y), 1.0 / len(y))
        counts = np.bincount(y)
        return np.asarray(1.0 / (np.count_nonzero(counts) * counts[y]))

    def __call__(self, B: Floats, Z: Floats, y: Codes, weights: Floats, gradient: bool) -> tuple[float, Floats | None]:
        """The value at the model B and, with ``gradient``, its derivative in B."""
        own = np.arange(len(y)), y
        scale = self.temperature or 1.0
        entropy, P = losses(Z @ (B.T / scale), y)
        # 1 - p from log p, which keeps the digits of a loss near 0.
        value = float(weights @ (entropy if self.loss == "cross-entropy" else -np.expm1(-entropy)))
        value += 0.5 * self.penalty * float(np.vdot(B, B))
        if not gradient:
            return value, None
        # d(-log p_y)/d score_k = p_k - [k = y], and d(1 - p_y)/d score_k = p_y (p_k - [k = y]).
        slope = weights / scale if self.loss == "cross-entropy" else weights * P[own]
        P[own] -= 1.0
        P *= slope[:, None]
        return value, np.asarray(P.T @ Z + self.penalty * B)
