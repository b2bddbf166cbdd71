"""Which alarms sooner after a change: the monitor, calibrated by simulation, or an e-detector with a proven run length?

The e-detector (Shin, Ramdas & Rinaldo 2023) is of the Shiryaev-Roberts kind: M ← (M + 1)·e, with an alarm at M ≥ ert. Its expected
run length is at least ert if E(e) ≤ 1 without drift. Here e = 1 + λ g(x) is a bet on a witness of a change (Shekhar & Ramdas 2023).
The proof requires the mean μ of the distribution, so it gets that of 100,000 rows; the monitor has a reference of 1,000 or 20,000
rows.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._lib import table
from benchmarks.statistics.drift_level import clusters
from benchmarks.statistics.drift_run_length import COLUMNS, LAWS, LONGEST, QUIET, ramp, ran_for, reference
from reduset.drift import DriftMonitor

TITLE = "Drift: simulated run lengths or proved ones"
SOURCES = (
    "drift/monitor.py",
    "drift/watch_rule.py",
    "drift/run_length.py",
)

NORMAL, CLUSTERS = LAWS
TIMES = 5  # a stream without change ends after this multiple of the expected run time
BOUNDING = 500  # rows for the lower bound of a witness
LENGTHS = (16, 64, 256)  # of the exponentially weighted means
SIZES = {NORMAL: (0.5, 1.0, 2.0), CLUSTERS: (0.1, 0.3, 0.6)}  # of the changes; the second is that of drift_run_length
RIDGE = 0.1  # relative to the largest variance
PARTS = 2.0 ** -np.arange(5)  # of the largest λ: 1, ½, …, 1/16
UNITS = 0.05 * 2.0 ** np.arange(5)  # λ in standard deviations of the witness
SAFE = 0.95  # of the largest λ, if the lower bound of a witness is that of rows
KINDS = {
    "plain": "the mean at the scale of the median distance, with the Cauchy-Schwarz bound and a mixture of λ",
    "newton": "the same with λ by an online Newton step",
    "form": "the quadratic form of the monitor, bounded by its minimum over rows (not covered by the proof), with a mixture of λ",
    "whitened": "the regularised Mahalanobis direction, with the bound and mixture of *form*",
}


@dataclass(frozen=True)
class Plan:
    """Expected run times, numbers of references and streams of each, rows of long references, of the mean μ and after a change."""

    erts: tuple[int, ...] = (1000, 10_000)
    references: int = 6
    streams: int = 10
    long: int = 20_000
    known: int = 100_000
    longest: int = LONGEST
    laws: tuple[str, ...] = (NORMAL, CLUSTERS)
    kinds: tuple[str, ...] = tuple(KINDS)


QUICK = Plan((500,), references=1, streams=5, long=2000, known=5000, longest=100, laws=(NORMAL,), kinds=("plain", "form"))


def changed(law: str, change: str, size: float, k: int, rows: int) -> np.ndarray:
    """A stream of `drift_run_length` with a change of another size."""
    rng = np.random.default_rng([2, list(LAWS).index(law), k])
    if law == NORMAL:
        X = rng.normal(size=(rows, COLUMNS))
        X[:, 0] += size * ramp(rows, change)
        return X
    X = clusters(rng, rows)
    new = rng.random(rows) < size * ramp(rows, change)
    X[new] = [6.0, 6.0] + rng.normal(size=(new.sum(), 2)) * 0.5
    return X


@dataclass(frozen=True)
class Coordinates:
    """Coordinates φ(x) − μ that bets of one kind use.

    Attributes
    ----------
    features, kept, factors : all coordinates, the selected ones, and their factors
    mean : (p,) mean of the distribution, with the factors
    turn : (p, p) matrix from the weighted mean to the direction
    covariance : (p, p) covariance
    known : (p, N) coordinates of known rows
    """

    features: object
    kept: np.ndarray
    factors: np.ndarray
    mean: np.ndarray
    turn: np.ndarray
    covariance: np.ndarray
    known: np.ndarray

    @classmethod
    def of(cls, kind: str, monitor: Any, law: str, count: int, own_mean: bool = False) -> Coordinates:
        known = monitor.reference_
        features = known.features
        if kind in ("plain", "newton"):
            kept = np.arange(features.size)[features.median_part]
            factors = np.ones(len(kept))
        else:
            kept, factors = monitor._rule.kept, np.sqrt(monitor._rule.form)
        rows = LAWS[law](np.random.default_rng(3), count, "none")
        mean = known.mean if own_mean else features.mean(rows, np.full(count, 1 / count))
        mean = mean[kept] * factors
        coordinates = features.rows(rows[:10_000])[:, kept] * factors
        covariance = np.cov(coordinates, rowvar=False)
        turn = np.eye(len(kept))
        if kind == "whitened":
            turn = np.linalg.inv(covariance + RIDGE * np.linalg.eigvalsh(covariance)[-1] * np.eye(len(kept)))
        return cls(features, kept, factors, mean, turn, covariance, (coordinates[:BOUNDING] - mean).T)

    def rows(self, X: np.ndarray) -> np.ndarray:
        return self.features.rows(X)[:, self.kept] * self.factors - self.mean


def stacked(arrays: list[np.ndarray], axis: int) -> np.ndarray:
    """One array of float32, padded with zeros."""
    most = max(each.shape[axis] for each in arrays)
    width = [(0, 0)] * arrays[0].ndim
    found = []
    for each in arrays:
        width[axis] = (0, most - each.shape[axis])
        found.append(np.pad(each, width))
    return np.stack(found).astype(np.float32)


def detect(kind: str, coordinates: list[Coordinates], streams: list[np.ndarray], levels: tuple[int, ...]) -> np.ndarray:
    """(levels, R·S) the row, counted from 1, at which each level is reached, or −1, of S streams for each of R references.

    A bet whose bound is that of rows may become negative and is clipped at 0, which the proof does not cover.
    """
    rows = stacked([np.stack([place.rows(X) for X in some]) for place, some in zip(coordinates, streams, strict=True)], -1)
    R, S, n, p = rows.shape
    known = stacked([place.known.T for place in coordinates], -1).swapaxes(-1, -2)
    mean = stacked([place.mean for place in coordinates], -1)
    turn = np.stack([np.pad(place.turn, (0, p - len(place.turn))) for place in coordinates]).astype(np.float32)
    covariance = np.stack([np.pad(place.covariance, (0, p - len(place.turn))) for place in coordinates]).astype(np.float32)
    keep = (1 - 1 / np.asarray(LENGTHS, np.float32))[:, None, None, None]
    weighted = np.zeros((len(LENGTHS), R, S, p), np.float32)
    many = 1 if kind == "newton" else len(PARTS)
    M = np.zeros((many, len(LENGTHS), R, S))
    newton, curvature = np.zeros(M.shape[1:]), np.ones(M.shape[1:])
    ran = np.full((len(levels), R, S), -1)
    for t in range(n):
        U = weighted @ turn if kind == "whitened" else weighted
        if kind in ("plain", "newton"):
            U = U / np.maximum(np.linalg.norm(U, axis=-1, keepdims=True), 1e-12)
            most = 1 / (1 + np.einsum("wrsp,rp->wrs", U, mean))  # |u·φ| ≤ 1
        else:
            U = U / np.maximum(np.sqrt(np.einsum("wrsp,wrsp->wrs", U @ covariance, U)), 1e-12)[..., None]
            most = SAFE / np.maximum(-(U @ known).min(axis=-1), 1e-6)
        g = np.einsum("wrsp,rsp->wrs", U, rows[:, :, t])
        if kind == "newton":
            e = (1 + newton * most * g)[None]
            slope = most * g / e[0]
            curvature += slope**2
            newton = np.clip(newton + 2 / (2 - np.log(3)) * slope / curvature, 0, 0.5)
        elif kind == "plain":
            e = 1 + PARTS[:, None, None, None] * most * g
        else:
            e = 1 + np.minimum(UNITS[:, None, None, None], most) * g
        M = (M + 1) * np.maximum(e, 0)
        weighted = keep * weighted + (1 - keep) * rows[:, :, t]
        level = M.mean(axis=(0, 1))
        for place, least in zip(ran, levels, strict=True):
            place[(place < 0) & (level >= least)] = t + 1
        if (ran[-1] >= 0).all():
            break
    return ran.reshape(len(levels), -1)


def counted(ran: np.ndarray, quiet: int, longest: int) -> tuple[float, float, int, int]:
    """The mean number of rows after the first `quiet` ones, its standard error, early alarms, and streams without an alarm."""
    never = ran < 0
    early = ~never & (ran <= quiet)
    rows = np.where(never, longest, ran - quiet)[~early]
    return float(rows.mean()), float(rows.std(ddof=1) / np.sqrt(len(rows))), int(early.sum()), int(never.sum())


def cases(law: str) -> list[tuple[str, float]]:
    return [("none", 0.0), *(("jump", size) for size in SIZES[law]), ("slide", SIZES[law][1])]


def streams_of(plan: Plan, law: str, change: str, size: float, ert: int) -> list[np.ndarray]:
    """(streams, rows, columns) for each reference."""

    def stream(k: int) -> np.ndarray:
        if change == "none":
            return LAWS[law](np.random.default_rng([2, list(LAWS).index(law), k]), TIMES * ert, change)
        return changed(law, change, size, k, QUIET + plan.longest)

    return [np.stack([stream(plan.streams * r + k) for k in range(plan.streams)]) for r in range(plan.references)]


def monitors(plan: Plan, law: str, ert: int, rows: int | None = None) -> list[DriftMonitor]:
    """A monitor per reference, of this many rows (by default the references of drift_run_length)."""

    def rows_of_reference(r: int) -> np.ndarray:
        if rows is None:
            return reference(law, r)
        return LAWS[law](np.random.default_rng([4, list(LAWS).index(law), r]), rows, "none")

    return [DriftMonitor(rows_of_reference(r), ert=ert, random_state=r) for r in range(plan.references)]


@dataclass(frozen=True)
class Case:
    """Mean rows to the alarm and how to show them, of each method, for one distribution, change and expected run time."""

    ert: int
    law: str
    change: str
    cells: list[str]
    means: list[float]


def names_of(plan: Plan) -> list[str]:
    return ["monitor", f"monitor, {plan.long:,} rows", *(f"e: {kind}" for kind in plan.kinds)]


def measure(quick: bool) -> dict[str, Any]:
    plan = QUICK if quick else Plan()
    found = [case for law in plan.laws for case in compared(plan, law)]
    return {"summary": rows_of(plan, found), "details": text_of(plan, found)}


def compared(plan: Plan, law: str) -> list[Case]:
    found = []
    short, long = ({ert: monitors(plan, law, ert, rows) for ert in plan.erts} for rows in (None, plan.long))
    first = plan.erts[0]
    known, own = (
        {kind: [Coordinates.of(kind, one, law, plan.known, own_mean) for one in short[first]] for kind in plan.kinds}
        for own_mean in (False, True)
    )
    for change, size in cases(law):
        name = f"{change} {size:g}" if size else change
        levels = plan.erts[:1] if change == "none" else plan.erts  # longer run lengths without a change take too long
        streams = streams_of(plan, law, change, size, first)
        bets = {kind: detect(kind, known[kind], streams, levels) for kind in plan.kinds}
        for i, ert in enumerate(plan.erts):
            streams = streams_of(plan, law, change, size, ert)
            ran = [
                np.asarray([ran_for(copy.deepcopy(one), X) for one, some in zip(several[ert], streams, strict=True) for X in some])
                for several in (short, long)
            ]
            shown = [cell(plan, each, change, ert) for each in ran]
            shown += [cell(plan, bets[kind][i], change, ert) if i < len(levels) else ("", np.inf) for kind in plan.kinds]
            found.append(Case(ert, law, name, *map(list, zip(*shown, strict=True))))
        if change == "none":
            bets = {kind: detect(kind, own[kind], streams_of(plan, law, change, size, first), levels) for kind in plan.kinds}
            shown = [("", np.inf)] * 2 + [cell(plan, bets[kind][0], change, first) for kind in plan.kinds]
            found.append(Case(first, law, "none, μ of the reference", *map(list, zip(*shown, strict=True))))
    return found


def cell(plan: Plan, ran: np.ndarray, change: str, ert: int) -> tuple[str, float]:
    quiet, longest = (0, TIMES * ert) if change == "none" else (QUIET, plan.longest)
    mean, error, early, never = counted(ran, quiet, longest)
    return f"{mean:,.0f} ± {error:,.0f} ({early}, {never})", mean


def rows_of(plan: Plan, found: list[Case]) -> list[list[str]]:
    rows = []
    for ert in plan.erts:
        alarms = [case.means for case in found if case.ert == ert and not case.change.startswith("none")]
        sooner = sum(min(means[:2]) <= min(means[2:]) for means in alarms)
        rows.append([f"changes with the soonest mean alarm by a monitor, ert {ert:,}", f"{sooner} of {len(alarms)}", "", ""])
    for position, name in enumerate(names_of(plan)[:2]):
        least = min(case.means[position] / case.ert for case in found if case.change == "none")
        rows.append([f"mean run length of the {name} without a change / ert, smallest", f"{least:.2f}", "", ""])
    return rows


def text_of(plan: Plan, found: list[Case]) -> str:
    soonest = []
    for ert in plan.erts:
        for kind in ("jump", "slide"):
            first = [
                names_of(plan)[int(np.argmin(case.means))] for case in found if case.ert == ert and case.change.startswith(kind)
            ]
            soonest.append(f"{kind}s, ert {ert:,}: " + ", ".join(f"{name} {first.count(name)}" for name in dict.fromkeys(first)))
    return (
        f"Mean rows to the alarm over {plan.streams * plan.references} streams with its standard error. In brackets: alarms before "
        f"the change, which are omitted, and streams without an alarm, which count with their length ({TIMES} ert without a "
        f"change, {plan.longest:,} rows after a change). {plan.references} references of 1,000 rows, or of {plan.long:,} for the "
        f"second column. The e-detectors are averaged over weighted means of {', '.join(map(str, LENGTHS))} rows and, with a "
        f"mixture, over λ; their μ is from {plan.known:,} rows, except in the rows with μ of the reference. Their bets: "
        + "; ".join(f"*{kind}*: {words}" for kind, words in KINDS.items())
        + ". A jump or slide of the normal distribution is in standard deviations of a column, that of the clusters the proportion "
        "of rows in a new group.\n\n"
        + table(
            ["ert", "distribution", "change", *names_of(plan)],
            [[f"{case.ert:,}", case.law, case.change, *case.cells] for case in sorted(found, key=lambda case: case.ert)],
        )
        + f"\n\nSoonest: {'; '.join(soonest)}."
    )
