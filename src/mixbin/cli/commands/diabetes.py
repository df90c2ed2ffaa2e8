"""The first part of ``mixbin demo``: distil scikit-learn's diabetes data with every method, as ``mixbin distill`` would.

The errors shown come from scikit-learn's own Ridge, trained anew on the rows of each answer, not from the engine.
"""

import shlex
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixbin._files import csv_text, write_text
from mixbin._validate import Floats
from mixbin.cli.commands.options import DemoOptions
from mixbin.cli.terminal import rich_table
from mixbin.reporting.record import Line, status_words
from mixbin.result import Status
from mixbin.studies.distillation.options import DistillOptions
from mixbin.studies.distillation.regression import Regression
from mixbin.studies.options import Method
from mixbin.studies.runner import run

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Rows = NDArray[np.intp]

TARGET = "progression"
PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Split:
    """The data, and the row numbers of its three parts."""

    X: Floats
    y: Floats
    features: list[str]
    train: Rows
    validation: Rows
    test: Rows

    def rmse(self, part: Rows, weights: NDArray[Any], alpha: float) -> float | None:
        """Train scikit-learn's Ridge on the weighted training rows, standardised; its error on ``part``, or None without rows."""
        from sklearn.linear_model import Ridge

        used = weights > 0
        if not used.any():
            return None
        rows = self.train[used]
        X = self.X / self.X[self.train].std(axis=0)
        model = Ridge(alpha=len(self.train) * alpha).fit(X[rows], self.y[rows], sample_weight=weights[used].astype(float))
        return float(np.sqrt(np.mean((model.predict(X[part]) - self.y[part]) ** 2)))


@dataclass(frozen=True)
class Comparison:
    """The numbers that the demo shows as a table or prints as JSON."""

    data: str
    train: list[int]
    validation: list[int]
    test: list[int]
    budget: int
    seed: int
    methods: list[Line]
    """With the errors of models that were trained anew, which are None if no row has weight, and with the selected rows."""
    random_rows_test_rmse: float | None
    """The mean test error of models trained on ``budget`` rows drawn at random; None if all rows are kept."""

    def to_json(self) -> dict[str, Any]:
        """All of it, as a mapping for JSON."""
        return asdict(self) | {"methods": [line.to_json() for line in self.methods]}


def load(seed: int) -> Split:
    """The diabetes data, split at random into three equal parts."""
    from sklearn.datasets import load_diabetes

    data = load_diabetes()
    X, y = data.data, data.target
    order = np.random.default_rng(seed).permutation(len(X))
    train, validation, test = (np.sort(part) for part in np.array_split(order, 3))
    return Split(X, y, list(data.feature_names), train, validation, test)


def write_parts(split: Split, out: Path) -> None:
    """Write the three parts of the data as CSV files, with all digits."""
    for name in PARTS:
        rows = getattr(split, name)
        cells = np.column_stack([split.X[rows], split.y[rows]]).tolist()
        write_text(out / "data" / f"{name}.csv", csv_text([*split.features, TARGET], cells))


def distillation(demo: DemoOptions) -> DistillOptions:
    """The options with which ``mixbin distill`` would do the first part of the demo."""
    train, validation, test = (demo.out / "data" / f"{part}.csv" for part in PARTS)
    return DistillOptions(
        train=train,
        target=TARGET,
        budget=demo.budget,
        out=demo.out / "diabetes",
        validation=[validation],
        test=[test],
        alpha=demo.alpha,
        method=Method.ALL,
        seed=demo.seed,
        as_json=demo.as_json,
    )


def compare(split: Split, options: DistillOptions) -> Comparison:
    """Run each method as ``mixbin distill`` does, write its files, and measure the errors by retraining on each answer."""
    study = Regression(options)
    study.load()
    done = run(study, command_of(options))
    answers = {"all rows": np.ones(len(split.train), dtype=bool), **{it.method: it.result.theta for it in done.runs}}
    random = done.record.line("random rows")
    return Comparison(
        data="diabetes",
        train=split.train.tolist(),
        validation=split.validation.tolist(),
        test=split.test.tolist(),
        budget=study.problem.theta_set.k,
        seed=options.seed,
        methods=[retrained(split, line, answers[line.method]) for line in done.record.lines if line.method in answers],
        random_rows_test_rmse=None if random is None else random.numbers["test_rmse"],
    )


