"""A scikit-learn regressor for many tasks that share groups of features (docs/maths.md, "Group structures").

One of the methods finds the groups by solving ``GroupLassoStructure``; the fitted models are group lassos with these groups.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, validate_data

from mixbin import _validate as check
from mixbin._validate import Floats, listed
from mixbin.data.task_formats import Ids, as_array, entries, labelled, layout, matched, named, tasks_of
from mixbin.data.tasks import Tasks
from mixbin.errors import ConvergenceWarning, InvalidInput
from mixbin.estimators._common import check_both, check_settings, generator, method_seed, run_method, sklearn_errors_about
from mixbin.problems import GroupLassoStructure
from mixbin.problems.group_lasso.structure import lam_at_bound
from mixbin.problems.strength import Strength
from mixbin.progress import Callback

LAM_RANGE = (1e-3, 1.0)
LAM_GRID = np.geomspace(*LAM_RANGE, 13)
"""The values of lam that ``lam="cv"`` compares: four per decade."""
FOLDS = 3


class GroupStructureRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Group lasso regressions of many tasks, with the groups of features that predict the tasks' validation rows best.

    The tasks share the groups, but each task has its own linear model, with an intercept of its own. A good lam depends on the
    size of the targets: scale them such that they differ within a task by about 1.

    Parameters
    ----------
    n_groups : int, default=10
        The largest number of groups, from 2 to the number of features. Some groups may end up empty. ``suggest_n_groups`` helps
        to choose the number.
    lam : float, pair of floats, "cv" or None, default=None
        The strength of the group penalty. A number fixes it; a pair (low, high) is a range in which it is optimised together
        with the groups; None is the range (1e-3, 1). "cv" first finds groups as None does. For these
        groups it then compares 13 values of lam in that range by 3-fold cross-validation over the training rows of each task.
        With the best lam fixed it finds the groups once more, beginning from those of the first run. This takes about twice as
        long.
    ridge : float, default=1e-3
        The strength of the squared penalty that makes every model unique.
    method : {"penalize", "top-k", "simple", "relax"}, default="penalize"
        How the groups are found: by ``relax_and_penalize``, or by a baseline that relaxes them to weights and then gives each
        feature the group with its largest weight ("top-k", the paper's top-1), the groups with a weight of at least one half
        ("simple", which may leave a feature without a group and so without group penalty), or all weights ("relax").
    fit_intercept : bool, default=True
        Whether each model has an intercept, which is not penalised: the columns and the targets of each task are centred by
        their means over its training rows. False is the paper's problem, for data that are centred already; a constant column is
        then a feature like any other.
    validation_fraction : float, default=0.2
        The fraction of the rows of each task that is split off for validation when ``fit`` gets no validation rows. The
        number is rounded half up, and at least one row stays on each side.
    random_state : int, RandomState instance or None, default=None
        Seeds the split, the folds and the starts of the method. Pass an int to get the same result every time.
    max_evaluations : int or None, default=None
        How often one run of the method may train and validate all models. None uses the default of the method.
    n_jobs : int or None, default=None
        The number of threads that share the tasks; None uses all cores. The result does not depend on the number.
    verbose : bool, default=False
        Show the progress on a terminal or in a notebook.
    time_limit : float or None, default=None
        Seconds after which one run of the method ends with the best answer so far; the result then depends on the machine.
    callbacks : sequence of callables or None, default=None
        Called with an ``Event`` after each step; ``event.stop()`` ends the search. See ``relax_and_penalize``.

    Attributes
    ----------
    labels_ : int array of shape (n_features,)
        The group of each feature. With ``method="relax"`` it is the group of the largest weight; it is -1 for a feature that
        "simple" leaves without a group.
    theta_ : array of shape (n_features, n_groups)
        The groups as a table: bool, or the weights with ``method="relax"``.
    lam_ : float
        The strength of the group penalty, fixed or found.
    coef_ : array of shape (n_tasks, n_features)
        The coefficients of the models, one row per task.
    intercept_ : array of shape (n_tasks,)
        The intercepts of the models; 0 with ``fit_intercept=False``.
    tasks_ : array of shape (n_tasks,)
        The tasks in the order of ``coef_``: their ids in order of appearance, or 0, 1, ... if X has one table per task.
    group_sizes_ : int array of shape (n_groups,)
        How many features have each label.
    n_empty_groups_ : int
        Groups without a feature.
    n_unassigned_ : int
        Features without a group.
    evidence_ : float
        How well the groups explain all rows of ``fit``: the logarithm of the evidence of a Gaussian model, up to a constant
        (docs/maths.md, "A start from the data"). A feature without a group counts as a group of its own.
    result_ : Result
        The result of the method: value, status, certificate and trace.
    n_features_in_ : int
        The number of features seen by ``fit``.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if the columns of X have names.

    Warns
    -----
    ConvergenceWarning
        If lam ends at a bound of its range.

    See Also
    --------
    mixbin.GroupLassoStructure : The problem that is solved.
    mixbin.suggest_n_groups : The validation loss for different numbers of groups.

    Notes
    -----
    X and y come in one of three formats: arrays of shape (n_tasks, n_rows, n_features) and (n_tasks, n_rows); lists with a table
    and a vector per task, which may differ in their numbers of rows; or one table of all rows with a vector, and ``tasks`` with
    the task of each row.

    Cross-validation by scikit-learn works with the last format, if every fold holds rows of every task, as with
    ``StratifiedKFold().split(X, tasks)``. With metadata routing enabled, ``set_fit_request(tasks=True)`` and
    ``set_score_request(tasks=True)`` hand the tasks on.

    Examples
    --------
    >>> import mixbin as mb
    >>> data = mb.datasets.make_group_lasso("equal", n_tasks=40, n_samples=12, n_features=12, n_groups=3)
    >>> model = mb.GroupStructureRegressor(n_groups=3, lam=0.01, max_evaluations=300, random_state=0)
    >>> model = model.fit(data.X, data.y, data.X_val, data.y_val)
    >>> bool((model.theta_ @ model.theta_.T == data.theta @ data.theta.T).all())  # the groups behind the data, in some order
    True
    >>> model.score(data.X_test, data.y_test) > 0.8
    True
    """

    def __init__(
        self,
        n_groups: int = 10,
        lam: float | tuple[float, float] | Literal["cv"] | None = None,
        ridge: float = 1e-3,
        method: str = "penalize",
        fit_intercept: bool = True,
        validation_fraction: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        max_evaluations: int | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        time_limit: float | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> None:
        self.n_groups = n_groups
        self.lam = lam
        self.ridge = ridge
        self.method = method
        self.fit_intercept = fit_intercept
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.max_evaluations = max_evaluations
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.time_limit = time_limit
        self.callbacks = callbacks

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None, tasks: Any = None, tasks_val: Any = None) -> Self:
        """Find the groups and train the models with them.

        Parameters
        ----------
        X : array of shape (n_tasks, n_rows, n_features), list of tables, or table of shape (n_rows, n_features)
            The rows to train on and, without validation rows, to validate on; at least two tasks.
        y : array of shape (n_tasks, n_rows), list of vectors, or vector of shape (n_rows,)
            Their targets.
        X_val, y_val : like X and y, default=None
            Rows to validate on, of the same tasks. If given, all rows of X are for training.
        tasks, tasks_val : sequence of length n_rows, default=None
            If X is one table: the task of each row of X and of X_val. Any hashable values may be ids.

        Returns
        -------
        self : GroupStructureRegressor
            The fitted estimator.
        """
        check_settings(self, " of each task")
        check.flag("fit_intercept", self.fit_intercept)
        bounds = _bounds(self.lam)
        rng = generator(self.random_state)

        train, val, ids = self._data(X, y, X_val, y_val, tasks, tasks_val, rng)
        seed = method_seed(self.random_state, rng)
        cross_validate = isinstance(self.lam, str)
        if cross_validate:
            _check_folds(train, ids)
        problem = self._problem(train, val, bounds)
        result = run_method(self, problem, seed, "grouping")
        if cross_validate:
            theta = result.theta.astype(np.float64)
            problem = self._problem(train, val, self._cross_validated(train, theta, seed))
            result = run_method(self, problem, seed, "grouping", theta)

        P = len(result.theta)
        self.result_ = result
        self.theta_ = result.theta
        self.labels_ = np.where(result.theta.any(axis=1), result.theta.argmax(axis=1), -1)
        self.group_sizes_ = np.bincount(self.labels_[self.labels_ >= 0], minlength=problem.n_groups)
        self.n_empty_groups_ = int(np.count_nonzero(self.group_sizes_ == 0))
        self.n_unassigned_ = int(np.count_nonzero(self.labels_ < 0))
        self.evidence_ = problem.log_evidence(np.where(self.labels_ < 0, problem.n_groups + np.arange(P), self.labels_))
        self.lam_ = problem.strength.value(result.lam)
        self.coef_ = problem.coef(result.theta.astype(np.float64), result.lam)
        self.intercept_ = train.means().intercepts(self.coef_) if self.fit_intercept else np.zeros(train.n_tasks)
        self.tasks_ = as_array(ids)
        if (said := lam_at_bound(Strength(bounds), self.lam_)) is not None:
            warnings.warn(said, ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X: Any, tasks: Any = None) -> Any:
        """Predict the targets of rows.

        Parameters
        ----------
        X : array of shape (n_tasks, n_rows, n_features), list of tables, or table of shape (n_rows, n_features)
            The rows: of all tasks in the order of ``tasks_``, or of those that ``tasks`` names.
        tasks : sequence, default=None
            The task of each row if X is one table, otherwise the task of each table.

        Returns
        -------
        array of shape (n_tasks, n_rows), list of arrays of shape (n_rows,), or array of shape (n_rows,)
            In the format of X.
        """
        check_is_fitted(self, "coef_")
        form = layout(X)
        if form == "rows":
            whole, each, ids = labelled("X", X, "tasks", tasks)
            self._check_columns("X", X, whole)
            position = self._positions(ids)
            return np.einsum("np,np->n", whole, self.coef_[position][each]) + self.intercept_[position][each]
        tables = entries(X)
        for t, table in enumerate(tables):
            self._check_columns(f"X[{t}]", X[t], table)
        if tasks is not None:
            position = self._positions(named("tasks", tasks, len(tables), "table of X"))
        elif len(tables) == len(self.coef_):
            position = np.arange(len(tables))
        else:
            raise InvalidInput(
                f"X must have the {len(self.coef_)} tasks of fit in their order, got {len(tables)} tables; "
                "name the task of each table with tasks"
            )
        models = zip(tables, self.coef_[position], self.intercept_[position], strict=True)
        predicted = [table @ w + b for table, w, b in models]
        return np.array(predicted) if form == "array" else predicted

    def score(self, X: Any, y: Any, tasks: Any = None) -> float:
        """R^2 over the rows of all tasks together, against the mean of all targets.

        Parameters
        ----------
        X, tasks
            As in ``predict``.
        y : array of shape (n_tasks, n_rows), list of vectors, or vector of shape (n_rows,)
            The targets.

        Returns
        -------
        float
            1 is perfect; 0 is as good as predicting the mean.
        """
        predicted = self.predict(X, tasks)
        if isinstance(predicted, list):
            vectors = [check.array(f"y[{t}]", target, shape=p.shape) for t, (target, p) in enumerate(_pairs(y, predicted))]
            targets, predicted = np.concatenate(vectors), np.concatenate(predicted)
        else:
            targets = check.array("y", y, shape=predicted.shape, remedy="give every row one target")
        with np.errstate(over="ignore", invalid="ignore"):
            score = float(r2_score(targets.ravel(), predicted.ravel()))
        if not np.isfinite(score):
            raise InvalidInput("y must have squares that fit in float64, got targets or predictions that overflow; rescale them")
        return score

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that this estimator also accepts arrays with one table per task."""
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _data(
        self, X: Any, y: Any, X_val: Any, y_val: Any, tasks: Any, tasks_val: Any, rng: np.random.RandomState
    ) -> tuple[Tasks, Tasks, Ids]:
        """The rows to train and to validate on, task by task, and the ids of the tasks."""
        check_both(X_val, y_val)
        if X_val is None and tasks_val is not None:
            raise check.fail("tasks_val", tasks_val, "None without X_val", "pass X_val and y_val too")
        train, ids = tasks_of(X, y, tasks)
        self._note_columns(X, train.tables)
        if X_val is None:
            return *self._split(train, ids, rng), ids
        if (layout(X) == "rows") != (layout(X_val) == "rows"):
            must = "one table with tasks_val, as X is" if layout(X) == "rows" else "one table per task, as in X"
            raise check.fail("X_val", X_val, must, "pass training and validation rows in the same format")
        val, val_ids = tasks_of(X_val, y_val, tasks_val, "_val")
        if layout(X_val) == "rows":
            self._check_columns("X_val", X_val, val.X)
            return train, matched(val, val_ids, ids), ids
        for t, table in enumerate(val.tables):
            self._check_columns(f"X_val[{t}]", X_val[t], table)
        return train, val, ids

    def _split(self, data: Tasks, ids: Ids, rng: np.random.RandomState) -> tuple[Tasks, Tasks]:
        """Split the rows of each task at random: some to train on, the others to validate on."""
        if short := _tasks_below(2, data, ids):
            raise InvalidInput(
                f"X must have at least two rows per task to split off some, got one row of {short}; "
                "pass X_val and y_val, or leave these tasks out"
            )
        held_out = np.zeros(data.n_rows, dtype=bool)
        for start, rows in zip(data.starts, data.sizes.tolist(), strict=False):
            count = min(max(int(np.floor(self.validation_fraction * rows + 0.5)), 1), rows - 1)
            held_out[start + rng.permutation(rows)[:count]] = True
        return data.where(~held_out), data.where(held_out)

    def _note_columns(self, X: Any, tables: list[Floats]) -> None:
        """Set ``n_features_in_`` and ``feature_names_in_``, and check that all tables have the same features."""
        if layout(X) == "rows":
            validate_data(self, X, reset=True, skip_check_array=True)
            return
        validate_data(self, X[0] if hasattr(X[0], "columns") else tables[0], reset=True, skip_check_array=True)
        for t, table in enumerate(tables):
            self._check_columns(f"X[{t}]", X[t], table)

    def _check_columns(self, name: str, given: Any, table: Floats) -> None:
        """Refuse a table whose features are not those of ``fit``; ``given`` is the table as passed, perhaps with column names."""
        if table.shape[1] != self.n_features_in_:
            raise InvalidInput(
                f"{name} must have the features of fit, got {table.shape[1]} columns against {self.n_features_in_}; "
                "pass the same features in the same order"
            )
        if hasattr(given, "columns"):
            with sklearn_errors_about(f"{name} must have the columns of X in fit"):
                validate_data(self, given, reset=False, skip_check_array=True)

    def _positions(self, ids: Ids) -> NDArray[np.intp]:
        """The position of each task in ``tasks_``."""
        position = {name: t for t, name in enumerate(self.tasks_.tolist())}
        unknown = list(dict.fromkeys(name for name in ids if name not in position))
        if unknown:
            raise InvalidInput(
                f"tasks must name tasks of fit, got {listed(unknown, 5)}; there are models of {listed(position, 5)} only"
            )
        return np.array([position[name] for name in ids], dtype=np.intp)

    def _problem(self, train: Tasks, val: Tasks, bounds: float | tuple[float, float]) -> GroupLassoStructure:
        """The problem of these rows, which are centred if the models have an intercept."""
        if self.fit_intercept:
            means = train.means()
            train, val = train.minus(means), val.minus(means)
        settings: dict[str, Any] = {"n_groups": self.n_groups, "ridge": self.ridge, "lam_bounds": bounds, "n_jobs": self.n_jobs}
        return GroupLassoStructure(train.tables, train.targets, val.tables, val.targets, **settings)

    def _cross_validated(self, train: Tasks, theta: Floats, seed: int) -> float:
        """The lam of LAM_GRID with the lowest loss on the rows left out, over all folds, for models with the groups ``theta``."""
        rng = np.random.default_rng(seed)
        folds = np.concatenate([rng.permutation(rows) % FOLDS for rows in train.sizes.tolist()])
        losses = np.zeros(len(LAM_GRID))
        for k in range(FOLDS):
            problem = self._problem(train.where(folds != k), train.where(folds == k), LAM_RANGE)
            losses += [problem.evaluate(theta, np.asarray(lam), gradient=False).value for lam in LAM_GRID]
        return float(LAM_GRID[losses.argmin()])


def _bounds(lam: object) -> float | tuple[float, float]:
    """The range of lam in the first run, or the number that fixes it."""
    if lam is None or (isinstance(lam, str) and lam == "cv"):
        return LAM_RANGE
    remedy = 'pass a number to fix lam, a pair (low, high) to optimise it, or "cv"'
    return check.positive_or_range("lam", lam, remedy)


def _check_folds(train: Tasks, ids: Ids) -> None:
    if short := _tasks_below(FOLDS, train, ids):
        raise InvalidInput(
            f'lam="cv" must have at least {FOLDS} training rows per task, got fewer of {short}; pass a number or a pair'
        )


def _tasks_below(least: int, data: Tasks, ids: Ids) -> str:
    """The tasks with fewer than ``least`` rows, as text for a message; empty if there are none."""
    short = [name for name, rows in zip(ids, data.sizes, strict=True) if rows < least]
    return f"task{'s' if len(short) > 1 else ''} {listed(short, 5)}" if short else ""


def _pairs(y: Any, predicted: list[Floats]) -> Iterable[tuple[Any, Floats]]:
    """Each task's targets with its predictions."""
    if isinstance(y, (str, bytes)) or not hasattr(y, "__len__") or len(y) != len(predicted):
        raise check.fail("y", y, f"{len(predicted)} vectors of targets", "give every task its targets")
    return zip(y, predicted, strict=True)
