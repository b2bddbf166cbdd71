"""SVM decision functions on few spherical components (Zhang & Kwok 2010, Section IV): shared by Tables IV to VIII and Figure 3.

The positive and the negative half of the support vectors are simplified separately, each from a weighted k-means with random seeds.
All methods start from the same partition. Times are processor times of the two calls of `simplify`, which also compute the exact L2
error; k-means is not included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import t as student
from sklearn.cluster import KMeans
from sklearn.svm import SVC

from reduset import Mixture, simplify

GR, PRINTED, FAST, MASS = "GR", "Algorithm 1", "three steps", "by mass"
METHODS: dict[str, dict[str, Any]] = {
    GR: {"method": "kl"},
    PRINTED: {"method": "zhang"},
    FAST: {"method": "l2"},
    MASS: {"method": "zhang", "mass_weights": True},
}


class Halves:
    """The support vectors of a binary SVM with positive and with negative weights, and test rows."""

    def __init__(self, svm: SVC, Q: np.ndarray, labels: np.ndarray) -> None:
        self._h2 = 1.0 / (2.0 * svm.gamma)
        self._points, self._alphas = svm.support_vectors_, svm.dual_coef_[0]
        self._intercept, self._positive, self._Q = float(svm.intercept_[0]), labels == svm.classes_[1], Q
        self._rows = [np.flatnonzero(self._alphas > 0), np.flatnonzero(self._alphas < 0)]

    def starts(self, half: int, seed: int) -> list[np.ndarray]:
        """Labels of weighted k-means from random seeds, for each half."""
        found = []
        for rows in self._rows:
            kmeans = KMeans(min(half, len(rows)), init="random", n_init=1, random_state=seed)
            found.append(kmeans.fit(self._points[rows], sample_weight=np.abs(self._alphas[rows])).labels_)
        return found

    def percent_wrong(self, starts: Sequence[np.ndarray], options: dict[str, Any]) -> tuple[float, float]:
        """The test error of the simplified decision function, and the seconds that it took to find."""
        values, seconds, d = np.full(len(self._Q), self._intercept), 0.0, self._points.shape[1]
        for rows, start in zip(self._rows, starts, strict=True):
            f = Mixture(np.abs(self._alphas[rows]), self._points[rows], np.full(len(rows), self._h2))
            begun = time.process_time()
            g = simplify(f, start=start, covariance="spherical", refit=False, polish=False, density=False, **options).mixture
            seconds += time.process_time() - begun
            heights = g.weights * np.exp(0.5 * d * np.log(self._h2 / g.covariances))  # (30): densities to kernels of height 1
            kernels = np.exp(-0.5 * cdist(self._Q, g.means, "sqeuclidean") / g.covariances)
            values += np.sign(self._alphas[rows[0]]) * (kernels @ heights)
        return 100.0 * float(np.mean((values > 0) != self._positive)), seconds


Trial = Callable[[int], tuple[Halves, int, float]]  # from a seed: the halves, the size of each, the SVM's own test error


def repeated(trial: Trial, repetitions: int, methods: Sequence[str] = tuple(METHODS)) -> dict[str, Any]:
    """Test errors and times of every method over repetitions, as means and deviations, and the paired t of GR less Algorithm 1."""
    errors: dict[str, list[float]] = {name: [] for name in methods}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    originals, sizes = [], []
    for seed in range(repetitions):
        halves, half, original = trial(seed)
        starts = halves.starts(half, seed)
        originals.append(original)
        sizes.append(sum(int(labels.max()) + 1 for labels in starts))
        for name in methods:
            error, took = halves.percent_wrong(starts, METHODS[name])
            errors[name].append(error)
            seconds[name].append(took)
    out: dict[str, Any] = {"original": both(originals), "size": both(sizes)}
    out["errors"] = {name: both(found) for name, found in errors.items()}
    out["seconds"] = {name: both(found) for name, found in seconds.items()}
    out["t"] = paired_t(errors[GR], errors[PRINTED])
    out["t of mass"] = paired_t(errors[MASS], errors[PRINTED]) if MASS in methods else None
    return out


def warm_up(halves: Halves, half: int) -> None:
    """Run every method once, so that compilation is not timed."""
    for options in METHODS.values():
        halves.percent_wrong(halves.starts(half, 0), options)


def both(values: Sequence[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values))


def paired_t(one: Sequence[float], other: Sequence[float]) -> float:
    """Of the differences; 0 where there are none."""
    gaps = np.subtract(one, other)
    return float(gaps.mean() / (gaps.std(ddof=1) / np.sqrt(len(gaps)))) if gaps.any() else 0.0


def confidence(t: float, repetitions: int) -> str:
    """The one-sided level at which a difference is significant, as the paper states it."""
    for level in (0.999, 0.995, 0.99, 0.95, 0.9):
        if abs(t) >= student.ppf(level, repetitions - 1):
            return f"{level:.1%}"
    return "—"


def with_paper(pair: Sequence[float], paper: float | str, digits: int = 2) -> str:
    shown = f"{paper:.{digits}f}" if isinstance(paper, float) else paper
    return f"{pair[0]:.{digits}f} ± {pair[1]:.{digits}f} ({shown})"
