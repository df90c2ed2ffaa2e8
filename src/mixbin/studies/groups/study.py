"""Which features belong together in many regressions, such that models with a group lasso on these groups predict best."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._digest import digest
from mixbin._files import csv_text
from mixbin._validate import Floats
from mixbin.data import task_files
from mixbin.data.tasks import TaskData, Tasks
from mixbin.datasets import GroupLassoData, make_group_lasso
from mixbin.errors import InvalidInput
from mixbin.problems import GroupLassoStructure
from mixbin.problems.group_lasso.structure import lam_at_bound
from mixbin.reporting.record import Line, Record
from mixbin.reporting.runs import Column, reading_facts, shown
from mixbin.reporting.verdict import Verdict
from mixbin.result import Result, Status
from mixbin.studies.groups import page
from mixbin.studies.groups.options import SYNTHETIC, GroupsOptions
from mixbin.studies.groups.references import NOTHING, references
from mixbin.studies.pages import any_letters
from mixbin.studies.study import Study, Table, split_words

N_GROUPS = 10
"""The most groups, unless an option says otherwise."""
TRUTH = {
    "adjusted_rand": Column("Rand index", ".4g", "adjusted\nRand index"),
    "spectral_error": Column("model error, spectral", ".4g", "error of the models\n(spectral norm)"),
    "frobenius_error": Column("model error, Frobenius", ".4g", "error of the models\n(Frobenius norm)"),
}
"""Numbers that compare an answer with the truth; on a terminal they have a table of their own."""


class Groups(Study[GroupsOptions]):
    """Tasks from files or made ones."""

    kind = "groups"
    files: ClassVar = {
        "structure.csv": "the group of each feature",
        "structure.svg": "the groups as a picture",
        "coef.csv": "the model of each task",
        "intercept.csv": "the intercept of each model",
    }
    answer = "the groups that {} finds"
    measured = "G is half the mean squared error, averaged over the tasks: lower is better."
    page_parts = staticmethod(page.parts)
    problem: GroupLassoStructure

    @property
    def source(self) -> str:
        """The tasks."""
        return "the tasks"

    def check(self) -> None:
        """Options that do not go together are refused by name."""
        options = self.options
        if (options.data is None) == (options.synthetic is None):
            got = "neither" if options.data is None else "both"
            raise InvalidInput(
                f"--data or --synthetic must say where the tasks are from, got {got}; "
                "write --data FILE for your own tasks, or --synthetic inequal for made ones"
            )
        of_files = {"--target": options.target, **options.about_files()}
        of_data = {**of_files, "--validation-fraction": options.validation_fraction}
        of_synthetic = {f"--{name}": getattr(options, name) for name in SYNTHETIC}
        source, useless = ("--data", of_synthetic) if options.synthetic is None else ("--synthetic", of_data)
        if options.data is not None and not os.path.isdir(options.data):
            useless |= of_files
        if given := [name for name, value in useless.items() if value is not None]:
            beside = (
                f"{source} {options.data}, which is no folder of CSV files" if given[0] in of_files and options.data else source
            )
            raise InvalidInput(f"{given[0]} has no use beside {beside}; leave it out")
        if options.lam is not None:
            remedy = "write a number such as 0.02, or leave it out to have it chosen"
            check.real("--lam", options.lam, low=0, open_low=True, remedy=remedy)
        super().check()

    def load(self) -> None:
        """The tasks from files or made, with validation rows split off where there are none."""
        self.data = self._read()
        self.means = self.data.train.means() if self.options.intercept else None
        self.problem = self._problem(self._n_groups(len(self.data.features)), self.options.lam)

    def _read(self) -> TaskData:
        options = self.options
        if options.data is None:
            return self._synthetic().to_tasks()
        # Not ``is_dir``, which raises an error for names that the system refuses; whoever reads the file says so.
        if os.path.isdir(options.data):
            reader = options.reader(options.target or "-1")
            data = task_files.read_folder(options.data, reader, options.validation_fraction, options.seed)
        else:
            data = task_files.read_archive(options.data)
        if data.validation is None:
            return data.with_validation(options.validation_fraction, options.seed)
        if options.validation_fraction is not None and data.split_off is None:
            raise InvalidInput(f"--validation-fraction has no use where {options.data} has validation rows; leave it out")
        return data

    def _synthetic(self) -> GroupLassoData:
        """The published kind of data, in the sizes that were asked for."""
        options = self.options
        a = check.real("--a", options.size("a"), low=0, high=1, remedy="it is the smallest active coefficient, such as 0.3")
        n_tasks = check.whole("--tasks", options.size("tasks"), low=2, remedy=task_files.LEAST_TASKS)
        n_samples = check.whole("--samples", options.size("samples"), low=2, remedy="one row has no spread to scale the noise by")
        n_features = check.whole("--features", options.size("features"), low=2, remedy="one feature leaves nothing to group")
        sizes = {"n_tasks": n_tasks, "n_samples": n_samples, "n_features": n_features, "n_groups": self._n_groups(n_features)}
        assert options.synthetic is not None
        try:
            return make_group_lasso(options.synthetic.value, a, **sizes, seed=options.seed)
        except InvalidInput as error:
            # Only sizes that do not fit each other are left to complain about; the function names its own arguments.
            said = str(error).replace("groups='random'", "--synthetic random")
            for name, option in (("n_groups", "--n-groups"), ("n_features", "--features")):
                said = said.replace(name, option)
            raise InvalidInput(said) from None

    def _n_groups(self, n_features: int) -> int:
        if n_features < 2:
            raise InvalidInput(
                f"{self.options.data} must have two features or more, got {n_features}; one leaves nothing to group"
            )
        wanted = N_GROUPS if self.options.n_groups is None else self.options.n_groups
        remedy = f"there are {n_features} features; fewer than 2 groups leave nothing to choose"
        return check.whole("--n-groups", wanted, low=2, high=n_features, remedy=remedy)

    def _problem(self, n_groups: int, lam: float | None) -> GroupLassoStructure:
        train, validation = self._centred(self.data.train), self._centred(self._validation)
        fixed: dict[str, Any] = {} if lam is None else {"lam_bounds": lam}
        return GroupLassoStructure(train.tables, train.targets, validation.tables, validation.targets, n_groups=n_groups, **fixed)

    def _centred(self, part: Tasks) -> Tasks:
        """Rows for models without an intercept: without the means of the training rows, if the models are to have one."""
        return part if self.means is None else part.minus(self.means)

    @property
    def _validation(self) -> Tasks:
        assert self.data.validation is not None
        return self.data.validation

    def contents(self) -> dict[str, Any]:
        """All rows, the truth, names, and the most groups."""
        data = self.data
        parts = [part for part in (data.train, data.validation, data.test) if part is not None]
        truth = [a for a in (data.labels, data.coef) if a is not None]
        return {
            "data": digest(*(a for part in parts for a in (*part.tables, *part.targets)), *truth),
            # The same rows may come from other files, where they have other numbers.
            "validation": "given" if data.split_off is None else "split off",
            "tasks": data.tasks,
            "features": data.features,
            "n_groups": self.problem.n_groups,
        }

    def prepare(self) -> None:
        """Compile the kernels before the methods run, so that the seconds of the methods are their own."""
        from mixbin.progress import spinner

        with spinner("Loading the kernels, which the first time takes some 10 seconds ...", quiet=self.options.as_json):
            self.problem.evaluate_terms(self.problem.theta_set.start(), self.problem.lam_set.start(), np.zeros(1, dtype=np.intp))

    def measure(self, theta: NDArray[Any], lam: Floats) -> dict[str, Any]:
        """Losses, groups, and the distance to the truth where that is known."""
        chosen = _chosen_groups(theta)
        return {
            **self._errors(self.problem.coef(theta, lam)),
            "groups": len({group for groups in chosen for group in groups}),
            "ungrouped": sum(not groups for groups in chosen),
            "adjusted_rand": _adjusted_rand(self.data.labels, chosen),
            "lam": self.problem.strength.value(lam),
        }

    def _errors(self, coef: Floats) -> dict[str, Any]:
        """How well models predict, and how far they are from the true ones."""
        data = self.data
        missed = None if data.coef is None else coef - data.coef
        return {
            "validation_loss": self._centred(self._validation).loss(coef),
            "test_loss": None if data.test is None else self._centred(data.test).loss(coef),
            "spectral_error": None if missed is None else float(np.linalg.norm(missed, 2)),
            "frobenius_error": None if missed is None else float(np.linalg.norm(missed)),
        }

    def references(self, main: Result) -> list[Line]:
        """No structure, one group, and the true structure, where it is known."""
        rows = self._centred(self.data.train), self._centred(self._validation)
        plain = references(*rows, self._errors, lambda n: self._problem(n, self.options.lam))
        return [*plain, *self._oracle(main)]

    def _oracle(self, main: Result) -> list[Line]:
        """The true structure, where it is known, with the lam of the answer."""
        if self.data.labels is None:
            return []
        from mixbin.plot.structure import one_hot

        began, lam = time.perf_counter(), self.problem.strength.value(main.lam)
        theta = one_hot(self.data.labels)
        used = theta.shape[1]
        if used == 1:
            theta = np.pad(theta, ((0, 0), (0, 1)))
        # A problem of its own, because the truth may have another number of groups.
        errors = self._errors(self._problem(theta.shape[1], lam).coef(theta))
        numbers = {**errors, "groups": used, "ungrouped": 0, "adjusted_rand": 1.0, "lam": lam}
        seconds = round(time.perf_counter() - began, 3)
        return [Line("oracle", numbers, seconds=seconds, message="the true structure, with the lam of the last line")]

    def facts(self, main: Result) -> dict[str, Any]:
        """Where the tasks are from, their sizes, and the truth."""
        options, data = self.options, self.data
        sizes = {name: options.size(name) for name in SYNTHETIC}
        at_bound = lam_at_bound(self.problem.strength, self.problem.strength.value(main.lam))
        return {
            "data": None if options.data is None else str(options.data),
            "synthetic": None if options.synthetic is None else {"groups": options.synthetic.value, **sizes},
            "tasks": len(data.tasks),
            "features": len(data.features),
            "rows": data.train.n_rows,
            "validation_rows": self._validation.n_rows,
            "test_rows": None if data.test is None else data.test.n_rows,
            "labels": None if data.labels is None else data.labels.tolist(),
            "truth": [name for name in ("labels", "coef") if getattr(data, name) is not None],
            "n_groups": self.problem.n_groups,
            "lam": options.lam,
            "intercept": options.intercept,
            "seed": options.seed,
            "validation_split": data.split_off,
            "doubts": [] if at_bound is None else [at_bound],
            **reading_facts(data.reading),
        }

    def texts(self, method: str, main: Result, out: Path) -> dict[str, str]:
        """The groups, their picture and the models."""
        from mixbin.plot.figure import svg_text
        from mixbin.plot.structure import structure_figure as heat_map

        data, coef = self.data, self.problem.coef(main.theta, main.lam)
        with any_letters():
            picture = svg_text(heat_map(main.theta, data.features, data.labels, title=method))
        intercepts = np.zeros(len(coef)) if self.means is None else self.means.intercepts(coef)
        models = ([name, *w] for name, w in zip(data.tasks, coef.tolist(), strict=True))
        return {
            "structure.csv": _structure(data.features, main.theta),
            "structure.svg": picture,
            "coef.csv": csv_text(["task", *data.features], models),
            "intercept.csv": csv_text(["task", "intercept"], zip(data.tasks, intercepts.tolist(), strict=True)),
        }

    # Words.

    @classmethod
    def sentence(cls, facts: Mapping[str, Any]) -> str:
        """What is put into groups, and what judges it."""
        made = facts["synthetic"]
        where = Path(facts["data"]).name if made is None else f"synthetic data ({made['groups']} groups, a = {made['a']:g})"
        lam = "lam is chosen together with the groups" if facts["lam"] is None else f"lam is {facts['lam']:g}"
        split_off, test = split_words(facts)
        return (
            f"The task: put the {facts['features']:,} features of {where} into at most {facts['n_groups']:,} groups, such that "
            f"{facts['tasks']:,} regressions, trained on {facts['rows']:,} rows with a group lasso penalty on these groups, "
            f"predict {facts['validation_rows']:,} validation rows{split_off} best; {lam}.{test}"
        )

    @classmethod
    def columns(cls) -> Mapping[str, Column]:
        """Losses, lam and groups; the truth comes on the page only."""
        return {
            "test_loss": Column("test G", ".4g", "test\nG"),
            "validation_loss": Column("validation G, which judged", ".4g", "judged\nG"),
            "lam": Column("lam", ".3g", "lam"),
            "groups": Column("groups used", ",d", "groups\nused"),
            "ungrouped": Column("without a group", ",d", "no\ngroup", rare=True),
            **{name: column._replace(short=None) for name, column in TRUTH.items()},
        }

    @classmethod
    def explained(cls, record: Record) -> list[str]:
        """Also which rows the losses are on, what the references are, and what it means that features have no group."""
        alone = "Simple rounding leaves features without a group, which are then hardly penalised."
        ungrouped = any(line.numbers["ungrouped"] for line in record.lines)
        plain = (
            "The validation rows chose the groups, so their G is an optimised number, and no error on new data. no structure is "
            "a lasso in each task, one group has all features in one; both with the best strength by the validation rows."
        )
        compared = record.line(NOTHING) is not None
        return [*super().explained(record), *([plain] if compared else []), *([alone] if ungrouped else [])]

    @classmethod
    def verdict(cls, record: Record) -> Verdict | None:
        """Beside no structure and one group."""
        return page.verdict(record)

    @classmethod
    def more(cls, record: Record) -> Iterator[str | Table]:
        """What speaks against the answer, and the comparison with the truth, where it is known."""
        yield from page.doubts(record.facts)
        if record.facts["truth"]:
            known = shown(TRUTH, record)
            heads = ["method", *(str(column.short) for column in known.values())]
            cells = ([column.text(line.numbers[name], "-") for name, column in known.items()] for line in record.lines)
            yield Table(heads, [[line.method, *it] for line, it in zip(record.lines, cells, strict=True)])
            yield " ".join(cls.truth_words(record))

    @classmethod
    def truth_words(cls, record: Record) -> Iterator[str]:
        """How to read the comparison with the truth."""
        if "labels" in record.facts["truth"]:
            yield "The Rand index is 1 for the true groups and about 0 for random ones."
            yield f"oracle has the true groups, with the lam of {record.main.method}."
        if "coef" in record.facts["truth"]:
            yield "The error is that of the matrix of all coefficients."
        if any(line.status == Status.RELAXED for line in record.lines):
            yield "relax counts by the largest entry of each feature."

    @classmethod
    def explained_on_page(cls, record: Record) -> list[str]:
        """The truth is in the same table there."""
        return [*cls.explained(record), *cls.truth_words(record)]


def _chosen_groups(theta: NDArray[Any]) -> list[tuple[int, ...]]:
    """The groups of each feature: one, or by simple rounding none or two; where theta is relaxed, that of its largest entry."""
    if theta.dtype != np.bool_:
        return [(int(group),) for group in theta.argmax(axis=1)]
    return [tuple(np.flatnonzero(row).tolist()) for row in theta]


def _adjusted_rand(labels: NDArray[np.intp] | None, chosen: list[tuple[int, ...]]) -> float | None:
    """1 for the true structure, about 0 for a random one; a feature without a group is alone."""
    if labels is None:
        return None
    from sklearn.metrics import adjusted_rand_score

    named = [str(groups) if groups else f"alone {i}" for i, groups in enumerate(chosen)]
    return float(adjusted_rand_score(labels, named))


def _structure(features: Sequence[str], theta: NDArray[Any]) -> str:
    """The group of each feature, empty where it has none; with the weight in it, where that is a fraction."""
    relaxed = theta.dtype != np.bool_
    header = ["feature", "name", "group", *(["weight"] if relaxed else [])]
    cells = [" ".join(map(str, groups)) for groups in _chosen_groups(theta)]
    weights = theta.max(axis=1).tolist()
    rows = (
        [i, name, group, *([weight] if relaxed else [])]
        for i, (name, group, weight) in enumerate(zip(features, cells, weights, strict=True))
    )
    return csv_text(header, rows)
