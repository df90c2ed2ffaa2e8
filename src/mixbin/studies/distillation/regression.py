"""Which rows of a table to keep, such that a ridge regression trained on them predicts best."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin._digest import digest
from mixbin._files import json_text
from mixbin._validate import Floats
from mixbin.data import tables
from mixbin.errors import InvalidInput
from mixbin.problems import RidgeDistillation
from mixbin.reporting.figures import selection_data
from mixbin.reporting.record import Line
from mixbin.result import Result
from mixbin.studies.distillation.rows import RowStudy, TableStudy
from mixbin.studies.study import split_words


class RidgeStudy(RowStudy):
    """What the study of a table in memory and that of a folder of Parquet files share: the ridge regression."""

    error, digits = "rmse", ".6g"
    measured = "loss is half the mean squared error, RMSE the typical error of a prediction: lower is better."
    problem: RidgeDistillation

    def check(self) -> None:
        """A regression needs a budget: no label of a row says that the row does harm."""
        super().check()
        if self.budget is None:
            raise InvalidInput("--budget must be given for a regression, got none; write one such as --budget 10%")

    def measure(self, theta: NDArray[Any], lam: Floats) -> dict[str, Any]:
        """Loss and RMSE on the validation and on the test rows, of the model trained on the chosen rows."""
        out: dict[str, Any] = {f"{name}_{kind}": None for name in ("validation", "test") for kind in ("loss", "rmse")}
        for name, loss in self.losses(theta, lam).items() if theta.any() else ():
            out |= {f"{name}_loss": loss, f"{name}_rmse": (2 * loss) ** 0.5}
        return out | {"rows": int(np.count_nonzero(theta)), "alpha": self.problem.strength.value(lam)}

    def losses(self, theta: NDArray[Any], lam: Floats) -> dict[str, float]:
        """Half the mean squared error on each part that there is."""
        raise NotImplementedError

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
        v, bounds = theta.astype(np.float64), np.log(problem.alpha)
        best = minimize_scalar(lambda t: problem.evaluate(v, np.exp(t), gradient=False).value, bounds=bounds, method="bounded")
        return float(np.exp(best.x)), int(best.nfev)

    def model(self, result: Result, rows: str) -> str:
        """The regression on the selected rows, and how to train it again with scikit-learn; ``rows`` says where they are."""
        coef, intercept = self.problem.model(result.theta, result.lam)
        alpha, m = self.problem.strength.value(result.lam), self.problem.theta_set.size
        weights = "" if result.theta.dtype == np.bool_ else ", sample_weight=weight"
        how = f"Ridge(alpha={m * alpha!r}).fit(X, y{weights}) with {rows}"
        how += f"; alpha here is that of mixbin times all {m} candidate rows"
        return json_text(
            {
                "target": self.target,
                "intercept": float(intercept),
                "coef": dict(zip(self.features, np.asarray(coef).tolist(), strict=True)),
                "alpha": alpha,
                "candidate_rows": m,
                "selected_rows": int(np.count_nonzero(result.theta)),
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
        return (
            f"The task: keep {k:,} of {m:,} rows of {Path(facts['train']).name}, chosen such that a ridge regression trained on "
            f"them predicts column {facts['target']!r} best on {facts['validation_rows']:,} validation rows"
            f"{split_off}; {alpha}.{test}"
        )


class Regression(RidgeStudy, TableStudy[Floats]):
    """One table in memory."""

    kind = "regression"

    def load(self) -> None:
        """Features and target side by side, as numbers."""
        self.read()
        (X, y), (X_val, y_val) = ((part[:, :-1], part[:, -1]) for part in (self.train, self.validation))
        budget = self.budget
        assert budget is not None
        self.problem = RidgeDistillation(X, y, X_val, y_val, budget=budget, alpha=self.options.alpha)

    def part(self, read: Sequence[tables.Table]) -> Floats:
        """Features and target, side by side."""
        parts = [it.numbers([*self.features, self.target]) for it in read]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def split(
        self, everything: Floats, rows: NDArray[np.intp], held: NDArray[np.intp]
    ) -> tuple[Floats, Floats, NDArray[np.intp]]:
        """By row numbers."""
        return everything[rows], everything[held], held

    def digests(self) -> dict[str, str | None]:
        """One hash of all parts."""
        return {"data": digest(*(part for part in (self.train, self.validation, self.test) if part is not None))}

    def losses(self, theta: NDArray[Any], lam: Floats) -> dict[str, float]:
        """From the predictions of the model."""
        coef, intercept = self.problem.model(theta, lam)
        parts = {"validation": self.validation, "test": self.test}
        return {
            name: float(np.mean((part[:, :-1] @ coef + intercept - part[:, -1]) ** 2)) / 2
            for name, part in parts.items()
            if part is not None
        }

    def facts(self, main: Result) -> dict[str, Any]:
        """Also what the figure of the selection shows."""
        return super().facts(main) | {"selection": selection_data(main.theta, self.train[:, -1], self.target)}

    def texts(self, method: str, main: Result, out: Path) -> dict[str, str]:
        """The rows and the model."""
        return {"selected.csv": self.selected(main.theta), "model.json": self.model(main, "the rows of selected.csv")}
