"""Are kernel PCA and diffusion maps on atoms fast and exact?

Time, accuracy and memory against scikit-learn's solvers and its Nyström features; errors against the Nyström methods and
subsampling of the paper (Kingravi et al. 2013) at equal size. Goals: 5 times as fast as the fastest solver, 3-NN accuracy within a
point; smaller errors than uniform Nyström; 100,000 rows in 20 s and 1.5 GB; diffusion coordinates that correlate by 0.99 with those
of all rows.

``python -m benchmarks.applications.spectral ROWS`` fits one model in a process of its own.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_moons, make_swiss_roll
from sklearn.decomposition import PCA, KernelPCA
from sklearn.kernel_approximation import Nystroem as SklearnNystroem
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from benchmarks._lib import own_process, table, verdict
from benchmarks.applications.spectral_data import SETS, large, load, some
from benchmarks.applications.spectral_pictures import DIGITS, EMBEDDINGS, POINTS, draw_embeddings
from benchmarks.speed.growth import memory
from reduset import Gaussian
from reduset.spectral import Nystroem, ReducedDiffusionMap, ReducedKernelPCA, WeightedNystroem

TITLE = "Kernel PCA and manifolds on few atoms"
SOURCES = (
    "spectral",
    "select/shadow.py",
    "_engine/shadows.py",
)


class Sizes(NamedTuple):
    """What is measured."""

    sets: dict[str, int | None]  # rows; None is all
    turns: int
    embedded: dict[str, int]  # rows
    ells: tuple[float, ...]
    splits: int
    many: int  # rows of the large set
    most: int  # atoms
    fewer: tuple[int, ...]  # of scikit-learn
    draws: int
    bandwidths: tuple[float, ...]
    points: int  # of a manifold
    seeds: int


FULL = Sizes(
    {"mnist_digits0to4": 6000, "pendigits": None, "usps": None, "a1a": 6000}, 3,
    {"german_numer": 1000, "pendigits": 3500}, (3.5, 4.0, 4.5, 5.0), 10,
    100_000, 1000, (50, 100, 200, 400), 3, (120.0, 60.0, 30.0), POINTS, 3,
)  # fmt: skip
QUICK = Sizes({"pendigits": 400}, 1, {"pendigits": 200}, (4.0,), 1, 2_000, 100, (50,), 2, (60.0,), 200, 1)
SOLVERS = ("arpack", "randomized")  # "dense" takes 30 s for USPS
LEAST_RATIO, POINT = 5.0, 0.01
MOST_SECONDS, MOST_GIGABYTES, LEAST_CORRELATION = 20.0, 1.5, 0.99
NARROW = "narrowest bandwidth"
Part = tuple[list[list[str]], str]  # rows of the summary, and the details


def neighbours(model, X, y, cut: int) -> float:
    """3-NN accuracy on the coordinates of the rows from ``cut`` on."""
    return float(KNeighborsClassifier(3).fit(model.transform(X[:cut]), y[:cut]).score(model.transform(X[cut:]), y[cut:]))


def timed(model, X, cut: int) -> float:
    """Seconds to fit on the first rows and to transform the others."""
    begun = time.perf_counter()
    model.fit(X[:cut]).transform(X[cut:])
    return time.perf_counter() - begun


def speed(sizes: Sizes) -> Part:
    rows, ratios, losses = [], [], []
    for name, most in sizes.sets.items():
        X, y = some(name, most)
        h, k = SETS[name]
        cut = int(0.9 * len(X))
        theirs = {solver: KernelPCA(k, kernel="rbf", gamma=0.5 / h**2, eigen_solver=solver) for solver in SOLVERS}
        ours = {form: ReducedKernelPCA(k, kernel=Gaussian(h), refine=form == "default") for form in ("default", "paper's form")}
        spent: dict[str, float] = {}
        timed(ours["default"], X, cut)  # compiles
        for _ in range(sizes.turns):  # in turns, so that a busy moment affects all of them
            for what, model in {**theirs, **ours}.items():
                spent[what] = min(spent.get(what, np.inf), timed(model, X, cut))
        fastest = min(SOLVERS, key=lambda solver: spent[solver])
        accuracy = neighbours(theirs[fastest], X, y, cut)
        for form, model in ours.items():
            found = neighbours(model, X, y, cut)
            ratios.append(spent[fastest] / spent[form])
            losses.append(accuracy - found)
            row = (name, f"{cut:,} × {X.shape[1]}", f"{len(model.atoms_):,}", form, f"{spent[form]:.2f}")
            row += (*(f"{spent[solver]:.2f}" for solver in SOLVERS), f"{ratios[-1]:.1f}×", f"{found:.4f}", f"{accuracy:.4f}")
            rows.append((*row, "yes" if ratios[-1] >= LEAST_RATIO and losses[-1] <= POINT else "NO"))
    head = ("data", "rows", "atoms", "form", "reduset, s", *(f"`{solver}`, s" for solver in SOLVERS), "over the fastest")
    head += ("3-NN reduset", "3-NN scikit-learn", f"{LEAST_RATIO:g}×, 1 point")
    return [
        ["Over scikit-learn's fastest solver; 3-NN accuracy lost",
         f"{min(ratios):.1f} to {max(ratios):.1f}×; {max(losses):.4f}", f"{LEAST_RATIO:g}×; ≤ {POINT}",
         "yes" if min(ratios) >= LEAST_RATIO and max(losses) <= POINT else "NO"],
    ], (
        "Fit, and transform of the other rows at ℓ = 4, against scikit-learn's solvers; 3-NN on the coordinates (90 % of the rows "
        f"to fit; a1a drawn with replacement); the best of {sizes.turns} runs in turns:\n\n" + table(head, rows)
    )  # fmt: skip


def gap(wanted: np.ndarray, found: np.ndarray) -> float:
    """‖O − ÕA‖_F / ‖O‖_F for the best A."""
    return float(np.linalg.norm(wanted - found @ np.linalg.lstsq(found, wanted, rcond=None)[0]) / np.linalg.norm(wanted))


def embeddings(sizes: Sizes) -> Part:
    rows, printed, features, below = [], [], [], True
    for name, most in sizes.embedded.items():
        X = load(name)[0][:most]
        h, k = SETS[name]
        whole = ReducedKernelPCA(k, kernel=Gaussian(h), reduce=None, centre=False).fit(X)
        means = []
        for ell in sizes.ells:
            kept, *mean = np.mean([errors_of_split(X, whole, h, k, ell, seed) for seed in range(sizes.splits)], axis=0)
            means.append(mean)
            rows.append((name, ell, f"{kept:.0%}", *(f"{each:.3e}" for each in mean)))
        average = np.mean(means, axis=0)
        printed.append(average[3] / average[0])
        features.append(average[4] / average[0])
        below = below and all(mean[0] < mean[2] and mean[1] < mean[2] for mean in means)
    head = ("data", "ℓ", "kept", "reduset", "paper's form", "subsample", "Nyström of the paper", "Nyström features + SVD")
    head += ("k-means, paper's form", "weighted Nyström of the paper", "all training rows")
    both = [f"{min(each):.2f} to {max(each):.2f}" for each in (printed, features)]
    return [
        ["Embedding error of Nyström over ours: paper's, features", ", ".join(both), "≥ 1",
         verdict(min(*printed, *features), 1.0)],
        ["Below subsampling at every size", "yes" if below else "no", "yes", "yes" if below else "NO"],
    ], (
        "Embedding of held-out rows against kernel PCA of all rows, ‖O − ÕA‖/‖O‖, 5 components, uncentred, equal m, means of "
        f"{sizes.splits} splits. The Nyström methods of the paper keep all rows to transform; the others only atoms. The last "
        "column is kernel PCA of the training rows, which no approximation of it can be expected to beat:\n\n" + table(head, rows)
    )  # fmt: skip


def errors_of_split(X, whole, h: float, k: int, ell: float, seed: int) -> list[float]:
    """The proportion of rows kept, and the errors of all methods at that size."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = X[order[: int(0.8 * len(X))]], X[order[int(0.8 * len(X)) :]]
    kernel = Gaussian(h)
    ours = ReducedKernelPCA(k, kernel=kernel, ell=ell, centre=False).fit(train)
    m = len(ours.atoms_)
    few = {"kernel": kernel, "size": m, "centre": False, "refine": False, "random_state": seed}
    paper = ReducedKernelPCA(k, kernel=kernel, ell=ell, centre=False, refine=False).fit(train)
    sub = ReducedKernelPCA(k, reduce="random", **few).fit(train)
    means = ReducedKernelPCA(k, reduce="kmeans", **few).fit(train)
    features = Nystroem(kernel, n_components=m, random_state=seed).fit(train)
    axes = np.linalg.svd(features.transform(train), full_matrices=False)[2][:k].T
    all_rows = {"kernel": kernel, "size": m, "all_rows": True, "random_state": seed}
    nystroem, weighted = (WeightedNystroem(k, reduce=reduce, **all_rows).fit(train) for reduce in ("random", "kmeans"))
    found = [model.transform(test) for model in (ours, paper, sub, nystroem)]
    found += [features.transform(test) @ axes, means.transform(test), weighted.transform(test)]
    found.append(ReducedKernelPCA(k, kernel=kernel, reduce=None, centre=False).fit(train).transform(test))
    return [m / len(train), *(gap(whole.transform(test), each) for each in found)]


