"""Numbers and tables at the edge: what NumPy would take without a word is told with the name of its argument."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import mixbin as mb

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=40)
X_VAL, Y_VAL = RNG.normal(size=(20, 3)), RNG.normal(size=20)
TASKS = np.arange(40) % 4


def masked(array):
    return np.ma.masked_array(array, mask=array > 1.0)


def with_dates():
    return pd.DataFrame(X, columns=list("abc")).assign(when=pd.Timestamp("2020-01-01"))


def twice():
    return pd.DataFrame(X, columns=["a", "a", "b"])


FITS = {
    "ridge": lambda X, y: mb.RidgeDistillation(X, y, X, y, budget=5),
    "softmax": lambda X, y: mb.SoftmaxDistillation(X, y > 0, X, y > 0, budget=5),
    "regressor": lambda X, y: mb.DistillationRegressor(budget=5, max_evaluations=5).fit(X, y),
    "regressor with a validation set": lambda X, y: mb.DistillationRegressor(budget=5, max_evaluations=5).fit(X, y, X_VAL, Y_VAL),
    "classifier": lambda X, y: mb.DistillationClassifier(budget=5, max_evaluations=5).fit(X, y > 0),
    "groups": lambda X, y: mb.GroupStructureRegressor(n_groups=2, max_evaluations=5).fit(X, y, tasks=TASKS),
}
RIDGES = {"ridge", "regressor", "regressor with a validation set"}


@pytest.mark.parametrize("fit", FITS)
def test_masked_entries_are_not_data(fit):
    with pytest.raises(mb.InvalidInput, match=r"^X must have a value in every entry, got \d+ masked ones; fill them"):
        FITS[fit](masked(X), Y)


@pytest.mark.parametrize("fit", FITS)
def test_masked_targets_are_not_data(fit):
    with pytest.raises(mb.InvalidInput, match=r"^y must have a value in every entry, got \d+ masked ones; fill them"):
        FITS[fit](X, masked(Y))


def test_masked_validation_rows_are_not_data():
    for fit in (mb.DistillationRegressor(budget=5), mb.DistillationClassifier(budget=5)):
        with pytest.raises(mb.InvalidInput, match=r"^X_val must have a value in every entry"):
            fit.fit(X, Y > 0, masked(X_VAL), Y_VAL > 0)
        with pytest.raises(mb.InvalidInput, match=r"^y_val must have a value in every entry"):
            fit.fit(X, Y > 0, X_VAL, np.ma.masked_array(Y_VAL > 0, mask=Y_VAL > 1))


def test_a_mask_that_hides_nothing_is_no_matter():
    whole = np.ma.masked_array(X, mask=np.zeros(X.shape, dtype=bool))
    plain, same = (mb.RidgeDistillation(table, Y, X_VAL, Y_VAL, budget=5) for table in (X, whole))
    assert plain.fingerprint() == same.fingerprint()


def test_masked_points_and_gradients():
    budget = mb.Budget(40, 5)
    with pytest.raises(mb.InvalidInput, match=r"^x must have a value in every entry"):
        budget.project(masked(Y))
    problem = mb.FunctionProblem(lambda theta: (0.0, masked(Y)), budget)
    with pytest.raises(mb.InvalidInput, match=r"^grad_theta must be an array of real numbers"):
        mb.relax_and_penalize(problem, seed=0)


@pytest.mark.parametrize("fit", FITS)
def test_dates_are_not_numbers(fit):
    with pytest.raises(mb.InvalidInput, match=r"^X must hold numbers, got column 'when' of dtype datetime64"):
        FITS[fit](with_dates(), Y)
    with pytest.raises(mb.InvalidInput, match=r"^X must"):
        FITS[fit](np.zeros((40, 3), dtype="datetime64[s]"), Y)


@pytest.mark.parametrize("fit", FITS)
def test_columns_of_one_name(fit):
    with pytest.raises(mb.InvalidInput, match=r"^X must name its columns differently, got 'a' twice; rename one of them"):
        FITS[fit](twice(), Y)


def test_dates_as_targets():
    with pytest.raises(mb.InvalidInput, match=r"^y must hold numbers, got dtype datetime64"):
        mb.DistillationRegressor(budget=5).fit(X, pd.Series(pd.date_range("2020", periods=40)))


def test_dask_dataframes_too():
    dd = pytest.importorskip("dask.dataframe")
    y = dd.from_pandas(pd.Series(Y), npartitions=2)
    for table, message in ((with_dates(), "column 'when' of dtype datetime64"), (twice(), "got 'a' twice")):
        with pytest.raises(mb.InvalidInput, match=f"^X must .*{message}"):
            mb.RidgeDistillation(dd.from_pandas(table, npartitions=2), y, X_VAL, Y_VAL, budget=5)


def _index(matrix):
    matrix.indices[3] = 77


def _negative(matrix):
    matrix.indices[3] = -1


def _pointer(matrix):
    matrix.indptr[3] = 1_000


def _coordinate(matrix):
    matrix.coords[0][0] = 1_000


CORRUPT = [(sparse.csr_array, _index), (sparse.csr_array, _negative), (sparse.csr_array, _pointer)]
CORRUPT += [(sparse.csc_array, _index), (sparse.csr_matrix, _index), (sparse.coo_array, _coordinate)]


def _pointer_of_none(matrix):
    matrix.data, matrix.indices = matrix.data[:0], matrix.indices[:0]
    matrix.indptr[:] = 0
    matrix.indptr[1] = 1_000


CORRUPT += [(sparse.csr_array, _pointer_of_none), (sparse.csc_matrix, _pointer_of_none)]


@pytest.mark.parametrize(("kind", "damage"), CORRUPT)
@pytest.mark.parametrize("fit", sorted(RIDGES))
def test_sparse_matrices_with_broken_indices(kind, damage, fit):
    """SciPy's products would read outside of their memory."""
    matrix = kind(X)
    damage(matrix)
    with pytest.raises(mb.InvalidInput, match=r"^X must be a valid sparse matrix, got one with broken indices"):
        FITS[fit](matrix, Y)


