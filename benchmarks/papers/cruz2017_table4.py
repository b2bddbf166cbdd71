"""Cruz Cortés & Scott 2017, Table IV: how the time to select atoms grows with n, for the five methods that the paper compares.

The paper states complexities: SKM nk, RAND k log n, L2 n², KMEANS nkT, HERD n² + k³. Measured is the exponent of n, from the
processor time of the selection at growing n and one k. L2 and HERD use every pair of rows, as in the paper. The library's
`ColumnNorm` and `Herding` estimate from samples of the rows and are measured as well.

Goal: exponents of SKM and KMEANS at most 1.2, those of L2 and HERD at least 1.6.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._lib import table, verdict
from benchmarks.papers.cruz2017_table1 import HerdingPath
from reduset import Gaussian, KernelMean
from reduset.select import ColumnNorm, Herding, KCenter, KMeans, Random

TITLE = "Cruz Cortés & Scott 2017, Table IV: growth of the selection with n"
TIMED = True
SOURCES = ("select/kcenter.py", "select/random.py", "select/kmeans.py", "select/herding.py",
           "_engine/farthest.py", "_engine/k_means.py", "_engine/sums.py")  # fmt: skip


def column_norms(mean: KernelMean, atoms: int) -> np.ndarray:
    """L2: rows drawn by the squared norms of all columns of the kernel matrix."""
    X, norms = mean.atoms, np.zeros(mean.size)
    for a in range(0, mean.size, 256):
        norms[a : a + 256] = np.square(mean.kernel.product_gram(X[a : a + 256], X)).sum(axis=1)
    return np.random.default_rng(0).choice(mean.size, atoms, replace=False, p=norms / norms.sum())


METHODS: dict[str, tuple[str, Callable[[KernelMean, int], Any]]] = {
    "SKM": ("nk", lambda mean, k: KCenter(first=0).select(mean, k, rng=0)),
    "RAND": ("k log n", lambda mean, k: Random().select(mean, k, rng=0)),
    "L2": ("n²", column_norms),
    "KMEANS": ("nkT", lambda mean, k: KMeans().select(mean, k, rng=0)),
    "HERD": ("n² + k³", HerdingPath),
    "L2, `ColumnNorm`": ("", lambda mean, k: ColumnNorm().select(mean, k, rng=0)),
    "HERD, `Herding`": ("", lambda mean, k: Herding(line_search=True).select(mean, k, rng=0)),
}
SIZES, ATOMS, REPEATS = (5000, 10_000, 20_000), 100, 3


def seconds(method: Callable[[KernelMean, int], Any], mean: KernelMean, atoms: int) -> float:
    """The least processor time of some runs."""
    times = []
    for _ in range(REPEATS):
        begun = time.process_time()
        method(mean, atoms)
        times.append(time.process_time() - begun)
    return min(times)


def measure(quick: bool) -> dict[str, Any]:
    sizes = (500, 1000) if quick else SIZES
    X = np.random.default_rng(0).normal(size=(sizes[-1], 5))
    means = [KernelMean.from_samples(X[:n], Gaussian(1.0)) for n in sizes]
    found = {}
    for name, (_, method) in METHODS.items():
        seconds(method, means[0], 10)  # compiles
        found[name] = [seconds(method, mean, ATOMS) for mean in means]
    return {"sizes": list(sizes), "atoms": ATOMS, "seconds": found, "double": seconds(METHODS["SKM"][1], means[-1], 2 * ATOMS)}


LINEAR, SQUARE = ("SKM", "KMEANS"), ("L2", "HERD")
MOST_LINEAR, LEAST_SQUARE = 1.2, 1.6


def exponents(figures: dict[str, Any]) -> dict[str, float]:
    """The slope of log seconds over log n, for each method."""
    sizes = np.log(figures["sizes"])
    return {name: float(np.polyfit(sizes, np.log(np.maximum(figures["seconds"][name], 1e-6)), 1)[0]) for name in METHODS}


def goals(figures: dict[str, Any]) -> tuple[str, str]:
    """Whether the linear methods are linear, and the quadratic ones quadratic."""
    found = exponents(figures)
    return (
        verdict(MOST_LINEAR, max(found[name] for name in LINEAR)),
        verdict(min(found[name] for name in SQUARE), LEAST_SQUARE),
    )


def summary(figures: dict[str, Any]) -> list[list[str]]:
    found, met = exponents(figures), goals(figures)
    rows = zip((LINEAR, SQUARE), (f"≤ {MOST_LINEAR}", f"≥ {LEAST_SQUARE}"), met, strict=True)
    return [
        [f"exponent of n: {', '.join(names)}", ", ".join(f"{found[name]:.2f}" for name in names), goal, each]
        for names, goal, each in rows
    ]


def details(figures: dict[str, Any]) -> str:
    sizes, slopes, (linear, square) = np.log(figures["sizes"]), exponents(figures), goals(figures)
    rows = []
    for name, (stated, _) in METHODS.items():
        times = np.array(figures["seconds"][name])
        rows.append([name, stated, *(f"{1e3 * t:.1f} ms" for t in times), f"{slopes[name]:.2f}"])
    herd = float(np.log(figures["seconds"]["HERD"][-1] / figures["seconds"]["HERD"][-2]) / (sizes[-1] - sizes[-2]))
    in_k = float(np.log2(figures["double"] / figures["seconds"]["SKM"][-1]))
    return (
        table(["method", "stated", *(f"n = {n:,}" for n in figures["sizes"]), "exponent of n"], rows)
        + f"\n\n{figures['atoms']} atoms of standard normal rows in five columns. Linear for SKM and KMEANS: "
        f"{linear}. Quadratic for L2 and HERD: {square}. The exponent of k is {in_k:.2f} for "
        "SKM. Causes of the differences: farthest-first skips leaves of rows that a new atom cannot reach, so that SKM can be "
        "below linear in both. HERD still spends much of its time on its steps, nk, and less on the n² values: its exponent is "
        f"{herd:.2f} between the two largest n. RAND permutes all rows. KMEANS includes its number of rounds. `ColumnNorm` sums "
        "over 1,024 rows and `Herding` chooses among a limited number of candidates, so that neither is quadratic. The α column of "
        "the table, k³, is one Cholesky factor here (k³/3)."
    )
