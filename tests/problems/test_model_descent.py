"""Exchanges chosen by a model: its derivatives are those of J, what is made lowers J, and the search ends where none is left."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import mixbin as mb
from mixbin.problems import RidgeDistillation
from mixbin.problems.distillation import model_descent, rounds, scan
from mixbin.problems.distillation.descent import ExchangeBlock
from mixbin.problems.distillation.exchange import exchange_terms, single_changes
from mixbin.problems.distillation.model_descent import descend_by_model, model, modelled_exchanges
from mixbin.problems.work import Work
from tests.problems.test_ridge import make_data

NO_LAM = np.empty(0)


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    """Every table counts as large."""
    monkeypatch.setattr("mixbin.problems.distillation.ridge.MODELLED_ENTRIES", 0)


def make_problem(targets=None, budget=9, seed=0, m=40, alpha=0.01, **keywords):
    X, y, X_val, y_val = make_data(targets, m=m, seed=seed)
    problem = RidgeDistillation(X, y, X_val, y_val, budget=budget, alpha=alpha, **keywords)
    return problem, problem.theta_set.vertex(np.random.default_rng(seed).uniform(size=m)).astype(float)


def block_of(problem, theta, rows):
    at = problem.expansion(theta, NO_LAM)
    terms = at.terms(problem.rows.take(rows, at.origin))
    return ExchangeBlock(terms, theta[rows] > 0.5, at.H, 1.0 / theta.size, Work())


def test_small_tables_and_the_recorded_bits_do_without_the_model(monkeypatch):
    problem, _ = make_problem()
    assert problem.by_model
    data = make_data(None, m=40, seed=0)
    assert not RidgeDistillation(*data, budget=9, alpha=0.01, compact=False).by_model
    assert not RidgeDistillation(*data, budget=9, alpha=0.01, chunks=(20, 20)).by_model  # no random access to rows
    assert not make_problem(budget=7)[0].by_model  # few rows for five features
    monkeypatch.undo()
    assert not RidgeDistillation(*data, budget=9, alpha=0.01).by_model


@pytest.mark.parametrize("targets", [None, 1, 3])
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_the_model_has_the_derivatives_of_the_value(targets, alpha):
    """Against central differences along each row's weight and along each pair of them."""
    problem, theta = make_problem(targets, alpha=alpha)
    rows, theta = np.array([0, 3, 8, 17, 21, 39]), np.clip(theta, 0.3, 1.0)
    grad, Q = model(block_of(problem, theta, rows))
    h = 1e-3
    value = lambda *steps: problem.evaluate(theta + sum(t * np.eye(40)[i] for t, i in steps), NO_LAM, gradient=False).value  # noqa: E731
    scale = np.abs(Q).max()
    for a, i in enumerate(rows):
        assert grad[a] == pytest.approx((value((h, i)) - value((-h, i))) / (2 * h), rel=1e-4, abs=1e-6 * np.abs(grad).max())
        for b, j in enumerate(rows):
            if a == b:
                second = (value((h, i)) - 2 * value() + value((-h, i))) / h**2
            else:
                signs = [(s, t) for s in (1, -1) for t in (1, -1)]
                second = sum(s * t * value((s * h, i), (t * h, j)) for s, t in signs) / (4 * h * h)
            assert Q[a, b] == pytest.approx(second, rel=1e-3, abs=1e-4 * scale)


