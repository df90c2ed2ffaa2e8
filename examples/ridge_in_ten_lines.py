"""The paper's ridge problem - which rows to keep - written with mb.bilevel, beside mixbin's own RidgeDistillation.

python examples/ridge_in_ten_lines.py
"""

import numpy as np
from sklearn.datasets import load_diabetes

import mixbin as mb


def problems(rows=None, budget=0.1):
    """The same problem twice: in ten lines, and as mixbin has it."""
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:rows] * 20, y[:rows] / 80
    (X, X_val), (y, y_val) = np.array_split(X, 2), np.array_split(y, 2)
    known = mb.RidgeDistillation(X, y, X_val, y_val, budget=budget)

    # The ten lines.
    def inner(w, v, s):
        return (v * (X @ w["W"] + w["b"] - y) ** 2).mean() + s * (w["W"] ** 2).sum()

    def outer(w, v, s):
        return 0.5 * ((X_val @ w["W"] + w["b"] - y_val) ** 2).mean()

    w0 = {"W": np.zeros(X.shape[1]), "b": 0.0}
    written = mb.bilevel(outer, inner, w0, theta_set=mb.Budget(len(X), budget), lam_set=mb.Box(*known.alpha, log=True))
    return written, known


if __name__ == "__main__":
    written, known = problems()
    for name, problem in (("mb.bilevel", written), ("RidgeDistillation", known)):
        result = mb.relax_and_penalize(problem, seed=0)
        print(f"{name:18} {result.n_selected} rows, validation loss {result.value:.6f}, alpha {float(result.lam):.3g}")
