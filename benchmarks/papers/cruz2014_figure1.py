"""Cruz Cortés & Scott 2014, Figure 1: E² = ‖f_I‖² − 2⟨f, f_I⟩ on banana by the number of atoms, k-centre against random.

Means of ten runs, each with its own split, at the paper's bandwidth rule (`cruz2014_table1.chosen`). The paper shows a curve
without figures. It states that random atoms have smaller errors at first, and k-centre later.

Goal: random has the smaller error at 10 atoms, k-centre at 100.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks._lib import table, verdict
from benchmarks.papers.cruz2014_table1 import NEIGHBOURS, RUNS, chosen, points
from reduset import Gaussian, KernelMean, compress

TITLE = "Cruz Cortés & Scott 2014, Figure 1: E² on banana, k-centre against random"
SOURCES = ("compression/prefixes.py", "select/kcenter.py", "select/random.py", "weights/span.py")

SIZE, SHOWN = 100, (1, 2, 5, 10, 20, 30, 50, 75, 100)
EARLY = 10  # atoms, where the paper has random ahead
PICTURE = Path(__file__).parent / "results" / "cruz2014_figure1.png"


def curve(full: KernelMean, select: str, seed: int) -> np.ndarray:
    """E² of the first 1, 2, … atoms: the squared error without ‖f‖²."""
    small = compress(full, size=SIZE, select=select, rng=seed)
    square = small.certificate.norm**2
    return (small.path.relative_errors**2 - 1) * square


def measure(quick: bool) -> dict[str, Any]:
    found: dict[str, list[np.ndarray]] = {"random": [], "kcenter": []}
    for seed in range(2 if quick else RUNS):
        X = points("banana", seed, 0)
        _, h = chosen(X, seed, 1, NEIGHBOURS)
        full = KernelMean.from_samples(X, Gaussian(h))
        for select, curves in found.items():
            curves.append(curve(full, select, seed))
    means = {select: np.mean([each[: min(map(len, curves))] for each in curves], axis=0) for select, curves in found.items()}
    if not quick:
        draw(means["random"], means["kcenter"])
    return {"runs": len(found["random"]), "curves": {select: mean.tolist() for select, mean in means.items()}}


class Curves(NamedTuple):
    """Both curves up to the shorter one, and the number of atoms from which on k-centre has the smaller error."""

    random: np.ndarray
    kcenter: np.ndarray
    crossing: int

    @property
    def random_first(self) -> str:
        return verdict(self.kcenter[EARLY - 1], self.random[EARLY - 1])

    @property
    def kcenter_last(self) -> str:
        return verdict(self.random[-1], self.kcenter[-1])


def curves_of(figures: dict[str, Any]) -> Curves:
    both = [np.array(figures["curves"][name]) for name in ("random", "kcenter")]
    random, kcenter = (each[: min(map(len, both))] for each in both)
    behind = np.flatnonzero(kcenter > random)
    return Curves(random, kcenter, int(behind[-1]) + 2 if len(behind) else 1)


def summary(figures: dict[str, Any]) -> list[list[str]]:
    found = curves_of(figures)

    def pair(atoms: int) -> str:
        return f"{found.random[atoms - 1]:.4f}, {found.kcenter[atoms - 1]:.4f}"

    last = len(found.random)
    return [
        [f"E² at {EARLY} atoms: random, k-centre", pair(EARLY), "random lower", found.random_first],
        [f"E² at {last} atoms: random, k-centre", pair(last), "k-centre lower", found.kcenter_last],
        ["k-centre has the lower error from", f"{found.crossing} atoms on", "", ""],
    ]


def details(figures: dict[str, Any]) -> str:
    found = curves_of(figures)
    last = len(found.random)
    sizes = [m for m in SHOWN if m <= last]
    rows = [
        [name, *(f"{each[m - 1]:.5f}" for m in sizes)] for name, each in (("random", found.random), ("k-centre", found.kcenter))
    ]
    return (
        table(["atoms", *map(str, sizes)], rows)
        + f"\n\n![Figure 1](cruz2014_figure1.png)\n\nMeans of {figures['runs']} runs. As in the paper, random atoms "
        f"have the smaller error at first ({found.random_first} at {EARLY} atoms), and k-centre has the smaller one from "
        f"{found.crossing} atoms on ({found.kcenter_last} at {last}). The paper gives no figures, "
        "only the curve; its split and its bandwidth are not stated."
    )


def draw(random: np.ndarray, kcenter: np.ndarray) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
    for name, each in (("random", random), ("k-centre", kcenter)):
        ax.plot(np.arange(1, len(each) + 1), each, label=name)
    ax.set(xlabel="|I|", ylabel="E²", title="banana")
    ax.legend()
    figure.savefig(PICTURE, dpi=75, metadata={"Software": None})
    plt.close(figure)
