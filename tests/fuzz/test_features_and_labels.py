"""Odd arguments for what chooses features, judges labels and encodes tables: an answer that holds, or one of our errors.

``pytest --fuzz N`` tries about an eighth of N examples here, drawn anew, beside those of ``test_public_api.py``.
"""

import datetime
import decimal
import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import mixbin as mb
from tests.fuzz import strategies as odd
from tests.fuzz.amount import examples
from tests.fuzz.looks import fitted, look_at_problem
from tests.fuzz.strategies import REFUSED, tried
from tests.fuzz.tables import class_tables, new_rows, regression_tables, spoiled_tables

pytestmark = pytest.mark.slow

COLUMNS = 4


# Features.


def feature_tables(draw, loss):
    """X and y, some of them odd."""
    if loss != "logistic":
        return regression_tables(draw, rows=(12,), columns=COLUMNS, factors=(1e-100, 1e-30, 1e30, 1e50, 1e55, 1e100))
    rng = np.random.default_rng(draw(st.integers(0, 5)))
    X = rng.normal(size=(14, COLUMNS))
    y = (X[:, 0] + rng.normal(size=14) > 0).astype(float)
    y[:2] = 0.0, 1.0
    kind = draw(st.sampled_from(["numbers", "truth", "text"]))
    y = {"numbers": y, "truth": y > 0, "text": np.array(["a", "b"])[y.astype(int)]}[kind]
    return spoiled_tables(draw, [X, y])


SUBSET = {
    "gamma": st.one_of(st.floats(1e-3, 10.0), odd.positive),
    "groups": st.one_of(st.none(), odd.groupings(COLUMNS)),
    "per_group": st.one_of(st.integers(1, 3), odd.bounds()),
}
LOSSES = st.sampled_from(["squared", "squared", "logistic"])
ABOUT_SUBSET = ("X", "y", "k", "gamma", "loss", "groups", "per_group", "high", "theta", "value")


@examples(25, 0.03)
@given(st.data())
def test_best_subset(data):
    loss = data.draw(LOSSES)
    X, y = feature_tables(data.draw, loss)
    more = {"k": st.one_of(st.integers(-1, 5), st.integers(1, 3)), "loss": st.just(loss), "fit_intercept": st.booleans()}
    keywords = {"k": 2, "gamma": 1.0, "loss": loss} | data.draw(odd.few_odd(SUBSET | more, most=1))
    problem = tried(mb.BestSubset, X, y, **keywords, about=ABOUT_SUBSET)
    if problem is REFUSED:
        return
    look_at_problem(data, problem, about=ABOUT_SUBSET)
    proving = {
        "theta": st.one_of(st.none(), st.just(problem.theta_set.vertex(problem.theta_set.start())), odd.arrays((COLUMNS,))),
        "time_limit": st.one_of(st.none(), st.sampled_from([0, 1e-9, 5.0])),
        "max_nodes": st.one_of(st.none(), st.integers(0, 5)),
        "seed": st.integers(0, 5),
        "callbacks": st.just([lambda proof: True]),
    }
    proof = tried(mb.prove_best_subset, problem, **data.draw(odd.few_odd(proving, most=1)), about=ABOUT_SUBSET)
    if proof is not REFUSED:
        look_at_proof(problem, proof)
        again = tried(mb.prove_best_subset, problem, proof=proof, about=ABOUT_SUBSET)
        assert again is not REFUSED
        look_at_proof(problem, again)
        assert again.proved
    tried(mb.prove_best_subset, data.draw(odd.oddities), proof=data.draw(st.one_of(st.just(None), odd.oddities)))
    tried(mb.prove_best_subset, problem, proof=data.draw(odd.oddities), max_nodes=1, about=ABOUT_SUBSET)


