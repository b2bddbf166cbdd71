"""Figures 7 and 8 of Kingravi, Vela & Gray 2013: reduced kernel PCA with other reduced-set densities, on usps and yale.

The atoms and weights come from the shadows, k-means, paring (draws with replacement), and kernel herding, always as many as the
shadows of this ℓ have. 3-NN on the coordinates, 10-fold cross-validation, without refinement (``refine=False``). Goal: differences
in accuracy at small ℓ that vanish at large ℓ, and shadows as the fastest to train apart from paring.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from benchmarks._lib import table, verdict
from benchmarks.papers import _kingravi2013 as paper
from benchmarks.papers._kingravi2013 import CLASSIFICATION_ELLS, SHADOW, YALE_PHOTOGRAPHS
from reduset.select import Herding
from reduset.spectral import ReducedKernelPCA

TITLE = "Reduced kernel PCA (2013): other reduced-set densities, Figures 7 and 8"
SOURCES = (*paper.SOURCES, "select/kmeans.py", "select/random.py", "select/herding.py")
NAME = "kingravi2013_densities"
SCHEMES = {"k-means": "kmeans", "paring": "paring", "herding": Herding(line_search=False)}
COLOURS = {SHADOW: "tab:red", "k-means": "tab:green", "paring": "0.6", "herding": "tab:blue"}
ITERATIVE = "k-means", "herding"
SETS = "usps", "yale"


def measure(quick: bool = False) -> dict:
    warnings.simplefilter("ignore", UserWarning)
    paper.compile_all()
    ells, folds = ((3.0, 4.0), 2) if quick else (CLASSIFICATION_ELLS, paper.FOLDS)
    curves(YALE_PHOTOGRAPHS, (3.0,), 1)  # compiles the selectors
    names = (YALE_PHOTOGRAPHS,) if quick else SETS
    figures = {"ells": ells, "folds": folds, "sets": {name: curves(name, ells, folds) for name in names}}
    if not quick:
        draw(figures)
    return figures


def curves(name: str, ells: tuple[float, ...], count: int) -> dict:
    X, y = paper.rows_of(name)
    _, sigma, k = paper.setting_of(name)
    by, folds = paper.gauge(sigma), paper.folds_of(X, count)
    pca = partial(ReducedKernelPCA, k, kernel=by.kernel, centre=False, refine=False)
    kept, scores = [], []
    for ell in ells:
        size = round(np.mean([by.shadows(X[train], ell) for train, _ in folds]))
        kept.append(size / len(folds[0][0]))
        found: dict[str, list] = {method: [] for method in (SHADOW, *SCHEMES)}
        for seed, fold in enumerate(folds):
            models = {SHADOW: pca(ell=by.factor * ell)}
            models |= {key: pca(reduce=reduce, size=size, random_state=seed) for key, reduce in SCHEMES.items()}
            for method, model in models.items():
                found[method].append(paper.classified(model, X, y, *fold))
        scores.append({method: paper.mean_scores(each) for method, each in found.items()})
    return {"training_rows": len(folds[0][0]), "kept": kept, "methods": scores}


# -- details ---------------------------------------------------------------------------------------------------------

CAUSES = (
    "The yale rows are variants of the 110 available photographs of ten people (see Figures 4 and 5). The paper does not state the "
    "starts of k-means nor the step of herding; herding has the step 1/(t + 1) of Chen, Welling & Smola here. The paper gives "
    "O(n²m) for herding. The library's costs O(nq + qm) for q candidates, so its training time is nearer to that of the shadows."
)


def summary(figures: dict) -> list[list[str]]:
    of, every = len(figures["ells"]), [found["methods"] for found in figures["sets"].values()]
    first, last = ([spread(scores[at]) for scores in every] for at in (0, -1))
    slower = [slower_than_shadows(scores) for scores in every]
    ranges = "; ".join(f"{one:.2f}, {other:.2f} points" for one, other in zip(first, last, strict=True))
    return [
        [f"range of accuracies at the smallest and largest ℓ: {', '.join(figures['sets'])}", ranges, "falls",
         verdict(min(np.subtract(first, last)), 0.0)],
        ["k-means and herding train slower than shadows", f"{', '.join(map(str, slower))} of {of} ℓ", f"{of}",
         verdict(min(slower), of)],
    ]  # fmt: skip


def details(figures: dict) -> str:
    parts = [
        f"Setting: {paper.NEIGHBOURS}-NN, {figures['folds']} folds of 10, kernel exp(−r²/σ²), uncentred. All methods have the mean "
        "number of shadows over the folds. The paper prints curves without numbers, so its statements are compared.",
        statements(figures),
    ]
    for name, found in figures["sets"].items():
        rows = []
        for ell, kept, scores in zip(figures["ells"], found["kept"], found["methods"], strict=True):
            cells = [f"{each['accuracy']:.4f} ± {each['standard_error']:.4f}, {each['training']:.3f} s" for each in scores.values()]
            rows.append((ell, f"{kept:.1%}", *cells))
        parts.append(
            f"**{name}**, {found['training_rows']:,} training rows. Accuracy with its standard error over the folds, and processor "
            "seconds of training with the embedding of the training rows. Kernel PCA of all rows: see Figures 4 and 5."
            "\n\n" + table(("ℓ", "kept", SHADOW, *SCHEMES), rows)
        )
    return "\n\n".join([*parts, CAUSES, paper.picture(NAME, "Figures 7 and 8: accuracy and seconds of training over ℓ")])


def statements(figures: dict) -> str:
    rows = []
    for name, found in figures["sets"].items():
        scores = found["methods"]
        slower = slower_than_shadows(scores)
        testing = [ratio([one["testing"] for one in each.values()]) for each in scores]
        rows.append(
            (
                name,
                *(f"{spread(scores[at]):.2f} points" for at in (0, -1)),
                f"{slower} of {len(scores)}",
                f"{np.median(testing):.2f}×",
            )
        )
    head = ("data", "range of accuracies at the smallest ℓ", "at the largest ℓ", "k-means and herding train slower than shadows")
    head += ("slowest over fastest in testing, median",)
    return (
        "The paper states that the density matters for small ℓ and less for large ℓ, that the more accurate densities cost more "
        "than shadows, and that testing costs the same for all. Here:\n\n" + table(head, rows)
    )


def spread(scores: dict) -> float:
    """The range of the accuracies of all methods, in percentage points."""
    values = [each["accuracy"] for each in scores.values()]
    return 100 * (max(values) - min(values))


def slower_than_shadows(scores: list[dict]) -> int:
    """The number of ℓ at which both iterative methods train slower."""
    return sum(each[SHADOW]["training"] < min(each[key]["training"] for key in ITERATIVE) for each in scores)


def ratio(values: list[float]) -> float:
    return max(values) / min(values)


def draw(figures: dict) -> None:
    ells, sets = figures["ells"], figures["sets"]
    figure, grid = paper.plt.subplots(len(sets), 2, figsize=(10, 3.4 * len(sets)), layout="constrained", squeeze=False)
    for (name, found), (accuracy, training) in zip(sets.items(), grid, strict=True):
        for method, colour in COLOURS.items():
            each = [scores[method] for scores in found["methods"]]
            accuracy.plot(ells, [one["accuracy"] for one in each], color=colour, label=method)
            training.plot(ells, [one["training"] for one in each], color=colour)
        accuracy.set(title=f"{name}: 3-NN accuracy", xlabel="ℓ")
        training.set(title="training, s", xlabel="ℓ", yscale="log")
    grid[0, 0].legend(fontsize=8)
    paper.save(figure, NAME)
