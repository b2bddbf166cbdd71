"""Embeddings of reduced kernel PCA and of diffusion maps, next to those of all rows, as a picture."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import make_moons, make_swiss_roll

from benchmarks.applications.spectral_data import SETS, load
from reduset import Gaussian
from reduset.spectral import ReducedDiffusionMap, ReducedKernelPCA

matplotlib.use("Agg")  # before pyplot is imported: it needs no screen
import matplotlib.pyplot as plt

EMBEDDINGS = Path(__file__).with_name("results") / "spectral_embeddings.png"
SHOWN, DIGITS, POINTS, REDUCED = 1000, 3500, 4000, 20


def turned_alike(wanted: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Each coordinate with the sign of the other embedding."""
    return found * np.where((wanted * found).sum(axis=0) < 0, -1.0, 1.0)


def of_digits(name: str, rows: int):
    """Two components of all rows and of shadows, and the classes."""
    X, y = (each[:rows] for each in load(name))
    kernel = Gaussian(SETS[name][0])
    whole = ReducedKernelPCA(2, kernel=kernel, reduce=None, refine=False).fit_transform(X)
    model = ReducedKernelPCA(2, kernel=kernel)
    few = turned_alike(whole, model.fit_transform(X))
    return f"{name}, {len(X):,} rows", f"{len(model.atoms_):,} shadows", whole, few, y


def of_manifold(name: str, n: int):
    """Two coordinates of the dense diffusion map and of one on few k-means atoms, and the position along the manifold."""
    X, along = make_swiss_roll(n, random_state=0) if name == "Swiss roll" else make_moons(n, noise=0.05, random_state=0)
    kernel = Gaussian(3.0 if name == "Swiss roll" else 0.25)
    whole = ReducedDiffusionMap(2, kernel=kernel, reduce=None).fit_transform(X)
    few = ReducedDiffusionMap(2, kernel=kernel, reduce="kmeans", size=n // REDUCED, random_state=0).fit_transform(X)
    return f"{name}, {n:,} rows", f"{n // REDUCED} k-means atoms", whole, turned_alike(whole, few), along


def draw_embeddings(path: Path = EMBEDDINGS, digits: int = DIGITS, points: int = POINTS) -> None:
    cases = [of_digits(name, digits) for name in ("pendigits", "usps")]
    cases += [of_manifold(name, points) for name in ("Swiss roll", "two moons")]
    figure, grid = plt.subplots(2, len(cases), figsize=(12, 6), layout="constrained")
    for (above, below, whole, few, colour), (upper, lower) in zip(cases, grid.T, strict=True):
        for axes, title, found in ((upper, above, whole), (lower, below, few)):
            axes.scatter(*found[:SHOWN].T, c=colour[:SHOWN], s=3, cmap="tab10" if "shadows" in below else "viridis", linewidths=0)
            axes.set(title=title, xticks=[], yticks=[])
        lower.set(xlim=upper.get_xlim(), ylim=upper.get_ylim())
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)
