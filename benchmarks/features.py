"""Best subset beside abess, skscope, orthogonal matching pursuit and the lasso: planted features, hard designs, proofs.

    python benchmarks/features.py --parts tiny planted hard logistic proofs --first 1000 --out benchmarks/features.json

Rivals that are not installed are left out (abess 0.4.11, skscope 0.1.8 and okridge 0.1.1 were used). Times are process times in
one thread (set OMP_NUM_THREADS and OPENBLAS_NUM_THREADS to 1), those of limits, too. The table of each part goes into the JSON
file under its name, and earlier parts stay there. Settings were chosen on seeds below 1000. Designs: rows are Gaussian with
correlation rho^|i - j| between columns, k coefficients of +1 or -1 at random places; noise of variance (signal variance) / SNR.
"""

import argparse
import json
import math
import time
from itertools import combinations, product
from pathlib import Path

import numpy as np
from sklearn.linear_model import LassoCV, LinearRegression, OrthogonalMatchingPursuit, lars_path

import mixbin as mb
from mixbin.estimators.features import kicks_for
from mixbin.problems.best_subset import proof as proof_module


def design(n, p, k, rho, snr, seed, extra=0):
    """Standardised rows, targets, and the places of the planted features; ``extra`` rows more for tests, without noise."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n + extra, p))
    X = np.empty_like(Z)
    X[:, 0] = Z[:, 0]
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + math.sqrt(1 - rho**2) * Z[:, j]
    places = np.sort(rng.choice(p, k, replace=False))
    signal = X[:, places] @ rng.choice([-1.0, 1.0], size=k)
    sigma = math.sqrt(signal[:n].var() / snr)
    y = signal[:n] + sigma * rng.normal(size=n)
    X = (X - X[:n].mean(axis=0)) / X[:n].std(axis=0)
    return X[:n], y, places, X[n:], signal[n:]


class ProcessTime:
    """Stands for the module ``time`` in proofs, so that their limits do not depend on what else the machine does."""

    time = monotonic = staticmethod(time.process_time)


proof_module.time = ProcessTime


def timed(function, *arguments):
    began = time.process_time()
    out = function(*arguments)
    return out, time.process_time() - began


def mixbin_given(X, y, k, gamma, loss="squared"):
    problem = mb.BestSubset(X, y, k, gamma, loss)
    return problem.search().run(np.random.default_rng(0), problem.relaxed.theta), problem


def tiny(seeds):
    """Optimum found, and proved within 5 s: p = 30, k = 5, n = 100; SNR 2."""
    out = []
    for rho, share in product((0.3, 0.9), (0.01, 0.1, 1.0)):
        found = proved = 0
        longest = 0.0
        for seed in seeds:
            X, y, *_ = design(100, 30, 5, rho, 2.0, seed)
            answer, _ = mixbin_given(X, y, 5, share * 100)
            lowest = brute_force(X, y, share * 100)
            found += answer.value <= lowest * (1 + 1e-9)
            problem = mb.BestSubset(X, y, 5, share * 100)
            proof, seconds = timed(lambda problem=problem: mb.prove_best_subset(problem, time_limit=5))
            longest = max(longest, seconds)
            proved += proof.proved and abs(proof.value / lowest - 1) < 1e-9 and proof.lower_bound <= lowest * (1 + 1e-9)
        out.append(
            {"rho": rho, "gamma/n": share, "optimum": found / len(seeds), "proved": proved / len(seeds), "longest_s": longest}
        )
        print(out[-1], flush=True)
    return out


def brute_force(X, y, gamma, k=5):
    """The lowest value over all subsets, from the Gram matrix alone: independent of the library."""
    Xc, yc = X - X.mean(axis=0), y - y.mean()
    A, b = Xc.T @ Xc + gamma * np.eye(X.shape[1]), Xc.T @ yc
    sets = np.array(list(combinations(range(X.shape[1]), k)))
    best = 0.0
    for part in np.array_split(sets, 20):
        b_part = b[part]
        solved = np.linalg.solve(A[part[:, :, None], part[:, None, :]], b_part[:, :, None])[:, :, 0]
        best = max(best, float((b_part * solved).sum(axis=1).max()))
    return float(yc @ yc) - best


def rivals_of(k):
    """Functions of (X, y) that return coefficients and intercept, on k features."""

    def refitted(X, y, kept):
        coef = np.zeros(X.shape[1])
        model = LinearRegression().fit(X[:, kept], y)
        coef[kept] = model.coef_
        return coef, model.intercept_

    def ours(X, y):
        model = mb.FeatureSelector(k, random_state=0).fit(X, y)
        return model.coef_, model.intercept_

    def lasso_path(X, y):
        _, order, _ = lars_path(X, y - y.mean(), method="lasso", max_iter=4 * k)
        return refitted(X, y, np.array(order[:k]))

    def omp(X, y):
        model = OrthogonalMatchingPursuit(n_nonzero_coefs=k).fit(X, y)
        return model.coef_, model.intercept_

    def tuned_lasso(X, y):
        model = LassoCV(cv=5, alphas=50, max_iter=5000).fit(X, y)
        return model.coef_, model.intercept_

    out = {"mixbin": ours, "OMP": omp, "lasso path": lasso_path, "LassoCV (any number)": tuned_lasso}
    try:
        from abess import LinearRegression as Abess

        def abess(X, y):
            model = Abess(support_size=k).fit(X, y)
            return model.coef_, float(np.ravel(model.intercept_)[0])

        out["abess"] = abess
    except ImportError:
        pass
    try:
        import jax
        import jax.numpy as jnp
        from skscope import ScopeSolver

        jax.config.update("jax_enable_x64", True)

        def skscope(X, y):
            A, b = jnp.asarray(X), jnp.asarray(y - y.mean())
            solver = ScopeSolver(X.shape[1], k)
            solver.solve(lambda w: jnp.sum((b - A @ w) ** 2), jit=True)
            return refitted(X, y, np.flatnonzero(solver.get_estimated_params()))

        out["skscope"] = skscope
    except ImportError:
        pass
    return out


def planted(seeds):
    """Share of the planted features found, and risk on 2,000 fresh rows over the noise-free signal, paired over the seeds."""
    out = []
    for p, rho, snr in product((200, 2000), (0.1, 0.7), (5.0, 1.0)):
        cell = {name: {"recovery": [], "risk": [], "seconds": []} for name in rivals_of(10)}
        times = {"mixbin": [], "abess": []}
        for seed in seeds:
            X, y, places, X_new, signal = design(500, p, 10, rho, snr, seed, extra=2000)
            for name, method in rivals_of(10).items():
                (coef, intercept), seconds = timed(method, X, y)
                kept = np.argsort(-np.abs(coef), kind="stable")[:10]
                cell[name]["recovery"].append(len(set(kept) & set(places)) / 10)
                cell[name]["risk"].append(float(np.mean((X_new @ coef + intercept - signal) ** 2) / signal.var()))
                cell[name]["seconds"].append(seconds)
            times["mixbin"].append(timed(mixbin_given, X, y, 10, 0.01 * 500)[1])
            if "abess" in cell:
                from abess import LinearRegression as Abess

                times["abess"].append(timed(lambda X=X, y=y: Abess(support_size=10, alpha=0.01).fit(X, y))[1])
        row = {"p": p, "rho": rho, "SNR": snr, "methods": {}}
        for name, got in cell.items():
            row["methods"][name] = {"seconds": float(np.median(got["seconds"]))}
            for measure, sign in (("recovery", -1.0), ("risk", 1.0)):
                worse = sign * (np.array(cell["mixbin"][measure]) - np.array(got[measure]))
                row["methods"][name] |= {
                    measure: float(np.mean(got[measure])),
                    f"{measure}_mixbin_worse_by": float(worse.mean()),
                    f"{measure}_standard_error": float(worse.std(ddof=1) / math.sqrt(len(worse))),
                }
        row["worse_by_more_than_a_standard_error"] = [
            f"{measure}: {name}"
            for name, got in row["methods"].items()
            for measure in ("recovery", "risk")
            if got[f"{measure}_mixbin_worse_by"] > max(got[f"{measure}_standard_error"], 1e-12)
        ]
        row["times_abess_with_k_and_gamma_given"] = (
            float(np.median(times["mixbin"]) / np.median(times["abess"])) if times["abess"] else None
        )
        out.append(row)
        print(p, rho, snr, "time / abess", row["times_abess_with_k_and_gamma_given"])
        print("    worse by more than a standard error:", row["worse_by_more_than_a_standard_error"] or "nowhere")
        for name, got in row["methods"].items():
            print(f"    {name:22s}" + "  ".join(f"{key} {number:.4f}" for key, number in got.items()), flush=True)
    return out


def hard(seeds, loss="squared", n=150, p=500):
    """The excess over the best known value, beside random starts and swaps for as many tables of swaps."""
    out = []
    for rho in (0.9, 0.5):
        excess, other, seconds = [], [], []
        for seed in seeds:
            X, y, *_ = design(n, p, 10, rho, 2.0, seed)
            y = (y > np.median(y)).astype(float) if loss == "logistic" else y
            problem = mb.BestSubset(X, y, 10, 0.01 * n, loss)
            relaxed = problem.relaxed.theta
            kicks = kicks_for(problem)
            search = problem.search()
            found, took = timed(lambda s=search, r=relaxed, m=kicks: s.run(np.random.default_rng(0), r, m).value)
            random, lowest, rng = problem.search(), np.inf, np.random.default_rng(1)
            while random.n_tables < search.n_tables:
                lowest = min(lowest, random.descend(problem.choices.random(rng)).value)
            longer = problem.search()
            known = min(longer.run(np.random.default_rng(s), relaxed, 2 * kicks).value for s in (10, 11))
            best = min(found, lowest, known)
            excess.append(found / best - 1)
            other.append(lowest / best - 1)
            seconds.append(took)
        out.append(
            {
                "loss": loss,
                "p": p,
                "rho": rho,
                "excess_percent": 100 * float(np.mean(excess)),
                "random_starts_excess_percent": 100 * float(np.mean(other)),
                "worst_percent": 100 * float(np.max(excess)),
                "seconds": float(np.median(seconds)),
            }
        )
        print(out[-1], flush=True)
    return out


def logistic(seeds):
    return hard(seeds, "logistic", 300, 1000)


def proofs(seeds):
    """Proved within 10 s: n = 500, p = 200, k = 10, gamma = 0.1 n, SNR 5; okridge gets as long, and a gap of 1e-4."""
    try:
        from okridge import tree as okridge

        okridge.time = ProcessTime
    except ImportError:
        okridge = None
    out = []
    for rho in (0.1, 0.7):
        mine, theirs, agree = [], [], 0
        for seed in seeds:
            X, y, *_ = design(500, 200, 10, rho, 5.0, seed)
            proof, seconds = timed(lambda X=X, y=y: mb.prove_best_subset(mb.BestSubset(X, y, 10, 50.0), time_limit=10))
            mine.append((proof.proved, seconds))
            if okridge is None:
                continue
            Xc, yc = X - X.mean(axis=0), y - y.mean()
            tree = okridge.BNBTree(Xc, yc, lambda2=50.0)
            (value, _, gap, _, _), seconds = timed(lambda tree=tree: tree.solve(10, gap_tol=1e-4, time_limit=10))
            theirs.append((bool(gap <= 1e-4), seconds))
            agree += abs((value + float(yc @ yc)) / proof.value - 1) < 1e-6 or abs(value / proof.value - 1) < 1e-6
        row = {"rho": rho, "seeds": len(seeds)}
        for name, times in (("mixbin", mine), ("okridge", theirs)):
            if times:
                row |= {f"{name}_proved": sum(ok for ok, _ in times), f"{name}_median_s": float(np.median([s for _, s in times]))}
                row[f"{name}_longest_s"] = max(s for _, s in times)
        row["same_value"] = agree
        out.append(row)
        print(row, flush=True)
    return out


PARTS = {part.__name__: part for part in (tiny, planted, hard, logistic, proofs)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, help="number of seeds; by default 20 for tiny, 10 elsewhere")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    for name in options.parts:
        count = options.seeds or (20 if name == "tiny" else 10)
        seeds = range(options.first, options.first + count)
        table = PARTS[name](seeds)
        kept = json.loads(options.out.read_text()) if options.out.exists() else {}
        options.out.write_text(json.dumps(kept | {name: table}, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
