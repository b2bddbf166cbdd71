"""Tables VI, VII and VIII of Zhang & Kwok (2010): SVMs for 13 sets of the LIBSVM archive on 5 or 10 % of the support vectors.

Compared: Algorithm 1 as printed, its faster version, weights by mass, and the KL method (GR), over 100 splits 4 : 1, or 100 random
starts where a set has its own test rows. Goal: Algorithm 1 within one deviation of the paper's mean test error on at least 11 of 13
sets, and significantly better than GR on sonar.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student
from sklearn.svm import SVC

from benchmarks._lib import table, verdict
from benchmarks.applications.svm import PART, SETS, Set, percent_wrong, splits
from benchmarks.papers._zhang2010_svm import FAST, GR, MASS, PRINTED, Halves, confidence, repeated, warm_up, with_paper

TITLE = "Zhang & Kwok 2010, Tables VI–VIII: sets of the LIBSVM archive"
SOURCES = ("simplification", "_engine/components.py")

REPETITIONS, ENOUGH = 100, 11
LEVEL = 0.95  # of the one-sided test on sonar
WIDER = {  # decision functions that are harder to approximate: 10 % of the support vectors
    "ionosphere": Set("ionosphere", 2.36, 1, -1.0, 5.45, 13.63, 12.85),
    "sonar": Set("sonar", 10.34, 10, -1.0, 11.50, 24.92, 20.47),
}


class Printed(NamedTuple):
    """What the paper prints: support vectors and size of Table VI, deviations and t of Table VII, seconds of Table VIII."""

    vectors: float
    size: float
    deviations: tuple[float, float]
    t: float
    seconds: tuple[float, float]


PAPER = {
    "svmguide1": Printed(359, 16, (1.75, 0.30), 7.29, (0.012, 0.051)),
    "w1a": Printed(323, 16, (7.38, 0.348), 2.74, (0.045, 0.063)),
    "splice": Printed(584, 28, (0.66, 0.59), 19.64, (0.026, 0.078)),
    "adult1a": Printed(641, 32, (0.52, 0.37), -0.59, (0.045, 0.095)),
    "german": Printed(482.4, 23.2, (3.14, 2.81), 4.26, (0.017, 0.052)),
    "pima": Printed(321.2, 15.2, (3.28, 3.04), 5.65, (0.014, 0.042)),
    "breast cancer": Printed(61.3, 2.0, (1.27, 1.18), 0.68, (0.003, 0.013)),
    "australian": Printed(181.3, 8.0, (2.81, 2.90), -1.146, (0.005, 0.016)),
    "heart": Printed(110.8, 4.0, (4.50, 4.63), -0.33, (0.003, 0.013)),
    "liver": Printed(179.5, 8.0, (13.96, 11.92), 1.22, (0.004, 0.017)),
    "diabetes": Printed(350.4, 16.2, (2.99, 2.85), 0.328, (0.014, 0.044)),
    "ionosphere": Printed(159.2, 15.0, (4.54, 4.82), 1.46, (0.007, 0.032)),
    "sonar": Printed(114.5, 10.2, (7.94, 6.98), 7.01, (0.007, 0.025)),
}


def without_constants(each: Set, X: np.ndarray, y: np.ndarray, Q: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, ...]:
    """The second column of ionosphere is constant; the paper has the other 33."""
    if each.file == "ionosphere":
        X, Q = (np.delete(rows, 1, axis=1) for rows in (X, Q))
    return X, y, Q, labels


def trials(each: Set, part: float, count: int) -> list[tuple[Halves, int, float, int]]:
    """The halves, their size, the SVM's test error and its support vectors for each split; equal splits are trained once."""
    found: list[tuple[Halves, int, float, int]] = []
    before = None
    for X, y, Q, labels in splits(each, count):
        if before is not X:
            before = X
            X, y, Q, labels = without_constants(each, X, y, Q, labels)
            svm = SVC(C=each.C, gamma=1.0 / each.gamma).fit(X, y)
            vectors = len(svm.support_)
            here = (Halves(svm, Q, labels), int(part * vectors), percent_wrong(svm, Q, labels), vectors)
        found.append(here)
    return found


def measure(quick: bool) -> dict[str, Any]:
    count = 3 if quick else REPETITIONS
    found = {}
    for name, each in (SETS | WIDER).items():
        if quick and name not in ("heart", "ionosphere", "sonar"):
            continue
        every = trials(each, 2 * PART if name in WIDER else PART, count)
        if not found:
            warm_up(*every[0][:2])
        found[name] = repeated(lambda seed, every=every: every[seed][:3], count)
        found[name]["vectors"] = float(np.mean([trial[3] for trial in every]))
    return {"clock": "processor", "repetitions": count, "sets": found}


