"""What the features kept are compared with, on rows that play no part: lassos, random features and all features."""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV, LogisticRegression, RidgeCV, lars_path
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import l1_min_c

from mixbin._validate import Floats
from mixbin.estimators._feature_choice import GAMMAS, quick_search
from mixbin.estimators.features import FeatureSelector, standardised
from mixbin.problems.best_subset.problem import BestSubset
from mixbin.studies.features.words import ALL, BEST, LASSO, NAMES, RANDOM, REFITTED, TUNED

FOLDS = 5
DRAWS = 10
"""Random features are drawn this many times; their errors are averaged."""
POINTS = 10
"""About as many counts of features are on the path."""
STEPS = 5
"""The lasso path may take this many steps for each feature; features also leave it."""
STRENGTHS = 100
"""How many penalties the lasso path of a logistic regression has, over three decades."""
TUNED_STRENGTHS = 16
"""How many of them the tuned lasso of a logistic regression tries, weakest first. It ends after two that do worse."""

Losses = dict[str, Floats]
"""For each line an array of shape (2, counts, rows): the loss of each row, and whether its class was hit."""


class Errors(NamedTuple):
    """What was measured on some rows, for each line and each count of features."""

    losses: Losses
    spread: float
    """The mean squared distance of the targets from their mean."""
    seconds: dict[str, float]
    """The time that each line took."""
    lasso_features: float
    """How many features the tuned lasso keeps, on average over the folds."""

    def measured(self, name: str, count: int, loss: str) -> dict[str, float | None]:
        """Error and score of a line at one place on the path."""
        mean, hits = (float(it[count].mean()) for it in self.losses[name])
        if loss == "logistic":
            return {"log_loss": mean, "accuracy": hits}
        return {"rmse": mean**0.5, "r2": 1 - mean / self.spread if self.spread > 0 else None}

    def curve(self, name: str, loss: str) -> list[float]:
        """The error of a line along the path."""
        means = self.losses[name][0].mean(axis=1)
        return [float(x) for x in (means if loss == "logistic" else np.sqrt(means))]

    def enough(self, counts: Sequence[int]) -> int:
        """The smallest count whose best subset has an error within one standard error of the lowest on the path."""
        losses = self.losses[BEST][0]
        apart = losses - losses[int(losses.mean(axis=1).argmin())]
        near = apart.mean(axis=1) <= apart.std(axis=1, ddof=1) / np.sqrt(apart.shape[1])
        return counts[int(np.flatnonzero(near)[0])]

    def difference(self, name: str, count: int) -> tuple[float, float]:
        """How much larger the mean loss of the best subset is than that of another line, and its standard error over the rows."""
        apart = self.losses[BEST][0, count] - self.losses[name][0, count]
        return float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(apart.size))


