"""Densities at a thousand places, by SciPy's gaussian_kde, KDEpy's FFTKDE and TreeKDE, and here: time and error.

KDEpy runs in an environment of its own (`kdepy_worker.py`).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import gaussian_kde

from harness import medians, seconds, table
from reduset import Gaussian, KernelMean, bandwidth
from reduset.density import SparseKernelDensity

TITLE = "Densities of SciPy and KDEpy"

HERE = Path(__file__).resolve().parent
ROWS, COLUMNS, QUERIES = (100_000, 1_000_000), (1, 2, 5), 1000
PAIRS = 20_000_000  # that SciPy and the tree are timed on; scaled to all queries
TOL = 0.03
LARGE = 1_000_000  # numbers, from which a fit is timed once
BOXES = ((1_000_000, 1), (100_000, 2), (1000, 3), (1000, 5))


def kdepy_python() -> str:
    """The interpreter of the environment of KDEpy, which `make bench` sets up."""
    python = os.environ.get("REDUSET_KDEPY_PYTHON", str(HERE.parent / ".venv-kdepy" / "bin" / "python"))
    if not Path(python).exists():
        raise SystemExit(f"no environment of KDEpy at {python}: run `make bench`, or set REDUSET_KDEPY_PYTHON")
    return python


def by_kdepy(X: np.ndarray, Q: np.ndarray, h: float, few: int) -> dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, X=X, Q=Q, h=h, few=few)
        call = [kdepy_python(), str(HERE / "kdepy_worker.py"), str(given), str(found)]
        process = subprocess.run(call, capture_output=True, text=True, check=False)
        if process.returncode:
            raise SystemExit(f"kdepy_worker.py failed:\n{process.stderr[-2000:]}")
        with np.load(found) as file:
            return dict(file)


def cloud(rows: int, d: int, seed: int) -> np.ndarray:
    """Two modes, round."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, d)) + np.where(rng.random((rows, 1)) < 0.4, 3.0, 0.0)


def run() -> str:
    rows, rules, versions = [], [], set()
    for d in COLUMNS:
        for n in ROWS:
            X, Q = cloud(n, d, 0), cloud(QUERIES, d, 1)
            h = bandwidth.scott(X)
            few = max(20, min(QUERIES, PAIRS // n))
            exact = KernelMean.from_samples(X, Gaussian(h, normalized=True))
            truth = exact(Q, "double")
            theirs = by_kdepy(X, Q, h, few)
            versions.add(str(theirs["version"]))
            scipy_seconds = seconds(lambda X=X, Q=Q, few=few: gaussian_kde(X.T)(Q[:few].T)) * QUERIES / few
            pieces = "atoms" if d <= 2 else "components"  # of which these laws need few, as of their kind they are
            small = SparseKernelDensity(bandwidth=h, tol=TOL, pieces=pieces, random_state=0)
            SparseKernelDensity(bandwidth=h, size=4, pieces=pieces, random_state=0).fit(X[:2000]).score_samples(Q)  # compiles
            took = medians(
                3 if n * d < LARGE else 1,
                all=partial(exact, Q),
                fit=partial(small.fit, X),
                ask=lambda small=small, Q=Q: small.score_samples(Q),
            )
            atoms = f"{small.mean_.size:,} {pieces}" if small.compression_ is not None else "all rows"
            off = partial(away, truth)
            rows += [
                [f"{n:,}×{d}", "gaussian_kde", "", time_of(scipy_seconds), "0"],
                ["", "TreeKDE", "", time_of(float(theirs["tree_seconds"]) * QUERIES / few), off(theirs["tree"])],
                ["", "FFTKDE, its grid between nodes", "", time_of(float(theirs["grid_seconds"])), off(theirs["grid"])],
                ["", "KernelMean of all rows", "", time_of(took["all"]), off(exact(Q))],
                [
                    "",
                    f"SparseKernelDensity, {atoms}",
                    time_of(took["fit"]),
                    time_of(took["ask"]),
                    off(np.exp(small.score_samples(Q))),
                ],
            ]
            if d == 1:
                width, span = float(theirs["isj"]), float(theirs["range"])
                corrected = width * (span + 2 * max(span / 2, 6)) / span  # by the width of its grid, which it leaves out
                ours = bandwidth.isj(X)
                rules.append([f"{n:,}", f"{ours:.4f}", f"{width:.4f}", f"{corrected:.4f}", f"{abs(ours / corrected - 1):.1%}"])
    return (
        f"Two normal laws, Scott's bandwidth, a Gaussian kernel, {QUERIES:,} places. SciPy and the tree are timed on fewer where "
        "rows are many, and scaled (gaussian_kde has another covariance, and no error by definition). Errors are the root of the "
        f"mean square over that of the exact density. KDEpy {', '.join(versions)}, one thread.\n\n"
        + table(["rows", "by", "once", f"{QUERIES:,} places", "error"], rows)
        + "\n\nThe improved Sheather–Jones bandwidth of the first column, KDEpy's as it is, and times the width of its grid over "
        "the range of the data:\n\n"
        + table(["rows", "isj", "KDEpy", "corrected", "apart"], rules)
        + "\n\nThe probability of a box, of all rows with the covariance of the data, as SciPy has it:\n\n"
        + table(["rows", "gaussian_kde", "KernelMean", "faster by", "apart"], [boxes(n, d) for n, d in BOXES])
    )


def boxes(n: int, d: int) -> list[str]:
    X = cloud(n, d, 0)
    low, high = np.full(d, -1.0), np.linspace(0.5, 2.0, d)
    theirs = gaussian_kde(X.T)
    ours = KernelMean.from_samples(X, Gaussian("scott", covariance=np.atleast_2d(np.cov(X.T))))
    ours.integrate_box(low, high)
    found: dict[str, float] = {}

    def by_scipy() -> None:
        found["theirs"] = float(theirs.integrate_box_1d(low[0], high[0]) if d == 1 else theirs.integrate_box(low, high))

    took = medians(3, theirs=by_scipy, ours=lambda: ours.integrate_box(low, high))
    apart = abs(float(ours.integrate_box(low, high)) - found["theirs"])
    return [f"{n:,}×{d}", time_of(took["theirs"]), time_of(took["ours"]), f"{took['theirs'] / took['ours']:.2g}×", f"{apart:.0e}"]


def away(truth: np.ndarray, values: np.ndarray) -> str:
    expected = truth[: len(values)]
    return f"{np.linalg.norm(values - expected) / np.linalg.norm(expected):.1g}"


def time_of(value: float) -> str:
    return f"{value:.2g} s" if value >= 0.1 else f"{value * 1000:.2g} ms"
