"""Structures to search from next: from random ones, from clusterings, and by merging and splitting groups of the best answer.

See docs/maths.md, "Further starts". All three begin with rough groups and then anneal: in every round each feature goes to a
group drawn from softmax(gains / temperature), where the gains are those in the logarithm of the evidence, and the temperature
falls to 0.
"""

import numpy as np

from mixbin.data.tasks import Tasks
from mixbin.problems.group_lasso.start import Labels, clustered, evidence_and_gains, usage_similarity
from mixbin.problems.work import OutOfWork, Work

ROUNDS, SHORT_ROUNDS = 40, 15
"""Rounds of annealing from a random structure, and from groups that are partly right."""
HOT, WARM = 0.5, 0.2
"""The first temperature, as a share of the typical gain of a feature: from a random structure, and from groups partly right."""
STEPS = 5
"""Steps of fitting the variances in each round."""
SAMPLE, ALL_FROM = 120, 0.75
"""Until this share of the rounds is over, each round draws this many tasks and judges by them: the noise of the temperature is
larger than that of the draw. Then all tasks judge."""
PENALTY_SHARES = (0.01, 0.3)
"""Clusterings draw the strength of the l1 penalty from this range, uniformly in its logarithm."""
RANDOM, CLUSTERING = 0.5, 0.2
"""The shares of proposals that begin with a random structure and with a clustering; the others merge and split groups."""


def proposed(tasks: Tasks, best: Labels, n_groups: int, rng: np.random.Generator, n_jobs: int, work: Work) -> Labels:
    """The group of each feature in a structure that explains these rows well, other than ``best`` if possible."""
    kind = rng.random()
    if kind >= RANDOM:
        if kind >= RANDOM + CLUSTERING:
            rough = merged_and_split(best, n_groups, rng)
        else:
            share = float(np.exp(rng.uniform(*np.log(PENALTY_SHARES))))
            rough = clustered(usage_similarity(tasks, n_jobs, share), n_groups, int(rng.integers(2**31)))
        found = renamed(annealed(tasks, rough, n_groups, rng, WARM, SHORT_ROUNDS, n_jobs, work), best, n_groups)
        if not np.array_equal(found, best):
            return found
    rough = rng.integers(n_groups, size=len(best))
    return renamed(annealed(tasks, rough, n_groups, rng, HOT, ROUNDS, n_jobs, work), best, n_groups)


def annealed(
    tasks: Tasks,
    labels: Labels,
    n_groups: int,
    rng: np.random.Generator,
    temperature: float,
    rounds: int,
    n_jobs: int,
    work: Work,
) -> Labels:
    """The structure with the highest evidence that annealing meets on its way from ``labels``.

    The temperature is in units of the median over the features of how far the best gain is above the median gain, so that it
    means the same whatever the number of tasks and the noise. Annealing ends early when ``work`` allows no further round.
    """
    highest, best, known = -np.inf, labels, False
    for k in range(rounds):
        terms = rng.permutation(tasks.n_tasks)[:SAMPLE] if k < ALL_FROM * rounds and tasks.n_tasks > SAMPLE else None
        if not known:
            try:
                evidence, gains = evidence_and_gains(tasks, labels, n_groups, n_jobs, STEPS, True, work, terms)
            except OutOfWork:
                break
            if terms is not None:
                best = labels  # the evidence of a few tasks cannot be compared: the latest, in case the work ends here
            elif evidence > highest:
                highest, best = evidence, labels
            typical = float(np.median(gains.max(axis=1) - np.median(gains, axis=1)))
        noise = temperature * (1.0 - k / (rounds - 1)) * typical
        # The largest of the sums with Gumbel noise is a draw from the softmax.
        moved = np.argmax(gains + noise * rng.gumbel(size=gains.shape), axis=1)
        # The gains of the same labels by the same tasks are known.
        known = terms is None and np.array_equal(moved, labels)
        if known and noise == 0.0:
            break
        labels = moved
    return best


def merged_and_split(labels: Labels, n_groups: int, rng: np.random.Generator) -> Labels:
    """The groups after two of them are merged, and one is split at random into the group that this leaves empty.

    If a group is empty already, none are merged. Large groups are split more often; the merged one may be split again.
    """
    sizes = np.bincount(labels, minlength=n_groups)
    free = int(np.argmin(sizes))
    labels = labels.copy()
    if sizes[free]:
        free, other = rng.choice(n_groups, size=2, replace=False)
        labels[labels == free] = other
        sizes = np.bincount(labels, minlength=n_groups)
    members = np.flatnonzero(labels == rng.choice(n_groups, p=sizes / sizes.sum()))
    labels[members[rng.random(members.size) < 0.5]] = free
    return labels


def renamed(labels: Labels, best: Labels, n_groups: int) -> Labels:
    """The same groups with the numbers under which most of their features are in ``best``, so that equal structures are equal."""
    from scipy.optimize import linear_sum_assignment

    shared = np.zeros((n_groups, n_groups))
    np.add.at(shared, (labels, best), 1.0)
    return np.asarray(linear_sum_assignment(shared, maximize=True)[1][labels])
