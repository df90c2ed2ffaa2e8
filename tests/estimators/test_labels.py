"""LabelCleaner: scikit-learn's conventions, the parts against independent computations, and what it promises about classes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mixbin as mb
from mixbin.errors import InvalidInput
from mixbin.estimators.labels import margins, representations
from mixbin.estimators.labels.choice import _sample
from mixbin.estimators.labels.guard import FOUND_AGAIN_ERRORS, ONE_DIVISION_ERRORS, READY_ERRORS, changes, decide, kept_without
from mixbin.estimators.labels.learners import ALWAYS, Regression, out_of_fold
from mixbin.estimators.labels.regression import probabilities, train

pytestmark = pytest.mark.slow


@pytest.mark.slow
@parametrize_with_checks([mb.LabelCleaner(random_state=0), mb.LabelCleaner(GaussianNB(), lift=None, cv=3, guard=False)])
def test_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no label can be judged")
        check(estimator)


def blobs(n=240, K=3, seed=0, share=0.15):
    """Rows around K centres, of which some have the label of the next class, and which these are."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    X = 3.0 * np.eye(K, 4)[y] + rng.normal(size=(n, 4))
    wrong = rng.random(n) < share
    return X, np.where(wrong, (y + 1) % K, y), y, wrong


@pytest.fixture(scope="module")
def fitted():
    X, labels, _, wrong = blobs()
    return X, labels, wrong, mb.LabelCleaner(random_state=0).fit(X, labels)


def same(one, other):
    for name in ("label_quality_", "suspect_", "support_", "confusion_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_wrong_labels_are_found(fitted):
    X, labels, wrong, cleaner = fitted
    assert 2 * (cleaner.suspect_ & wrong).sum() / (cleaner.suspect_.sum() + wrong.sum()) > 0.8
    assert cleaner.label_quality_[wrong].mean() < 0.3 < 0.7 < cleaner.label_quality_[~wrong].mean()
    assert (cleaner.label_quality_[cleaner.suspect_] < 0.5).all()
    changed = cleaner.suggested_labels_ != labels
    np.testing.assert_array_equal(changed, cleaner.suspect_)
    np.testing.assert_array_equal(cleaner.confusion_.sum(axis=1), np.bincount(labels))
    assert cleaner.confusion_.sum() - np.trace(cleaner.confusion_) == cleaner.suspect_.sum()
    P = cleaner.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(cleaner.predict(X), P.argmax(axis=1))


def test_guard_decides_what_is_dropped(fitted):
    X, labels, _, cleaner = fitted
    verdict = cleaner.guard_
    assert verdict.above_chance
    assert verdict.accepted == (verdict.gain > FOUND_AGAIN_ERRORS * verdict.standard_error and verdict.plain_gain >= 0)
    np.testing.assert_array_equal(cleaner.support_, ~cleaner.suspect_ if verdict.accepted else np.ones(len(X), dtype=bool))
    free = mb.LabelCleaner(random_state=0, guard=False).fit(X, labels)
    assert free.guard_ is None
    np.testing.assert_array_equal(free.support_, ~free.suspect_)
    np.testing.assert_array_equal(free.suspect_, cleaner.suspect_)


def test_the_number_of_suspects_lies_between_two_counts():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=400)
    P = rng.dirichlet(np.ones(4), size=400) + np.eye(4)[y] * rng.random((400, 1))
    P /= P.sum(axis=1, keepdims=True)
    s, _ = margins.margins(P, y, np.ones(4, dtype=bool))
    found = margins.suspects(P, y, s)
    means = [P[y == k, k].mean() for k in range(4)]
    for k in range(4):
        confident = 0
        for p in P[y == k]:
            above = [j for j in range(4) if p[j] >= means[j]]
            confident += bool(above) and max(above, key=lambda j: p[j]) != k
        negative = int(np.sum(s[y == k] < 0))
        assert 0 < confident < negative
        assert found[y == k].sum() == round(2 / (1 / confident + 1 / negative))
        assert s[found & (y == k)].max() < s[~found & (y == k)].min()


def test_same_bits(fitted):
    X, labels, _, cleaner = fitted
    same(mb.LabelCleaner(random_state=0, n_jobs=2**63).fit(X, labels), cleaner)  # more threads than there is work for
    same(mb.LabelCleaner(random_state=0, n_jobs=2).fit(X, labels), cleaner)
    np.testing.assert_array_equal(
        mb.LabelCleaner(random_state=0, n_jobs=2).fit(X, labels).predict_proba(X), cleaner.predict_proba(X)
    )


