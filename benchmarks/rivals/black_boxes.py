"""Optimisers that only ask for values of G, at equal evaluations and at equal seconds; and annealing of quadratic G.

Two kinds of tables. Distillations: which 10 % (or 5 %) of the candidate rows a ridge regression should be trained on, judged by
validation rows. Quadratics: 1/2 x'Qx + c'x over all binary x, with some 20 random entries in each row of Q. At "equal
evaluations" a rival may evaluate G as often as mixbin counts, but for at most CAP seconds; at "equal seconds" it has mixbin's
seconds. mixbin gets gradients, too; a gradient of a distillation costs about as much as two values.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from benchmarks.feature_tables import from_uci
from benchmarks.rivals.cells import Cell, Family, Method, Missing, Quantity, Record
from benchmarks.rivals.compare import good, mean
from scipy import sparse

import mixbin as mb

CAP = 5.0
"""The most seconds of processor time for a rival at equal evaluations."""
NEIGHBOURS, LARGEST = 20, 100
"""Entries in a row of Q, and the largest of them."""
QUADRATICS = {f"quadratic, {n:,} variables": n for n in (1_000, 4_000, 10_000)}
JUDGED_BY_ALL = "mixbin, judged by candidate and validation rows"
SWEEPS = 1_000
"""Sweeps of one read of dwave's annealing, its default."""


@dataclass(frozen=True)
class Distilled:
    """Sizes of a distillation: candidate rows, validation rows, rows kept."""

    rows: int
    validation: int
    kept: int


DISTILLATIONS = {
    "distillation, 200 rows of diabetes": Distilled(200, 100, 20),
    "distillation, 1,000 rows of elevators": Distilled(1_000, 1_000, 50),
    "distillation, 10,000 rows of elevators": Distilled(10_000, 3_000, 500),
}


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem without lam; its Q and c if it is quadratic; its parts, strength and test rows if it is a distillation."""

    problem: mb.RidgeDistillation | mb.QuadraticProblem
    quadratic: tuple[sparse.csr_array, np.ndarray] | None = None
    test: tuple[np.ndarray, np.ndarray] | None = None
    parts: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    strength: float = 0.0

    @property
    def n(self) -> int:
        return int(self.problem.theta_set.size)

    @property
    def kept(self) -> int | None:
        """How many entries are 1, if that is prescribed."""
        return int(self.problem.theta_set.k) if self.quadratic is None else None

    def value(self, theta: np.ndarray) -> float:
        return float(self.problem.evaluate(theta.astype(np.float64), np.empty(0), gradient=False).value)


@dataclass(eq=False)
class Answer:
    """The best binary point, how often G was evaluated, and when which value was there."""

    theta: np.ndarray
    evaluations: int
    path: list[tuple[float, float]] = field(default_factory=list)


def load(table: str, seed: int) -> Instance:
    rng = np.random.default_rng([seed, 25])
    if table in QUADRATICS:
        Q, c = random_quadratic(QUADRATICS[table], rng)
        return Instance(mb.QuadraticProblem(Q, c, mb.Hypercube(len(c))), (Q, c))
    size = DISTILLATIONS[table]
    X, y = _diabetes() if "diabetes" in table else from_uci("elevators")
    order = rng.permutation(len(y))
    train, val, test = np.split(order, np.cumsum([size.rows, size.validation]))
    centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
    Z, y = (X - centre) / np.where(spread > 1e-12, spread, 1.0), y / y[train].std()
    strength = 10.0 / size.rows
    problem = mb.RidgeDistillation(Z[train], y[train], Z[val], y[val], budget=size.kept, alpha=strength)
    parts = tuple((Z[rows], y[rows]) for rows in (train, val))
    return Instance(problem, test=(Z[test], y[test]), parts=parts, strength=strength)


def _diabetes() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_diabetes

    return load_diabetes(return_X_y=True)


def random_quadratic(n: int, rng: np.random.Generator) -> tuple[sparse.csr_array, np.ndarray]:
    """Whole numbers from -100 to 100, as in the instances of Beasley, in some 20 places of each row of Q."""
    i, j = rng.integers(n, size=(2, n * NEIGHBOURS // 2))
    i, j = i[i != j], j[i != j]
    entries = rng.integers(-LARGEST, LARGEST + 1, len(i)).astype(np.float64)
    Q = sparse.coo_array((np.r_[entries, entries], (np.r_[i, j], np.r_[j, i])), shape=(n, n)).tocsr()
    return Q, rng.integers(-LARGEST, LARGEST + 1, n).astype(np.float64)


def solved(problem: mb.Problem, cell: Cell) -> Answer:
    began, path = time.process_time(), []

    def watch(event: mb.progress.Event) -> None:
        if event.distance == 0 and (not path or event.value < path[-1][1]):
            path.append((time.process_time() - began, event.value))

    result = mb.relax_and_penalize(problem, seed=cell.seed, callbacks=[watch])
    return Answer(result.theta, result.n_evaluations, [*path, (time.process_time() - began, result.value)])


def mixbin(data: Instance, cell: Cell, ours: object) -> Answer:
    return solved(data.problem, cell)


def gradients_alone(data: Instance, cell: Cell, ours: object) -> Answer:
    """The same problem as a stranger's function: value and gradient, and nothing that knows what they are made of."""
    inner, lam = data.problem, np.empty(0)

    def both(theta: np.ndarray) -> tuple[float, np.ndarray]:
        at = inner.evaluate(theta, lam)
        return at.value, at.grad_theta

    return solved(mb.FunctionProblem(both, inner.theta_set, value=data.value), cell)


