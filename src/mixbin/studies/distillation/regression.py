"""Which rows of a table to keep, such that a ridge regression trained on them predicts best."""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._digest import digest
from mixbin._files import json_text
from mixbin._validate import Floats
from mixbin.data.reader import Part
from mixbin.errors import InvalidInput
from mixbin.problem import Indices
from mixbin.problems import RidgeDistillation
from mixbin.problems.distillation.budget_curve import BudgetCurve
from mixbin.problems.distillation.references import Model, References, against
from mixbin.problems.distillation.trust import Trust, in_standard_units, search_settings, trust
from mixbin.reporting.figures import selection_data
from mixbin.reporting.record import Line, Record
from mixbin.reporting.verdict import percent_text
from mixbin.result import Result
from mixbin.studies.distillation import page
from mixbin.studies.distillation.fewest import Fewest, curve_around
from mixbin.studies.distillation.options import Judge
from mixbin.studies.distillation.rows import RowStudy, TableStudy, mean_and_spread
from mixbin.studies.distillation.where import where
from mixbin.studies.options import Method, parse_tolerance
from mixbin.studies.study import Spent, Table, Texts, split_words


def finite(number: float) -> float | None:
    """A number as JSON takes it."""
    return number if np.isfinite(number) else None


class RidgeStudy(RowStudy):
    """What the study of a table in memory and that of a folder of Parquet files share: the ridge regression."""

    error, digits = "rmse", ".6g"
    measured = "RMSE is the typical error of a prediction: lower is better. Ridge alpha is that of scikit-learn's Ridge."
    problem: RidgeDistillation
    fewest: Fewest | None = None
    """The search for the smallest budget, if there is one."""

    def check(self) -> None:
        """A regression needs a budget or a tolerance: no label of a row says that the row does harm."""
        super().check()
        options = self.options
        if (self.budget is None) == (self.tolerance is None):
            if self.budget is None:
                raise InvalidInput(
                    "--budget or --tolerance must be given for a regression, got neither; write one such as --budget 10%"
                )
            raise InvalidInput("--tolerance has no use beside --budget; leave one of them out")
        if self.tolerance is not None and options.method not in (Method.PENALIZE, Method.ALL):
            raise InvalidInput(
                f"--tolerance has no use with --method {options.method.value}; use penalize or all, or give it a --budget"
            )
        _ = self.outer_alpha
        check.real("--gap-tol", options.gap_tol, low=0, remedy="write a share such as 0.001, or 0")

    @property
    def tolerance(self) -> float | None:
        """The tolerance as a number."""
        return None if self.options.tolerance is None else parse_tolerance(self.options.tolerance)

    @property
    def judged_by_all(self) -> bool:
        """Unless validation rows are given or asked for."""
        judge = self.options.judge
        return judge is Judge.FULL or (judge is Judge.AUTO and not self.options.validation)

    @property
    def outer_alpha(self) -> float | str:
        """The number typed, or "cv"."""
        text = self.options.outer_alpha.strip()
        remedy = "write cv, 0 for none, or a number such as 0.01"
        try:
            return "cv" if text == "cv" else check.real("--outer-alpha", float(text), low=0, remedy=remedy)
        except ValueError:
            raise check.fail("--outer-alpha", text, "cv or a number of at least 0", remedy) from None

    def problem_of(self, *tables: Any) -> RidgeDistillation:
        """The problem with these tables and the settings typed; with a tolerance, its budget is not known yet."""
        budget, options = self.budget, self.options
        settings: dict[str, Any] = {"budget": 1 if budget is None else budget}
        settings |= {"alpha": options.alpha, "outer_alpha": self.outer_alpha}
        settings |= {"standardize": options.standardize, "cv_seed": options.seed}
        return RidgeDistillation(*tables, **settings)

    def contents(self) -> dict[str, Any]:
        """With a tolerance, the budget follows from the rest."""
        tolerance = self.tolerance
        return super().contents() | ({} if tolerance is None else {"budget": None, "tolerance": tolerance})

    def settle(self, kept: Path) -> Spent:
        """With a tolerance, find the smallest budget."""
        options, tolerance = self.options, self.tolerance
        if tolerance is None:
            return Spent()
        self.fewest = Fewest(self.problem, tolerance, options.seed, options.gap_tol, options.max_evaluations)
        spent = self.fewest.run(kept, options.as_json)
        self.problem, self._start = self.fewest.start()
        return spent

    @cached_property
    def searched(self) -> RidgeDistillation:
        """As in DistillationRegressor, so that both keep the same rows."""
        return self.problem if self.fewest is not None else in_standard_units(self.problem)

    def search_settings(self) -> Mapping[str, Any]:
        """As in DistillationRegressor."""
        if self.fewest is not None:
            return self._start
        return search_settings(self.searched, self.options.seed, self.options.gap_tol)

    @cached_property
    def compared_with(self) -> References:
        """All rows and random rows."""
        return References(self.problem, self.options.seed)

    def measure(self, theta: NDArray[Any], lam: Floats) -> dict[str, Any]:
        """Loss and RMSE of the model trained on the chosen rows: on the rows that judge, on test rows, on rows not kept."""
        numbers = self._numbers(None if not theta.any() else Model(*self.problem.fitted(theta, lam)), np.flatnonzero(theta))
        alpha = self.problem.strength.value(lam)
        return numbers | {
            "rows": int(np.count_nonzero(theta)),
            "ridge_alpha": alpha * self.problem.theta_set.size,
            "alpha": alpha,
        }

    def _numbers(self, model: Model | None, rows: Indices) -> dict[str, Any]:
        """The same of any linear model that was trained on ``rows``; all None without a model."""
        judge = "full" if self.judged_by_all else "validation"
        out: dict[str, Any] = {f"{name}_{kind}": None for name in (judge, "test") for kind in ("loss", "rmse")}
        out |= {"unkept_rmse": None, "ratio": None}
        if model is None:
            return out
        losses = {judge: self.problem.loss(*model)}
        unkept, ratio = self.compared_with.measured(rows, None, model)
        if self.test_rows is not None:
            losses["test"] = self._on_test(model)
            ratio = against(losses["test"] ** 0.5, self._all_on_test**0.5)
        for name, loss in losses.items():
            out |= {f"{name}_loss": loss, f"{name}_rmse": (2 * loss) ** 0.5}
        return out | {"unkept_rmse": finite(unkept), "ratio": finite(ratio)}

    @cached_property
    def _all_on_test(self) -> float:
        return self._on_test(self.compared_with.all_rows)

    def _on_test(self, model: Model) -> float:
        d, mean = self.problem.n_features, self.problem.rows.centre + model.point
        coef = -model.K[0, :d]
        return self.test_loss(coef, float(mean[d] - coef @ mean[:d]))

    def test_loss(self, coef: Floats, intercept: Any) -> float:
        """Half the mean squared error on the test rows."""
        raise NotImplementedError

    def facts(self, main: Result) -> dict[str, Any]:
        """Also who judged, what is proven, what speaks against the answer, and what the figures show."""
        problem, options = self.problem, self.options
        value = main.value
        if self.searched is not problem:  # a rounded table: the value there differs in the last digits
            value = problem.evaluate(main.theta.astype(np.float64), main.lam, gradient=False).value
        found = trust(problem, main.theta, main.lam, value, options.seed)
        doubts = [*found.doubts, *([] if found.at_bound is None else [found.at_bound])]
        if self.fewest is not None and self.fewest.doubt is not None:
            doubts.append(self.fewest.doubt)
        rows = np.flatnonzero(main.theta)
        return super().facts(main) | {
            "judge": "full" if self.judged_by_all else "validation",
            "tolerance": self.tolerance,
            "standardize": options.standardize,
            "outer_alpha": problem.outer_alpha,
            "excess": finite(found.excess),
            "unkept_ratio": finite(found.unkept_ratio),
            "doubts": doubts,
            "searched_among": None if self.fewest is None else self.fewest.path.sampled,
            "curve": self._curve(rows, found).to_json(),
            "where": self._where(rows),
        }

    def _curve(self, rows: Indices, found: Trust) -> BudgetCurve:
        if self.fewest is not None:
            return self.fewest.curve(self.compared_with)
        at = {"excess": found.excess, "error": np.nan, "ratio": found.unkept_ratio}
        return curve_around(self.compared_with, len(rows), at)

    def _where(self, rows: Indices) -> dict[str, Any] | None:
        """The coordinates of rows around the mean of all rows."""
        store, d = self.problem.rows, self.problem.n_features
        mean, S = self.compared_with.moments
        return where(lambda some: store.take(some, mean)[:, :d], store.n_rows, S[:d, :d], rows, self.options.seed)

    def references(self, main: Result) -> list[Line]:
        """A cross-validated ridge regression on all candidate rows, and ridge regressions on random rows."""
        began, everything = time.perf_counter(), np.arange(self.problem.theta_set.size)
        kept, compared = np.flatnonzero(main.theta), self.compared_with
        # Its error is compared on the rows that the answer did not keep, although it was trained on these, too.
        numbers = self._numbers(compared.all_rows, kept) | {"rows": len(everything)}
        numbers |= {"alpha": compared.alpha_of_all, "ratio": 1.0}
        full = Line("all rows", numbers, evaluations=1, seconds=round(time.perf_counter() - began, 3), message="cross-validated")
        return [full, *self._random_rows(len(kept))]

    def _random_rows(self, k: int) -> list[Line]:
        """The mean and the spread over several draws."""
        began = time.perf_counter()
        if k == self.problem.theta_set.size:
            return []
        draws = self.compared_with.random([k])[0]
        rows = np.empty(0, dtype=np.intp)
        each = [self._numbers(it.model, rows) | {"unkept_rmse": it.error} for it in draws]
        if self.test_rows is None:
            each = [of | {"ratio": it.ratio} for of, it in zip(each, draws, strict=True)]
        seconds, said = round(time.perf_counter() - began, 3), f"mean and spread of {len(draws)} draws"
        return [Line("random rows", mean_and_spread(each) | {"rows": k, "alpha": None}, None, len(draws), seconds, said)]

    def model(self, result: Result, rows: str) -> str:
        """The regression on the selected rows, and how to train it again with scikit-learn; ``rows`` says where they are."""
        coef, intercept = self.problem.model(result.theta, result.lam)
        alpha, m = self.problem.strength.value(result.lam), self.problem.theta_set.size
        weights = "" if result.theta.dtype == np.bool_ else ", sample_weight=weight"
        scaled = self.options.standardize
        how = f"Ridge(alpha={m * alpha!r}).fit(X{' / scales' if scaled else ''}, y{weights}) with {rows}"
        how += f"; alpha here is that of mixbin times all {m} candidate rows"
        if scaled:
            how += "; scales are the standard deviations of the columns among these, and its coefficients / scales are coef"
        return json_text(
            {
                "target": self.target,
                "intercept": float(intercept),
                "coef": dict(zip(self.features, np.asarray(coef).tolist(), strict=True)),
                "alpha": alpha,
                **({"scales": dict(zip(self.features, self.problem.scales.tolist(), strict=True))} if scaled else {}),
                "candidate_rows": m,
                "selected_rows": int(np.count_nonzero(result.theta)),
                **self.model_facts(),
                "scikit_learn": {"estimator": "sklearn.linear_model.Ridge", "alpha": m * alpha, "how": how},
            }
        )

    # Words.

    @classmethod
    def sentence(cls, facts: Mapping[str, Any]) -> str:
        """What is kept, and what judges it."""
        k, m = facts["budget"], facts["rows"]
        alpha = "alpha is chosen together with the rows" if facts["alpha"] is None else f"alpha is {facts['alpha']:g}"
        split_off, test = split_words(facts)
        best = f"best on {facts['validation_rows']:,} validation rows{split_off}"
        if facts.get("judge") == "full":
            best = "as well as one trained on all of them"
        if facts.get("tolerance") is not None:
            return (
                f"The task: keep as few of {m:,} rows of {Path(facts['train']).name} as possible, such that a ridge regression "
                f"trained on them predicts column {facts['target']!r} at most {percent_text(100 * facts['tolerance'])} worse "
                f"than the best linear model, by the objective that judges; {alpha}. Found: {k:,} rows.{test}"
            )
        return (
            f"The task: keep {k:,} of {m:,} rows of {Path(facts['train']).name}, chosen such that a ridge regression trained on "
            f"them predicts column {facts['target']!r} {best}; {alpha}.{test}"
        )

    @classmethod
    def more(cls, record: Record) -> Iterator[str | Table]:
        """What is proven, and what speaks against the answer."""
        yield from page.proven(record.facts)


