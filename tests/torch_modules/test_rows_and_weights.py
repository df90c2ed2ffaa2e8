"""RowSelection and prune: wrong labels are left out, classes kept, masks handed over; purity, other inputs, errors."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'mixbin[torch]'")

from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

import mixbin as mb
from mixbin.errors import InvalidInput
from mixbin.testing import check_problem
from mixbin.torch.rows import _balanced, _shares

torch.set_num_threads(1)
EACH = torch.nn.CrossEntropyLoss(reduction="none")
QUICK = mb.torch.Train(partial(torch.optim.SGD, lr=0.5), steps=40, warm_steps=10, batch_size=16)


def blobs(n=120, wrong=0):
    """Three classes in the plane; the labels of the first rows are wrong."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(n) % 3
    X = torch.randn(n, 2, generator=generator) * 0.4 + torch.tensor([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])[y]
    labels = y.clone()
    labels[:wrong] = (y[:wrong] + 1) % 3
    return X, labels


def net():
    torch.manual_seed(0)
    return torch.nn.Linear(2, 3)


def selection(rows=None, **settings):
    validation = blobs(60)
    settings = {
        "budget": 30,
        "lower": QUICK,
        "hypergradient": mb.FirstOrder(10.0, steps=10),
        "max_evaluations": 8,
        "repeats": 3,
    } | settings
    return mb.torch.RowSelection(net(), EACH, blobs(120, 30) if rows is None else rows, validation, **settings)


@pytest.mark.slow
def test_wrong_labels_are_left_out_and_classes_kept():
    chosen = selection().fit()
    assert chosen.support_[:30].sum() <= 1
    assert np.bincount(blobs(120, 30)[1][chosen.support_]).tolist() == [10, 10, 10]
    assert chosen.scores_[:30].mean() > chosen.scores_[30:].mean()
    x, _ = chosen.subset_[0]
    first = int(np.flatnonzero(chosen.support_)[0])
    assert torch.equal(x, blobs(120, 30)[0][first])
    assert len(chosen.subset_) == 30
    again = selection().fit()
    assert np.array_equal(again.support_, chosen.support_)
    assert np.array_equal(again.scores_, chosen.scores_)
    ways = [
        f"{rows}{without}"
        for without in ("", *(f", without the worst {i}%" for i in (5, 30, 50)))
        for rows in ("at random", "hard rows")
    ]
    assert list(chosen.choices_) == [*ways, "relaxed and penalised"]
    assert chosen.choices_[chosen.choice_] == min(chosen.choices_.values())
    assert "without" in chosen.choice_ or chosen.choice_ == "relaxed and penalised"


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows[1])

    def __getitem__(self, i):
        return self.rows[0][i], int(self.rows[1][i])


@pytest.mark.slow
def test_data_sets_and_loaders_are_read_in_their_order():
    rows = blobs(120, 30)
    plain = selection(rows, max_evaluations=0).fit()
    for other in (TensorDataset(*rows), Rows(rows), DataLoader(Rows(rows), batch_size=7, shuffle=True)):
        chosen = selection(other, max_evaluations=0).fit()
        assert np.array_equal(chosen.support_, plain.support_)
        assert chosen.subset_.dataset is (other.dataset if isinstance(other, DataLoader) else other)


@pytest.mark.slow
def test_the_problem_of_rows_is_pure_and_resumes():
    """Its gradient is an estimate, and given steps of training depend on where they start."""
    chosen = selection(max_evaluations=0).fit()
    check_problem(chosen.problem_, trials=1, gradient_tol=None, value_tol=None)


def test_the_gradient_of_rows_is_that_of_first_order():
    """By hand: two trainings of one step on the same rows, with and without the validation loss."""
    X, y = (it.double() if it.is_floating_point() else it for it in blobs(9))
    x_val, y_val = (it.double() if it.is_floating_point() else it for it in blobs(1))
    lower = mb.torch.Train(partial(torch.optim.SGD, lr=0.1), steps=1, batch_size=400, seed=1)
    module = net().double()
    chosen = mb.torch.RowSelection(
        module,
        EACH,
        (X, y),
        (x_val, y_val),
        3,
        classes=None,
        lower=lower,
        hypergradient=mb.FirstOrder(4.0, steps=1),
        max_evaluations=0,
    ).fit()
    got = chosen.problem_.evaluate(np.full(9, 1 / 3), np.empty(0))
    drawn = np.random.default_rng((1, 0)).choice(9, size=(2, 400), p=np.full(9, 1 / 9))

    def stepped(parameters, share, rows):
        parameters = [it.detach().requires_grad_() for it in parameters]
        loss = EACH(functional.linear(X[rows], *parameters), y[rows]).mean()
        loss = loss + share * EACH(functional.linear(x_val, *parameters), y_val).mean()
        return [it - 0.1 * g for it, g in zip(parameters, torch.autograd.grad(loss, parameters), strict=True)]

    began = stepped([module.weight, module.bias], 0.0, drawn[0])
    w, u = (stepped(began, share, drawn[1]) for share in (0.0, 0.25))
    change = (EACH(functional.linear(X, *u), y) - EACH(functional.linear(X, *w), y)).detach().numpy()
    np.testing.assert_allclose(got.grad_theta, 4.0 * (change - change.mean()) / 3, rtol=1e-9, atol=1e-12)
    judged = EACH(functional.linear(x_val, *u), y_val).mean().item()
    assert got.value == pytest.approx(judged + 4.0 * change.mean(), rel=1e-9)