@pytest.mark.parametrize("names", [["a", "b", "c"], [7, -3, 12], [b"x", b"y", b"z"]])
def test_kinds_of_labels(fitted, names):
    X, labels, _, cleaner = fitted
    if isinstance(names[0], bytes):
        with pytest.raises(InvalidInput, match="y must hold"):
            mb.LabelCleaner(random_state=0).fit(X, np.array(names)[labels])
        return
    named = mb.LabelCleaner(random_state=0).fit(X, np.array(sorted(names))[labels])
    same(named, cleaner)
    np.testing.assert_array_equal(named.suggested_labels_, np.array(sorted(names))[cleaner.suggested_labels_])


def test_booleans_frames_and_sparse_tables():
    X, labels, _, _ = blobs(150, K=2)
    plain = mb.LabelCleaner(random_state=0, lift=None).fit(X, labels)
    frame = pd.DataFrame(X, columns=list("abcd"))
    of_frame = mb.LabelCleaner(random_state=0, lift=None).fit(frame, pd.Series(labels == 1))
    same(of_frame, plain)
    assert of_frame.suggested_labels_.dtype == bool
    assert of_frame.feature_names_in_.tolist() == list("abcd")
    for kind in (csr_matrix, csr_array):
        sparse = mb.LabelCleaner(random_state=0, lift=None).fit(kind(X), labels)
        np.testing.assert_allclose(sparse.label_quality_, plain.label_quality_, rtol=1e-6)
        np.testing.assert_allclose(sparse.predict_proba(kind(X)), plain.predict_proba(X), rtol=1e-6)


def test_wide_tables_are_reduced():
    rng = np.random.default_rng(0)
    X, labels, _, wrong = blobs(120, K=2)
    wide = np.where(rng.random((120, 600)) < 0.05, 1.0, 0.0)
    wide[:, :4] = X
    for table in (wide, csr_matrix(wide)):
        cleaner = mb.LabelCleaner(random_state=0, lift=None, guard=False).fit(table, labels)
        assert cleaner._coef.shape[1] <= representations.COMPONENTS + 1
        assert cleaner.label_quality_[wrong].mean() < cleaner.label_quality_[~wrong].mean()


def test_trusted_rows_count_five_times():
    X, labels, truth, _ = blobs(90, K=2, share=0.4)
    X_more, _, more, _ = blobs(60, K=2, seed=1)
    trusted = mb.LabelCleaner(random_state=0, lift=None, guard=False).fit(X, labels, X_more, more)
    alone = mb.LabelCleaner(random_state=0, lift=None, guard=False).fit(X, labels)
    right = labels == truth
    assert len(trusted.support_) == 90
    assert np.mean(trusted.suspect_ == ~right) > np.mean(alone.suspect_ == ~right)
    # Weight 5 is the same as five copies of each trusted row, up to the tolerance of training.
    copies = np.repeat(np.arange(150), np.r_[np.ones(90, dtype=int), np.full(60, 5)])
    Z = np.column_stack([np.concatenate([X, X_more]), np.ones(150)])
    y, v = np.concatenate([labels, more]), np.r_[np.ones(90), np.full(60, 5.0)]
    weighted, copied = train(Z, y, v, 0.01, 2), train(Z[copies], y[copies], np.ones(len(copies)), 0.01, 2)
    np.testing.assert_allclose(probabilities(Z, weighted), probabilities(Z, copied), atol=1e-3)


def test_training_reaches_the_minimum():
    X, labels, _, _ = blobs(60)
    Z, v, alpha = np.column_stack([X, np.full(60, 10.0)]), np.random.default_rng(1).random(60), 0.02

    def objective(flat):
        scores = Z @ flat.reshape(3, 5).T
        loss = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(60), labels]
        return v @ loss / v.sum() + 0.5 * alpha * flat @ flat

    best = minimize(objective, np.zeros(15), options={"gtol": 1e-7})
    ours = train(Z, labels, v, alpha, 3)
    assert objective(ours.ravel()) <= best.fun + 1e-5
    np.testing.assert_allclose(probabilities(Z, ours), probabilities(Z, best.x.reshape(3, 5)), atol=5e-3)