class Regression(RidgeStudy, TableStudy[Floats]):
    """One table in memory."""

    kind = "regression"
    for_classes = "--task classification"

    def load(self) -> None:
        """Features and target side by side, as numbers."""
        self.read()
        parts = (self.train,) if self.judged_by_all else (self.train, self.validation)
        self.problem = self.problem_of(*(table for part in parts for table in (part[:, :-1], part[:, -1])))

    def part(self, read: Sequence[Part]) -> Floats:
        """Features and target, side by side."""
        parts = [np.column_stack([self.reader.numbers(it), it.y]) for it in read]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def split(
        self, everything: Floats, rows: NDArray[np.intp], held: NDArray[np.intp]
    ) -> tuple[Floats, Floats, NDArray[np.intp]]:
        """By row numbers."""
        return everything[rows], everything[held], held

    def digests(self) -> dict[str, str | None]:
        """One hash of all parts."""
        return {"data": digest(*(part for part in (self.train, self.validation, self.test) if part is not None))}

    def test_loss(self, coef: Floats, intercept: Any) -> float:
        """From the predictions of the model."""
        assert self.test is not None
        return float(np.mean((self.test[:, :-1] @ coef + intercept - self.test[:, -1]) ** 2)) / 2

    def facts(self, main: Result) -> dict[str, Any]:
        """Also what the figure of the selection shows."""
        return super().facts(main) | {"selection": selection_data(main.theta, self.train[:, -1], self.target)}

    def texts(self, method: str, main: Result, out: Path) -> Texts:
        """The rows and the model."""
        rows = self.selected(main.theta)
        where = f"the rows of {next(iter(rows))}" + (", X as encoding here says" if self.model_facts() else "")
        return {**rows, "model.json": self.model(main, where)}
