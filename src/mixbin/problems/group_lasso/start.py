"""A structure from the training data alone (SPEC section 4): features that l1 models use together, corrected by evidence."""

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats
from mixbin.problems.group_lasso.tasks import Tasks

Labels = NDArray[np.int64]

ROUNDS = 20
"""Of moves by the evidence, at most."""
GAIN = 1e-6
"""A move must gain more than this, in the logarithm of the evidence."""


def structure_of(train: Tasks, n_groups: int, seed: int) -> Labels:
    """The group of each feature: spectral clustering, then all features to the groups that explain the data best."""
    labels = clustered(usage_similarity(train), n_groups, seed)
    for _ in range(ROUNDS):
        gains = move_gains(train, labels, n_groups)
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


def move_gains(train: Tasks, labels: Labels, n_groups: int) -> Floats:
    """What each row move gains in the logarithm of the evidence (see ``evidence``); 0 for staying."""
    from mixbin.problems.group_lasso.evidence import evidence_gains

    gains = np.zeros((len(labels), n_groups))
    evidence_gains(*train, labels, gains)
    return gains
