"""How long do densities at 1,000 points take, and with what error, compared with SciPy and KDEpy?

Peers: `gaussian_kde` of SciPy, `FFTKDE` and `TreeKDE` of KDEpy (in its environment, `kdepy_worker.py`). Also compared: the improved
Sheather-Jones bandwidth with that of KDEpy, and probabilities of boxes with SciPy. Goal: less time than `gaussian_kde`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde

from benchmarks._lib import medians, seconds, table, verdict
from benchmarks._lib.remote import exchange, is_installed, omitted
from reduset import Gaussian, KernelMean, bandwidth
from reduset.density import SparseKernelDensity

TITLE = "Densities of SciPy and KDEpy"
TIMED = True
SOURCES = ("density", "mean.py", "bandwidth/isj.py", "_engine/sums.py")

CLOUDS = tuple((n, d) for d in (1, 2, 5) for n in (100_000, 1_000_000))
BOXES = ((1_000_000, 1), (100_000, 2), (1000, 3), (1000, 5))
QUICK_CLOUDS, QUICK_BOXES = ((5000, 1), (5000, 2)), ((5000, 1), (1000, 2))
QUERIES = 1000
PAIRS = 20_000_000  # pairs of rows and queries that SciPy and the tree are timed on; times are scaled to all queries
TOL = 0.03
LARGE = 1_000_000  # entries from which a fit is timed once


def measure(quick: bool) -> dict[str, Any]:
    with_kdepy = not quick or is_installed("kdepy")
    clouds = [compared(n, d, with_kdepy) for n, d in (QUICK_CLOUDS if quick else CLOUDS)]
    boxes = [of_box(n, d) for n, d in (QUICK_BOXES if quick else BOXES)]
    return {"summary": rows_of(clouds, boxes), "details": text_of(clouds, boxes) + omitted("kdepy") * quick}


def two_modes(rows: int, d: int, seed: int) -> np.ndarray:
    """Two round normal modes."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, d)) + np.where(rng.random((rows, 1)) < 0.4, 3.0, 0.0)