def near_paper(figures: dict[str, Any]) -> int:
    """The number of sets on which Algorithm 1 is within a standard deviation of the paper's mean error."""
    count = 0
    for name, found in figures["sets"].items():
        mean, deviation = found["errors"][PRINTED]
        count += abs(mean - (SETS | WIDER)[name].ours) <= max(PAPER[name].deviations[1], deviation)
    return count


def summary(figures: dict[str, Any]) -> list[list[str]]:
    near, sets, sonar = near_paper(figures), len(figures["sets"]), figures["sets"]["sonar"]
    enough, critical = min(ENOUGH, sets), float(student.ppf(LEVEL, figures["repetitions"] - 1))
    return [
        ["sets within a deviation of the paper's error", f"{near} of {sets}", f"≥ {enough}", verdict(near, enough)],
        ["sonar, Algorithm 1 against GR: t (paper 7.0)", f"{sonar['t']:.1f}", "p < 0.05", verdict(sonar["t"], critical)],
    ]


def details(figures: dict[str, Any]) -> str:
    errors, times, near, count = [], [], near_paper(figures), figures["repetitions"]
    for name, found in figures["sets"].items():
        each, paper = (SETS | WIDER)[name], PAPER[name]
        errors.append([
            name, f"{found['vectors']:.1f} ({paper.vectors:g})", f"{found['size'][0]:.1f} ({paper.size:g})",
            with_paper(found["original"], each.original),
            with_paper(found["errors"][GR], f"{each.rival:.2f} ± {paper.deviations[0]:.2f}"),
            with_paper(found["errors"][PRINTED], f"{each.ours:.2f} ± {paper.deviations[1]:.2f}"),
            f"{found['t']:.1f}, {confidence(found['t'], count)} ({paper.t:.1f})",
            "{:.2f} ± {:.2f}".format(*found["errors"][FAST]),
            "{:.2f} ± {:.2f}, t {:.1f}".format(*found["errors"][MASS], found["t of mass"]),
        ])  # fmt: skip
        gr, ours = paper.seconds
        milliseconds = {method: 1e3 * found["seconds"][method][0] for method in (GR, PRINTED, FAST)}
        times.append([
            name, f"{milliseconds[GR]:.1f} ({1e3 * gr:.0f})", f"{milliseconds[PRINTED]:.1f} ({1e3 * ours:.0f})",
            f"{milliseconds[FAST]:.1f}", f"{milliseconds[PRINTED] / milliseconds[GR]:.1f}× ({ours / gr:.1f}×)",
        ])  # fmt: skip
    head = ["set", "support vectors", "size", "SVM", "GR", "Algorithm 1", "t, confidence", "three steps", "weights by mass"]
    timed = table(["set", "GR", "Algorithm 1", "three steps", "Algorithm 1 over GR"], times)
    sonar = figures["sets"]["sonar"]
    return (
        f"Test errors in percent, means and deviations over {count} splits 4 : 1 (svmguide1 and splice: their own split, {count} "
        "random starts); the paper's figures in brackets. The parameters are those of Table VI. Columns as in Tables III–V.\n\n"
        f"{table(head, errors)}\n\n"
        f"Algorithm 1 is within one deviation of the paper's mean on {near} of {len(errors)} sets (goal {ENOUGH}: "
        f"{verdict(near, min(ENOUGH, len(errors)))}). On sonar it is better than GR with t = {sonar['t']:.1f} (the paper: 7.0). "
        "Weights by mass give similar errors, except on splice, where they are about a point larger.\n\n"
        f"Table VIII, milliseconds of {figures.get('clock', 'wall-clock')} time:\n\n{timed}\n\n"
        "Differences. The paper does not state how features were scaled. Here: unscaled for the first four sets, to [0, 1] for "
        "pima, to [−1, 1] for the others, which gives the paper's numbers of support vectors, also for ionosphere and sonar. w1a "
        "and adult1a: the paper's test rows are not available, so a fifth of the training rows is tested; hence fewer support "
        "vectors and another level of error. liver: the paper prints errors of the simplified functions 6 points *below* the "
        "SVM's own. On 8 components for 179 support vectors with C = 100 we find them 14 to 16 points above, with GR and with "
        "Algorithm 1; the SVM itself agrees, so we have no explanation. ionosphere: the text claims a confidence of at least "
        "99.5 % for all sets but six, its own table has 90 %, and here there is no difference. Times: Matlab on a computer of "
        "2010 against compiled loops; ours include the exact L2 error. The tolerance 0.01 is absolute, so Algorithm 1 takes many "
        "updates on svmguide1, whose columns span hundreds, and few where columns are in [0, 1]."
    )
