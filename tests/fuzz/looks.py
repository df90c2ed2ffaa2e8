"""What is looked at in an answer, whatever it was made from."""

import warnings
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

import mixbin as mb
from tests.fuzz import strategies as odd
from tests.fuzz.strategies import REFUSED, tried

METHODS = {"penalize": mb.relax_and_penalize, "round": mb.relax_and_round}


def look_at_result(result, problem, most=None):
    """What every result promises."""
    theta_set = problem.theta_set
    assert result.theta.shape == theta_set.shape
    if result.theta.dtype == bool:
        assert result.violation == theta_set.violation(result.theta)
        assert (result.violation > 0) == (result.status is mb.Status.INFEASIBLE)
    else:
        assert result.status is mb.Status.RELAXED or result.status is mb.Status.STOPPED
        assert theta_set.contains(result.theta)
    assert problem.lam_set.contains(result.lam)
    assert not np.isnan(result.value)
    assert result.value > -np.inf
    assert most is None or result.n_evaluations <= most
    for text in (repr(result), str(result.certificate), result._repr_html_(), result.message):
        assert text
    if result.certificate is not None:
        assert not np.isnan(result.certificate.epsilon_star)
        assert result.certificate.one_move_optimal in (True, False, None)
    if len(result.trace):
        result.trace.to_frame()


def look_at_problem(data, problem, most=20, about=()):
    """One evaluation at the centre, the model of a vertex and a short run."""
    theta_set = problem.theta_set
    lam = problem.lam_set.start()
    about = (*about, "alpha", "X", "columns", "theta0", "lam0", "value", "targets")
    got = tried(problem.evaluate, theta_set.start(), lam, about=about)
    if got is not REFUSED:
        # What is not finite is told by the method that asks for it.
        assert np.isscalar(got.value)
    assert len(problem.fingerprint()) > 10
    vertex = theta_set.vertex(theta_set.start())
    method = data.draw(st.sampled_from(sorted(METHODS)))
    result = tried(METHODS[method], problem, seed=0, max_evaluations=data.draw(st.integers(2, most)), starts=1, about=about)
    if result is not REFUSED:
        look_at_result(result, problem)
    if hasattr(problem, "model") and vertex.any():
        model = tried(problem.model, vertex, lam, about=about)
        if model is not REFUSED and result is not REFUSED:
            assert all(np.isfinite(part).all() for part in model)
    if data.draw(st.booleans()):
        theta, other = data.draw(odd.arrays(theta_set.shape)), data.draw(odd.arrays(problem.lam_set.shape))
        tried(problem.model if hasattr(problem, "model") else problem.coef, theta, other, about=about)


def fitted(call, *args, about=(), also=(), **keywords):
    """``tried``, without the warnings that are a convention of scikit-learn."""

    def inner():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataConversionWarning)
            warnings.filterwarnings("ignore", message=".*feature names")
            warnings.filterwarnings("ignore", message=".*(validation rows for|rows that were not kept|rows judge)")
            return call(*args, **keywords)

    return tried(inner, about=(*about, *odd.names_of(call)), also=also)


def sets_of(model):
    """Where the answer of an estimator lives: it keeps the answer, not the problem."""
    result = model.result_
    theta_set = SimpleNamespace(
        shape=result.theta.shape,
        violation=lambda theta: result.violation,
        contains=lambda theta: bool(np.all((theta >= -1e-9) & (theta <= 1 + 1e-9))),
    )
    return SimpleNamespace(theta_set=theta_set, lam_set=SimpleNamespace(contains=lambda lam: bool(np.isfinite(lam).all())))


def limited(keywords):
    """No more evaluations than an example has time for."""
    keywords.setdefault("max_evaluations", 10)
    if keywords["max_evaluations"] is None or isinstance(keywords["max_evaluations"], int | np.integer):
        keywords["max_evaluations"] = min(keywords["max_evaluations"] or 10, 15)
    return keywords


def drawn(figure):
    """Through the whole of matplotlib, not just put together."""
    with warnings.catch_warnings():
        # The fonts of a machine are not ours.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.canvas.draw()
