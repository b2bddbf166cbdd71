"""Data sets of the spectral benchmarks, with bandwidths and numbers of components."""

from __future__ import annotations

import numpy as np

from benchmarks._lib import data_folder

# the paper's σ as the bandwidth and its number of components; USPS in [0, 1]
SETS = {"mnist_digits0to4": (24.0 * 255, 15), "german_numer": (30.0, 5), "pendigits": (120.0, 5), "usps": (18.0, 15)}
SETS["a1a"] = 6.0, 10  # none of the paper's: rows of 0 and 1, atoms for those that differ in at most two of 123 columns


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows in a fixed random order, and their labels."""
    with np.load(data_folder() / f"{name}.npz") as file:
        parts = [k[1:] for k in file.files if k.startswith("X")]
        X, y = (np.concatenate([file[letter + part] for part in parts]) for letter in "Xy")
    order = np.random.default_rng(0).permutation(len(X))
    return X[order].astype(np.float64), y[order]


def some(name: str, rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The first rows; with replacement where there are fewer than asked for."""
    X, y = load(name)
    if rows is not None and rows > len(X):
        drawn = np.random.default_rng(0).integers(0, len(X), rows)
        return X[drawn], y[drawn]
    return X[:rows], y[:rows]


def large(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """100,000 rows of 16 columns: pendigits drawn with noise, the last 10,000 from rows that the others know nothing of."""
    X, y = load("pendigits")
    rng = np.random.default_rng(seed)
    known = int(0.9 * len(X))
    rows = np.concatenate([rng.integers(0, known, 90_000), rng.integers(known, len(X), 10_000)])
    return X[rows] + 3.0 * rng.normal(size=(100_000, 16)), y[rows]
