"""What is the finest resolution of 1,000 atoms within 5 %: ours, or that of peers' atoms?

Peers: centres of scikit-learn's k-means, kernel thinning (Dwivedi & Mackey 2021) and herding (Chen, Welling & Smola 2010); the last
two are our implementations. All use the same search and the best weights of the simplex at every bandwidth. Goal: `refine=` finer
than all peers on every data set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans

from benchmarks._lib import table, verdict
from benchmarks.peers import peer_data
from benchmarks.statistics.resolution import SIZE, TOL, sets
from reduset import bandwidth, compress
from reduset._types import Array, Report
from reduset.compression.plan import MAX_COMPONENT_COLUMNS
from reduset.mean import KernelMean
from reduset.select import Selector
from reduset.select.contract import Traversal

TITLE = "The finest resolution: ours and peers'"
SOURCES = ("compression", "weights/weightings.py")

MANY = 20_000  # rows from which MiniBatchKMeans is used
STEPS = 20  # of L-BFGS
PEERS = {"k-means": "k-means of scikit-learn", "thinning": "kernel thinning", "herding": "herding"}
WAYS = {"atoms": "atoms (default)", "refined": "refined atoms", "components": "components", **PEERS}


class Given(Selector):
    """A selector that returns given atoms."""

    scale_free = True

    def __init__(self, atoms: Array) -> None:
        self._atoms = atoms

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Points(self._atoms)


class _Points(Traversal):
    nested, indices = False, None

    def __init__(self, atoms: Array) -> None:
        self._atoms = atoms

    @property
    def points(self) -> Array:
        return self._atoms

    def extend(self, size: int, report: Report | None = None) -> None:
        """The number of atoms is fixed."""


def measure(quick: bool) -> dict[str, Any]:
    data = {"banana": peer_data.load("raetsch_banana")[:1000]} if quick else sets()
    found = {}
    for name, X in data.items():
        size = min(SIZE, len(X) // 5)
        found[f"{name}, {len(X):,}×{X.shape[1]}", f"{size:,}"] = resolutions(X, size)
        print(*list(found.items())[-1], flush=True)
    return {"summary": rows_of(list(found.values())), "details": text_of(found)}


def resolutions(X: Array, size: int) -> dict[str, float]:
    """By method: the median distance over the finest bandwidth within the tolerance (0 without one)."""
    options: dict[str, dict[str, Any]] = {
        "atoms": {},
        "refined": {"refine": STEPS},
        "components": {"pieces": "components"},
        "k-means": {"select": Given(_centres(X, size)), "weights": "simplex"},
        "thinning": {"select": "thinning", "weights": "simplex"},
        "herding": {"select": "herding", "weights": "simplex"},
    }
    if X.shape[1] > MAX_COMPONENT_COLUMNS:
        options.pop("components")
    found = {way: compress(X, size=size, tol=TOL, rng=0, **given).resolution for way, given in options.items()}
    return {way: 0.0 if width is None else float(bandwidth.median(X) / width) for way, width in found.items()}


def _centres(X: Array, size: int) -> Array:
    if len(X) > MANY:
        return np.asarray(MiniBatchKMeans(size, batch_size=4096, n_init=1, random_state=0).fit(X).cluster_centers_)
    return np.asarray(KMeans(size, n_init=1, random_state=0).fit(X).cluster_centers_)


def rows_of(found: list[dict[str, float]]) -> list[list[str]]:
    best = [max(each[way] for way in PEERS) for each in found]
    count = {ours: sum(each[ours] >= peer for each, peer in zip(found, best, strict=True)) for ours in ("refined", "atoms")}
    ratio = float(np.median([each["refined"] / peer for each, peer in zip(found, best, strict=True)]))
    return [
        [
            "refined atoms finer than all peers, data sets",
            f"{count['refined']} of {len(found)}",
            "all",
            verdict(count["refined"], len(found)),
        ],
        ["the same, default atoms", f"{count['atoms']} of {len(found)}", "", ""],
        ["resolution of refined atoms relative to the best peer, median", f"{ratio:.2f}", "", ""],
    ]


def text_of(found: dict[tuple[str, str], dict[str, float]]) -> str:
    rows = [[*case, *(f"1/{each[way]:.3g}" if each.get(way) else "none" for way in WAYS)] for case, each in found.items()]
    return (
        f"The finest bandwidth with an error within {TOL:.0%}, relative to the median distance, by the same search. Columns are "
        f"standardised, the kernel is Gaussian. Refined atoms are the default's, moved by {STEPS} steps of L-BFGS. Components have "
        f"up to {MAX_COMPONENT_COLUMNS} columns. k-means is `KMeans`, or `MiniBatchKMeans` from {MANY:,} rows.\n\n"
        + table(["rows", "size", *WAYS.values()], rows)
    )
