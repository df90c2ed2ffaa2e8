"""Which edges of a graph to keep: a graph convolution with a closed-form fit, judged by validation nodes.

    python examples/graph_edges.py wine                    # one split
    python examples/graph_edges.py wine breast_cancer digits --splits 5 --out edges.json

The graph joins each row to its 5 nearest neighbours. theta has one entry for each edge, which stands for both directions, so the
matrix stays symmetric. The model is a ridge regression of the classes on rows smoothed twice by the normalised graph. Half of the
edges are kept. The last line of the table is the control that matters: all edges, with the validation labels used for training.
Needs mixbin[torch].
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler
from torch.nn.functional import one_hot

import mixbin as mb

NEIGHBOURS, RIDGE, MOST_ROWS = 5, 1e-2, 600


def load(name):
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if len(y) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, random_state=0, stratify=y)
    return StandardScaler().fit_transform(X), y


class Classes(torch.nn.Module):
    """The coefficients; what is fitted is in ``Graph.fit``."""

    def __init__(self, features, classes):
        super().__init__()
        self.W = torch.nn.Parameter(torch.zeros(features, classes, dtype=torch.float64))


class Graph:
    """Rows, classes and edges; all functions of theta, a weight in [0, 1] for each edge."""

    def __init__(self, X, y):
        near = kneighbors_graph(X, NEIGHBOURS).toarray() > 0
        self.i, self.j = map(torch.from_numpy, np.nonzero(np.triu(near | near.T, 1)))
        self.n, self.n_edges = len(y), len(self.i)
        self.X = torch.tensor(np.hstack([X / np.sqrt(X.shape[1]), np.ones((len(y), 1))]))
        self.y = torch.tensor(y)
        self.Y = one_hot(self.y).double()

    def smoothed(self, theta):
        """The rows after two steps of averaging over neighbours, with theta as weights."""
        A = torch.eye(self.n, dtype=torch.float64).index_put((self.i, self.j), theta).index_put((self.j, self.i), theta)
        scale = A.sum(dim=1) ** -0.5
        S = scale[:, None] * A * scale
        return S @ (S @ self.X)

    def loss(self, W, theta, nodes):
        """The squared error of some nodes."""
        return ((self.smoothed(theta)[nodes] @ W - self.Y[nodes]) ** 2).sum(dim=1).mean()

    def fit(self, theta, nodes):
        """The coefficients for some nodes, in closed form."""
        Z = self.smoothed(theta)[nodes]
        eye = torch.eye(Z.shape[1], dtype=Z.dtype)
        return torch.linalg.solve(Z.T @ Z / len(nodes) + RIDGE * eye, Z.T @ self.Y[nodes] / len(nodes))

    def accuracy(self, theta, nodes, test):
        """The accuracy on the nodes ``test`` of a fit to ``nodes``."""
        theta = torch.tensor(np.asarray(theta, dtype=np.float64))
        guess = (self.smoothed(theta)[test] @ self.fit(theta, nodes)).argmax(dim=1)
        return float((guess == self.y[test]).double().mean())

    def problem(self, train, val):
        """Which half of the edges to keep: fitted to ``train``, judged by ``val``."""
        return mb.torch.bilevel(
            Classes(self.X.shape[1], self.Y.shape[1]),
            inner=lambda m, theta, lam, batch: self.loss(m.W, theta, train) + RIDGE * (m.W**2).sum(),
            outer=lambda m, theta, lam, batch: self.loss(m.W, theta, val),
            theta_set=mb.Budget(self.n_edges, 0.5),
            lower=mb.OwnSolver(lambda m, theta, lam: [self.fit(theta, train)]),
            hypergradient=mb.Implicit("cg", tol=1e-6),
        )


def compare(name, split, evaluations=60):
    """Test accuracy of each way to choose edges, on nodes that no label of was used."""
    X, y = load(name)
    graph = Graph(X, y)
    rest, test = train_test_split(np.arange(len(y)), test_size=0.6, random_state=split, stratify=y)
    train, val = train_test_split(rest, test_size=0.5, random_state=split, stratify=y[rest])
    settings = {"starts": 1, "seed": split, "max_evaluations": evaluations}
    problem = graph.problem(train, val)
    half = np.random.default_rng(split).permutation(graph.n_edges) < graph.n_edges // 2
    start = time.process_time()
    found = mb.relax_and_penalize(problem, **settings)
    seconds = time.process_time() - start
    every = np.ones(graph.n_edges)
    return {
        "all edges": graph.accuracy(every, train, test),
        "random half": graph.accuracy(half, train, test),
        "relaxed, top half": graph.accuracy(mb.relax_and_round(problem, **settings).theta, train, test),
        "mixbin": graph.accuracy(found.theta, train, test),
        "mixbin, refitted with the validation labels": graph.accuracy(found.theta, rest, test),
        "all edges, trained with the validation labels": graph.accuracy(every, rest, test),
        "seconds": round(seconds, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=["wine"])
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--out", type=Path)
    typed = parser.parse_args()
    torch.set_num_threads(1)
    cells = json.loads(typed.out.read_text()) if typed.out and typed.out.exists() else {}
    for name in typed.tables:
        for split in range(typed.splits):
            if f"{name}/{split}" not in cells:
                cells[f"{name}/{split}"] = compare(name, split)
                if typed.out:
                    typed.out.write_text(json.dumps(cells, indent=1) + "\n")
        rows = [cell for key, cell in cells.items() if key.startswith(f"{name}/")]
        print(f"\n{name}, {len(rows)} splits: test accuracy (standard deviation)")
        for way in rows[0]:
            print(f"  {way:46s} {np.mean([it[way] for it in rows]):.3f} ({np.std([it[way] for it in rows]):.3f})")


if __name__ == "__main__":
    main()
