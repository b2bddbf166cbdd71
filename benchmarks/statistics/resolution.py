"""The resolution: the smallest bandwidth with an error of 5 %, for atoms and for random rows of the same number.

Columns are standardised, the kernel is Gaussian. Goals: at the resolution, random rows have at least three times the error of the
atoms (median of ten data sets); the atoms are never worse; the search takes at most 2.5 times one compression; and the intervals of
the error profile all cover the truth in at least 93 % of 200 repetitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks._lib import data_folder, medians, table, verdict
from reduset import Compression, Gaussian, KernelMean, bandwidth, compress
from reduset.certificate import rule
from reduset.compression.resolution import THINNED_FROM
from reduset.select import KMeans, Selector, Thinning
from reduset.select.auto import KMEANS_ROWS

TITLE = "The resolution of atoms and of random rows"
SOURCES = (
    *("compression/resolution.py", "compression/searches.py", "certificate/by_scale.py"),
    *(
        "certificate/by_frequencies.py",
        "certificate/frequencies.py",
        "select/kmeans.py",
        "select/thinning.py",
        "weights/weightings.py",
    ),
)

SIZE, TOL, HALF = 1000, 0.05, 0.5
REPETITIONS, SCALES = 200, 8
QUICK_SETS, QUICK_REPETITIONS = ("banana", "image"), 3
GAIN, WORST, TIME, COVERAGE = 3.0, 1.0, 2.5, 0.93  # the goals


def _stored(name: str) -> np.ndarray:
    stored = np.load(data_folder() / f"{name}.npz", allow_pickle=False)
    parts = [stored[key] for key in ("X", "X_train", "X_test") if key in stored]
    return np.concatenate(parts).astype(np.float64)


def sets() -> dict[str, np.ndarray]:
    found = {name: _stored(f"raetsch_{name}") for name in ("banana", "image", "ringnorm", "twonorm", "waveform")}
    found |= {name: _stored(name) for name in ("pendigits", "svmguide1", "usps")}
    cells = np.load(data_folder() / "cyto_itn15.npz", allow_pickle=False)["X"].reshape(-1, 8)[:, :6].astype(np.float64)
    found["cytometry"] = cells[np.random.default_rng(0).permutation(len(cells))[:60_000]]
    found["flights"] = _stored("big_flights")[:100_000, :5]
    return {name: (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12) for name, X in found.items()}


def _selector_of(small: Compression, size: int) -> Selector:
    """The selector that the search chose."""
    return KMeans(rows=KMEANS_ROWS) if small.selection == str(KMeans()) else Thinning(rows=THINNED_FROM * size)


def _worst(small: Compression, size: int) -> float:
    """The largest ratio to the error of ``size`` random rows, at scales where that is below one half."""
    profile, n = small.profile(), small.n_samples
    random = profile.random_rows * np.sqrt((1 / size - 1 / n) / (1 / small.size - 1 / n))
    compared = random < HALF
    return float((profile.relative_errors / random)[compared].max()) if compared.any() else float("nan")


def _compared(names: Sequence[str] | None) -> tuple[str, list[list[str]]]:
    """The table with its text, and the rows of the summary."""
    rows, gains, worst, ratios = [], [], [], []
    for name, X in sets().items():
        if names is not None and name not in names:
            continue
        size = min(SIZE, len(X) // 5)
        small = compress(X, size=size, tol=TOL, rng=0)  # and compile
        width, selector = small.mean.kernel.bandwidth, _selector_of(small, size)
        times = medians(
            3,
            search=lambda X=X, size=size: compress(X, size=size, tol=TOL, rng=0),
            one=lambda X=X, size=size, width=width, selector=selector: compress(
                X, Gaussian(width), size=size, select=selector, weights="simplex", rng=0
            ),
        )
        at = small.profile([width])
        gains.append(float(at.random_rows[0] / at.relative_errors[0]))
        random = None if small.resolved is None else small.resolved.random_rows
        worst.append(_worst(small, size))
        ratios.append(times["search"] / times["one"])
        rows.append(
            [
                f"{name}, {len(X):,}×{X.shape[1]}",
                f"{size:,}",
                {"KMeans": "centres of k-means", "Thinning": "thinned rows"}[small.selection],
                f"1/{bandwidth.median(X) / width:.3g}" if small.reached else "not reached",
                "none" if random is None else f"1/{bandwidth.median(X) / random:.3g}",
                f"{gains[-1]:.2g}×",
                f"{worst[-1]:.2f}",
                f"{ratios[-1]:.2f}",
            ]
        )
    head = [
        "data",
        "size",
        "atoms",
        "resolution",
        "of random rows",
        "random / atoms there",
        "atoms / random, worst",
        "time / one compression",
    ]
    text = table(head, rows) + (
        f"\n\nResolutions relative to the median distance, at {TOL:.0%}. At the resolution of the atoms, random rows have "
        f"{np.median(gains):.2g} times their error in the median (goal {GAIN:g}). The worst ratio is over all scales at which "
        f"random rows have an error below {HALF:.0%} (goal at most {WORST:g}). One compression is that with the same selector at "
        f"that bandwidth, in turns with the search (goal at most {TIME:g} times its time)."
    )
    summary = [
        ["error of random rows / atoms at the resolution, median", f"{np.median(gains):.2g}", f"≥ {GAIN:g}",
         verdict(float(np.median(gains)), GAIN)],
        ["error of atoms / random rows, worst", f"{np.nanmax(worst):.2f}", f"≤ {WORST:g}", verdict(WORST, float(np.nanmax(worst)))],
        ["time of the search / one compression, worst", f"{max(ratios):.2f}", f"≤ {TIME:g}", verdict(TIME, max(ratios))],
    ]  # fmt: skip
    return text, summary


def _by_definition(full: KernelMean, small: KernelMean, width: float) -> float:
    kernel = replace(full.kernel, bandwidth=width)
    f, g = (KernelMean(each.atoms, each.weights, kernel) for each in (full, small))
    return f.distance(g) / f.norm()


def _covered(repetitions: int) -> tuple[str, list[str]]:
    """The table with its text, and a row of the summary."""
    rows, coverage, exact = [], [], rule.EXACT_UP_TO
    rule.EXACT_UP_TO = 0
    try:
        for name, spread, d in (
            ("clumps in 2-D", 0.3, 2),
            ("clumps in 5-D", 0.3, 5),
            ("normal in 2-D", 1e9, 2),
            ("normal in 20-D", 1e9, 20),
        ):
            held, widths = 0, []
            for seed in range(repetitions):
                rng = np.random.default_rng(seed)
                X = rng.normal(size=(1000, d))
                if spread < 1:
                    X = spread * X + 3 * rng.normal(size=(8, d))[rng.integers(0, 8, 1000)]
                full = KernelMean.from_samples(X, Gaussian(0.3 * bandwidth.median(X)))
                small = compress(full, size=50, select="kmeans", weights="simplex", rng=seed)
                grid = small.profile().bandwidths
                profile = small.profile(grid[np.linspace(0, len(grid) - 1, SCALES).round().astype(int)])
                truth = np.array([_by_definition(full, small.mean, width) for width in profile.bandwidths])
                low, high = profile.intervals.T
                held += bool(((low <= truth + 1e-7) & (truth <= high + 1e-7)).all())
                widths.append(np.median(high / np.maximum(profile.relative_errors, 1e-300)))
            coverage.append(held / repetitions)
            rows.append([name, f"{coverage[-1]:.1%}", f"{np.median(widths):.3f}"])
    finally:
        rule.EXACT_UP_TO = exact
    title = f"1,000 rows to 50 atoms, {SCALES} scales over seven octaves, {repetitions} repetitions; all intervals cover the truth"
    text = f"{title} (goal {COVERAGE:.0%}):\n\n" + table(["rows", "all cover", "upper end / error, median"], rows)
    least = min(coverage)
    return text, [
        "all intervals of a profile cover the truth, least",
        f"{least:.1%}",
        f"≥ {COVERAGE:.0%}",
        verdict(least, COVERAGE),
    ]


def measure(quick: bool) -> dict[str, Any]:
    compared, summary = _compared(QUICK_SETS if quick else None)
    covered, row = _covered(QUICK_REPETITIONS if quick else REPETITIONS)
    return {"summary": [*summary, row], "details": f"{compared}\n\n{covered}"}
