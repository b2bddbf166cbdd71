"""The result of a sketch: rows, weights, assignments, covering radius, error at every scale, and statistics of columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._describe import Description, Row, counted, percent, significant
from reduset._messages import printable
from reduset._types import Array, Indices
from reduset.certificate import Certificate, ErrorProfile
from reduset.compression import error_text
from reduset.mean import KernelMean
from reduset.sketching.columns import ColumnTable
from reduset.sketching.tables import KeptRows

SHOWN_EXCEPTIONS = 3
ROUNDING = 1e-9  # of a column's standard deviation


@dataclass(frozen=True)
class Sketch:
    """Rows of the data, with weights, that represent all rows.

    Attributes
    ----------
    indices : (m,) row numbers, ascending
    weights : (m,) the mass that each row represents; they sum to 1
    assignments : (n,) the position in ``indices`` of the nearest row of the sketch; −1 for rows of weight 0
    covering : (m,) True for rows that were added for rare or extreme values
        These are far from all others, or the minimum or maximum of a column.
    certificate : Measured error, at the resolution if there is one, and covering radius.
    mean : KernelMean of these rows and weights, with the kernel of the certificate.
    resolution : Smallest bandwidth with an error within ``tol``, there and at all coarser scales; None if there is none.
    tol : Tolerance of the resolution.
    profile : Error at every scale; None for kernels without a scale.
    columns : Statistics of each column, for all rows and for the weighted sketch.
    exact : Summaries of the columns that calibration made equal to those of all rows.
    exceptions : Pairs (column, statistic) of such summaries that could not be made equal.
        That would have changed weights by more than a factor of 3.
    groups : (m,) the group of each row, if groups were sketched separately
    timings : Seconds by stage.
    message : Other information on the selection.
    notes : Which columns of a frame were encoded, and which were not used.
    calibrated : Whether the weights were calibrated, within their bounds.
    """

    indices: Indices
    weights: Array
    assignments: Indices = field(repr=False)
    covering: NDArray[np.bool_] = field(repr=False)
    certificate: Certificate
    mean: KernelMean = field(repr=False)
    resolution: float | None
    tol: float
    profile: ErrorProfile | None = field(repr=False)
    columns: ColumnTable = field(repr=False)
    exact: tuple[str, ...]
    groups: NDArray[Any] | None = field(repr=False)
    timings: dict[str, float] = field(repr=False)
    kept: KeptRows = field(repr=False)
    message: str = ""
    notes: tuple[str, ...] = field(default=(), repr=False)
    calibrated: bool = field(default=True, repr=False)
    exceptions: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """Number of rows in the sketch."""
        return len(self.indices)

    @property
    def n_samples(self) -> int:
        """Number of rows of the data."""
        return len(self.assignments)

    @property
    def radius(self) -> float | None:
        """The largest distance of a row to its assigned row, in units of the data or of the kernel's scales."""
        return self.certificate.radius

    @property
    def error(self) -> float:
        """‖f − f_m‖ / ‖f‖ at the resolution, or at the kernel's bandwidth if there is none."""
        return self.certificate.relative_error

    @property
    def counts(self) -> Indices:
        """(m,) number of rows assigned to each row of the sketch."""
        return np.bincount(self.assignments[self.assignments >= 0], minlength=self.size)

    def carried(self, values: Any) -> NDArray[Any]:
        """Copy values of the sketch's rows, (m, …), to the rows assigned to them, (n, …).

        Parameters
        ----------
        values : (m, …) array
            One value for each of ``indices``.
        """
        array = np.asarray(values)
        if array.ndim < 1 or len(array) != self.size:
            raise ValueError(f"values must have {self.size:,} rows, one for each row of the sketch; got shape {array.shape}")
        if (self.assignments < 0).any():
            raise ValueError("rows with weight 0 are not assigned to any row of the sketch; omit them from the data")
        return np.asarray(array[self.assignments])

    def to_frame(self, weight: str = "weight") -> Any:
        """The rows in the type of the data (pandas, polars, Arrow; pandas for arrays), with a column of weights.

        Parameters
        ----------
        weight : str
            The name of this column. Its sum is the number of rows of the data.
        """
        return self.kept.with_column(weight, self.weights * (self.n_samples / self.weights.sum()))

    def describe(self) -> Description:
        """The sketch as rows of (label, value, explanation), which give text, plain values or a table."""
        n, m, certificate = self.n_samples, self.size, self.certificate
        factor = f" ({n / m:,.0f}x)" if n >= 2 * m else ""
        size = f"{counted(n, 'row')} × {counted(self.mean.dimension, 'column')} -> {counted(m, 'weighted row')}{factor}"
        units = "" if getattr(self.mean.kernel, "is_isotropic", True) else " in units of the columns' scales"
        distance = f"{units}, the largest distance of a row to its nearest row of the sketch"
        radius = "" if self.radius is None else f"{significant(self.radius)}{distance}"
        groups = "" if self.groups is None else f"{len(np.unique(self.groups)):,}, sketched separately; their proportions are exact"
        measured = {"relative_error": self.error, "interval": certificate.interval, "confidence": certificate.confidence}
        return Description(
            f"Sketch: {size}",
            (
                Row("", facts={"n": n, "size": m}),
                Row(
                    "columns",
                    self._columns(),
                    "Statistics of all rows, compared with the statistics of the weighted sketch.",
                    {"exact": self.exact, "exceptions": self.exceptions, "changes": self.columns.to_dict()},
                ),
                Row("weights", self._weights(), "The weight of a row is the mass that it represents."),
                Row("radius", radius, "The largest distance of a row to its nearest row of the sketch.", {"radius": self.radius}),
                Row(
                    "error",
                    self._error(),
                    "The error of the kernel density, relative to its norm.",
                    measured | {"resolution": self.resolution, "tol": self.tol},
                ),
                Row("groups", groups, "Samples, batches or types, each sketched separately.", {"seconds": self.timings}),
                *(Row("note", note) for note in self.notes),
            ),
        )

    def __str__(self) -> str:
        return str(self.describe())

    def _columns(self) -> list[str]:
        """Which statistics of columns are exact, and the largest change of the others, in lines."""
        text = []
        if not self.exact and self.calibrated:
            text.append("weighted means are not exact: this needs more rows, or weights that change by more than a factor of 3")
        if self.exact:
            *first, last = self.exact
            text.append(f"weighted {' and '.join(filter(None, [', '.join(first), last]))} equal those of all rows{self._except()}")
        largest = self.columns.largest
        if largest is not None and abs(largest.difference) > ROUNDING:
            other = "largest other change" if self.exact else "largest change"
            text.append(
                f"{other} {abs(largest.difference):.2g} standard deviations, {largest.statistic} of column {largest.column} "
                f"({self.size:,} random row{'s' * (self.size != 1)}: {largest.random_rows:.2g})"
            )
        if not getattr(self.mean.kernel, "is_isotropic", True):  # columns have units, as in tables
            text.append(self._kept())
        return text

    def _kept(self) -> str:
        """Whether the sketch has rows for all minima, maxima and categories, and the first ones without a row."""
        missing = [f"{c.statistic} of {printable(c.column)} ({c.all_rows:.6g})" for c in self.columns.extremes if not c.kept]
        missing += [printable(change.column) for change in self.columns.proportions if not change.kept]
        if not missing:
            return f"kept: every minimum and maximum{', every category' * bool(self.columns.proportions)}"
        more = f" and {len(missing) - SHOWN_EXCEPTIONS} more" if len(missing) > SHOWN_EXCEPTIONS else ""
        return f"not kept: {', '.join(missing[:SHOWN_EXCEPTIONS])}{more}"

    def _except(self) -> str:
        """The summaries that calibration could not make equal, by name, or their number and columns."""
        if not self.exceptions:
            return ""
        if len(self.exceptions) <= SHOWN_EXCEPTIONS:
            return ", except " + " and ".join(f"the {statistic} of {printable(column)}" for column, statistic in self.exceptions)
        columns = list(dict.fromkeys(printable(column) for column, _ in self.exceptions))
        more = f" and {len(columns) - SHOWN_EXCEPTIONS} more" if len(columns) > SHOWN_EXCEPTIONS else ""
        return f", except {len(self.exceptions)} of columns {', '.join(columns[:SHOWN_EXCEPTIONS])}{more}"

    def _error(self) -> str:
        """The error of the kernel density with its bandwidth."""
        width = getattr(self.mean.kernel, "width", None) if self.resolution is None else self.resolution
        text = f"{error_text(self.certificate)}, of the kernel density"
        if width is not None:
            text += f" at bandwidth {significant(width)}"
        return text if self.resolution is None else f"{text}; at most {percent(self.tol)} at all larger bandwidths"

    def _weights(self) -> str:
        relative = self.weights[~self.covering] * (self.size / self.weights.sum())
        text = "" if not len(relative) else f"{relative.min():.2g} to {relative.max():.2g} times the average"
        covers = self.weights[self.covering] * (self.size / self.weights.sum())
        if len(covers):
            rows = f"{len(covers):,} row{'s' * (len(covers) != 1)} with rare or extreme values"
            text += f"{'; ' if text else ''}{covers.min():.2g} to {covers.max():.2g} for {rows}"
        return text
