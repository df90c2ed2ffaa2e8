"""FunctionProblem and the wrapper that counts, checks and says where things went wrong."""

import numpy as np
import pytest

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.problem import Evaluation, FastMoves, FiniteSum, Problem
from tests.instances import quadratic

EMPTY = np.empty(0)


def failing_at(call, answer):
    """A linear problem on Budget(4, 2) whose answer at evaluation number ``call`` is replaced."""
    calls = []

    def G(theta):
        calls.append(1)
        return answer() if len(calls) == call else (float(theta[0]), np.eye(4)[0])

    problem = mb.FunctionProblem(G, mb.Budget(4, 2))
    problem.check_first_gradient = False  # its evaluations would be counted by G
    return problem


def boom():
    raise KeyError("the user's own")


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (lambda: (np.nan, np.zeros(4)), mb.DivergedError, "value is nan"),
        (lambda: (-np.inf, np.zeros(4)), mb.DivergedError, "value is -inf"),
        (lambda: (0.0, np.array([0, np.nan, 0, 0])), mb.DivergedError, "grad_theta is nan at index (1,)"),
        (lambda: (0.0, np.array([0, 0, -np.inf, 0])), mb.DivergedError, "grad_theta is -inf at index (2,)"),
        (lambda: (0.0, np.zeros(3)), mb.InvalidInput, "grad_theta must have shape (4,), got (3,)"),
        (lambda: (0.0, "steep"), mb.InvalidInput, "grad_theta must be an array of real numbers"),
        (lambda: (0.0, None), mb.InvalidInput, "grad_theta must have shape (4,)"),
        (lambda: ("low", np.zeros(4)), mb.InvalidInput, "value must be one number"),
        (lambda: (np.zeros(2), np.zeros(4)), mb.InvalidInput, "value must be one number"),
        (lambda: 1.0, mb.InvalidInput, "a tuple (value, grad_theta)"),
    ],
)
def test_bad_answers_name_what_and_where(answer, error, text):
    with pytest.raises(error) as caught:
        mb.relax_and_penalize(failing_at(3, answer), seed=0, relax_first=False)
    told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert text in told
    assert "evaluation 3" in told
    assert "start 0, penalise, outer iteration" in told


def test_the_users_own_error_keeps_its_type_and_gains_a_place():
    with pytest.raises(KeyError, match="the user's own") as caught:
        mb.relax_and_penalize(failing_at(2, boom), seed=0)
    assert caught.value.__notes__ == ["mixbin: raised in evaluation 2 (start 0, relax, step 1)"]


def test_a_wrong_lam_gradient_is_named():
    problem = mb.FunctionProblem(lambda theta, lam: (0.0, np.zeros(3), np.zeros(5)), mb.Hypercube(3), mb.Box([0.0], [1.0]))
    with pytest.raises(mb.InvalidInput, match=r"grad_lam must have shape \(1,\), got \(5,\)"):
        mb.relax_and_penalize(problem, seed=0)


def test_an_answer_that_is_no_evaluation():
    class Wrong:
        theta_set, lam_set = mb.Hypercube(2), mb.Box.empty()

        def evaluate(self, theta, lam, *, warm=None, gradient=True):
            return 1.0

    with pytest.raises(mb.InvalidInput, match="evaluate must return an Evaluation"):
        mb.relax_and_penalize(Wrong(), seed=0)


def test_counts_and_protects_its_arguments():
    def greedy(theta):
        theta[0] = 7.0
        return 0.0, np.zeros(3)

    checked = CheckedProblem(mb.FunctionProblem(greedy, mb.Hypercube(3)))
    theta = np.full(3, 0.5)
    with pytest.raises(ValueError, match="read-only"):
        checked.evaluate(theta, EMPTY)
    assert theta[0] == 0.5
    assert checked.n_evaluations == 1


def test_value_only_function_is_used_without_gradient():
    problem = mb.FunctionProblem(lambda theta: (1.0, theta), mb.Hypercube(3), value=lambda theta: 2.0)
    assert problem.evaluate(np.zeros(3), EMPTY).value == 1.0
    got = problem.evaluate(np.zeros(3), EMPTY, gradient=False)
    assert got.value == 2.0
    assert got.grad_theta is None


def test_protocols_tell_what_a_problem_offers():
    problem = quadratic(mb.Budget(4, 2), 0)
    assert isinstance(problem, Problem)
    assert not isinstance(problem, FiniteSum)
    assert not isinstance(problem, FastMoves)
    assert Evaluation(1.0, None, None).warm == {}
