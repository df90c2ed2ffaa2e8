"""One run of data distillation, for tables 3 and 5 and figures 3 to 6 (docs/maths.md, "Data distillation").

Every reported loss is that of scikit-learn's Ridge, trained again with the chosen weights of the rows. So no reported loss
depends on the code that chose the rows.
"""

from base64 import b64decode, b64encode
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixbin.datasets import load_blog, load_music
from mixbin.datasets.uci import BLOG, MUSIC, RegressionData
from mixbin.problems import PublishedGradient, RidgeDistillation
from mixbin.progress import Event
from mixbin.reproduction.job import Job, Record, Work
from mixbin.reproduction.paper import ALPHA, PER_EPSILON, paper_problem, paper_settings

BUDGETS = ("10", "20", "30")
"""The budgets of table 3, in per cent of the training rows."""
ABLATED = "20"
"""The budget of table 5 and of figures 3 to 6, in per cent."""


def music_here() -> str | None:
    """What the folder MIXBIN_DATA contains of music: "music", "music-excerpt" or None. Nothing is downloaded."""
    found = MUSIC.local(None)
    if found is None:
        return None
    return "music" if load_music(found).name == "music" else "music-excerpt"


def find_blog() -> None:
    """Make sure that blog is on this machine: download it unless it is in the folder MIXBIN_DATA."""
    if BLOG.local(None) is None:
        load_blog()


@lru_cache(maxsize=1)
def _loaded(experiment: str) -> RegressionData:
    return load_blog() if experiment == "blog" else load_music()


def data_of(job: Job) -> RegressionData:
    """The data of a run. Run 0 has the training rows in file order, every other run has them shuffled by its own seed."""
    whole = _loaded(job.experiment)
    rows = _rows(job, len(whole.y))
    return replace(whole, X=whole.X[rows], y=whole.y[rows])


def _rows(job: Job, n_rows: int) -> NDArray[np.intp]:
    """The training rows of the file that the run may keep, in the run's order."""
    rows = np.arange(0, n_rows, job.every)
    return np.random.default_rng(job.run).permutation(rows) if job.run else rows


def selection(job: Job, packed: str, n_rows: int) -> NDArray[np.bool_]:
    """A mask of the rows of the training file that penalize kept, decoded from the record's ``selection``."""
    mask = np.zeros(n_rows, dtype=bool)
    rows = _rows(job, n_rows)
    mask[rows] = np.unpackbits(np.frombuffer(b64decode(packed), dtype=np.uint8), count=len(rows)).astype(bool)
    return mask


def compute(job: Job, work: Work) -> Record:
    """Run penalize; unless this is an ablation, also run the relaxation with as many evaluations, and round it in two ways."""
    data = data_of(job)
    problem, keywords = _problem_and_keywords(job, data)
    ridge = problem.problem if isinstance(problem, PublishedGradient) else problem
    main = job.beta is None
    watched = main and job.setting == ABLATED and job.run == 0
    every = 1 if job.solver == "default" else PER_EPSILON
    path = PathMeasurements(ridge, data)
    along = work.recorder("penalize-path", path.penalized, every) if watched else None
    penalize = work.penalize(problem, along, seed=job.run, **keywords)
    result = penalize.result
    methods = {"penalize": measure(data, result.theta)}
    outer = result.trace.column("outer")[result.trace.column("phase") == "penalise"]
    record: Record = {
        "data": data.name,
        "rows": len(data.y),
        "budget": ridge.theta_set.k,
        "methods": methods,
        "outer": int(outer.max()) + 1,
        "evaluations": result.n_evaluations,
        "status": result.status.value,
        "message": result.message,
        "value": result.value,
        "selection": b64encode(np.packbits(result.theta).tobytes()).decode(),
        "one_move_optimal": bool(result.certificate.one_move_optimal) if result.certificate is not None else None,
        "seconds": {"penalize": penalize.seconds},
    }
    if along is not None:
        record["penalize_path"] = along.points()
    if not main:
        return record
    baseline = {name: keywords[name] for name in ("solver", "starts") if name in keywords}
    along = work.recorder("relax-path", path.relaxed, every) if watched else None
    relax = work.relax(problem, along, seed=job.run, max_evaluations=result.n_evaluations, **baseline)
    theta = relax.result.theta
    methods |= {
        "relaxed": measure(data, theta),
        "simple": measure(data, ridge.theta_set.round(theta)),
        "top-k": measure(data, ridge.theta_set.vertex(theta)),
    }
    record["seconds"]["relax"] = relax.seconds
    record["relaxed_value"] = relax.result.value
    if along is not None:
        record["relax_path"] = along.points()
    return record


