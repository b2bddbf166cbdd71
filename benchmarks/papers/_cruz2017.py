"""Shared by the tables of Cruz Cortés & Scott 2014 and 2017: benchmark sets, training splits, a bandwidth, and a test.

The papers do not state that they use the splits of Rätsch's collection. Kernel herding is deterministic, and its entries 0.8325 and
0.7725 in Table V (2017) are 333/400 and 309/400, so the training sets have 400 points. Splits here are random, of the same size.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import wilcoxon

from benchmarks._lib import data_folder
from reduset import Compression, KernelMean, compress

# name: the number of points of a training split
SETS = {
    "banana": 400,
    "image": 1300,
    "ringnorm": 400,
    "breast-cancer": 200,
    "heart": 170,
    "thyroid": 140,
    "diabetes": 468,
    "german": 700,
    "twonorm": 400,
    "waveform": 400,
    "iris": 150,
}
RAW = ("diabetes", "heart")  # in their own units here, standardised in the collection


def whole(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All points of a set, and their labels."""
    file = "iris" if name == "iris" else f"raetsch_{name.replace('-', '_')}"
    stored = np.load(data_folder() / f"{file}.npz", allow_pickle=False)
    X = stored["X"].astype(np.float64)
    return ((X - X.mean(axis=0)) / X.std(axis=0) if name in RAW else X), stored["y"]


def split(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random split of the size of the collection's training sets, and its labels."""
    X, y = whole(name)
    rows = np.random.default_rng(seed).permutation(len(X))[: SETS[name]]
    return X[rows], y[rows]


def neighbour_distance(X: np.ndarray, rank: int) -> float:
    """The median distance of a point to its rank-th nearest other point."""
    near = np.concatenate([np.partition(cdist(X[a : a + 500], X), rank, axis=1)[:, rank] for a in range(0, len(X), 500)])
    return float(np.median(near))


def smallest(mean: KernelMean, select: Any, seed: int, accuracy: float, precision: float = 0.0) -> Compression:
    """The smallest compression, with free weights, whose squared relative error is within ``accuracy``.

    Found by bisection, up to ``precision`` of its size. Each size is compressed separately. With redundant atoms (random atoms, a
    wide bandwidth) the prefixes of one path of all sizes differ from the selector's atoms of these sizes.
    """
    low, high, best = 0, mean.size, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # these selectors are compared although random rows may have smaller errors
        while high - low > max(1, precision * high):
            middle = (low + high) // 2
            tried = compress(mean, size=middle, select=select, rng=seed)
            if tried.certificate.relative_error**2 <= accuracy:
                high, best = middle, tried
            else:
                low = middle
        return compress(mean, size=high, select=select, rng=seed) if best is None else best


def signed_rank(first: Sequence[float], second: Sequence[float]) -> float:
    """The p-value of Wilcoxon's signed-rank test, two-sided, as in the papers."""
    gaps = np.subtract(first, second)
    return float(wilcoxon(gaps).pvalue) if gaps.any() else 1.0


def p_text(p: float) -> str:
    return f"{p:.3f}" if p >= 0.0005 else f"{p:.1e}"
