"""The command line: options, help and errors. The work of each command is in its own module, imported when the command runs."""

import atexit
import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mixbin._version import __version__
from mixbin.cli.commands.options import DemoOptions, ReportOptions, ReproduceOptions
from mixbin.cli.typed import command, remember, words
from mixbin.errors import CannotWrite, DivergedError, InvalidInput, Unsolved
from mixbin.studies import COMMANDS, options_of

EXIT_UNSOLVED, EXIT_BAD_INPUT = 1, 2
OBJECTS_PER_COLLECTION = 50_000
"""New objects after which Python looks for unused cycles among them."""
REMEDIES = {
    errno.ENOSPC: "free some space and repeat the command",
    errno.EDQUOT: "free some space and repeat the command",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}
"""The remedies for errors of the system with a file."""


class OneLineErrors(TyperGroup):
    """Prints every error as one line on stderr that says what to do.

    The exit code is 2 for bad input. It is 1 if the problem could not be solved or the system refused memory, space or a file.
    """

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command and leave with its exit code."""
        kwargs["standalone_mode"] = False
        remember(kwargs.get("args", args[0] if args else None))
        try:
            _check_words(words())
            code = super().main(*args, **kwargs)
            # Flush here: if the reader of a pipe has gone, the error can still be handled below.
            sys.stdout.flush()
        except InvalidInput as error:
            code = _complain(str(error), EXIT_BAD_INPUT)
        except (DivergedError, Unsolved) as error:
            code = _complain(str(error), EXIT_UNSOLVED)
        except OSError as error:
            code = _complain(_refused(error), EXIT_UNSOLVED)
            _drop_output()
        except MemoryError as error:
            said = f" ({error})" if str(error) else ""
            code = _complain(f"there is not enough memory{said}; use less data, or a machine with more", EXIT_UNSOLVED)
        except Exception as error:
            # Depending on its version, Typer raises click's errors or its own copy of them, so their method identifies them.
            if not hasattr(error, "format_message"):
                raise
            context = getattr(error, "ctx", None)
            command = context.command_path if context is not None else "mixbin"
            code = _complain(f"{error.format_message().rstrip('.')}; see '{command} --help'", EXIT_BAD_INPUT)
        sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str, code: int) -> int:
    line = " ".join(message.split())
    # Names of files and columns may contain anything. Characters that would control the terminal are shown as escape codes.
    shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in line)
    print("mixbin: " + shown, file=sys.stderr)
    return code


def _check_words(typed: Sequence[str]) -> None:
    """Refuse arguments that are not UTF-8: they are written to pages and JSON, which are UTF-8."""
    for word in typed:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise InvalidInput(f"every argument must be UTF-8, got {word!r}; rename that file or folder") from None


def _refused(error: OSError) -> str:
    """The message for an error of the system: which file, why, and the remedy."""
    if isinstance(error, CannotWrite):
        return error.strerror or str(error)
    what = "a file" if error.filename is None else repr(os.fsdecode(error.filename))
    remedy = REMEDIES.get(error.errno or 0, "check its path, its permissions and the disk")
    return f"{what} cannot be read or written ({error.strerror or error}); {remedy}"


def _drop_output() -> None:
    """Send the rest of the output nowhere if its reader has gone; otherwise Python would print a second error when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    name="mixbin",
    cls=OneLineErrors,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: mixbin demo --budget 10%",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"mixbin {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Choose what to keep - rows, features, labels - so that the model trained on it predicts best."""
    if context.invoked_subcommand is None:
        print(context.get_help())


_ALL: dict[str, Any] = {
    "demo": DemoOptions,
    **{name: options_of(name) for name in COMMANDS},
    "reproduce": ReproduceOptions,
    "report": ReportOptions,
}
for _name, _options in _ALL.items():
    _module = f"mixbin.cli.commands.{'study' if _name in COMMANDS else _name}"
    app.command(_name, epilog=f"Example: {_options.example}")(command(_options, _module))


def main() -> None:
    """The entry point of the ``mixbin`` command."""
    # By default Python looks for unused cycles among all objects at every 700 new ones, half a second of a run of six.
    gc.set_threshold(OBJECTS_PER_COLLECTION, 20, 20)
    # At its end Python looks among all objects once more, for memory that the system frees anyway: another 0.4 seconds.
    atexit.register(gc.freeze)
    app(prog_name="mixbin")
