"""One run on group structures, for tables 1, 2 and 4 and figures 1 and 2 (docs/maths.md, "Group structures")."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin.datasets import make_group_lasso
from mixbin.datasets.group_lasso import GroupLassoData
from mixbin.problems import GroupLassoStructure
from mixbin.progress import Event
from mixbin.reproduction.job import Job, Record, Work
from mixbin.reproduction.paper import paper_problem, paper_settings

SETTINGS = tuple(f"{sizes} {a}" for sizes in ("inequal", "random") for a in (0.1, 0.3, 0.5))
ABLATION_SETTING = "inequal 0.3"
"""The setting of table 4 and figure 2."""
FIGURE1_SETTING = "random 0.5"
"""The setting of figure 1."""


def compute(job: Job, work: Work) -> Record:
    """Run penalize; unless this is an ablation, also run the relaxation with as many evaluations, and round it in two ways."""
    sizes, a = job.setting.split()
    data = make_group_lasso(sizes, float(a), n_tasks=job.n_tasks, seed=job.run)  # type: ignore[arg-type]
    problem, keywords = _problem_and_keywords(job, data)
    main = job.beta is None
    recorder = work.recorder("distances", _distance) if main and job.setting == ABLATION_SETTING and job.run == 0 else None
    penalize = work.penalize(problem, recorder, seed=job.run, **keywords)
    result = penalize.result
    methods = {"penalize": measure(problem, data, result.theta, result.lam)}
    outer = result.trace.column("outer")[result.trace.column("phase") == "penalise"]
    record: Record = {
        "methods": methods,
        "outer": int(outer.max()) + 1,
        "evaluations": result.n_evaluations,
        "status": result.status.value,
        "message": result.message,
        "seconds": {"penalize": penalize.seconds},
        "group_sizes": np.bincount(data.labels, minlength=data.theta.shape[1]).tolist(),
    }
    if recorder is not None:
        record["distances"] = recorder.points()
    if not main:
        return record
    baseline = {name: keywords[name] for name in ("solver", "lam0", "starts") if name in keywords}
    limits: dict[str, Any] = {"max_evaluations": result.n_evaluations, "reoptimize_lam": False}
    relax = work.relax(problem, None, seed=job.run, **baseline, **limits)
    theta, lam = relax.result.theta, relax.result.lam
    simple, top = problem.theta_set.round(theta), problem.theta_set.vertex(theta)
    methods |= {
        "oracle-r": measure(problem, data, data.theta, lam),
        "relaxed": measure(problem, data, theta, lam),
        "simple": measure(problem, data, simple, lam) | {"unassigned": int(np.sum(~simple.any(axis=1)))},
        "top-1": measure(problem, data, top, lam),
        "oracle-p": measure(problem, data, data.theta, result.lam),
    }
    record["seconds"]["relax"] = relax.seconds
    record["structures"] = {
        "true": data.labels.tolist(),
        "relaxed": np.round(theta, 4).tolist(),
        "simple": _labels(simple),
        "top-1": _labels(top),
        "penalize": _labels(result.theta),
    }
    return record


def _problem_and_keywords(job: Job, data: GroupLassoData) -> tuple[GroupLassoStructure, dict[str, Any]]:
    """The problem of the job, on one thread, and the keywords for ``relax_and_penalize``."""
    parts = (data.X, data.y, data.X_val, data.y_val)
    if job.solver == "paper":
        problem = paper_problem("groups", *parts, n_jobs=1)
        assert isinstance(problem, GroupLassoStructure)
        return problem, paper_settings("groups", beta=job.beta, n_tasks=job.n_tasks)
    # lam is not optimised again at the binary theta, so that every method is judged at the lam with which its search ended.
    keywords: dict[str, Any] = {"reoptimize_lam": False, "search": "path"}
    return GroupLassoStructure(*parts, n_jobs=1), keywords | ({} if job.beta is None else {"beta": job.beta})


def measure(problem: GroupLassoStructure, data: GroupLassoData, theta: NDArray[Any], lam: Any) -> Record:
    """G, the test error, the error of the models in the spectral and the Frobenius norm, and the adjusted Rand index."""
    from sklearn.metrics import adjusted_rand_score

    weights = theta.astype(np.float64)
    missed = problem.coef(weights, lam) - data.coef
    # For the adjusted Rand index, a feature in no group counts as a group of its own.
    alone = theta.shape[1] + np.arange(len(theta))
    found = np.where(weights.any(axis=1), weights.argmax(axis=1), alone)
    return {
        "G": problem.evaluate(weights, np.asarray(lam), gradient=False).value,
        "test": problem.loss(weights, lam, data.X_test, data.y_test),
        "error": float(np.linalg.norm(missed, 2)),
        "frobenius": float(np.linalg.norm(missed)),
        "index": float(adjusted_rand_score(data.labels, found)),
        "lam": float(lam),
    }


def _distance(event: Event) -> Record:
    return {"distance": event.distance}


def _labels(theta: NDArray[np.bool_]) -> list[list[int]]:
    """The groups of each feature: exactly one, except after simple rounding, which may leave none or several."""
    return [np.flatnonzero(row).tolist() for row in theta]