@pytest.mark.parametrize("chunks", [20, 2.5, np.int64(20), None])
def test_chunks_are_a_sequence(chunks):
    if chunks is None:
        mb.RidgeDistillation(X, Y, X_VAL, Y_VAL, budget=5, chunks=np.array([20, 20]))
        return
    with pytest.raises(mb.InvalidInput, match=r"^chunks must be a sequence of whole numbers, got"):
        mb.RidgeDistillation(X, Y, X_VAL, Y_VAL, budget=5, chunks=chunks)


@pytest.mark.parametrize("alpha", [(1e-300, 1e300), (1e-300, 1.0), 1e-300, 1e300])
def test_alpha_that_is_lost_in_rounding(alpha):
    with pytest.raises(mb.InvalidInput, match=r"^alpha must be from .* times the mean variance of X, got"):
        mb.SoftmaxDistillation(X, Y > 0, X_VAL, Y_VAL > 0, alpha=alpha)


def test_a_singular_logistic_regression_names_alpha():
    problem = mb.SoftmaxDistillation(X, Y > 0, X_VAL, Y_VAL > 0, alpha=(1e-3, 1.0))
    with pytest.raises(mb.DivergedError, match=r"is singular at alpha = 1e-300; raise alpha or rescale"):
        problem.evaluate((np.arange(40) < 2).astype(float), np.array(1e-300))