def of_process(rows: int) -> dict[str, float]:
    """One fit in this process: seconds, peak memory in GB, atoms."""
    X, _ = large(rows=rows)
    begun = time.perf_counter()
    pca = ReducedKernelPCA(10, kernel=Gaussian(120.0)).fit(X)
    seconds = time.perf_counter() - begun
    pca.transform(X)
    return {"seconds": seconds, "peak": memory("VmHWM") / 1e9, "atoms": len(pca.atoms_)}


def many_rows(sizes: Sizes) -> Part:
    found = json.loads(own_process(__file__, str(sizes.many)).stdout.splitlines()[-1])
    tables = [neighbours_by_method(h, sizes) for h in sizes.bandwidths]
    head = ("bandwidth", "method", "atoms", "fit + transform, s", "3-NN", "ours above it by")
    good = "yes" if found["seconds"] < MOST_SECONDS and found["peak"] < MOST_GIGABYTES else "NO"
    gains = [gain for _, gain in tables]
    return [
        [f"{sizes.many:,} rows: time, peak memory", f"{found['seconds']:.1f} s, {found['peak']:.2f} GB",
         f"< {MOST_SECONDS:g} s, {MOST_GIGABYTES} GB", good],
        ["3-NN accuracy above scikit-learn's Nyström", f"{min(gains):+.4f} to {max(gains):+.4f}", "", ""],
    ], (
        f"{sizes.many:,} × 16 rows, 10 components, ℓ = 4: {found['seconds']:.1f} s, {found['atoms']:,.0f} atoms, peak "
        f"{found['peak']:.2f} GB (a matrix of all pairs of 100,000 rows has 80 GB).\n\nAccuracy of 3-NN on the coordinates of a "
        f"tenth of the rows, held out, at most {sizes.most:,} atoms, means of {sizes.draws} draws of the data; the last column "
        "with its standard error over the draws:\n\n" + table(head, [row for rows, _ in tables for row in rows])
    )  # fmt: skip


