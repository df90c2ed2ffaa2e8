"""What a problem offers is looked up once and checked; preferences are stated, and shown in the result."""

import json

import numpy as np
import pytest

import mixbin as mb
from mixbin.checked_problem import CheckedProblem
from mixbin.problem import Capabilities, Improved
from tests.instances import finite_sum, quadratic

NO_LAM = np.empty(0)


class Stranger:
    """A quadratic that somebody else has written, without any offer."""

    def __init__(self, theta_set=None, seed=0):
        self.inner = quadratic(theta_set or mb.Budget(12, 4), seed)
        self.theta_set, self.lam_set = self.inner.theta_set, self.inner.lam_set

    def evaluate(self, theta, lam, *, warm=None, gradient=True):
        return self.inner.evaluate(theta, lam)


class Searching(Stranger):
    """Finds the best of all exchanges itself, at the cost of five evaluations."""

    cost = 5

    def evaluate_moves(self, theta, lam, off, on, *, warm=None):
        after = np.tile(theta.ravel(), (off.size, 1))
        rows = np.arange(off.size)
        after[rows, off], after[rows, on] = 0.0, 1.0
        return np.array([self.inner.evaluate(x.reshape(theta.shape), lam).value for x in after])

    def best_move(self, theta, lam, *, warm=None):
        off, on = (np.concatenate(side) for side in zip(*self.theta_set.moves(theta), strict=True))
        values = self.evaluate_moves(theta, lam, off, on)
        k = int(values.argmin())
        return int(off[k]), int(on[k]), float(values[k])

    def improve(self, theta, lam, *, warm=None):
        off, on, value = self.best_move(theta, lam)
        here, after = self.inner.evaluate(theta, lam).value, theta > 0.5
        if value < here - 1e-9:
            after[off], after[on] = False, True
            return Improved(after, cost=self.cost)
        return Improved(after, self.theta_set.n_moves(after), value - here, self.cost)


class Suggesting(Stranger):
    def suggest(self, rng):
        return self.theta_set.start()


def with_attributes(base=Stranger, **attributes):
    return type("Offering", (base,), attributes)()


def method(self, *args, **keywords):
    raise AssertionError("only looked up, never called")


def test_a_plain_problem_offers_nothing():
    assert Capabilities.of(Stranger()) == Capabilities()
    assert CheckedProblem(Stranger()).n_terms is None


def test_offers_are_found():
    searching = Searching()
    offers = CheckedProblem(searching).offers
    assert offers.search is offers.moves is searching
    assert not offers.search_takes_limit
    assert offers.terms is offers.start is offers.bound is offers.fingerprint is None
    terms = CheckedProblem(finite_sum(mb.Budget(4, 2), 0, n_terms=3))
    assert (terms.n_terms, terms.offers.terms.n_terms) == (3, 3)
    assert CheckedProblem(Suggesting()).offers.start is not None


def test_the_offers_of_our_own_problems():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    ridge = mb.RidgeDistillation(X, y, X, y, budget=5, alpha=0.1)
    offers = CheckedProblem(ridge).offers
    assert offers.search is offers.moves is offers.bound is ridge
    assert offers.search_takes_limit
    assert offers.fingerprint() == ridge.fingerprint()
    assert dict(offers.preferred_settings) == {"inner_steps": 5}
    softmax = CheckedProblem(mb.SoftmaxDistillation(X, y > 0, X, y > 0)).offers
    assert dict(softmax.preferred_settings) == {"starts": 1}
    assert softmax.start is not None
    assert softmax.search is None
    groups = mb.GroupLassoStructure(*(rng.normal(size=shape) for shape in 2 * ((4, 6, 4), (4, 6))), n_groups=2)
    offers = CheckedProblem(groups).offers
    assert offers.terms is offers.search is offers.start is groups
    assert dict(offers.preferred_settings) == {"inner_steps": 5, "starts": 1, "portfolio_starts": 3}
    # The value of the wrapper is that of its problem, its gradient is not: it hands on what it names itself.
    published = CheckedProblem(mb.PublishedGradient(ridge, batch=5)).offers
    assert published.fingerprint is not None
    assert published.search is published.moves is published.bound is None
    assert not published.preferred_settings


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"lower_bound": 3.0}, r"^problem\.lower_bound must be a method .*Bounded.*got 3\.0"),
        ({"suggest": [0.5]}, r"^problem\.suggest must be a method .*Suggests"),
        ({"fingerprint": "abc"}, r"^problem\.fingerprint must be a method"),
        ({"evaluate_moves": True}, r"^problem\.evaluate_moves must be a method"),
        ({"n_terms": 3}, r"^problem must be a whole FiniteSum, .*it lacks evaluate_terms"),
        ({"evaluate_terms": method}, r"^problem must be a whole FiniteSum, .*it lacks n_terms"),
        ({"evaluate_terms": method, "n_terms": 2.5}, r"^problem\.n_terms must be a whole number"),
        ({"evaluate_terms": method, "n_terms": 0}, r"^problem\.n_terms must be a whole number of at least 1"),
        ({"improve": method}, r"^problem must be a whole LocalSearch, .*it lacks best_move"),
        ({"best_move": method, "evaluate_moves": method}, r"^problem must be a whole LocalSearch, .*it lacks improve"),
        ({"best_move": method, "improve": method}, r"^problem must be a whole LocalSearch, .*it lacks evaluate_moves"),
        ({"preferred_settings": {"tol": 0.1}}, r"^problem\.preferred_settings must be a mapping .*, starts and portfolio_starts"),
        ({"preferred_settings": 5}, r"^problem\.preferred_settings must be a mapping"),
        ({"preferred_settings": {"starts": 0}}, r"^problem\.preferred_settings\['starts'\] must be a whole number"),
        ({"preferred_settings": {"inner_steps": "few"}}, r"^problem\.preferred_settings\['inner_steps'\] must be"),
    ],
)
def test_an_offer_that_cannot_be_used_is_refused(attributes, text):
    problem = with_attributes(**attributes)
    for call in (mb.relax_and_penalize, mb.relax_and_round, mb.enumerate_binary):
        with pytest.raises(mb.InvalidInput, match=text):
            call(problem)
    with pytest.raises(mb.InvalidInput, match=text):
        mb.certify(problem, np.arange(12) < 4)


