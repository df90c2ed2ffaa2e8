"""A first structure from the data: clusters of features that the tasks' l1 models use together, corrected by evidence.

See docs/maths.md, "A start from the data".
"""

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.data.tasks import Tasks
from mixbin.problems.work import Work

Labels = NDArray[np.int64]

MOST_ROUNDS = 20
"""The largest number of rounds of moves, for each entry of VARIANCE_STEPS."""
LEAST_GAIN = 1e-6
"""A feature moves only if that raises the logarithm of the evidence by more than this."""


def structure_of(train: Tasks, n_groups: int, seed: int, n_jobs: int) -> Labels:
    """The group of each feature: found by spectral clustering, then corrected by the evidence of the training rows."""
    return by_evidence(train, clustered(usage_similarity(train, n_jobs), n_groups, seed), n_groups, n_jobs)


def by_evidence(tasks: Tasks, labels: Labels, n_groups: int, n_jobs: int) -> Labels:
    """The labels after rounds in which every feature moves to the group that raises the evidence of these rows most."""
    from mixbin.problems.group_lasso.evidence import VARIANCE_STEPS

    for steps in VARIANCE_STEPS:
        for _ in range(MOST_ROUNDS):
            gains = move_gains(tasks, labels, n_groups, n_jobs, steps)
            better = gains.argmax(axis=1)
            moved = (gains.max(axis=1) > LEAST_GAIN) & (better != labels)
            if not moved.any():
                break
            labels = np.where(moved, better, labels)
    return labels


def fit_l1_models(tasks: Tasks, penalty_share: float, W: Floats, n_jobs: int) -> None:
    """Set ``W`` to the l1 models of all tasks (see ``lasso``), from those that it holds."""
    from mixbin.problems.group_lasso.lasso import lasso_models
    from mixbin.problems.group_lasso.lower import in_blocks

    X, y, starts = tasks
    in_blocks(lambda part: lasso_models(X, y, starts[part.start : part.stop + 1], penalty_share, W[part]), len(W), n_jobs)


def usage_similarity(train: Tasks, n_jobs: int, penalty_share: float | None = None) -> Floats:
    """The correlation of |w_p| and |w_q| over the tasks' l1 models, of shape (P, P); 0 for a feature that no task uses.

    ``penalty_share`` is the strength of their penalty, PENALTY_SHARE unless given.
    """
    from mixbin.problems.group_lasso.lasso import PENALTY_SHARE

    W = np.zeros((train.n_tasks, train.n_features))
    fit_l1_models(train, PENALTY_SHARE if penalty_share is None else penalty_share, W, n_jobs)
    sizes = np.abs(W)
    if not 1e-100 < sizes.max() < 1e100:  # the squares would vanish or overflow
        sizes /= sizes.max() or 1.0
    sizes -= sizes.mean(axis=0)
    norms = np.linalg.norm(sizes, axis=0)
    sizes /= np.where(norms > 0, norms, 1.0)
    return np.asarray(sizes.T @ sizes)


def clustered(similarity: Floats, n_groups: int, seed: int) -> Labels:
    """Labels by spectral clustering; features without a positive correlation to any other are spread over the groups."""
    from sklearn.cluster import SpectralClustering

    affinity = np.maximum(similarity, 0.0)
    alone = affinity.sum(axis=1) <= affinity.diagonal()
    labels = np.arange(len(affinity), dtype=np.int64) % n_groups
    used = np.flatnonzero(~alone)
    if used.size > n_groups:
        # A small similarity between all features keeps the graph connected, which the spectral embedding needs.
        part = affinity[np.ix_(used, used)] + 1e-6
        method = SpectralClustering(n_groups, affinity="precomputed", random_state=seed)
        labels[used] = method.fit_predict(part)
    return labels


def move_gains(
    tasks: Tasks, labels: Labels, n_groups: int, n_jobs: int, steps: int | None = None, work: Work | None = None
) -> Floats:
    """The gain of each row move in the logarithm of the evidence (see ``evidence``), of shape (P, L); 0 for staying."""
    from mixbin.problems.group_lasso.evidence import VARIANCE_STEPS

    n_steps = VARIANCE_STEPS[-1] if steps is None else steps
    return evidence_and_gains(tasks, labels, n_groups, n_jobs, n_steps, False, work)[1]


def log_evidence_of(tasks: Tasks, labels: Labels, n_jobs: int) -> float:
    """The logarithm of the evidence of these groups, up to a constant, with variances fitted as closely as moves fit them."""
    from mixbin.problems.group_lasso.evidence import VARIANCE_STEPS

    return evidence_and_gains(tasks, labels, int(labels.max()) + 1, n_jobs, VARIANCE_STEPS[-1], False, None)[0]


def evidence_and_gains(
    tasks: Tasks,
    labels: Labels,
    n_groups: int,
    n_jobs: int,
    steps: int,
    by_others: bool,
    work: Work | None,
    terms: Labels | None = None,
) -> tuple[float, Floats]:
    """The logarithm of the evidence of the tasks ``terms`` (None: all), up to a constant, and its gain by each row move.

    With ``by_others`` each feature is judged by the other features of its group (see ``evidence``).
    """
    from mixbin.problems.group_lasso.evidence import evidence_gains, gains_work
    from mixbin.problems.group_lasso.lower import in_blocks, summed

    which = np.arange(tasks.n_tasks) if terms is None else terms
    if work is not None:
        work.add(gains_work(tasks.sizes[which], len(labels), n_groups, steps))

    def block(part: slice) -> tuple[float, Floats]:
        gains = np.zeros((len(labels), n_groups))
        return evidence_gains(*tasks, which[part], labels, steps, by_others, gains), gains

    values, gains = zip(*in_blocks(block, len(which), n_jobs), strict=True)
    return float(sum(values)), summed(list(gains))
