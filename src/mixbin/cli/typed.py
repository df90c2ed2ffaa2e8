"""What the user typed: the command line that follows from options, and the words, which are kept for the page of a run."""

import inspect
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields
from importlib import import_module
from typing import Annotated, Any

import typer

from mixbin.studies.options import Option, described

ONCE = ("--json", "--resume")
"""Options that do not change the results of a run."""

_typed: list[str] = []


def remember(args: Sequence[str] | None) -> None:
    """Keep the arguments of the command; None stands for those of the process."""
    _typed[:] = sys.argv[1:] if args is None else args


def words() -> list[str]:
    """The arguments of the command."""
    return list(_typed)


def command_line() -> str:
    """The shell command that repeats the run."""
    return shlex.join(["mixbin", *(word for word in _typed if word not in ONCE)])


def command(kind: type[Any], module: str) -> Callable[..., None]:
    """A function with one parameter per option, from which typer builds the command; ``run`` of the module does its work."""
    declared = {field.name: field for field in fields(kind)}
    parameters = [_parameter(declared[name], option) for name, option in described(kind).items()]

    def run(**given: Any) -> None:
        lists = {name for name, field in declared.items() if field.default_factory is not MISSING}
        options = kind(**{name: [] if value is None and name in lists else value for name, value in given.items()})
        import_module(module).run(options)

    run.__doc__ = kind.help
    run.__annotations__ = {it.name: it.annotation for it in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameter(field: "Field[Any]", option: Option) -> inspect.Parameter:
    hint: Any = field.type
    default: Any = inspect.Parameter.empty if field.default is MISSING else field.default
    if field.default_factory is not MISSING:
        hint, default = hint | None, None
    said: dict[str, Any] = {"help": option.help, "metavar": option.metavar, "min": option.least, "rich_help_panel": option.panel}
    made = typer.Argument(**said) if option.argument else typer.Option(*option.flags, **said)
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hint, made])
