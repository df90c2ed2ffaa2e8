"""Which rows of a table to train a classifier on, and which labels not to trust."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mixbin._digest import digest
from mixbin._files import json_text
from mixbin._validate import Floats
from mixbin.data import reader
from mixbin.errors import InvalidInput
from mixbin.estimators.classification import CLASS_SHARES, PATH_TOL, POLISH
from mixbin.problems import SoftmaxDistillation
from mixbin.reporting.record import Line
from mixbin.result import Result
from mixbin.studies.distillation.options import DistillOptions, Judge
from mixbin.studies.distillation.rows import TableStudy
from mixbin.studies.study import Texts, split_words

Part = tuple[Floats, NDArray[np.str_]]
"""Features, and classes as text."""


class Classification(TableStudy[Part]):
    """One table in memory, with classes to predict."""

    kind = "classification"
    files: ClassVar = {
        **TableStudy.files,
        "dropped.csv": "the other candidate rows: those whose label to doubt",
        "dropped.parquet": "the other candidate rows: those whose label to doubt",
        "model.json": "the logistic regression trained on the selected rows",
    }
    settings: ClassVar = {"polish": POLISH}
    error, digits = "accuracy", ".4g"
    measured = "loss is 1 minus the probability of the given class, accuracy the share of rows whose class is predicted."
    problem: SoftmaxDistillation

    def check(self) -> None:
        """What is about ridge regressions has no use here."""
        super().check()
        options = self.options
        given = {
            "--judge full": options.judge is Judge.FULL,
            "--no-standardize": not options.standardize,
            "--outer-alpha": options.outer_alpha != DistillOptions.outer_alpha,
            "--gap-tol": options.gap_tol != DistillOptions.gap_tol,
        }
        for name in (name for name, typed in given.items() if typed):
            raise InvalidInput(f"{name} has no use for --task classification, where validation rows judge; leave it out")

    def load(self) -> None:
        """Features as numbers, classes as text."""
        self.read()
        # As in DistillationClassifier, whose defaults the command shares.
        self.problem = SoftmaxDistillation(
            *self.train,
            *self.validation,
            budget=self.budget,
            alpha=self.options.alpha,
            balanced=True,
            class_shares=CLASS_SHARES,
            path_tol=PATH_TOL,
        )

    def prepare(self) -> str | None:
        """Point to the command that finds wrong labels, if that is what was asked for."""
        if self.options.budget is not None:
            return super().prepare()
        return "To find wrong labels use mixbin labels, which needs no validation rows; this run drops rows that harm validation."

    def part(self, read: Sequence[reader.Part]) -> Part:
        """One table after the other."""
        X, y = [self.reader.numbers(it) for it in read], [it.y for it in read]
        return (X[0], y[0]) if len(read) == 1 else (np.concatenate(X), np.concatenate(y))

    def split(self, everything: Part, rows: NDArray[np.intp], held: NDArray[np.intp]) -> tuple[Part, Part, NDArray[np.intp]]:
        """By row numbers. A class that only had validation rows could not be learnt, so these rows are left out."""
        X, y = everything
        held = held[np.isin(y[held], y[rows])]
        return (X[rows], y[rows]), (X[held], y[held]), held

    def digests(self) -> dict[str, str | None]:
        """Of the rows as they are: the problem centres its rows, and its fingerprint is that of the centred ones."""
        return {
            "data": digest(*_bytes(self.train), *_bytes(self.validation)),
            "test": None if self.test is None else digest(*_bytes(self.test)),
        }

    def measure(self, theta: NDArray[Any], lam: Floats) -> dict[str, Any]:
        """Loss and accuracy of the model trained on the chosen rows."""
        out: dict[str, Any] = {}
        classes = self.problem.classes
        for name, part in (("validation", self.validation), ("test", self.test)):
            loss = accuracy = None
            if part is not None and theta.any():
                X, y = part
                coef, intercept = self.problem.model(theta, lam)
                scores = X @ coef.T + intercept
                accuracy = float(np.mean(classes[scores.argmax(axis=1)] == y))
                if np.isin(y, classes).all():
                    own = np.searchsorted(classes, y)
                    loss = float(np.mean(-np.expm1(scores[np.arange(len(own)), own] - np.logaddexp.reduce(scores, axis=1))))
            out |= {f"{name}_loss": loss, f"{name}_accuracy": accuracy}
        return out | {"rows": int(np.count_nonzero(theta)), "alpha": self.problem.strength.value(lam)}

    def references(self, main: Result) -> list[Line]:
        """All candidate rows, with the alpha of the answer."""
        return [Line("all rows", self.measure(np.ones(len(self.rows), dtype=bool), main.lam))]

    def facts(self, main: Result) -> dict[str, Any]:
        """Also the classes."""
        budget = None if self.options.budget is None else int(getattr(self.problem.theta_set, "k", len(self.rows)))
        classes = self.problem.classes.tolist()
        return super().facts(main) | {"task": "classification", "classes": classes, "budget": budget}

    def texts(self, method: str, main: Result, out: Path) -> Texts:
        """The rows, those that were dropped, and the model: scores are intercept + coef x, the largest wins."""
        coef, intercept = self.problem.model(main.theta, main.lam)
        model = {
            "target": self.target,
            "classes": self.problem.classes.tolist(),
            "features": self.features,
            "intercept": intercept.tolist(),
            "coef": coef.tolist(),
            "alpha": self.problem.strength.value(main.lam),
            "candidate_rows": len(self.rows),
            "selected_rows": int(np.count_nonzero(main.theta)),
            **self.model_facts(),
        }
        return {
            **self.selected(main.theta),
            **self.selected(main.theta == 0, "dropped"),
            "model.json": json_text(model),
        }

    # Words.

    @classmethod
    def sentence(cls, facts: Mapping[str, Any]) -> str:
        """What is kept or dropped, and what judges it."""
        k, m, name = facts["budget"], facts["rows"], Path(facts["train"]).name
        keep = (
            f"keep {k:,} of {m:,} rows of {name}"
            if k is not None
            else f"of {m:,} rows of {name} drop those whose label does harm"
        )
        return (
            f"The task: {keep}, such that a logistic regression trained on the rest predicts column {facts['target']!r} "
            f"({len(facts['classes'])} classes) best on {facts['validation_rows']:,} validation rows{split_words(facts)[0]}."
        )


def _bytes(part: Part) -> tuple[Floats, NDArray[np.uint8]]:
    """Some rows, their classes as bytes."""
    X, labels = part
    return X, np.char.encode(labels, "utf-8").view(np.uint8)
