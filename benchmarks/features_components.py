"""How many Gaussians a sample's mixture has, by ridge regression on features of bags (Sutherland et al. 2016, Figure 4).

``python features_components.py 200 4000`` does one number of points and one number of training bags, ``… kl 200 4000`` the same
for the kernel of nearest neighbours alone.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import Ridge

from harness import table
from reduset._engine.threads import single_threaded_blas
from reduset.features import DensityFeatures, HistogramFeatures, MeanMapFeatures, NeighbourKLKernel, tune
from reduset.features.definite import Definite

TITLE = "The number of components of mixtures (Sutherland et al. 2016)"

POINTS, TRAINING, TEST, SEEDS = (200, 800), (4000, 8000, 16_000), 2000, 5
COMPONENTS, TUNING_COMPONENTS, POINT_COMPONENTS = 2000, 1000, 500
TUNING_BAGS, TUNING_SEED = 4000, 1000
WIDTHS, ALPHAS = (0.5, 1.0, 2.0, 4.0), np.geomspace(1e-5, 1.0, 6)
KL_BAGS, KL_TEST = {200: 1000, 800: 500}, 500
KL_WIDTHS = (1.0, 2.0, 4.0, 8.0)
OURS = ("js", "hellinger", "tv")
EDGE = {"margin": 0.001}  # the box of the training points is all but that of all points

METHODS: dict[str, tuple[Any, dict[str, tuple[float, ...]]]] = {
    **{name: (DensityFeatures(name, **EDGE), {"bandwidth": (0.03, 0.045, 0.07, 0.1)}) for name in (*OURS, "l2")},
    "mmd": (MeanMapFeatures(n_point_components=POINT_COMPONENTS), {"bandwidth": (0.5, 0.8, 1.3, 2.0, 3.0)}),
    "histogram js": (HistogramFeatures("js", **EDGE), {"n_bins": (5, 6, 8, 10, 14)}),
}


def draw(count: int, points: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The paper's mixtures on [−5, 5]²: 1 to 10 Gaussians of equal weight, truncated to the square (drawn again until inside)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(1, 11, size=count)
    means = rng.uniform(-5, 5, size=(count, 10, 2))
    A = rng.uniform(-1, 1, size=(count, 10, 2, 2))
    covariances = rng.uniform(1, 4, size=(count, 10, 1, 1)) * A @ A.transpose(0, 1, 3, 2)
    covariances[..., [0, 1], [0, 1]] += rng.uniform(0, 1, size=(count, 10, 2))
    factors = np.linalg.cholesky(covariances)
    bag = np.repeat(np.arange(count), points)
    owner = rng.integers(0, y[bag])
    X, missing = np.empty((count * points, 2)), np.arange(count * points)
    while len(missing):
        which = bag[missing], owner[missing]
        z = rng.normal(size=(len(missing), 2))
        L = factors[which]
        found = means[which] + np.stack([L[:, 0, 0] * z[:, 0], L[:, 1, 0] * z[:, 0] + L[:, 1, 1] * z[:, 1]], axis=1)
        X[missing] = found
        missing = missing[(np.abs(found) > 5).any(axis=1)]
    return list(X.reshape(count, points, 2)), y.astype(np.float64)


def chosen(points: int) -> dict[str, dict[str, Any]]:
    """Bandwidth and width of the kernel of each method, by validation on bags drawn for this alone."""
    bags, y = draw(TUNING_BAGS, points, TUNING_SEED)
    found = {}
    for name, (features, grid) in METHODS.items():
        features = features.set_params(n_components=TUNING_COMPONENTS)
        with single_threaded_blas():
            best = tune(
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
        found[name] = best.features
    return found


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


def root_mean_square(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(error**2)))


def ridge(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Predictions with the penalty that does best on a tenth of the rows, fitted to all."""
    whole, aside = Moments(X, y), Moments(X[::10], y[::10])
    rest = whole - aside
    with single_threaded_blas():  # factors of this size are no faster on two threads, and much slower on busy ones
        errors = [root_mean_square(rest.predict(X[::10], alpha) - y[::10]) for alpha in ALPHAS]
        return whole.predict(Q, ALPHAS[int(np.argmin(errors))])


def of_seed(points: int, training: tuple[int, ...], seed: int, options: dict[str, dict[str, Any]]) -> dict[tuple[str, int], tuple]:
    """Error on the test bags, and seconds for the features of the training bags and for the regression."""
    bags, y = draw(max(training) + TEST, points, seed)
    cuts = [0, *training]
    found = {}
    for name, (features, _) in METHODS.items():
        features = features.set_params(**options[name], n_components=COMPONENTS, random_state=seed).fit(bags[: training[0]])
        Q, parts, spent = features.transform(bags[-TEST:]), [], 0.0
        for a, b in pairwise(cuts):
            begun = time.perf_counter()
            parts.append(features.transform(bags[a:b]))
            spent += time.perf_counter() - begun
            begun = time.perf_counter()
            guess = ridge(np.concatenate(parts), y[:b], Q)
            found[name, b] = root_mean_square(guess - y[-TEST:]), spent, time.perf_counter() - begun
    return found


def paired(found: list[dict], size: int, rivals: list[str]) -> list[tuple]:
    """Rows of the table of one size: means over seeds, and rivals against the best of ours seed by seed."""
    errors = {name: np.array([each[name, size][0] for each in found]) for name in (*OURS, *rivals)}
    best = min(OURS, key=lambda name: errors[name].mean())
    rows = []
    for name, values in errors.items():
        features, regression = (np.mean([each[name, size][k] for each in found]) for k in (1, 2))
        row = (name, f"{values.mean():.4f}", f"{features:.1f}", f"{regression:.1f}")
        if name in OURS:
            rows.append((*row, "best of ours" if name == best else "", ""))
            continue
        gap = values - errors[best]
        noise = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
        rows.append((*row, f"{gap.mean():+.4f} ± {noise:.4f}", "yes" if gap.mean() > 2 * noise else "NO"))
    return rows


