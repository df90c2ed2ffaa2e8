"""mb.torch.bilevel: hypergradients against central differences and against mb.bilevel in JAX, purity, warm starts, errors."""

from functools import cache, partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'mixbin[torch]'")

import mixbin as mb
from mixbin.errors import DivergedError, InvalidInput
from mixbin.problem import FiniteSum, Problem
from mixbin.testing import check_problem
from tests.problems import test_bilevel as in_jax
from tests.problems.test_bilevel import NETWORK_W0, X_VAL, Y_VAL, X, Y, differences, point

torch.set_num_threads(1)

A, B, A_VAL, B_VAL = (torch.tensor(it) for it in (X, Y, X_VAL, Y_VAL))
SGD = partial(torch.optim.SGD, lr=0.2)


class Parameters(torch.nn.Module):
    """Named tensors and nothing else."""

    def __init__(self, **tensors):
        super().__init__()
        for name, it in tensors.items():
            setattr(self, name, torch.nn.Parameter(torch.tensor(it)))


def ridge_inner(m, v, s, batch):
    return (v * (A @ m.W + m.b - B) ** 2)[batch].mean() + s * (m.W**2).sum()


def ridge_outer(m, v, s, batch):
    return 0.5 * ((A_VAL @ m.W + m.b - B_VAL) ** 2)[batch].mean()


def logistic_inner(m, mask, lam, batch):
    scores = (A * mask) @ m.w
    return torch.log1p(torch.exp(-torch.sign(B - 1) * scores)).mean() + 0.5 * (lam[[0, 0, 1]] * m.w**2).sum()


def logistic_outer(m, mask, lam, batch):
    return torch.log1p(torch.exp(-torch.sign(B_VAL - 1) * ((A_VAL * mask) @ m.w))).mean()


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(3, 2).double(), torch.nn.Linear(2, 1, bias=False).double()
        with torch.no_grad():
            self.first.weight.copy_(torch.tensor(NETWORK_W0[0].T))
            self.first.bias.zero_()
            self.last.weight.copy_(torch.tensor(NETWORK_W0[2][None]))

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))[:, 0]


def network_inner(m, v, lam, batch):
    return (v.ravel() * (m(A) - B) ** 2).mean() + lam * sum((it**2).sum() for it in m.parameters())


def network_outer(m, v, lam, batch):
    return ((m(A_VAL) - B_VAL) ** 2).mean() + 0.01 * v.sum()


def projected(m, v, s):
    gradient = 2 * A.T @ (v * (A @ m.w - B)) / 12 + 2 * s * m.w
    return [torch.clamp(m.w - 0.3 * gradient, min=0.0)]


def projected_outer(m, v, s, batch):
    return 0.5 * ((A_VAL @ m.w - B_VAL) ** 2).mean()


MODULES = {
    "ridge": (lambda: Parameters(W=np.zeros(3), b=0.0 * np.ones(())), ridge_inner, ridge_outer),
    "features": (lambda: Parameters(w=np.zeros(3)), logistic_inner, logistic_outer),
    "network": (Network, network_inner, network_outer),
    "projected": (lambda: Parameters(w=np.ones(3)), None, projected_outer),
}
HOW = {
    "direct": mb.Implicit("direct"),
    "cg": mb.Implicit("cg", tol=1e-12),
    "neumann": mb.Implicit("neumann", tol=1e-12, max_steps=100_000),
    "unrolled": mb.Unrolled(25),
    "first order": mb.FirstOrder(10.0),
}
PAIRS = [(name, how) for name in MODULES for how in HOW if not (name == "projected" and how in ("cg", "first order"))]


@cache
def made(name, how, **settings):
    make, inner, outer = MODULES[name]
    sets = {key: it for key, it in in_jax.PROBLEMS[name][1].items() if key != "lower"}
    lower = mb.FixedPoint(projected, tol=1e-13) if name == "projected" else mb.Minimise(SGD if how == "unrolled" else None)
    return mb.torch.bilevel(make(), inner, outer, **{"lower": lower, "hypergradient": HOW[how]} | sets | settings)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "how"), PAIRS)
