"""Tests on the distances between samples: whether groups differ at all, and how much runs (batches) contribute.

Groups (Anderson 2001, McArdle & Anderson 2001). Let A = −½D². H is the projection onto the part of the groups that the nuisance
variables do not explain. R is the projection off groups and nuisance. Then

    F = (tr HA / p) / (tr RA / d),     share = tr HA / (tr HA + tr RA),

is the variance ratio of points at these distances. Labels are exchanged within blocks. The distances are certified,
D₀ ≤ D ≤ D₀ + e, and so are the traces. The trace tr PA = −½ΣPᵢⱼDᵢⱼ² is smallest if the squares with Pᵢⱼ > 0 are largest. For
labels X and the projection M off the nuisance variables, tr HA = tr (XᵀMX)⁺XᵀMAMX. O(B·n²) for B labellings.

Batches are measured in two ways. One is the proportion of the squared distances between runs, compared with its value under the
null hypothesis. The other needs control samples (the same blood in every run). It is the distance of a control between two runs,
relative to the distance of two different samples of one run.
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
    name : Name of the labels.
    share : Proportion of the squared distances that lies between the groups, after adjustment for the nuisance variables.
    interval : Limits of ``share``, from the certified errors of the distances.
    expected : Mean of ``share`` under the null hypothesis.
    statistic : The pseudo-F statistic.
    p_value : Proportion of labellings with a statistic at least as large.
    labellings : Number of possible labellings.
    """

    name: str
    share: float
    interval: tuple[float, float]
    expected: float
    statistic: float
    p_value: float
    labellings: int

    def __str__(self) -> str:
        verdict = "differ" if self.p_value <= 0.05 else "do not differ significantly"
        return (
            f"whole      samples of different {self.name} {verdict} (p = {self.p_value:.2g}): {self.share:.1%} of the squared "
            f"distances lie between groups, {self.expected:.1%} are expected under the null hypothesis"
        )


@seeded
def compare_whole(distances: Array, errors: Array | None, design: Design, rng: SeedLike = None) -> WholeTest:
    """Test whether groups of samples differ, from (N, N) distances. ``errors`` bounds by how much each may be too small."""
    rows = np.ix_(design.rows, design.rows)
    low = np.asarray(distances, np.float64)[rows]
    high = low if errors is None else low + np.asarray(errors, np.float64)[rows]
    labelled = relabellings(design, generator(rng))
    X = labelled.indicators(len(design.levels))
    with single_threaded_blas():
        q, _ = np.linalg.qr(design.nuisance)
        off = np.eye(len(q)) - q @ q.T
        inner = off @ (-0.5 * low**2) @ off  # the part that groups may explain
        total = float(np.trace(inner))
        square, along = (np.einsum("abn,nm,cbm->bac", X, matrix, X, optimize=True) for matrix in (off, inner))
        inverse = np.linalg.pinv(square, rcond=ROUNDING, hermitian=True)
        between = np.asarray(np.einsum("bac,bca->b", inverse, along))  # tr HA of each labelling
        added = off @ X[:, 0].T
        projection = added @ np.linalg.pinv(added)
    p, d = len(X), design.freedom
    slack = high**2 - low**2
    np.fill_diagonal(slack, 0.0)
    between_low, between_high = _limits(between[0], projection, slack)
    total_low, total_high = _limits(total, off, slack)
    return WholeTest(
        name=design.name,
        share=float(between[0] / total) if total > 0 else 0.0,
        interval=(
            float(np.clip(between_low / total_high if total_high > 0 else 0.0, 0.0, 1.0)),
            float(np.clip(between_high / total_low if total_low > 0 else 1.0, 0.0, 1.0)),
        ),
        expected=p / (p + d),
        statistic=float(between[0] / p / (max(total - between[0], np.finfo(float).tiny) / d)),
        p_value=float(np.mean(between >= between[0] - ROUNDING * abs(total))),  # F increases with it
        labellings=labelled.count,
    )


def _limits(trace: float, projection: Array, slack: Array) -> tuple[float, float]:
    """The limits of −½ΣPᵢⱼDᵢⱼ² if every squared distance may increase by its slack."""
    low, high = (0.5 * float((np.maximum(part, 0.0) * slack).sum()) for part in (projection, -projection))
    return trace - low, trace + high


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
    name : Name of the column.
    runs : Runs of the N samples.
    whole : Test of the squared distances between runs. None if it cannot be computed, with the reason in ``notes``.
    confounded : Whether groups and runs are confounded; None without groups.
    controls : Pairs of the same control in two runs.
    usual : Root mean square distance of two different samples of one run.
    notes : Remarks, first on confounding.
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
        """Mean squared distance of a control between two runs, relative to two samples of one run; None without controls."""
        if not self.controls or not self.usual > 0:
            return None
        return float(np.mean([pair.distance**2 for pair in self.controls])) / self.usual**2

    def __str__(self) -> str:
        lines = [f"batches by {self.name}: {len(set(self.runs))} of them"]
        if self.whole is not None:
            lines.append(
                f"between    {self.whole.share:.1%} of the squared distances, {self.whole.expected:.1%} expected under the null "
                f"hypothesis; p = {self.whole.p_value:.2g}"
            )
        if self.control_share is not None:
            ratio = np.sqrt(self.control_share)
            lines.append(f"controls   distance between runs {ratio:.2g} times the distance of two samples of one run")
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
    """Measure the contribution of runs. The run of a sample may be None.

    Parameters
    ----------
    design : Design of the comparison of groups, if there is one.
    controls : Kind of control of each sample, (N,), None for others.
    patients : Patient of each sample, (N,). Samples of a patient are similar in any run, so only one sample per patient and run
        enters the proportion between runs.
    """
    labels = [None if run is None else str(run) for run in runs]
    notes: list[str] = []
    if design is not None and design.is_confounded:
        notes.append(
            f"{design.name} and {title} are confounded: a difference between groups may be a difference between runs. Only samples "
            "of several groups in one run can separate the two"
        )
    compared = [run if control is None else None for run, control in zip(labels, controls, strict=True)]
    if patients is not None:
        seen: set[tuple[str | None, str]] = set()
        for i, patient in enumerate(map(str, patients)):
            run = compared[i]
            compared[i] = None if (run, patient) in seen else run
            seen.add((run, patient))
    single = sorted(run for run in set(compared) if run is not None and compared.count(run) < 2)
    if single:
        notes.append(f"runs with a single sample are omitted from the test between runs: {', '.join(single[:5])}")
    whole = None
    try:
        whole = compare_whole(distances, errors, design_of([None if run in single else run for run in compared], title), rng)
    except DesignError as error:
        notes.append(str(error))
    squares, pairs = [], []
    for i, j in combinations(range(len(labels)), 2):
        first, second, kind = labels[i], labels[j], controls[i]
        if first is None or second is None:
            continue
        if first == second and kind is None and controls[j] is None:
            squares.append(distances[i, j] ** 2)
        elif first != second and kind is not None and kind == controls[j]:
            pairs.append(ControlPair(kind, (names[i], names[j]), (first, second), float(distances[i, j])))
    return BatchCheck(
        name=title,
        runs=tuple(run or "" for run in labels),
        whole=whole,
        confounded=None if design is None else design.is_confounded,
        controls=tuple(pairs),
        usual=float(np.sqrt(np.mean(squares))) if squares else float("nan"),
        notes=tuple(notes),
    )