def neighbours_by_method(h: float, sizes: Sizes) -> tuple[list[tuple], float]:
    """Seconds and accuracies of ours and of scikit-learn's features followed by PCA; our gain at equal size."""
    kernel, gamma, most = Gaussian(h), 0.5 / h**2, sizes.most
    models = {
        ("reduset", most): lambda seed: ReducedKernelPCA(10, kernel=kernel, size=most),
        ("the paper's form", most): lambda seed: ReducedKernelPCA(10, kernel=kernel, size=most, refine=False),
    }
    for size in (*sizes.fewer, most):
        models["scikit-learn's Nystroem, then PCA", size] = lambda seed, size=size: make_pipeline(
            SklearnNystroem(gamma=gamma, n_components=size, random_state=seed), PCA(10, random_state=0)
        )
    found = {key: [] for key in models}
    cut = sizes.many * 9 // 10
    for seed in range(sizes.draws):
        X, y = large(seed, sizes.many)
        for key, build in models.items():
            model = build(seed)
            found[key].append((timed(model, X, cut), neighbours(model, X, y, cut)))
    rows, ours, gains = [], np.array(found["reduset", most]), {}
    for (method, size), tries in found.items():
        spent, accuracy = np.mean(tries, axis=0)
        each = ours[:, 1] - np.array(tries)[:, 1]
        gains[method, size] = each.mean()
        mark = "" if method == "reduset" else f"{each.mean():+.4f} ± {each.std(ddof=1) / np.sqrt(sizes.draws):.4f}"
        equal = ", equal m" if size == most else ", no slower" if spent <= ours[:, 0].mean() else ""
        name = method + (equal if "scikit" in method else "")
        rows.append((f"{h:g}", name, f"{size:,}", f"{spent:.2f}", f"{accuracy:.4f}", mark))
    return rows, gains["scikit-learn's Nystroem, then PCA", most]