def neighbours(bags: list, y: np.ndarray, size: int, tests: int) -> tuple[float, float, float]:
    """Error and seconds of kernel ridge regression with `NeighbourKLKernel`, width and penalty by a tenth of the bags."""
    begun = time.perf_counter()
    kernel = NeighbourKLKernel(psd=None).fit(bags[:size])
    train, spent = kernel.divergences_, time.perf_counter() - begun
    test = kernel.divergences_to_fitted(bags[-tests:])
    begun = time.perf_counter()
    aside = np.arange(size) % 10 == 0

    def guess(D: np.ndarray, target: np.ndarray, rows: np.ndarray, width: float, alphas: Any) -> list[np.ndarray]:
        K, k = (np.exp(-each / (2 * width**2)) for each in (D, rows))
        rule = Definite.learnt(K, "clip")
        K, k = rule.rows(K, np.eye(len(K), dtype=bool)), rule.rows(k, np.zeros(k.shape, bool))
        level, eye = target.mean(), np.eye(len(K))
        return [level + k @ np.linalg.solve((K + K.T) / 2 + alpha * eye, target - level) for alpha in alphas]

    tried = {}
    for width in kernel.kernel_width_ * np.array(KL_WIDTHS):
        guesses = guess(train[np.ix_(~aside, ~aside)], y[:size][~aside], train[np.ix_(aside, ~aside)], width, ALPHAS)
        tried |= {(width, alpha): root_mean_square(each - y[:size][aside]) for alpha, each in zip(ALPHAS, guesses, strict=True)}
    width, alpha = min(tried, key=tried.__getitem__)
    final = guess(train, y[:size], test, width, [alpha])[0]
    return root_mean_square(final - y[-tests:]), spent, time.perf_counter() - begun


def against_neighbours(points: int, size: int, options: dict[str, dict[str, Any]], seeds: range = range(SEEDS)) -> list[tuple]:
    """The same regressions on fewer bags, with the kernel of all pairs beside them."""
    found = []
    for seed in seeds:
        bags, y = draw(size + KL_TEST, points, seed)
        each = {("kl", size): neighbours(bags, y, size, KL_TEST)}
        for name in OURS:
            features = METHODS[name][0].set_params(**options[name], n_components=COMPONENTS, random_state=seed)
            begun = time.perf_counter()
            X = features.fit_transform(bags[:size])
            spent, begun = time.perf_counter() - begun, time.perf_counter()
            guess = ridge(X, y[:size], features.transform(bags[size:]))
            each[name, size] = root_mean_square(guess - y[size:]), spent, time.perf_counter() - begun
        found.append(each)
    return paired(found, size, ["kl"])


def cell(points: int, training: tuple[int, ...], options: dict[str, dict[str, Any]]) -> list[tuple]:
    found = [of_seed(points, training, seed, options) for seed in range(SEEDS)]
    rivals = [name for name in METHODS if name not in OURS]
    return [(points, f"{size:,}", *row) for size in training for row in paired(found, size, rivals)]


HEAD = ("points", "training bags", "features", "RMSE", "features, s", "ridge, s", "rival − best of ours", "ours lower")


def run() -> str:
    told, rows, pairs = [], [], []
    for points in POINTS:
        options = chosen(points)
        told.append(f"{points} points: " + "; ".join(f"{name} {_said(each)}" for name, each in options.items()))
        rows += cell(points, TRAINING, options)
        size = KL_BAGS[points]
        pairs += [(points, f"{size:,}", *row) for row in against_neighbours(points, size, options)]
    return (
        "Y uniform on 1 … 10, that many Gaussians of equal weight with means uniform on [−5, 5]² and covariances aAAᵀ + B as in "
        "the paper, each truncated to that square by drawing points outside of it again (the paper says only that they are "
        f"truncated). D = {COMPONENTS:,} (the paper has 5,000), M = 5, 10² cosines, {POINT_COMPONENTS} random features of points "
        f"for MMD. Bandwidth or bins and the kernel's width by `tune` on {TUNING_BAGS:,} other bags, once for each method and "
        f"number of points; the ridge penalty on a tenth of the training bags each time. {TEST:,} test bags, means over {SEEDS} "
        "seeds; differences with ours seed by seed, ± standard error, “yes” where above two of them. The paper prints its figures "
        "as curves only; a constant has RMSE 2.87, and its AIC 2.7 (200 points) and 2.3 (800):\n\n"
        + table(HEAD, rows)
        + f"\n\nAgainst `NeighbourKLKernel` (k = 4, kernel ridge regression), {KL_TEST:,} test bags. It takes the square of the "
        "number of bags in time, so there are fewer, for ours too; the paper went up to 16,000 of 200 points and 8,000 of 800:"
        + f"\n\n{table(HEAD, pairs)}\n\nChosen: {'. '.join(told)}."
    )


def _said(options: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in options.items())


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word != "kl"]
    if not numbers:
        print(run())
    elif "kl" in sys.argv[1:]:
        points, size = numbers
        print(table(HEAD, [(points, f"{size:,}", *row) for row in against_neighbours(points, size, chosen(points))]))
    else:
        print(table(HEAD, cell(numbers[0], tuple(numbers[1:]) or TRAINING, chosen(numbers[0]))))