@pytest.mark.parametrize("targets", [None, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_exchanges_of_a_block_are_the_greedy_ones_of_its_model(targets, seed):
    problem, theta = make_problem(targets, seed=seed)
    block = block_of(problem, theta, np.arange(40))
    grad, Q = model(block)
    v, pairs = block.chosen.astype(float), []
    predicted = lambda to: float(grad @ (to - block.chosen) + 0.5 * (to - block.chosen) @ Q @ (to - block.chosen))  # noqa: E731
    while len(pairs) < 5:
        every = {}
        for i in np.flatnonzero(v == 1):
            for j in np.flatnonzero(v == 0):
                after = v.copy()
                after[i], after[j] = 0.0, 1.0
                every[i, j] = predicted(after) - predicted(v)
        best = min(every, key=every.get)
        if every[best] >= -1e-12:
            break
        pairs.append(best)
        v[best[0]], v[best[1]] = 0.0, 1.0
    assert pairs
    assert modelled_exchanges(block, 1e-12, 5) == pairs
    assert (block.chosen == (theta > 0.5)).all()


def in_small_pieces(monkeypatch, near_misses=3, many_met=2, row=32):
    """Rounds have several parts with several blocks each, as in large tables."""
    small = {"BLOCK_ROWS": 2, "LARGE_BLOCK": 2, "FIRST_SIDE": 3, "BLOCK_PAIRS": 20, "PARTS": 3, "ROWS_IN_BLOCK": 6, "ALONE": 8}
    for name, size in {**small, "NEAR_MISSES": near_misses, "MANY_MET": many_met, "ROW": row}.items():
        for module in (model_descent, rounds, scan):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, size)


@pytest.mark.parametrize("targets", [None, 3])
@pytest.mark.parametrize("budget", [8, 9, 12, 39])
@pytest.mark.parametrize(("seed", "near_misses", "many_met", "row"), [(0, 0, 0, 0), (1, 3, 2, 32), (2, 40, 100, 1000)])
def test_the_search_ends_where_no_exchange_is_left(targets, budget, seed, near_misses, many_met, row, monkeypatch):
    """Few rows with 5 features have high leverages, where the model is far off: what it chooses is checked."""
    in_small_pieces(monkeypatch, near_misses, many_met, row)
    problem, theta = make_problem(targets, budget=budget, seed=seed, alpha=1e-4)
    value = problem.evaluate(theta, NO_LAM).value
    for _ in range(60):
        got = problem.improve(theta, NO_LAM)
        assert got.theta.sum() == budget
        after = problem.evaluate(got.theta.astype(float), NO_LAM).value
        if np.array_equal(got.theta, theta > 0.5):
            break
        assert after < value
        theta, value = got.theta.astype(float), after
    assert got.tried == budget * (40 - budget)
    off, on = (side.ravel() for side in np.meshgrid(np.flatnonzero(theta), np.flatnonzero(theta == 0), indexing="ij"))
    best = problem.evaluate_moves(theta, NO_LAM, off, on).min() - value
    assert best >= -1e-9 * value
    assert got.best_change == pytest.approx(best, rel=1e-6, abs=1e-9 * value)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_any_number_of_threads_finds_the_same(n, monkeypatch):
    in_small_pieces(monkeypatch)
    found = []
    for threads in (1, n):
        problem, theta = make_problem(m=120, budget=20)
        with threadpool_limits(limits=threads, user_api="blas"):
            found.append(problem.improve(theta, NO_LAM))
    assert np.array_equal(found[0].theta, found[1].theta)
    assert found[0][1:] == found[1][1:]


@pytest.mark.parametrize("targets", [None, 3])
@pytest.mark.parametrize("row", [0, 10**6])
def test_parts_that_are_evaluated_together_change_what_they_change_alone(targets, row, monkeypatch):
    monkeypatch.setattr(rounds, "ROW", row)
    problem, theta = make_problem(targets)
    seen = rounds.Rounds(problem.rows, problem.expansion(theta, NO_LAM), theta > 0.5, 1 / 40)
    off, on = np.flatnonzero(theta == 1), np.flatnonzero(theta == 0)
    parts = [(off[:2], on[::-1]), (off[2:5], on[4:9]), (off[5:], on[3:20:2])]
    for (i, j), change in zip(parts, seen._changes_of(parts), strict=True):
        exact = [[problem.evaluate(moved(theta, a, b), NO_LAM).value - seen.at.value for b in j] for a in i]
        np.testing.assert_allclose(change, exact, rtol=1e-6, atol=1e-10 * seen.at.value)


@pytest.mark.parametrize("targets", [None, 3])
def test_the_rows_that_are_best_flipped_alone(targets):
    problem, theta = make_problem(targets)
    at = problem.expansion(theta, NO_LAM)
    terms = at.terms(problem.rows.take(np.arange(40), at.origin))
    flip = np.where(theta == 1, -1.0, 1.0)
    changes = single_changes(exchange_terms(terms, terms.P_a @ at.H), flip / 40)
    exact = [problem.evaluate(theta + flip * (np.arange(40) == i), NO_LAM).value - at.value for i in range(40)]
    np.testing.assert_allclose(changes, exact, rtol=1e-6, atol=1e-10 * at.value)


def test_exchanges_alone_cost_no_more_than_a_round(monkeypatch):
    """They are looked for again and again, each time among 3 x 3 pairs at 4 apiece, and only while there is something left."""
    monkeypatch.setattr(rounds, "ALONE", 3)
    problem, theta = make_problem(m=400, budget=60)
    looks = []
    changes = scan.Scan._changes
    monkeypatch.setattr(scan.Scan, "_changes", lambda self, off, on: looks.append((off.size, on.size)) or changes(self, off, on))
    for pairs, most in ((0, 0), (1, 1), (36, 1), (37, 2), (10**9, 200)):
        looks.clear()
        search = rounds.Rounds(problem.rows, problem.expansion(theta, NO_LAM), theta > 0.5, 1 / 400)
        made = search._exchanged_alone(pairs)
        assert len(looks) <= most
        assert set(looks) <= {(3, 3)}
        assert (made > 0) == (most > 0)
        after = problem.evaluate(search.chosen.astype(float), NO_LAM).value
        assert after == pytest.approx(search.at.value, rel=1e-9)
        assert after < problem.evaluate(theta, NO_LAM).value or not most


def test_a_model_that_promises_too_much_is_not_followed(monkeypatch):
    """Exchanges that raise J are halved, and then given up for those of the exact search."""
    problem, theta = make_problem(alpha=1e-3)
    at, worst = problem.expansion(theta, NO_LAM), []

    def wrong(block, least, most):
        exact = np.array([[problem.evaluate(moved(theta, i, j), NO_LAM).value for j in on] for i in off])
        i, j = divmod(int(exact.argmax()), on.size)
        worst.append((int(off[i]), int(on[j])))
        return worst[-1:]

    off, on = np.flatnonzero(theta == 1), np.flatnonzero(theta == 0)
    monkeypatch.setattr(model_descent, "modelled_exchanges", wrong)
    after = descend_by_model(at, problem.rows, theta > 0.5, 1 / 40, 1, Work(), first=np.arange(40))
    assert worst
    assert problem.evaluate(after.astype(float), NO_LAM).value < at.value


def moved(theta, off, on):
    after = theta.copy()
    after[off], after[on] = 0.0, 1.0
    return after


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 9])
def test_the_search_stays_within_its_limit(limit):
    problem, theta = make_problem(m=400, budget=60)
    got = problem.improve(theta, NO_LAM, max_cost=limit)
    assert got.cost <= limit
    assert got.theta.sum() == 60
    assert problem.evaluate(got.theta.astype(float), NO_LAM).value <= problem.evaluate(theta, NO_LAM).value


