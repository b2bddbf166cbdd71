"""Do clusters of an unweighted sketch agree better with clusters of all rows than clusters of random rows do?

k-means and Leiden differ more between seeds than between sketches. So each case has many seeds, and differences have standard
errors. Every row gets the cluster of its nearest row of the sketch. Goals: above random rows in 80 % of the k-means cases, and in
90 % of all cases not below by more than a standard error. Leiden on all rows with two seeds shows the highest agreement possible.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks._lib import table, verdict
from benchmarks._lib.remote import exchange, is_installed, omitted
from benchmarks.peers import sketching_data
from benchmarks.peers.sketching_data import Labelled
from benchmarks.peers.sketching_metrics import nearest
from reduset import sketch

TITLE = "Clusters of sketches without weights, against random rows"
SOURCES = ("sketching/sketching.py", "sketching/strata.py", "_engine/strata.py", "_engine/exchanging.py")

CELLS = {  # sizes, and seeds
    "pbmc68k": ((50, 100, 200, 350), 60),
    "fcs_gvhd": ((500, 2000, 5000), 60),
    "fcs_sample001": ((500, 2000, 5000), 40),
    "fcs_cytek": ((500, 2000, 5000), 40),
    "cyto_itn15": ((500, 2000, 5000, 20_000, 50_000), 10),
    "rare_10": ((2000,), 20),
    "rare_50": ((2000,), 15),
    "simulated": ((2000, 5000), 5),
}
LEIDEN = ("pbmc68k", "fcs_gvhd", "fcs_sample001", "fcs_cytek")
LEIDEN_SEEDS, STARTS = 20, 10
ABOVE, WITHIN = 0.8, 0.9


@dataclass(frozen=True)
class Case:
    """Mean agreement of sketches and of random rows, and the standard error of their difference."""

    data: str
    size: int
    seeds: int
    sketch: float
    random: float
    error: float

    @classmethod
    def of(cls, data: str, size: int, ours: list[float], random: list[float]) -> Case:
        error = np.sqrt((np.var(ours, ddof=1) + np.var(random, ddof=1)) / len(ours))
        case = cls(data, size, len(ours), float(np.mean(ours)), float(np.mean(random)), float(error))
        print(case, flush=True)
        return case

    @property
    def gain(self) -> float:
        return self.sketch - self.random


def measure(quick: bool) -> dict[str, Any]:
    if quick:
        data = sketching_data.simulated(3000, 10)
        means = list(with_k_means("simulated", data, (200, 500), seeds=2))
        found = [with_leiden("simulated", data, (200,), seeds=2)] if is_installed("sketch") else []
        return figures_of(means, found) | {"note": omitted("sketch")}
    means, found = [], []
    for name, (sizes, seeds) in CELLS.items():
        data = sketching_data.load(name)
        means += with_k_means(name, data, sizes, seeds)
        if name in LEIDEN:
            found.append(with_leiden(name, data, sizes, LEIDEN_SEEDS))
    return figures_of(means, found)


def figures_of(means: list[Case], leiden: list[tuple[float, list[Case]]]) -> dict[str, Any]:
    return {
        "k-means": [vars(case) for case in means],
        "Leiden": [vars(case) for _, cases in leiden for case in cases],
        "Leiden again": {cases[0].data: again for again, cases in leiden},
    }


def draws(X: np.ndarray, size: int, seeds: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Seed, rows of a sketch, and random rows."""
    for seed in range(seeds):
        random = np.random.default_rng(1000 + seed).choice(len(X), size, replace=False)
        yield seed, sketch(X, size, rng=seed).indices, random


def agreement(everywhere: np.ndarray, X: np.ndarray, rows: np.ndarray, clusters: np.ndarray) -> float:
    return float(adjusted_rand_score(everywhere, clusters[nearest(X, X[rows])[0]]))


def with_k_means(name: str, data: Labelled, sizes: tuple[int, ...], seeds: int) -> Iterator[Case]:
    X, count = data.X, int(data.labels.max()) + 1

    def clusters(rows: np.ndarray, seed: int) -> np.ndarray:
        with warnings.catch_warnings():  # about fewer distinct rows than clusters
            warnings.simplefilter("ignore")
            return KMeans(min(count, len(rows)), n_init=STARTS, random_state=seed).fit(rows).labels_

    everywhere = clusters(X, 0)
    for size in sizes:
        ours, random = [], []
        for seed, chosen, drawn in draws(X, size, seeds):
            ours.append(agreement(everywhere, X, chosen, clusters(X[chosen], seed)))
            random.append(agreement(everywhere, X, drawn, clusters(X[drawn], seed)))
        yield Case.of(name, size, ours, random)


def with_leiden(name: str, data: Labelled, sizes: tuple[int, ...], seeds: int) -> tuple[float, list[Case]]:
    """Agreement of Leiden on all rows with itself, and the cases."""
    X = data.X
    sets = {"all": np.arange(len(X)), "again": np.arange(len(X))}
    for size in sizes:
        for seed, chosen, drawn in draws(X, size, seeds):
            sets |= {f"sketch {size} {seed}": chosen, f"random {size} {seed}": drawn}
    found = exchange("sketch", "leiden_worker.py", {"rows": X} | sets)
    cases = []
    for size in sizes:
        ours, random = (
            [agreement(found["all"], X, sets[f"{kind} {size} {seed}"], found[f"{kind} {size} {seed}"]) for seed in range(seeds)]
            for kind in ("sketch", "random")
        )
        cases.append(Case.of(name, size, ours, random))
    return float(adjusted_rand_score(found["all"], found["again"])), cases


def summary(figures: dict[str, Any]) -> list[list[str]]:
    rows = []
    for method in ("k-means", "Leiden"):
        cases = [Case(**each) for each in figures[method]]
        if not cases:
            continue
        above, within = np.mean([case.gain > 0 for case in cases]), np.mean([case.gain >= -case.error for case in cases])
        goal = f"≥ {ABOVE:.0%}" if method == "k-means" else ""
        met = verdict(above, ABOVE) if goal else ""
        rows.append([f"{method}, above random rows, of {len(cases)} cases", f"{above:.0%}", goal, met])
        rows.append(
            [f"{method}, not below by more than a standard error", f"{within:.0%}", f"≥ {WITHIN:.0%}", verdict(within, WITHIN)]
        )
    return rows


def details(figures: dict[str, Any]) -> str:
    parts = []
    for method in ("k-means", "Leiden"):
        lines = [
            [
                each.data,
                f"{each.size:,}",
                each.seeds,
                f"{each.sketch:.3f}",
                f"{each.random:.3f}",
                f"{each.gain:+.3f} ± {each.error:.3f}",
            ]
            for each in (Case(**found) for found in figures[method])
        ]
        parts.append(f"{method}: adjusted Rand index with the clusters of all rows, means of the seeds.\n")
        parts.append(table(["data", "size", "seeds", "sketch", "random rows", "difference ± standard error"], lines) + "\n")
    again = ", ".join(f"{name} {value:.2f}" for name, value in figures["Leiden again"].items())
    return "\n".join(parts) + f"\nLeiden on all rows agrees with itself under another seed: {again}." + figures.get("note", "")
