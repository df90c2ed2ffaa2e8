"""The command: its options, help and errors; what a command does lives in a module of its own, imported when it runs."""

import errno
import math
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
from mixbin.cli.typed import remember, words
from mixbin.errors import CannotWrite, DivergedError, InvalidInput

EXIT_UNSOLVED, EXIT_BAD_INPUT = 1, 2
REMEDIES = {
    errno.ENOSPC: "free some space and repeat the command",
    errno.EDQUOT: "free some space and repeat the command",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}
"""What helps where the system refuses a file."""


class OneLineErrors(TyperGroup):
    """Every error is one line on stderr that says what to do.

    The exit code is 2 for bad input, and 1 for what could not be solved or what the system refuses: memory, space, a file.
    """

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command and leave with its exit code."""
        kwargs["standalone_mode"] = False
        remember(kwargs.get("args", args[0] if args else None))
        try:
            _check_words(words())
            code = super().main(*args, **kwargs)
            # Here, where it can still be told that nobody takes the output.
            sys.stdout.flush()
        except InvalidInput as error:
            code = _complain(str(error), EXIT_BAD_INPUT)
        except DivergedError as error:
            code = _complain(str(error), EXIT_UNSOLVED)
        except OSError as error:
            code = _complain(_refused(error), EXIT_UNSOLVED)
            _drop_output()
        except MemoryError as error:
            said = f" ({error})" if str(error) else ""
            code = _complain(f"there is not enough memory{said}; use less data, or a machine with more", EXIT_UNSOLVED)
        except Exception as error:
            # Typer carries its own copy of click's errors, or click itself, depending on its version.
            if not hasattr(error, "format_message"):
                raise
            context = getattr(error, "ctx", None)
            command = context.command_path if context is not None else "mixbin"
            code = _complain(f"{error.format_message().rstrip('.')}; see '{command} --help'", EXIT_BAD_INPUT)
        sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str, code: int) -> int:
    line = " ".join(message.split())
    # Names of files and columns may hold anything; what would steer the terminal is shown as its code.
    shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in line)
    print("mixbin: " + shown, file=sys.stderr)
    return code


def _check_words(typed: Sequence[str]) -> None:
    """What is typed ends up in pages and JSON, which are UTF-8."""
    for word in typed:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise InvalidInput(f"every argument must be UTF-8, got {word!r}; rename that file or folder") from None


def _refused(error: OSError) -> str:
    """What the system does not allow, with the file and the remedy."""
    if isinstance(error, CannotWrite):
        return error.strerror or str(error)
    what = "a file" if error.filename is None else repr(os.fsdecode(error.filename))
    remedy = REMEDIES.get(error.errno or 0, "check its path, its permissions and the disk")
    return f"{what} cannot be read or written ({error.strerror or error}); {remedy}"


def _drop_output() -> None:
    """Where nobody takes the output, Python would complain once more at its end: what is left of it goes nowhere."""
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
    amount = parse_budget(budget)
    from mixbin.cli.demo import run

    run(amount, alpha, seed, out, as_json=json)


class Method(StrEnum):
    """The choices of ``--method``."""

    PENALIZE = "penalize"
    TOP_K = "top-k"
    SIMPLE = "simple"
    RELAX = "relax"
    ALL = "all"


class Kind(StrEnum):
    """The choices of ``--task``."""

    REGRESSION = "regression"
    CLASSIFICATION = "classification"


@app.command(epilog="Example: mixbin distill train.csv --target price --budget 10% --test test.csv --out run")
def distill(
    train: Annotated[
        Path,
        typer.Argument(
            metavar="TRAIN", help="The rows to choose from: CSV (also .gz, or one in a .zip), Parquet, or a folder of Parquet."
        ),
    ],
    target: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column to predict, by name or number from 0; -1 is the last.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the selected rows, the model and all else.")],
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="ROWS",
            help="How many rows to keep: 10%, 0.1 or a count such as 30. Without it (classification only) rows are dropped where "
            "their label does harm.",
        ),
    ] = None,
    task: Annotated[
        Kind, typer.Option(metavar="KIND", help="regression (ridge), or classification (logistic regression): label cleaning.")
    ] = Kind.REGRESSION,
    validation: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Rows that judge the choice; may be repeated. Without it, split off TRAIN at random."),
    ] = None,
    test: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Rows that play no part in the choice; may be repeated.")
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(metavar="X", help="Strength of the ridge penalty, such as 100; without it, chosen together with the rows."),
    ] = None,
    method: Annotated[
        Method, typer.Option(metavar="NAME", help="penalize, top-k, simple or relax; all compares them.")
    ] = Method.PENALIZE,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that is no feature; may be repeated.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Splits the data and starts the methods; the same seed gives the same numbers."),
    ] = 0,
    validation_fraction: Annotated[
        float | None, typer.Option(metavar="X", help="The share of TRAIN split off for validation, 0.2 unless given.")
    ] = None,
    max_evaluations: Annotated[int | None, typer.Option(metavar="N", help="How many models a method may train, at most.")] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first row of a CSV has the names; without it, seen from that row."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Parquet: processes that work on it, one a core unless given; it need not fit in memory."
        ),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Parquet: the Dask cluster to use instead, such as tcp://host:8786.")
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Parquet: what each worker may use, such as 2GB.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder --out.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of the table.")] = False,
) -> None:
    """Keep few rows of a table, such that a ridge or logistic regression trained on them predicts best."""
    amount = None if budget is None else parse_budget(budget)
    from mixbin.cli import distill_dask

    if task is Kind.CLASSIFICATION:
        from mixbin.cli.classify import run
    else:
        from mixbin.cli.distill import run
    from mixbin.cli.distill import Options

    options = Options(
        train=train,
        target=target,
        budget=amount,
        out=out,
        validation=validation or [],
        test=test or [],
        ignore=ignore or [],
        alpha=alpha,
        method=method.value,
        seed=seed,
        validation_fraction=validation_fraction,
        max_evaluations=max_evaluations,
        header=header,
        resume=resume,
        as_json=json,
    )
    cluster = distill_dask.Cluster(workers, scheduler, memory_limit)
    if distill_dask.wanted(train, cluster):
        if task is Kind.CLASSIFICATION:
            raise InvalidInput(
                "--task classification must be one table in memory, got a folder, --workers or --scheduler; use a file"
            )
        distill_dask.run(options, cluster)
    else:
        run(options)


class Synthetic(StrEnum):
    """The choices of ``--synthetic``."""

    EQUAL = "equal"
    INEQUAL = "inequal"
    RANDOM = "random"


@app.command(epilog="Example: mixbin groups --synthetic inequal --a 0.3 --out run")
def groups(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the groups, the models and all else.")],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Your tasks: an .npz file with X (tasks, rows, features) and y (tasks, rows), or a folder with a CSV file per "
            "task. Centre what needs an intercept: the models have none.",
        ),
    ] = None,
    synthetic: Annotated[
        Synthetic | None, typer.Option(metavar="KIND", help="Made tasks instead, with equal, inequal or random group sizes.")
    ] = None,
    n_groups: Annotated[int | None, typer.Option(metavar="N", help="The most groups there can be, 10 unless given.")] = None,
    lam: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="Strength of the group penalty, such as 0.02; without it, chosen together with the groups."
        ),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(
            metavar="NAME", help="penalize, top-k (the largest entry of each feature), simple or relax; all compares them."
        ),
    ] = Method.PENALIZE,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Makes or splits the data and starts the methods; the same seed gives the same numbers."
        ),
    ] = 0,
    validation_fraction: Annotated[
        float | None,
        typer.Option(metavar="X", help="The share of each task split off where there are no validation rows, 0.2 unless given."),
    ] = None,
    max_evaluations: Annotated[
        int | None, typer.Option(metavar="N", help="How often a method may train all tasks, at most.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="CSV: the column to predict, by name or number from 0; the last unless given."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="CSV: a column that is no feature; may be repeated.")
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="CSV: whether the first row has the names; without it, seen from that row."),
    ] = None,
    a: Annotated[
        float | None, typer.Option("--a", metavar="X", help="Made tasks: the smallest active coefficient, 0.3 unless given.")
    ] = None,
    tasks: Annotated[int | None, typer.Option(metavar="N", help="Made tasks: how many, 500 unless given.")] = None,
    samples: Annotated[int | None, typer.Option(metavar="N", help="Made tasks: rows of each part, 20 unless given.")] = None,
    features: Annotated[int | None, typer.Option(metavar="N", help="Made tasks: columns, 100 unless given.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder --out.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of the tables.")] = False,
) -> None:
    """Find which features belong together, such that many regressions with a group lasso on these groups predict best.

    A folder as --data holds one CSV per task, all with the same columns;
    NAME_val.csv and NAME_test.csv are validation and test rows of NAME.csv.
    An .npz may also hold X_val, y_val, X_test, y_test, feature_names and,
    where the truth is known, labels or theta, and coef.
    """
    from mixbin.cli.groups import Options, run

    run(
        Options(
            out=out,
            data=data,
            synthetic=None if synthetic is None else synthetic.value,
            n_groups=n_groups,
            lam=lam,
            method=method.value,
            seed=seed,
            validation_fraction=validation_fraction,
            max_evaluations=max_evaluations,
            target=target,
            ignore=ignore or [],
            header=header,
            a=a,
            tasks=tasks,
            samples=samples,
            features=features,
            resume=resume,
            as_json=json,
        )
    )


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
    from mixbin.cli.reproduce import Options, run

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
    from mixbin.cli.pages import run

    run(folder, as_json=json)


def parse_budget(text: str) -> int | float:
    """A budget as typed: "10%" and "0.1" are fractions of the rows, "30" is a count."""
    remedy = "write a percentage such as 10%, a fraction such as 0.1 or a count such as 30"
    number = text.strip().removesuffix("%")
    percent = number != text.strip()
    try:
        if not percent and number.lstrip("+-").isdigit():
            return int(number)
        value = float(number) / (100 if percent else 1)
    except ValueError:
        raise InvalidInput(f"--budget must be a number of rows, got {text!r}; {remedy}") from None
    if not (math.isfinite(value) and 0 < value <= 1):
        raise InvalidInput(f"--budget must be above 0 and at most {'100%' if percent else 'all rows'}, got {text!r}; {remedy}")
    return value


def main() -> None:
    """The entry point of the ``mixbin`` command."""
    app(prog_name="mixbin")
