"""Cruz Cortés & Scott 2014, Figure 1: E² = ‖f_I‖² − 2⟨f, f_I⟩ on banana by the number of atoms, k-centre against random.

Means of ten runs, each with its own split, at the paper's bandwidth rule (`paper_2014.chosen`). The paper shows a curve without
figures and states that random atoms begin with smaller errors and k-centre overtakes them.

Goal: random has the smaller error at 10 atoms, k-centre at 100.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from harness import table
from paper_2014 import NEIGHBOURS, RUNS, chosen, points
from reduset import Gaussian, KernelMean, compress

TITLE = "Cruz Cortés & Scott 2014, Figure 1: E² on banana, k-centre against random"

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
    return {"runs": len(found["random"]), "curves": {select: mean.tolist() for select, mean in means.items()}}


def report(figures: dict[str, Any]) -> str:
    random, kcenter = (np.array(figures["curves"][name]) for name in ("random", "kcenter"))
    last = min(len(random), len(kcenter))
    if PICTURE.parent.exists() and figures["runs"] == RUNS:
        draw(random, kcenter)
    behind = np.flatnonzero(kcenter[:last] > random[:last])
    sizes = [m for m in SHOWN if m <= last]
    rows = [[name, *(f"{each[m - 1]:.5f}" for m in sizes)] for name, each in (("random", random), ("k-centre", kcenter))]
    first, end = kcenter[EARLY - 1] >= random[EARLY - 1], kcenter[last - 1] <= random[last - 1]
    return (
        table(["atoms", *map(str, sizes)], rows)
        + f"\n\n![Figure 1](papers/results/cruz2014_figure1.png)\n\nMeans of {figures['runs']} runs. As in the paper, random atoms "
        f"have the smaller error at first ({'yes' if first else 'NO'} at {EARLY} atoms), and k-centre has the smaller one from "
        f"{int(behind[-1]) + 2 if len(behind) else 1} atoms on ({'yes' if end else 'NO'} at {last}). The paper gives no figures, "
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