def compared(n: int, d: int, with_kdepy: bool) -> dict[str, Any]:
    """By method: seconds of a fit (0 without one), seconds of all queries, and error; and the bandwidths of one column."""
    X, Q = two_modes(n, d, 0), two_modes(QUERIES, d, 1)
    h = bandwidth.scott(X)
    few = max(20, min(QUERIES, PAIRS // n))
    exact = KernelMean.from_samples(X, Gaussian(h, normalized=True))
    truth = exact(Q, "double")
    scipy_seconds = seconds(lambda: gaussian_kde(X.T)(Q[:few].T)) * QUERIES / few
    pieces = "atoms" if d <= 2 else "components"  # normal distributions need few components
    sparse = SparseKernelDensity(bandwidth=h, tol=TOL, pieces=pieces, random_state=0)
    SparseKernelDensity(bandwidth=h, size=4, pieces=pieces, random_state=0).fit(X[:2000]).score_samples(Q)  # compiles
    took = medians(
        3 if n * d < LARGE else 1, all=partial(exact, Q), fit=partial(sparse.fit, X), query=lambda: sparse.score_samples(Q)
    )
    kept = f"{sparse.mean_.size:,} {pieces}" if sparse.compression_ is not None else "all rows"
    off = partial(relative_error, truth)
    lines = {
        "gaussian_kde": (0.0, scipy_seconds, 0.0),
        "KernelMean of all rows": (0.0, took["all"], off(exact(Q))),
        f"SparseKernelDensity, {kept}": (took["fit"], took["query"], off(np.exp(sparse.score_samples(Q)))),
    }
    found: dict[str, Any] = {"rows": f"{n:,}×{d}", "lines": lines}
    if with_kdepy:
        theirs = exchange("kdepy", "kdepy_worker.py", {"X": X, "Q": Q, "h": h, "few": few})
        lines["TreeKDE"] = (0.0, theirs["tree_seconds"] * QUERIES / few, off(theirs["tree"]))
        lines["FFTKDE, interpolated"] = (0.0, theirs["grid_seconds"], off(theirs["grid"]))
        found["version"] = theirs["version"]
        if d == 1:
            width, span = theirs["isj"], theirs["range"]
            # KDEpy omits the width of its grid
            found["isj"] = float(bandwidth.isj(X)), width, width * (span + 2 * max(span / 2, 6)) / span
    return found


def of_box(n: int, d: int) -> tuple[str, float, float, float]:
    """The rows, seconds of SciPy and of ours, and the difference of the probabilities."""
    X = two_modes(n, d, 0)
    low, high = np.full(d, -1.0), np.linspace(0.5, 2.0, d)
    theirs = gaussian_kde(X.T)
    ours = KernelMean.from_samples(X, Gaussian("scott", covariance=np.atleast_2d(np.cov(X.T))))
    ours.integrate_box(low, high)
    found: dict[str, float] = {}

    def by_scipy() -> None:
        found["theirs"] = float(theirs.integrate_box_1d(low[0], high[0]) if d == 1 else theirs.integrate_box(low, high))

    took = medians(3, theirs=by_scipy, ours=lambda: ours.integrate_box(low, high))
    return f"{n:,}×{d}", took["theirs"], took["ours"], abs(float(ours.integrate_box(low, high)) - found["theirs"])


def relative_error(truth: np.ndarray, values: np.ndarray) -> float:
    expected = truth[: len(values)]
    return float(np.linalg.norm(values - expected) / np.linalg.norm(expected))


def rows_of(clouds: list[dict[str, Any]], boxes: list[tuple[str, float, float, float]]) -> list[list[str]]:
    def faster(name: str) -> list[float]:
        """The time of `gaussian_kde` relative to the time of this method, without a fit."""
        return [
            cloud["lines"]["gaussian_kde"][1] / line[1]
            for cloud in clouds
            for key, line in cloud["lines"].items()
            if key.startswith(name)
        ]

    exact, sparse, box = faster("KernelMean"), faster("Sparse"), [theirs / ours for _, theirs, ours, _ in boxes]
    rows = [
        ["`KernelMean` of all rows faster than `gaussian_kde` by", _span(exact), "≥ 1", verdict(min(exact), 1)],
        [f"fitted `SparseKernelDensity(tol={TOL:g})` faster by", _span(sparse), "≥ 1", verdict(min(sparse), 1)],
        ["probability of a box faster than SciPy by", _span(box), "", ""],
        ["its difference from SciPy, largest", f"{max(apart for *_, apart in boxes):.0e}", "", ""],
    ]
    isj = [abs(ours / corrected - 1) for ours, _, corrected in (cloud["isj"] for cloud in clouds if "isj" in cloud)]
    if isj:
        rows.append(["`isj` bandwidth, difference from KDEpy's (corrected)", f"{max(isj):.1%}", "", ""])
    return rows


def _span(values: list[float]) -> str:
    return " to ".join(f"{float(f'{value:.2g}'):,g}" for value in (min(values), max(values))) + "×"


def text_of(clouds: list[dict[str, Any]], boxes: list[tuple[str, float, float, float]]) -> str:
    rows = []
    for cloud in clouds:
        first = cloud["rows"]
        for name, (fit, query, error) in cloud["lines"].items():
            rows.append([first, name, time_of(fit) if fit else "", time_of(query), f"{error:.1g}"])
            first = ""
    versions = ", ".join(sorted({cloud["version"] for cloud in clouds if "version" in cloud}))
    text = (
        f"Two normal modes, Scott's bandwidth, a Gaussian kernel, {QUERIES:,} queries, one thread for KDEpy {versions}. SciPy and "
        "the tree are timed on fewer queries of many rows, and scaled. `gaussian_kde` has another covariance, and no error by "
        "definition. Errors are root mean squares relative to that of the exact density.\n\n"
        + table(["rows", "method", "fit", f"{QUERIES:,} queries", "error"], rows)
    )
    rules = [
        [cloud["rows"], f"{ours:.4f}", f"{theirs:.4f}", f"{corrected:.4f}", f"{abs(ours / corrected - 1):.1%}"]
        for cloud in clouds
        if "isj" in cloud
        for ours, theirs, corrected in [cloud["isj"]]
    ]
    if rules:
        text += (
            "\n\nThe improved Sheather-Jones bandwidth of one column; *corrected* is KDEpy's times the width of its grid over the "
        )
        text += "range of the data:\n\n" + table(["rows", "isj", "KDEpy", "corrected", "difference"], rules)
    lines = [[name, time_of(theirs), time_of(ours), f"{theirs / ours:.2g}×", f"{apart:.0e}"] for name, theirs, ours, apart in boxes]
    text += "\n\nThe probability of a box, of all rows, with the covariance of the data as in SciPy:\n\n"
    return text + table(["rows", "gaussian_kde", "KernelMean", "faster by", "difference"], lines)


def time_of(value: float) -> str:
    return f"{value:.2g} s" if value >= 0.1 else f"{value * 1000:.2g} ms"
