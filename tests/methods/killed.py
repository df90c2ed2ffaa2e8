"""Runs that are killed at one of their evaluations, or while they write their checkpoint; a process of test_checkpoint.py.

python -m tests.methods.killed

reads lines "PROBLEM SOLVER CHECKPOINT EVALUATION|write:N" and answers each with how a process that ran it has ended. The
processes are forks, so that what takes longest, importing the libraries, is done once.
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


def function_problem(at_evaluation=lambda: None):
    """A user's own function, without a fingerprint."""
    inner = quadratic(mb.Knapsack(np.linspace(1.0, 3.0, 12), 7.0), 4, "indefinite", n_lam=1)

    def function(theta, lam):
        at_evaluation()
        got = inner.evaluate(theta, lam)
        return got.value, got.grad_theta, got.grad_lam

    return mb.FunctionProblem(function, inner.theta_set, inner.lam_set)


PROBLEMS = {"terms": Terms, "function": function_problem}


def run(solver, checkpoint=None, at_evaluation=lambda: None, problem="terms", **keywords):
    """The run of the tests: two starts, all phases. The terms follow paths only, which have these phases."""
    settings = {
        "search": "path" if problem == "terms" else "portfolio",
        "solver": solver,
        "starts": 2,
        "inner_steps": 3,
        "seed": 5,
        "checkpoint": checkpoint,
        "checkpoint_every": 0.0,
    } | keywords
    return mb.relax_and_penalize(PROBLEMS[problem](at_evaluation), **settings)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def run_until(problem, solver, checkpoint, moment):
    """The run, killed at that moment."""
    count = [0]
    if moment.startswith("write:"):
        last, replace = int(moment.removeprefix("write:")), os.replace

        def torn(source, target):
            count[0] += 1
            if count[0] == last:
                die()
            replace(source, target)

        os.replace = torn
        run(solver, checkpoint, problem=problem)
        return

    def at_evaluation():
        count[0] += 1
        if count[0] == int(moment):
            die()

    run(solver, checkpoint, at_evaluation, problem)


def serve():
    # A kill loses nothing that the system has taken; waiting for the disk is for power cuts, and most of the time of these runs.
    os.fsync = lambda handle: None
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                run_until(*line.rstrip("\n").split("\t"))
            finally:
                os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
