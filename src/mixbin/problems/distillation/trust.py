"""How far an answer of a ridge distillation can be trusted on new data: what is proven, and checks that cost next to nothing."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.rows import DenseRows
from mixbin.problems.distillation.references import excess_of
from mixbin.problems.distillation.ridge import RidgeDistillation

ROWS_PER_FEATURE = 5
"""With fewer validation rows per feature than this, a choice of rows can fit the validation rows by chance."""
LARGEST_RATIO = 1.2
"""A higher ``unkept_ratio`` flagged 97 % of the bad answers of a study and 6 % of the good ones."""
NO_INTEREST = 1e-3
"""An answer that is provably this near to the best one, as a share of its value, need not be better."""
WORK, MOST_STARTS, HELD = 40_000_000, 8, 1e-9
"""Several random selections are searched, at most 8: as many as 40 million contain rows times squared features, which takes a
second or two. From another selection exchanges end elsewhere: elevators with 20 rows at an excess of 1.5 % after one search and
0.5 % after six, a table of rare counts with 82 rows at 12 % and 1.5 %. With more than one, the first eps holds each selection in
place, so that a search goes straight to exchanges of rows. Unlike a path of gradient steps these do not amplify rounding: other
units of the columns lead to the same rows or to as good ones."""
SCANNED = 5_000_000
"""With more exchanges than this, exchanges are searched among the most promising rows only, unless ``gap_tol`` is 0. On blog with
1 % of the rows, such a search ends at an excess of 0.1 % after 33 s of processor time; a look through all 27 million exchanges,
at an excess of 0.22 %, had not ended after two minutes."""
GRID, MOST_ENTRIES = 2.0**24, 20_000_000
"""Rows are chosen on a table rounded to this part of a standard deviation, if it has at most so many entries."""
WIDER = "give a wider range, or a number"
"""What to do about an alpha at a bound."""


class Trust(NamedTuple):
    """What is known about one answer."""

    excess: float
    """(J - J*) / J*, J* being the least value of the upper level for any linear model; NaN if that is 0 and J is not."""
    unkept_ratio: float
    """The RMSE on the candidate rows not kept, divided by that of a ridge regression on all candidate rows; NaN without any."""
    doubts: list[str]
    """Sentences about what speaks against the answer."""
    at_bound: str | None
    """A sentence if alpha ended at a bound of its range."""


def trust(problem: RidgeDistillation, theta: NDArray[Any], lam: Floats, value: float, seed: int) -> Trust:
    """Check the rows ``theta`` with the penalty ``lam``, at which J is ``value``; ``seed`` shuffles the folds."""
    ratio = unkept_ratio(problem, theta, lam, seed)
    doubts = []
    if not problem.judged_by_all and problem.n_judging < ROWS_PER_FEATURE * problem.n_features:
        doubts.append(
            f"{problem.n_judging:,} validation rows for {problem.n_features:,} features are fewer than {ROWS_PER_FEATURE} per "
            "feature, so the choice may fit the validation rows only; give more of them, or let all rows judge (judge full)"
        )
    if ratio > LARGEST_RATIO:
        doubts.append(
            f"on the rows that were not kept, the error is {ratio:.3g} times that of a ridge regression on all rows: unless the "
            "targets of these rows are wrong, the answer will not hold on new data; keep more rows, or let all rows judge (judge "
            "full)"
        )
    above = excess_of(problem, value)
    # The default range begins so low that its lower bound stands for no penalty, which is often best, and a bound that costs next
    # to nothing is no news either.
    sides = ("lower", "upper") if not problem.default_alpha else () if above < NO_INTEREST else ("upper",)
    strength = problem.strength
    return Trust(above, ratio, doubts, strength.at_bound("alpha", strength.value(lam), WIDER, sides))


def unkept_ratio(problem: RidgeDistillation, theta: NDArray[Any], lam: Floats, seed: int) -> float:
    """See ``Trust.unkept_ratio``; the ridge regression on all rows has the strength that cross-validation on them chooses."""
    unkept = (theta == 0).astype(np.float64)
    if not unkept.any():
        return float("nan")
    mean, S = problem.rows.moments(unkept, float(unkept.sum()))
    S = S * (problem.rows.n_rows / unkept.sum())
    errors = []
    for K, at in (problem.fitted(theta, lam), problem.fitted_to_all(seed)):
        missed = K @ (mean - at)
        errors.append(float(np.vdot(missed, missed) + max(np.trace(K @ S @ K.T), 0.0)))
    if errors[1] == 0:
        return 1.0 if errors[0] == 0 else float("inf")
    return float(np.sqrt(errors[0] / errors[1]))


def search_settings(problem: RidgeDistillation, seed: int, gap_tol: float) -> dict[str, Any]:
    """Settings of ``relax_and_penalize``; where all rows judge, also a first point, and a limit of the full scan for exchanges.

    There the relaxed problem says nothing: equal weights for all rows and alpha = a k/m give the model that is best of all, and a
    gradient of zero. A random selection is a better first point, and the proven gap tells when it has become good enough.
    """
    if not problem.judged_by_all:
        return {"gap_tol": gap_tol}
    if gap_tol:
        problem.scan_at_most = SCANNED
    m, k = problem.rows.n_rows, problem.theta_set.k
    theta = np.zeros(m)
    theta[np.random.default_rng(seed).choice(m, k, replace=False)] = 1.0
    starts = n_starts(problem)
    settings: dict[str, Any] = {"gap_tol": gap_tol, "theta0": theta, "relax_first": False, "starts": starts}
    if starts > 1:
        settings["epsilon0"] = HELD
    if not isinstance(problem.alpha, float) and problem.outer_alpha:
        settings["lam0"] = np.clip(problem.outer_alpha * k / m, *problem.alpha)
    return settings


def n_starts(problem: RidgeDistillation) -> int:
    """The number of random selections that are searched."""
    return min(MOST_STARTS, max(1, WORK // (problem.rows.n_rows * problem.n_features**2)))


def in_standard_units(problem: RidgeDistillation) -> RidgeDistillation:
    """The problem on which to choose rows: the same, in units that do not depend on those of the table.

    A search takes the best of many exchanges again and again, and nearly equal ones are told apart by rounding. So the same table
    in other units would give other rows, about as good by the objective, yet with another error on new data. In standard
    deviations, rounded to fewer digits than float64 has, both tables are the same to the bit. Sparse tables, blocks and very
    large tables are taken as they are.
    """
    rows, d = problem.rows, problem.n_features
    if not (problem.judged_by_all and problem.standardize and isinstance(rows, DenseRows) and problem.outer_coef is None):
        return problem
    if rows.n_rows * d > MOST_ENTRIES:
        return problem
    zhat = rows.take(np.arange(rows.n_rows), np.zeros(len(rows.centre)))
    X = np.rint(zhat[:, :d] / problem.scales * GRID) / GRID
    return RidgeDistillation(
        X,
        zhat[:, d:],
        budget=problem.theta_set.k,
        alpha=problem.alpha,
        outer_alpha=problem.outer_alpha,
        compact=problem.compact,
    )
