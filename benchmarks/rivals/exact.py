"""Exact and global methods on tiny instances: up to which size they end within their limit, and how often mixbin has the optimum.

Two kinds of tables. "quadratic": 1/2 x'Qx + c'x over all binary x of n entries, where Q is full. "distillation": which n/2 of n
rows a ridge regression on three columns is trained on, judged by 20 validation rows; the mixed-integer form replaces the
regression by its equations, whose products theta_i w_j are linearised, and the squared loss by cuts (docs/maths.md, "Data
distillation"). The value-function network follows Zhou et al. (2024) in small: a ReLU network learns G from sampled points, HiGHS
minimises the network over binary theta, the answer joins the sample, and so on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from benchmarks.rivals.cells import Cell, Family, Method, Quantity, Record
from benchmarks.rivals.compare import good, mean
from scipy.optimize import Bounds, LinearConstraint, milp

import mixbin as mb

LIMIT, QUICK_LIMIT = 60.0, 10.0
COLUMNS, VALIDATION, STRENGTH = 3, 20, 0.05
SIZES = {"quadratic": (10, 16, 22, 26, 30, 40, 50), "distillation": (10, 14, 18, 22, 26)}
QUICK_LARGEST = 40
AT_ONCE = 1 << 15
"""So many binary points are evaluated at once by enumeration."""
GAP = 1e-6
"""The mixed-integer method ends when its bound is this near, relative to the value."""
SAMPLE, UNITS, ROUNDS = 400, 12, 4
"""Random points of the value-function network at first, its hidden units, and how often it is trained."""
EXACT = ("enumeration", "branch and bound", "mixed-integer (HiGHS)")
TEN = "mixbin, best of ten seeds"
LEVEL = 1e-7
"""Values that differ by this share are the same."""


@dataclass(frozen=True, eq=False)
class Quadratic:
    """1/2 x'Qx + c'x with zeros on the diagonal of Q."""

    Q: np.ndarray
    c: np.ndarray

    @property
    def n(self) -> int:
        return len(self.c)

    def problem(self) -> mb.Problem:
        return mb.QuadraticProblem(self.Q, self.c, mb.Hypercube(self.n))

    def values(self, points: np.ndarray) -> np.ndarray:
        """G of each row."""
        return 0.5 * ((points @ self.Q) * points).sum(axis=1) + points @ self.c

    def points(self) -> Iterator[np.ndarray]:
        """All binary points, many at once."""
        bits = np.arange(self.n)
        for first in range(0, 2**self.n, AT_ONCE):
            numbers = np.arange(first, min(first + AT_ONCE, 2**self.n), dtype=np.int64)
            yield ((numbers[:, None] >> bits) & 1).astype(np.float64)

    def random(self, number: int, rng: np.random.Generator) -> np.ndarray:
        return (rng.random((number, self.n)) < 0.5).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Ridge:
    """n rows with a column of ones, of which half are kept, and validation rows."""

    X: np.ndarray
    y: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def kept(self) -> int:
        return self.n // 2

    @property
    def penalty(self) -> np.ndarray:
        """That of the equations: n times the strength for the coefficients, none for the intercept."""
        return np.diag([*np.full(COLUMNS, self.n * STRENGTH), 0.0])

    def problem(self) -> mb.Problem:
        plain = slice(0, COLUMNS)
        return mb.RidgeDistillation(self.X[:, plain], self.y, self.X_val[:, plain], self.y_val, budget=self.kept, alpha=STRENGTH)

    def values(self, points: np.ndarray) -> np.ndarray:
        outer = self.X[:, :, None] * self.X[:, None, :]
        M = np.tensordot(points, outer, axes=1) + self.penalty
        w = np.linalg.solve(M, (points @ (self.X * self.y[:, None]))[:, :, None])[:, :, 0]
        return 0.5 * np.mean((w @ self.X_val.T - self.y_val) ** 2, axis=1)

    def points(self) -> Iterator[np.ndarray]:
        every = combinations(range(self.n), self.kept)
        while chosen := list(islice(every, AT_ONCE)):
            points = np.zeros((len(chosen), self.n))
            points[np.arange(len(chosen))[:, None], np.array(chosen)] = 1.0
            yield points

    def random(self, number: int, rng: np.random.Generator) -> np.ndarray:
        return (rng.permuted(np.tile(np.arange(self.n), (number, 1)), axis=1) < self.kept).astype(np.float64)


def load(table: str, seed: int) -> dict[str, Quadratic | Ridge]:
    """The instances of all sizes."""
    return {sized(n): draw(table, n, np.random.default_rng([seed, n, 25])) for n in SIZES[table]}


def sized(n: int) -> str:
    return f"{n} variables"


def draw(table: str, n: int, rng: np.random.Generator) -> Quadratic | Ridge:
    if table == "quadratic":
        upper = np.triu(rng.integers(-100, 101, (n, n)), 1).astype(np.float64)
        return Quadratic(upper + upper.T, rng.integers(-100, 101, n).astype(np.float64))
    coef = rng.normal(size=COLUMNS)
    X = np.column_stack([rng.normal(size=(n + VALIDATION, COLUMNS)), np.ones(n + VALIDATION)])
    y = X[:, :COLUMNS] @ coef + rng.standard_t(3.0, n + VALIDATION)
    return Ridge(X[:n], y[:n], X[n:], y[n:])


def mixbin(data: dict[str, Quadratic | Ridge], cell: Cell, ours: object) -> np.ndarray:
    return mb.relax_and_penalize(data[cell.budget].problem(), seed=cell.seed).theta


def ten_seeds(data: dict[str, Quadratic | Ridge], cell: Cell, ours: object) -> np.ndarray:
    """The best of ten runs: whether a missed optimum is a matter of the beginnings of the search."""
    results = [mb.relax_and_penalize(data[cell.budget].problem(), seed=seed) for seed in range(10)]
    return min(results, key=lambda result: result.value).theta


def enumeration(data: dict[str, Quadratic | Ridge], cell: Cell, ours: object) -> np.ndarray:
    it, best = data[cell.budget], (np.inf, np.empty(0))
    for points in it.points():
        values = it.values(points)
        k = int(values.argmin())
        best = min(best, (float(values[k]), points[k]), key=lambda pair: pair[0])
    return best[1]


def branch_and_bound(data: dict[str, Quadratic | Ridge], cell: Cell, ours: object) -> np.ndarray:
    """Depth first over the variables of a quadratic; the bound lets every free variable choose for itself, pair by pair."""
    it = data[cell.budget]
    assert isinstance(it, Quadratic)
    order = np.argsort(-np.abs(it.Q).sum(axis=1))
    Q, c, n = it.Q[np.ix_(order, order)], it.c[order], it.n
    # Each pair is counted half at each end: what a free variable can gain from the free ones.
    gains = [0.5 * np.minimum(Q[d:, d:], 0.0).sum(axis=1) for d in range(n)]
    x = descended(Quadratic(Q, c), np.zeros(n))
    best = [float(Quadratic(Q, c).values(x[None])[0]), x]
    at = np.zeros(n)

    def visit(d: int, value: float, linear: np.ndarray) -> None:
        """``linear`` has the costs of the free variables, given those that are fixed."""
        if d == n:
            if value < best[0] - 1e-9:
                best[:] = value, at.copy()
            return
        if value + np.minimum(linear + gains[d], 0.0).sum() >= best[0] - 1e-9:
            return
        on = bool(linear[0] + gains[d][0] < 0)
        for bit in (on, not on):
            at[d] = bit
            visit(d + 1, value + bit * linear[0], linear[1:] + Q[d, d + 1 :] if bit else linear[1:])
        at[d] = 0.0

    visit(0, 0.0, c)
    out = np.empty(n)
    out[order] = best[1]
    return out


def descended(it: Quadratic, x: np.ndarray) -> np.ndarray:
    """Single flips until none lowers the value."""
    while True:
        change = (1 - 2 * x) * (it.Q @ x + it.c)
        k = int(change.argmin())
        if change[k] >= 0:
            return x
        x = x.copy()
        x[k] = 1 - x[k]


def mixed_integer(data: dict[str, Quadratic | Ridge], cell: Cell, ours: object) -> np.ndarray:
    it = data[cell.budget]
    return linearised(it) if isinstance(it, Quadratic) else equations(it)


def linearised(it: Quadratic) -> np.ndarray:
    """A variable z = x_i x_j for each pair: below both, and at least x_i + x_j - 1 where a large z is dear."""
    i, j = np.triu_indices(it.n, 1)
    cost, m = it.Q[i, j], len(i)
    cheap, dear, rows = np.flatnonzero(cost < 0), np.flatnonzero(cost > 0), []
    for end in (i, j):
        A = np.zeros((len(cheap), it.n + m))
        A[np.arange(len(cheap)), it.n + cheap], A[np.arange(len(cheap)), end[cheap]] = 1.0, -1.0
        rows.append(LinearConstraint(A, -np.inf, 0.0))
    A = np.zeros((len(dear), it.n + m))
    A[np.arange(len(dear)), i[dear]] = A[np.arange(len(dear)), j[dear]] = 1.0
    A[np.arange(len(dear)), it.n + dear] = -1.0
    rows.append(LinearConstraint(A, -np.inf, 1.0))
    whole = np.r_[np.ones(it.n), np.zeros(m)]
    found = milp(np.r_[it.c, cost], integrality=whole, bounds=Bounds(0.0, 1.0), constraints=rows, options={"mip_rel_gap": 0.0})
    return np.round(found.x[: it.n])


def equations(it: Ridge) -> np.ndarray:
    """Variables theta, w, z_ij = theta_i w_j and t, a bound of the loss from below by cuts; as many rounds as it takes."""
    n, p = it.X.shape
    # The penalised loss at w is at most that at 0 with the best intercept, which bounds w, and so the intercept.
    most = np.sqrt(((it.y - it.y.mean()) ** 2).sum() / (n * STRENGTH))
    level = np.abs(it.y).max() + most * np.linalg.norm(it.X[:, :-1], axis=1).max()
    W = np.array([*np.full(p - 1, most), level])
    at_w, at_z, at_t, size = n, n + p, n + p + n * p, n + p + n * p + 1
    rows = []
    A = np.zeros((p, size))  # sum_i x_i (x_i'z_i - y_i theta_i) + penalty w = 0
    A[:, :n] = -(it.X * it.y[:, None]).T
    A[:, at_w:at_z] = it.penalty
    A[:, at_z:at_t] = (it.X[:, :, None] * it.X[:, None, :]).transpose(1, 0, 2).reshape(p, n * p)
    rows.append(LinearConstraint(A, 0.0, 0.0))
    rows.append(LinearConstraint(np.r_[np.ones(n), np.zeros(size - n)][None], it.kept, it.kept))
    for sign in (1.0, -1.0):
        kept, free = np.zeros((n * p, size)), np.zeros((n * p, size))
        entry = np.arange(n * p)
        i, j = np.divmod(entry, p)
        kept[entry, at_z + entry], kept[entry, i] = sign, -W[j]  # |z| <= W theta
        free[entry, at_z + entry], free[entry, at_w + j], free[entry, i] = sign, -sign, W[j]  # |z - w| <= W (1 - theta)
        rows += [LinearConstraint(kept, -np.inf, 0.0), LinearConstraint(free, -np.inf, W[j])]
    H, g = it.X_val.T @ it.X_val / len(it.y_val), it.X_val.T @ it.y_val / len(it.y_val)
    constant = 0.5 * float(np.mean(it.y_val**2))
    low, high = np.r_[np.zeros(n), -W, -np.tile(W, n), 0.0], np.r_[np.ones(n), W, np.tile(W, n), np.inf]
    whole, cost = np.r_[np.ones(n), np.zeros(size - n)], np.r_[np.zeros(size - 1), 1.0]
    w = np.linalg.solve(H + 1e-9 * np.eye(p), g)
    best = np.inf, np.empty(0)
    while True:
        A = np.zeros((1, size))  # t >= loss(w0) + slope'(w - w0)
        A[0, at_w:at_z], A[0, at_t] = H @ w - g, -1.0
        rows.append(LinearConstraint(A, -np.inf, 0.5 * w @ H @ w - constant))
        found = milp(cost, integrality=whole, bounds=Bounds(low, high), constraints=rows, options={"mip_rel_gap": GAP})
        theta, w = np.round(found.x[:n]), found.x[at_w:at_z]
        best = min(best, (float(it.values(theta[None])[0]), theta), key=lambda pair: pair[0])
        if found.mip_dual_bound >= best[0] * (1 - GAP):
            return best[1]


def network(data: dict[str, Quadratic | Ridge], cell: Cell, ours: object) -> np.ndarray:
    from sklearn.neural_network import MLPRegressor

    it, rng = data[cell.budget], np.random.default_rng([cell.seed, 11])
    points = it.random(SAMPLE, rng)
    values = it.values(points)
    for _ in range(ROUNDS):
        centre, spread = values.mean(), values.std()
        model = MLPRegressor(hidden_layer_sizes=(UNITS,), solver="lbfgs", alpha=1e-3, max_iter=1_000, random_state=cell.seed)
        model.fit(points, (values - centre) / spread)
        theta = least_of_network(model, it.kept if isinstance(it, Ridge) else None)
        near = np.abs(theta - (rng.random((50, it.n)) < 2 / it.n)) if isinstance(it, Quadratic) else swapped(theta, 50, rng)
        points = np.vstack([points, theta, near])
        values = np.r_[values, it.values(np.vstack([theta, near]))]
    return points[values.argmin()]


def swapped(theta: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    out = np.tile(theta, (number, 1))
    for row in out:
        row[[rng.choice(np.flatnonzero(theta)), rng.choice(np.flatnonzero(theta == 0))]] = 0.0, 1.0
    return out


def least_of_network(model, kept: int | None) -> np.ndarray:
    """The binary point with the least output of a network with one hidden layer of ReLU, by HiGHS."""
    (A, a), b = model.coefs_, model.intercepts_[0]
    n, units = A.shape
    # Variables: theta, h = max(0, u), and whether u > 0, where u = theta'A + b lies between low and high.
    low, high = b + np.minimum(A, 0.0).sum(axis=0), b + np.maximum(A, 0.0).sum(axis=0)
    eye, none = np.eye(units), np.zeros((units, units))
    rows = [
        LinearConstraint(np.hstack([A.T, -eye, none]), -np.inf, -b),  # h >= u
        LinearConstraint(np.hstack([-A.T, eye, -np.diag(np.minimum(low, 0.0))]), -np.inf, b - np.minimum(low, 0.0)),
        LinearConstraint(np.hstack([np.zeros((units, n)), eye, -np.diag(np.maximum(high, 0.0))]), -np.inf, 0.0),
    ]
    if kept is not None:
        rows.append(LinearConstraint(np.r_[np.ones(n), np.zeros(2 * units)][None], kept, kept))
    bounds = Bounds(np.zeros(n + 2 * units), np.r_[np.ones(n), np.maximum(high, 0.0), np.ones(units)])
    whole = np.r_[np.ones(n), np.zeros(units), np.ones(units)]
    found = milp(np.r_[np.zeros(n), a[:, 0], np.zeros(units)], integrality=whole, bounds=bounds, constraints=rows)
    return np.round(found.x[:n])


def measure(data: dict[str, Quadratic | Ridge], cell: Cell, answer: np.ndarray) -> dict[str, float]:
    it, theta = data[cell.budget], np.asarray(answer, dtype=np.float64)
    return {"judged": float(it.values(theta[None])[0])}


METHODS = {
    "mixbin": Method(mixbin),
    TEN: Method(ten_seeds),
    "enumeration": Method(enumeration),
    "branch and bound": Method(branch_and_bound),
    "mixed-integer (HiGHS)": Method(mixed_integer),
    "value-function network": Method(network, prepare=lambda: __import__("sklearn.neural_network")),
}


HARDEST = {("quadratic", "enumeration"): (30, 30), ("distillation", "mixed-integer (HiGHS)"): (14, 22)}
"""The largest size for a method, with --quick and without: what does not end at one size is not tried at larger ones."""


def tried(table: str, method: str, n: int, seed: int, quick: bool) -> bool:
    if method == "branch and bound" and table != "quadratic":
        return False
    largest = HARDEST.get((table, method), (n, n))[0 if quick else 1]
    return n <= largest and not (quick and (n > QUICK_LARGEST or (seed and n > SIZES[table][2])))


def cells(quick: bool) -> list[Cell]:
    return [
        Cell("exact", table, sized(n), seed, method, QUICK_LIMIT if quick else LIMIT)
        for table, sizes in SIZES.items()
        for seed in range(3 if quick else 10)
        for n in sizes
        for method in METHODS
        if tried(table, method, n, seed, quick)
    ]


def remarks(records: Sequence[Record]) -> list[str]:
    """Up to which size each method ends, and how often an answer is the optimum."""
    out = []
    for table in SIZES:
        mine = [it for it in records if it["table"] == table]
        for method in METHODS:
            its = [it for it in mine if it["method"] == method]
            if its:
                out.append(f"{table}: {method} {ended(its)}.")
        out += [found_by(method, table, mine) for method in ("mixbin", "value-function network") if mine]
    return out


def reasons(records: Sequence[Record]) -> list[str]:
    """Whether a missed optimum is found from other beginnings."""
    tables = {table: [it for it in records if it["table"] == table] for table in SIZES}
    return [found_by(method, table, its) for table, its in tables.items() for method in ("mixbin", TEN) if its]


def ended(its: Sequence[Record]) -> str:
    """The largest size at which a method ends, and the smallest at which it met the longest limit that it was given."""
    longest = max(it["limit"] for it in its)
    done: dict[int, list[Record]] = {}
    stuck = []
    for it in its:
        n = int(it["budget"].split()[0])
        if it["state"] == "ok":
            done.setdefault(n, []).append(it)
        elif it["limit"] == longest:
            stuck.append(n)
    sizes = [n for n in done if n not in stuck]
    told = f"ends at {max(sizes)} variables in {spent(done[max(sizes)]):.2g} s" if sizes else "ends at no size"
    return told + (f", and not within {longest:g} s at {min(stuck)}" if stuck else "")


def spent(its: Sequence[Record]) -> float:
    return mean([it["seconds"] for it in its])


def found_by(method: str, table: str, records: Sequence[Record]) -> str:
    known = hits = 0
    for methods in good(records).values():
        for seed, it in methods.get(method, {}).items():
            proven = [methods[name][seed]["measures"]["judged"] for name in EXACT if seed in methods.get(name, {})]
            if proven:
                known, best = known + 1, min(proven)
                hits += it["measures"]["judged"] <= best + LEVEL * abs(best)
    return f"{table}: {method} has the optimum in {hits} of {known} instances for which an exact method ended."


FAMILY = Family(
    name="exact",
    title="Exact and global methods on tiny instances",
    words=(
        f"Each instance has a limit of {LIMIT:g} s of processor time ({QUICK_LIMIT:g} s with --quick). Enumeration, branch and "
        "bound and the mixed-integer method end with the optimum or not at all."
    ),
    cells=cells,
    load=load,
    methods=METHODS,
    measure=measure,
    quantities=(Quantity("judged", "G of the answer", least=LEVEL),),
    references=frozenset({TEN}),
    remarks=remarks,
    reasons=reasons,
)
