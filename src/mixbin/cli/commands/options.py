"""The options of the commands that are no studies; loads nothing heavy, so that help stays quick."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mixbin.studies.options import option, parse_budget


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """The options of ``mixbin demo``."""

    help = "A tour in less than a minute: keep a tenth of a small data set, find a planted group structure, see both as pages."
    example = "mixbin demo --budget 30 --seed 1"

    budget: str = option("How many training rows to keep: 10%, 0.1 or a count such as 30.", default="10%")
    alpha: float | None = option(
        "Strength of the ridge penalty, such as 1e-4; without it, chosen together with the rows.", default=None
    )
    seed: int = option("Splits the data and starts the methods; the same seed gives the same numbers.", default=0, least=0)
    out: Path = option("The folder for the pages; what a demo left there before is replaced.", "DIR", default=Path("mixbin-demo"))
    as_json: bool = option("Print one line of JSON instead of the table.", default=False, flags=("--json",))

    def __post_init__(self) -> None:
        parse_budget(self.budget)


class PaperSolver(StrEnum):
    """The choices of ``--solver``."""

    DEFAULT = "default"
    PAPER = "paper"


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """The options of ``mixbin reproduce``."""

    help = """Recompute the tables and figures of "Relax and penalize", ours beside the published ones.

    A run that has ended is never computed again, an interrupted one goes
    on from its checkpoint: repeat the command. The data of blog and music
    are found in the folder that MIXBIN_DATA names; blog is otherwise
    downloaded.
    """
    example = "mixbin reproduce table3 --quick --out blog"

    what: list[str] = option(
        "table1 to table5, figure1 to figure6 (as printed), the paper's LaTeX labels, or all.", "WHAT...", argument=True
    )
    out: Path = option("The folder for tables, figures and runs; runs in it are kept.", "DIR")
    full: bool = option("The published sizes, or reduced ones that take minutes.", default=False, flags=("--full/--quick",))
    solver: PaperSolver = option(
        "default: mixbin's own settings; paper: the published algorithm.", "NAME", default=PaperSolver.DEFAULT
    )
    runs: int | None = option(
        "Runs per setting; unless given 1 (quick), or 3 for groups and 5 for distillation.", "R", default=None
    )
    steps: int | None = option("Shortens the distillations of --solver paper; 1,000 (quick) or as published.", "N", default=None)
    budget: list[str] = option("Only this budget of table 3: 10, 20 or 30; may be repeated.", "PERCENT", default=list)
    jobs: int | None = option("Runs at the same time, each on one thread; all cores unless given.", "N", default=None)
    as_json: bool = option("Print one line of JSON instead of the tables.", default=False, flags=("--json",))


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The options of ``mixbin report``."""

    help = """Write the page of a run, or of a folder of runs, from what the commands left there.

    The page is one HTML file that works without a network: report.html of a
    run, index.html of a folder of runs (whose runs get a page where they have
    none).
    """
    example = "mixbin report run"

    folder: Path = option("What --out of a command named, or a folder of such folders.", "RUN_DIR", argument=True)
    as_json: bool = option("Print one line of JSON instead of where the page is.", default=False, flags=("--json",))
