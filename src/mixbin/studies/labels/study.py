"""Which labels of a table are probably wrong: ``LabelCleaner`` as a command."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from mixbin import _validate as check
from mixbin._digest import digest
from mixbin._files import csv_text, json_text
from mixbin._validate import Floats
from mixbin.data import reader
from mixbin.data.one_blas_thread import on_one_blas_thread
from mixbin.errors import InvalidInput
from mixbin.estimators import LabelCleaner
from mixbin.estimators.labels.checks import FOR_NUMBERS
from mixbin.estimators.labels.choice import LINEAR_ALPHA
from mixbin.reporting.blocks import Page
from mixbin.reporting.record import Line, Record
from mixbin.reporting.runs import Column, Run, reading_facts
from mixbin.studies.labels import page
from mixbin.studies.labels.options import LabelsOptions
from mixbin.studies.labels.words import verdict
from mixbin.studies.study import FitStudy, Table, Texts, in_format

FOLDS = 5
BINS = 20
"""Bars of the histogram of qualities, from 0 to 1."""
MOST_PRINTED = 10
"""Doubtful rows that the terminal shows."""
LONGEST_PRINTED = 30
"""Letters of a label in the terminal."""

Part = tuple[Floats, NDArray[np.str_]]
"""Features, and classes as text."""


class Labels(FitStudy[LabelsOptions]):
    """One table in memory, with classes as labels."""

    kind = "labels"
    files: ClassVar = {
        "suspects.csv": "the doubtful rows, most doubtful first, with the label suggested instead",
        "clean.csv": "the rows to train on",
        "clean.parquet": "the rows to train on",
        "quality.csv": "the quality of every label, from 0 to 1",
        "model.json": "the logistic regression trained on the rows to train on",
    }
    measured = (
        "accuracy is the share of test rows whose label a logistic regression predicts, balanced accuracy the mean of the "
        "classes' shares; with wrong labels among the test rows both come out too low."
    )
    cleaner: LabelCleaner

    def check(self) -> None:
        """Refuse options before any file is read."""
        _ = self.options.picture
        remedy = "0.9 keeps at least a tenth of every class"
        check.real("--max-class-loss", self.options.max_class_loss, low=0, high=1, remedy=remedy)
        if self.options.jobs == 0:
            raise check.fail("--jobs", 0, "a whole number other than 0", "-1 uses all cores")

    @property
    def source(self) -> str:
        """The name of the table."""
        return self.options.train.name

    def load(self) -> None:
        """Features as numbers, labels as text."""
        options = self.options
        self.reader = options.reader(options.target, classes=True)
        whole = self.reader.train(options.train)
        self.reader.learn([whole])
        self.table, self.target, self.rows, self.read_parts = whole.table, self.reader.target, whole.rows, [whole]
        self.features = self.reader.names
        if (size := options.picture) is not None and size[0] * size[1] != len(self.features):
            raise InvalidInput(
                f"--image must have as many pixels as there are features, got {options.image!r} for {len(self.features)}; "
                "change it, or leave columns out with --ignore"
            )
        self.train = self._part([whole])
        self.trusted, self.test = self._more(options.trusted), self._more(options.test)
        self._check_classes()

    def _check_classes(self) -> None:
        """Refuse columns that hold no classes, and trusted rows of unknown classes."""
        classes, counts = np.unique(self.train[1], return_counts=True)
        if np.count_nonzero(counts >= FOLDS) < 2:
            raise InvalidInput(
                f"--target must have at least two classes with {FOLDS} rows or more, got {self.target!r} with {len(counts)} "
                f"values in {len(self.rows)} rows; {FOR_NUMBERS}"
            )
        unknown = [] if self.trusted is None else np.setdiff1d(self.trusted[1], classes).tolist()
        if unknown:
            raise InvalidInput(
                f"--trusted must hold classes of {self.options.train}, got {check.listed(unknown)}; add such rows to the table"
            )

    def _more(self, files: list[Path]) -> Part | None:
        read = [self.reader.like(file) for file in files]
        self.read_parts += read
        return self._part(read) if read else None

    def _part(self, read: list[reader.Part]) -> Part:
        X, y = [self.reader.numbers(it) for it in read], [it.y for it in read]
        return np.concatenate(X), np.concatenate(y)

    def left_files(self) -> list[str]:
        """The rows to train on are in the format of the table."""
        return in_format(self.all_files(), self.table.ending)

    def contents(self) -> dict[str, Any]:
        """All rows and the names of the columns."""
        parts = {"data": self.train, "trusted": self.trusted, "test": self.test}
        hashes = {name: None if part is None else digest(part[0], _bytes(part[1])) for name, part in parts.items()}
        return {**hashes, "columns": [*self.features, self.target], **self.reader.identity(self.read_parts)}

    @on_one_blas_thread
    def fit(self) -> list[Line]:
        """Judge the labels, and compare models trained on all rows and on the rows kept."""
        options, began = self.options, time.perf_counter()
        settings: dict[str, Any] = {
            "cv": FOLDS,
            "guard": options.guard,
            "max_class_loss": options.max_class_loss,
            "n_jobs": options.jobs,
        }
        trusted = () if self.trusted is None else self.trusted
        self.cleaner = LabelCleaner(**settings, random_state=options.seed).fit(*self.train, *trusted)
        seconds = time.perf_counter() - began
        every = np.ones(len(self.rows), dtype=bool)
        self.model = self._model(self.cleaner.support_)
        return [
            Line("all rows", self._measured(self._model(every), every)),
            Line("rows kept", self._measured(self.model, self.cleaner.support_), seconds=round(seconds, 3), message="fitted"),
        ]

    def _model(self, kept: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Coefficients and intercepts of a logistic regression on some rows, in the units of the columns; a line per class."""
        X, y = self.train
        scaler = StandardScaler().fit(X)
        fitted = LogisticRegression(C=1 / (LINEAR_ALPHA * int(kept.sum())), max_iter=2000).fit(scaler.transform(X[kept]), y[kept])
        coef, intercept = fitted.coef_ / scaler.scale_, fitted.intercept_
        if len(coef) == 1:
            coef, intercept = np.concatenate([-coef / 2, coef / 2]), np.concatenate([-intercept / 2, intercept / 2])
        return coef, intercept - coef @ scaler.mean_

    def _measured(self, model: tuple[Floats, Floats], kept: NDArray[np.bool_]) -> dict[str, Any]:
        numbers: dict[str, Any] = {"rows": int(kept.sum()), "test_accuracy": None, "test_balanced": None}
        if self.test is not None:
            X, y = self.test
            hit = self.cleaner.classes_[(X @ model[0].T + model[1]).argmax(axis=1)] == y
            numbers["test_accuracy"] = float(hit.mean())
            numbers["test_balanced"] = float(np.mean([hit[y == name].mean() for name in np.unique(y)]))
        return numbers

    def facts(self) -> dict[str, Any]:
        """Files, columns and counts; everything that the page draws."""
        cleaner, y, size = self.cleaner, self.train[1], self.options.picture
        codes, edges = np.searchsorted(cleaner.classes_, y), np.linspace(0, 1, BINS + 1)
        bins = {name: np.histogram(cleaner.label_quality_[rows], edges)[0].tolist() for name, rows in self._some().items()}
        found = cleaner.guard_
        doubtful = self._order()[:MOST_PRINTED]
        suggested = cleaner.suggested_labels_
        first = [[int(self.rows[i]), str(y[i]), str(suggested[i]), round(float(cleaner.label_quality_[i]), 4)] for i in doubtful]
        return {
            "train": str(self.options.train),
            "target": self.target,
            "features": len(self.features),
            "rows": len(y),
            "trusted_rows": None if self.trusted is None else len(self.trusted[1]),
            "test_rows": None if self.test is None else len(self.test[1]),
            "classes": cleaner.classes_.tolist(),
            "labelled": np.bincount(codes, minlength=len(cleaner.classes_)).tolist(),
            "kept": np.bincount(codes[cleaner.support_], minlength=len(cleaner.classes_)).tolist(),
            "confusion": cleaner.confusion_.tolist(),
            "rare_classes": cleaner.rare_classes_.tolist(),
            "suspects": int(cleaner.suspect_.sum()),
            "held_back": int(cleaner.held_back_.sum()),
            "guarded": self.options.guard,
            "guard": None if found is None else found._asdict() | {"accepted": bool(found.accepted)},
            "quality": bins,
            "most_doubtful": first,
            "representation": cleaner.representation_,
            "image": None if size is None else list(size),
            "max_class_loss": self.options.max_class_loss,
            "seed": self.options.seed,
            **reading_facts(self.reader.facts(self.read_parts)),
        }

    def _some(self) -> dict[str, NDArray[np.bool_]]:
        return {"all": np.ones(len(self.rows), dtype=bool), "suspects": self.cleaner.suspect_}

    def _order(self) -> NDArray[np.intp]:
        """The suspects, most doubtful first."""
        rows = np.flatnonzero(self.cleaner.suspect_)
        return np.asarray(rows[np.argsort(self.cleaner.label_quality_[rows], kind="stable")])

    def texts(self) -> Texts:
        """The doubtful rows, those to train on, all qualities, and the model: scores are intercept + coef x, the largest wins."""
        cleaner, order, y = self.cleaner, self._order(), self.train[1]
        quality = cleaner.label_quality_
        numbers = self.rows[order]
        first = zip(numbers.tolist(), y[order], cleaner.suggested_labels_[order], quality[order].tolist(), strict=True)
        rows = [[*before, *cells] for before, cells in zip(first, self.table.rows(numbers), strict=True)]
        kept = self.rows[cleaner.support_]
        coef, intercept = self.model
        model = {
            "target": self.target,
            "classes": cleaner.classes_.tolist(),
            "features": self.features,
            "intercept": intercept.tolist(),
            "coef": coef.tolist(),
            "rows": len(y),
            "kept_rows": len(kept),
            **self.reader.model_facts(),
        }
        return {
            "suspects.csv": self.table.csv_of(["row", "label", "suggested label", "quality", *self.table.names], rows),
            f"clean{self.table.ending}": self.table.written(kept, {}),
            "quality.csv": csv_text(["row", "quality"], zip(self.rows.tolist(), quality.tolist(), strict=True)),
            "model.json": json_text(model),
        }

    # Words.

    @classmethod
    def sentence(cls, facts: Mapping[str, Any]) -> str:
        """What is judged, and by what."""
        trusted, test = facts["trusted_rows"], facts["test_rows"]
        return (
            f"The task: find the rows of {Path(facts['train']).name} whose label in column {facts['target']!r} is probably "
            f"wrong, among {facts['rows']:,} rows and {len(facts['classes']):,} classes"
            + ("" if trusted is None else f", with the help of {trusted:,} trusted rows")
            + "."
            + ("" if test is None else f" {test:,} test rows play no part.")
        )

    @classmethod
    def columns(cls) -> Mapping[str, Column]:
        """Rows, and how well a model does on test rows."""
        return {
            "rows": Column("rows", ",d", "rows"),
            "test_accuracy": Column("test accuracy", ".4g", "test\naccuracy"),
            "test_balanced": Column("balanced test accuracy", ".4g", "balanced\ntest accuracy"),
        }

    @classmethod
    def explained(cls, record: Record) -> list[str]:
        """Accuracies need explaining only where there are test rows."""
        return [cls.measured] if record.facts["test_rows"] is not None else []

    @classmethod
    def more(cls, record: Record) -> Iterator[str | Table]:
        """The most doubtful rows, and the verdict of the guard."""
        facts = record.facts
        if facts["most_doubtful"]:
            rows = [
                [str(row), _cut(label), _cut(other), f"{quality:.3f}"] for row, label, other, quality in facts["most_doubtful"]
            ]
            yield f"The most doubtful of {facts['suspects']:,} doubtful labels (rows count from 0):"
            yield Table(["row", "label", "suggested", "quality"], rows)
        yield verdict(facts)

    @classmethod
    def page(cls, run: Run) -> Page:
        """The page of a finished run."""
        return page.page(run, cls.columns(), cls.explained(run.record))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_PRINTED else text[: LONGEST_PRINTED - 3] + "..."


def _bytes(labels: NDArray[np.str_]) -> NDArray[np.uint8]:
    return np.char.encode(labels, "utf-8").view(np.uint8)
