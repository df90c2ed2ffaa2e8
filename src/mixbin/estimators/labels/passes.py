"""The passes over the folds that ``LabelCleaner`` makes: callbacks see each, and may end the fit, as a time limit does."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PassEvent:
    """What a callback of ``LabelCleaner`` sees after a pass, in which a model was trained for every fold."""

    stage: str
    """"choosing" columns and penalty, "judging" the labels, or the "guard"."""
    passes: int
    """How many passes there were, with this one."""
    seconds: float
    """Since ``fit`` began."""
    stop: Callable[[], None] = field(repr=False)
    """Call this to end the fit as ``time_limit`` does."""


class Passes:
    """Counts the passes, tells the callbacks, and says when no further pass may begin."""

    def __init__(self, callbacks: Sequence[Callable[[PassEvent], object]] | None, time_limit: float | None) -> None:
        self.callbacks, self.limit = list(callbacks or ()), time_limit
        self.count, self.stopped, self._began = 0, False, time.monotonic()

    def note(self, stage: str) -> None:
        """Another pass was made."""
        self.count += 1
        event = PassEvent(stage, self.count, time.monotonic() - self._began, self._stop)
        for callback in self.callbacks:
            callback(event)

    def _stop(self) -> None:
        self.stopped = True

    @property
    def over(self) -> bool:
        """Whether no further pass may begin."""
        return self.stopped or (self.limit is not None and time.monotonic() - self._began >= self.limit)