def counts_on_path(keep: int, features: int, rows: int) -> list[int]:
    """Counts of features from 1 to twice ``keep``, but no more than there are features or than a third of the rows."""
    most = max(keep, min(features, 2 * keep, rows // 3))
    return sorted({keep, *np.rint(np.geomspace(1, most, POINTS)).astype(int).tolist()})


Folded = Callable[[NDArray[np.intp], NDArray[np.intp]], tuple[Floats, Floats]]
"""The features of the rows to train on, and of those held out, in numbers."""


def held_out(features: Folded, y: Floats, settings: dict[str, Any], counts: Sequence[int]) -> Errors:
    """The errors on held-out folds. Everything is chosen by the other folds alone, the ridge weight included.

    ``features`` must not let the held-out rows have a part in the encoding either.
    """
    logistic, seed = settings["loss"] == "logistic", settings["random_state"]
    folds = (StratifiedKFold if logistic else KFold)(FOLDS, shuffle=True, random_state=seed)
    parts = []
    for train, held in folds.split(np.zeros((len(y), 1)), y):
        X, X_held = features(train, held)
        began = time.perf_counter()
        selector = FeatureSelector(**settings).fit(X, y[train])
        chosen = time.perf_counter() - began
        parts.append(errors_on((X, y[train]), (X_held, y[held]), selector, counts, seed))
        parts[-1].seconds[BEST] += chosen
    losses = {name: np.concatenate([part.losses[name] for part in parts], axis=2) for name in NAMES}
    seconds = {name: sum(part.seconds[name] for part in parts) for name in NAMES}
    return Errors(losses, float(y.var()), seconds, float(np.mean([part.lasso_features for part in parts])))


def errors_on(
    train: tuple[Floats, Floats], held: tuple[Floats, Floats], selector: FeatureSelector, counts: Sequence[int], seed: int
) -> Errors:
    """The errors on ``held`` of everything that was trained on ``train``; ``selector`` was, too, with one of ``counts``."""
    (X, y), (X_held, y_held) = train, held
    table, means, scales = standardised(X)
    trial = _Trial(table, y, (X_held - means) / scales, y_held, selector)
    rng, p = np.random.default_rng(seed), table.shape[1]
    # In a fold, text may become fewer columns than in the whole table.
    counts = [min(count, p) for count in counts]
    losses: Losses = {}
    seconds: dict[str, float] = {}

    def note(name: str, along: Callable[[], list[Floats]]) -> None:
        began = time.perf_counter()
        losses[name] = np.stack(along(), axis=1)
        seconds[name] = time.perf_counter() - began

    lasso: list[tuple[Floats, float]] = []

    def own_coefficients() -> list[Floats]:
        path = trial.lasso_path(max(counts))
        lasso.extend(trial.lasso_at(path, count) for count in counts)
        return [trial.losses(trial.held @ coef + intercept) for coef, intercept in lasso]

    def random() -> list[Floats]:
        draws = [rng.permutation(p) for _ in range(DRAWS)]
        return [np.mean([trial.trained(draw[:count]) for draw in draws], axis=0) for count in counts]

    tuned: list[tuple[Floats, float]] = []

    def tuned_lasso() -> list[Floats]:
        tuned.append(trial.tuned_lasso(seed))
        return [trial.losses(trial.held @ tuned[0][0] + tuned[0][1])] * len(counts)

    note(ALL, lambda: [trial.losses(trial.all_features())] * len(counts))
    note(TUNED, tuned_lasso)
    note(RANDOM, random)
    note(LASSO, own_coefficients)
    note(REFITTED, lambda: [trial.trained(np.flatnonzero(coef)) for coef, _ in lasso])
    note(BEST, lambda: [trial.trained(support) for support in trial.best_path(counts)])
    return Errors(losses, float(y_held.var()), seconds, float(np.count_nonzero(tuned[0][0])))


class _Trial:
    """Standardised rows to train on, and rows to judge by."""

    def __init__(self, table: Floats, y: Floats, held: Floats, y_held: Floats, selector: FeatureSelector) -> None:
        self.table, self.y, self.held, self.y_held, self.selector = table, y, held, y_held, selector
        self.loss, self.gamma = str(selector.loss), float(selector.gamma_)
        self.problem = BestSubset(table, y, 1, self.gamma, self.loss)

    def losses(self, predicted: Floats) -> Floats:
        """The loss of each judging row, and whether its class was hit."""
        if self.loss == "squared":
            return np.stack([np.square(predicted - self.y_held), np.zeros(len(predicted))])
        return np.stack([np.logaddexp(0.0, predicted) - self.y_held * predicted, (predicted > 0) == (self.y_held > 0)])

    def trained(self, support: NDArray[np.intp]) -> Floats:
        """The losses of a model on some features, with the ridge weight that the best subset has."""
        if not support.size:
            return self.losses(np.full(len(self.held), self.constant()))
        k = support.size
        coef, intercept = BestSubset(self.table[:, support], self.y, k, self.gamma, self.loss).model(np.ones(k))
        return self.losses(self.held[:, support] @ coef + intercept)

    def constant(self) -> float:
        """What a model without features predicts."""
        mean = float(self.y.mean())
        return mean if self.loss == "squared" else float(np.log(mean / (1 - mean)))

    def best_path(self, counts: Sequence[int]) -> list[NDArray[np.intp]]:
        """The best subset of each count: the selector's own, and quick searches that begin with the subset before."""
        chosen, kept, out = np.flatnonzero(self.selector.support_), np.empty(0, dtype=np.intp), []
        for count in counts:
            kept = (
                chosen if count == chosen.size else quick_search(self.problem.varied(count, self.gamma).search(), kept, self.loss)
            )
            out.append(kept)
        return out

    def lasso_path(self, most: int) -> list[tuple[Floats, float]]:
        """Coefficients and intercept along the lasso path, until there are more than ``most`` features."""
        with warnings.catch_warnings():
            # With columns that are almost alike, a path may end early; what it has until then is used.
            warnings.simplefilter("ignore", ConvergenceWarning)
            if self.loss == "squared":
                mean = float(self.y.mean())
                # The knots of the path, at which one feature enters or leaves, so that no count is skipped.
                knots = lars_path(self.table, self.y - mean, method="lasso", max_iter=STEPS * most)[2]
                return [(coef, mean) for coef in knots.T]
            found: list[tuple[Floats, float]] = []
            if not np.any(self.table.T @ (self.y - self.y.mean())):
                # No feature ever enters.
                return found
            for strength in l1_min_c(self.table, self.y, loss="log") * np.geomspace(1.0, 1e3, STRENGTHS):
                fitted = _l1_logistic(float(strength)).fit(self.table, self.y)
                found.append((fitted.coef_[0], float(fitted.intercept_[0])))
                if np.count_nonzero(fitted.coef_) > most:
                    break
            return found

    def lasso_at(self, path: list[tuple[Floats, float]], count: int) -> tuple[Floats, float]:
        """The last model on the path before it has more than ``count`` features."""
        sizes = np.array([np.count_nonzero(coef) for coef, _ in path])
        beyond = np.flatnonzero(sizes > count)
        last = (int(beyond[0]) if beyond.size else len(path)) - 1
        return path[last] if last >= 0 else (np.zeros(self.table.shape[1]), self.constant())

    def tuned_lasso(self, seed: int) -> tuple[Floats, float]:
        """Coefficients and intercept of a lasso whose penalty is chosen by cross-validation, with any number of features."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if self.loss == "squared":
                fitted = LassoCV(cv=KFold(FOLDS, shuffle=True, random_state=seed), max_iter=5000).fit(self.table, self.y)
                return fitted.coef_, float(fitted.intercept_)
            if not np.any(self.table.T @ (self.y - self.y.mean())):
                return np.zeros(self.table.shape[1]), self.constant()
            folds = list(StratifiedKFold(3).split(self.table, self.y))
            errors: list[float] = []
            strengths = l1_min_c(self.table, self.y, loss="log") * np.geomspace(1.0, 1e3, TUNED_STRENGTHS)
            for strength in strengths:
                errors.append(sum(self._fold_error(_l1_logistic(float(strength)), *fold) for fold in folds))
                if len(errors) > 2 and min(errors[-2:]) > min(errors):
                    break
            best = _l1_logistic(float(strengths[int(np.argmin(errors))])).fit(self.table, self.y)
            return best.coef_[0], float(best.intercept_[0])

    def all_features(self) -> Floats:
        """What a ridge or logistic regression on all features predicts; it has a ridge weight of its own, by cross-validation."""
        gammas = np.array(GAMMAS[self.loss]) * len(self.y)
        if self.loss == "squared":
            return np.asarray(RidgeCV(gammas).fit(self.table, self.y).predict(self.held))
        folds = list(StratifiedKFold(3).split(self.table, self.y))
        # Two of three folds have two thirds of the rows, so that the same penalty per row is two thirds of gamma.
        errors = [sum(self._fold_error(_l2_logistic(gamma * 2 / 3), *fold) for fold in folds) for gamma in gammas]
        best = _l2_logistic(float(gammas[int(np.argmin(errors))])).fit(self.table, self.y)
        return np.asarray(best.decision_function(self.held))

    def _fold_error(self, model: LogisticRegression, train: NDArray[np.intp], held: NDArray[np.intp]) -> float:
        predicted = model.fit(self.table[train], self.y[train]).decision_function(self.table[held])
        return float((np.logaddexp(0.0, predicted) - self.y[held] * predicted).sum())


def _l2_logistic(gamma: float) -> LogisticRegression:
    return LogisticRegression(C=1 / gamma, max_iter=2000)


def _l1_logistic(strength: float) -> LogisticRegression:
    # liblinear penalises the intercept, too; the scaling makes that penalty negligible.
    settings: dict[str, Any] = {"solver": "liblinear", "intercept_scaling": 1e4, "C": strength, "max_iter": 1000}
    # scikit-learn 1.8 replaced the name of the penalty by its share.
    l1: dict[str, Any] = {"penalty": "l1"} if LogisticRegression().penalty == "l2" else {"l1_ratio": 1.0}
    return LogisticRegression(**l1, **settings, random_state=0)