def manifolds(sizes: Sizes) -> Part:
    rows, n, least = [], sizes.points, 1.0
    for name, h in (("Swiss roll", 3.0), ("two moons", 0.25)):
        for seed in range(sizes.seeds):
            X, _ = make_swiss_roll(n, random_state=seed) if name == "Swiss roll" else make_moons(n, noise=0.05, random_state=seed)
            whole = ReducedDiffusionMap(3, kernel=Gaussian(h), reduce=None).fit_transform(X)
            for reduce in ("kmeans", "shadow"):
                few = ReducedDiffusionMap(3, kernel=Gaussian(h), reduce=reduce, size=n // 20, random_state=0).fit_transform(X)
                match = [abs(np.corrcoef(whole[:, k], few[:, k])[0, 1]) for k in range(3)]
                least = min(least, *match)
                rows.append((name, seed, reduce, *(f"{each:.4f}" for each in match), verdict(min(match), LEAST_CORRELATION)))
    head = ("data", "seed", "atoms", "first", "second", "third", f"≥ {LEAST_CORRELATION}")
    good = verdict(least, LEAST_CORRELATION)
    return [["Diffusion maps reduced 20×: correlation, at least", f"{least:.4f}", f"≥ {LEAST_CORRELATION}", good]], (
        f"Diffusion maps of {n:,} rows, reduced 20×, against the dense one: correlation of coordinates:\n\n" + table(head, rows)
    )


def picture(quick: bool) -> str:
    if not quick:
        draw_embeddings()
        return f"The coordinates themselves:\n\n![embeddings of all rows and of atoms]({EMBEDDINGS.name})"
    with tempfile.TemporaryDirectory() as folder:
        draw_embeddings(Path(folder) / EMBEDDINGS.name, DIGITS // 10, POINTS // 10)
    return ""


def measure(quick: bool) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        parts = [part(QUICK if quick else FULL) for part in (speed, embeddings, many_rows, manifolds)]
        shown = picture(quick)
    return {"summary": [row for rows, _ in parts for row in rows], "details": "\n\n".join([*(text for _, text in parts), shown])}


if __name__ == "__main__":
    print(json.dumps(of_process(int(sys.argv[1]))))
