"""Which rows of a data set to train a module on: theta draws the minibatches, validation rows judge."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mixbin import _validate as check
from mixbin._validate import Floats
from mixbin.methods import relax_and_penalize
from mixbin.problem import Evaluation, Warm
from mixbin.problems.bilevel.hypergradient import FirstOrder
from mixbin.problems.bilevel.lower import Train
from mixbin.sets import BinarySet, Box, Budget, GroupBudget
from mixbin.sets.budget import resolve_budget
from mixbin.torch.functional import Network, Weights, fresh, reseed
from mixbin.torch.lower import END, train
from mixbin.torch.tables import Table, table

SCORED_AT_ONCE = 1_000
"""Rows whose losses are computed in one call, without a graph."""
SCREENED = (0.0, 0.05, 0.3, 0.5)
"""Shares of the rows, by score, that choices leave out; which of them is best depends on how many labels are wrong."""
BATCH = 64
"""The rows of a minibatch, if ``lower`` says nothing."""
RowLoss = Callable[[Any, Any], Any]


class RowProblem:
    """G(theta) = the validation loss of a module trained on minibatches that theta draws, with a gradient of first order.

    A row enters a minibatch with probability theta_i / sum(theta): rows that theta leaves out cost nothing. As in
    ``FirstOrder``, the training goes on once on these minibatches (w) and once with the validation loss added (u); with loss_i
    the loss of row i,

        G = outer(u) + weight * sum_i theta_i (loss_i(u) - loss_i(w)) / sum(theta).

    The gradient needs one forward pass over all rows at u and w. Minibatches make value and gradient estimates; the same
    arguments give the same ones.

    Examples
    --------
    >>> import functools
    >>> import numpy as np, torch, mixbin as mb
    >>> from mixbin.torch.tables import Table
    >>> X = torch.randn(40, 2, generator=torch.Generator().manual_seed(0))
    >>> rows, loss = Table(X, (X[:, 0] > 0).long()), torch.nn.CrossEntropyLoss(reduction="none")
    >>> train = mb.torch.Train(functools.partial(torch.optim.SGD, lr=0.1), steps=20, batch_size=8)
    >>> problem = mb.torch.RowProblem(torch.nn.Linear(2, 2), loss, rows, rows, mb.Budget(40, 10), train, mb.FirstOrder())
    >>> problem.evaluate(problem.theta_set.start(), np.empty(0)).grad_theta.shape
    (40,)
    """

    def __init__(
        self, module: Any, loss: RowLoss, rows: Table, judged: Table, theta_set: BinarySet, lower: Train, how: FirstOrder
    ) -> None:
        self.theta_set, self.lam_set = theta_set, Box.empty()
        self.lower, self.how = lower, how
        self._net, self._loss, self.rows, self.judged = Network(module), loss, rows, judged
        self._devices = [self._net.device] if self._net.device.type == "cuda" else []
        self._check_once()

    def evaluate(self, theta: Floats, lam: Floats, *, warm: Warm | None = None, gradient: bool = True) -> Evaluation:
        """The estimates of G and its gradient; training starts from the weights in ``warm``."""
        start, round_ = self._start(warm)
        with torch.random.fork_rng(devices=self._devices):
            w, u, steps = self._trained(theta, start, round_)
            change = self.losses(u, self.rows) - self.losses(w, self.rows)
            outer_u, outer_w = (float(self.losses(it, self.judged).mean()) for it in (u, w))
        total = float(theta.sum())
        mean = float(theta @ change) / total
        kept = {"w": np.asarray(w.w.cpu().numpy(), dtype=np.float64), "round": np.array(round_)}
        kept |= {f"buffer {name}": it.cpu().numpy() for name, it in w.buffers.items()}
        value, info = outer_u + self.how.weight * mean, {"lower_steps": float(steps), "outer": outer_w}
        if not gradient:
            return Evaluation(value, None, None, kept, info)
        return Evaluation(value, self.how.weight * (change - mean) / total, np.empty(0), kept, info)

    def weights(self, warm: Warm) -> Weights:
        """The weights in a warm state."""
        return self._start(warm)[0]

    def judge(self, theta: Floats) -> float:
        """The validation loss after training from the first weights on minibatches that theta draws, without the second one."""
        net, lower = self._net, self.lower
        rng = np.random.default_rng((lower.seed, 0))
        rows = rng.choice(theta.size, size=(2 * lower.steps, lower.batch_size or BATCH), p=theta / theta.sum())
        with torch.random.fork_rng(devices=self._devices):
            chosen = [torch.from_numpy(it).to(net.device) for it in rows]
            weights = train(lower.optimiser, net, self._objective(None), net.start, chosen, (lower.seed, 0))
            return float(self.losses(weights, self.judged).mean())

    def losses(self, weights: Weights, rows: Table) -> Floats:
        """The loss of each row, in evaluation mode and without a graph."""
        net, parts = self._net, []
        parameters, buffers = net.split(weights.w), fresh(weights.buffers)
        with torch.no_grad():
            for i in range(0, len(rows.y), SCORED_AT_ONCE):
                x, y = rows.x[i : i + SCORED_AT_ONCE], rows.y[i : i + SCORED_AT_ONCE]
                reseed(END, i)
                parts.append(net.call(self._of_rows, parameters, buffers, x, y, training=False))
        return np.asarray(torch.cat(parts).cpu().numpy(), dtype=np.float64)

    def _of_rows(self, module: Any, x: Any, y: Any) -> Any:
        return self._loss(module(x), y)

    def _trained(self, theta: Floats, start: Weights, round_: int) -> tuple[Weights, Weights, int]:
        """The weights after training, and those after training with the validation loss added."""
        lower, net = self.lower, self._net
        first = lower.steps if round_ == 0 else lower.warm_steps or lower.steps
        more = self.how.steps or lower.steps
        rng = np.random.default_rng((lower.seed, round_))
        size = lower.batch_size or BATCH
        rows = rng.choice(theta.size, size=(first + more, size), p=theta / theta.sum())
        judged = rng.integers(len(self.judged.y), size=(more, size))
        chosen = [torch.from_numpy(it).to(net.device) for it in rows]
        key = (lower.seed, round_)
        began = train(lower.optimiser, net, self._objective(None), start, chosen[:first], key)
        pairs = list(zip(chosen[first:], (torch.from_numpy(it).to(net.device) for it in judged), strict=True))
        w, u = (train(lower.optimiser, net, self._objective(it), began, pairs, (*key, 1)) for it in (0.0, 1 / self.how.weight))
        return w, u, first + 2 * more

    def _objective(self, share: float | None) -> Any:
        """The mean loss of a minibatch, plus ``share`` times that of a minibatch of validation rows."""

        def objective(parameters: Any, buffers: dict[str, Any], batch: Any, key: tuple[int, ...]) -> Any:
            reseed(*key)
            mine, theirs = (batch, None) if share is None else batch
            rows, judged = self.rows, self.judged
            value = self._net.call(self._of_rows, parameters, buffers, rows.x[mine], rows.y[mine]).mean()
            if share:
                value = (
                    value + share * self._net.call(self._of_rows, parameters, buffers, judged.x[theirs], judged.y[theirs]).mean()
                )
            return value

        return objective

    def _start(self, warm: Warm | None) -> tuple[Weights, int]:
        net = self._net
        if not warm or "w" not in warm:
            return net.start, 0
        w = net.tensor(check.array("warm['w']", warm["w"], shape=(net.size,), remedy="pass the warm state of an evaluation"))
        buffers = {
            name: torch.as_tensor(np.array(warm[f"buffer {name}"]), dtype=it.dtype, device=it.device)
            for name, it in net.start.buffers.items()
        }
        return Weights(w, buffers), int(warm["round"]) + 1

    def _check_once(self) -> None:
        """One call with two rows, so that a loss that does not fit is an error before any work is done."""
        with torch.random.fork_rng(devices=self._devices):
            for rows in (self.rows, self.judged):
                two = Table(rows.x[:2], rows.y[:2])
                net = self._net
                with torch.no_grad():
                    got = net.call(self._of_rows, net.split(net.start.w), fresh(net.start.buffers), *two, training=False)
                if not isinstance(got, torch.Tensor) or tuple(got.shape) != (len(two.y),):
                    shown = f"shape {tuple(got.shape)}" if isinstance(got, torch.Tensor) else check.shown(got)
                    remedy = 'such as torch.nn.CrossEntropyLoss(reduction="none")'
                    raise check.fail("the return value of loss", shown, "one loss for each row of a batch", remedy)


class RowSelection:
    """Choose the rows of a data set to train a module on, judged by its loss on validation rows.

    Several choices are made, the module is trained on each of them, and the one with the lowest validation loss is taken: rows at
    random; hard rows, which were drawn with a preference for large losses in the course of training; both without the rows that
    their score speaks against; and the answer of ``relax_and_penalize``. Where labels are wrong this gains much, where all are
    right little: see docs/a-networks-training-rows.md.

    Parameters
    ----------
    module : torch.nn.Module
        What is trained; it is copied and never changed.
    loss : callable
        ``loss(output, target)`` returns one loss for each row, such as ``torch.nn.CrossEntropyLoss(reduction="none")``.
    train, validation : pair of tensors, Dataset or DataLoader
        The rows to choose from, and the rows that judge. They are read once and kept in memory. The choice refers to the order
        of the data set, whatever the order of its loader.
    budget : int or float
        How many rows to keep: a count, or a share in (0, 1].
    classes : {"balanced", "as they are", None}
        Targets that are whole numbers are classes. "balanced" keeps the same number of rows of each (as far as a class has them),
        "as they are" keeps their shares; None lets their numbers free, as for other targets.
    lower : Train, optional
        How the module is trained on the way; by default 300 steps of Adam with learning rate 0.001 on 64 rows each, and 100
        steps from a warm start.
    hypergradient : FirstOrder, optional
        By default ``FirstOrder(10.0, steps=50)``.
    repeats : int
        How many times the scores are estimated, on other minibatches each, at the relaxed start where all rows are alike.
    max_evaluations : int
        The limit of ``relax_and_penalize``: each evaluation trains the module for ``warm_steps`` and scores all rows. It is
        left out by default (0): where it was tried, its choice was behind the others and took longest.
    seed : int
        The seed of the run; ``lower`` has one of its own.

    Attributes
    ----------
    support_ : array of bool
        The rows to keep.
    subset_ : torch.utils.data.Subset
        The data set restricted to these rows, for a DataLoader.
    scores_ : array
        For each row how the validation loss would change if the row got more weight, at the relaxed start where all rows are
        alike: the lower, the more useful; large ones are suspicious.
    losses_ : array
        For each row its mean loss in the course of training.
    choices_ : dict
        The validation loss of each choice that was tried; the lowest was taken, and ``choice_`` names it.
    result_ : Result or None
        The run of ``relax_and_penalize``.

    Examples
    --------
    >>> import torch, mixbin as mb
    >>> _ = torch.manual_seed(0)
    >>> X = torch.randn(200, 2)
    >>> y = (X[:, 0] > 0).long()
    >>> wrong = torch.arange(200) < 40
    >>> chosen = mb.torch.RowSelection(
    ...     torch.nn.Linear(2, 2),
    ...     torch.nn.CrossEntropyLoss(reduction="none"),
    ...     train=(X[:100], torch.where(wrong, 1 - y, y)[:100]),
    ...     validation=(X[100:], y[100:]),
    ...     budget=40,
    ... ).fit()
    >>> len(chosen.subset_), chosen.support_[:40].sum() < 4
    (40, np.True_)
    """

    def __init__(
        self,
        module: Any,
        loss: RowLoss,
        train: Any,
        validation: Any,
        budget: float,
        *,
        classes: str | None = "balanced",
        lower: Train | None = None,
        hypergradient: FirstOrder | None = None,
        repeats: int = 6,
        max_evaluations: int = 0,
        seed: int = 0,
    ) -> None:
        self.module, self.loss, self.train, self.validation, self.budget = module, loss, train, validation, budget
        self.classes, self.lower, self.hypergradient = classes, lower, hypergradient
        self.repeats, self.max_evaluations, self.seed = repeats, max_evaluations, seed

    def fit(self) -> "RowSelection":
        """Choose the rows."""
        if not callable(self.loss):
            raise check.fail("loss", self.loss, "a function of (output, target)", 'such as CrossEntropyLoss(reduction="none")')
        lower = self.lower or Train(partial(torch.optim.Adam, lr=1e-3), steps=300, warm_steps=100, batch_size=64)
        if not isinstance(lower, Train):
            raise check.fail("lower", lower, "Train(...)", "the rows are drawn for given steps")
        how = self.hypergradient or FirstOrder(10.0, steps=50)
        if not isinstance(how, FirstOrder):
            raise check.fail("hypergradient", how, "FirstOrder(...)", "others need the graph of all rows")
        check.choice("classes", self.classes, ("balanced", "as they are", None))
        net = Network(self.module)
        rows, judged = table("train", self.train, net), table("validation", self.validation, net)
        problem = RowProblem(self.module, self.loss, rows, judged, self._set(rows), lower, how)
        self.problem_ = problem
        self.scores_, self.losses_ = self._scored(problem)
        choices = self._choices(problem)
        self.choices_ = {name: problem.judge(theta) for name, theta in choices.items()}
        self.choice_ = min(self.choices_, key=lambda name: self.choices_[name])
        self.support_: NDArray[np.bool_] = choices[self.choice_] > 0
        self.subset_ = torch.utils.data.Subset(_data_set(self.train), np.flatnonzero(self.support_).tolist())
        return self

    def _scored(self, problem: RowProblem) -> tuple[Floats, Floats]:
        """The means of gradients at the centre and of the rows' losses; each training goes on where the one before ended."""
        centre, warm = problem.theta_set.start(), None
        scores, losses = np.zeros(problem.theta_set.shape), np.zeros(problem.theta_set.shape)
        for _ in range(check.whole("repeats", self.repeats, low=1)):
            got = problem.evaluate(centre, np.empty(0), warm=warm)
            assert got.grad_theta is not None
            warm = got.warm
            scores += got.grad_theta / self.repeats
            losses += problem.losses(problem.weights(warm), problem.rows) / self.repeats
        return scores, losses

    def _choices(self, problem: RowProblem) -> dict[str, Floats]:
        """Binary points of the set by name."""
        seed = check.whole("seed", self.seed, low=0)
        noise = np.random.default_rng(seed).uniform(size=self.scores_.size)
        score, hardness = _rank(self.scores_), _rank(self.losses_)
        points: dict[str, NDArray[np.bool_]] = {}
        for share in SCREENED:
            without = f", without the worst {share:.0%}" if share else ""
            # A row that its score speaks against is taken only if its class has no others left.
            against = 4.0 * (score >= 1 - share)
            points[f"at random{without}"] = problem.theta_set.vertex(noise - against)
            points[f"hard rows{without}"] = problem.theta_set.vertex(noise + hardness - against)
        self.result_ = None
        if check.whole("max_evaluations", self.max_evaluations, low=0):
            self.result_ = relax_and_penalize(
                problem, starts=1, polish=False, reoptimize_lam=False, max_evaluations=self.max_evaluations, seed=seed
            )
            points["relaxed and penalised"] = self.result_.theta
        return {name: theta.astype(np.float64) for name, theta in points.items()}

    def _set(self, rows: Table) -> BinarySet:
        n = len(rows.y)
        k = resolve_budget("budget", self.budget, n)
        if self.classes is None or rows.y.is_floating_point() or rows.y.ndim != 1:
            return Budget(n, k)
        y = rows.y.cpu().numpy()
        sizes = np.unique(y, return_counts=True)[1]
        counts = _balanced(sizes, k) if self.classes == "balanced" else _shares(sizes, k)
        return GroupBudget(y, counts, counts, k)


