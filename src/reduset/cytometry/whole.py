"""Whether groups of samples differ at all, from the distances of all samples (Anderson 2001, McArdle & Anderson 2001).

With A = −½D², H the projection onto what the groups add to what is held fixed, and R that off both,

    F = (tr HA / p) / (tr RA / d),     share = tr HA / (tr HA + tr RA),

what a variance would be if samples were points that far apart. Labels are exchanged within blocks. The distances are certified,
D₀ ≤ D ≤ D₀ + e, and each trace with them: tr PA = −½ΣPᵢⱼDᵢⱼ² is least where the squares with Pᵢⱼ > 0 are largest. For labels X and
the projection M off what is held fixed, tr HA = tr (XᵀMX)⁺XᵀMAMX: O(B·n²) for B labellings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._engine import single_threaded_blas
from reduset._types import Array, SeedLike
from reduset._validate import generator
from reduset._validate.seeds import seeded
from reduset.cytometry.design import Design
from reduset.cytometry.relabelling import relabellings

ROUNDING = 1e-9  # relative: labellings that mean the same differ by rounding


@dataclass(frozen=True)
class WholeTest:
    """Do the groups differ?

    Attributes
    ----------
    name : of what was compared
    share : of the squared distances that lies between the groups, beyond what is held fixed
    interval : of that share, by what the distances are certain to
    expected : the share that meaningless groups have on average
    statistic, p_value : pseudo-F, and the share of labellings with one as large
    labellings : in how many ways the samples could be labelled
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
    """Test whether groups of samples differ, from (N, N) distances and how far each can be too small."""
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
        p_value=float(np.mean(between >= between[0] - ROUNDING * abs(total))),  # F grows with what lies between
        labellings=labelled.count,
    )


def _ends(trace: float, projection: Array, slack: Array) -> tuple[float, float]:
    """Between what −½ΣPᵢⱼDᵢⱼ² lies if every squared distance may be larger by its slack."""
    return trace - 0.5 * float((np.maximum(projection, 0.0) * slack).sum()), trace + 0.5 * float(
        (np.maximum(-projection, 0.0) * slack).sum()
    )


def _between(X: Array, off: Array, inner: Array) -> Array:
    """(B,) tr HA of each labelling, from (p, B, n) indicators."""
    square, along = (np.einsum("abn,nm,cbm->bac", X, each, X, optimize=True) for each in (off, inner))
    return np.asarray(np.einsum("bac,bca->b", np.linalg.pinv(square, rcond=ROUNDING, hermitian=True), along))