def test_what_is_none_is_not_offered():
    names = ("lower_bound", "suggest", "fingerprint", "evaluate_moves", "improve", "n_terms", "preferred_settings")
    assert Capabilities.of(with_attributes(**dict.fromkeys(names))) == Capabilities()


# Preferences.


def used(problem, **keywords):
    result = mb.relax_and_penalize(problem, seed=0, search="path", **keywords)
    settings = result.settings
    assert result.trace.column("start").max() == settings["starts"] - 1
    frame = result.trace.to_frame()
    assert frame[frame["phase"] == "penalise"]["inner"].max() <= settings["inner_steps"]
    return settings["inner_steps"], settings["starts"], settings["preferred"]


def test_a_search_or_a_suggestion_alone_changes_no_setting():
    for problem in (Stranger(), Searching(), Suggesting()):
        assert used(problem) == (20, 8, [])


def test_preferences_fill_what_the_caller_leaves_open():
    problem = with_attributes(preferred_settings={"inner_steps": 3, "starts": 2})
    assert used(problem) == (3, 2, ["inner_steps", "starts"])
    assert used(problem, inner_steps=7) == (7, 2, ["starts"])
    assert used(problem, starts=1) == (3, 1, ["inner_steps"])
    assert used(problem, inner_steps=7, starts=1) == (7, 1, [])
    assert used(problem, polish=False) == (20, 2, ["starts"]), "few steps are for a run that polishes"


def test_rounding_takes_the_preferred_starts_alone():
    problem = with_attributes(preferred_settings={"inner_steps": 3, "starts": 2})
    result = mb.relax_and_round(problem, seed=0)
    assert (result.settings["inner_steps"], result.settings["starts"]) == (1_000, 2)
    assert result.settings["preferred"] == ["starts"]
    assert result.settings["rounding"] == "top-k"
    assert mb.relax_and_round(problem, seed=0, max_evaluations=20).settings["inner_steps"] is None


def test_settings_are_plain_and_name_what_was_used():
    problem = quadratic(mb.Budget(12, 4), 0, n_lam=1)
    result = mb.relax_and_penalize(
        problem, seed=3, solver="projected", penalty=mb.Logarithmic(0.5), inner_steps=[4, 2], tol=0.02, theta0=np.ones(12) / 3
    )
    settings = result.settings
    assert json.loads(json.dumps(settings)) == settings
    assert settings["solver"] == repr(mb.ProjectedGradient())
    assert settings["penalty"] == repr(mb.Logarithmic(0.5))
    assert (settings["inner_steps"], settings["tol"], settings["seed"]) == ([4, 2], 0.02, 3)
    assert (settings["epsilon0"], settings["polish"], settings["gap_tol"]) == ("auto", 2_000, 0.0)
    assert (settings["theta0"], settings["lam0"], settings["max_evaluations"]) == ("given", "default", None)
    assert mb.enumerate_binary(quadratic(mb.Budget(5, 2), 0)).settings == {"method": "enumerate_binary"}


# Searches.


def test_a_search_counts_for_its_cost_and_its_calls_for_polish():
    dear, cheap = Searching(), with_attributes(Searching, cost=1)
    results = [mb.relax_and_penalize(problem, starts=1, polish=9, seed=0) for problem in (dear, cheap)]
    np.testing.assert_array_equal(results[0].theta, results[1].theta)
    assert results[0].value == results[1].value
    calls = (results[0].n_evaluations - results[1].n_evaluations) / 4
    assert calls == int(calls) >= 1


def test_a_search_that_can_stop_is_told_what_is_left():
    told = []

    class Stopping(Searching):
        def improve(self, theta, lam, *, warm=None, max_cost=np.inf):
            told.append(max_cost)
            return super().improve(theta, lam)._replace(cost=int(min(self.cost, max(max_cost, 1))))

    result = mb.relax_and_penalize(Stopping(), starts=1, max_evaluations=60, seed=0)
    assert told
    assert all(0 <= most < 60 for most in told)
    assert result.n_evaluations <= 60
    told.clear()
    mb.relax_and_penalize(Stopping(), starts=1, seed=0)
    assert set(told) == {np.inf}


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (lambda theta: theta > 0.5, "improve must return an Improved"),
        (lambda theta: Improved(theta), "improve must return a theta that is a boolean array"),
        (lambda theta: Improved(np.ones(12, dtype=bool)), r"improve must return a point of Budget\(12, 4\)"),
        (lambda theta: Improved(theta > 0.5, cost=0), "cost of what improve returns must be a whole number of at least 1"),
        (lambda theta: Improved(theta > 0.5, cost=2.5), "cost of what improve returns must be a whole number"),
    ],
)
def test_what_a_search_returns_is_checked(found, text):
    problem = with_attributes(Searching, improve=lambda self, theta, lam, *, warm=None: found(theta))
    with pytest.raises(mb.InvalidInput, match=text):
        mb.relax_and_penalize(problem, starts=1, seed=0)
