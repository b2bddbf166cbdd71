"""How many Gaussians a sample's mixture has, by ridge regression on features of bags (Sutherland et al. 2016, Figure 4).

``python features_components.py 200 4000`` does one number of points and one number of training bags.
"""

from __future__ import annotations

import csv
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import Ridge

from benchmarks.applications.component_bags import KL_BAGS, KL_TEST, POINTS, SEEDS, TEST, TRAINING, draw, root_mean_square, validated
from benchmarks._lib import table
from reduset._engine.threads import single_threaded_blas
from reduset.features import DensityFeatures, HistogramFeatures, MeanMapFeatures, NeighbourKLKernel, Tuned, tune

TITLE = "The number of components of mixtures (Sutherland et al. 2016)"

KL_CSV = Path(__file__).with_name("component_kl.csv")
COMPONENTS, TUNING_COMPONENTS, POINT_COMPONENTS = 2000, 1000, 500
TUNING_BAGS, TUNING_SEED = 4000, 1000
WIDTHS, ALPHAS = (0.5, 1.0, 2.0, 4.0, 8.0), np.geomspace(1e-5, 10.0, 7)
OURS = ("js", "hellinger", "tv")
EDGE = {"margin": 0.001}  # the box of the training points is all but that of all points
BANDWIDTHS = (0.014, 0.02, 0.03, 0.045, 0.07, 0.1, 0.15, 0.2)

METHODS: dict[str, tuple[Any, dict[str, tuple[float, ...]]]] = {
    **{name: (DensityFeatures(name, **EDGE), {"bandwidth": BANDWIDTHS, "n_basis": (5, 7, 10)}) for name in (*OURS, "l2")},
    "mmd": (MeanMapFeatures(n_point_components=POINT_COMPONENTS), {"bandwidth": (0.35, 0.5, 0.8, 1.1, 1.4, 2.0, 3.0)}),
    "histogram js": (HistogramFeatures("js", **EDGE), {"n_bins": (3, 4, 5, 6, 7, 8, 10, 14)}),
}


def chosen(points: int) -> dict[str, Tuned]:
    """Bandwidth and width of the kernel of each method, by validation on bags drawn for this alone."""
    bags, y = draw(TUNING_BAGS, points, TUNING_SEED)
    found = {}
    for name, (features, grid) in METHODS.items():
        features = features.set_params(n_components=TUNING_COMPONENTS)
        with single_threaded_blas():
            found[name] = tune(
                features,
                Ridge(),
                bags,
                y,
                features_grid=grid,
                widths=WIDTHS,
                model_grid={"alpha": ALPHAS},
                validation=0.4,
                random_state=0,
            )
    return found


def best_of_ours(tuned: dict[str, Tuned]) -> str:
    """By the same validation: no test bag has a say in it."""
    return max(OURS, key=lambda name: tuned[name].score)


class Moments:
    """What ridge regression needs of rows: their number, sums and products."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        self.n, self.x, self.y, self.xx, self.xy = len(X), X.sum(axis=0), y.sum(), X.T @ X, X.T @ y

    def __sub__(self, other: Moments) -> Moments:
        rest = Moments.__new__(Moments)
        for name in ("n", "x", "y", "xx", "xy"):
            setattr(rest, name, getattr(self, name) - getattr(other, name))
        return rest

    def predict(self, Q: np.ndarray, alpha: float) -> np.ndarray:
        centre, level = self.x / self.n, self.y / self.n
        xx = self.xx - self.n * np.outer(centre, centre)
        xx[np.diag_indices_from(xx)] += alpha
        weights = cho_solve(cho_factor(xx, overwrite_a=True, check_finite=False), self.xy - self.n * level * centre)
        return level + (Q - centre) @ weights


def ridge(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Predictions with the penalty that does best on a tenth of the rows, fitted to all."""
    whole, aside = Moments(X, y), Moments(X[::10], y[::10])
    rest = whole - aside
    with single_threaded_blas():  # factors of this size are no faster on two threads, and much slower on busy ones
        errors = [root_mean_square(rest.predict(X[::10], alpha) - y[::10]) for alpha in ALPHAS]
        return whole.predict(Q, ALPHAS[int(np.argmin(errors))])


def of_seed(points: int, training: tuple[int, ...], seed: int, tuned: dict[str, Tuned]) -> dict[tuple[str, int], tuple]:
    """Error on the test bags, and seconds for the features of the training bags and for the regression."""
    bags, y = draw(max(TRAINING) + TEST, points, seed)
    cuts = [0, *training]
    found: dict[tuple[str, int], tuple] = {
        ("kl", size): (error, np.nan, np.nan) for size, error in of_neighbours(points, seed, TEST)
    }
    for name, (features, _) in METHODS.items():
        options = tuned[name].features
        features = features.set_params(**options, n_components=COMPONENTS, random_state=seed).fit(bags[: training[0]])
        Q, parts, spent = features.transform(bags[-TEST:]), [], 0.0
        for a, b in pairwise(cuts):
            begun = time.perf_counter()
            parts.append(features.transform(bags[a:b]))
            spent += time.perf_counter() - begun
            begun = time.perf_counter()
            guess = ridge(np.concatenate(parts), y[:b], Q)
            found[name, b] = root_mean_square(guess - y[-TEST:]), spent, time.perf_counter() - begun
    return found


