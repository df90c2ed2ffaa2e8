"""Count what a search costs: its multiply-adds, in units of one evaluation with gradient.

The cost is counted, not timed, so that it is the same on every machine and in every run.
"""

import math


class OutOfWork(Exception):
    """Ends a search whose next computation would exceed its limit. The moves made so far remain valid."""


class Work:
    """The multiply-adds of one search.

    Parameters
    ----------
    unit : int
        The multiply-adds of one evaluation with gradient.
    max_cost : float
        The limit of the search, in evaluations with gradient.
    """

    def __init__(self, unit: int = 1, max_cost: float = math.inf) -> None:
        self.done, self.unit = 0, max(1, unit)
        self.used_up = False
        self._most = max_cost * self.unit

    def add(self, products: int) -> None:
        """Count ``products`` multiply-adds that are about to be computed.

        Raises OutOfWork if they exceed the limit, and from then on in every call: a search cannot go on after its limit.
        """
        self.used_up = self.used_up or self.done + products > self._most
        if self.used_up:
            raise OutOfWork
        self.done += products

    def note(self, products: int) -> None:
        """Count multiply-adds whose number was not known before they were computed."""
        self.done += products

    def part(self, n: int) -> "Work":
        """A count of its own for one of ``n`` parts that are computed on threads, with its share of what is left."""
        return Work(self.unit, self.left / self.unit / n)

    def join(self, part: "Work") -> None:
        """Count what a part has done; raises OutOfWork if it has used up its share."""
        self.done += part.done
        self.used_up = self.used_up or part.used_up
        if self.used_up:
            raise OutOfWork

    @property
    def left(self) -> float:
        """The multiply-adds that may still be computed."""
        return self._most - self.done

    @property
    def cost(self) -> int:
        """The cost of the search so far, in evaluations with gradient: rounded up, and at least 1."""
        return max(1, -(-self.done // self.unit))