def judged_by_all(data: Instance, cell: Cell, ours: object) -> Answer:
    """The same rows to choose from, judged by the candidate and the validation rows, to see what the judge is to blame for."""
    train, val = data.parts
    everything = np.vstack([train[0], val[0]]), np.r_[train[1], val[1]]
    return solved(mb.RidgeDistillation(*train, *everything, budget=data.kept, alpha=data.strength), cell)


class Spent(Exception):
    """A rival has had its evaluations or its seconds."""


class Asked:
    """G as a rival sees it: values alone, as many as its budget allows; the best point is kept."""

    def __init__(self, data: Instance, cell: Cell, ours: Record | None) -> None:
        if ours is None:
            raise Missing("mixbin's own cell, which sets the budget, has no figures")
        equal = cell.budget == "equal evaluations"
        self.data, self.most = data, int(ours["measures"]["evaluations"]) if equal else 10**12
        self.seconds = CAP if equal else float(ours["seconds"])
        self.began, self.count = time.process_time(), 0
        self.best: np.ndarray | None = None
        self.least, self.path = np.inf, []

    def spent(self) -> bool:
        return self.count >= self.most or time.process_time() - self.began >= self.seconds

    def __call__(self, theta: np.ndarray) -> float:
        # The first value is for free: a rival that cannot even begin in time has a random point.
        if self.count and self.spent():
            raise Spent
        value = self.data.value(theta)
        self.count += 1
        if value < self.least:
            self.best, self.least = np.array(theta, dtype=bool), value
            self.path.append((time.process_time() - self.began, value))
        return value

    def of_slots(self, slots: Sequence[int]) -> np.ndarray:
        """The rows named by the slots; where two slots name the same row, the next free one."""
        theta = np.zeros(self.data.n, dtype=bool)
        for slot in slots:
            while theta[slot]:
                slot = (slot + 1) % len(theta)
            theta[slot] = True
        return theta

    def of_scores(self, scores: np.ndarray) -> np.ndarray:
        """The rows with the largest scores."""
        theta = np.zeros(self.data.n, dtype=bool)
        theta[np.argpartition(-scores, self.data.kept)[: self.data.kept]] = True
        return theta


Search = Callable[[Asked, np.random.Generator], None]


def black_box(search: Search, data: Instance, cell: Cell, ours: Record | None) -> Answer:
    asked, rng = Asked(data, cell, ours), np.random.default_rng([cell.seed, 3])
    asked(random_point(data, rng))
    with contextlib.suppress(Spent):
        search(asked, rng)
    return Answer(asked.best, asked.count, asked.path)


def random_point(data: Instance, rng: np.random.Generator) -> np.ndarray:
    if data.kept is None:
        return rng.random(data.n) < 0.5
    theta = np.zeros(data.n, dtype=bool)
    theta[rng.choice(data.n, data.kept, replace=False)] = True
    return theta


def random_search(asked: Asked, rng: np.random.Generator) -> None:
    while True:
        asked(random_point(asked.data, rng))


def annealing(asked: Asked, rng: np.random.Generator) -> None:
    """Metropolis steps of single flips, or of exchanges where the count is prescribed; the temperature falls to a thousandth."""
    at = random_point(asked.data, rng)
    value = asked(at)
    rises = [abs(asked(_neighbour(asked.data, at, rng)) - value) for _ in range(10)]
    first = max(float(np.mean(rises)), 1e-12)
    while True:
        used = max(asked.count / asked.most, (time.process_time() - asked.began) / asked.seconds)
        there = _neighbour(asked.data, at, rng)
        new = asked(there)
        if new <= value or rng.random() < np.exp((value - new) / (first * 1e-3**used)):
            at, value = there, new


