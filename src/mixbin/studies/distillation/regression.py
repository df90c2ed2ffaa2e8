"""Which rows of a table to keep, such that a ridge regression trained on them predicts best."""

import time
from collections.abc import Iterator, Mapping, Sequence
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
from mixbin.problems import RidgeDistillation
from mixbin.problems.distillation.trust import search_settings, trust
from mixbin.reporting.figures import selection_data
from mixbin.reporting.record import Line, Record
from mixbin.result import Result
from mixbin.studies.distillation import page
from mixbin.studies.distillation.options import Judge
from mixbin.studies.distillation.rows import RowStudy, TableStudy
from mixbin.studies.study import Table, Texts, split_words


def finite(number: float) -> float | None:
    """A number as JSON takes it."""
    return number if np.isfinite(number) else None


class RidgeStudy(RowStudy):
    """What the study of a table in memory and that of a folder of Parquet files share: the ridge regression."""

    error, digits = "rmse", ".6g"
    measured = (
        "loss is half the mean squared error, RMSE the typical error of a prediction: lower is better. Ridge alpha is that of "
        "scikit-learn's Ridge."
    )
    problem: RidgeDistillation

    def check(self) -> None:
        """A regression needs a budget: no label of a row says that the row does harm."""
        super().check()
        if self.budget is None:
            raise InvalidInput("--budget must be given for a regression, got none; write one such as --budget 10%")
        _ = self.outer_alpha
        check.real("--gap-tol", self.options.gap_tol, low=0, remedy="write a share such as 0.001, or 0")

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
        """The problem with these tables and the settings typed."""
        budget, options = self.budget, self.options
        assert budget is not None
        settings: dict[str, Any] = {"budget": budget, "alpha": options.alpha, "outer_alpha": self.outer_alpha}
        settings |= {"standardize": options.standardize, "cv_seed": options.seed}
        return RidgeDistillation(*tables, **settings)

    def search_settings(self) -> Mapping[str, Any]:
        """As in DistillationRegressor."""
        return search_settings(self.problem, self.options.seed, self.options.gap_tol)

    def measure(self, theta: NDArray[Any], lam: Floats) -> dict[str, Any]:
        """Loss and RMSE on the validation and on the test rows, of the model trained on the chosen rows."""
        parts = ("full" if self.judged_by_all else "validation", "test")
        out: dict[str, Any] = {f"{name}_{kind}": None for name in parts for kind in ("loss", "rmse")}
        for name, loss in self.losses(theta, lam).items() if theta.any() else ():
            out |= {f"{name}_loss": loss, f"{name}_rmse": (2 * loss) ** 0.5}
        alpha = self.problem.strength.value(lam)
        return out | {"rows": int(np.count_nonzero(theta)), "ridge_alpha": alpha * self.problem.theta_set.size, "alpha": alpha}

    def losses(self, theta: NDArray[Any], lam: Floats) -> dict[str, float]:
        """Half the mean squared error on the rows that judge, and on the test rows if there are any."""
        weights = theta.astype(np.float64)
        found = {"full" if self.judged_by_all else "validation": self.problem.validation_loss(weights, lam)}
        if self.test_rows is not None:
            found["test"] = self.test_loss(*self.problem.model(weights, lam))
        return found

    def test_loss(self, coef: Floats, intercept: Any) -> float:
        """Half the mean squared error on the test rows."""
        raise NotImplementedError

    def facts(self, main: Result) -> dict[str, Any]:
        """Also who judged, what is proven, and what speaks against the answer."""
        problem, options = self.problem, self.options
        found = trust(problem, main.theta, main.lam, main.value, options.seed)
        return super().facts(main) | {
            "judge": "full" if self.judged_by_all else "validation",
            "standardize": options.standardize,
            "outer_alpha": problem.outer_alpha,
            "excess": finite(found.excess),
            "unkept_ratio": finite(found.unkept_ratio),
            "doubts": [*found.doubts, *([] if found.at_bound is None else [found.at_bound])],
        }

    def references(self, main: Result) -> list[Line]:
        """All candidate rows, with the best alpha for them."""
        began = time.perf_counter()
        everything = np.ones(self.problem.theta_set.size, dtype=bool)
        alpha, evaluations = self.best_alpha(everything)
        numbers = self.measure(everything, np.asarray(self.problem.strength.lam(alpha)))
        return [Line("all rows", numbers, evaluations=evaluations, seconds=round(time.perf_counter() - began, 3))]

    def best_alpha(self, theta: NDArray[np.bool_]) -> tuple[float, int]:
        """The alpha with the least validation error for given rows, or the fixed one; and how many were tried."""
        from scipy.optimize import minimize_scalar

        problem = self.problem
        if isinstance(problem.alpha, float):
            return problem.alpha, 1
        if self.judged_by_all and problem.outer_alpha:  # a ridge regression on all rows: the least value there is
            return problem.outer_alpha, 1
        v, bounds = theta.astype(np.float64), np.log(problem.alpha)
        best = minimize_scalar(lambda t: problem.validation_loss(v, np.exp(t)), bounds=bounds, method="bounded")
        return float(np.exp(best.x)), int(best.nfev)

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
