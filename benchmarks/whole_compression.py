"""compress(X, size=500), certificate included, against the paper's algorithm in plain NumPy; and what at and reweigh cost."""

from __future__ import annotations

import time

import numpy as np

from harness import medians, seconds, table, verdict
from reduset import Gaussian, KernelMean, compress
from reduset.select import KCenter

TITLE = "The whole compression against the paper's algorithm in plain NumPy"


def k_center(X: np.ndarray, size: int, first: int) -> list[int]:
    """Figure 1 of the paper."""
    chosen = [first]
    gap = np.square(X - X[first]).sum(axis=1)
    while len(chosen) < size:
        chosen.append(int(gap.argmax()))
        np.minimum(gap, np.square(X - X[chosen[-1]]).sum(axis=1), out=gap)
    return chosen


def optimal_weights(X: np.ndarray, chosen: list[int], h: float) -> np.ndarray:
    """Section V-B: κ entry by entry, and the inverse updated for each atom."""
    kappa: list[float] = []
    inverse = np.ones((1, 1))
    for m, row in enumerate(chosen):
        kappa.append(float(np.exp(-np.square(X - X[row]).sum(axis=1) / (2 * h * h)).mean()))
        if m:
            b = np.exp(-np.square(X[chosen[:m]] - X[row]).sum(axis=1) / (2 * h * h))
            q = np.append(-(inverse @ b), 1.0)
            grown = np.zeros((m + 1, m + 1))
            grown[:-1, :-1] = inverse
            inverse = grown + np.outer(q, q) / (1 - b @ (inverse @ b))
        alpha = inverse @ np.array(kappa)
    return alpha


def merged(X: np.ndarray, size: int, first: int, h: float) -> np.ndarray:
    """The same by a careful hand: each distance is computed once, for the selection and for κ."""
    chosen, kappa, inverse = [first], [], np.ones((1, 1))
    gap = np.full(len(X), np.inf)
    for m in range(size):
        squares = np.square(X - X[chosen[m]]).sum(axis=1)
        np.minimum(gap, squares, out=gap)
        kappa.append(float(np.exp(squares / (-2 * h * h)).mean()))
        if m:
            b = np.exp(squares[chosen[:m]] / (-2 * h * h))
            q = np.append(-(inverse @ b), 1.0)
            grown = np.zeros((m + 1, m + 1))
            grown[:-1, :-1] = inverse
            inverse = grown + np.outer(q, q) / (1 - b @ (inverse @ b))
        alpha = inverse @ np.array(kappa)
        if m + 1 < size:
            chosen.append(int(gap.argmax()))
    return alpha


def run() -> str:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250_000, 5))
    rows = []
    for rule in ("median", "scott"):
        full = KernelMean.from_samples(X, Gaussian(rule))
        h = full.kernel.width
        compress(X[:5000], Gaussian(h), size=500, select="kcenter", rng=0)
        times = medians(
            3,
            ours=lambda rule=rule: compress(X, Gaussian(rule), size=500, select=KCenter(first=0), rng=0),
            paper=lambda h=h: optimal_weights(X, k_center(X, 500, 0), h),
            merged=lambda h=h: merged(X, 500, 0, h),
        )
        small = compress(full, size=500, select=KCenter(first=0), rng=0)
        assert np.array_equal(small.indices, k_center(X, 500, 0))
        ratio = times["paper"] / times["ours"]
        stages = ", ".join(f"{name} {value:.3f}" for name, value in small.timings.items())
        rows.append(
            [
                rule,
                f"{times['paper']:.2f} s",
                f"{times['merged']:.2f} s",
                f"{times['ours']:.3f} s",
                f"{ratio:.1f}×",
                "25×",
                verdict(ratio, 25),
                f"{times['merged'] / times['ours']:.1f}×",
                f"{small.certificate.relative_error:.3g}",
                stages,
            ]
        )
    head = [
        "bandwidth",
        "paper in NumPy",
        "the same, merged by hand",
        "reduset, with bandwidth rule and certificate",
        "faster by",
        "goal",
        "met",
        "than merged",
        "error",
        "stages (s)",
    ]
    text = (
        table(head, rows)
        + "\n\n250,000×5 normal points, 500 atoms, the same atoms. NumPy's side has no certificate to compute.\n\n"
    )

    full = KernelMean.from_samples(X, Gaussian("median"))
    small = compress(full, size=500, select="kcenter", rng=0)
    moved = Gaussian(full.kernel.width / 2)
    again = medians(3, at=lambda: small.at(100), reweigh=lambda: small.reweigh(full, kernel=moved, rng=0))
    begun = time.perf_counter()
    fresh = compress(X, moved, size=500, select="kcenter", rng=0)
    whole = time.perf_counter() - begun
    stages = small.reweigh(full, kernel=moved, rng=0).timings
    assert "select" not in stages
    at_rows = [
        [
            "at(100)",
            f"{1000 * again['at']:.2f} ms",
            "touches no data: it works from the atoms, κ and the factor that the result holds",
        ],
        ["reweigh(full, kernel)", f"{again['reweigh']:.3f} s", f"stages {', '.join(stages)}: no selection"],
        ["compress anew", f"{whole:.3f} s", f"stages {', '.join(fresh.timings)}"],
    ]
    return (
        text
        + table(["call", "time", "note"], at_rows)
        + f"\n\nA plain evaluation at 1,000 queries: full {_evaluation(full)}, small {_evaluation(small.mean)}."
    )


def _evaluation(mean: KernelMean) -> str:
    Q = np.random.default_rng(1).normal(size=(1000, mean.dimension))
    mean(Q)
    return f"{1000 * min(seconds(lambda: mean(Q)) for _ in range(3)):.2f} ms"
