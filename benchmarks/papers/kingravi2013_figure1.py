"""Figure 1 of Kingravi, Vela & Gray 2013: data in the plane, their shadow centres, and the two density estimates.

The figure is conceptual and its data are not given; three Gaussian groups replace them. Measured is the difference between the
densities of the shadows and of all rows. Goal: within the bound of Theorem 5.1, since |p̂(x) − p̃(x)| ≤ √κ · MMD.
"""

from __future__ import annotations

import numpy as np

from benchmarks._lib import verdict
from benchmarks.papers import _kingravi2013 as paper
from reduset import Gaussian, KernelMean
from reduset.select import Shadow
from reduset.spectral import ReducedKernelPCA

TITLE = "Reduced kernel PCA (2013): shadows and their density, Figure 1"
SOURCES = ("select/shadow.py", "spectral/bounds.py")
NAME = "kingravi2013_figure1"
ROWS, BANDWIDTH, ELL, GRID = 600, 0.6, 2.0, 80


def measure(quick: bool = False) -> dict:
    rng = np.random.default_rng(0)
    centres = np.array([[-2.0, 0.0], [1.5, 1.5], [1.0, -2.0]])
    X = centres[rng.integers(0, 3, ROWS)] + rng.normal(size=(ROWS, 2)) * [0.9, 0.6]
    full = KernelMean.from_samples(X, Gaussian(BANDWIDTH))
    chosen = Shadow(ELL).select(full, ROWS)
    few = KernelMean(chosen.atoms, chosen.weights, full.kernel)
    axis = np.linspace(-5.0, 5.0, GRID)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    one, other = full(grid), few(grid)
    bound = ReducedKernelPCA(1, kernel=full.kernel, ell=ELL, centre=False, refine=False).fit(X).bounds_.mmd
    if not quick:
        draw(X, chosen, axis, one.reshape(GRID, GRID), other.reshape(GRID, GRID))
    return {
        "rows": ROWS,
        "atoms": len(chosen.atoms),
        "largest_difference": float(np.abs(one - other).max()),
        "largest_density": float(one.max()),
        "bound": bound,
    }


def summary(figures: dict) -> list[list[str]]:
    largest, bound = figures["largest_difference"], figures["bound"]
    return [["largest difference of the densities", f"{largest:.4f}", f"≤ {bound:.4f}", verdict(bound, largest)]]


def details(figures: dict) -> str:
    text = (
        f"{figures['rows']} rows in the plane, {figures['atoms']} shadows at ℓ = {ELL:g}. The two means of kernels differ by at "
        f"most {figures['largest_difference']:.4f}, where the largest value is {figures['largest_density']:.4f}. Theorem 5.1 "
        f"allows {figures['bound']:.4f}. The paper's data are not given, so only the kind of picture is reproduced: left the rows "
        "in the colour of their centre, then the density of all rows and that of the shadows."
    )
    return f"{text}\n\n{paper.picture(NAME, 'Figure 1: rows, shadow centres and densities')}"


def draw(X: np.ndarray, chosen, axis: np.ndarray, one: np.ndarray, other: np.ndarray) -> None:
    figure, (left, middle, right) = paper.plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharex=True, sharey=True)
    left.scatter(*X.T, c=chosen.assignments % 20, cmap="tab20", s=4, linewidths=0)
    left.scatter(*chosen.atoms.T, facecolors="none", edgecolors="k", s=2 + 4 * ROWS * chosen.weights, linewidths=0.6)
    left.set(title=f"{ROWS} rows, {len(chosen.atoms)} shadow centres")
    for axes, values, title in ((middle, one, "density of all rows"), (right, other, "density of the shadows")):
        axes.contour(axis, axis, values, levels=np.linspace(0.02, 0.98, 8) * one.max(), cmap="viridis", linewidths=0.9)
        axes.set(title=title)
    paper.save(figure, NAME)