def _neighbour(data: Instance, theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    there = theta.copy()
    if data.kept is None:
        flipped = int(rng.integers(data.n))
        there[flipped] = not there[flipped]
    else:
        there[[rng.choice(np.flatnonzero(theta)), rng.choice(np.flatnonzero(~theta))]] = False, True
    return there


def optuna(sampler_of: Callable[[int], object], asked: Asked, rng: np.random.Generator) -> None:
    """One categorical parameter per variable; where the count is prescribed, one per kept row, whose choices are the rows."""
    from optuna import create_study, logging
    from optuna.distributions import CategoricalDistribution

    logging.set_verbosity(logging.ERROR)
    data = asked.data
    study = create_study(sampler=sampler_of(int(rng.integers(2**31))))
    choices, number = ((0, 1), data.n) if data.kept is None else (range(data.n), data.kept)
    space = {f"x{i}": CategoricalDistribution(list(choices)) for i in range(number)}
    while not asked.spent():
        trial = study.ask(space)
        params = trial.params  # a copy, which takes long for many parameters
        values = [params[name] for name in space]
        study.tell(trial, asked(np.array(values, dtype=bool) if data.kept is None else asked.of_slots(values)))


def tpe(seed: int) -> object:
    from optuna.samplers import TPESampler

    return TPESampler(seed=seed, multivariate=True)


def univariate_tpe(seed: int) -> object:
    from optuna.samplers import TPESampler

    return TPESampler(seed=seed, multivariate=False)


def genetic(seed: int) -> object:
    from optuna.samplers import NSGAIISampler

    return NSGAIISampler(seed=seed)


def nevergrad(name: str, asked: Asked, rng: np.random.Generator) -> None:
    """0 and 1 as whole numbers; where the count is prescribed, rows by number for the discrete optimiser, else by scores."""
    import nevergrad as ng

    data = asked.data
    discrete = name.startswith("Discrete")
    if data.kept is None:
        form, point = ng.p.Array(init=np.full(data.n, 0.5), lower=0, upper=1).set_integer_casting(), np.asarray
    elif discrete:
        start = rng.choice(data.n, data.kept, replace=False).astype(float)
        form, point = ng.p.Array(init=start, lower=0, upper=data.n - 1).set_integer_casting(), asked.of_slots
    else:
        form, point = ng.p.Array(init=np.full(data.n, 0.5), lower=0.0, upper=1.0), asked.of_scores
    form.random_state.seed(int(rng.integers(2**31)))
    most = asked.most if asked.most < 10**12 else 2_000
    optimiser = ng.optimizers.registry[name](parametrization=form, budget=most)
    while not asked.spent():
        it = optimiser.ask()
        value = it.value.astype(int) if data.kept is None or discrete else it.value
        optimiser.tell(it, asked(point(value)))


def dwave(data: Instance, cell: Cell, ours: Record | None) -> Answer:
    """Reads of simulated annealing, which knows Q; a sweep over all variables counts as an evaluation."""
    import dimod
    from dwave.samplers import SimulatedAnnealingSampler

    asked = Asked(data, cell, ours)
    Q, c = data.quadratic
    upper = sparse.triu(Q).tocoo()
    model = dimod.BinaryQuadraticModel.from_numpy_vectors(c, (*upper.coords, upper.data), 0.0, "BINARY")
    sampler, path, best, sweeps = SimulatedAnnealingSampler(), [], (np.inf, None), 0
    for seed in _seeds(cell.seed):
        many = min(SWEEPS, asked.most - sweeps)
        found = sampler.sample(model, num_reads=1, num_sweeps=many, seed=seed).first
        sweeps += many
        if found.energy < best[0]:
            best = found.energy, np.array([found.sample[i] for i in range(data.n)], dtype=bool)
            path.append((time.process_time() - asked.began, found.energy))
        if sweeps >= asked.most or asked.spent():
            return Answer(best[1], sweeps, path)
    raise AssertionError


def _seeds(first: int) -> Iterator[int]:
    rng = np.random.default_rng([first, 9])
    while True:
        yield int(rng.integers(2**31))


def measure(data: Instance, cell: Cell, answer: Answer) -> dict[str, float]:
    out = {"judged": data.value(answer.theta), "evaluations": answer.evaluations}
    if data.test is not None:
        coef, intercept = data.problem.model(answer.theta.astype(np.float64))
        X, y = data.test
        out["error"] = float(np.sqrt(np.mean((X @ coef + intercept - y) ** 2)))
    return out


METHODS = {
    "mixbin": Method(mixbin),
    "mixbin with values and gradients alone": Method(gradients_alone),
    JUDGED_BY_ALL: Method(judged_by_all),
    "random search": Method(partial(black_box, random_search)),
    "simulated annealing, value by value": Method(partial(black_box, annealing)),
    "optuna, TPE": Method(partial(black_box, partial(optuna, tpe)), ("optuna",)),
    "optuna, univariate TPE": Method(partial(black_box, partial(optuna, univariate_tpe)), ("optuna",)),
    "optuna, NSGA-II": Method(partial(black_box, partial(optuna, genetic)), ("optuna",)),
    "nevergrad, NGOpt": Method(partial(black_box, partial(nevergrad, "NGOpt")), ("nevergrad",)),
    "nevergrad, DiscreteOnePlusOne": Method(partial(black_box, partial(nevergrad, "DiscreteOnePlusOne")), ("nevergrad",)),
    "simulated annealing of Q (dwave-samplers)": Method(dwave, ("dimod", "dwave.samplers")),
}


KNOW_Q = ("mixbin", "mixbin with values and gradients alone", "simulated annealing of Q (dwave-samplers)")


def cells(quick: bool) -> list[Cell]:
    sizes = [name for name in DISTILLATIONS if not (quick and "1,000 rows" in name)]
    return [
        Cell("black-boxes", table, budget, seed, method, 60.0)
        for table in (*sizes, *QUADRATICS)
        for seed in range(2 if quick else 5)
        for budget in ("equal evaluations", "equal seconds")
        for method in METHODS
        if suits(table, method)
        and not (quick and "4,000" in table and not method.startswith(("mixbin", "simulated annealing of")))
        and not (quick and seed and method.startswith(("optuna", "nevergrad")) and "10,000" in table)
    ]


def suits(table: str, method: str) -> bool:
    return "dwave" not in method if table in DISTILLATIONS else method != JUDGED_BY_ALL


def remarks(records: Sequence[Record]) -> list[str]:
    """How many evaluations the rivals managed within the cap, and how soon mixbin passes the best of them."""
    out = []
    for (table, budget), methods in good(records).items():
        mine = methods.get("mixbin", {})
        others = {name: its for name, its in methods.items() if not name.startswith("mixbin")}
        if not mine or not others:
            continue
        count = mean([it["measures"]["evaluations"] for it in mine.values()])
        spent = mean([it["seconds"] for it in mine.values()])
        fewest = {name: mean([it["measures"]["evaluations"] for it in its.values()]) for name, its in others.items()}
        short = "; ".join(f"{name} {number:,.0f}" for name, number in fewest.items() if number < 0.99 * count)
        passed = []
        for seed, it in mine.items():
            goal = min((its[seed]["measures"]["judged"] for its in others.values() if seed in its), default=-np.inf)
            passed.append(next((at for at, value in it["path"] if value <= goal), None))
        known = [at for at in passed if at is not None]
        when = (
            f"mixbin is past the best rival's value after {mean(known):.2f} s"
            if len(known) == len(passed)
            else f"mixbin reaches the best rival's value in {len(known)} of {len(passed)} draws"
        )
        out.append(
            f"{table}, {budget}: mixbin makes {count:,.0f} evaluations in {spent:.2f} s; {when}."
            + (f" Fewer evaluations in their time: {short}." if short and budget == "equal evaluations" else "")
        )
    return out


def reasons(records: Sequence[Record]) -> list[str]:
    """What is behind rivals that win: the judge of few rows, and the search of large quadratics."""
    out = []
    for (table, budget), methods in good(records).items():
        both = methods.get("mixbin", {}), methods.get(JUDGED_BY_ALL, {})
        if all(both) and budget == "equal evaluations":
            few, all_ = (mean([it["measures"]["error"] for it in its.values()]) for its in both)
            words = f"RMSE on new rows {few:.4f} where the validation rows judge, {all_:.4f} where the candidate rows do, too"
            out.append(f"{table}: {words}: the lowest G of few validation rows is not the lowest error.")
        annealed = next((its for name, its in methods.items() if "dwave" in name), None)
        if both[0] and annealed and budget == "equal evaluations":
            (mine, ours), (theirs, spent) = (
                [mean([it["measures"]["judged"] for it in its.values()]), mean([it["seconds"] for it in its.values()])]
                for its in (both[0], annealed)
            )
            out.append(
                f"{table}: with a sweep for each evaluation, dwave's annealing takes {spent:.2f} s, mixbin {ours:.2f} s, and "
                f"mixbin's G is {100 * abs(mine - theirs) / abs(theirs):.3f} % {'above' if mine > theirs else 'below'} it."
            )
    return out


FAMILY = Family(
    name="black-boxes",
    title="Optimisers that ask for values alone",
    words=(
        "G is the validation loss of a ridge regression on the rows kept, or a quadratic function of binary variables. At equal "
        f"evaluations a rival has at most {CAP:g} s of processor time; a gradient that mixbin uses counts as one evaluation. "
        "Annealing by dwave-samplers knows Q, as mixbin does; a sweep counts as one evaluation."
    ),
    cells=cells,
    load=load,
    methods=METHODS,
    measure=measure,
    quantities=(Quantity("judged", "G of the answer", least=1e-6), Quantity("error", "RMSE on new rows", least=0.0005)),
    references=frozenset({"mixbin with values and gradients alone", JUDGED_BY_ALL}),
    remarks=remarks,
    reasons=reasons,
)
