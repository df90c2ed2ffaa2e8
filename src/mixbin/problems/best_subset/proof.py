"""Prove a subset the best of all, or how far from it: branch and bound on the relaxed problem, with safe screening.

This file says what is proved; ``branching`` does the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixbin import _validate as check
from mixbin._html import html_table
from mixbin._numbers import readable
from mixbin._validate import Floats
from mixbin.errors import CheckpointMismatch
from mixbin.problem import Indices
from mixbin.problems.best_subset.branching import TOLERANCE, Branching
from mixbin.problems.best_subset.problem import BestSubset

MOST_FEATURES = 30
"""Features that a notebook shows."""


@dataclass
class Proof:
    """What is proved about a best subset so far; pass it to ``prove_best_subset`` again to go on.

    Attributes
    ----------
    theta : bool array of shape (p,)
        The best subset known.
    value : float
        Its G.
    lower_bound : float
        No subset has a lower G.
    gap : float
        (value - lower_bound) / value: how far below the value the best of all subsets can be.
    proved : bool
        Whether the gap is closed, up to 1e-9 of the value.
    n_nodes : int
        Relaxed problems solved.
    n_open : int
        Nodes still to be looked at; 0 if proved.
    seconds : float
        Time spent, over all calls.

    Examples
    --------
    >>> import numpy as np
    >>> import mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 6))
    >>> y = X @ [3.0, 0.0, 0.0, 2.0, 0.0, 0.0] + rng.normal(size=50)
    >>> proof = mb.prove_best_subset(mb.BestSubset(X, y, 2, gamma=1.0))
    >>> proof.proved, proof.theta
    (True, array([ True, False, False,  True, False, False]))
    """

    theta: NDArray[np.bool_]
    value: float
    lower_bound: float
    n_nodes: int = 0
    seconds: float = 0.0
    fingerprint: str = ""
    features: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """The features that the root's screening left; the columns of ``kinds`` and ``coefs``."""
    kinds: NDArray[np.int8] = field(default_factory=lambda: np.empty((0, 0), dtype=np.int8))
    """The open nodes, one per row: 1 for a feature that is in, -1 for one that is out, 0 for one to be decided."""
    bounds: Floats = field(default_factory=lambda: np.empty(0))
    """The lower bound of each open node."""
    coefs: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 1, 0), dtype=np.float32))
    """Coefficients of each open node's relaxed problem, from which those of its children start."""
    branch: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """The feature to branch on next in each open node; -1 if the node itself is to be solved first."""

    @property
    def gap(self) -> float:
        """(value - lower_bound) / value, and 0 once it is closed."""
        if self.proved or self.value <= 0:
            return 0.0
        return (self.value - self.lower_bound) / self.value

    @property
    def proved(self) -> bool:
        """Whether no subset can be lower by more than TOLERANCE of the value."""
        return self.lower_bound >= self.value - TOLERANCE * abs(self.value)

    @property
    def n_open(self) -> int:
        """The number of open nodes."""
        return len(self.bounds)

    def _repr_html_(self) -> str:
        """A short table, for notebooks."""
        facts = {
            "what is proved": str(self),
            "features": check.listed(np.flatnonzero(self.theta).tolist(), MOST_FEATURES),
            "value": readable(self.value, 6),
            "lower bound": readable(self.lower_bound, 6),
            "relaxed problems solved": f"{self.n_nodes:,}",
            "seconds": readable(self.seconds, 3),
        }
        return html_table("mixbin proof", facts)

    def __str__(self) -> str:
        """One sentence."""
        kept = int(self.theta.sum())
        if self.proved:
            return f"Proved: no other choice of {kept} features has a lower value than {self.value:.6g}."
        return (
            f"The value {self.value:.6g} is at most {100 * self.gap:.2g} % above the best choice of {kept} features; "
            f"{self.n_open} parts of the search are still open."
        )


