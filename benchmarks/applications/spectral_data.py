"""Data sets of the spectral benchmarks, with bandwidths and numbers of components."""

from __future__ import annotations

import numpy as np

from benchmarks._lib import data_folder

# the paper's σ as the bandwidth and its number of components; USPS in [0, 1]
SETS = {"mnist_digits0to4": (24.0 * 255, 15), "german_numer": (30.0, 5), "pendigits": (120.0, 5), "usps": (18.0, 15)}
SETS["a1a"] = 6.0, 10  # not in the paper: rows of 0 and 1; an atom represents rows that differ in at most two of 123 columns


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows in a fixed random order, and their labels."""
    with np.load(data_folder() / f"{name}.npz") as file:
        parts = [k[1:] for k in file.files if k.startswith("X")]
        X, y = (np.concatenate([file[letter + part] for part in parts]) for letter in "Xy")
    order = np.random.default_rng(0).permutation(len(X))
    return X[order].astype(np.float64), y[order]


def some(name: str, rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The first rows; drawn with replacement if there are fewer than requested."""
    X, y = load(name)
    if rows is not None and rows > len(X):
        drawn = np.random.default_rng(0).integers(0, len(X), rows)
        return X[drawn], y[drawn]
    return X[:rows], y[:rows]


def large(seed: int = 1, rows: int = 100_000) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 16 columns: pendigits drawn with noise; the last tenth comes from rows that the others do not use."""
    X, y = load("pendigits")
    rng = np.random.default_rng(seed)
    known, first = int(0.9 * len(X)), rows * 9 // 10
    chosen = np.concatenate([rng.integers(0, known, first), rng.integers(known, len(X), rows - first)])
    return X[chosen] + 3.0 * rng.normal(size=(rows, 16)), y[chosen]
