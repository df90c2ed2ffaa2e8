"""The command line: options, help and errors. The work of each command is in its own module, imported when the command runs."""

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mixbin._version import __version__
from mixbin.cli.commands.study import command
from mixbin.cli.typed import remember, words
from mixbin.errors import CannotWrite, DivergedError, InvalidInput, Unsolved
from mixbin.studies import COMMANDS, options_of
from mixbin.studies.options import parse_budget

EXIT_UNSOLVED, EXIT_BAD_INPUT = 1, 2
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


@app.command(epilog="Example: mixbin demo --budget 30 --seed 1")
def demo(
    budget: Annotated[str, typer.Option(help="How many training rows to keep: 10%, 0.1 or a count such as 30.")] = "10%",
    alpha: Annotated[
        float | None, typer.Option(help="Strength of the ridge penalty, such as 1e-4; without it, chosen together with the rows.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Splits the data and starts the methods; the same seed gives the same numbers.")
    ] = 0,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for the pages; what a demo left there before is replaced.")
    ] = Path("mixbin-demo"),
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of the table.")] = False,
) -> None:
    """A tour in less than a minute: keep a tenth of a small data set, find a planted group structure, see both as pages."""
    parse_budget(budget)
    from mixbin.cli.commands.demo import run

    run(budget, alpha, seed, out, as_json=json)


for _name in COMMANDS:
    _options = options_of(_name)
    app.command(_name, epilog=f"Example: {_options.example}")(command(_options))


class PaperSolver(StrEnum):
    """The choices of ``--solver``."""

    DEFAULT = "default"
    PAPER = "paper"


@app.command(epilog="Example: mixbin reproduce table3 --quick --out blog")
def reproduce(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT...", help="table1 to table5, figure1 to figure6 (as printed), the paper's LaTeX labels, or all."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for tables, figures and runs; runs in it are kept.")],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The published sizes, or reduced ones that take minutes.", show_default=True)
    ] = False,
    solver: Annotated[
        PaperSolver, typer.Option(metavar="NAME", help="default: mixbin's own settings; paper: the published algorithm.")
    ] = PaperSolver.DEFAULT,
    runs: Annotated[
        int | None,
        typer.Option(metavar="R", help="Runs per setting; unless given 1 (quick), or 3 for groups and 5 for distillation."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(metavar="N", help="Shortens the distillations of --solver paper; 1,000 (quick) or as published."),
    ] = None,
    budget: Annotated[
        list[str] | None, typer.Option(metavar="PERCENT", help="Only this budget of table 3: 10, 20 or 30; may be repeated.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Runs at the same time, each on one thread; all cores unless given.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of the tables.")] = False,
) -> None:
    """Recompute the tables and figures of "Relax and penalize", ours beside the published ones.

    A run that has ended is never computed again, an interrupted one goes
    on from its checkpoint: repeat the command. The data of blog and music
    are found in the folder that MIXBIN_DATA names; blog is otherwise
    downloaded.
    """
    from mixbin.cli.commands.reproduce import Options, run

    run(
        Options(
            what=what,
            out=out,
            full=full,
            solver=solver.value,
            runs=runs,
            steps=steps,
            budgets=budget or [],
            jobs=jobs,
            as_json=json,
        )
    )


@app.command(epilog="Example: mixbin report run")
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN_DIR", help="What --out of a command named, or a folder of such folders.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of where the page is.")] = False,
) -> None:
    """Write the page of a run, or of a folder of runs, from what the commands left there.

    The page is one HTML file that works without a network: report.html of a
    run, index.html of a folder of runs (whose runs get a page where they have
    none).
    """
    from mixbin.cli.commands.report import run

    run(folder, as_json=json)


def main() -> None:
    """The entry point of the ``mixbin`` command."""
    app(prog_name="mixbin")
