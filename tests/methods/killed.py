"""A run that is killed at one of its evaluations, or while it writes its checkpoint; started as a process by test_checkpoint.py.

python -m tests.methods.killed SOLVER CHECKPOINT EVALUATION|write:N
"""

import os
import signal
import sys

import numpy as np

import mixbin as mb
from mixbin.problem import Evaluation
from tests.instances import quadratic

PHASES = ("relax", "penalise", "lam", "polish")


class Terms:
    """A quadratic as a mean of 12 terms, which shift it by linear functions that add up to zero, with a warm state."""

    n_terms = 12

    def __init__(self, at_evaluation=lambda: None):
        self.inner = quadratic(mb.Budget(10, 3), 3, "convex", n_lam=1)
        self.theta_set, self.lam_set = self.inner.theta_set, self.inner.lam_set
        shifts = np.random.default_rng(0).normal(size=(self.n_terms, 10))
        self.shifts = 0.3 * (shifts - shifts.mean(0))
        self.at_evaluation = at_evaluation

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        self.at_evaluation()
        got = self.inner.evaluate(theta, lam)
        return Evaluation(got.value, got.grad_theta, got.grad_lam, {"last": theta.copy()}, {"lower_steps": 1.0})

    def evaluate_terms(self, theta, lam, terms, *, warm=None):
        self.at_evaluation()
        got, shift = self.inner.evaluate(theta, lam), self.shifts[terms].mean(0)
        return Evaluation(got.value + shift @ theta, got.grad_theta + shift, got.grad_lam, {"last": theta.copy()})


def run(solver, checkpoint=None, at_evaluation=lambda: None, **keywords):
    """The run of the tests: two starts, all phases."""
    settings = {
        "solver": solver,
        "starts": 2,
        "inner_steps": 3,
        "seed": 5,
        "checkpoint": checkpoint,
        "checkpoint_every": 0.0,
    } | keywords
    return mb.relax_and_penalize(Terms(at_evaluation), **settings)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def main(solver, checkpoint, moment):
    count = [0]
    if moment.startswith("write:"):
        last, replace = int(moment.removeprefix("write:")), os.replace

        def torn(source, target):
            count[0] += 1
            if count[0] == last:
                die()
            replace(source, target)

        os.replace = torn
        run(solver, checkpoint)
        return

    def at_evaluation():
        count[0] += 1
        if count[0] == int(moment):
            die()

    run(solver, checkpoint, at_evaluation)


if __name__ == "__main__":
    main(*sys.argv[1:])