def test_hypergradient_against_central_differences(name, how):
    problem = made(name, how)
    assert isinstance(problem, Problem)
    theta, lam = point(problem)
    got = problem.evaluate(theta, lam)
    by_theta, by_lam = differences(problem, theta, lam)
    assert np.abs(by_theta).max() > 1e-3
    tol = 1e-6
    np.testing.assert_allclose(got.grad_theta, by_theta, rtol=tol, atol=tol * np.abs(by_theta).max())
    np.testing.assert_allclose(got.grad_lam, by_lam, rtol=tol, atol=tol * np.abs(by_lam).max())
    assert got.value == pytest.approx(problem.evaluate(theta, lam, gradient=False).value, rel=1e-12)


@cache
def made_in_jax(name, how):
    args, sets, _ = in_jax.PROBLEMS[name]
    settings = dict(sets, hypergradient=HOW[how])
    if how == "unrolled" and "lower" not in settings:
        # The same steps as a map: of q steps of optimistix's gradient descent the first only evaluates.
        import jax

        outer, inner, w0 = args
        gradient = jax.grad(inner)
        settings["lower"] = mb.FixedPoint(lambda w, v, s: jax.tree.map(lambda a, g: a - 0.2 * g, w, gradient(w, v, s)))
        args = outer, None, w0
    return mb.bilevel(*args, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "how"),
    [pytest.param(*pair, marks=[pytest.mark.ci] * (pair[1] not in ("direct", "first order"))) for pair in PAIRS],
)
def test_the_same_as_in_jax(name, how):
    pytest.importorskip("jax")
    here, there = made(name, how), made_in_jax(name, how)
    for seed in (1, 2):
        theta, lam = point(here, seed)
        a, b = here.evaluate(theta, lam), there.evaluate(theta, lam)
        assert a.value == pytest.approx(b.value, rel=1e-8)
        np.testing.assert_allclose(a.grad_theta, b.grad_theta, rtol=1e-6, atol=1e-6 * np.abs(b.grad_theta).max())
        np.testing.assert_allclose(a.grad_lam, b.grad_lam, rtol=1e-6, atol=1e-6 * np.abs(b.grad_lam).max())


QUICK = [("ridge", "direct"), ("ridge", "first order"), ("network", "unrolled"), ("projected", "neumann")]
# Not the network with "cg": two of its units can become one up to signs, a saddle point from which a warm start does not move.
MORE = [("features", "cg"), ("network", "direct"), ("projected", "unrolled")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "how"), [pytest.param(*it, marks=[pytest.mark.ci] * (it not in QUICK)) for it in (*QUICK, *MORE)]
)
def test_every_promise_of_a_problem(name, how):
    """A network has several minima, and a few unrolled steps depend on where they begin: warm starts differ there."""
    check_problem(made(name, how), trials=1, value_tol=None if name == "network" or how == "unrolled" else 1e-6)


def test_first_order_tends_to_the_gradient_from_below():
    exact = made("ridge", "direct")
    theta, lam = point(exact)
    a = exact.evaluate(theta, lam)
    errors = []
    for weight in (10.0, 1000.0):
        b = made("ridge", "first order", hypergradient=mb.FirstOrder(weight)).evaluate(theta, lam)
        assert b.value < a.value
        assert b.info["outer"] == pytest.approx(a.value, rel=1e-9)
        errors.append(np.abs(b.grad_theta - a.grad_theta).max())
    assert errors[1] < 0.02 * errors[0]


# Training for given steps.


class Classifier(torch.nn.Module):
    """With a layer that keeps running means, one that is random, and a frozen one."""

    def __init__(self, dropout=0.2, momentum=0.1):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.scale = torch.nn.Linear(3, 3).requires_grad_(False)
        self.first, self.norm, self.last = (
            torch.nn.Linear(3, 4),
            torch.nn.BatchNorm1d(4, momentum=momentum),
            torch.nn.Linear(4, 1),
        )
        self.dropout = torch.nn.Dropout(dropout)
        with torch.no_grad():
            for it in self.parameters():
                it.copy_(torch.rand(it.shape, generator=generator) - 0.3)
        self.double()

    def forward(self, x):
        return self.last(self.dropout(torch.tanh(self.norm(self.first(self.scale(x))))))[:, 0]


