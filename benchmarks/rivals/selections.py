"""Published ways to choose k rows of a table; each gets columns in standard units and targets, and returns rows and weights.

Those that look at no model see the targets as one more column, which helps all of them. Weights are None where rows count alike.
"""

import numpy as np
from benchmarks.kernel_rows import near_centres

MOST_PAIRS = 4_000
"""Methods that compare all pairs of rows get at most this many random rows to choose from: 4,000 squared are 128 MB."""
FEATURES = 400
"""Random Fourier features, with which herding approximates a Gaussian kernel."""

Chosen = tuple[np.ndarray, np.ndarray | None]


def joined(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The columns and, in standard units, the target."""
    return np.column_stack([Z, (y - y.mean()) / max(y.std(), 1e-12)])


def random(Z: np.ndarray, y: np.ndarray, k: int, rng: np.random.Generator) -> Chosen:
    return rng.choice(len(y), k, replace=False), None


def leverage(Z: np.ndarray, y: np.ndarray, k: int, rng: np.random.Generator) -> Chosen:
    """Rows drawn by their leverage scores, each with the inverse of its probability as weight (Drineas, Mahoney and others)."""
    Q = np.linalg.qr(joined(Z, y))[0]
    scores = np.maximum((Q * Q).sum(axis=1), 1e-12)
    share = scores / scores.sum()
    rows = rng.choice(len(y), k, replace=False, p=share)
    return rows, 1.0 / (len(y) * share[rows])


def k_means(Z: np.ndarray, y: np.ndarray, k: int, rng: np.random.Generator) -> Chosen:
    return near_centres(joined(Z, y), k, int(rng.integers(2**31))), None


def k_centre(Z: np.ndarray, y: np.ndarray, k: int, rng: np.random.Generator) -> Chosen:
    """Farthest first: each row is the one that is farthest from those chosen before (Gonzalez 1985)."""
    A = joined(Z, y)
    squares = (A * A).sum(axis=1)
    rows = [int(rng.integers(len(y)))]
    distance = np.full(len(y), np.inf)
    while len(rows) < k:
        last = A[rows[-1]]
        distance = np.minimum(distance, squares - 2 * A @ last + last @ last)
        rows.append(int(distance.argmax()))
    return np.array(rows), None


def d_optimal(Z: np.ndarray, y: np.ndarray, k: int, rng: np.random.Generator) -> Chosen:
    """Exchanges that raise the determinant of the information matrix, until none of the best pair does (Fedorov, Mitchell)."""
    A = np.column_stack([Z, np.ones(len(y))])
    kept = np.zeros(len(y), dtype=bool)
    kept[rng.choice(len(y), k, replace=False)] = True
    inverse = np.linalg.inv(A[kept].T @ A[kept] + 1e-6 * np.eye(A.shape[1]))
    spread = ((A @ inverse) * A).sum(axis=1)
    for count in range(20 * k):
        inside, outside = np.flatnonzero(kept), np.flatnonzero(~kept)
        off, on = inside[spread[inside].argmin()], outside[spread[outside].argmax()]
        across = A[off] @ inverse @ A[on]
        if (1 + spread[on]) * (1 - spread[off]) + across**2 <= 1 + 1e-6:
            break
        for row, sign in ((on, 1.0), (off, -1.0)):
            u = inverse @ A[row]
            scale = sign / (1 + sign * A[row] @ u)
            inverse -= scale * np.outer(u, u)
            spread -= scale * (A @ u) ** 2
        kept[[off, on]] = kept[[on, off]]
        if count % 200 == 199:  # rounding errors of the updates add up
            inverse = np.linalg.inv(A[kept].T @ A[kept] + 1e-6 * np.eye(A.shape[1]))
            spread = ((A @ inverse) * A).sum(axis=1)
    return np.flatnonzero(kept), None


def herding(Z: np.ndarray, y: np.ndarray, k: int, rng: np.random.Generator) -> Chosen:
    """Kernel herding (Chen, Welling and Smola 2010): rows whose mean in feature space follows that of all rows."""
    A = joined(Z, y)
    width = np.sqrt(A.shape[1])
    lifted = A @ rng.normal(size=(A.shape[1], FEATURES)) / width + rng.uniform(0, 2 * np.pi, FEATURES)
    lifted = np.cos(lifted, out=lifted)
    mean = lifted.mean(axis=0)
    w, free, rows = mean.copy(), np.ones(len(y), dtype=bool), []
    while len(rows) < k:
        scores = lifted @ w
        scores[~free] = -np.inf
        rows.append(int(scores.argmax()))
        free[rows[-1]] = False
        w += mean - lifted[rows[-1]]
    return np.array(rows), None


def some_rows(m: int, k: int, rng: np.random.Generator) -> np.ndarray:
    return np.arange(m) if m <= MOST_PAIRS else rng.choice(m, max(MOST_PAIRS, k), replace=False)


def facility_location(Z: np.ndarray, y: np.ndarray, k: int, rng: np.random.Generator) -> Chosen:
    """The rows to which all rows are near, by the greedy algorithm of apricot."""
    from apricot import FacilityLocationSelection

    some = some_rows(len(y), k, rng)
    chosen = FacilityLocationSelection(k, metric="euclidean", optimizer="lazy", verbose=False).fit(joined(Z, y)[some])
    return some[chosen.ranking], None


def coreax_cholesky(Z: np.ndarray, y: np.ndarray, k: int, rng: np.random.Generator) -> Chosen:
    """Randomly pivoted Cholesky of the Gaussian kernel matrix, by coreax."""
    import jax
    from coreax import Data, SquaredExponentialKernel
    from coreax.solvers import RPCholesky

    A = joined(Z, y)
    kernel = SquaredExponentialKernel(length_scale=float(np.sqrt(A.shape[1])))
    solver = RPCholesky(coreset_size=k, random_key=jax.random.key(int(rng.integers(2**31))), kernel=kernel)
    coreset, _ = solver.reduce(Data(A.astype(np.float32)))
    return np.unique(np.asarray(coreset.unweighted_indices)), None


def coreax_herding(Z: np.ndarray, y: np.ndarray, k: int, rng: np.random.Generator) -> Chosen:
    """Kernel herding of coreax on the kernel matrix itself, of at most 4,000 rows."""
    from coreax import Data, SquaredExponentialKernel
    from coreax.solvers import KernelHerding

    some = some_rows(len(y), k, rng)
    A = joined(Z, y)[some]
    kernel = SquaredExponentialKernel(length_scale=float(np.sqrt(A.shape[1])))
    coreset, _ = KernelHerding(coreset_size=k, kernel=kernel, unique=True).reduce(Data(A.astype(np.float32)))
    return some[np.unique(np.asarray(coreset.unweighted_indices))], None
