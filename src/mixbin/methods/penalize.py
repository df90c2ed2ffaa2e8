"""Algorithm 1 of the paper: relax the binary variables, add the penalty phi/eps, and reduce eps until they are binary."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from mixbin.checked_problem import CheckedProblem
from mixbin.methods.run import Run
from mixbin.methods.settings import check_settings
from mixbin.penalties import Penalty
from mixbin.problem import Problem
from mixbin.progress import Callback
from mixbin.result import Result
from mixbin.solvers import Solver


def relax_and_penalize(
    problem: Problem,
    *,
    theta0: ArrayLike | None = None,
    lam0: ArrayLike | None = None,
    epsilon0: float | str = "auto",
    beta: float = 0.5,
    penalty: Penalty | None = None,
    solver: Solver[Any] | str | None = None,
    tol: float = 1e-2,
    inner_steps: int | Sequence[int] | None = None,
    max_outer: int = 100,
    max_evaluations: int | None = None,
    time_limit: float | None = None,
    relax_first: bool = True,
    reoptimize_lam: bool = True,
    search: Literal["portfolio", "path"] = "portfolio",
    starts: int | str = "auto",
    polish: bool | int = True,
    gap_tol: float = 0.0,
    seed: int | np.random.Generator | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 10.0,
) -> Result:
    """Minimise G(theta, lam) over binary theta and continuous lam; the answer is always binary and feasible.

    Parameters
    ----------
    problem : Problem
        What to minimise; ``FunctionProblem`` makes one from a function.
    theta0, lam0 : array, optional
        The first point of the first start; theta0 is projected onto its set. By default theta0 is the suggestion of the problem
        or, if it makes none, the centre of its set, and lam0 is the centre of its set.
    epsilon0 : float or "auto"
        The first eps. "auto" chooses it so that the penalty begins at a thousandth of the size of the gradient of G at the end of
        the relaxed stage.
    beta : float
        After each outer iteration eps is multiplied by this number. A number nearer to 1 is slower but usually gives a better
        answer. While the penalty is too weak to move theta, the default search multiplies eps several times.
    penalty : Penalty, optional
        ``Quadratic()`` by default.
    solver : Solver or str, optional
        The solver that minimises G + phi/eps; ``SpectralGradient()`` by default.
    tol : float
        theta counts as binary once every entry is within this distance of the nearest feasible binary point.
    inner_steps : int or sequence of int, optional
        The largest number of solver steps per eps; a sequence gives one number per eps, and its last number is repeated. By
        default the number in ``preferred_settings`` of the problem, and 20 without such a number or with ``polish=False``. The
        relaxed stage makes at most 50 steps, or the first number if that is larger.
    max_outer : int
        The largest number of values of eps. If theta is not binary after these, the answer is the nearest feasible binary point
        (status REPAIRED).
    max_evaluations, time_limit : optional
        Limits over all starts, in evaluations of G and in seconds. A quarter of the evaluations is reserved for polish. A search
        of the problem's own counts as the number of evaluations that cost as much; a search that cannot stop early may exceed
        the limit by its last call. With a ``time_limit``, the result depends on the speed of the machine.
    relax_first : bool
        Whether to minimise G without penalty first.
    reoptimize_lam : bool
        Whether to minimise over lam once more at the end, with the binary theta fixed.
    search : "portfolio" or "path"
        "path" follows the penalty from ``starts`` different first points, and keeps the best answer. "portfolio" follows it once;
        the cost of the other starts goes to searches that begin where the first did not go: at random binary points, at the best
        answer after a few random moves, and at points that the problem proposes. These end early if they find nothing new. If
        there are at most 5,000 binary points and the problem computes many values together (``evaluate_points``), all of them
        are compared instead; this takes less time, although it may count as more evaluations.
    starts : int or "auto"
        With ``search="path"`` the number of first points. With "portfolio" the run may cost as much as this number of starts, if
        each costs as much as the first; 1 means no further searches. "auto" uses the number in ``preferred_settings`` of the
        problem. Without such a number it means 8 if theta has at most 2,000 entries, and 1 if it has more.
    polish : bool or int
        Whether to improve the binary point by moves that lower the true value, until no single move does. A number limits the
        evaluations of polish per start, of which a call of the problem's own search uses one. True means 2,000 evaluations if
        theta has at most 2,000 entries, and 200 if it has more.
    gap_tol : float
        If the problem has a lower bound, polish ends as soon as the bound proves that no answer is better by this share of the
        value, such as 0.01, and there are no further starts. With 0, polish goes on until no single move improves the answer.
    seed : int or Generator, optional
        The same whole number gives the same result to the bit.
    callbacks : sequence of functions
        Each function is called with an ``Event`` after every step; ``event.stop()`` ends the run cleanly. If a callback has a
        ``close`` method, that is called when the run ends.
    checkpoint : path, optional
        A file for the state of the run. After an interruption, the same call goes on from this state; after the run has ended,
        the same call returns its result at once. A file of another problem, other settings or another version is refused. A
        checkpoint needs a ``seed``.
    checkpoint_every : float
        The least number of seconds between two writes; 0 writes after every step. Unless it is 0, writing takes at most about 4 %
        of the time.

    Returns
    -------
    Result
        The status is BINARY if the penalty made theta binary or a search among binary points found it, REPAIRED if a limit ended
        the run before that, and STOPPED if a callback did.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> likeness = np.array([[2.0, 1.9, 0.1], [1.9, 2.0, 0.2], [0.1, 0.2, 2.0]])  # items 0 and 1 are alike
    >>> problem = mb.FunctionProblem(lambda theta: (theta @ likeness @ theta, 2 * likeness @ theta), mb.Budget(3, 2))
    >>> result = mb.relax_and_penalize(problem, seed=0)
    >>> result.theta, round(result.value, 3), str(result.status)
    (array([ True, False,  True]), 4.2, 'BINARY')
    """
    checked = CheckedProblem(problem)
    settings = check_settings(
        checked,
        rounding="penalise",
        theta0=theta0,
        lam0=lam0,
        epsilon0=epsilon0,
        beta=beta,
        penalty=penalty,
        solver=solver,
        tol=tol,
        inner_steps=inner_steps,
        max_outer=max_outer,
        max_evaluations=max_evaluations,
        time_limit=time_limit,
        relax_first=relax_first,
        reoptimize_lam=reoptimize_lam,
        search=search,
        starts=starts,
        polish=polish,
        gap_tol=gap_tol,
        seed=seed,
        callbacks=callbacks,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    return Run(checked, settings).finish()
