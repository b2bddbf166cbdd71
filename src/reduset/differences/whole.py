"""Whether groups of samples differ at all, from the distances of all samples (Anderson 2001, McArdle & Anderson 2001).

With A = −½D², H the projection onto what the groups add to what is held fixed, and R that off both,

    F = (tr HA / p) / (tr RA / d),     share = tr HA / (tr HA + tr RA),

what a variance would be if samples were points that far apart. Labels are exchanged within blocks. The distances are certified,
D₀ ≤ D ≤ D₀ + e, and each trace with them: tr PA = −½ΣPᵢⱼDᵢⱼ² is least where the squares with Pᵢⱼ > 0 are largest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._types import Array, SeedLike
from reduset._validate import generator
from reduset.differences.design import Design
from reduset.differences.relabelling import relabellings


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


def compare_whole(distances: Array, errors: Array | None, design: Design, rng: SeedLike = None) -> WholeTest:
    """Test whether groups of samples differ, from (N, N) distances and how far each can be too small."""
    rows = np.ix_(design.rows, design.rows)
    low = np.asarray(distances, np.float64)[rows]
    high = low if errors is None else low + np.asarray(errors, np.float64)[rows]
    A = -0.5 * low**2
    labelled = relabellings(design, generator(rng))
    X = labelled.indicators(len(design.levels))
    q, _ = np.linalg.qr(design.nuisance)
    off = np.eye(len(q)) - q @ q.T
    inner = off @ A @ off  # what the groups may explain, whichever they are
    total = float(np.trace(inner))
    between = np.array([_between(X[:, k].T, off, inner) for k in range(X.shape[1])])
    p, d = len(X), design.freedom
    statistics = between / p / (np.maximum(total - between, np.finfo(float).tiny) / d)
    share = between[0] / total if total > 0 else 0.0
    base = _basis(X[:, 0].T, off)
    slack = high**2 - low**2
    least, most = _ends(between[0], base @ base.T, slack)
    fewest, fullest = _ends(total, off, slack)
    ends = (least / fullest if fullest > 0 else 0.0, most / fewest if fewest > 0 else 1.0)
    return WholeTest(
        name=design.name,
        share=float(share),
        interval=(float(np.clip(ends[0], 0.0, 1.0)), float(np.clip(ends[1], 0.0, 1.0))),
        expected=p / (p + d),
        statistic=float(statistics[0]),
        p_value=float(np.mean(statistics >= statistics[0] * (1 - 1e-9))),
        labellings=labelled.count,
    )


def _ends(trace: float, projection: Array, slack: Array) -> tuple[float, float]:
    """Between what −½ΣPᵢⱼDᵢⱼ² lies if every squared distance may be larger by its slack."""
    return trace - 0.5 * float((np.maximum(projection, 0.0) * slack).sum()), trace + 0.5 * float(
        (np.maximum(-projection, 0.0) * slack).sum()
    )


def _basis(X: Array, off: Array) -> Array:
    """An orthonormal basis of what groups add to what is held fixed."""
    q, r = np.linalg.qr(off @ X)
    return q[:, np.abs(r.diagonal()) > 1e-9]


def _between(X: Array, off: Array, inner: Array) -> float:
    base = _basis(X, off)
    return float(np.einsum("na,nm,ma->", base, inner, base))
