"""Toy mixtures (Zhang & Kwok 2010, Section V-A): 500 components to 20, from 1 to 100 dimensions, against the KL rival.

Means are uniform in the unit cube, weights uniform in [0, 1] and scaled to sum to 1, covariances spherical. All methods start from
the same partition, a weighted k-means of the means. A cell is the error of a method over the rival's, each the mean over
repetitions; a row is summed up by its mean over the dimensions, as in the paper.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.cluster import KMeans

from benchmarks._lib import table, verdict
from reduset import Mixture, simplify

TITLE = "Toy mixtures"

COMPONENTS, SIZE = 500, 20
REPETITIONS = {1: 10, 2: 10, 5: 10, 10: 10, 20: 10, 50: 4, 100: 3}
POLISH = {1: 100, 2: 100, 5: 100, 10: 100, 20: 100, 50: 100, 100: 25}  # steps; at d = 100 one takes a third of a second
VARIANCES, SHAPES = (0.5, 0.25), ("full", "spherical")
TESTED, DRAWN = 2000, 10_000
SUMMED_UP_TO = 2  # dimensions in which ‖f − g‖ comes from a grid: it is below the rounding of its closed form
PAPER = {"error": 0.6017, "divergence": 0.6049}
RIVAL, ALONE, DENSITY, FREE = "KL rival", "groups alone", "polished, a density", "polished, free weights"
GOALS = {ALONE: 0.60, DENSITY: 0.40, FREE: 0.40}
MEASURES = {"test": "at test points", "l2": "in L2", "square": "in L2, squared", "divergence": "KL divergence"}


def draw(d: int, variance: float, rng: np.random.Generator) -> Mixture:
    weights = rng.random(COMPONENTS)
    return Mixture(weights / weights.sum(), rng.random((COMPONENTS, d)), np.full(COMPONENTS, variance))


def methods(steps: int) -> dict[str, dict]:
    alone = {"refit": False, "polish": False, "density": False}
    return {
        RIVAL: {"method": "kl", **alone},
        ALONE: {"method": "l2", **alone},
        DENSITY: {"method": "l2", "polish": steps, "density": True},
        FREE: {"method": "l2", "polish": steps, "density": False},
    }


def l2_distance(f: Mixture, g: Mixture) -> float:
    """‖f − g‖: in closed form, or where that loses its digits by a sum over a grid (of rapid convergence for sums of Gaussians)."""
    if f.dimension > SUMMED_UP_TO:
        return float(np.sqrt(f.inner(f) - 2 * f.inner(g) + g.inner(g)))  # f.distance(g) would factor every pair of f's components
    reach = 9 * np.sqrt(float(max(f.covariances.max(), g.covariances.max())))
    side, step = np.linspace(-reach, 1 + reach, 20_001 if f.dimension == 1 else 301, retstep=True)
    grid = np.stack(np.meshgrid(*[side] * f.dimension, indexing="ij"), axis=-1).reshape(-1, f.dimension)
    return float(np.linalg.norm(f(grid) - g(grid)) * step ** (f.dimension / 2))


def divergence(f: Mixture, g: Mixture, draws: np.ndarray) -> float:
    """KL(f ‖ g) of the two as densities: the mean of log f/g at draws of f, less a multiple of g/f − 1, whose mean is 0.

    Without it, divergences far below 1 drown in the sampling error (`Mixture.kl`); the multiple is that of least variance.
    """
    gap = f.log_density(draws) - g.log_density(draws) + np.log(g.mass / f.mass)
    excess = np.expm1(np.minimum(-gap, 50.0))
    spread = float(excess @ excess)
    return float(np.mean(gap - (gap @ excess) / spread * excess)) if spread else 0.0


def errors(d: int, variance: float, shape: str, repetition: int) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Of each method by each measure, and the seconds it took."""
    rng = np.random.default_rng([d, repetition])
    f = draw(d, variance, rng)
    start = KMeans(SIZE, n_init=1, random_state=repetition).fit(f.means, sample_weight=f.weights).labels_
    test, draws = rng.random((TESTED, d)), f.sample(DRAWN, rng)
    truth = f(test)
    found, took = {}, {}
    for name, options in methods(POLISH[d]).items():
        begun = time.perf_counter()
        g = simplify(f, size=SIZE, covariance=shape, start=start, rng=0, **options).mixture
        took[name] = time.perf_counter() - begun
        distance = l2_distance(f, g)
        found[name] = {
            "test": float(np.linalg.norm(g(test) - truth) / np.linalg.norm(truth)),
            "l2": distance / f.norm(),
            "square": (distance / f.norm()) ** 2,
            "divergence": divergence(f, g, draws) if g.is_density else np.nan,
        }
    return found, took


