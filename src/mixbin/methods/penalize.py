"""Algorithm 1 of the paper: relax the binary variables, add phi/eps, and let eps fall until they are binary."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixbin.methods.run import Run
from mixbin.methods.settings import check_settings
from mixbin.penalties import Penalty
from mixbin.problem import CheckedProblem, Problem
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
        Where the first start begins (theta0 is projected onto its set); the centres of the sets by default.
    epsilon0 : float or "auto"
        The first eps; "auto" makes the penalty a thousandth of the gradient of G where the relaxed stage ended.
    beta : float
        eps is multiplied by this after each outer iteration; nearer to 1 is slower and usually better.
    penalty : Penalty, optional
        ``Quadratic()`` by default.
    solver : Solver or str, optional
        What minimises G + phi/eps; ``SpectralGradient()`` by default.
    tol : float
        theta counts as binary when no entry is further than this from the nearest feasible binary point.
    inner_steps : int or sequence of int, optional
        Solver steps per eps, at most; a sequence gives one number per eps, the last repeated. By default what the problem
        prefers (its ``preferred_settings``; not with ``polish=False``), else 20. The relaxed stage has 50, or the first number
        if that is larger.
    max_outer : int
        Values of eps, at most; then the nearest feasible binary point is taken (status REPAIRED).
    max_evaluations, time_limit : optional
        Limits over all starts, in evaluations of G (a quarter of them is left to polish) and in seconds. A problem's own search
        counts as many evaluations as its work is worth; one that cannot stop early may exceed the limit by its last call.
        ``time_limit`` makes a run depend on the clock.
    relax_first : bool
        Begin with the plain relaxation, without penalty.
    reoptimize_lam : bool
        At the end, minimise over lam at the binary theta.
    starts : int or "auto"
        Runs from different first points, the best kept; "auto" is what the problem prefers (its ``preferred_settings``), else 8
        if theta has at most 2,000 entries, else 1.
    polish : bool or int
        From the binary point go on by moves that lower the true value, until no single one does. A number is the evaluations it
        may use per start, where a call of the problem's own search counts as one; True is 2,000 if theta has at most 2,000
        entries, else 200.
    gap_tol : float
        If the problem has a lower bound: polish ends as soon as no answer can be better by this share of the value, such as
        0.01. With 0 it goes on until no single move improves the answer.
    seed : int or Generator, optional
        Same seed, same bits.
    callbacks : sequence of functions
        Each is called with an ``Event`` after every step; ``event.stop()`` ends the run cleanly. One with a ``close`` method
        has it called when the run ends.
    checkpoint : path, optional
        The file that keeps the run, so that the same call goes on after an interruption, or returns the finished result at
        once. A file of another problem, other settings or another version is refused. Needs a ``seed``.
    checkpoint_every : float
        Seconds between two writes, at least; 0 writes after every step. Writing never takes more than about 4 % of the time.

    Returns
    -------
    Result
        Status BINARY if the penalty made theta binary, REPAIRED if a limit ended the run before that, STOPPED if a callback did.
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
        starts=starts,
        polish=polish,
        gap_tol=gap_tol,
        seed=seed,
        callbacks=callbacks,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    return Run(checked, settings).finish()
