"""The result of a sketch: which rows, what each stands for, which of them stands for each row, and what was lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array, Indices
from reduset.certificate import Certificate
from reduset.certificate.by_scale import ErrorProfile
from reduset.certificate.certificate import percent
from reduset.compression import summary
from reduset.mean import KernelMean


@dataclass(frozen=True)
class Sketch:
    """Rows that stand for all others.

    Attributes
    ----------
    indices : (m,) rows of the data, ascending
    weights : (m,) the weight of the rows that each stands for; they sum to that of all rows
    owners : (n,) which of the m stands for each row; −1 for rows of weight 0
    certificate : the measured error, at the resolution where there is one, and the covering radius
    mean : KernelMean of these rows and weights, of the kernel that the certificate speaks of
    resolution : the finest bandwidth at which the error is certified within ``tol``, there and at every coarser one; None for none
    tol : the tolerance of the resolution
    profile : the error at every scale; None where no waves tell it
    groups : (m,) the group of each, where groups were sketched apart
    timings : seconds by stage
    remark : what there is to say of the choice
    """

    indices: Indices
    weights: Array
    owners: Indices = field(repr=False)
    certificate: Certificate
    mean: KernelMean = field(repr=False)
    resolution: float | None
    tol: float
    profile: ErrorProfile | None = field(repr=False)
    groups: NDArray[Any] | None = field(repr=False)
    timings: dict[str, float] = field(repr=False)
    remark: str = ""

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.indices)

    @property
    def n_samples(self) -> int:
        """How many rows they stand for."""
        return len(self.owners)

    @property
    def counts(self) -> Indices:
        """(m,) how many rows each stands for."""
        return np.bincount(self.owners[self.owners >= 0], minlength=self.size)

    def carried(self, values: Any) -> NDArray[Any]:
        """Values of the sketch's rows, (m, …), given to the rows that each stands for, (n, …).

        Parameters
        ----------
        values : (m, …) array, one for each of ``indices``
        """
        found = np.asarray(values)
        if found.ndim < 1 or len(found) != self.size:
            raise ValueError(f"values must have {self.size:,} rows, one for each row of the sketch; got shape {found.shape}")
        if (self.owners < 0).any():
            raise ValueError("some rows have weight 0, and nothing stands for them; leave them out of what is sketched")
        return np.asarray(found[self.owners])

    def __str__(self) -> str:
        n, m, d = self.n_samples, self.size, self.mean.dimension
        counts = self.counts
        share = f", 1 in {n / m:,.0f}" if n >= 2 * m else ""
        lines = [f"{m:,} row{'s' * (m != 1)} that stand for {n:,} of {d} column{'s' * (d != 1)}{share}"]
        if self.certificate.radius is not None:
            lines.append(f"rare       {summary.covering(self.certificate.radius, self.mean.kernel)}")
        lines.append(f"right      each stands for {counts.min():,} to {counts.max():,} rows: its weight")
        lines.append(f"lost       {self._lost()}")
        if self.groups is not None:
            lines.append(f"groups     {len(np.unique(self.groups)):,} apart, each with its own share of the weight")
        return "\n  ".join(lines)

    def _lost(self) -> str:
        low, high = self.certificate.interval
        text = f"{percent(self.certificate.relative_error)} ({percent(low)} to {percent(high)})"
        width = getattr(self.mean.kernel, "width", None)
        if self.resolution is not None:
            return f"{text} of details of {self.resolution:.3g}, and at most {percent(self.tol)} of all coarser ones"
        return text if width is None else f"{text} of details of {width:.3g}: more than {percent(self.tol)} at every scale"