def look_at_proof(problem, proof):
    """No subset of all is below the bound, or far below the value where that is proved."""
    assert problem.theta_set.violation(proof.theta) == 0.0
    assert np.isfinite(proof.value)
    assert proof.lower_bound <= proof.value
    assert proof.gap >= 0
    for text in (str(proof), repr(proof), proof._repr_html_()):
        assert text
    values = []
    for theta in itertools.product([0.0, 1.0], repeat=problem.n_features):
        theta = np.array(theta)
        if problem.theta_set.violation(theta) == 0:
            values.append(problem.evaluate(theta, np.empty(0), gradient=False).value)
    best, slack = min(values), 1e-9 * problem.without_features
    assert proof.lower_bound <= best + slack
    assert not proof.proved or proof.value <= best * (1 + 1e-6) + slack


SELECTOR = SUBSET | {
    "n_features": st.one_of(st.just("auto"), st.integers(0, 6)),
    "gamma": st.one_of(st.just("cv"), odd.positive),
    "prove": st.booleans(),
    "time_limit": st.one_of(st.none(), st.sampled_from([0, 1e-9, 1e300])),
    "cv": st.integers(1, 6),
    "stability": st.integers(-1, 3),
    "random_state": st.one_of(st.integers(0, 9), st.none(), st.sampled_from([2**32, -1])),
    "verbose": st.booleans(),
    "n_jobs": st.one_of(st.none(), st.just(1)),
    "callbacks": st.one_of(st.none(), st.just([lambda proof: None])),
}


@examples(15, 0.02)
@given(st.data())
def test_feature_selector(data):
    loss = data.draw(LOSSES)
    keywords = data.draw(odd.few_odd(SELECTOR, most=1))
    if data.draw(st.integers(0, 9)) == 9:
        keywords["loss"] = data.draw(odd.oddities)
    else:
        keywords["loss"] = loss
    keywords.setdefault("n_features", 2)
    model = mb.FeatureSelector(**keywords)
    with pytest.raises(NotFittedError):
        model.predict(np.zeros((1, COLUMNS)))
    X, y = feature_tables(data.draw, loss)
    if fitted(model.fit, X, y, about=(*SELECTOR, *ABOUT_SUBSET)) is REFUSED:
        return
    assert model.support_.sum() == model.n_features_ >= 1
    assert sorted(set(model.ranking_)) == sorted({1, *range(2, 2 + int((~model.support_).sum()))})
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert not np.any(np.atleast_2d(model.coef_)[:, ~model.support_])
    assert 0 <= model.lower_bound_ <= model.value_
    assert 0 <= model.gap_ <= 1
    assert not model.stability or np.all((model.stability_ >= 0) & (model.stability_ <= 1))
    rows = new_rows(data, model.n_features_in_)
    predicted = fitted(model.predict, rows)
    if predicted is not REFUSED:
        assert model.loss == "logistic" or np.isfinite(predicted).all()
        kept = fitted(model.transform, rows)
        assert kept is REFUSED or kept.shape == (len(predicted), model.n_features_)
        if model.loss == "logistic":
            np.testing.assert_allclose(fitted(model.predict_proba, rows).sum(axis=1), 1.0)


# Labels.


class Shouting(GaussianNB):
    """A classifier that refuses to be trained."""

    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("not today")


class Unsure(GaussianNB):
    """A classifier whose probabilities are none."""

    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


CLASSIFIERS = {
    "none": lambda: None,
    "naive": GaussianNB,
    "logistic": lambda: LogisticRegression(max_iter=20),
    "a class": lambda: GaussianNB,
    "shouting": Shouting,
    "unsure": Unsure,
}
OTHERS = (GaussianNB, LogisticRegression)
CLEANER = {
    "estimator": st.sampled_from(["none", "none", "naive", "logistic", "a class", "shouting", "unsure"]).map(
        lambda name: CLASSIFIERS[name]()
    ),
    "lift": st.sampled_from(["auto", None]),
    "cv": st.integers(1, 6),
    "guard": st.booleans(),
    "max_class_loss": st.one_of(st.floats(0, 1), odd.finite),
    "n_jobs": st.one_of(st.none(), st.just(1)),
    "random_state": st.one_of(st.integers(0, 9), st.none(), st.sampled_from([2**32, -1])),
    "time_limit": st.one_of(st.none(), st.sampled_from([1e-9, 1e300])),
    "callbacks": st.one_of(st.none(), st.just([lambda event: event.stop()])),
}