def prove_best_subset(
    problem: BestSubset,
    theta: ArrayLike | None = None,
    *,
    proof: Proof | None = None,
    time_limit: float | None = None,
    max_nodes: int | None = None,
    seed: int = 0,
    callbacks: Sequence[Callable[[Proof], object]] = (),
) -> Proof:
    """Prove which subset is the best, by branch and bound; stop at a limit with the gap reached by then.

    Parameters
    ----------
    problem : BestSubset
        The problem.
    theta : bool array of shape (p,), optional
        A subset to begin with. By default, the search of the problem finds one.
    proof : Proof, optional
        What an earlier call returned for the same problem: the proof goes on from there.
    time_limit : float, optional
        Seconds for this call. By default, the proof goes on until it is complete.
    max_nodes : int, optional
        Relaxed problems to solve in this call.
    seed : int, default 0
        Seeds the search for a first subset.
    callbacks : sequence of callables
        Each is called with the ``Proof`` after every round of nodes, and may end the proof by returning True.

    Returns
    -------
    Proof
        Its ``theta`` is at least as good as the one passed in.

    Examples
    --------
    >>> import numpy as np, mixbin as mb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 30))
    >>> y = X[:, [3, 7, 20]] @ [2.0, -1.0, 1.0] + rng.normal(size=100)
    >>> proof = mb.prove_best_subset(mb.BestSubset(X, y, k=3, gamma=1.0))
    >>> np.flatnonzero(proof.theta), proof.proved
    (array([ 3,  7, 20]), True)
    """
    if not isinstance(problem, BestSubset):
        raise check.fail("problem", problem, "a BestSubset", "make one of X, y, k and gamma")
    limit = np.inf if time_limit is None else check.real("time_limit", time_limit, low=0, remedy="give seconds, or None")
    most = np.inf if max_nodes is None else check.whole("max_nodes", max_nodes, low=0)
    check.whole("seed", seed, low=0)
    if not (np.iterable(callbacks) and all(callable(it) for it in callbacks)):
        raise check.fail("callbacks", callbacks, "functions of a Proof", "pass a list of them")
    began = time.monotonic()
    if proof is None:
        proof = _first(problem, theta, seed)
    elif not isinstance(proof, Proof):
        raise check.fail("proof", proof, "a Proof", "pass what an earlier call returned")
    elif proof.fingerprint != problem.fingerprint():
        raise CheckpointMismatch("proof must belong to this problem, got one of other data or settings; start a new one")
    before, nodes = proof.seconds, proof.n_nodes
    branching = Branching(problem, proof)
    while not branching.finished():
        if time.monotonic() - began >= limit or proof.n_nodes - nodes >= most:
            break
        branching.round()
        proof.seconds = before + time.monotonic() - began
        if sum(callback(proof) is True for callback in callbacks):
            break
    proof.seconds = before + time.monotonic() - began
    return proof


def _first(problem: BestSubset, theta: ArrayLike | None, seed: int) -> Proof:
    """The proof before any node: a good subset, the bound of the relaxed problem, and the root, screened by that bound."""
    search, relaxed = problem.search(), problem.relaxed
    if theta is None:
        support = search.run(check.generator("seed", seed), relaxed.theta).support
    else:
        support = search.descend(problem.support_of(theta)).support
    kept = np.zeros(problem.n_features, dtype=np.bool_)
    kept[support] = True
    value = problem.evaluate(kept.astype(np.float64), np.empty(0), gradient=False).value
    proof = Proof(kept, value, min(relaxed.bound, value), fingerprint=problem.fingerprint())
    if proof.proved:
        return proof
    gains, k = problem.data_loss.gains(relaxed.residual), problem.choices.k
    order = np.sort(gains)[::-1]
    # A subset with feature j in has gains of at most the k - 1 largest and that of j. If even these leave a bound above the
    # value, no better subset has feature j.
    most = order[: k - 1].sum() + np.minimum(gains, order[k - 1])
    affordable = problem.data_loss.affordable(relaxed.residual, problem.cutoff(value, TOLERANCE))
    proof.features = np.flatnonzero((most > affordable) | kept)
    proof.kinds = np.zeros((1, proof.features.size), dtype=np.int8)
    proof.bounds = np.array([proof.lower_bound])
    proof.coefs = np.zeros((1, problem.data_loss.n_targets, proof.features.size), dtype=np.float32)
    proof.branch = np.array([-1])
    return proof
