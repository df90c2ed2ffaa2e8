"""Every problem of the package through the suite for strangers' problems."""

import numpy as np
import pytest
from scipy import sparse

import mixbin as mb
from mixbin.testing import check_problem
from tests.instances import finite_sum, quadratic
from tests.problems.test_group_lasso import make_data as make_tasks
from tests.problems.test_ridge import make_data
from tests.problems.test_softmax import make_data as make_classes


def ridge(targets=None, **settings):
    return mb.RidgeDistillation(*make_data(targets), **{"budget": 8} | settings)


def sparse_ridge():
    X, y, X_val, y_val = make_data()
    tables = (sparse.csr_array(np.where(np.abs(A - A.mean(axis=0)) > A.std(axis=0), A, 0.0)) for A in (X, X_val))
    X, X_val = tables
    return mb.RidgeDistillation(X, y, X_val, y_val, budget=8)


def groups(**settings):
    return mb.GroupLassoStructure(*make_tasks(), **{"n_groups": 3, "ridge": 0.05} | settings)


PROBLEMS = {
    "a quadratic": lambda: quadratic(mb.Budget(8, 3), 0, n_lam=2),
    "a quadratic on one-hot rows": lambda: quadratic(mb.OneHot(3, 4), 1),
    "a finite sum": lambda: finite_sum(mb.Knapsack([1.0, 2.0, 3.0, 1.5], 4.0), 2, n_lam=1, n_terms=30),
    "ridge": ridge,
    "ridge, alpha fixed": lambda: ridge(alpha=0.3),
    "ridge, three targets": lambda: ridge(3, alpha=(1e-3, 10.0)),
    "ridge, one row": lambda: ridge(budget=1, alpha=0.1),
    "ridge, all rows": lambda: ridge(budget=40, alpha=0.1),
    "ridge, in blocks": lambda: ridge(chunks=(15, 20, 5)),
    "ridge, sparse": sparse_ridge,
    "softmax": lambda: mb.SoftmaxDistillation(*make_classes(), budget=12),
    "softmax, no budget": lambda: mb.SoftmaxDistillation(
        *make_classes(2), alpha=0.05, judge_loss="cross-entropy", temperature=3.0
    ),
    "groups": groups,
    "groups, lam fixed": lambda: groups(lam_bounds=0.05),
    "groups, unrolled": lambda: groups(lower="unrolled", q=30),
}


QUICK = [name for name in PROBLEMS if name not in ("groups, lam fixed", "groups, unrolled", "ridge, sparse")]


@pytest.mark.parametrize("name", QUICK)
def test_every_promise(name):
    check_problem(PROBLEMS[name](), gradient_tol=1e-5, trials=1)


@pytest.mark.ci
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_promise_at_more_points(name):
    check_problem(PROBLEMS[name](), gradient_tol=1e-5, seed=1, trials=5)


def test_a_gradient_that_is_not_one():
    """The published gradient is an estimate; the rest holds."""
    problem = mb.PublishedGradient(ridge(alpha=0.3), batch=9)
    check_problem(problem, gradient_tol=None)
    with pytest.raises(AssertionError, match="must return the gradient of its value as grad_theta"):
        check_problem(problem)


def test_fingerprints_differ():
    made = [make() for make in PROBLEMS.values() if hasattr(make(), "fingerprint")]
    for i, problem in enumerate(made):
        assert problem.fingerprint() not in {other.fingerprint() for other in made[:i]}