def test_thresholds_margins_and_counts_by_hand():
    P = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.6, 0.4, 0.0], [0.3, 0.3, 0.4]])
    y, every = np.array([0, 0, 1, 2]), np.ones(3, dtype=bool)
    t = np.array([0.55, 0.4, 0.4])
    np.testing.assert_allclose(margins.thresholds(P, y), t)
    s, rival = margins.margins(P, y, every)
    np.testing.assert_array_equal(rival, [1, 1, 0, 1])
    np.testing.assert_allclose(s[1:3], [np.log(0.2 / 0.55) - np.log(0.8 / 0.4), np.log(1.0) - np.log(0.6 / 0.55)])
    np.testing.assert_array_equal(margins.confident_counts(P, y), [1, 1, 0])
    np.testing.assert_array_equal(margins.suspects(P, y, s), [False, True, True, False])
    # A class that is not judged competes with none.
    assert margins.margins(P, y, np.array([True, False, True]))[1].tolist() == [2, 2, 0, 0]


def test_left_out_rows_do_not_train():
    X, labels, _, _ = blobs(60)
    folds = np.arange(60) % 3
    folds[:5] = ALWAYS
    Z = np.column_stack([X, np.full(60, 10.0)])
    P = out_of_fold(Regression(Z, labels, 3, 0.03), folds, np.ones(60), 3, None)
    changed = labels.copy()
    changed[folds == 1] = (labels[folds == 1] + 1) % 3
    Q = out_of_fold(Regression(Z, changed, 3, 0.03), folds, np.ones(60), 3, None)
    np.testing.assert_array_equal(P[folds == 1], Q[folds == 1])
    assert not np.array_equal(P[folds == 0], Q[folds == 0])
    np.testing.assert_array_equal(P[:5], 1 / 3)


def test_guard_counts_every_class_the_same():
    class Fixed:
        """Predicts the common class if the rare row 0 is not trained on, and otherwise the label of every row."""

        def predictions(self, trained, v, predicted, fold):
            rows = np.flatnonzero(predicted)
            return np.eye(2)[y[rows]] if trained[0] else np.tile([1.0, 0.0], (len(rows), 1))

    y, folds = np.r_[1, np.zeros(80, dtype=int), np.ones(19, dtype=int)], np.r_[ALWAYS, np.arange(99) % 3]
    kept = np.ones((3, 100), dtype=bool)
    kept[:, 0] = False
    change = changes(Fixed(), y, folds, np.ones(100), kept, 2, None)
    verdict = decide([change], y, folds != ALWAYS, 2, 0.5, True)
    assert verdict.gain == pytest.approx(-0.5)
    assert verdict.plain_gain == pytest.approx(-19 / 99)
    assert verdict.standard_error == 0.0
    assert not verdict.accepted
    # The other way round the rare class is won back.
    assert decide([-change], y, folds != ALWAYS, 2, 0.5, True).accepted
    assert not decide([-change], y, folds != ALWAYS, 2, 0.5, False).accepted


def test_guard_refuses_what_costs_more_rows_than_it_wins():
    y, rows = np.repeat([0, 1], [80, 20]), np.ones(100, dtype=bool)
    won, lost = np.where(y == 1, 0.5, 0.0), np.where(y == 0, 0.2, 0.0)
    both = decide([np.stack([won - lost, won - lost])], y, rows, 2, 0.5, True)
    assert both.gain == pytest.approx(0.15)
    assert both.plain_gain == pytest.approx(-0.06)
    assert not both.accepted
    # The mean over several divisions decides.
    again = decide([np.stack([won - lost] * 2), np.stack([won] * 2)], y, rows, 2, 0.5, True)
    assert (again.gain, again.plain_gain) == (pytest.approx(0.2), pytest.approx(0.02))
    assert again.accepted
    assert decide([np.stack([won] * 2), None], y, rows, 2, 0.5, True) == (0.0, 0.0, False, True, 0.0)


