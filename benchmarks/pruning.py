"""Pruning a small network on digits: mb.torch.prune beside magnitude pruning, once and in rounds, and bilevel hard thresholding.

    python benchmarks/pruning.py --out pruning.json [--seeds 5] [--table]

Each cell (network, share kept, seed, method) is appended to the file when it is done, and skipped if it is there. Accuracy is on
test rows that nothing was chosen by. "seconds" is processor time on one thread. Needs mixbin[torch].
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.nn import functional

import mixbin as mb

torch.set_num_threads(1)
HIDDEN, KEEPS = (32, 100), (0.1, 0.05)
DECAY = 1e-4
ADAM = partial(torch.optim.Adam, lr=1e-2)


def data(seed):
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X / 16.0, dtype=torch.float32)
    y = torch.tensor(y)
    rest, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=y)
    train, val = train_test_split(rest, test_size=0.25, random_state=seed, stratify=y[rest])
    return [(X[i], y[i]) for i in (train, val, test)]


def network(hidden, seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(64, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10))


def accuracy(net, rows):
    with torch.no_grad():
        return float((net(rows[0]).argmax(dim=1) == rows[1]).float().mean())


def weights(net):
    return [it.weight for it in net if isinstance(it, torch.nn.Linear)]


def fit(net, masks, rows, steps):
    """Adam on the kept weights, in place."""
    made = ADAM(list(net.parameters()))
    for _ in range(steps):
        made.zero_grad()
        tensors = dict(net.named_parameters())
        for name, mask in zip(("0.weight", "2.weight"), masks, strict=True):
            tensors[name] = tensors[name] * mask
        out = torch.func.functional_call(net, tensors, (rows[0],))
        (functional.cross_entropy(out, rows[1]) + DECAY * sum((it**2).sum() for it in net.parameters())).backward()
        made.step()
    return net


def finished(net, masks):
    with torch.no_grad():
        for it, mask in zip(weights(net), masks, strict=True):
            it.mul_(mask)
    return net


def largest(scores, keep):
    flat = torch.cat([it.reshape(-1) for it in scores])
    kept = torch.zeros_like(flat)
    kept[flat.argsort(descending=True, stable=True)[: round(keep * flat.numel())]] = 1.0
    return [part.view(it.shape) for part, it in zip(torch.split(kept, [it.numel() for it in scores]), scores, strict=True)]


def ones(net):
    return [torch.ones_like(it) for it in weights(net)]


def magnitude(net, keep, train, val, rounds, steps, retrain=1_000):
    """Train, cut the smallest weights, train the rest, and so on, by the same factor in each round."""
    masks = ones(net)
    fit(net, masks, train, steps)
    for i in range(1, rounds + 1):
        scores = [it.detach().abs() * mask for it, mask in zip(weights(net), masks, strict=True)]
        masks = largest(scores, keep ** (i / rounds))
        fit(finished(net, masks), masks, train, retrain if i == rounds else steps)
    return finished(net, masks)


def hard_thresholding(net, keep, train, val, seconds):
    """Bilevel pruning (Zhang et al., 2022): steps on the weights, then one on scores of the mask, cut to the k largest."""
    fit(net, ones(net), train, 300)
    scores = [it.detach().abs() / it.detach().abs().max() for it in weights(net)]
    end = time.process_time() + seconds
    while time.process_time() < end:
        masks = largest(scores, keep)
        fit(net, masks, train, 20)
        tensors = dict(net.named_parameters())
        leaves = [(it.detach() * mask).requires_grad_() for it, mask in zip(weights(net), masks, strict=True)]
        tensors |= dict(zip(("0.weight", "2.weight"), leaves, strict=True))
        grads = torch.autograd.grad(functional.cross_entropy(torch.func.functional_call(net, tensors, (val[0],)), val[1]), leaves)
        # The implicit term of the paper with its lower level's strong convexity gamma = 1.
        scores = [s - 0.1 * (w.detach() - g) * g for s, w, g in zip(scores, weights(net), grads, strict=True)]
    masks = largest(scores, keep)
    return finished(fit(net, masks, train, 1_000), masks)


def ours(net, keep, train, val, **settings):
    pruned = mb.torch.prune(net, functional.cross_entropy, train, val, keep=keep, decay=DECAY, **settings)
    assert abs(pruned.kept - keep) < 1e-3
    return pruned.module


def methods(cells, key):
    def as_long(net, keep, train, val):
        return hard_thresholding(net, keep, train, val, cells[f"{key}/mixbin"]["seconds"])

    return {
        "all weights": lambda net, keep, train, val: finished(fit(net, ones(net), train, 1_000), ones(net)),
        "magnitude, once": partial(magnitude, rounds=1, steps=300),
        "magnitude, 20 rounds": partial(magnitude, rounds=20, steps=300),
        "mixbin": ours,
        "mixbin, judged by training rows": lambda net, keep, train, val: ours(net, keep, train, None),
        "bilevel hard thresholding": as_long,
    }


def run(out, seeds):
    cells = json.loads(out.read_text()) if out.exists() else {}
    for seed in seeds:
        train, val, test = data(seed)
        for hidden in HIDDEN:
            for keep in KEEPS:
                key = f"64-{hidden}-10/{keep}/{seed}"
                for name, method in methods(cells, key).items():
                    if f"{key}/{name}" in cells:
                        continue
                    start = time.process_time()
                    net = method(network(hidden, seed), keep, train, val)
                    seconds = time.process_time() - start
                    cells[f"{key}/{name}"] = {"accuracy": accuracy(net, test), "seconds": round(seconds, 2)}
                    out.write_text(json.dumps(cells, indent=1) + "\n")
                    print(key, name, cells[f"{key}/{name}"], flush=True)
    return cells


def table(cells):
    groups = {}
    for key, cell in cells.items():
        net, keep, _, name = key.split("/")
        groups.setdefault((net, keep), {}).setdefault(name, []).append(cell)
    for (net, keep), rows in groups.items():
        print(f"\n{net}, keep {float(keep):.0%}: test accuracy (standard deviation), seconds")
        for name, found in rows.items():
            values = [it["accuracy"] for it in found]
            print(f"  {name:32s} {np.mean(values):.3f} ({np.std(values):.3f}) {np.mean([it['seconds'] for it in found]):6.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed-list", type=int, nargs="*", help="these seeds instead")
    parser.add_argument("--table", action="store_true", help="print the table of the file and run nothing")
    typed = parser.parse_args()
    table(json.loads(typed.out.read_text()) if typed.table else run(typed.out, typed.seed_list or range(typed.seeds)))