def linear(gradient, value=0.0):
    return mb.FunctionProblem(lambda theta: (value, gradient), mb.Budget(4, 2))


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (linear(np.full(4, 1j)), "^grad_theta must be an array of real numbers"),
        (linear(np.array(["1", "2", "3", "4"])), "^grad_theta must be an array of real numbers"),
        (linear(np.array([1e300, -1e300, 0.0, 1.0])), r"^grad_theta must be at most 1e\+150, got 1e\+300"),
        (linear(np.zeros(4), 1 + 1j), "^value must be one number"),
        (linear(np.zeros(4), np.complex128(1 + 1j)), "^value must be one number"),
        (linear(np.zeros(4), np.array([1.0 + 0.5j])), "^value must be one number"),
    ],
)
def test_answers_that_are_not_real_or_too_large(problem, message):
    with pytest.raises(mb.InvalidInput, match=message):
        mb.relax_and_penalize(problem, seed=0)


@pytest.mark.parametrize("size", [1e149, 1e-300])
def test_answers_that_are_large_or_small(size):
    costs = size * np.array([3.0, 1.0, 2.0, 4.0])
    problem = mb.FunctionProblem(lambda theta: (float(costs @ theta), costs), mb.Budget(4, 2))
    assert mb.relax_and_penalize(problem, seed=0).theta.tolist() == [False, True, True, False]


def test_answers_at_the_end_of_the_numbers():
    """Differences of the smallest numbers there are cannot guide a search, but nothing fails."""
    costs = 5e-324 * np.array([3.0, 1.0, 2.0, 4.0])
    problem = mb.FunctionProblem(lambda theta: (float(costs @ theta), costs), mb.Budget(4, 2))
    assert mb.relax_and_penalize(problem, seed=0).theta.sum() == 2


@pytest.mark.parametrize("scale", [1e307, 1e200, 1e154, 1.0, 1e-154, 1e-160, 1e-200, 1e-305])
def test_knapsacks_in_any_unit(scale):
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.5, 2.0, size=6)
    plain, large = mb.Knapsack(weights, 3.0), mb.Knapsack(weights * scale, 3.0 * scale)
    for _ in range(20):
        x, g = rng.normal(size=6) * 2, rng.normal(size=6)
        projected = large.project(x)
        np.testing.assert_allclose(projected, plain.project(x), rtol=1e-12, atol=1e-12)
        assert large.contains(projected)
        vertex = large.vertex(projected)
        assert large.violation(vertex) == 0
        assert large.n_moves(vertex) == sum(len(off) for off, _ in large.moves(vertex))
        np.testing.assert_allclose(large.linear_oracle(g), plain.linear_oracle(g), rtol=1e-12)
        assert large.epsilon_star(vertex, g) == pytest.approx(plain.epsilon_star(plain.vertex(projected), g))
    np.testing.assert_allclose(large.start(), plain.start())


@pytest.mark.parametrize("weights", [[1e300, 1e-300], [1.0, 1e-160], [3e-308, 1e300], [1e-300, 2e-300]])
@pytest.mark.parametrize("capacity", [3e-308, 1e-160, 1.0, 1e300])
def test_knapsacks_of_very_different_weights(weights, capacity):
    knapsack = mb.Knapsack(weights, capacity)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in ([1.0, 1.0], [0.5, 0.2], [-1.0, 3.0], [1e9, -1e9]):
            projected = knapsack.project(x)
            assert knapsack.contains(projected)
            assert knapsack.violation(knapsack.vertex(projected)) == 0
            assert knapsack.contains(knapsack.linear_oracle(np.negative(x)))
        assert knapsack.contains(knapsack.start())
        assert knapsack.contains(knapsack.start(np.random.default_rng(0)))


def test_a_weight_that_never_fits_does_not_spoil_the_others():
    knapsack = mb.Knapsack([1.0, 1.0, 2.0, 1e300], 1.0)
    np.testing.assert_allclose(knapsack.project([0.0, 0.0, 1e16, 0.0]), [0.0, 0.0, 0.5, 0.0])
    np.testing.assert_allclose(
        knapsack.project([0.9, 0.9, 0.1, 0.9]), [*mb.Knapsack([1.0, 1.0, 2.0], 1.0).project([0.9, 0.9, 0.1]).tolist(), 0.0]
    )