def test_suspects_are_found_again_without_the_labels_of_the_fold():
    X, labels, _, _ = blobs(150)
    folds = np.arange(150) % 5
    folds[:6] = ALWAYS
    Z, weights = np.column_stack([X, np.full(150, 10.0)]), np.ones(150)
    kept = kept_without(Regression(Z, labels, 3, 0.03), labels, folds, weights, 3, 0.9, None)
    assert kept.shape == (5, 150)
    assert kept[:, :6].all()
    assert all(kept[fold][folds == fold].all() and not kept[fold].all() for fold in range(5))
    changed = labels.copy()
    changed[folds == 2] = (labels[folds == 2] + 1) % 3
    again = kept_without(Regression(Z, changed, 3, 0.03), changed, folds, weights, 3, 0.9, 2)
    np.testing.assert_array_equal(kept[2], again[2])
    assert not np.array_equal(kept[0], again[0])
    assert kept_without(Regression(Z, labels, 3, 0.03), labels, folds, weights, 3, 0.0, None).all()


def test_overlapping_classes_do_not_deceive_the_guard():
    """Right labels: the rows that a model contradicts are no worse than others, but those found with all labels seem to be."""
    gains = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 12))
        y = (X[:, 0] + 1.5 * rng.normal(size=300) > 0).astype(np.intp)
        Z, weights, folds = np.column_stack([X, np.full(300, 10.0)]), np.ones(300), np.arange(300) % 5
        P = out_of_fold(Regression(Z, y, 2, 0.03), rng.integers(5, size=300), weights, 2, None)
        s, _ = margins.margins(P, y, np.ones(2, dtype=bool))
        with_all = np.tile(~margins.suspects(P, y, s), (5, 1))
        without = kept_without(Regression(Z, y, 2, 0.03), y, folds, weights, 2, 0.9, None)
        found = [changes(Regression(Z, y, 2, 0.03), y, folds, weights, kept, 2, None) for kept in (with_all, without)]
        gains.append([decide([change], y, folds != ALWAYS, 2, 2.0, True).gain for change in found])
    deceived, honest = np.mean(gains, axis=0)
    assert deceived > 0.02
    assert abs(honest) < 0.01


@pytest.mark.parametrize("cv", [2, 3])
def test_guard_with_few_folds_and_rows(cv):
    X, labels, _, _ = blobs(120, K=2)
    cleaner = mb.LabelCleaner(cv=cv, lift=None, random_state=0).fit(X, labels)
    assert cleaner.guard_.standard_error > 0


def test_guard_refuses_where_too_few_rows_are_left():
    rows, labels, P = np.array([-1.0, 1.0, -0.9, 0.9])[:, None], [0, 1, 1, 0], np.array([[0.9, 0.1], [0.1, 0.9]] * 2)
    settings = {"cv": 2, "lift": None, "random_state": 0, "max_class_loss": 0.5}
    # Dropping the suspects leaves one row of each class, which is held out in one of the folds.
    cleaner = mb.LabelCleaner(LogisticRegression(), **settings).fit(rows, labels, pred_probs=P)
    assert cleaner.suspect_.sum() == 2
    assert cleaner.guard_[:3] == (0.0, 0.0, False)
    assert cleaner.support_.all()
    # Two rows of each class cannot be divided into three folds, and two folds leave none where two are held out.
    X, labels = np.repeat(np.eye(4), 2, axis=0) + 0.01 * np.arange(8)[:, None], np.array([0, 0, 1, 1, 2, 2, 3, 3])
    labels[[1, 3]] = [1, 0]
    cleaner = mb.LabelCleaner(**settings).fit(X, labels)
    assert cleaner.suspect_.any()
    assert cleaner.guard_[:3] == (0.0, 0.0, False)
    assert cleaner.support_.all()


def test_nothing_is_dropped_where_labels_are_random():
    rng = np.random.default_rng(0)
    cleaner = mb.LabelCleaner(random_state=0).fit(rng.normal(size=(200, 6)), rng.integers(4, size=200))
    assert not cleaner.guard_.above_chance
    assert cleaner.support_.all()


@pytest.mark.parametrize("scale", [1e-250, 1e200])
def test_units_do_not_matter(scale):
    X, labels, _, _ = blobs(120, K=2)
    plain, scaled = (mb.LabelCleaner(random_state=0, lift=None).fit(table, labels) for table in (X, X * scale))
    np.testing.assert_allclose(scaled.label_quality_, plain.label_quality_, rtol=1e-6)


