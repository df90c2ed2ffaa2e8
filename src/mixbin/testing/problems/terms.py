"""What a finite sum promises: its terms average to the whole."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mixbin.problem import Evaluation, Indices
from mixbin.testing.problems.evaluations import Evaluations, close

MOST_PARTS = 20
"""Up to this many terms are evaluated one by one; more are split into this many batches."""


def check_terms(at: Evaluations, tol: float) -> None:
    """The mean of value and gradients over all terms is what ``evaluate`` returns, and batches are means of their terms."""
    n_terms: Any = at.problem.n_terms  # type: ignore[attr-defined]
    whole = isinstance(n_terms, (int, np.integer)) and not isinstance(n_terms, bool) and n_terms >= 1
    at.subject.require(whole, "n_terms", "must be a whole number of at least 1", {}, "an int", n_terms)
    theta, lam = at.inside()
    batches = [part for part in np.array_split(at.rng.permutation(n_terms), min(n_terms, MOST_PARTS)) if part.size]
    inputs = {"theta": theta, "lam": lam}
    parts = [_terms(at, inputs, batch) for batch in batches]
    promise = "must average to evaluate over all terms"
    _compare(at, promise, inputs, at.at(theta, lam), _mean(parts, batches), tol)
    again = _terms(at, inputs, batches[0])
    same = again.value == parts[0].value and np.array_equal(np.asarray(again.grad_theta), np.asarray(parts[0].grad_theta))
    promise = "must return the same bits for the same arguments"
    at.subject.require(same, "evaluate_terms", promise, {**inputs, "terms": batches[0]}, parts[0].value, again.value)
    if len(batches) > 1:
        both = np.concatenate(batches[:2])
        promise = "must return the mean over the terms that it is given"
        _compare(at, promise, {**inputs, "terms": both}, _mean(parts[:2], batches[:2]), _terms(at, inputs, both), tol)


def _terms(at: Evaluations, inputs: Mapping[str, Any], terms: Indices) -> Evaluation:
    asked = {**inputs, "terms": terms}
    return at.checked("evaluate_terms", at.subject.call("evaluate_terms", asked), asked)


def _mean(parts: list[Evaluation], batches: list[Indices]) -> Evaluation:
    """The mean of evaluations over batches, each with the share of its terms."""
    shares = np.array([batch.size for batch in batches]) / sum(batch.size for batch in batches)
    value, grad_theta, grad_lam = (
        np.tensordot(shares, np.array([getattr(part, name) for part in parts]), axes=1)
        for name in ("value", "grad_theta", "grad_lam")
    )
    return Evaluation(float(value), grad_theta, grad_lam)


def _compare(at: Evaluations, promise: str, inputs: Mapping[str, Any], expected: Evaluation, got: Evaluation, tol: float) -> None:
    same = close(float(expected.value), float(got.value), tol)
    at.subject.require(same, "evaluate_terms", promise, inputs, float(expected.value), float(got.value))
    for name in ("grad_theta", "grad_lam"):
        here, there = np.asarray(getattr(expected, name)), np.asarray(getattr(got, name))
        same = bool(np.abs(here - there).max(initial=0.0) <= tol * max(float(np.abs(here).max(initial=0.0)), 1e-300))
        at.subject.require(same, "evaluate_terms", f"{promise}; {name} differs", inputs, here, there)