def command_of(options: DistillOptions) -> str:
    """The command that repeats the first part of the demo alone."""
    words = ["mixbin", "distill", str(options.train), "--target", options.target, "--budget", str(options.budget)]
    words += ["--validation", str(options.validation[0]), "--test", str(options.test[0]), "--method", options.method.value]
    words += [] if options.alpha is None else ["--alpha", repr(options.alpha)]
    return shlex.join([*words, "--seed", str(options.seed), "--out", str(options.out)])


def retrained(split: Split, line: Line, weights: NDArray[Any]) -> Line:
    """A line of the record, with the errors of a model retrained on the weighted rows, and these rows."""
    alpha = line.numbers["alpha"]
    numbers = {
        "validation_rmse": split.rmse(split.validation, weights, alpha),
        "test_rmse": split.rmse(split.test, weights, alpha),
        "rows": line.numbers["rows"],
        "alpha": alpha,
        "selected": split.train[weights > 0].tolist(),
        "weights": None if weights.dtype == np.bool_ else weights[weights > 0].tolist(),
    }
    return replace(line, numbers=numbers)


def show(comparison: Comparison, console: "Console") -> None:
    """Print the task, the table and what it says."""
    k, m = comparison.budget, len(comparison.train)
    console.print(
        "\nThe data: 10 measurements of each of 442 patients, and how far their diabetes had advanced a year later.\n"
        f"The task: keep only {k} of {m} training rows, chosen such that a ridge regression trained on them predicts "
        f"{len(comparison.validation)} validation rows best. {len(comparison.test)} test rows play no part in the choice.\n"
    )
    console.print(table(comparison))
    console.print(
        "\nRMSE is the typical error of a prediction: lower is better. Each is measured by training scikit-learn's Ridge anew.\n"
        "relax, simple and top-k may use as many evaluations as penalize, and stop once they no longer improve.\n"
    )
    for sentence in conclusions(comparison):
        console.print(sentence)


def table(comparison: Comparison) -> "Table":
    """The table for the terminal, with one line per method."""
    rows = []
    for it in comparison.methods:
        errors = [it.numbers[f"{part}_rmse"] for part in ("validation", "test")]
        shown = ["no rows" if error is None else f"{error:.2f}" for error in errors]
        status = status_words(it.status)
        rows.append([it.method, *shown, str(it.numbers["rows"]), status, str(it.evaluations), f"{it.seconds:.2f}"])
    return rich_table(["method", "validation RMSE", "test RMSE", "rows", "answer", "evaluations", "seconds"], rows)


def conclusions(comparison: Comparison) -> list[str]:
    """What the table says, in words."""
    numbers = {it.method: it.numbers for it in comparison.methods}
    rows = {method: counted(it["rows"]) for method, it in numbers.items()}
    reference, best = (numbers[name]["test_rmse"] for name in ("all rows", "penalize"))
    more = best / reference - 1
    against = f"{abs(more):.0%} {'above' if more > 0 else 'below'}" if round(100 * more) else "practically"
    k = comparison.budget
    random = comparison.random_rows_test_rmse
    said = [
        f"Trained on the {counted(k)} that penalize keeps, the model has a test error of {best:.1f}, "
        f"{against} the {reference:.1f} of all {numbers['all rows']['rows']} rows; "
        + ("all rows were kept." if random is None else f"{counted(k)} drawn at random: {random:.1f} on average."),
        f"relax only weights the rows ({rows['relax']} above 0), which is not yet a choice.",
    ]
    if any(it.method == "simple" and it.status == Status.INFEASIBLE for it in comparison.methods):
        said.append(f"simple rounds each weight on its own, which here leaves {rows['simple']} instead of {k}.")
    return said


def counted(rows: int) -> str:
    """A number of rows as text, such as "1 row" or "no rows"."""
    return "1 row" if rows == 1 else f"{rows or 'no'} rows"