def test_rare_classes_are_not_judged():
    X, labels, _, _ = blobs(120, K=2)
    labels = labels.astype(int)
    labels[:3] = 2
    cleaner = mb.LabelCleaner(random_state=0, lift=None, guard=False).fit(X, labels)
    assert cleaner.rare_classes_.tolist() == [2]
    assert not cleaner.suspect_[:3].any()
    np.testing.assert_array_equal(cleaner.label_quality_[:3], 0.5)
    assert (cleaner.suggested_labels_[3:] != 2).all()
    assert cleaner.predict_proba(X).shape == (120, 3)
    with pytest.warns(UserWarning, match="no label can be judged"):
        nothing = mb.LabelCleaner(cv=100, random_state=0).fit(X, labels)
    assert nothing.support_.all()
    assert not nothing.suspect_.any()


def test_no_class_is_deleted():
    X, labels, _, _ = blobs(120, K=2)
    P = np.tile([0.9, 0.1], (120, 1))
    P[labels == 0] = [0.99, 0.01]
    P[labels == 1, 1] = np.linspace(0.02, 0.2, (labels == 1).sum())
    P[:, 0] = 1 - P[:, 1]
    for most in (0.1, 0.0, 1.0):
        cleaner = mb.LabelCleaner(guard=False, max_class_loss=most, random_state=0).fit(X, labels, pred_probs=P)
        of_class = labels == 1
        assert (~cleaner.support_[of_class]).sum() <= max(most * of_class.sum(), 0)
        assert cleaner.support_[of_class].any()
        np.testing.assert_array_equal(cleaner.held_back_, cleaner.suspect_ & cleaner.support_)
        if cleaner.held_back_.any() and (~cleaner.support_).any():
            assert cleaner.label_quality_[cleaner.held_back_].min() >= cleaner.label_quality_[~cleaner.support_ & of_class].max()


def test_ready_probabilities():
    X, labels, _, wrong = blobs()
    P = np.full((240, 3), 0.1)
    P[np.arange(240), np.where(wrong, (labels + 2) % 3, labels)] = 0.8
    cleaner = mb.LabelCleaner(random_state=0).fit(X, labels, pred_probs=P)
    np.testing.assert_array_equal(cleaner.suspect_, wrong)
    # They cannot be found again without some rows, so the guard asks for more.
    verdict = cleaner.guard_
    assert verdict.accepted == (verdict.gain > READY_ERRORS * verdict.standard_error and verdict.plain_gain >= 0)
    np.testing.assert_array_equal(cleaner.suggested_labels_[wrong], (labels[wrong] + 2) % 3)
    assert cleaner.representation_ == "linear"


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(5), KNeighborsClassifier(10), make_pipeline(StandardScaler(), LogisticRegression())]
)
def test_any_classifier(estimator):
    X, labels, _, wrong = blobs(120)
    names = np.array(["a", "b", "c"])[labels]
    cleaner = mb.LabelCleaner(estimator, cv=3, random_state=0).fit(X, names)
    assert cleaner.label_quality_[wrong].mean() < 0.3 < 0.7 < cleaner.label_quality_[~wrong].mean()
    assert cleaner.representation_ == "estimator"
    assert set(cleaner.predict(X)) <= {"a", "b", "c"}
    assert cleaner.predict_proba(X).shape == (120, 3)
    # Its training may take long, so it is compared in one division into folds, and the guard asks for more.
    verdict = cleaner.guard_
    assert verdict.accepted == (verdict.gain > ONE_DIVISION_ERRORS * verdict.standard_error and verdict.plain_gain >= 0)
    same(clone(cleaner).fit(X, names), cleaner)


def test_a_classifier_gets_the_table_as_it_is():
    X, labels, _, _ = blobs(90, K=2)
    frame = pd.DataFrame({"colour": np.where(X[:, 0] > 1.5, "red", "blue")})
    estimator = make_pipeline(OneHotEncoder(), LogisticRegression())
    cleaner = mb.LabelCleaner(estimator, cv=3, random_state=0).fit(frame, labels, frame[:9], labels[:9])
    assert cleaner.feature_names_in_.tolist() == ["colour"]
    assert len(cleaner.predict(frame)) == 90


