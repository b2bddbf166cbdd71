"""Pairs of samples from two distributions by name: `draw(name, seed, n)` returns X, Y of n rows each.

From real tables, rows are drawn with replacement. The strength of each change is such that the full permutation test at its best
bandwidth rejects in 40 to 80 % of pairs of the size in `SIZES`, where differences between tests are visible. ctt divides these
sizes into bins without omitting rows. With `strength=0` both distributions are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np

from benchmarks._lib import data_folder

Pair = tuple[np.ndarray, np.ndarray]
Draw = Callable[[np.random.Generator, int, float], Pair]


def blobs(rng: np.random.Generator, n: int, strength: float) -> Pair:
    """A grid of 3 × 3 Gaussians, 5 standard deviations apart; those of Y are stretched along the diagonal."""
    X, Y = (5.0 * rng.integers(0, 3, (n, 2)) for _ in range(2))
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
    stretched = rng.normal(size=(n, 2)) * [1 + strength, 1 / (1 + strength)]
    return X + rng.normal(size=(n, 2)), Y + stretched @ turn.T


def mean_shift(rng: np.random.Generator, n: int, strength: float) -> Pair:
    """Standard normal in 10 columns; the mean of the first column changes."""
    X, Y = rng.normal(size=(2, n, 10))
    Y[:, 0] += strength
    return X, Y


def variance(rng: np.random.Generator, n: int, strength: float) -> Pair:
    """Standard normal in 5 columns; the standard deviation of all of them changes."""
    X, Y = rng.normal(size=(2, n, 5))
    return X, (1 + strength) * Y


@cache
def table(name: str) -> dict[str, np.ndarray]:
    with np.load(data_folder() / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


@cache
def digits(name: str) -> tuple[np.ndarray, np.ndarray]:
    file = table(name)
    X, y = (np.concatenate([file[f"{key}_train"], file[f"{key}_test"]]) for key in "Xy")
    if name == "pendigits":
        return X.astype(np.float64) / 100, y
    return X.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49) / 255, y


def withheld(name: str, digit: int) -> Draw:
    """All digits; Y lacks this proportion of one digit."""

    def pair(rng: np.random.Generator, n: int, strength: float) -> Pair:
        X, y = digits(name)
        kept = np.where(y == digit, 1 - strength, 1.0)
        return X[rng.integers(0, len(X), n)], X[rng.choice(len(X), n, p=kept / kept.sum())]

    return pair


def mixed(one: np.ndarray, another: np.ndarray, rng: np.random.Generator, n: int, strength: float) -> Pair:
    X, Y = (one[rng.integers(0, len(one), n)] for _ in range(2))
    other = rng.random(n) < strength
    Y[other] = another[rng.integers(0, len(another), other.sum())]
    return X, Y


@cache
def months() -> list[np.ndarray]:
    """Weekday, minute of the day, delay and distance of the flights of each month, in standard deviations over all months."""
    X = table("big_flights")["X"].astype(np.float64)
    ends = np.cumsum([0, 31, 28, 31, 30, 31, 30])
    columns = X[:, 1:5] / X[:, 1:5].std(axis=0)
    return [columns[(X[:, 0] > begin) & (X[:, 0] <= end)] for begin, end in pairwise(ends)]


def flights(rng: np.random.Generator, n: int, strength: float) -> Pair:
    """Flights of January; in Y this proportion is from June."""
    return mixed(months()[0], months()[5], rng, n, strength)


@cache
def patients() -> np.ndarray:
    """All channels but time, in standard deviations over all patients."""
    X = table("cyto_itn15")["X"][:, :, :7].astype(np.float64)
    return X / X.reshape(-1, 7).std(axis=0)


def cyto(rng: np.random.Generator, n: int, strength: float) -> Pair:
    """Cells of one patient; in Y this proportion is from another patient."""
    return mixed(patients()[0], patients()[5], rng, n, strength)


LAWS: dict[str, tuple[Draw, float, int]] = {  # function, strength, rows of each sample
    "blobs": (blobs, 0.55, 256),
    "mean shift": (mean_shift, 0.33, 256),
    "variance": (variance, 0.12, 256),
    "mnist": (withheld("mnist_digits0to4", 4), 0.7, 256),
    "pendigits": (withheld("pendigits", 9), 1.0, 512),
    "flights": (flights, 1.0, 512),
    "cyto": (cyto, 0.13, 256),
}
NAMES = tuple(LAWS)
SIZES = {name: n for name, (_, _, n) in LAWS.items()}


def draw(name: str, seed: int, n: int | None = None, strength: float | None = None) -> Pair:
    """The pair for this seed, always the same; by default with the recorded size and strength."""
    law, usual, size = LAWS[name]
    rng = np.random.default_rng([NAMES.index(name), seed])
    return law(rng, n or size, usual if strength is None else strength)
