"""Pictures of reduced kernel PCA and diffusion maps: errors over ℓ, accuracy and speed, and the embeddings beside the full ones."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import make_moons, make_swiss_roll

from reduset import Gaussian
from reduset.spectral import ReducedDiffusionMap, ReducedKernelPCA
from spectral import SETS, load

matplotlib.use("Agg")  # before pyplot is imported: it needs no screen
import matplotlib.pyplot as plt

ERRORS, CLASSIFICATION, EMBEDDINGS = (
    Path(__file__).with_name(f"spectral_{name}.png") for name in ("embedding_error", "classification", "embeddings")
)
STYLES = {
    "shadow, paper's form": ("tab:red", "--"),
    "shadow, refined": ("tab:red", "-"),
    "subsample": ("0.6", ":"),
    "Nyström": ("tab:blue", "--"),
    "weighted Nyström": ("tab:green", "--"),
    "Nyström features + SVD": ("tab:blue", "-"),
}
SHOWN, ROWS, REDUCED = 1000, 3500, 20


def save(figure, path: Path) -> None:
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)


def line(axes, ells, values, method: str) -> None:
    colour, style = STYLES[method]
    axes.plot(ells, values, color=colour, linestyle=style, label=method)


def draw_errors(ells, curves) -> None:
    figure, panels = plt.subplots(2, len(curves), figsize=(9, 6.4), sharex=True, layout="constrained")
    for (name, found), (upper, lower) in zip(curves.items(), panels.T, strict=True):
        for method, each in found.methods.items():
            line(upper, ells, each.error, method)
            line(lower, ells, each.spectrum, method)
        for axes, floor in ((upper, found.full.error), (lower, found.full.spectrum)):
            axes.axhline(floor, color="0.8", linewidth=5, zorder=0, label="kernel PCA of the training rows")
        upper.set(yscale="log", title=f"{name}, {found.kept[0]:.0%} to {found.kept[-1]:.0%} kept")
        lower.set(yscale="log", xlabel="ℓ")
    panels[0, 0].set_ylabel("‖O − ÕA‖ / ‖O‖ of rows left out")
    panels[1, 0].set_ylabel("relative error of 5 eigenvalues")
    panels[0, 0].legend(fontsize=8)
    save(figure, ERRORS)


def draw_classification(ells, classes) -> None:
    figure, grid = plt.subplots(len(classes), 3, figsize=(11, 3.6 * len(classes)), layout="constrained", squeeze=False)
    for (name, found), (accuracy, training, testing) in zip(classes.items(), grid, strict=True):
        for method in found.methods[0]:
            scores = [each[method] for each in found.methods]
            line(accuracy, ells, [each.accuracy for each in scores], method)
            line(training, ells, [found.scikit.training / each.training for each in scores], method)
            line(testing, ells, [found.scikit.testing / each.testing for each in scores], method)
        accuracy.axhline(found.whole.accuracy, color="k", linewidth=0.8, label="kernel PCA of all rows")
        for axes in (training, testing):
            axes.axhline(1.0, color="k", linewidth=0.8)
        accuracy.set(title=f"{name}: 3-NN accuracy", xlabel="ℓ")
        training.set(title="training, times faster", xlabel="ℓ", yscale="log")
        testing.set(title="testing, times faster", xlabel="ℓ", yscale="log")
        accuracy.legend(fontsize=8)
    save(figure, CLASSIFICATION)


def turned_alike(wanted: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Each coordinate with the sign that it has in the other."""
    return found * np.where((wanted * found).sum(axis=0) < 0, -1.0, 1.0)


def of_digits(name: str):
    """Two components of all and of shadows, and the classes."""
    X, y = (each[:ROWS] for each in load(name))
    kernel = Gaussian(SETS[name][0])
    whole = ReducedKernelPCA(2, kernel=kernel, reduce=None, refine=False).fit_transform(X)
    model = ReducedKernelPCA(2, kernel=kernel)
    few = turned_alike(whole, model.fit_transform(X))
    return f"{name}, {len(X):,} rows", f"{len(model.atoms_):,} shadows", whole, few, y


def of_manifold(name: str):
    """Two coordinates of the dense diffusion map and of one on few k-means atoms, and the place along the manifold."""
    n = 4000
    X, along = make_swiss_roll(n, random_state=0) if name == "Swiss roll" else make_moons(n, noise=0.05, random_state=0)
    kernel = Gaussian(3.0 if name == "Swiss roll" else 0.25)
    whole = ReducedDiffusionMap(2, kernel=kernel, reduce=None).fit_transform(X)
    few = ReducedDiffusionMap(2, kernel=kernel, reduce="kmeans", size=n // REDUCED, random_state=0).fit_transform(X)
    return f"{name}, {n:,} rows", f"{n // REDUCED} k-means atoms", whole, turned_alike(whole, few), along


def draw_embeddings() -> None:
    cases = [of_digits("pendigits"), of_digits("usps"), of_manifold("Swiss roll"), of_manifold("two moons")]
    figure, grid = plt.subplots(2, len(cases), figsize=(12, 6), layout="constrained")
    for (above, below, whole, few, colour), (upper, lower) in zip(cases, grid.T, strict=True):
        for axes, title, found in ((upper, above, whole), (lower, below, few)):
            axes.scatter(*found[:SHOWN].T, c=colour[:SHOWN], s=3, cmap="tab10" if "shadows" in below else "viridis", linewidths=0)
            axes.set(title=title, xticks=[], yticks=[])
        lower.set(xlim=upper.get_xlim(), ylim=upper.get_ylim())
    save(figure, EMBEDDINGS)