def weighted_inner(m, v, lam, batch):
    return (v[batch] * (m(A[batch]) - B[batch]) ** 2).sum() / v.sum() + 1e-3 * sum((it**2).sum() for it in m.parameters())


def weighted_outer(m, v, lam, batch):
    return ((m(A_VAL[batch]) - B_VAL[batch]) ** 2).mean()


ADAM = partial(torch.optim.Adam, lr=0.02)


def trained(hypergradient=None, optimiser=ADAM, module=None, **settings):
    settings = {"steps": 12, "batch_size": 5, "seed": 3} | settings
    return mb.torch.bilevel(
        Classifier() if module is None else module,
        weighted_inner,
        weighted_outer,
        theta_set=mb.Budget(12, 4),
        lower=mb.torch.Train(optimiser, **settings),
        hypergradient=hypergradient,
        n_rows=12,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "hypergradient", [None, mb.Unrolled(7), mb.Implicit("cg", max_steps=5)], ids=["first order", "unrolled", "implicit"]
)
def test_minibatches_and_random_layers_are_pure(hypergradient):
    """The order of the rows and the dropped units follow from the seed and the warm state; given steps are no minimum."""
    if isinstance(hypergradient, mb.Implicit):
        with pytest.raises(DivergedError, match="not near an isolated minimiser"):
            trained(hypergradient).evaluate(np.full(12, 1 / 3), np.empty(0))
        return
    # Running means are constants to the gradient; with momentum 0 they are constants.
    module, tol = (Classifier(momentum=0.0), 1e-5) if isinstance(hypergradient, mb.Unrolled) else (None, None)
    check_problem(trained(hypergradient, module=module), trials=1, gradient_tol=tol, value_tol=None)


def test_the_order_of_rows_follows_from_seed_and_warm_state():
    problem, other = trained(), trained(seed=4)
    theta = np.full(12, 1 / 3)
    cold = problem.evaluate(theta, np.empty(0))
    assert cold.value != other.evaluate(theta, np.empty(0)).value
    torch.manual_seed(7)
    state = torch.get_rng_state()
    again = problem.evaluate(theta, np.empty(0))
    assert again.value == cold.value
    assert torch.equal(torch.get_rng_state(), state)
    moved = dict(cold.warm, round=np.array(5))
    assert problem.evaluate(theta, np.empty(0), warm=cold.warm).value != problem.evaluate(theta, np.empty(0), warm=moved).value


def test_warm_starts_take_fewer_steps_and_go_on():
    problem = trained(warm_steps=3, optimiser=SGD)
    theta = np.full(12, 1 / 3)
    cold = problem.evaluate(theta, np.empty(0))
    warm = problem.evaluate(theta, np.empty(0), warm=cold.warm)
    assert (cold.info["lower_steps"], warm.info["lower_steps"]) == (36.0, 27.0)
    assert set(cold.warm) == {
        "w",
        "round",
        "buffer norm.running_mean",
        "buffer norm.running_var",
        "buffer norm.num_batches_tracked",
    }
    assert int(cold.warm["buffer norm.num_batches_tracked"]) == 24


@pytest.mark.parametrize("optimiser", [SGD, partial(torch.optim.SGD, lr=0.05, momentum=0.9), ADAM])
def test_unrolled_steps_are_those_of_the_optimiser(optimiser):
    """The chunks, the clones and the state that is handed on change nothing: a plain loop ends at the same weights."""
    problem = trained(mb.Unrolled(11), optimiser, batch_size=None, module=Classifier(dropout=0.0))
    theta = np.linspace(0.1, 0.5, 12)
    w = problem.evaluate(theta, np.empty(0)).warm["w"]
    module = Classifier(dropout=0.0)
    kept = [it for it in module.parameters() if it.requires_grad]
    made = optimiser(kept)
    for _ in range(11):
        made.zero_grad()
        weighted_inner(module, torch.tensor(theta), None, slice(None)).backward()
        made.step()
    # An Adam that can be differentiated counts its steps in float32.
    tol = 1e-5 if optimiser is ADAM else 1e-11
    np.testing.assert_allclose(w, torch.cat([it.detach().ravel() for it in kept]).numpy(), rtol=0, atol=tol)


