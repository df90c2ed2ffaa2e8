"""The commands that are studies: the runner does the work, and the record is printed."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from mixbin.cli.typed import command_line
from mixbin.studies.options import CommonOptions

EXIT_INTERRUPTED = 130


@contextmanager
def resumable() -> Iterator[None]:
    """If the user interrupts the run, print how to resume it and exit."""
    try:
        yield
    except KeyboardInterrupt:
        print("mixbin: interrupted; the same command with --resume goes on from here", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def run(options: CommonOptions) -> None:
    """Load the data, run the study, and print its record as a table or as one line of JSON."""
    with resumable():
        study = options.study()
        from mixbin.progress import spinner
        from mixbin.studies import runner

        study.check()
        with study.resources():
            with spinner(f"Reading {study.source} ...", quiet=options.as_json):
                study.load()
            done = runner.run(study, command_line())
    _tell(options, type(study), done)


def _tell(options: CommonOptions, study: Any, done: Any) -> None:
    """Print the whole record. If it comes from a file that somebody has damaged, print nothing of it and raise an error."""
    from rich.errors import ConsoleError

    from mixbin._files import foreign
    from mixbin.cli.terminal import plain_console, show_record
    from mixbin.reporting.record import FILE
    from mixbin.studies.pages import DAMAGED

    console = plain_console()
    try:
        with console.capture() as shown:
            if not options.as_json:
                show_record(done.record, study, options.out, done.before, console)
        text = json.dumps(done.record.to_json(), allow_nan=False) + "\n" if options.as_json else shown.get()
    except (*DAMAGED, ConsoleError) as error:
        if not done.before:
            raise
        raise foreign(options.out / FILE, repr(error)) from None
    print(text, end="")
