"""Figure 1 of Zhang & Kwok (2010): 500 random components on 20, from 1 to 100 dimensions, by L2, KL and local KL distance.

Compared: Algorithm 1 as printed, its faster version with three steps a round, and the KL method (GR), from the same k-means start.
Goal: Algorithm 1 at most 60 % of GR's L2 error on test points, GR at most 100 % of Algorithm 1's local KL distance, and the faster
version within 2 % of Algorithm 1.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from sklearn.cluster import KMeans

from benchmarks._lib import table, verdict
from benchmarks.applications.mixture_toys import SIZE, divergence, draw, l2_distance
from reduset import Mixture, simplify

TITLE = "Zhang & Kwok 2010, Figure 1: toy mixtures, and Algorithm 1 as printed against three steps a round"
SOURCES = ("simplification", "_engine/components.py")

REPETITIONS = {1: 10, 2: 10, 5: 10, 10: 10, 20: 10, 50: 4, 100: 2}
READINGS = (
    ("full", 0.5),
    ("full", 0.25),
    ("spherical", 0.5),
    ("spherical", 0.25),
)  # covariances, and the variance that h = 0.5 means
TESTED, DRAWN = 2000, 10_000
MOST, WITHIN = 0.6, 0.02  # the goals of the docstring
QUICK_REPETITIONS = {1: 2, 5: 2, 20: 1}
GR, PRINTED, FAST = "GR", "Algorithm 1", "three steps"
METHODS = {GR: "kl", PRINTED: "zhang", FAST: "l2"}
PAPER = {"test": 0.6017, "divergence": 0.6049, "local": 1 / 0.9990}
ALONE = {"refit": False, "polish": False, "density": False}


def local_divergence(f: Mixture, groups: np.ndarray, g: Mixture) -> float:
    """Σⱼ αⱼ KL(φⱼ ‖ g_π(j)) (22), π the groups; the components of f are spherical."""
    d, total = f.dimension, 0.0
    for i in range(g.size):
        rows = np.flatnonzero(groups == i)
        H = g.covariances[i] * np.eye(d) if g.covariances.ndim == 1 else g.covariances[i]
        precision, away = np.linalg.inv(H), f.means[rows] - g.means[i]
        variances = f.covariances[rows]
        logs = np.linalg.slogdet(H)[1] - d * np.log(variances)
        kl = 0.5 * (variances * np.trace(precision) + np.einsum("ka,ab,kb->k", away, precision, away) - d + logs)
        total += float(f.weights[rows] @ kl)
    return total


def errors(d: int, variance: float, shape: str, repetition: int) -> dict[str, dict[str, float]]:
    """Every measure and the seconds of every method."""
    rng = np.random.default_rng([d, repetition])
    f = draw(d, variance, rng)
    start = KMeans(SIZE, n_init=1, random_state=repetition).fit(f.means, sample_weight=f.weights).labels_
    test, draws = rng.random((TESTED, d)), f.sample(DRAWN, rng)
    truth = f.log_density(test)
    out = {}
    for name, method in METHODS.items():
        begun = time.process_time()
        found = simplify(f, covariance=shape, start=start, rng=0, method=method, **ALONE)
        took = time.process_time() - begun
        g = found.mixture
        logs = g.log_density(test)
        once = simplify(f, covariance=shape, start=start, rng=0, method=method, rounds=1, **ALONE).mixture
        out[name] = {
            "test": relative_error(truth, logs),
            "l2": l2_distance(f, g) / f.norm(),
            "divergence": divergence(f, g, draws),
            "test divergence": discrete_divergence(truth, logs),
            "log ratio": float(np.abs(logs - truth).mean()),
            "local": local_divergence(f, start, once),
            "rounds": float(len(found.history)),
            "seconds": took,
        }  # fmt: skip
    return out


def relative_error(truth: np.ndarray, logs: np.ndarray) -> float:
    """The relative root mean squared difference at the test points, from the logarithms of both densities there."""
    f, g = (np.exp(values - truth.max()) for values in (truth, logs))
    return float(np.linalg.norm(g - f) / np.linalg.norm(f))


def discrete_divergence(truth: np.ndarray, logs: np.ndarray) -> float:
    """KL of the two as distributions over the test points, from the logarithms of both densities there."""
    p, q = (np.exp(values - values.max()) for values in (truth, logs))
    p, q = p / p.sum(), q / q.sum()
    return float(p @ (np.log(p) - np.log(q)))


def measure(quick: bool) -> dict[str, Any]:
    errors(2, 0.5, "full", 0), errors(2, 0.5, "spherical", 0)  # compile
    repetitions = QUICK_REPETITIONS if quick else REPETITIONS
    readings = []
    for shape, variance in READINGS[:1] if quick else READINGS:
        rows = []
        for d, count in repetitions.items():
            trials = [errors(d, variance, shape, repetition) for repetition in range(count)]
            means = {
                name: {key: float(np.mean([each[name][key] for each in trials])) for key in trials[0][name]} for name in METHODS
            }
            rows.append({"d": d, **means})
        readings.append({"covariances": shape, "variance": variance, "rows": rows})
    figures = {"repetitions": {str(d): count for d, count in repetitions.items()}, "readings": readings, "clock": "processor"}
    figures["fine"] = [fine_units(d, variance, 2 if quick else 10) for d, variance in ((2, 0.5), (2, 0.01), (5, 0.05))]
    if not quick:
        picture(figures, Path(__file__).parent / "results" / "zhang2010_figure1.png")
    return figures


def fine_units(d: int, variance: float, repetitions: int) -> dict[str, float]:
    """Both versions with the means a thousand times as large, where ε = 0.01 is negligible: ratios of L2 errors and times."""
    errors, seconds = {}, {}
    for name in (PRINTED, FAST):
        errors[name], seconds[name] = [], 0.0
        for repetition in range(repetitions):
            f = draw(d, variance, np.random.default_rng([d, repetition]))
            f = Mixture(f.weights, 1e3 * f.means, 1e6 * f.covariances)
            begun = time.process_time()
            errors[name].append(simplify(f, SIZE, rng=repetition, method=METHODS[name], **ALONE).error)
            seconds[name] += time.process_time() - begun
    ratios = np.divide(errors[FAST], errors[PRINTED])
    return {"d": d, "variance": variance, "error": float(ratios.mean()), "time": seconds[FAST] / seconds[PRINTED]}


def picture(figures: dict[str, Any], path: Path) -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawn, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
    reading = figures["readings"][1]
    names = {"test": "L2 error on test points", "log ratio": "mean |log f/g| on test points", "local": "local KL distance"}
    for ax, (key, label) in zip(axes, names.items(), strict=True):
        for name, style in ((GR, "s--"), (PRINTED, "o-")):
            ax.loglog([row["d"] for row in reading["rows"]], [row[name][key] for row in reading["rows"]], style, label=name)
        ax.set(xlabel="dimension", title=label)
    axes[0].legend()
    drawn.savefig(path, dpi=80)
    plt.close(drawn)


def mean_ratio(rows: list[dict[str, Any]], one: str, other: str, key: str) -> float:
    return float(np.mean([row[one][key] / row[other][key] for row in rows]))


class Goals(NamedTuple):
    """Algorithm 1 over GR, the best reading by L2 on test points and the least by local KL; three steps over Algorithm 1 in L2."""

    test: float
    local: float
    versions: np.ndarray

    @property
    def met(self) -> tuple[str, str, str]:
        return verdict(MOST, self.test), verdict(self.local, 1.0), verdict(WITHIN, abs(self.versions.mean() - 1))


def goals(figures: dict[str, Any]) -> Goals:
    readings = [reading["rows"] for reading in figures["readings"]]
    test, local = (min(mean_ratio(rows, PRINTED, GR, key) for rows in readings) for key in ("test", "local"))
    return Goals(test, local, np.array([row[FAST]["l2"] / row[PRINTED]["l2"] for rows in readings for row in rows]))


def summary(figures: dict[str, Any]) -> list[list[str]]:
    found = goals(figures)
    met = found.met
    return [
        ["L2 on test points, Algorithm 1 / GR", f"{found.test:.3f}", f"≤ {MOST:.2f}", met[0]],
        ["local KL distance, Algorithm 1 / GR", f"{found.local:.3f}", "≥ 1", met[1]],
        ["L2 error, three steps / Algorithm 1", f"{found.versions.mean():.3f}", f"within {WITHIN:.0%}", met[2]],
    ]


def details(figures: dict[str, Any]) -> str:
    readings, versions, each_d = [], [], []
    keys = ("test", "l2", "divergence", "test divergence", "log ratio", "local")
    for reading in figures["readings"]:
        rows, named = reading["rows"], [reading["covariances"], reading["variance"]]
        readings.append([*named, *(f"{mean_ratio(rows, PRINTED, GR, key):.3f}" for key in keys)])
        for row in rows:
            cells = [f"{row[FAST][key] / row[PRINTED][key]:.3f}" for key in ("l2", "test")]
            rounds = [f"{row[name]['rounds']:.1f}" for name in (PRINTED, FAST)]
            took = [f"{1e3 * row[name]['seconds']:.0f}" for name in (GR, PRINTED, FAST)]
            versions.append([*named, row["d"], *cells, *rounds, *took])
            shown = [row[name][key] for key in ("test", "log ratio", "local") for name in (GR, PRINTED)]
            each_d.append([*named, row["d"], *(f"{value:.2e}" for value in shown)])
    paper = ["*the paper*", "*h = 0.5*", PAPER["test"], "", PAPER["divergence"], "", "", f"{PAPER['local']:.3f}"]
    columns = ["covariances", "variance", "d"]
    head = [*columns[:2], "L2 on test points", "L2", "KL divergence", "KL on test points", "mean abs. log f/g", "local KL"]
    measures = [f"{key}: {name}" for key in ("test points", "abs. log f/g", "local KL") for name in (GR, PRINTED)]
    timed = ["L2", "L2 on test points", "rounds: Algorithm 1", "three steps", "ms: GR", "Algorithm 1", "three steps"]
    ratios, met = goals(figures).versions, goals(figures).met
    fine = ", ".join(f"{x['error']:.3f} and {x['time']:.2f} (d = {x['d']}, {x['variance']})" for x in figures.get("fine", []))
    repeated = ", ".join(f"{count} at d = {d}" for d, count in figures["repetitions"].items())
    return (
        f"Repetitions: {repeated}. Ratios of Algorithm 1 to GR, averaged over the dimensions. *Local KL* is (22) on the partition "
        "of the start, the same for both. KL divergence is that of the densities, from draws of f. *On test points* means "
        f"{TESTED:,} points drawn like the means.\n\n{table(head, [paper, *readings])}\n\n"
        f"Algorithm 1 at most 60 % of GR in L2 on test points: {met[0]}, under the best reading. GR at most 100 % of "
        f"Algorithm 1's local KL distance: {met[1]}.\n\n"
        "![errors by dimension](zhang2010_figure1.png)\n\n*Figure 1, full covariances, variance 0.25.*\n\n"
        "Differences. The paper does not state the shape of the covariances, nor whether h = 0.5 is a variance or a standard "
        "deviation, nor how the test set was drawn, so four readings are given. Its 0.60 lies between those of full and of "
        "spherical covariances. The KL divergence of the densities is not smaller for Algorithm 1, which minimises another "
        "distance. Measured on test points, as the mean absolute log-ratio, its ratio equals that in L2, as it does in the paper "
        "(0.602 and 0.605). The L2 error over the whole space falls less, because in many dimensions most of it lies outside the "
        "unit cube. The local KL distances are equal to 1 % up to d = 20, as in the paper; beyond, the L2 fit is much narrower "
        "than the moments. Relative errors grow with the dimension here too.\n\n"
        '**Three steps a round** (`method="l2"`) **against Algorithm 1 as printed** (`method="zhang"`): ratios of the errors, '
        f"rounds, and milliseconds of {figures.get('clock', 'wall-clock')} time of the whole call.\n\n"
        f"{table([*columns, *timed], versions)}\n\n"
        f"The L2 errors of three steps are {ratios.min():.3f} to {ratios.max():.3f} of Algorithm 1's, {ratios.mean():.3f} on "
        f"average (within 2 %: {met[2]}). With the means 1,000 times as large, where ε is "
        f"negligible, the ratios of the errors and of the times are {fine}.\n\nErrors of GR and Algorithm 1:\n\n"
        + table([*columns, *measures], each_d)
    )