@examples(6, 0.01)
@given(st.data())
@pytest.mark.filterwarnings("ignore:no (label can be judged|row is dropped)", "ignore:.*iterations:UserWarning")
def test_label_cleaner(data):
    parts = class_tables(data.draw, rows=(24, 6), columns=3)
    keywords = data.draw(odd.few_odd(CLEANER, most=1))
    model = mb.LabelCleaner(**keywords)
    with pytest.raises(NotFittedError):
        model.predict(np.zeros((1, 3)))
    with_trusted = data.draw(st.booleans())
    pred_probs = None
    if data.draw(st.integers(0, 3)) == 3:
        pred_probs = odd.shaped(data.draw, np.full((24, 2), 0.5), 3)
    # What a user's classifier says of the rows is passed on as it is.
    also = (RuntimeError, ValueError, TypeError, OverflowError, Warning) if isinstance(model.estimator, OTHERS) else ()
    if fitted(model.fit, *(parts if with_trusted else parts[:2]), pred_probs=pred_probs, about=CLEANER, also=also) is REFUSED:
        return
    n = len(model.support_)
    assert model.support_.any()
    assert np.all((model.label_quality_ >= 0) & (model.label_quality_ <= 1))
    assert len(model.suggested_labels_) == n
    assert not np.any(model.held_back_ & ~model.support_)
    assert model.confusion_.sum() == n
    shares = fitted(model.predict_proba, new_rows(data, 3), also=also)
    if shares is not REFUSED and not isinstance(model.estimator, Unsure):
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)


# Tables of any columns.


def column_kinds():
    """What columns hold, as functions of the number of rows."""

    def cycle(*values):
        return lambda n: (list(values) * n)[:n]

    def series(make, dtype=None):
        return lambda n: pd.Series(make(n), dtype=dtype)

    return {
        "numbers": lambda n: np.arange(n) * 0.5,
        "whole": lambda n: np.arange(n),
        "huge whole": cycle(2**63 - 1, 2, 3),
        "beyond 64 bits": cycle(10**30, 1),
        "large": lambda n: np.linspace(-1.7e308, 1.7e308, n),
        "tiny": lambda n: np.full(n, 5e-324),
        "text": cycle("a", "b", "ü", "d\n"),
        "two texts": cycle("yes", "no"),
        "all different": lambda n: [f"name {i}" for i in range(n)],
        "text with None": cycle("a", None, "b"),
        "long text": cycle("x" * 5000, "y"),
        "surrogates": series(cycle("\udcff", "a"), object),
        "only None": cycle(None),
        "only nan": lambda n: np.full(n, np.nan),
        "some nan": lambda n: np.where(np.arange(n) % 2, np.nan, 1.0),
        "inf": lambda n: np.where(np.arange(n) % 2, np.inf, 1.0),
        "truth": cycle(True, False),
        "truth with None": cycle(True, None, False),
        "nullable": series(cycle(1, None, 3), "Int64"),
        "nullable truth": series(cycle(True, None, False), "boolean"),
        "dates": lambda n: pd.date_range("2020-01-31", periods=n),
        "dates with NaT": lambda n: pd.to_datetime((["2020-01-01", None] * n)[:n]),
        "dates in zones": lambda n: pd.date_range("2020", periods=n, tz="Europe/Berlin"),
        "ends of time": lambda n: pd.Series((["1677-09-22", "2262-04-11"] * n)[:n], dtype="datetime64[ns]"),
        "days": cycle(datetime.date(2020, 1, 1), datetime.date(1, 1, 1)),
        "times": cycle(datetime.time(1, 2, 3), None),
        "durations": lambda n: pd.to_timedelta(np.arange(n), unit="h"),
        "categories": lambda n: pd.Categorical((["a", "b"] * n)[:n]),
        "number categories": lambda n: pd.Categorical((np.arange(n) % 3).tolist()),
        "empty categories": lambda n: pd.Categorical([None] * n, categories=[]),
        "decimals": cycle(decimal.Decimal("1.5"), decimal.Decimal("2")),
        "NaN decimals": cycle(decimal.Decimal("NaN"), decimal.Decimal("1")),
        "bytes": cycle(b"a", b"\xff"),
        "complex": lambda n: np.full(n, 1j),
        "mixed": cycle(1, "a", None),
        "lists": cycle([1, 2], [3]),
        "dictionaries": cycle({"p": 1, "q": "x"}, {"p": 2, "q": "y"}),
        "objects": lambda n: [object() for _ in range(n)],
        "shy": lambda n: [odd.Shy() for _ in range(n)],
        "periods": lambda n: pd.period_range("2020", periods=n, freq="M"),
        "intervals": lambda n: pd.interval_range(0, n),
        "sparse": lambda n: pd.arrays.SparseArray(np.arange(n) % 2 * 1.0),
        "half": lambda n: np.arange(n, dtype=np.float16),
        "strings": series(cycle("a", "b"), "string"),
        "masked": lambda n: np.ma.masked_array(np.arange(n), np.arange(n) % 2),
    }