def said(summary: list[list]) -> str:
    """Under how many readings the groups alone meet their goal, and the paper's divergence is found again."""
    alone = [row for row in summary if row[2] == ALONE]
    at_points, in_l2 = (sum(row[column] == "yes" for row in alone) for column in (6, 8))
    divergences = [float(row[10]) for row in alone]
    found = sum(value <= 1.1 * PAPER["divergence"] for value in divergences)
    readings = len(alone)
    return (
        "Groups alone, Algorithm 1 with three steps of each local fit a round, meet their goal under "
        f"{at_points} of {readings} readings at test points, under {in_l2} of {readings} in L2. "
        f"The paper's ratio of KL divergences, {PAPER['divergence']:.2f}, is found again under {found} of {readings}: here they "
        f"are {min(divergences):.2f} to {max(divergences):.2f}. Where it is not, the reading need not be what the paper ran. "
        "Ratios change with d, so the means depend on which dimensions are taken: see the second table."
    )


def run() -> str:
    dimensions = list(REPETITIONS)
    average: dict[tuple, np.ndarray] = {}  # by shape, variance, method and measure, over dimensions
    took = dict.fromkeys(((shape, name) for shape in SHAPES for name in methods(0)), 0.0)
    for shape in SHAPES:
        for variance in VARIANCES:
            for at, d in enumerate(dimensions):
                trials = [errors(d, variance, shape, repetition) for repetition in range(REPETITIONS[d])]
                for name in trials[0][0]:
                    for measure in MEASURES:
                        mean = np.mean([found[name][measure] for found, _ in trials])
                        average.setdefault((shape, variance, name, measure), np.empty(len(dimensions)))[at] = mean
                    if d == dimensions[-1]:
                        took[shape, name] = float(np.median([times[name] for _, times in trials]))

    def ratios(shape: str, variance: float, name: str, measure: str) -> np.ndarray:
        return average[shape, variance, name, measure] / average[shape, variance, RIVAL, measure]

    summary, details = [], []
    for shape in SHAPES:
        for variance in VARIANCES:
            for name, goal in GOALS.items():
                means = {measure: ratios(shape, variance, name, measure).mean() for measure in MEASURES}
                own = "**yes**" if (shape, variance) == (SHAPES[0], VARIANCES[0]) else ""
                summary.append([
                    shape, variance, name, own, f"{means['test']:.3f}", f"{goal:.2f}", verdict(-means["test"], -goal),
                    f"{means['l2']:.3f}", verdict(-means["l2"], -goal), f"{means['square']:.3f}",
                    "" if np.isnan(means["divergence"]) else f"{means['divergence']:.3f}",
                ])  # fmt: skip
            for measure in ("test", "l2"):
                mean = average[shape, variance, RIVAL, measure]
                details.append([shape, variance, MEASURES[measure], "KL rival, of ‖f‖", *(f"{value:.1e}" for value in mean)])
                for name in GOALS:
                    details.append([shape, variance, MEASURES[measure], f"{name}, of the rival",
                                    *(f"{value:.3f}" for value in ratios(shape, variance, name, measure))])  # fmt: skip
    seconds = "; ".join(f"{shape} " + ", ".join(f"{name} {took[shape, name]:.2f} s" for name in methods(0)) for shape in SHAPES)
    repeated = ", ".join(f"{REPETITIONS[d]} at d = {d}" for d in dimensions if REPETITIONS[d] < 10)
    head = ["covariances", "variance", "method", "our reading of the paper", "at test points", "goal", "met", "in L2", "met"]
    return (
        f"{COMPONENTS} components to {SIZE}, d = {', '.join(map(str, dimensions))}; 10 repetitions, {repeated}. The polish takes "
        f"up to {POLISH[1]} steps, {POLISH[100]} at d = 100. Errors relative to the KL rival's from the same k-means start, "
        f"averaged over d (the paper: {PAPER['error']:.2f} in L2, {PAPER['divergence']:.2f} in KL divergence).\n\n"
        "The paper measures the L2 error *on a test set*: read here as the root of the mean squared difference at "
        f"{TESTED:,} points drawn like the means; how it was drawn the paper does not say. It says "
        '"covariance h = 0.5", and states Algorithm 1 for full covariances; whether those of this experiment were full it does not '
        "say either. Full, 0.5 and test points are our reading of it, marked below. The other rows are what else the words could "
        "mean: 0.25 if h were a standard deviation, spherical covariances, and ‖f − g‖ over the whole space, in closed form (at "
        "d = 1 and 2 by a sum over a grid). KL divergences are "
        f"from {DRAWN:,} draws of f; where weights are free there may be none.\n\n"
        + said(summary)
        + "\n\n"
        + table([*head, "in L2, squared", "KL divergence"], summary)
        + "\n\n"
        + table(["covariances", "variance", "measured", "method", *(f"d = {d}" for d in dimensions)], details)
        + f"\n\nSeconds at d = 100: {seconds}."
    )