def test_a_module_is_trained_and_left_alone():
    module = Parameters(W=np.zeros(3), b=np.zeros(()))
    problem = mb.torch.bilevel(module, ridge_inner, ridge_outer, **in_jax.RIDGE)
    theta, lam = point(problem)
    got = problem.model(theta, lam)
    assert isinstance(got, Parameters)
    assert ridge_outer(got, None, None, slice(None)).item() == pytest.approx(problem.evaluate(theta, lam).value, rel=1e-9)
    assert not module.W.detach().any()
    assert problem.module is module


def test_float32_stays_float32():
    seen = set()

    def inner(m, v, s, batch):
        seen.add((m.weight.dtype, v.dtype, s.dtype))
        return (v * (m(A.float())[:, 0] - B.float()) ** 2).mean() + s * (m.weight**2).sum()

    problem = mb.torch.bilevel(
        torch.nn.Linear(3, 1), inner, lambda m, v, s, b: ((m(A_VAL.float())[:, 0] - B_VAL.float()) ** 2).mean(), **in_jax.RIDGE
    )
    got = problem.evaluate(*point(problem))
    assert seen == {(torch.float32,) * 3}
    assert got.grad_theta.dtype == np.float64
    exact = made("ridge", "direct").evaluate(*point(problem))
    np.testing.assert_allclose(got.grad_theta, 2 * exact.grad_theta, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_terms_of_a_finite_sum():
    problem = made("ridge", "direct", n_terms=9)
    assert isinstance(problem, FiniteSum)
    assert not isinstance(made("ridge", "direct"), FiniteSum)
    check_problem(problem, trials=1)
    with pytest.raises(InvalidInput, match="terms must be whole numbers from 0 to 8"):
        problem.evaluate_terms(*point(problem), np.array([9]))


@pytest.mark.slow
def test_a_run_finds_the_spoilt_rows():
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(40, 1, generator=generator) * 4 - 2
    y = torch.sin(2 * x)
    y[:10] += 3.0
    x_val = torch.linspace(-2, 2, 30)[:, None]
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    problem = mb.torch.bilevel(
        net,
        lambda m, v, lam, batch: (v[batch] * (m(x[batch]) - y[batch])[:, 0] ** 2).mean(),
        lambda m, v, lam, batch: ((m(x_val) - torch.sin(2 * x_val)) ** 2).mean(),
        theta_set=mb.Budget(40, 30),
        lower=mb.torch.Train(partial(torch.optim.Adam, lr=0.05), steps=60, warm_steps=20),
        hypergradient=mb.FirstOrder(10.0, steps=20),
    )
    result = mb.relax_and_penalize(problem, starts=1, polish=False, max_evaluations=60, seed=0)
    assert result.theta[:10].sum() <= 1


# Errors.


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_a_singular_lower_level_says_what_to_add(solver):
    x, y = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]).double(), torch.tensor([1.0, 2.0, 2.0]).double()
    problem = mb.torch.bilevel(
        Parameters(w=np.zeros(2)),
        lambda m, theta, lam, batch: (theta * (x @ m.w - y) ** 2).sum(),
        lambda m, theta, lam, batch: (m.w[0] - 1.0) ** 2,
        theta_set=mb.Budget(3, 2),
        hypergradient=mb.Implicit(solver),
    )
    with pytest.raises(DivergedError, match=r"no isolated minimiser.*add a ridge term"):
        mb.relax_and_penalize(problem, seed=0)


def test_a_lower_level_that_does_not_converge():
    problem = made("ridge", "direct", lower=mb.Minimise(SGD, max_steps=3, newton=0))
    with pytest.raises(DivergedError, match=r"not converged: after 3 steps w still has a gradient of .* above limit = 0.01"):
        problem.evaluate(*point(problem))


def ridge(**settings):
    return mb.torch.bilevel(
        **{"module": MODULES["ridge"][0](), "inner": ridge_inner, "outer": ridge_outer} | in_jax.RIDGE | settings
    )


