"""Which rows of a table to train a classifier on, and which labels not to trust."""

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mixbin._digest import digest
from mixbin._files import json_text
from mixbin._validate import Floats
from mixbin.data import reader
from mixbin.errors import InvalidInput
from mixbin.estimators.classification import CLASS_SHARES, PATH_TOL, default_judge, search_settings
from mixbin.problems import SoftmaxDistillation
from mixbin.problems.distillation.judge import DEFAULT_TEMPERATURE
from mixbin.problems.distillation.references import DRAWS
from mixbin.reporting.record import Line, Record
from mixbin.result import Result
from mixbin.studies.distillation.options import DistillOptions, Judge
from mixbin.studies.distillation.rows import TableStudy, mean_and_spread
from mixbin.studies.distillation.where import where
from mixbin.studies.study import Texts, split_words

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
"""All rows and random rows get the best of these multiples of alpha, by the validation rows."""
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
    error, digits = "accuracy", ".4g"
    measured = (
        "loss is 1 minus the probability of the given class, all classes alike, "
        "accuracy the share of rows whose class is predicted."
    )
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
            "--tolerance": options.tolerance is not None,
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
            judge_loss=default_judge(bool(self.options.validation)),
            balanced=True,
            class_shares=CLASS_SHARES,
            path_tol=PATH_TOL,
        )

    def search_settings(self) -> Mapping[str, Any]:
        """Those of DistillationClassifier."""
        return search_settings(len(self.rows))

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
        model = self.problem.model(theta, lam) if theta.any() else None
        numbers = self._numbers(model, theta == 0)
        return numbers | {"rows": int(np.count_nonzero(theta)), "alpha": self.problem.strength.value(lam)}

    def _numbers(self, model: tuple[Floats, Floats] | None, others: NDArray[np.bool_]) -> dict[str, Any]:
        """The numbers of a model on the rows that judge, on test rows, and on the candidate rows at which ``others`` is True."""
        out: dict[str, Any] = {}
        X, y = self.train
        unkept = (X[others], y[others]) if others.any() else None
        for name, part in (("validation", self.validation), ("test", self.test), ("unkept", unkept)):
            loss, accuracy = (None, None) if part is None or model is None else self._judged(model, part)
            out |= {f"{name}_loss": loss, f"{name}_accuracy": accuracy}
        del out["unkept_loss"]
        return out | {"ratio": self._ratio(out, others)}

    def _judged(self, model: tuple[Floats, Floats], part: Part) -> tuple[float | None, float]:
        """Loss and accuracy on some rows; no loss if a class among them is not known."""
        X, y = part
        classes, (coef, intercept) = self.problem.classes, model
        scores = X @ coef.T + intercept
        accuracy = float(np.mean(classes[scores.argmax(axis=1)] == y))
        if not np.isin(y, classes).all():
            return None, accuracy
        return self.problem.loss(model, X, y), accuracy

    def _ratio(self, numbers: Mapping[str, Any], others: NDArray[np.bool_]) -> float | None:
        """The share of wrong classes divided by that of all rows: on test rows or, without any, on the rows not kept."""
        part = "unkept" if self.test is None else "test"
        right, X, y = numbers[f"{part}_accuracy"], *self.train
        if right is None:
            return None
        full = 1 - self._judged(self._all_rows, (X[others], y[others]) if self.test is None else self.test)[1]
        return None if full == 0 else (1 - right) / full

    @cached_property
    def _all_rows(self) -> tuple[Floats, Floats]:
        return self._best_model(np.ones(len(self.rows)))

    def _best_model(self, weights: Floats) -> tuple[Floats, Floats]:
        """The model trained on rows of these weights, with the strength among STRENGTHS that is best on the validation rows.

        Weights c times as large are a penalty of a c-th of the strength.
        """
        lam = () if self.problem.strength.fixed else self._lam
        if self.options.alpha is not None:
            return self.problem.model(weights, lam)
        models = [self.problem.model(weights / strength, lam) for strength in STRENGTHS]
        return min(models, key=lambda model: self._judged(model, self.validation)[0] or 0.0)

    def references(self, main: Result) -> list[Line]:
        """All candidate rows, and random rows, each with the best alpha by the validation rows."""
        began, m = time.perf_counter(), len(self.rows)
        self._lam = main.lam
        kept = main.theta > 0
        numbers = self._numbers(self._all_rows, ~kept) | {"rows": m, "alpha": None}
        full = Line("all rows", numbers, evaluations=len(STRENGTHS), seconds=round(time.perf_counter() - began, 3))
        k, began = int(kept.sum()), time.perf_counter()
        if k == m:
            return [full]
        each = []
        for i in range(DRAWS):
            drawn = np.zeros(m, dtype=bool)
            drawn[np.random.default_rng([self.options.seed, i]).choice(m, k, replace=False)] = True
            each.append(self._numbers(self._best_model(drawn.astype(np.float64)), ~drawn))
        seconds, said = round(time.perf_counter() - began, 3), f"mean and spread of {DRAWS} draws"
        numbers = mean_and_spread(each) | {"rows": k, "alpha": None}
        return [full, Line("random rows", numbers, None, DRAWS * len(STRENGTHS), seconds, said)]

    def facts(self, main: Result) -> dict[str, Any]:
        """Also the classes."""
        budget = None if self.options.budget is None else int(getattr(self.problem.theta_set, "k", len(self.rows)))
        classes = self.problem.classes.tolist()
        X, kept = self.train[0], np.flatnonzero(main.theta)
        centred = X - X.mean(axis=0)
        at = where(lambda rows: centred[rows], len(X), centred.T @ centred / len(X), kept, self.options.seed)
        return super().facts(main) | {"task": "classification", "classes": classes, "budget": budget, "where": at}

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
    def explained(cls, record: Record) -> list[str]:
        """Validation rows that were given are judged by the cross entropy."""
        first, *more = super().explained(record)
        if record.facts["validation_split"] is None:
            bounded, entropy = "1 minus the probability", f"the cross entropy, with scores divided by {DEFAULT_TEMPERATURE:g},"
            first = first.replace(bounded, entropy)
        return [first, *more]

    @classmethod
    def sentence(cls, facts: Mapping[str, Any]) -> str:
        """What is kept or dropped, and what judges it."""
        k, m, name = facts["budget"], facts["rows"], Path(facts["train"]).name
        keep = (
            f"keep {k:,} of {m:,} rows of {name}"
            if k is not None
            else f"of {m:,} rows of {name} drop those whose label does harm"
        )
        rest = "them" if k is not None else "the rest"
        return (
            f"The task: {keep}, such that a logistic regression trained on {rest} predicts column {facts['target']!r} "
            f"({len(facts['classes'])} classes) best on {facts['validation_rows']:,} validation rows{split_words(facts)[0]}."
        )


def _bytes(part: Part) -> tuple[Floats, NDArray[np.uint8]]:
    """Some rows, their classes as bytes."""
    X, labels = part
    return X, np.char.encode(labels, "utf-8").view(np.uint8)