def _rank(x: Floats) -> Floats:
    """The place of each entry in increasing order, from 0 to 1."""
    return np.asarray(np.argsort(np.argsort(x, kind="stable"), kind="stable") / x.size)


def _balanced(sizes: NDArray[np.intp], k: int) -> NDArray[np.intp]:
    """The same count of each class, as far as it has so many rows; the first classes get the remainder."""
    counts = np.zeros_like(sizes)
    while (left := k - int(counts.sum())) > 0:
        open_ = np.flatnonzero(counts < sizes)
        share = max(left // len(open_), 1)
        for i in open_[: left if share == 1 and left < len(open_) else None]:
            counts[i] = min(sizes[i], counts[i] + share)
    return counts


def _shares(sizes: NDArray[np.intp], k: int) -> NDArray[np.intp]:
    """Counts in proportion to the sizes; the largest remainders are rounded up."""
    exact = k * sizes / sizes.sum()
    counts: NDArray[np.intp] = np.floor(exact).astype(np.intp)
    counts[np.argsort(counts - exact, kind="stable")[: k - int(counts.sum())]] += 1
    return counts


def _data_set(rows: Any) -> Any:
    if isinstance(rows, torch.utils.data.DataLoader):
        return rows.dataset
    if isinstance(rows, torch.utils.data.Dataset):
        return rows
    return torch.utils.data.TensorDataset(*(torch.as_tensor(it) for it in rows))
