"""The one way in which every study is run: folder, identity, resume, methods, Ctrl-C, record, page."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from mixbin._origin import origin
from mixbin.methods import relax_and_penalize, relax_and_round
from mixbin.progress import Event, ProgressDisplay, spinner
from mixbin.reporting.record import Line, Record
from mixbin.result import Result, Status
from mixbin.studies.folder import RunFolder
from mixbin.studies.options import Method
from mixbin.studies.study import FitStudy, Spent, Study, StudyBase, Texts

BASELINES: dict[str, Literal["simple", "top-k"] | None] = {"relax": None, "simple": "simple", "top-k": "top-k"}
"""The methods that relax and round, with how each of them rounds."""
CHECKPOINT_EVERY = 10.0
"""Seconds between two writes of the checkpoint."""


class MethodRun(NamedTuple):
    """What one method found."""

    method: str
    result: Result
    seconds: float
    evaluations: int
    """Those of the result, and of what was found out before."""


class Finished(NamedTuple):
    """A run that has ended, now or before."""

    record: Record
    runs: list[MethodRun]
    """Empty if the run had ended before, or fits an estimator."""
    before: bool
    """Whether nothing had to be computed."""


def run(study: StudyBase[Any], command: str) -> Finished:
    """Run a study whose data are loaded, or go on with it; ``command`` is what a person types for the same run."""
    options = study.options
    folder = RunFolder(options.out, tuple(study.all_files()))
    identity = study.identity()
    record = folder.enter(identity, options.resume)
    if record is not None:
        return Finished(record, [], True)
    said = study.prepare()
    if said and not options.as_json:
        print(said, file=sys.stderr)
    runs, lines, facts, result, texts = _fitted(study) if isinstance(study, FitStudy) else _solved(study, folder)
    certificate = None if result is None else result.certificate
    record = Record(
        kind=study.kind,
        facts=facts,
        lines=tuple(lines),
        certificate=None if certificate is None else str(certificate),
        files={name: str(options.out / name) for name in study.left_files()},
        identity=identity,
        asked=study.sentence(facts),
        about=origin(command, sum(line.seconds for line in lines)),
    )
    verdict = study.verdict(record)
    if verdict is not None:
        record = replace(record, verdict=verdict.sentence, red=verdict.red)
    folder.finish(record, result, texts())
    return Finished(record, runs, False)


class _Found(NamedTuple):
    """What a study has found; its files are made only once the record is known to be complete."""

    runs: list[MethodRun]
    lines: list[Line]
    facts: dict[str, Any]
    result: Result | None
    texts: Callable[[], Texts]


def _fitted(study: FitStudy[Any]) -> _Found:
    with spinner("Fitting ...", quiet=study.options.as_json):
        lines = study.fit()
    return _Found([], lines, study.facts(), None, study.texts)


def _solved(study: Any, folder: RunFolder) -> _Found:
    spent = study.settle(folder.settled)
    runs = _run_methods(study, folder, spent)
    method, main = runs[-1][:2]
    study.reject(method, main)
    lines = [*study.references(main), *(_line(study, it) for it in runs)]
    return _Found(runs, lines, study.facts(main), main, lambda: study.texts(method, main, study.options.out))


def _line(study: Study[Any], run: MethodRun) -> Line:
    result = run.result
    return Line(
        method=run.method,
        numbers=study.measure(result.theta, result.lam),
        status=result.status.value,
        evaluations=run.evaluations,
        seconds=round(run.seconds, 3),
        message=result.message,
    )


def _run_methods(study: Study[Any], folder: RunFolder, spent: Spent) -> list[MethodRun]:
    """The method that was asked for, or all of them; the one that the run is about comes last."""
    options = study.options
    first, *others = [Method.PENALIZE.value, *BASELINES] if options.method == Method.ALL else [str(options.method.value)]
    main = _run_method(first, study, folder, options.max_evaluations)
    main = main._replace(evaluations=main.evaluations + spent.evaluations, seconds=main.seconds + spent.seconds)
    # The baselines get what penalize used, so that the comparison is fair.
    return [*(_run_method(method, study, folder, main.evaluations) for method in others), main]


def _run_method(method: str, study: Study[Any], folder: RunFolder, max_evaluations: int | None) -> MethodRun:
    """The result of one method and its seconds; from the folder, if the method finished before an interruption."""
    kept = folder.done(method, study.searched)
    if kept is not None:
        return MethodRun(method, *kept, kept[0].n_evaluations)
    interruption, clock = Interruption(), Clock()
    # The stages of penalize show what it is; a label would push the numbers off a line of 80 columns.
    label = method if method in BASELINES else ""
    note = study.progress if study.progress() else None
    display = [] if study.options.as_json else [ProgressDisplay(label, note=note)]
    common: dict[str, Any] = {
        "seed": study.options.seed,
        "max_evaluations": max_evaluations,
        "callbacks": [interruption, clock, *display],
        "checkpoint": folder.checkpoint / method,
        "checkpoint_every": CHECKPOINT_EVERY,
    }
    with interruption.heeded():
        if method in BASELINES:
            result = relax_and_round(study.searched, rounding=BASELINES[method], **common)
        else:
            result = relax_and_penalize(study.searched, **common, **study.search_settings())
    if result.status is not Status.STOPPED:
        folder.keep(method, result, clock.seconds)
    if interruption.asked:
        raise KeyboardInterrupt
    return MethodRun(method, result, clock.seconds, result.n_evaluations)


class Interruption:
    """Ends a method between two steps after Ctrl-C, with its checkpoint written; a second Ctrl-C ends it at once."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, event: Event) -> None:
        """Stop, if the user pressed Ctrl-C."""
        if self.asked:
            event.stop()

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Take over Ctrl-C, where it would otherwise end the process."""
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if not usual or threading.current_thread() is not threading.main_thread():
            yield
            return
        signal.signal(signal.SIGINT, self._ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _ask(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


class Clock:
    """The seconds of a run, including those before an interruption."""

    def __init__(self) -> None:
        self.began, self.before = time.perf_counter(), 0.0
        self._asked = False

    def __call__(self, event: Event) -> None:
        """Learn from the first event how long the run had taken before."""
        if not self._asked:
            self.before, self._asked = max(0.0, event.seconds - (time.perf_counter() - self.began)), True

    @property
    def seconds(self) -> float:
        """Until now."""
        return self.before + time.perf_counter() - self.began
