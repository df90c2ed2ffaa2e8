"""The pages of docs/ and the programs of examples/ do what they say."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


def example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_how_few_rows():
    first, kernel = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "how-few-rows.md").read_text(), flags=re.S)
    names = {}
    exec(first, names)
    model, curve = names["model"], names["curve"]
    assert model.excess_ <= 0.01
    assert min(model.budget_path_) < model.budget_ < 60
    assert np.all(curve.excess < curve.random_excess)
    exec(kernel, names)
    assert names["rows"].sum() == 200


@pytest.mark.slow
def test_your_own_model(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "your-own-model.md").read_text(), flags=re.S)
    assert len(code.splitlines()) < 40
    names = {}
    exec(code, names)
    assert "BINARY" in capsys.readouterr().out
    assert names["result"].theta.sum() == 40
    assert names["result"].theta[names["spoilt"]].sum() <= 3


def test_which_features():
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "which-features.md").read_text(), flags=re.S)
    names = {}
    exec(code, names)
    assert names["selector"].get_support(indices=True).tolist() == [3, 7, 20]
    assert (names["selector"].gap_, names["selector"].proved_) == (0.0, True)
    assert names["selector"].transform(names["X"]).shape == (200, 3)


@pytest.mark.slow
def test_label_cleaning():
    cleaner, score, accuracy = example("label_cleaning").clean(0.3, seed=0, n_train=300)
    assert score > 0.85
    assert accuracy > 0.85
    assert cleaner.guard_ is not None


@pytest.mark.slow
def test_ridge_in_ten_lines():
    written, known = example("ridge_in_ten_lines").problems(rows=60, budget=6)
    theta, lam = known.theta_set.start(np.random.default_rng(0)), known.lam_set.start()
    a, b = known.evaluate(theta, lam), written.evaluate(theta, lam)
    np.testing.assert_allclose(b.value, a.value, rtol=1e-8)
    np.testing.assert_allclose(b.grad_theta, a.grad_theta, rtol=1e-8, atol=1e-10)
