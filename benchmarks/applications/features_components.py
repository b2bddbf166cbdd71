"""Do features of bags predict the number of Gaussians in a mixture better than other kernels (Sutherland et al. 2016, Figure 4)?

Ridge regression on features of bags; distances of densities (JS, Hellinger, TV) against L2, MMD, histograms, and the k-NN kernel of
Kullback–Leibler divergences, which was computed on a GPU (`component_kl`). Goal: the best of ours has the lowest error.
"""

from __future__ import annotations

import csv
import time
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import Ridge

from benchmarks._lib import table, verdict
from benchmarks.applications.component_bags import (
    KL_BAGS,
    KL_CSV,
    KL_TEST,
    POINTS,
    SEEDS,
    TEST,
    TRAINING,
    draw,
    root_mean_square,
    validated,
)  # fmt: skip
from benchmarks.applications.features_validation import Validated, validated_features
from reduset._engine.threads import single_threaded_blas
from reduset.features import DensityFeatures, HistogramFeatures, MeanMapFeatures, NeighbourKLKernel

TITLE = "The number of components of mixtures (Sutherland et al. 2016)"
SOURCES = ("features",)

POINT_COMPONENTS, TUNING_SEED = 500, 1000
WIDTHS, ALPHAS = (0.5, 1.0, 2.0, 4.0, 8.0), np.geomspace(1e-5, 10.0, 7)
OURS = ("js", "hellinger", "tv")
EDGE = {"margin": 0.001}  # the box of the training points is nearly that of all points
BANDWIDTHS = (0.014, 0.02, 0.03, 0.045, 0.07, 0.1, 0.15, 0.2)


class Sizes(NamedTuple):
    """What is measured."""

    points: tuple[int, ...]  # of a bag
    training: tuple[int, ...]  # bags
    test: int
    seeds: int
    components: int
    tuning_bags: int
    tuning_components: int
    grid: int | None  # the number of values of each parameter that are tried, from the largest
    processor: dict[int, int]  # bags of the k-NN kernel by points
    processor_test: int


FULL = Sizes(POINTS, TRAINING, TEST, SEEDS, 2000, 4000, 1000, None, KL_BAGS, KL_TEST)
QUICK = Sizes((50,), (60, 120), 40, 2, 100, 60, 50, 1, {50: 20}, 10)

METHODS: dict[str, tuple[Any, dict[str, tuple[float, ...]]]] = {
    **{name: (DensityFeatures(name, **EDGE), {"bandwidth": BANDWIDTHS, "n_basis": (5, 7, 10)}) for name in (*OURS, "l2")},
    "mmd": (MeanMapFeatures(n_point_components=POINT_COMPONENTS), {"bandwidth": (0.35, 0.5, 0.8, 1.1, 1.4, 2.0, 3.0)}),
    "histogram js": (HistogramFeatures("js", **EDGE), {"n_bins": (3, 4, 5, 6, 7, 8, 10, 14)}),
}


def chosen(points: int, sizes: Sizes) -> dict[str, Validated]:
    """Bandwidth and width of the kernel of each method, by validation on bags that are used for nothing else."""
    bags, y = draw(sizes.tuning_bags, points, TUNING_SEED)
    found = {}
    for name, (features, grid) in METHODS.items():
        features = features.set_params(n_components=sizes.tuning_components)
        tried = {key: values[-(sizes.grid or len(values)) :] for key, values in grid.items()}
        with single_threaded_blas():
            found[name] = validated_features(features, Ridge(), bags, y, tried, WIDTHS, {"alpha": ALPHAS}, 0.4)
    return found


def best_of_ours(tuned: dict[str, Validated]) -> str:
    """By the same validation, without test bags."""
    return max(OURS, key=lambda name: tuned[name].score)


class Moments:
    """The number of rows, their sums and products, which ridge regression needs."""

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
    with single_threaded_blas():  # factors of this size are no faster on two threads, and much slower if these are busy
        errors = [root_mean_square(rest.predict(X[::10], alpha) - y[::10]) for alpha in ALPHAS]
        return whole.predict(Q, ALPHAS[int(np.argmin(errors))])


def of_seed(points: int, seed: int, tuned: dict[str, Validated], sizes: Sizes) -> dict[tuple[str, int], tuple]:
    """Error on the test bags, and seconds for the features of the training bags and for the regression."""
    bags, y = draw(max(sizes.training) + sizes.test, points, seed)
    found: dict[tuple[str, int], tuple] = {
        ("kl", size): (error, np.nan, np.nan) for size, error in of_neighbours(points, seed, sizes.test).items()
    }
    for name, (features, _) in METHODS.items():
        options = tuned[name].features
        features = features.set_params(**options, n_components=sizes.components, random_state=seed).fit(bags[: sizes.training[0]])
        Q, parts, spent = features.transform(bags[-sizes.test :]), [], 0.0
        for a, b in pairwise((0, *sizes.training)):
            begun = time.perf_counter()
            parts.append(features.transform(bags[a:b]))
            spent += time.perf_counter() - begun
            begun = time.perf_counter()
            guess = ridge(np.concatenate(parts), y[:b], Q)
            found[name, b] = root_mean_square(guess - y[-sizes.test :]), spent, time.perf_counter() - begun
    return found


