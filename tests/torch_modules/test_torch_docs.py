"""The pages about PyTorch do what they say."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'mixbin[torch]'")

import mixbin as mb

ROOT = Path(__file__).resolve().parent.parent.parent
torch.set_num_threads(1)


def ran(page):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), flags=re.S)
    names = {}
    exec(code, names)
    return names


@pytest.mark.slow
def test_jax_or_pytorch(capsys):
    names = ran("jax-or-pytorch.md")
    assert names["result"].theta.sum() == 40
    assert names["result"].theta[:20].sum() <= 3
    assert isinstance(names["trained"], torch.nn.Sequential)
    assert mb.torch.Implicit is mb.Implicit


@pytest.mark.slow
def test_the_edges_of_a_graph():
    """Symmetric edges: the hypergradient against differences, and a short comparison."""
    spec = importlib.util.spec_from_file_location("graph_edges", ROOT / "examples" / "graph_edges.py")
    edges = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(edges)
    X, y = edges.load("wine")
    graph = edges.Graph(X[::4], y[::4])
    smooth = graph.smoothed(torch.rand(graph.n_edges, dtype=torch.float64))
    assert smooth.shape == (45, 14)
    problem = graph.problem(np.arange(0, 45, 3), np.arange(1, 45, 3))
    assert mb.check_gradient(problem, seed=0).ok
    got = edges.compare("wine", 0, evaluations=8)
    assert got["all edges"] > 0.9
    assert got["mixbin"] > 0.9


@pytest.mark.slow
def test_a_networks_training_rows(capsys):
    names = ran("a-networks-training-rows.md")
    rows = names["rows"]
    assert len(rows.subset_) == 100
    assert names["wrong"][rows.support_].float().mean() < 0.1
    assert rows.choice_ != "at random"


@pytest.mark.ci
def test_pruning(capsys):
    names = ran("pruning.md")
    assert abs(names["pruned"].kept - 0.1) < 1e-3
    assert "10.0% of the weights kept" in capsys.readouterr().out