BAD = {
    "module": (lambda: ridge(module=3), "module must be a torch.nn.Module, got 3"),
    "no parameters": (lambda: ridge(module=torch.nn.ReLU()), "module must be a module with trainable parameters, got 'ReLU'"),
    "meta": (lambda: ridge(module=torch.nn.Linear(3, 1, device="meta")), r"on a device with memory.*meta.*to_empty"),
    "half": (lambda: ridge(module=torch.nn.Linear(3, 1).half()), r"float32 or in float64.*float16.*module\.float\(\)"),
    "nan": (lambda: ridge(module=Parameters(W=np.full(3, np.nan), b=np.zeros(()))), "whose parameters are finite"),
    "inner": (lambda: ridge(inner=None), "inner must be a function when lower is a minimiser"),
    "inner of three": (lambda: ridge(inner=lambda m, v, s: 0), "inner must be a function of .module, theta, lam, batch."),
    "another module": (
        lambda: ridge(inner=lambda m, v, s, b: v.sum()),
        "inner must be a function of the parameters of the module",
    ),
    "outer": (lambda: ridge(outer=7), "outer must be a function of"),
    "vector": (lambda: ridge(outer=lambda m, v, s, b: v), "the return value of outer must be a tensor with one real number"),
    "theta_set": (lambda: ridge(theta_set=4), "theta_set must be a set of binary"),
    "lam_set": (lambda: ridge(lam_set=4), "lam_set must be a Box"),
    "lower": (lambda: ridge(lower="adam"), "lower must be Minimise"),
    "optimiser": (lambda: ridge(lower=mb.torch.Train(list)).evaluate(*point(ridge())), "an optimiser of torch.optim"),
    "n_rows": (lambda: ridge(lower=mb.torch.Train(SGD, batch_size=3)), "n_rows must be the number of training rows"),
    "hypergradient": (lambda: ridge(hypergradient="cg"), "hypergradient must be Implicit"),
    "lbfgs": (lambda: ridge(hypergradient=mb.Unrolled(3)), "lower must be an optimiser that torch.optim can differentiate"),
    "steps": (lambda: ridge(hypergradient=mb.FirstOrder(steps=3)), "without steps, unless lower is Train"),
    "cg": (lambda: made("projected", "cg"), "its matrix is not symmetric"),
    "own solver": (
        lambda: ridge(lower=mb.OwnSolver(lambda m, v, s: list(m.parameters())), hypergradient=mb.Unrolled(3)),
        "Implicit.. when lower is an OwnSolver",
    ),
    "shapes": (
        lambda: ridge(lower=mb.FixedPoint(lambda m, v, s: [m.W])),
        "the shapes that the lower level returns must be those of the parameters",
    ),
    "JAX": (
        lambda: mb.bilevel(in_jax.ridge_outer, in_jax.ridge_inner, in_jax.W0, lower=mb.torch.Train(SGD), **in_jax.RIDGE),
        "lower must",
    ),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_arguments(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


# Devices.


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_same_on_cuda():
    module = MODULES["ridge"][0]().cuda()
    there = mb.torch.bilevel(
        module,
        lambda m, v, s, b: (v * (A.cuda() @ m.W + m.b - B.cuda()) ** 2).mean() + s * (m.W**2).sum(),
        lambda m, v, s, b: 0.5 * ((A_VAL.cuda() @ m.W + m.b - B_VAL.cuda()) ** 2).mean(),
        **in_jax.RIDGE,
    )
    here = made("ridge", "direct")
    theta, lam = point(here)
    a, b = here.evaluate(theta, lam), there.evaluate(theta, lam)
    assert b.value == pytest.approx(a.value, rel=1e-9)
    np.testing.assert_allclose(b.grad_theta, a.grad_theta, rtol=1e-7, atol=1e-9)
    assert problem_on(there, "cuda")


def problem_on(problem, kind):
    return next(problem.model(*point(problem)).parameters()).device.type == kind


def test_modules_on_two_devices_are_refused():
    if torch.cuda.is_available():
        module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1).cuda())
        with pytest.raises(InvalidInput, match="a module on one device"):
            ridge(module=module)
    else:
        pytest.skip("needs a CUDA device beside the CPU")