def of_neighbours(points: int, seed: int, tests: int) -> dict[int, float]:
    """The error of the k-NN kernel by number of bags, as `component_kl` measured it on the same bags."""
    with KL_CSV.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    wanted = [row for row in rows if (int(row["points"]), int(row["seed"]), int(row["test_bags"])) == (points, seed, tests)]
    return {int(row["bags"]): float(row["rmse"]) for row in wanted}


def paired(found: list[dict], size: int, best: str) -> list[tuple]:
    """Rows of the table of one size: means over seeds, and differences from the best of ours seed by seed."""
    errors = {name: np.array([each[name, size][0] for each in found]) for name, its in found[0] if its == size}
    rows = []
    for name in (*METHODS, *(errors.keys() - METHODS.keys())):
        values = errors[name]
        seconds = (np.mean([each[name, size][k] for each in found]) for k in (1, 2))
        row = (name, f"{values.mean():.4f}", *("" if np.isnan(each) else f"{each:.1f}" for each in seconds))
        if name in OURS:
            rows.append((*row, "best of ours" if name == best else "", ""))
            continue
        difference = values - errors[best]
        noise = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else np.nan
        lower = f"{(difference > 0).sum()} of {len(difference)}" + ("" if difference.mean() > 2 * noise else ", not significant")
        rows.append((*row, f"{difference.mean():+.4f} ± {noise:.4f}", lower))
    return rows


def on_processor(points: int, sizes: Sizes) -> tuple:
    """`NeighbourKLKernel` itself on fewer bags: its error, that of `component_kl` on the same bags, and its seconds."""
    size, tests = sizes.processor[points], sizes.processor_test
    bags, y = draw(size + tests, points, 0)
    begun = time.perf_counter()
    kernel = NeighbourKLKernel(psd=None).fit(bags[:size])
    spent = time.perf_counter() - begun
    new = kernel.divergences_to_fitted(bags[-tests:])
    guess, *_ = validated(np, kernel.divergences_, y[:size], new, kernel.kernel_width_)
    theirs = of_neighbours(points, 0, tests).get(size)
    on_gpu = f"{theirs:.4f}" if theirs else ""
    return points, f"{size:,}", f"{root_mean_square(guess - y[-tests:]):.4f}", on_gpu, f"{spent:.0f}"


def of_points(points: int, sizes: Sizes) -> tuple[list[tuple], list[list[str]], str]:
    """Rows of the table, rows of the summary, and what was chosen."""
    tuned = chosen(points, sizes)
    best = best_of_ours(tuned)
    found = [of_seed(points, seed, tuned, sizes) for seed in range(sizes.seeds)]
    rows = [(points, f"{size:,}", *row) for size in sizes.training for row in paired(found, size, best)]
    summary = []
    for size in (sizes.training[0], sizes.training[-1]):
        means = {name: np.mean([each[name, size][0] for each in found]) for name, its in found[0] if its == size}
        rival = min((name for name in means if name not in OURS), key=lambda name: means[name])
        summary.append([
            f"RMSE, {points} points, {size:,} bags: {best}, the best other ({rival})", f"{means[best]:.3f}, {means[rival]:.3f}",
            "lower", verdict(-means[best], -means[rival]),
        ])  # fmt: skip
    described = "; ".join(f"{name} {_said(each)}" for name, each in tuned.items())
    return rows, summary, f"{points} points: {described}"


def _said(found: Validated) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in found.features.items()) + f" (R² {found.score:.4f})"


HEAD = ("points", "training bags", "features", "RMSE", "features, s", "ridge, s", "difference from the best of ours", "ours lower")


def measure(quick: bool) -> dict[str, Any]:
    sizes = QUICK if quick else FULL
    parts = [of_points(points, sizes) for points in sizes.points]
    pairs = [on_processor(points, sizes) for points in sizes.points]
    return {
        "summary": [row for _, rows, _ in parts for row in rows],
        "details": "Y is uniform on 1 … 10; a bag has that many Gaussians of equal weight with means uniform on [−5, 5]² and "
        "covariances aAAᵀ + B as in the paper, each truncated to that square by drawing points outside again (the paper states "
        f"only that they are truncated). D = {sizes.components:,} (the paper has 5,000), M = 5, {POINT_COMPONENTS} random features "
        f"of points for MMD. Bandwidth, basis or bins and kernel width are chosen by validation on {sizes.tuning_bags:,} "
        "other bags, once for each method and number of points; the best of ours by the same validation; the ridge penalty on a "
        f"tenth of the training bags. {sizes.test:,} test bags, means over {sizes.seeds} seeds. Differences from the best of ours "
        "are taken seed by seed, ± standard error, with the number of seeds in which ours is lower. The k-NN kernel (kl) was "
        "computed on a GPU (`component_kl`), so it has no seconds here. The paper shows its errors as curves only; a constant has "
        "RMSE 2.87, the paper's AIC 2.7 (200 points) and 2.3 (800):\n\n"
        + table(HEAD, [row for rows, *_ in parts for row in rows])
        + "\n\n`NeighbourKLKernel` (k = 4) itself on fewer bags, one seed: RMSE on "
        f"{sizes.processor_test} test bags, the same computed on the GPU, and seconds for the training bags, which grow with the "
        "square of their number:\n\n"
        + table(("points", "training bags", "RMSE", "RMSE on the GPU", "seconds"), pairs)
        + f"\n\nChosen: {'. '.join(said for *_, said in parts)}.",
    }
