"""The finest resolution at 1,000 pieces and 5 %: ours, and atoms of peers with the best weights, all by the same search.

Columns standardised, Gaussian. Peers' atoms get the best weights of the simplex at every bandwidth that the search looks at.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans

from benchmarks._lib import table
from reduset import bandwidth, compress
from reduset._types import Array, Report
from reduset.compression.request import MOST_COLUMNS
from reduset.mean import KernelMean
from reduset.select import Selector
from reduset.select.contract import Traversal
from benchmarks.statistics.resolution import SIZE, TOL, sets

TITLE = "The finest resolution: ours and peers'"

MANY = 20_000  # rows, beyond which scikit-learn's k-means goes by batches
STEPS = 20  # of L-BFGS
WAYS = ("atoms", "refined", "components", "k-means", "thinning", "herding")


class Given(Selector):
    """Atoms that somebody else chose."""

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
        """There are as many as there are."""


def _centres(X: Array, size: int) -> Array:
    if len(X) > MANY:
        return np.asarray(MiniBatchKMeans(size, batch_size=4096, n_init=1, random_state=0).fit(X).cluster_centers_)
    return np.asarray(KMeans(size, n_init=1, random_state=0).fit(X).cluster_centers_)


def run() -> str:
    rows, finest = [], {"atoms": 0, "refined": 0}
    for name, X in sets().items():
        size = min(SIZE, len(X) // 5)
        ways = {
            "atoms": {},
            "refined": {"refine": STEPS},
            "components": {"pieces": "components"},
            "k-means": {"select": Given(_centres(X, size)), "weights": "simplex"},
            "thinning": {"select": "thinning", "weights": "simplex"},
            "herding": {"select": "herding", "weights": "simplex"},
        }
        if X.shape[1] > MOST_COLUMNS:
            ways.pop("components")
        found = {way: compress(X, size=size, tol=TOL, rng=0, **options).resolution for way, options in ways.items()}
        shares = {way: 0.0 if width is None else bandwidth.median(X) / width for way, width in found.items()}
        for ours in finest:
            finest[ours] += shares[ours] >= max(shares["k-means"], shares["thinning"], shares["herding"])
        told = [f"1/{shares[way]:.3g}" if shares.get(way) else "none" for way in WAYS]
        rows.append([f"{name}, {len(X):,}×{X.shape[1]}", f"{size:,}", *told])
        print(rows[-1], flush=True)
    head = [
        "rows",
        "pieces",
        "atoms (default)",
        "refined atoms",
        "components",
        "k-means of scikit-learn",
        "kernel thinning",
        "herding",
    ]
    return table(head, rows) + (
        f"\n\nShares of the median distance, at {TOL:.0%}: the finest bandwidth found by the same search. Refined atoms are the "
        f"default's, moved by {STEPS} steps of L-BFGS. Components have up to "
        f"{MOST_COLUMNS} columns. Scikit-learn's centres are those of `KMeans`, beyond {MANY:,} "
        "rows of `MiniBatchKMeans`; thinning and herding are ours, after Dwivedi & Mackey 2021 and Chen, Welling & Smola 2010. "
        f"Refined atoms are finer than all peers' on {finest['refined']} of {len(rows)} (goal: all), the default's on "
        f"{finest['atoms']}."
    )