def test_equal_rows_do_not_keep_the_search_going():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(10, 4)), 4, axis=0)
    y = np.repeat(rng.normal(size=10), 4)
    problem = RidgeDistillation(X, y, X[:10], y[:10] + 1, budget=7, alpha=1e-9)
    result = mb.relax_and_penalize(problem, seed=0)
    assert result.theta.sum() == 7
    assert result.certificate.one_move_optimal


@pytest.mark.parametrize("compact", [False, True])
def test_gains_that_cannot_be_made_and_lost_digits_prove_nothing(monkeypatch, compact):
    problem = RidgeDistillation(*make_data(None, m=40, seed=0), budget=9, alpha=0.01, compact=compact)
    assert problem.by_model == compact
    chosen = mb.relax_and_penalize(problem, seed=0, search="path").theta.astype(float)
    proven = problem.improve(chosen, NO_LAM)
    assert (proven.tried, np.array_equal(proven.theta, chosen)) == (9 * 31, True)
    assert proven.best_change >= 0
    whole = scan.Scan._changes
    monkeypatch.setattr(scan.Scan, "_changes", lambda *args: whole(*args) - 1e6)
    assert problem.improve(chosen, NO_LAM).tried == 0
    monkeypatch.undo()
    kind = rounds.Rounds if compact else scan.Scan
    search_all = kind.search_all

    def with_few_digits(self, most):
        found = search_all(self, most)
        self.at = self.at._replace(value=self.at.value * (1 + 1e-7))
        return found

    monkeypatch.setattr("mixbin.problems.distillation.ridge.MODELLED_ENTRIES", 0)
    monkeypatch.setattr(kind, "search_all", with_few_digits)
    assert problem.improve(chosen, NO_LAM).tried == 0


def test_blocks_are_drawn_from_the_most_promising_rows(monkeypatch):
    problem, theta = make_problem(m=400, budget=60)
    monkeypatch.setattr(model_descent, "ROWS_IN_BLOCK", 8)
    monkeypatch.setattr(model_descent, "AMONG", 3)
    work, at = Work(), problem.expansion(theta, NO_LAM)
    promising = model_descent.PromisingRows(problem.rows, work)
    first, second = promising.block(at, theta > 0.5), promising.block(at, theta > 0.5)
    gradient = problem.evaluate(theta, NO_LAM).grad_theta
    for kind, part, score in ((1, slice(8), -gradient), (0, slice(8, 16), gradient)):
        rows = np.flatnonzero(theta == kind)
        best = rows[np.argsort(score[rows])]
        # The first quarter promise most, the next block begins after them, and the rest are some of the 24 best.
        assert list(first[part][:2]) == list(best[:2])
        assert list(second[part][:2]) == list(best[2:4])
        for block in (first[part], second[part]):
            assert len(set(block)) == 8
            assert set(block) <= set(best[:24])
    work.add(problem.rows.image_work(2))  # blocks that cost as much as the gradient: it is computed anew
    third = promising.block(at, theta > 0.5)
    assert list(third[:2]) == list(first[:2])
