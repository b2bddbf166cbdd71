"""How much faster is `compress(X, size=500)`, certificate included, than the paper's algorithm in plain NumPy?

NumPy runs Figure 1 and Section V-B of the paper as printed, and once more with each distance computed only once. Goal: 25 times as
fast as printed, with the same atoms. Also the time of `at` and `reweigh` against a new compression.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks._lib import medians, seconds, table, verdict
from reduset import Compression, Gaussian, KernelMean, compress
from reduset.select import KCenter

TITLE = "The whole compression against the paper's algorithm in plain NumPy"
SOURCES = ("compression", "certificate", "weights", "select/kcenter.py", "_engine/farthest.py")

FULL = {"rows": 250_000, "size": 500, "repeats": 3}
QUICK = {"rows": 2_000, "size": 50, "repeats": 1}
COLUMNS, FASTER = 5, 25.0
RULES = ("median", "scott")


def k_center(X: np.ndarray, size: int, first: int) -> list[int]:
    """Figure 1 of the paper."""
    chosen = [first]
    distances = np.square(X - X[first]).sum(axis=1)
    while len(chosen) < size:
        chosen.append(int(distances.argmax()))
        np.minimum(distances, np.square(X - X[chosen[-1]]).sum(axis=1), out=distances)
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
    """The same, but each distance is computed once, for the selection and for κ."""
    chosen, kappa, inverse = [first], [], np.ones((1, 1))
    distances = np.full(len(X), np.inf)
    for m in range(size):
        squares = np.square(X - X[chosen[m]]).sum(axis=1)
        np.minimum(distances, squares, out=distances)
        kappa.append(float(np.exp(squares / (-2 * h * h)).mean()))
        if m:
            b = np.exp(squares[chosen[:m]] / (-2 * h * h))
            q = np.append(-(inverse @ b), 1.0)
            grown = np.zeros((m + 1, m + 1))
            grown[:-1, :-1] = inverse
            inverse = grown + np.outer(q, q) / (1 - b @ (inverse @ b))
        alpha = inverse @ np.array(kappa)
        if m + 1 < size:
            chosen.append(int(distances.argmax()))
    return alpha


def evaluation(mean: KernelMean) -> float:
    """Milliseconds at 1,000 queries."""
    Q = np.random.default_rng(1).normal(size=(1000, mean.dimension))
    mean(Q)
    return 1000 * min(seconds(partial(mean, Q)) for _ in range(3))


def against_paper(X: np.ndarray, rule: str, size: int, repeats: int) -> tuple[dict[str, float], Compression]:
    """Seconds of each, and the compression."""
    full = KernelMean.from_samples(X, Gaussian(rule))
    h = full.kernel.width
    compress(X[:5000], Gaussian(h), size=size, select="kcenter", rng=0)
    times = medians(
        repeats,
        ours=lambda: compress(X, Gaussian(rule), size=size, select=KCenter(first=0), rng=0),
        paper=lambda: optimal_weights(X, k_center(X, size, 0), h),
        merged=lambda: merged(X, size, 0, h),
    )
    small = compress(full, size=size, select=KCenter(first=0), rng=0)
    if not np.array_equal(small.indices, k_center(X, size, 0)):
        raise AssertionError("the atoms must be the paper's")
    return times, small


def measure(quick: bool) -> dict[str, Any]:
    n, size, repeats = (QUICK if quick else FULL).values()
    X = np.random.default_rng(0).normal(size=(n, COLUMNS))
    rows, summary, hand = [], [], []
    for rule in RULES:
        times, small = against_paper(X, rule, size, repeats)
        ratio = times["paper"] / times["ours"]
        hand.append(times["merged"] / times["ours"])
        stages = ", ".join(f"{name} {value:.3f}" for name, value in small.timings.items())
        rows.append([
            rule, *(f"{times[name]:.3f} s" for name in ("paper", "merged", "ours")), f"{ratio:.1f}×", f"{FASTER:g}×",
            verdict(ratio, FASTER), f"{hand[-1]:.1f}×", f"{small.certificate.relative_error:.3g}", stages,
        ])  # fmt: skip
        summary.append([f"Faster than the paper's algorithm, bandwidth `{rule}`", f"{ratio:.1f}×", f"{FASTER:g}×",
                        verdict(ratio, FASTER)])  # fmt: skip
    summary.append(["Faster than NumPy with each distance once", f"{min(hand):.1f} to {max(hand):.1f}×", "", ""])

    full = KernelMean.from_samples(X, Gaussian("median"))
    small = compress(full, size=size, select="kcenter", rng=0)
    other = Gaussian(full.kernel.width / 2)
    again = medians(
        repeats,
        at=lambda: small.at(size // 5),
        reweigh=lambda: small.reweigh(full, kernel=other, rng=0),
        anew=lambda: compress(X, other, size=size, select="kcenter", rng=0),
    )
    stages = small.reweigh(full, kernel=other, rng=0).timings
    if "select" in stages:
        raise AssertionError("reweigh must keep the atoms")
    summary.append([f"`at({size // 5})`", f"{1000 * again['at']:.2f} ms", "", ""])
    both = f"{again['reweigh']:.3f} s, {again['anew']:.3f} s"
    summary.append(["`reweigh` at another bandwidth, a new compression", both, "", ""])
    head = [
        "bandwidth", "paper in NumPy", "each distance once", "reduset, with bandwidth rule and certificate", "faster by", "goal",
        "met", "than each distance once", "error", "stages (s)",
    ]  # fmt: skip
    calls = [
        [f"at({size // 5})", f"{1000 * again['at']:.2f} ms", "uses the atoms, κ and the factor in the result, no data"],
        ["reweigh(full, kernel)", f"{again['reweigh']:.3f} s", f"stages {', '.join(stages)}: no selection"],
        ["compress anew", f"{again['anew']:.3f} s", f"stages {', '.join(small.timings)}"],
    ]
    return {
        "summary": summary,
        "details": table(head, rows)
        + f"\n\n{n:,} × {COLUMNS} normal points, {size} atoms, the same atoms. NumPy computes no certificate.\n\n"
        + table(["call", "time", "note"], calls)
        + f"\n\nA plain evaluation at 1,000 queries: full {evaluation(full):.2f} ms, small {evaluation(small.mean):.2f} ms.",
    }