def _problem_and_keywords(job: Job, data: RegressionData) -> tuple[RidgeDistillation | PublishedGradient, dict[str, Any]]:
    """The problem of the job, and the keywords for ``relax_and_penalize``."""
    parts = (data.X, data.y, data.X_val, data.y_val)
    budget = float(job.setting) / 100
    if job.solver == "paper":
        experiment: Any = "blog" if job.experiment == "blog" else "music"
        problem = paper_problem(experiment, *parts, budget=budget, seed=job.run)
        assert isinstance(problem, PublishedGradient)
        return problem, paper_settings(experiment, beta=job.beta, steps=job.steps)
    keywords: dict[str, Any] = {"search": "path"}
    problem = RidgeDistillation(*parts, budget=budget, alpha=ALPHA, compact=False)
    return problem, keywords | ({} if job.beta is None else {"beta": job.beta})


def measure(data: RegressionData, weights: NDArray[Any]) -> Record:
    """The losses of scikit-learn's Ridge trained with these weights of the rows; None if no row has a positive weight."""
    from sklearn.linear_model import Ridge

    used = weights > 0
    chosen: Record = {"selected": int(np.count_nonzero(weights >= 0.5)), "validation": None, "test": None, "rmse": None}
    if not used.any():
        return chosen
    share = weights[used].astype(np.float64)
    # scikit-learn's loss is a sum over the rows, the paper's a mean over all candidate rows: hence the factor m.
    model = Ridge(alpha=len(data.y) * ALPHA).fit(data.X[used], data.y[used], sample_weight=share)
    validation = 0.5 * float(np.mean((model.predict(data.X_val) - data.y_val) ** 2))
    test = 0.5 * float(np.mean((model.predict(data.X_test) - data.y_test) ** 2))
    return chosen | {"validation": validation, "test": test, "rmse": (2 * test) ** 0.5}


class PathMeasurements:
    """What is measured at the points along a run, for figures 3 to 6."""

    def __init__(self, problem: RidgeDistillation, data: RegressionData) -> None:
        self.problem, self.data = problem, data

    def penalized(self, event: Event) -> Record:
        """Measurements of the point itself, for penalize, which rounds nothing before it ends."""
        theta = event.theta
        return {
            "validation": event.value,
            "test": self._test(theta),
            "selected": int(np.count_nonzero(theta >= 0.5)),
            "integrality": float(np.max(np.minimum(theta, 1.0 - theta))),
            "distance": event.distance,
        }

    def relaxed(self, event: Event) -> Record:
        """Measurements of the point before and after both roundings, for the relaxation."""
        out = self.penalized(event)
        for name, rounded in (
            ("simple", self.problem.theta_set.round(event.theta)),
            ("top-k", self.problem.theta_set.vertex(event.theta)),
        ):
            empty = not rounded.any()
            value = None if empty else self.problem.evaluate(rounded.astype(np.float64), np.empty(0), gradient=False).value
            out[name] = {
                "selected": int(np.count_nonzero(rounded)),
                "validation": value,
                "test": None if empty else self._test(rounded.astype(np.float64)),
            }
        return out

    def _test(self, theta: NDArray[np.float64]) -> float:
        coef, intercept = self.problem.model(theta)
        missed = self.data.X_test @ coef + intercept - self.data.y_test
        return 0.5 * float(np.mean(missed**2))