KINDS = column_kinds()
NAMES = ["a", "b", "", "ü", "a.b", "x" * 300, 0, 1.5, None, ("a", 1), "a\nb", "{}", "%s"]


@st.composite
def frames(draw):
    n = draw(st.sampled_from([5, 5, 3, 1, 0]))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=0, max_size=3))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=len(kinds), max_size=len(kinds), unique=draw(st.integers(0, 5)) < 5))
    with odd.quiet():
        table = pd.concat([pd.Series(KINDS[kind](n)) for kind in kinds], axis=1) if kinds else pd.DataFrame(index=range(n))
    if kinds:
        # As a list of any values, which an index of pandas keeps.
        table.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    return table


def as_given(draw, table):
    """A frame, or the same as a table of Arrow, as an array, as something else."""
    how = draw(st.sampled_from(["frame", "frame", "frame", "arrow", "array", "odd", "rows", "dictionary"]))
    if how == "odd":
        return draw(odd.oddities)
    if how == "rows":
        return odd.odd_table(draw, np.arange(12.0).reshape(4, 3))
    try:
        with odd.quiet():
            made = {"frame": lambda x: x, "arrow": pa.Table.from_pandas, "array": np.asarray, "dictionary": dict}[how]
            return made(table)
    except Exception:  # whatever the libraries say of such a table
        return table


@examples(40, 0.05)
@given(st.data())
def test_table_encoder(data):
    table = data.draw(frames())
    X = as_given(data.draw, table)
    encoder = mb.TableEncoder(**data.draw(odd.few_odd({"max_categories": st.integers(0, 5)}, most=1)))
    if fitted(encoder.fit, X, about=("max_categories",)) is REFUSED:
        return
    out = fitted(encoder.transform, X)
    assert out is not REFUSED
    names = encoder.get_feature_names_out()
    assert out.dtype == np.float64
    assert out.shape[1] == len(names) == len(encoder.columns_)
    assert np.isfinite(out).all()
    assert "\n" not in encoder.encoding_
    other = as_given(data.draw, data.draw(st.one_of(st.just(table[::-1]), st.just(table[:1]), frames())))
    again = fitted(encoder.transform, other)
    assert again is REFUSED or (np.isfinite(again).all() and again.shape[1] == len(names))
    fitted(encoder.get_feature_names_out, data.draw(odd.oddities))
