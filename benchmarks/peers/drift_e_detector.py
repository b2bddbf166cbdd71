"""The monitor, calibrated by simulation, beside an e-detector, whose run length is proved: which is sooner to alarm.

An e-detector (Shin, Ramdas & Rinaldo 2023) of the Shiryaev-Roberts kind, M ← (M + 1)·e with an alarm at M ≥ ert, has a run length
of ert at least, wherever the mean of e is 1 at most without drift, given the rows before. Here e = 1 + λ g(x), a bet on a witness
of a change (Shekhar & Ramdas 2023): g(x) = u·(φ(x) − μ), with u from an exponentially weighted mean of the rows before x, and λ at
most one over what g can lose. Averages of such detectors are ones too: over lengths of the mean, and over sizes λ.
Its proof takes μ as known. So it is given that of 100,000 rows of the law; what becomes of its run length with the reference's own
mean is told, and ours is measured with a reference as the other sections have, and with one that is long enough for a good mean.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from benchmarks.statistics.drift_level import clusters
from benchmarks.statistics.drift_run_length import COLUMNS, LAWS, LONGEST, QUIET, ramp, ran_for, reference, shares, stream
from benchmarks._lib import table

TITLE = "Drift: simulated run lengths or proved ones"

REFERENCES = 6  # the first of those of drift_run_length, each with its ten streams
LONG = 20_000  # rows of the long references
ERTS = (1000, 10_000)
TIMES = 5  # a stream without change ends after so many expected run times
KNOWN, BOUNDING = 100_000, 500  # rows of the law for its mean, and for the least that a witness can be
LENGTHS = (16, 64, 256)  # of the exponentially weighted means
SIZES = {"normal, d=5": (0.5, 1.0, 2.0), "clusters, d=2": (0.1, 0.3, 0.6)}  # the second is drift_run_length's
RIDGE = 0.1  # of the largest variance
PARTS = 2.0 ** -np.arange(5)  # of the largest λ: 1, ½, …, 1/16
UNITS = 0.05 * 2.0 ** np.arange(5)  # λ in units of the witness's deviation
SAFE = 0.95  # of what λ may be, where the least of a witness is that of rows
KINDS = {
    "plain": "the mean at the scale of the median distance, with the Cauchy–Schwarz bound, λ by a mixture",
    "newton": "the same, λ by an online Newton step",
    "form": "the monitor's quadratic form, bounded by its least among rows of the law (past the proof), λ by a mixture",
    "whitened": "the regularised Mahalanobis direction, bounded and mixed as before",
}


def changed(law: str, change: str, size: float, k: int) -> np.ndarray:
    """`drift_run_length.stream` with a change of another size, and the same rows otherwise."""
    rows = QUIET + LONGEST
    rng = np.random.default_rng([2, list(LAWS).index(law), k])
    if law == "normal, d=5":
        X = rng.normal(size=(rows, COLUMNS))
        X[:, 0] += size * ramp(rows, change)
        return X
    X = clusters(rng, rows)
    new = rng.random(rows) < size * ramp(rows, change)
    X[new] = [6.0, 6.0] + rng.normal(size=(new.sum(), 2)) * 0.5
    return X


@dataclass(frozen=True)
class Coordinates:
    """Where the bets of one kind look: φ(x) − μ at some coordinates, with the same of known rows.

    Attributes
    ----------
    features, kept, factors : coordinates, which of them, and what they are multiplied by
    mean : (p,) of the law, after the factors
    turn : (p, p) from the weighted mean to the direction
    covariance : (p, p); known : (p, N) of rows of the law
    """

    features: object
    kept: np.ndarray
    factors: np.ndarray
    mean: np.ndarray
    turn: np.ndarray
    covariance: np.ndarray
    known: np.ndarray

    @classmethod
    def of(cls, kind: str, monitor: object, law: str, own_mean: bool = False) -> Coordinates:
        known = monitor.reference_
        features = known.features
        if kind in ("plain", "newton"):
            kept = np.arange(features.size)[features.median_part]
            factors = np.ones(len(kept))
        else:
            kept, factors = monitor._rule.kept, np.sqrt(monitor._rule.form)
        rows = LAWS[law](np.random.default_rng(3), KNOWN, "none")
        mean = known.mean if own_mean else features.mean(rows, np.full(KNOWN, 1 / KNOWN))
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
    """As one array of float32, with zeros where some have fewer coordinates."""
    most = max(each.shape[axis] for each in arrays)
    width = [(0, 0)] * arrays[0].ndim
    found = []
    for each in arrays:
        width[axis] = (0, most - each.shape[axis])
        found.append(np.pad(each, width))
    return np.stack(found).astype(np.float32)


def detect(kind: str, places: list[Coordinates], streams: list[np.ndarray], levels: tuple[int, ...]) -> np.ndarray:
    """(levels, R·S) the row, from 1 on, at which each level is reached, or −1, of S streams for each of R references.

    All streams go on side by side. A bet whose bound is that of rows may lose more than all, and is cut off at 0: past the proof.
    """
    rows = stacked([np.stack([place.rows(X) for X in some]) for place, some in zip(places, streams, strict=True)], -1)
    R, S, n, p = rows.shape
    known = stacked([place.known.T for place in places], -1).swapaxes(-1, -2)
    mean = stacked([place.mean for place in places], -1)
    turn = np.stack([np.pad(place.turn, (0, p - len(place.turn))) for place in places]).astype(np.float32)
    covariance = np.stack([np.pad(place.covariance, (0, p - len(place.turn))) for place in places]).astype(np.float32)
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
    """The mean number of rows after the first `quiet`, its standard error, alarms before, streams without one."""
    never = ran < 0
    early = ~never & (ran <= quiet)
    rows = np.where(never, longest, ran - quiet)[~early]
    return float(rows.mean()), float(rows.std(ddof=1) / np.sqrt(len(rows))), int(early.sum()), int(never.sum())


def cases(law: str) -> list[tuple[str, float]]:
    return [("none", 0.0), *(("jump", size) for size in SIZES[law]), ("slide", SIZES[law][1])]


def streams_of(law: str, change: str, size: float, ert: int) -> list[np.ndarray]:
    runs = [mine for _, mine in shares(20)][:REFERENCES]
    if change == "none":
        return [np.stack([stream(law, "none", ert, k)[: TIMES * ert] for k in mine]) for mine in runs]
    return [np.stack([changed(law, change, size, k) for k in mine]) for mine in runs]


def ours(law: str, change: str, size: float, ert: int, fresh: list[object]) -> np.ndarray:
    streams = streams_of(law, change, size, ert)
    return np.asarray([ran_for(copy.deepcopy(one), X) for one, some in zip(fresh, streams, strict=True) for X in some])


def monitors(law: str, ert: int, rows: int | None = None) -> list[object]:
    from reduset.drift import DriftMonitor

    found = []
    for r in range(REFERENCES):
        X = reference(law, r) if rows is None else LAWS[law](np.random.default_rng([4, list(LAWS).index(law), r]), rows, "none")
        found.append(DriftMonitor(X, ert=ert, random_state=r))
    return found


def cell(ran: np.ndarray, change: str, ert: int) -> tuple[str, float]:
    """What is told of runs, and their mean."""
    quiet, longest = (0, TIMES * ert) if change == "none" else (QUIET, LONGEST)
    mean, error, early, never = counted(ran, quiet, longest)
    return f"{mean:,.0f} ± {error:,.0f} ({early}, {never})", mean


def run() -> str:
    lines: dict[int, list[list[str]]] = {ert: [] for ert in ERTS}
    sooner = {ert: np.zeros((2, 2 + len(KINDS)), np.int64) for ert in ERTS}
    for law in LAWS:
        short, long = ({ert: monitors(law, ert, rows) for ert in ERTS} for rows in (None, LONG))
        places = {kind: [Coordinates.of(kind, one, law) for one in short[ERTS[0]]] for kind in KINDS}
        own = {kind: [Coordinates.of(kind, one, law, own_mean=True) for one in short[ERTS[0]]] for kind in KINDS}
        for change, size in cases(law):
            levels = ERTS[:1] if change == "none" else ERTS
            streams = streams_of(law, change, size, ERTS[0])
            bets = {kind: detect(kind, places[kind], streams, levels) for kind in KINDS}
            what = f"{change} {size:g}" if size else change
            for i, ert in enumerate(ERTS):
                found = [ours(law, change, size, ert, fresh[ert]) for fresh in (short, long)]
                told = [cell(ran, change, ert) for ran in found]
                told += [cell(bets[kind][i], change, ert) if i < len(levels) else ("", np.inf) for kind in KINDS]
                if change != "none":
                    first = int(np.argmin([mean for _, mean in told]))
                    sooner[ert][int(change == "slide"), first] += 1
                lines[ert].append([f"{ert:,}", law, what, *(text for text, _ in told)])
            if change == "none":
                bets = {kind: detect(kind, own[kind], streams, levels) for kind in KINDS}
                told = [cell(bets[kind][0], change, ERTS[0]) for kind in KINDS]
                lines[ERTS[0]].append([f"{ERTS[0]:,}", law, "none, μ of the reference", "", "", *(text for text, _ in told)])
    names = ["ours", f"ours, {LONG:,} rows", *(f"e: {kind}" for kind in KINDS)]
    words = []
    for ert in ERTS:
        for kind, wins in zip(("jumps", "slides"), sooner[ert], strict=True):
            said = ", ".join(f"{name} {count}" for name, count in zip(names, wins, strict=True) if count)
            words.append(f"at ert {ert:,} in {kind} {said}")
    text = (
        f"Mean rows to the alarm over {10 * REFERENCES} streams of the section before, with its standard error; in brackets alarms "
        f"before the change, which are left out, and streams without any, which count with their length ({TIMES} ert where nothing "
        f"changes, {LONGEST:,} rows after a change). {REFERENCES} references of 1,000 rows, or of {LONG:,} for the second column. "
        f"The e-detectors, averaged over weighted means of {', '.join(map(str, LENGTHS))} rows, know μ from {KNOWN:,} rows of the "
        "law, as their proof asks; one row tells what their run length becomes where μ is the reference's own mean. Their bets: "
        + "; ".join(f"*{kind}*, {words}" for kind, words in KINDS.items())
        + ". Their run length for ert 10,000 was not measured. A jump or slide of the normal law is in deviations of a column, of "
        "the clusters the share of rows in a new group.\n\n"
    )
    head = ["ert", "law", "change", *names]
    return (
        text
        + table(head, [row for ert in ERTS for row in lines[ert]])
        + f"\n\nSoonest, within the errors or not: {'; '.join(words)}."
    )


if __name__ == "__main__":
    print(run())
