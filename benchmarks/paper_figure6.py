"""Figure 6 of the 2017 paper: the squared relative error on banana at every size, for all methods."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

from harness import table
from paper_data import neighbour_distance, split
from paper_sparsity import ACCURACY, RANK, frank_wolfe
from reduset import Gaussian, KernelMean, compress
from reduset.select import Herding

matplotlib.use("Agg")  # before pyplot is imported: it needs no screen
import matplotlib.pyplot as plt

TITLE = "Paper, Figure 6: errors on banana at all sizes"

FIGURE = Path(__file__).with_name("figure6.png")
SIZES = (10, 25, 50, 100, 150, 200, 250, 300)

Curve = tuple[np.ndarray, np.ndarray]  # sizes, squared relative errors


def nested(mean: KernelMean, select) -> Curve:
    path = compress(mean, size=mean.size, select=select, rng=0).path
    return path.sizes, path.relative_errors**2


def one_by_one(mean: KernelMean, select) -> Curve:
    sizes = np.union1d(np.geomspace(4, mean.size - 1, 20).astype(int), SIZES)
    squares = [compress(mean, size=int(m), select=select, rng=0).certificate.relative_error ** 2 for m in sizes]
    return sizes, np.array(squares)


def curves(mean: KernelMean) -> dict[str, Curve]:
    return {
        "SKM": nested(mean, "kcenter"),
        "RAND": nested(mean, "random"),
        "L2": nested(mean, "columnnorm"),
        "KMEANS": one_by_one(mean, "kmeans"),
        "HERD": (np.arange(1, mean.size + 1), frank_wolfe(mean)[1]),
        "HERD, best weights": nested(mean, Herding(line_search=True)),
    }


def draw(found: dict[str, Curve], n: int) -> None:
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for name, (sizes, squares) in found.items():
        axes.semilogy(sizes, np.maximum(squares, 1e-8), label=name, linestyle="--" if "best" in name else "-")
    axes.axhline(ACCURACY, color="0.7", linewidth=0.8)
    axes.set(xlabel="atoms; steps of HERD", ylabel="‖f − f_m‖² / ‖f‖²", title=f"banana, {n} points", ylim=(1e-6, 1.5))
    axes.legend()
    figure.savefig(FIGURE, dpi=110, metadata={"Software": None})
    plt.close(figure)


def run() -> str:
    X, _ = split("banana", 0)
    found = curves(KernelMean.from_samples(X, Gaussian(neighbour_distance(X, RANK))))
    draw(found, len(X))
    rows = [[name, *(f"{np.interp(m, *curve):.1e}" for m in SIZES)] for name, curve in found.items()]
    skm, rand = (np.interp(np.arange(1, len(X)), *found[name]) for name in ("SKM", "RAND"))
    crossing = int(np.flatnonzero(skm > rand)[-1]) + 2
    sizes, squares = found["KMEANS"]
    below = np.sum(squares < np.interp(sizes, *found["RAND"]))
    return (
        f"![errors on banana]({FIGURE.name})\n\n{table(['atoms', *map(str, SIZES)], rows)}\n\n"
        f"As in the paper, SKM begins with larger errors and overtakes: from {crossing} of {len(X)} atoms on it stays below RAND. "
        f"Unlike there, where KMEANS follows RAND, ours lies below it at {below} of the {len(sizes)} sizes tried; a likely reason "
        "is with Table V. HERD is drawn by its steps, dashed by its atoms with the best weights."
    )