def of_neighbours(points: int, seed: int, tests: int) -> list[tuple[int, float]]:
    """(bags, error) of the k-NN kernel as `component_kl` measured them on the same bags."""
    with KL_CSV.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    wanted = [row for row in rows if (int(row["points"]), int(row["seed"]), int(row["test_bags"])) == (points, seed, tests)]
    return [(int(row["bags"]), float(row["rmse"])) for row in wanted]


def paired(found: list[dict], size: int, best: str) -> list[tuple]:
    """Rows of the table of one size: means over seeds, and rivals against the best of ours seed by seed."""
    errors = {name: np.array([each[name, size][0] for each in found]) for name, its in found[0] if its == size}
    rows = []
    for name in (*METHODS, *(errors.keys() - METHODS.keys())):
        values = errors[name]
        seconds = (np.mean([each[name, size][k] for each in found]) for k in (1, 2))
        row = (name, f"{values.mean():.4f}", *("" if np.isnan(each) else f"{each:.1f}" for each in seconds))
        if name in OURS:
            rows.append((*row, "best of ours" if name == best else "", ""))
            continue
        gap = values - errors[best]
        noise = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
        lower = f"{(gap > 0).sum()} of {len(gap)}" + ("" if gap.mean() > 2 * noise else ", IN DOUBT")
        rows.append((*row, f"{gap.mean():+.4f} ± {noise:.4f}", lower))
    return rows


def on_processor(points: int, seed: int = 0) -> tuple:
    """`NeighbourKLKernel` itself on fewer bags: its error, beside what `component_kl` found there, and its seconds."""
    size = KL_BAGS[points]
    bags, y = draw(size + KL_TEST, points, seed)
    begun = time.perf_counter()
    kernel = NeighbourKLKernel(psd=None).fit(bags[:size])
    spent = time.perf_counter() - begun
    new = kernel.divergences_to_fitted(bags[-KL_TEST:])
    guess, *_ = validated(np, kernel.divergences_, y[:size], new, kernel.kernel_width_)
    ((_, theirs),) = of_neighbours(points, seed, KL_TEST)
    return points, f"{size:,}", f"{root_mean_square(guess - y[-KL_TEST:]):.4f}", f"{theirs:.4f}", f"{spent:.0f}"


def cell(points: int, training: tuple[int, ...], tuned: dict[str, Tuned]) -> list[tuple]:
    found = [of_seed(points, training, seed, tuned) for seed in range(SEEDS)]
    return [(points, f"{size:,}", *row) for size in training for row in paired(found, size, best_of_ours(tuned))]


HEAD = ("points", "training bags", "features", "RMSE", "features, s", "ridge, s", "rival − best of ours", "ours lower")


def run() -> str:
    told, rows, pairs = [], [], []
    for points in POINTS:
        tuned = chosen(points)
        told.append(f"{points} points: " + "; ".join(f"{name} {_said(each)}" for name, each in tuned.items()))
        rows += cell(points, TRAINING, tuned)
        pairs.append(on_processor(points))
    return (
        "Y uniform on 1 … 10, that many Gaussians of equal weight with means uniform on [−5, 5]² and covariances aAAᵀ + B as in "
        "the paper, each truncated to that square by drawing points outside of it again (the paper says only that they are "
        f"truncated). D = {COMPONENTS:,} (the paper has 5,000), M = 5, {POINT_COMPONENTS} random features of points for MMD. "
        f"Bandwidth, basis or bins and the kernel's width by `tune` on {TUNING_BAGS:,} other bags, once for each method and "
        "number of points, and the best of ours by the same validation; the ridge penalty on a tenth of the training bags. "
        f"{TEST:,} test bags, means over {SEEDS} seeds; differences with ours seed by seed, ± standard error, and in how many "
        "seeds ours is lower. The k-NN kernel (kl) was computed on a GPU (`component_kl`), so it has no seconds here. "
        "The paper prints its figures as curves only; a constant has RMSE 2.87, and its AIC 2.7 (200 points) and 2.3 (800):\n\n"
        + table(HEAD, rows)
        + "\n\n`NeighbourKLKernel` (k = 4) itself on fewer bags, one seed: RMSE on "
        f"{KL_TEST} test bags, the same computed on the GPU, and seconds on two cores for the training bags, which grow with the "
        "square of their number:\n\n"
        + table(("points", "training bags", "RMSE", "RMSE on the GPU", "seconds"), pairs)
        + f"\n\nChosen: {'. '.join(told)}."
    )


def _said(found: Tuned) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in found.features.items()) + f" (R² {found.score:.4f})"


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    if not numbers:
        print(run())
    else:
        print(table(HEAD, cell(numbers[0], tuple(numbers[1:]) or TRAINING, chosen(numbers[0]))))
