"""A structure from the data (SPEC section 4): features that the l1 models of the tasks use together, corrected by evidence."""

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.problems.group_lasso.tasks import Tasks
from mixbin.problems.work import Work

Labels = NDArray[np.int64]

ROUNDS = 20
"""Of moves by the evidence, at most, for each number of steps."""
GAIN = 1e-6
"""A move must gain more than this, in the logarithm of the evidence."""


def structure_of(train: Tasks, n_groups: int, seed: int, n_jobs: int) -> Labels:
    """The group of each feature: spectral clustering, then all features to the groups that explain the data best."""
    return by_evidence(train, clustered(usage_similarity(train), n_groups, seed), n_groups, n_jobs)


def by_evidence(tasks: Tasks, labels: Labels, n_groups: int, n_jobs: int) -> Labels:
    """Labels after rounds of moves, all features at once, that the evidence of these rows is for."""
    from mixbin.problems.group_lasso.evidence import STEPS

    for steps in STEPS:
        for _ in range(ROUNDS):
            gains = move_gains(tasks, labels, n_groups, n_jobs, steps)
            better = gains.argmax(axis=1)
            moved = (gains.max(axis=1) > GAIN) & (better != labels)
            if not moved.any():
                break
            labels = np.where(moved, better, labels)
    return labels


def usage_similarity(train: Tasks) -> Floats:
    """The correlation over tasks of the sizes of the features' coefficients, of shape (P, P); 0 where a feature is never used."""
    from mixbin.problems.group_lasso.lasso import SHARE, lasso_models

    W = np.empty((train.n_tasks, train.n_features))
    lasso_models(*train, SHARE, W)
    sizes = np.abs(W)
    if not 1e-100 < sizes.max() < 1e100:  # whose squares would vanish or overflow
        sizes /= sizes.max() or 1.0
    sizes -= sizes.mean(axis=0)
    norms = np.linalg.norm(sizes, axis=0)
    sizes /= np.where(norms > 0, norms, 1.0)
    return np.asarray(sizes.T @ sizes)


def clustered(similarity: Floats, n_groups: int, seed: int) -> Labels:
    """Labels by spectral clustering; features that are like no other are spread over the groups."""
    from sklearn.cluster import SpectralClustering

    affinity = np.maximum(similarity, 0.0)
    alone = affinity.sum(axis=1) <= affinity.diagonal()
    labels = np.arange(len(affinity), dtype=np.int64) % n_groups
    used = np.flatnonzero(~alone)
    if used.size > n_groups:
        # A little of everything keeps the graph in one piece, which the embedding asks for.
        part = affinity[np.ix_(used, used)] + 1e-6
        method = SpectralClustering(n_groups, affinity="precomputed", random_state=seed)
        labels[used] = method.fit_predict(part)
    return labels


def move_gains(
    tasks: Tasks, labels: Labels, n_groups: int, n_jobs: int, steps: int | None = None, work: Work | None = None
) -> Floats:
    """What each row move gains in the logarithm of the evidence (see ``evidence``); 0 for staying."""
    from mixbin.problems.group_lasso.evidence import STEPS, evidence_gains, gains_work
    from mixbin.problems.group_lasso.lower import in_blocks, summed

    n_steps = STEPS[-1] if steps is None else steps
    if work is not None:
        work.add(sum(gains_work(int(n), len(labels), n_groups, n_steps) for n in np.diff(tasks.starts)))

    def block(part: slice) -> Floats:
        gains = np.zeros((len(labels), n_groups))
        last = min(part.stop, tasks.n_tasks)
        evidence_gains(*tasks, part.start, last, labels, n_steps, gains)
        return gains

    return summed(in_blocks(block, tasks.n_tasks, n_jobs))
