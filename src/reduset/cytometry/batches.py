"""Batches: how much of what tells samples apart is the run they were measured in, and whether it can be told from what is compared.

Two looks. The share of the squared distances that lies between runs, beside what chance would give (`differences.whole`). And
control samples, the same blood in every run: how far they are apart, over how far different samples of one run are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from reduset._types import Array
from reduset.cytometry.design import Design, DesignError, design_of
from reduset.cytometry.whole import WholeTest, compare_whole


@dataclass(frozen=True)
class ControlPair:
    """Two controls of one kind from two runs, and their distance."""

    kind: str
    samples: tuple[str, str]
    runs: tuple[str, str]
    distance: float


@dataclass(frozen=True)
class BatchCheck:
    """What the runs do to the distances of samples.

    Attributes
    ----------
    name : of the column
    runs : of the N samples
    whole : the share of the squared distances that lies between runs; None where that cannot be said, for the reason in ``notes``
    confounded : whether what is compared and the runs cannot be told apart; None where nothing is compared
    controls : the same control in two runs each
    usual : the mean distance of two different samples of one run
    notes : what there is to say
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
        """The squared distance of a control in two runs over that of two samples of one run; None without controls."""
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
    """Look at the runs of samples, one of which may have none (None).

    Parameters
    ----------
    design : of what is compared, if something is
    controls : (N,) the kind of control that a sample is, None for samples that are none
    patients : (N,) whose samples they are, where some gave several: of those in one run one is taken for the share between runs,
        since samples of a patient are alike in whatever run
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
