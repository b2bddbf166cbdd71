"""Do clusters of an unweighted sketch agree better with clusters of all rows than clusters of random rows do?

k-means finds local optima, which differ more between seeds than between sketches. So each case has many seeds, and differences have
standard errors. Every row gets the cluster of its nearest row of the sketch. Goals: better than random rows in 80 % of the cases,
and in 90 % not worse by more than a standard error. Leiden on all rows with two seeds shows the highest agreement possible for it.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks._lib import table, verdict
from benchmarks.peers import sketching_data
from benchmarks.peers.sketching_data import Labelled
from benchmarks.peers.sketching_metrics import nearest
from benchmarks.peers.sketching_remote import call
from reduset import sketch

TITLE = "Clusters of sketches without weights, against random rows"
SOURCES = ("sketching/sketching.py", "sketching/strata.py", "_engine/strata.py")

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
ABOVE, WITHIN = 0.8, 0.9


def measure(quick: bool) -> dict[str, Any]:
    if quick:
        lines, gains = compared("simulated", sketching_data.simulated(3000, 10), (200, 500), seeds=2)
        return {"summary": rows_of(gains), "details": text_of(lines, 2)}
    lines, gains, again = [], [], []
    for name, sizes in CELLS.items():
        data = sketching_data.load(name)
        more = compared(name, data, sizes, SEEDS)
        lines += more[0]
        gains += more[1]
        if name in LEIDEN:
            again.append(f"{name} {leiden_again(data):.2f}")
    leiden = f"\n\nLeiden on all rows agrees with itself under another seed: {', '.join(again)}."
    return {"summary": rows_of(gains), "details": text_of(lines, SEEDS) + leiden}


def compared(name: str, data: Labelled, sizes: tuple[int, ...], seeds: int) -> tuple[list[list[str]], list[tuple[float, float]]]:
    """A line of the table per size, and the differences with their standard errors."""
    count = int(data.labels.max()) + 1
    everywhere = clusters(data.X, count, 0)
    lines, gains = [], []
    for size in sizes:
        ours, random = agreements(data.X, everywhere, count, size, seeds)
        gain = float(ours.mean() - random.mean())
        error = float(np.sqrt((ours.var(ddof=1) + random.var(ddof=1)) / seeds))
        gains.append((gain, error))
        lines.append([name, f"{size:,}", f"{ours.mean():.3f}", f"{random.mean():.3f}", f"{gain:+.3f} ± {error:.3f}"])
        print(*lines[-1], flush=True)
    return lines, gains


def clusters(rows: np.ndarray, count: int, seed: int) -> np.ndarray:
    with warnings.catch_warnings():  # about fewer distinct rows than clusters
        warnings.simplefilter("ignore")
        return KMeans(min(count, len(rows)), n_init=STARTS, random_state=seed).fit(rows).labels_


def agreements(X: np.ndarray, everywhere: np.ndarray, count: int, size: int, seeds: int) -> tuple[np.ndarray, np.ndarray]:
    """Adjusted Rand indices of sketches and of random rows, one per seed."""
    ours, random = [], []
    for seed in range(seeds):
        drawn = np.random.default_rng(1000 + seed).choice(len(X), size, replace=False)
        for found, rows in ((ours, sketch(X, size, rng=seed).indices), (random, drawn)):
            labels = clusters(X[rows], count, seed)
            found.append(adjusted_rand_score(everywhere, labels[nearest(X, X[rows])[0]]))
    return np.array(ours), np.array(random)


def leiden_again(data: Labelled) -> float:
    """Agreement of Leiden on all rows under two seeds."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npy"
        np.save(rows, data.X)
        first, second = (call("leiden", rows, 1800.0, 14.0, size=len(data.X), seed=seed)["indices"] for seed in (0, 1))
    return float(adjusted_rand_score(first, second))


def rows_of(gains: list[tuple[float, float]]) -> list[list[str]]:
    gain, error = np.array(gains).T
    above, within = float(np.mean(gain > 0)), float(np.mean(gain >= -error))
    return [
        [f"k-means agreement above random rows, of {len(gain)} cases", f"{above:.0%}", f"≥ {ABOVE:.0%}", verdict(above, ABOVE)],
        ["the same, not below by more than a standard error", f"{within:.0%}", f"≥ {WITHIN:.0%}", verdict(within, WITHIN)],
        ["mean difference of adjusted Rand indices", f"{gain.mean():+.3f}", "", ""],
    ]


def text_of(lines: list[list[str]], seeds: int) -> str:
    return (
        f"Adjusted Rand index with the clusters of all rows by k-means, {STARTS} starts each; means of {seeds} seeds, and differences "
        "± their standard errors.\n\n" + table(["data", "size", "sketch", "random rows", "difference"], lines)
    )
