"""The best relaxed theta for given coefficients, and the proximal step that follows from it.

The relaxed penalty min over theta of g/2 sum_j w_j^2 / theta_j, with sum theta = k, is the squared k-support norm of Argyriou,
Foygel and Srebro (2012). Its proximal step from u is w = u theta / (theta + beta) with theta_j = clip(c |u_j| - beta, 0, 1),
where beta is the step size times g, and c is such that the entries of theta sum to k. The sum grows with c, piecewise linearly.
In groups of which at most q may be kept, a group whose entries would sum to more has a smaller c of its own, at which they sum
to q.
"""

import numpy as np
from numpy.typing import NDArray

from mixbin._validate import Floats

STEPS = 60
"""Newton's method on a piecewise linear function ends after a few steps; bisection takes over where it leaves the bracket."""
CLOSE = 1e-10
NEGLIGIBLE = 1e-100
"""Entries below this share of the largest one count as 0."""


def relaxed_weights(
    size: Floats,
    beta: float,
    k: NDArray[np.intp],
    c: Floats,
    groups: Floats | None = None,
    caps: Floats | None = None,
) -> tuple[Floats, Floats]:
    """theta for each row of ``size`` = |u|, and c.

    Parameters
    ----------
    size : array of shape (rows, p)
        |u|, with zeros where theta must be 0.
    beta : float
        The step size times g.
    k : array of shape (rows,)
        The sum of theta in each row.
    c : array of shape (rows,)
        A first guess, such as the c of a row nearby.
    groups : array of shape (p, n_groups), optional
        1 where a feature belongs to a group.
    caps : array of shape (rows, n_groups), optional
        The most that the entries of each group may sum to.
    """
    # Entries that are 0 but for rounding never gain weight; with them, the largest c would overflow.
    positive = size > NEGLIGIBLE * size.max(axis=1, keepdims=True, initial=0.0)
    smallest = np.where(positive, size, np.inf).min(axis=1, initial=np.inf)
    high = np.where(np.isfinite(smallest), (1.0 + beta) / np.where(np.isfinite(smallest), smallest, 1.0), 1.0)
    low, c = np.zeros(len(size)), np.clip(c, 0.0, high)
    for _ in range(STEPS):
        theta = np.clip(c[:, None] * size - beta, 0.0, 1.0)
        inner = (theta > 0) & (theta < 1)
        if groups is None or caps is None:
            total, slope = theta.sum(axis=1), np.where(inner, size, 0.0).sum(axis=1)
        else:
            sums = theta @ groups
            capped = sums >= caps
            total = np.minimum(sums, caps).sum(axis=1)
            slope = np.where(capped, 0.0, np.where(inner, size, 0.0) @ groups).sum(axis=1)
        miss = total - k
        low, high = np.where(miss < 0, c, low), np.where(miss > 0, c, high)
        # A row with fewer than k positive entries ends at its largest c, at which all of them are 1.
        done = (np.abs(miss) <= CLOSE * np.maximum(k, 1)) | (high - low <= 1e-15 * high)
        if done.all():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = c - miss / slope
        inside = (newton > low) & (newton < high) & (slope > 0)
        c = np.where(done, c, np.where(inside, newton, 0.5 * (low + high)))
    if groups is not None and caps is not None:
        theta = _within_caps(size, beta, theta, groups, caps)
    return theta, c


def _within_caps(size: Floats, beta: float, theta: Floats, groups: Floats, caps: Floats) -> Floats:
    """theta with the groups that exceed their caps brought down to them, each by a c of its own."""
    sums = theta @ groups
    over = sums > caps + CLOSE
    if not over.any():
        return theta
    positive = size > NEGLIGIBLE * size.max(axis=1, keepdims=True, initial=0.0)
    least = np.where(positive, size, np.inf).min(axis=1, initial=np.inf, keepdims=True)
    low, high = np.zeros_like(caps), np.broadcast_to((1.0 + beta) / np.where(np.isfinite(least), least, 1.0), caps.shape).copy()
    for _ in range(STEPS):
        c = 0.5 * (low + high)
        much = np.clip((c @ groups.T) * size - beta, 0.0, 1.0) @ groups > caps
        low, high = np.where(much, low, c), np.where(much, c, high)
    tight = np.clip((low @ groups.T) * size - beta, 0.0, 1.0)
    return np.asarray(np.where((over @ groups.T) > 0, tight, theta))
