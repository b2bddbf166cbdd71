"""Tests on the distances between samples: whether groups differ at all, and how much runs (batches) contribute.

Groups (Anderson 2001, McArdle & Anderson 2001). With A = −½D², H the projection onto what the groups add to what is held fixed, and
R the projection off both,

    F = (tr HA / p) / (tr RA / d),     share = tr HA / (tr HA + tr RA),

the variance ratio of points at these distances. Labels are exchanged within blocks. The distances are certified, D₀ ≤ D ≤ D₀ + e,
and so are the traces: tr PA = −½ΣPᵢⱼDᵢⱼ² is smallest if the squares with Pᵢⱼ > 0 are largest. For labels X and the projection M off
what is held fixed, tr HA = tr (XᵀMX)⁺XᵀMAMX: O(B·n²) for B labellings.

Batches. Two measures: the share of the squared distances that lies between runs, compared with its value under the null hypothesis;
and, for control samples (the same blood in every run), their distance between runs over that of two different samples of one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from reduset._engine import single_threaded_blas
from reduset._types import Array, SeedLike
from reduset._validate import generator, seeded
from reduset.cytometry.design import Design, DesignError, design_of, relabellings

ROUNDING = 1e-9  # relative: equivalent labellings differ by rounding


@dataclass(frozen=True)
class WholeTest:
    """The test whether groups differ at all.

    Attributes
    ----------
    name : of the labels
    share : of the squared distances that lies between the groups, beyond what is held fixed
    interval : limits of the share, from the certified errors of the distances
    expected : mean share under the null hypothesis
    statistic, p_value : pseudo-F, and the proportion of labellings with one as large
    labellings : the number of possible labellings
    """

    name: str
    share: float
    interval: tuple[float, float]
    expected: float
    statistic: float
    p_value: float
    labellings: int

    def __str__(self) -> str:
        words = "differ" if self.p_value <= 0.05 else "are not shown to differ"
        return (
            f"whole      samples of different {self.name} {words} (p = {self.p_value:.2g}): {self.share:.1%} of the squared "
            f"distances lie between groups, where groups that mean nothing would have {self.expected:.1%}"
        )


@seeded
def compare_whole(distances: Array, errors: Array | None, design: Design, rng: SeedLike = None) -> WholeTest:
    """Test whether groups of samples differ, from (N, N) distances and their errors, by which they may be too small."""
    rows = np.ix_(design.rows, design.rows)
    low = np.asarray(distances, np.float64)[rows]
    high = low if errors is None else low + np.asarray(errors, np.float64)[rows]
    A = -0.5 * low**2
    labelled = relabellings(design, generator(rng))
    X = labelled.indicators(len(design.levels))
    with single_threaded_blas():
        q, _ = np.linalg.qr(design.nuisance)
        off = np.eye(len(q)) - q @ q.T
        inner = off @ A @ off  # what the groups may explain, whichever they are
        total = float(np.trace(inner))
        between = _between(X, off, inner)
        added = off @ X[:, 0].T
        projection = added @ np.linalg.pinv(added)
    p, d = len(X), design.freedom
    left = max(total - between[0], np.finfo(float).tiny)
    share = between[0] / total if total > 0 else 0.0
    slack = high**2 - low**2
    np.fill_diagonal(slack, 0.0)
    least, most = _ends(between[0], projection, slack)
    fewest, fullest = _ends(total, off, slack)
    ends = (least / fullest if fullest > 0 else 0.0, most / fewest if fewest > 0 else 1.0)
    return WholeTest(
        name=design.name,
        share=float(share),
        interval=(float(np.clip(ends[0], 0.0, 1.0)), float(np.clip(ends[1], 0.0, 1.0))),
        expected=p / (p + d),
        statistic=float(between[0] / p / (left / d)),
        p_value=float(np.mean(between >= between[0] - ROUNDING * abs(total))),  # F increases with it
        labellings=labelled.count,
    )


def _ends(trace: float, projection: Array, slack: Array) -> tuple[float, float]:
    """The limits of −½ΣPᵢⱼDᵢⱼ² if every squared distance may be larger by its slack."""
    return trace - 0.5 * float((np.maximum(projection, 0.0) * slack).sum()), trace + 0.5 * float(
        (np.maximum(-projection, 0.0) * slack).sum()
    )


def _between(X: Array, off: Array, inner: Array) -> Array:
    """(B,) tr HA of each labelling, from (p, B, n) indicators."""
    square, along = (np.einsum("abn,nm,cbm->bac", X, each, X, optimize=True) for each in (off, inner))
    return np.asarray(np.einsum("bac,bca->b", np.linalg.pinv(square, rcond=ROUNDING, hermitian=True), along))


@dataclass(frozen=True)
class ControlPair:
    """Two controls of one kind from two runs, and their distance."""

    kind: str
    samples: tuple[str, str]
    runs: tuple[str, str]
    distance: float


@dataclass(frozen=True)
class BatchCheck:
    """The contribution of runs to the distances between samples.

    Attributes
    ----------
    name : of the column
    runs : of the N samples
    whole : the share of the squared distances that lies between runs; None if it cannot be computed, with the reason in ``notes``
    confounded : whether groups and runs are confounded; None without groups
    controls : pairs of the same control in two runs
    usual : mean distance of two different samples of one run
    notes : remarks
    """

    name: str
    runs: tuple[str, ...]
    whole: WholeTest | None
    confounded: bool | None
    controls: tuple[ControlPair, ...] = field(repr=False)
    usual: float
    notes: tuple[str, ...]

    @property
    def control_share(self) -> float | None:
        """Squared distance of a control in two runs over that of two samples of one run; None without controls."""
        if not self.controls or not self.usual > 0:
            return None
        return float(np.mean([pair.distance**2 for pair in self.controls])) / self.usual**2

    def __str__(self) -> str:
        lines = [f"batches by {self.name}: {len(set(self.runs))} of them"]
        if self.whole is not None:
            lines.append(
                f"between    {self.whole.share:.1%} of the squared distances, {self.whole.expected:.1%} by chance; "
                f"p = {self.whole.p_value:.2g}"
            )
        if self.control_share is not None:
            lines.append(f"controls   {np.sqrt(self.control_share):.2g} times as far apart between runs as two samples of one run")
        lines += [f"note       {note}" for note in self.notes]
        return "\n  ".join(lines)


def check_batches(
    distances: Array,
    errors: Array,
    names: Sequence[str],
    runs: Sequence[Any],
    title: str,
    design: Design | None,
    controls: Sequence[str | None],
    patients: Sequence[Any] | None,
    rng: np.random.Generator,
) -> BatchCheck:
    """Measure the contribution of runs; samples may have none (None).

    Parameters
    ----------
    design : of the comparison of groups, if there is one
    controls : (N,) the kind of control of each sample, None for others
    patients : (N,) for patients with several samples: only one of those in a run enters the share between runs, because samples of
        a patient are similar in any run
    """
    told = [None if run is None else str(run) for run in runs]
    notes: list[str] = []
    confounded = None if design is None else any("cannot be told apart" in note for note in design.notes)
    if confounded and design is not None:
        notes.append(
            f"{design.name} and {title} cannot be told apart: a difference between groups may be one between runs. Only samples of "
            "several groups in one run could tell"
        )
    plain = [run if control is None else None for run, control in zip(told, controls, strict=True)]
    if patients is not None:
        plain = _one_of_each(plain, patients)
    counts = {run: plain.count(run) for run in set(plain) if run is not None}
    alone = sorted(run for run, count in counts.items() if count < 2)
    if alone:
        notes.append(f"left out of the share between runs, for they have a single sample: {', '.join(alone[:5])}")
    whole = None
    try:
        labels = [None if run is None or run in alone else run for run in plain]
        whole = compare_whole(distances, errors, design_of(labels, title), rng)
    except DesignError as error:
        notes.append(str(error))
    same = [
        distances[i, j]
        for i, j in combinations(range(len(told)), 2)
        if told[i] is not None and told[i] == told[j] and controls[i] is None and controls[j] is None
    ]
    return BatchCheck(
        name=title,
        runs=tuple("" if run is None else run for run in told),
        whole=whole,
        confounded=confounded,
        controls=_pairs(distances, names, told, controls),
        usual=float(np.sqrt(np.mean(np.square(same)))) if same else float("nan"),
        notes=tuple(notes),
    )


def _one_of_each(runs: Sequence[str | None], patients: Sequence[Any]) -> list[str | None]:
    """The runs of one sample for each patient and run, None for the others."""
    seen: set[tuple[str, str]] = set()
    kept: list[str | None] = []
    for run, patient in zip(runs, patients, strict=True):
        new = run is not None and (run, str(patient)) not in seen
        kept.append(run if new else None)
        if run is not None:
            seen.add((run, str(patient)))
    return kept


def _pairs(
    distances: Array, names: Sequence[str], runs: Sequence[str | None], controls: Sequence[str | None]
) -> tuple[ControlPair, ...]:
    """Controls of one kind in two runs."""
    found = []
    for i, j in combinations(range(len(names)), 2):
        first, second, kind = runs[i], runs[j], controls[i]
        if kind is not None and kind == controls[j] and first is not None and second is not None and first != second:
            found.append(ControlPair(kind, (names[i], names[j]), (first, second), float(distances[i, j])))
    return tuple(found)
