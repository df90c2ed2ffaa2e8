"""Which features of a table to keep: ``FeatureSelector`` as a command."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._digest import digest
from mixbin._files import csv_text, json_text
from mixbin._numbers import readable
from mixbin._validate import Floats
from mixbin.data import reader
from mixbin.data.one_blas_thread import on_one_blas_thread
from mixbin.errors import InvalidInput
from mixbin.estimators import FeatureSelector
from mixbin.problems.best_subset.problem import LARGEST
from mixbin.reporting.blocks import Page
from mixbin.reporting.record import Line, Record
from mixbin.reporting.runs import Column, Run, reading_facts
from mixbin.studies.features import page
from mixbin.studies.features.comparison import FOLDS, counts_on_path, errors_on, held_out
from mixbin.studies.features.options import FeaturesOptions
from mixbin.studies.features.words import ALL, ANY_COUNT, BEST, NAMES, TUNED, better_ones, cut, measured, proof
from mixbin.studies.study import FitStudy, Table, Texts, in_format

BOOTSTRAP_DRAWS = 100
FEWEST_ROWS = 10
MOST_PRINTED = 20
"""Features that the terminal shows."""
LONGEST_PRINTED = 30
"""Letters of a name in the terminal."""

Part = tuple[Floats, Floats]
"""Features and targets; two classes are 0 and 1."""


class Features(FitStudy[FeaturesOptions]):
    """One table in memory, with numbers or two classes to predict."""

    kind = "features"
    files: ClassVar = {
        "features.csv": "every feature: kept or not, rank, coefficient, effect",
        "selected.csv": "the table with the features kept and the target",
        "selected.parquet": "the table with the features kept and the target",
        "model.json": "the model on the features kept, and its scikit-learn call",
    }
    measured = (
        f"Held-out folds (cv): features, ridge weight and model are from {FOLDS - 1} of {FOLDS} folds, errors from the other. "
        "Models on as many features as the best subset have its ridge weight, but the lasso shrinks by itself; the tuned lasso "
        "and the model on all features have penalties of their own, and the tuned lasso chooses how many features it keeps."
    )
    selector: FeatureSelector

    def check(self) -> None:
        """Refuse options before any file is read."""
        check.whole("--seed", self.options.seed, low=0, high=2**32 - 1, remedy="write a small number")
        if self.options.time_limit is not None:
            check.real("--time-limit", self.options.time_limit, low=0, remedy="write seconds such as 60")
            if not self.options.prove:
                raise InvalidInput("--time-limit must come with --prove, got it alone; add --prove or leave it out")

    @property
    def source(self) -> str:
        """The name of the table."""
        return self.options.train.name

    @property
    def loss(self) -> str:
        """The loss, by the name that ``FeatureSelector`` has for it."""
        return str(self.options.loss.value)

    def load(self) -> None:
        """Features as numbers; targets as numbers, or as classes."""
        options = self.options
        logistic = self.loss == "logistic"
        self.reader = options.reader(options.target, logistic, "" if logistic else "--loss logistic, if they are two")
        whole = self.reader.train(options.train)
        self.reader.learn([whole])
        self.whole, self.table, self.target, self.rows = whole, whole.table, self.reader.target, whole.rows
        self.read_parts = [whole]
        self.features = self.reader.names
        if options.keep > len(self.features):
            raise InvalidInput(
                f"--keep must be at most the number of features, got {options.keep} for {len(self.features)}; keep fewer"
            )
        if len(whole) < FEWEST_ROWS:
            raise InvalidInput(f"{options.train} must have at least {FEWEST_ROWS} rows, got {len(whole)}; add rows")
        self.classes: list[str] | None = None
        if self.loss == "logistic":
            self.classes = self._two_classes(whole.y)
        self.train = self._part([whole])
        if np.ptp(self.train[1]) == 0:
            raise InvalidInput(f"--target must have values that differ, got {self.target!r} with one value; name another column")
        read = [self.reader.like(file) for file in options.test]
        self.read_parts += read
        self.test = self._part(read) if read else None

    def _two_classes(self, labels: NDArray[np.str_]) -> list[str]:
        classes, counts = np.unique(labels, return_counts=True)
        if len(classes) != 2 or counts.min() < FOLDS:
            raise InvalidInput(
                f"--target must have two classes with {FOLDS} rows or more for --loss logistic, got {self.target!r} with "
                f"{len(classes)} values in {len(labels)} rows; leave other classes out, or use --loss squared for numbers"
            )
        return [str(name) for name in classes]

    def _part(self, read: list[reader.Part]) -> Part:
        X = np.concatenate([self.reader.numbers(it) for it in read])
        y = np.concatenate([self._targets(it) for it in read])
        for name, values in [*zip(self.features, X.T, strict=True), (self.target, y)]:
            if np.abs(values).max() > LARGEST:
                raise InvalidInput(
                    f"column {name!r} must hold numbers of at most {LARGEST:g}, got larger ones; use a larger unit"
                )
        return X, y

    def _folded(self, train: NDArray[np.intp], held: NDArray[np.intp]) -> Part:
        """The features of a fold's rows; text and gaps are encoded by what the training rows alone tell."""
        if self.reader.is_plain:
            return self.train[0][train], self.train[0][held]
        return self.reader.held_apart(self.whole, train, held)

    def _targets(self, part: reader.Part) -> Floats:
        if self.classes is None:
            return np.asarray(part.y, dtype=np.float64)
        unknown = np.setdiff1d(part.y, self.classes).tolist()
        if unknown:
            raise InvalidInput(f"{part.table.file} must hold the classes of {self.options.train}, got {check.listed(unknown)}")
        return np.asarray(part.y == self.classes[1], dtype=np.float64)

    def left_files(self) -> list[str]:
        """The table with the features kept is in the format of the table."""
        return in_format(self.all_files(), self.table.ending)

    def contents(self) -> dict[str, Any]:
        """All rows, the names of the columns, and the classes."""
        hashes = {name: None if part is None else digest(*part) for name, part in {"data": self.train, "test": self.test}.items()}
        told = self.reader.identity(self.read_parts)
        return {**hashes, "columns": [*self.features, self.target], "classes": self.classes, **told}

    @on_one_blas_thread
    def fit(self) -> list[Line]:
        """Choose the features, and compare them with others on held-out folds and on the test rows."""
        options, began = self.options, time.perf_counter()
        settings: dict[str, Any] = {"n_features": options.keep, "loss": self.loss, "random_state": options.seed}
        draws = BOOTSTRAP_DRAWS if options.stability else 0
        proving: dict[str, Any] = {"prove": options.prove, "time_limit": options.time_limit}
        self.selector = FeatureSelector(**settings, **proving, stability=draws).fit(*self.train)
        seconds = time.perf_counter() - began
        X, y = self.train
        self.counts = counts_on_path(options.keep, X.shape[1], len(y))
        self.at = self.counts.index(options.keep)
        self.folds = held_out(self._folded, y, settings, self.counts)
        tested = None
        if self.test is not None:
            tested = errors_on(self.train, self.test, self.selector, [options.keep], options.seed)
        lines = []
        for name in NAMES:
            counts = {ALL: X.shape[1], TUNED: round(self.folds.lasso_features)}
            numbers: dict[str, Any] = {"features": counts.get(name, options.keep)}
            numbers |= {f"cv_{key}": value for key, value in self.folds.measured(name, self.at, self.loss).items()}
            if tested is not None:
                numbers |= {f"test_{key}": value for key, value in tested.measured(name, 0, self.loss).items()}
            took = self.folds.seconds[name] + (tested.seconds[name] if tested else 0.0) + (seconds if name == BEST else 0.0)
            lines.append(Line(name, numbers, seconds=round(took, 3), message="fitted"))
        return lines

    def facts(self) -> dict[str, Any]:
        """Files, columns and counts; everything that the page draws."""
        selector, options = self.selector, self.options
        return {
            "train": str(options.train),
            "target": self.target,
            "classes": self.classes,
            "features": len(self.features),
            "rows": len(self.rows),
            "test_rows": None if self.test is None else len(self.test[1]),
            "keep": int(selector.n_features_),
            "loss": self.loss,
            "gamma": float(selector.gamma_),
            "value": float(selector.value_),
            "lower_bound": float(selector.lower_bound_),
            "gap": float(selector.gap_),
            "proved": bool(selector.proved_),
            "prove": options.prove,
            "time_limit": options.time_limit,
            "stability_draws": BOOTSTRAP_DRAWS if options.stability else None,
            "kept": [row for row in self._rows() if row["kept"]],
            "counts": self.counts,
            "curves": {name: self.folds.curve(name, self.loss) for name in NAMES if name not in ANY_COUNT},
            "enough": self.folds.enough(self.counts),
            "error_of_all": self.folds.curve(ALL, self.loss)[0],
            "beside": {name: list(self.folds.difference(name, self.at)) for name in ANY_COUNT},
            "lasso_features": round(self.folds.lasso_features),
            "seed": options.seed,
            **reading_facts(self.reader.facts(self.read_parts)),
        }

    def _rows(self) -> list[dict[str, Any]]:
        """Every feature with what is known about it: those kept first, by their effect, then the others by rank."""
        selector, spread = self.selector, self.train[0].std(axis=0)
        effects = selector.coef_ * spread
        rows = []
        for j in np.lexsort((-np.abs(effects), selector.ranking_)).tolist():
            row = {
                "feature": self.features[j],
                "kept": bool(selector.support_[j]),
                "rank": int(selector.ranking_[j]),
                "coefficient": float(selector.coef_[j]),
                "effect": float(effects[j]),
            }
            rows.append(row | ({"stability": float(selector.stability_[j])} if self.options.stability else {}))
        return rows

    def texts(self) -> Texts:
        """All features, the table with those kept, and the model: intercept + coef x, for classes the log odds of the second."""
        rows, selector = self._rows(), self.selector
        kept = [j for j, it in enumerate(selector.support_) if it]
        names = [self.features[j] for j in kept]
        model = {
            "target": self.target,
            "loss": self.loss,
            "classes": self.classes,
            "features": names,
            "intercept": float(selector.intercept_),
            "coef": selector.coef_[kept].tolist(),
            "gamma": float(selector.gamma_),
            "value": float(selector.value_),
            "lower_bound": float(selector.lower_bound_),
            "gap": float(selector.gap_),
            "proved": bool(selector.proved_),
            "rows": len(self.rows),
            "scikit_learn": self._call(),
            **self.reader.model_facts(names),
        }
        return {
            "features.csv": csv_text(list(rows[0]), [list(row.values()) for row in rows]),
            f"selected{self.table.ending}": self._selected(names, kept),
            "model.json": json_text(model),
        }

    def _selected(self, names: list[str], kept: list[int]) -> bytes:
        """The features kept and the target: as they were in the table, or as numbers where they were turned into some."""
        changed = {name for name in names if name not in self.table.names or not self.reader.is_unchanged(name)}
        if not changed:
            return self.table.written(self.rows, {}, [*names, self.target])
        columns = {name: self.train[0][:, j].tolist() for name, j in zip(names, kept, strict=True)}
        return self.table.written(self.rows, columns, [self.target])

    def _call(self) -> str:
        """The same model by scikit-learn; X are the features of selected.csv (or .parquet) and y is its target."""
        gamma = float(self.selector.gamma_)
        # Twelve digits give the same model to the last digits that are shown, and no 0.23700000000000002.
        model = f"Ridge(alpha={gamma:.12g})" if self.classes is None else f"LogisticRegression(C={1 / gamma:.12g})"
        return f"make_pipeline(StandardScaler(), {model}).fit(X, y)"

    # Words.

    @classmethod
    def sentence(cls, facts: Mapping[str, Any]) -> str:
        """What is chosen, and by what."""
        model, test = "logistic" if facts["loss"] == "logistic" else "ridge", facts["test_rows"]
        return (
            f"The task: keep {facts['keep']:,} of the {facts['features']:,} features of {Path(facts['train']).name}, such that a "
            f"{model} regression on them fits column {facts['target']!r} best, on {facts['rows']:,} rows."
            + ("" if test is None else f" {test:,} test rows play no part.")
        )

    @classmethod
    def columns(cls) -> Mapping[str, Column]:
        """How well models do on held-out folds and on test rows; a run has those of its loss."""
        return {
            "features": Column("features", ",d", "features"),
            "cv_rmse": Column("error on held-out folds", ".4g", "cv\nerror"),
            "cv_r2": Column("R\N{SUPERSCRIPT TWO} on held-out folds", ".4g", "cv\nR2"),
            "test_rmse": Column("test error", ".4g", "test\nerror"),
            "test_r2": Column("test R\N{SUPERSCRIPT TWO}", ".4g", "test\nR2"),
            "cv_log_loss": Column("log loss on held-out folds", ".4g", "cv\nlog loss"),
            "cv_accuracy": Column("accuracy on held-out folds", ".4g", "cv\naccuracy"),
            "test_log_loss": Column("test log loss", ".4g", "test\nlog loss"),
            "test_accuracy": Column("test accuracy", ".4g", "test\naccuracy"),
        }

    @classmethod
    def explained(cls, record: Record) -> list[str]:
        """What the error is, and how it was measured."""
        logistic = record.facts["loss"] == "logistic"
        error = [] if logistic else ["Error is the root of the mean squared error, in the units of the target."]
        return [*error, cls.measured, "Seconds include the folds."]

    @classmethod
    def more(cls, record: Record) -> Iterator[str | Table]:
        """The features kept, and how far from the best choice they can be."""
        facts = record.facts
        stability = facts["stability_draws"] is not None
        rows = [
            [
                cut(it["feature"], LONGEST_PRINTED),
                readable(it["coefficient"]),
                readable(it["effect"]),
                *([f"{it['stability']:.2f}"] if stability else []),
            ]
            for it in facts["kept"][:MOST_PRINTED]
        ]
        more = facts["keep"] - len(rows)
        yield "The features kept, by their effect (coefficient times standard deviation):" + (
            f" the first {len(rows)}, the other {more:,} are in features.csv." if more else ""
        )
        yield Table(["feature", "coefficient", "effect", *(["stability"] if stability else [])], rows)
        yield f"{proof(facts)} {measured(record)}{better_ones(facts)}"

    @classmethod
    def page(cls, run: Run) -> Page:
        """The page of a finished run."""
        # The page has no column of seconds.
        return page.page(run, cls.columns(), cls.explained(run.record)[:-1])