def test_a_sample_chooses_for_large_tables():
    y, folds = np.repeat([0, 1], [9_000, 1_000]), np.arange(10_000) % 5
    folds[:7] = ALWAYS
    rows = _sample(y, folds, 0)
    assert len(rows) == 1_507
    assert set(range(7)) <= set(rows.tolist())
    np.testing.assert_allclose(np.bincount(y[rows]) / len(rows), [0.9, 0.1], atol=0.01)


X_GOOD, Y_GOOD, *_ = blobs(30, K=2)
P_GOOD = np.tile([0.5, 0.5], (30, 1))


@pytest.mark.parametrize(
    ("settings", "arguments", "message"),
    [
        ({"lift": "always"}, {}, "lift must be one of"),
        ({"lift": True}, {}, "lift must be one of"),
        ({"cv": 1}, {}, "cv must be a whole number of at least 2"),
        ({"cv": 2.5}, {}, "cv must be"),
        ({"guard": 1}, {}, "guard must be True or False"),
        ({"max_class_loss": 1.5}, {}, "max_class_loss must be"),
        ({"max_class_loss": float("nan")}, {}, "max_class_loss must be"),
        ({"n_jobs": 0}, {}, "n_jobs must be"),
        ({"n_jobs": "all"}, {}, "n_jobs must be"),
        ({"random_state": -1}, {}, "random_state must be"),
        ({"random_state": "seed"}, {}, "random_state must be"),
        ({"estimator": RandomForestClassifier}, {}, "estimator must be None or a scikit-learn classifier"),
        ({"estimator": "forest"}, {}, "estimator must be None or a scikit-learn classifier"),
        ({"estimator": Ridge()}, {}, "estimator must be a classifier with predict_proba"),
        ({"estimator": DummyClassifier()}, {"y": Y_GOOD[:5]}, "y must hold one class per row of X"),
        ({}, {"X": X_GOOD[:, 0]}, "X must be a table"),
        ({}, {"X": np.where(X_GOOD > 0, np.nan, X_GOOD)}, "X must be a table"),
        ({}, {"X": [["a", "b"]] * 30}, "X must be a table"),
        ({}, {"y": Y_GOOD[:20]}, "X must be a table of numbers and y its targets"),
        ({}, {"y": np.zeros(30)}, "y must hold at least two classes"),
        ({}, {"y": X_GOOD[:, 0]}, "continuous target.*HuberRegressor"),
        ({}, {"y": np.arange(30)}, "30 different numbers.*RANSACRegressor"),
        ({}, {"y": [None, "a"] * 15}, "y must"),
        ({}, {"y": np.column_stack([Y_GOOD, Y_GOOD])}, "y"),
        ({}, {"X_trusted": X_GOOD}, "y_trusted must be given together with X_trusted"),
        ({}, {"y_trusted": Y_GOOD}, "X_trusted must be given together with y_trusted"),
        ({}, {"X_trusted": X_GOOD[:, :2], "y_trusted": Y_GOOD}, "X_trusted must be a table with the columns of X"),
        ({}, {"X_trusted": X_GOOD, "y_trusted": Y_GOOD[:3]}, "y_trusted must hold one class per row"),
        ({}, {"X_trusted": X_GOOD, "y_trusted": Y_GOOD + 5}, "y_trusted must hold classes of y"),
        ({}, {"pred_probs": P_GOOD[:5]}, "pred_probs must be an array"),
        ({}, {"pred_probs": P_GOOD * 2}, "pred_probs must sum to 1"),
        ({}, {"pred_probs": P_GOOD + np.array([[-1, 1]])}, "pred_probs must be at least 0"),
        ({}, {"pred_probs": P_GOOD * np.nan}, "pred_probs must be finite"),
    ],
)
def test_bad_inputs(settings, arguments, message):
    with pytest.raises(InvalidInput, match=message):
        mb.LabelCleaner(**settings).fit(**{"X": X_GOOD, "y": Y_GOOD, **arguments})


@pytest.mark.parametrize("estimator", [GaussianNB, object(), "forest"])
def test_what_is_no_classifier_is_told_by_fit(estimator):
    """Before that, scikit-learn asks for tags, and predict says that the model is not fitted."""
    model = mb.LabelCleaner(estimator)
    with pytest.raises(NotFittedError):
        model.predict(np.zeros((1, 2)))
    with pytest.raises(InvalidInput, match=r"^estimator must be None or a scikit-learn classifier"):
        model.fit(np.zeros((6, 2)), [0, 1] * 3)
