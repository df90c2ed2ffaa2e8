"""A scikit-learn selector that keeps the features of the best subset, with a bound on what any other could reach."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.errors import InvalidInput
from mixbin.estimators._common import check_jobs, check_limits, generator, linear, sklearn_errors_about, validated
from mixbin.estimators._feature_choice import MOST_AUTO, choose, counts_to_try, kept_in_draws
from mixbin.problems.best_subset.problem import LOSSES, BestSubset
from mixbin.problems.best_subset.proof import Proof, prove_best_subset
from mixbin.sets import GroupBudget

MOST_DRAWS = 100_000
"""More bootstrap draws are refused: with these, every share is known to a thousandth."""
KICKS = {"squared": 60, "logistic": 32}
"""How many further starts in a row must lead to nothing better before the final search ends. Logistic ones take longer; of 24
designs (300 rows, 1,000 columns), 32 found the best value known in all, and 4 to 16 missed one by 0.5 %."""
LEAST_KICKS, MOST_WORK = 4, 10_000_000
"""Logistic searches on large tables get fewer starts: rows x columns x starts stays below MOST_WORK, but 4 there are always."""


def _is_logistic(estimator: FeatureSelector) -> bool:
    return check.is_text(estimator.loss, "logistic")


class FeatureSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Keep the few features with which a linear model fits best: best subset selection with a proven gap.

    The columns are standardised; then a ridge or logistic regression on ``n_features`` of them is to have the least penalised
    training loss (see ``mixbin.BestSubset``). Exact swaps from starts that differ find the subset, and the convex relaxation says
    how far any other could be below it. With ``prove=True``, branch and bound goes on until the subset is proved the best of all,
    or until ``time_limit``.

    Parameters
    ----------
    n_features : int or "auto", default=10
        How many features to keep; all of them if X has fewer. "auto" chooses the count by cross-validation, up to 50 and a third
        of the rows: the smallest count whose error is within one standard error of the lowest.
    gamma : float or "cv", default="cv"
        The weight of the ridge penalty on the standardised columns, as ``alpha`` of scikit-learn's ``Ridge`` or ``1/C`` of
        ``LogisticRegression``. "cv" chooses it by cross-validation: the smallest whose error is within half a standard error
        of the lowest. A larger gamma also makes proofs easier, but that is no reason to choose it.
    loss : {"squared", "logistic"}, default="squared"
        "squared" for targets that are numbers, one or several; "logistic" for two classes.
    groups : array-like of shape (n_features_in,), default=None
        The group of each feature, of which at most ``per_group`` are kept; for example all columns made of one variable.
    per_group : int or mapping from group to int, default=1
        How many features of a group may be kept.
    prove : bool, default=False
        Whether to prove by branch and bound that no other subset is better.
    time_limit : float or None, default=None
        Seconds for the proof. It then ends with the gap it has.
    cv : int, default=5
        The number of folds of the cross-validation.
    stability : int, default=0
        If above 0, the selection is repeated on this many bootstrap draws of the rows, with the same gamma, and ``stability_``
        says how often each feature was kept.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, the search and the draws. Pass an int to get the same result every time.
    verbose : bool, default=False
        Whether to write the progress of the proof to stderr.
    n_jobs : int or None, default=None
        How many folds of the cross-validation, or bootstrap draws, to work on at once, in threads; -1 uses all cores. The result
        is the same. Leave it out for fits of tenths of a second, which two threads make slower (20 draws of 2,000 rows with 60
        features: 0.14 s instead of 0.11 s), and with the logistic loss. The final search and the proof are not divided.
    callbacks : sequence of callables or None, default=None
        With ``prove=True``, each is called with the ``Proof`` after every round of nodes, and ends the proof by returning True.

    Attributes
    ----------
    support_ : bool array of shape (n_features_in_,)
        Which features are kept.
    ranking_ : int array of shape (n_features_in_,)
        1 for the kept features; 2, 3, ... for the others, in the order of the value after the best swap that brings them in.
    coef_ : array of shape (n_features_in_,) or (n_targets, n_features_in_)
        The coefficients of the model on the kept features, in the units of X; 0 for all others.
    intercept_ : float or array of shape (n_targets,)
        The constant term.
    value_ : float
        The penalised training loss G of the model.
    lower_bound_ : float
        No subset of as many features has a lower G.
    gap_ : float
        (value_ - lower_bound_) / value_: how far below ``value_`` the best subset can be at most.
    proved_ : bool
        Whether the gap is closed: the subset is the best of all.
    proof_ : Proof
        The proof, which ``prove_best_subset(problem_, proof=proof_)`` goes on with.
    problem_ : BestSubset
        The problem on the standardised columns.
    n_features_ : int
        How many features are kept.
    gamma_ : float
        The weight of the ridge penalty.
    cv_errors_ : array of shape (counts, gammas) or None
        The mean error of each pair that cross-validation compared (see ``cv_counts_`` and ``cv_gammas_``), or None.
    cv_counts_, cv_gammas_ : tuple
        The counts of features and the ridge weights that cross-validation compared.
    stability_ : array of shape (n_features_in_,)
        The share of the bootstrap draws in which each feature was kept; only with ``stability`` above 0.
    classes_ : array of shape (2,)
        The classes, if the loss is logistic.
    n_features_in_ : int
        The number of features seen by ``fit``.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if the columns of X have names.

    See Also
    --------
    mixbin.BestSubset : The problem that is solved.
    mixbin.prove_best_subset : The proof on its own.

    Examples
    --------
    >>> import numpy as np
    >>> from mixbin import FeatureSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 40))
    >>> y = X[:, [3, 7, 20]] @ [2.0, -1.0, 1.0] + 0.5 * rng.normal(size=100)
    >>> selector = FeatureSelector(n_features=3, prove=True, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True), selector.proved_
    (array([ 3,  7, 20]), True)
    >>> selector.transform(X).shape
    (100, 3)
    """

    def __init__(
        self,
        n_features: int | str = 10,
        gamma: float | str = "cv",
        loss: str = "squared",
        groups: ArrayLike | None = None,
        per_group: int | Mapping[Any, int] = 1,
        prove: bool = False,
        time_limit: float | None = None,
        cv: int = 5,
        stability: int = 0,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        n_jobs: int | None = None,
        callbacks: Sequence[Callable[[Proof], object]] | None = None,
    ) -> None:
        self.n_features = n_features
        self.gamma = gamma
        self.loss = loss
        self.groups = groups
        self.per_group = per_group
        self.prove = prove
        self.time_limit = time_limit
        self.cv = cv
        self.stability = stability
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.callbacks = callbacks

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose the features and train the model on them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The table.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The targets, or the classes if the loss is logistic.

        Returns
        -------
        self : FeatureSelector
            The fitted estimator.
        """
        self._check_settings()
        rng = generator(self.random_state)
        squared = self.loss == "squared"
        how = {
            "accept_sparse": "csr",
            "multi_output": squared,
            "y_numeric": squared,
            "dtype": np.float64,
            "ensure_min_samples": 2,
        }
        table, targets = validated(self, X, y, **how)
        targets = (
            check.array("y", targets, remedy='give numbers, or loss="logistic" for classes') if squared else self._coded(targets)
        )
        most = self._most(int(table.shape[1]))
        table, means, scales = standardised(table)
        settings: dict[str, Any] = {"groups": self.groups, "per_group": self.per_group}
        if self.n_features == "auto":
            counts = counts_to_try(max(1, min(most, MOST_AUTO, table.shape[0] // 3)))
        else:
            counts = [min(int(self.n_features), most)]
        given = None if self.gamma == "cv" else float(self.gamma)
        chosen = choose(table, targets, self.loss, counts, given, **settings, folds=self.cv, rng=rng, n_jobs=self.n_jobs)
        self.n_features_, self.gamma_ = chosen.n_features, chosen.gamma
        self.cv_errors_, self.cv_counts_, self.cv_gammas_ = chosen.errors, chosen.counts, chosen.gammas
        self.problem_ = BestSubset(table, targets, self.n_features_, self.gamma_, self.loss, **settings)
        self._select(int(rng.randint(2**31 - 1)))
        coef, intercept = self.problem_.model(self.support_.astype(np.float64))
        self.coef_ = coef / scales
        self.intercept_ = intercept - self.coef_ @ means
        if self.stability:
            self.stability_ = kept_in_draws(table, targets, self.problem_, settings, self.stability, rng, self.n_jobs)
        return self

    def _select(self, seed: int) -> None:
        """Search for the subset, bound or prove it, and rank the others."""
        problem = self.problem_
        relaxed = problem.relaxed
        found = problem.search().run(np.random.default_rng(seed), relaxed.theta, kicks_for(problem))
        theta = np.zeros(problem.n_features, dtype=np.bool_)
        theta[found.support] = True
        limit = self.time_limit if self.prove else 0
        watching: list[Callable[[Proof], object]] = [
            *(self.callbacks or ()),
            *([_ProgressLine()] if self.prove and self.verbose else []),
        ]
        proof = prove_best_subset(problem, theta, time_limit=limit, callbacks=watching)
        self.proof_, self.support_, self.value_ = proof, proof.theta, proof.value
        self.lower_bound_, self.gap_, self.proved_ = max(proof.lower_bound, 0.0), min(proof.gap, 1.0), proof.proved
        swaps = problem.data_loss.model_of(np.flatnonzero(self.support_)).exchanges().min(axis=0, initial=np.inf)
        self.ranking_ = np.ones(problem.n_features, dtype=np.intp)
        others = np.flatnonzero(~self.support_)
        self.ranking_[others[np.argsort(swaps[others], kind="stable")]] = 2 + np.arange(others.size)

    def _check_settings(self) -> None:
        check.choice("loss", self.loss, LOSSES)
        if not (isinstance(self.n_features, str) and self.n_features == "auto"):
            check.whole("n_features", self.n_features, low=1, remedy='give a count such as 10, or "auto"')
        if not (isinstance(self.gamma, str) and self.gamma == "cv"):
            check.real("gamma", self.gamma, low=0, open_low=True, remedy='give a number above 0, or "cv"')
        for name in ("prove", "verbose"):
            check.flag(name, getattr(self, name))
        check_limits(self, "a Proof", may_be_zero=True)
        check_jobs(self.n_jobs)
        check.whole("cv", self.cv, low=2, remedy="give a number of folds such as 5")
        remedy = "give a number of bootstrap draws such as 100, or 0"
        check.whole("stability", self.stability, low=0, high=MOST_DRAWS, remedy=remedy)

    def _coded(self, y: Any) -> Floats:
        """The two classes as 0 and 1."""
        # Numbers beyond 2**63 make scikit-learn's test for whole numbers warn.
        with sklearn_errors_about("y must hold classes"), np.errstate(invalid="ignore"):
            kind = type_of_target(y, input_name="y")
        if kind == "continuous":
            raise InvalidInput('y must hold classes, got Unknown label type: continuous; for numbers use loss="squared"')
        self.classes_, coded = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            number = f"{len(self.classes_)} class" + ("es" if len(self.classes_) != 1 else "")
            more = "Only binary classification is supported. " if len(self.classes_) > 2 else ""
            raise InvalidInput(
                f"y must hold two classes, got {number}. {more}The type of the target is {kind}; leave the others out"
            )
        return np.asarray(coded, dtype=np.float64)

    def _most(self, p: int) -> int:
        """How many features can be kept at most."""
        if self.groups is None:
            return p
        labels = check.loose_array("groups", self.groups, f"an array with a group for each of the {p} features")
        if labels.shape != (p,):
            raise check.fail("groups", labels, f"an array of shape ({p},)", "give the group of each column of X")
        most = int(GroupBudget(labels, 0, self.per_group).high.sum())
        if most < 1:
            raise check.fail("per_group", self.per_group, "at least 1 for some group", "otherwise no feature can be kept")
        return most

    def _get_support_mask(self) -> Any:
        check_is_fitted(self)
        return self.support_

    def predict(self, X: ArrayLike) -> Any:
        """Predict by the model on the kept features: numbers, or classes if the loss is logistic.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows with all columns that ``fit`` had; only the kept ones are used.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            The predictions.
        """
        u = self._linear(X)
        return self.classes_[(u > 0).astype(np.intp)] if _is_logistic(self) else u

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def decision_function(self, X: ArrayLike) -> Floats:
        """The logarithm of the odds of the second class, for each row; only if the loss is logistic."""
        return self._linear(X)

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> Floats:
        """The probabilities of the two classes, for each row; only if the loss is logistic."""
        u = self._linear(X)
        return np.column_stack([1.0 / (1.0 + np.exp(np.clip(u, -700, 700))), 1.0 / (1.0 + np.exp(np.clip(-u, -700, 700)))])

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """R^2 of the predictions, or their accuracy if the loss is logistic."""
        return float((accuracy_score if _is_logistic(self) else r2_score)(y, self.predict(X)))

    def _linear(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        table = validated(self, X, accept_sparse="csr", reset=False, dtype=np.float64)
        return linear(table, self.coef_, self.intercept_)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what this estimator accepts and predicts."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        if _is_logistic(self):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(multi_class=False)
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
            tags.target_tags.multi_output = True
        return tags


class _ProgressLine:
    """Writes bound, value and gap of a proof to stderr, at most once a second."""

    def __init__(self) -> None:
        self._last = -1.0

    def __call__(self, proof: Proof) -> None:
        if proof.seconds - self._last >= 1.0 or proof.proved:
            self._last = proof.seconds
            print(
                f"proof: value {proof.value:.6g}, lower bound {proof.lower_bound:.6g}, gap {100 * proof.gap:.3g} %, "
                f"{proof.n_nodes} nodes, {proof.n_open} open, {proof.seconds:.0f} s",
                file=sys.stderr,
            )


def kicks_for(problem: BestSubset) -> int:
    """How many further starts in a row must lead to nothing better before the search for a subset ends."""
    if problem.loss == "squared":
        return KICKS["squared"]
    columns = problem.data_loss.columns
    return max(LEAST_KICKS, min(KICKS["logistic"], MOST_WORK // (columns.n * columns.p)))


def standardised(X: Any) -> tuple[Any, Floats, Floats]:
    """The table with columns of mean 0 and variance 1, its means and its scales; a sparse table is only divided by the scales.

    A column that is constant up to rounding has the scale 1.
    """
    n = X.shape[0]
    if not sparse.issparse(X):
        means = X.mean(axis=0)
        with np.errstate(over="ignore"):
            scales = _scales(np.sqrt(np.square(X - means).mean(axis=0)), np.abs(means))
        return (X - means) / scales, means, scales
    means = np.asarray(X.mean(axis=0)).ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.asarray(X.multiply(X).sum(axis=0)).ravel() / n - means**2
    scales = _scales(np.sqrt(np.maximum(squares, 0.0)), np.abs(means))
    return sparse.csr_array(X @ sparse.diags_array(1.0 / scales)), np.zeros(X.shape[1]), scales


def _scales(deviations: Floats, means: Floats) -> Floats:
    if not check.is_finite(deviations):
        raise InvalidInput("X must have columns whose squares fit in float64, got entries so large that they overflow; rescale X")
    return np.where(deviations > 1e-12 * np.maximum(means, 1e-300), deviations, 1.0)
