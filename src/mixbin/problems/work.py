"""What a search costs, counted where it computes: multiply-adds, in units of one evaluation with gradient.

Counted, not timed, so that the cost of a search is the same on every machine and in every run.
"""

import math


class OutOfWork(Exception):
    """A signal to a search: what comes next would cost more than it may; the moves made so far stand."""


class Work:
    """The multiply-adds of one search.

    Parameters
    ----------
    unit : int
        Those of one evaluation with gradient.
    max_cost : float
        How many evaluations the search may be worth at most.
    """

    def __init__(self, unit: int = 1, max_cost: float = math.inf) -> None:
        self.done, self.unit = 0, max(1, unit)
        self.used_up = False
        self._most = max_cost * self.unit

    def add(self, products: int) -> None:
        """Count ``products`` multiply-adds before they are computed; OutOfWork if they exceed what is left, and ever after."""
        self.used_up = self.used_up or self.done + products > self._most
        if self.used_up:
            raise OutOfWork
        self.done += products

    def note(self, products: int) -> None:
        """Count multiply-adds whose number was not known before they were computed."""
        self.done += products

    @property
    def left(self) -> float:
        """The multiply-adds that may still be computed."""
        return self._most - self.done

    @property
    def cost(self) -> int:
        """How many evaluations the search was worth so far, rounded up, at least 1."""
        return max(1, -(-self.done // self.unit))
