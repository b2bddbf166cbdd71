"""Clusters of unweighted sketches and of as many random rows: agreement with clusters of all rows, over many seeds.

k-means ends in local optima, which differ between seeds by more than sketches do. So each cell has `SEEDS` sketches and as many
random samples, k-means has `STARTS` starts on each and on all rows, and differences come with their standard errors. Every row gets
the cluster of its nearest row of the sketch. Leiden is run on all rows twice: its agreement with itself under another seed is the
most that a sketch can reach (its agreement on sketches is in the section on sketches against peers).
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import sketching_data
from harness import table
from reduset import sketch
from sketching_metrics import nearest
from sketching_remote import call

TITLE = "Clusters of sketches without weights, against random rows"

CELLS = {
    "pbmc68k": (50, 100, 200, 350),
    "fcs_gvhd": (500, 2000, 5000),
    "fcs_sample001": (500, 2000, 5000),
    "fcs_cytek": (500, 2000, 5000),
    "cyto_itn15": (500, 2000, 5000),
    "rare_10": (2000,),
    "rare_50": (2000,),
}
LEIDEN = ("pbmc68k", "fcs_gvhd", "fcs_sample001", "fcs_cytek")
SEEDS, STARTS = 10, 10


def clusters(rows: np.ndarray, count: int, seed: int) -> np.ndarray:
    with warnings.catch_warnings():  # fewer distinct rows than clusters
        warnings.simplefilter("ignore")
        return KMeans(min(count, len(rows)), n_init=STARTS, random_state=seed).fit(rows).labels_


def agreements(X: np.ndarray, everywhere: np.ndarray, count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Adjusted Rand indices of sketches and of random rows, one a seed."""
    ours, random = [], []
    for seed in range(SEEDS):
        drawn = np.random.default_rng(1000 + seed).choice(len(X), size, replace=False)
        for found, rows in ((ours, sketch(X, size, rng=seed).indices), (random, drawn)):
            labels = clusters(X[rows], count, seed)
            found.append(adjusted_rand_score(everywhere, labels[nearest(X, X[rows])[0]]))
    return np.array(ours), np.array(random)


def leiden_again(data: sketching_data.Labelled) -> float:
    """Agreement of Leiden on all rows under two seeds."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npy"
        np.save(rows, data.X)
        first, second = (call("leiden", rows, 1800.0, 14.0, size=len(data.X), seed=seed)["indices"] for seed in (0, 1))
    return float(adjusted_rand_score(first, second))


def run() -> str:
    lines, gains, again = [], [], []
    for name, sizes in CELLS.items():
        data = sketching_data.load(name)
        count = int(data.labels.max()) + 1
        everywhere = clusters(data.X, count, 0)
        for size in sizes:
            ours, random = agreements(data.X, everywhere, count, size)
            gain = ours.mean() - random.mean()
            error = np.sqrt((ours.var(ddof=1) + random.var(ddof=1)) / SEEDS)
            gains.append((gain, error))
            lines.append([name, f"{size:,}", f"{ours.mean():.3f}", f"{random.mean():.3f}", f"{gain:+.3f} ± {error:.3f}"])
            print(*lines[-1], flush=True)
        if name in LEIDEN:
            again.append(f"{name} {leiden_again(data):.2f}")
    gain, error = np.array(gains).T
    return table(["data", "size", "sketch", "random rows", "difference"], lines) + (
        f"\n\nk-means: means of {SEEDS} seeds, {STARTS} starts each, ± a standard error. Above random rows in "
        f"{np.mean(gain > 0):.0%} of {len(gain)} cells (goal 80 %), not below by more than a standard error in "
        f"{np.mean(gain >= -error):.0%} (goal 90 %). Leiden on all rows agrees under another seed by {', '.join(again)}."
    )


if __name__ == "__main__":
    print(run())
