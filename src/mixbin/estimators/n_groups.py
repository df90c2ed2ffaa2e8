"""How many groups of features to ask for: the groups found with different numbers, compared by the evidence of the rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixbin import _validate as check
from mixbin._html import html_comparison
from mixbin._numbers import readable
from mixbin.data.task_formats import tasks_of
from mixbin.errors import InvalidInput
from mixbin.estimators._common import generator, method_seed
from mixbin.estimators.groups import GroupStructureRegressor

PRICE = 0.6
"""What ``suggest_n_groups`` takes off the log evidence for each group and task. A superfluous group raised it by 0.3 per task in
tests, since its strength is one more number to fit; a group that was really there by 3 per task."""


@dataclass(frozen=True)
class GroupCurve:
    """The validation loss for different numbers of groups.

    Examples
    --------
    >>> import mixbin as mb
    >>> curve = mb.GroupCurve(candidates=(2, 3), values=(0.5, 0.4), used=(2, 3), evidence=(-90.0, -60.0), suggested=3)
    >>> curve.suggested, curve.used
    (3, (2, 3))
    """

    candidates: tuple[int, ...]
    """The numbers of groups, ascending."""
    values: tuple[float, ...]
    """The validation loss for each number of groups."""
    used: tuple[int, ...]
    """For each number of groups, how many of them hold a feature."""
    evidence: tuple[float, ...]
    """For each number of groups, the logarithm of the evidence of the groups found."""
    suggested: int
    """The suggested number of groups."""

    def _repr_html_(self) -> str:
        """The numbers of groups beside each other, for notebooks; the suggested one is bold."""
        heads = ["groups", "with a feature", "log evidence", "validation loss"]
        numbers = zip(self.candidates, self.used, self.evidence, self.values, strict=True)
        lines = [[f"{n:,}", f"{used:,}", readable(evidence, 6), readable(value)] for n, used, evidence, value in numbers]
        return html_comparison(
            f"mixbin: how many groups; {self.suggested} suggested", heads, lines, self.candidates.index(self.suggested)
        )


def suggest_n_groups(
    X: Any,
    y: Any,
    X_val: Any = None,
    y_val: Any = None,
    candidates: Iterable[int] = (2, 3, 5, 8, 10, 15, 20),
    tasks: Any = None,
    tasks_val: Any = None,
    random_state: int | np.random.RandomState | None = None,
    **params: Any,
) -> GroupCurve:
    """Fit with different numbers of groups and suggest the one whose groups explain the rows best for their number.

    The suggestion is the candidate with the highest logarithm of the evidence (``evidence_`` of the estimator), less 0.6 per task
    for each group that holds a feature. The validation loss does not decide: the validation rows have chosen the groups, so the
    loss falls with their number, and it is no estimate of the error on new rows. All candidates get the same validation rows.

    Parameters
    ----------
    X, y, X_val, y_val, tasks, tasks_val
        As in ``GroupStructureRegressor.fit``.
    candidates : sequence of int, default=(2, 3, 5, 8, 10, 15, 20)
        The numbers of groups to try; numbers above the number of features are left out.
    random_state : int, RandomState instance or None, default=None
        Gives one seed, which all candidates share.
    **params
        Other parameters of ``GroupStructureRegressor``.

    Returns
    -------
    GroupCurve
        The numbers that were tried, and the one suggested.

    Examples
    --------
    >>> import mixbin as mb
    >>> data = mb.datasets.make_group_lasso("equal", n_tasks=30, n_features=12, n_groups=3, seed=0)
    >>> curve = mb.suggest_n_groups(data.X, data.y, candidates=(2, 3, 4), random_state=0)
    >>> curve.suggested
    3
    """
    remedy = "such as (2, 5, 10)"
    if not np.iterable(candidates) or isinstance(candidates, (str, bytes)):
        raise check.fail("candidates", candidates, "numbers of groups", remedy)
    numbers = sorted({check.whole("candidates", number, low=2, remedy=remedy) for number in candidates})
    known = sorted(set(GroupStructureRegressor().get_params()) - {"n_groups", "random_state"})
    unknown = [name for name in params if name not in known]
    if unknown:
        raise InvalidInput(f"params must be among {', '.join(known)}, got {unknown[0]!r}; candidates gives the numbers of groups")
    rng = generator(random_state)
    seed = method_seed(random_state, rng)
    data = tasks_of(X, y, tasks)[0]
    features, n_tasks = data.n_features, data.n_tasks
    fitting = [number for number in numbers if number <= features]
    if not fitting:
        raise check.fail("candidates", candidates, f"numbers from 2 to {features}, the number of features", remedy)
    values, used, evidence = [], [], []
    for number in fitting:
        model = GroupStructureRegressor(n_groups=number, random_state=seed, **params)
        model.fit(X, y, X_val, y_val, tasks=tasks, tasks_val=tasks_val)
        values.append(float(model.result_.value))
        used.append(number - model.n_empty_groups_)
        evidence.append(model.evidence_)
    worth = [gained - PRICE * n_tasks * groups for gained, groups in zip(evidence, used, strict=True)]
    suggested = fitting[int(np.argmax(worth))]
    return GroupCurve(tuple(fitting), tuple(values), tuple(used), tuple(evidence), suggested)
