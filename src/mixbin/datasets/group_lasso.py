"""Regression tasks, each of which uses the features of one group only (docs/maths.md, "Synthetic tasks")."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.data.tasks import TaskData, numbered, stacked
from mixbin.errors import InvalidInput

LEAST = 2
"""Every group of a random structure has at least this many features."""
MAX_DRAWS = 10_000
"""If this many random draws of group sizes have a group that is too small, the arguments are refused."""
MOST_NUMBERS = 2**40
"""The training rows of all tasks together may have at most this many entries; no memory holds more."""
MOST_NOISE = 1e100
"""Larger noise is refused: the targets, or the squares of them that every model needs, would overflow."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupLassoData:
    """Training, validation and test rows of tasks that share a structure, with the true structure and the true models.

    Examples
    --------
    >>> import mixbin as mb
    >>> data = mb.datasets.make_group_lasso("equal", n_tasks=30, n_features=6, n_groups=2, seed=0)
    >>> data.X.shape, data.y.shape
    ((30, 20, 6), (30, 20))
    >>> data.labels
    array([0, 0, 0, 1, 1, 1])
    """

    X: Floats
    """The training rows, of shape (tasks, rows, features); X_val and X_test have the same shape."""
    y: Floats
    """The training targets, of shape (tasks, rows); y_val and y_test have the same shape."""
    X_val: Floats
    y_val: Floats
    X_test: Floats
    y_test: Floats
    theta: NDArray[np.bool_]
    """(features, groups): the true structure."""
    labels: NDArray[np.intp]
    """(features,): the group of each feature."""
    coef: Floats
    """(tasks, features): the true models."""

    def to_tasks(self) -> TaskData:
        """The same rows and the same truth as every other source of tasks gives them, files for example."""
        pairs = (self.X, self.y), (self.X_val, self.y_val), (self.X_test, self.y_test)
        train, validation, test = (stacked(list(X), list(y)) for X, y in pairs)
        names = numbered(train.n_tasks), numbered(train.n_features)
        return TaskData(*names, train, validation, test, self.labels, self.coef)

    def __repr__(self) -> str:
        T, N, P = self.X.shape
        return f"GroupLassoData({T} tasks of {N} rows, {P} features in groups of {np.bincount(self.labels).tolist()})"


def make_group_lasso(
    groups: Literal["equal", "inequal", "random"] = "inequal",
    a: float = 0.3,
    *,
    n_tasks: int = 500,
    n_samples: int = 20,
    n_features: int = 100,
    n_groups: int = 10,
    noise: float = 0.2,
    seed: int | np.random.Generator | None = 0,
) -> GroupLassoData:
    """Draw the published synthetic data, in which each task uses the features of one group, drawn uniformly.

    The coefficients of these features are uniform on [-1, -a] ∪ [a, 1], all others are 0. Rows are standard normal with columns
    scaled to norm 1, drawn separately for training, validation and test; y = Xw + noise * std(Xw) * N(0, 1).

    Parameters
    ----------
    groups : {"equal", "inequal", "random"}, default "inequal"
        The sizes of the groups. "equal": all of one size; n_groups must divide n_features. "inequal" (the paper's word for
        unequal): half of the groups are three times as large as the others, by default five of 5 features and five of 15;
        n_groups must be even and 2 n_groups must divide n_features. "random": round(n_features * softmax of standard normals),
        the remainder to the first group; the sizes are drawn again while a group has fewer than 2 features.
    a : float, default 0.3
        The smallest absolute value of a coefficient that is not 0, in [0, 1].
    n_tasks : int, default 500
        The number of tasks.
    n_samples : int, default 20
        The number of rows per task in each of the three parts.
    n_features : int, default 100
        The number of features.
    n_groups : int, default 10
        The number of groups.
    noise : float, default 0.2
        The standard deviation of the noise, relative to that of the task's signal Xw.
    seed : int, Generator or None, default 0
        The same seed gives the same data.

    Examples
    --------
    >>> import mixbin as mb
    >>> mb.datasets.make_group_lasso("equal", n_tasks=30, n_features=20, n_groups=4, seed=0)
    GroupLassoData(30 tasks of 20 rows, 20 features in groups of [5, 5, 5, 5])
    """
    check.choice("groups", groups, ("equal", "inequal", "random"))
    a = check.real("a", a, low=0, high=1)
    T = check.whole("n_tasks", n_tasks, low=1)
    N = check.whole(
        "n_samples", n_samples, low=2, remedy="the noise is scaled by the spread of the targets, and one row has none"
    )
    P = check.whole("n_features", n_features, low=1)
    L = check.whole("n_groups", n_groups, low=1, high=P, remedy="every group needs a feature")
    noise = check.real("noise", noise, low=0)
    if noise > MOST_NOISE:
        raise check.fail("noise", noise, f"at most {MOST_NOISE:g}", "it is relative to the signal, and 0.2 is the paper's")
    if T * N * P > MOST_NUMBERS:
        raise InvalidInput(
            f"n_tasks * n_samples * n_features must be at most {MOST_NUMBERS:,}, got {T} * {N} * {P}; make fewer or smaller tasks"
        )
    rng = check.generator("seed", seed)
    labels = np.repeat(np.arange(L), _sizes(groups, P, L, rng))
    active = rng.integers(L, size=T)
    size, sign = rng.uniform(a, 1.0, size=(T, P)), rng.choice([-1.0, 1.0], size=(T, P))
    coef = np.where(labels == active[:, None], size * sign, 0.0)
    (X, y), (X_val, y_val), (X_test, y_test) = (_rows(coef, N, noise, rng) for _ in range(3))
    return GroupLassoData(X, y, X_val, y_val, X_test, y_test, np.arange(L) == labels[:, None], labels, coef)


def _sizes(groups: str, P: int, L: int, rng: np.random.Generator) -> NDArray[np.intp]:
    if groups == "equal":
        if P % L:
            raise InvalidInput(
                f"n_groups must divide n_features for equal groups, got {L} and {P}; change one of them or use groups='random'"
            )
        return np.full(L, P // L)
    if groups == "inequal":
        if L % 2 or P % (2 * L):
            raise InvalidInput(
                "n_groups must be even and n_features divisible by 2 n_groups for inequal groups, "
                f"got {L} and {P}; change one of them or use groups='random'"
            )
        return np.repeat([P // (2 * L), 3 * P // (2 * L)], L // 2)
    if P < LEAST * L:
        raise InvalidInput(f"n_features must be at least {LEAST} n_groups for random groups, got {P} for {L}; use fewer groups")
    for _ in range(MAX_DRAWS):
        weights = np.exp(rng.normal(size=L))
        sizes: NDArray[np.intp] = np.rint(P * weights / weights.sum()).astype(np.intp)
        sizes[0] += P - sizes.sum()
        if sizes.min() >= LEAST:
            return sizes
    raise InvalidInput(
        f"n_features must leave room for random groups, got {P} for {L} and a group below {LEAST} in {MAX_DRAWS} draws; "
        "use fewer groups"
    )


def _rows(coef: Floats, N: int, noise: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    T, P = coef.shape
    X = rng.normal(size=(T, N, P))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    signal = np.einsum("tnp,tp->tn", X, coef)
    return X, signal + noise * signal.std(axis=1, keepdims=True) * rng.normal(size=(T, N))