@pytest.mark.parametrize(
    ("sizes", "k", "balanced", "shares"),
    [([5, 5, 5], 7, [3, 2, 2], [3, 2, 2]), ([1, 10, 10], 9, [1, 4, 4], [1, 4, 4]), ([2, 2], 4, [2, 2], [2, 2])],
)
def test_counts_of_classes(sizes, k, balanced, shares):
    assert _balanced(np.array(sizes), k).tolist() == balanced
    assert _shares(np.array(sizes), k).tolist() == shares


# Pruning.

PRUNING = {
    "rounds": 3,
    "max_evaluations": 6,
    "retrain": 40,
    "lower": mb.torch.Train(partial(torch.optim.Adam, lr=0.02), steps=40, warm_steps=10),
}


def layers():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))


def accuracy(module, rows):
    return float((module(rows[0]).argmax(dim=1) == rows[1]).float().mean())


@pytest.mark.slow
@pytest.mark.parametrize("evaluations", [0, 6])
def test_pruned_weights_are_masked_by_torch(evaluations):
    rows, module = blobs(), layers()
    before = [it.clone() for it in module.parameters()]
    pruned = mb.torch.prune(
        module, functional.cross_entropy, rows, blobs(60), keep=0.25, **PRUNING | {"max_evaluations": evaluations}
    )
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert pruned.kept == 0.25
    assert set(pruned.masks) == {"0.weight", "2.weight"}
    assert sum(int((layer.weight != 0).sum()) for layer in (pruned.module[0], pruned.module[2])) == 20
    assert torch.nn.utils.prune.is_pruned(pruned.module)
    assert torch.equal(pruned.module[0].weight_mask.bool(), pruned.masks["0.weight"])
    assert (pruned.result is None) == (evaluations == 0)
    assert accuracy(pruned.module, rows) > 0.9
    torch.nn.utils.prune.remove(pruned.module[0], "weight")
    assert accuracy(pruned.module, rows) > 0.9


@pytest.mark.slow
def test_whole_units_are_pruned_with_their_bias():
    pruned = mb.torch.prune(layers(), functional.cross_entropy, blobs(), keep=0.25, units=True, **PRUNING)
    first = pruned.module[0]
    kept = pruned.masks["0.weight"].all(dim=1)
    assert int(kept.sum()) == 4
    assert not first.weight[~kept].any()
    assert not first.bias[~kept].any()
    assert set(pruned.masks) == {"0.weight"}
    assert accuracy(pruned.module, blobs()) > 0.9


BAD = {
    "loss": (lambda: _with(loss=7), "loss must be a function of"),
    "mean loss": (
        lambda: _with(loss=functional.cross_entropy),
        "the return value of loss must be one loss for each row of a batch",
    ),
    "rows": (lambda: selection(rows=3).fit(), "train must be a pair .inputs, targets., a Dataset"),
    "lengths": (lambda: selection(rows=(torch.zeros(3, 2), torch.zeros(4))).fit(), "as many inputs as targets"),
    "nan": (lambda: selection(rows=(torch.full((3, 2), torch.nan), torch.zeros(3).long())).fit(), "finite in all its inputs"),
    "budget": (lambda: selection(budget=500).fit(), "budget must be a whole number from 1 to 120"),
    "classes": (lambda: selection(classes="some").fit(), "classes must be one of 'balanced', 'as they are', None"),
    "lower": (lambda: selection(lower=mb.Minimise()).fit(), "lower must be Train"),
    "hypergradient": (lambda: selection(hypergradient=mb.Implicit()).fit(), "hypergradient must be FirstOrder"),
    "keep": (
        lambda: mb.torch.prune(layers(), functional.cross_entropy, blobs(), keep=0),
        "keep must be a finite number in .0, 1.",
    ),
    "layers": (
        lambda: mb.torch.prune(layers(), functional.cross_entropy, blobs(), layers=["1"]),
        "layers must be names of layers with weights, among '0', '2', got '1'",
    ),
    "units": (lambda: mb.torch.prune(net(), functional.cross_entropy, blobs(), units=True), "to prune .* before its last"),
}


def _with(loss):
    return mb.torch.RowSelection(net(), loss, blobs(), blobs(), 30).fit()


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_arguments(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()
