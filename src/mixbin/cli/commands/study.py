"""Turn every study into a command: its options become the command line, the runner does the work, the record is printed."""

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_args, get_type_hints

import typer

from mixbin.cli.typed import command_line
from mixbin.studies.options import Option, Options, described

EXIT_INTERRUPTED = 130


def command(kind: type[Options]) -> Callable[..., None]:
    """A function with one parameter per option, from which typer builds the command."""
    hints, defaults = get_type_hints(kind, include_extras=True), {field.name: field for field in fields(kind)}
    parameters = [_parameter(name, get_args(hints[name])[0], option, defaults[name]) for name, option in described(kind).items()]

    def run(**given: Any) -> None:
        lists = {name for name, field in defaults.items() if field.default_factory is not MISSING}
        run_study(kind(**{name: [] if value is None and name in lists else value for name, value in given.items()}))

    run.__doc__ = kind.help
    run.__annotations__ = {it.name: it.annotation for it in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameter(name: str, hint: Any, option: Option, field: Any) -> inspect.Parameter:
    default = field.default
    if field.default_factory is not MISSING:
        hint, default = hint | None, None
    if default is MISSING:
        default = inspect.Parameter.empty
    said: dict[str, Any] = {"help": option.help, "metavar": option.metavar, "min": option.least}
    made = typer.Argument(**said) if option.argument else typer.Option(*option.flags, **said)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, made])


@contextmanager
def resumable() -> Iterator[None]:
    """If the user interrupts the run, print how to resume it and exit."""
    try:
        yield
    except KeyboardInterrupt:
        print("mixbin: interrupted; the same command with --resume goes on from here", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def run_study(options: Options) -> None:
    """Load the data, run the study, and print its record as a table or as one line of JSON."""
    with resumable():
        study = options.study()
        from mixbin.progress import spinner
        from mixbin.studies.runner import run

        study.check()
        with study.resources():
            with spinner(f"Reading {study.source} ...", quiet=options.as_json):
                study.load()
            done = run(study, command_line())
    _tell(options, type(study), done)


def _tell(options: Options, study: Any, done: Any) -> None:
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
