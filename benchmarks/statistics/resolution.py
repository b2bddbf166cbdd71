"""The resolution: how fine so many atoms see within 5 %, beside as many random rows; and whether the profile is what it says.

Columns standardised, Gaussian. The profile of random rows is their error in the mean square, from the same figures as ours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks._lib import data_folder, medians, table
from reduset import Compression, Gaussian, KernelMean, bandwidth, compress
from reduset.certificate import rule
from reduset.compression.choice import THINNED_ROWS
from reduset.select import KMeans, Selector, Thinning
from reduset.select.auto import KMEANS_ROWS

TITLE = "The resolution: how fine so many atoms see"

SIZE, TOL, HALF = 1000, 0.05, 0.5
REPETITIONS, SCALES = 200, 8


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
    """The one that the search chose."""
    return KMeans(rows=KMEANS_ROWS) if small.selection == str(KMeans()) else Thinning(rows=THINNED_ROWS * size)


def _worst(small: Compression, size: int) -> float:
    """The largest ratio to what as many random rows as atoms were asked for lose, where these lose less than half."""
    profile, n = small.profile(), small.n_samples
    random = profile.random_rows * np.sqrt((1 / size - 1 / n) / (1 / small.size - 1 / n))
    tell = random < HALF
    return float((profile.relative_errors / random)[tell].max()) if tell.any() else float("nan")


def _compared() -> str:
    rows, gains = [], []
    for name, X in sets().items():
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
        rows.append(
            [
                f"{name}, {len(X):,}×{X.shape[1]}",
                f"{size:,}",
                {"KMeans": "centres of k-means", "Thinning": "thinned rows"}[small.selection],
                f"1/{bandwidth.median(X) / width:.3g}" if small.reached else "not reached",
                "none" if random is None else f"1/{bandwidth.median(X) / random:.3g}",
                f"{gains[-1]:.2g}×",
                f"{_worst(small, size):.2f}",
                f"{times['search'] / times['one']:.2f}",
            ]
        )
    head = [
        "rows",
        "asked for",
        "atoms",
        "resolution",
        "random rows'",
        "random / ours there",
        "ours / random, worst",
        "time / one compression",
    ]
    return table(head, rows) + (
        f"\n\nResolutions as shares of the median distance, at {TOL:.0%}. Random rows lose at our resolution "
        f"{np.median(gains):.2g} times what ours do in the median (goal 3). The worst is over all scales at which as many "
        f"random rows as atoms were asked for lose less than {HALF:.0%} (goal at most 1). One compression is that of the same "
        "selector at that bandwidth, in turns with the search (goal at most 2.5 times its time)."
    )


def _by_definition(full: KernelMean, small: KernelMean, width: float) -> float:
    kernel = replace(full.kernel, bandwidth=width)
    f, g = (KernelMean(each.atoms, each.weights, kernel) for each in (full, small))
    return f.distance(g) / f.norm()


def _covered() -> str:
    rows, exact = [], rule.EXACT_UP_TO
    rule.EXACT_UP_TO = 0
    try:
        for name, spread, d in (
            ("clumps in 2-D", 0.3, 2),
            ("clumps in 5-D", 0.3, 5),
            ("normal in 2-D", 1e9, 2),
            ("normal in 20-D", 1e9, 20),
        ):
            held, widths = 0, []
            for seed in range(REPETITIONS):
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
            rows.append([name, f"{held / REPETITIONS:.1%}", f"{np.median(widths):.3f}"])
    finally:
        rule.EXACT_UP_TO = exact
    words = f"1,000 rows to 50 atoms, {SCALES} scales over seven octaves, {REPETITIONS} repetitions; all intervals hold the truth"
    return f"{words} (goal 93 %):\n\n" + table(["rows", "all hold", "upper end / error, median"], rows)


def run() -> str:
    return _compared() + "\n\n" + _covered()
