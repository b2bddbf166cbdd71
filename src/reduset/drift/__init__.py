"""Drift: has the distribution of the rows changed, where, in which columns, and how sure is that (Gretton et al. 2012).

Two samples are compared by kernel means at few atoms and several scales (`feature_map`), by the statistics of the registry
(`registry`). `null_distribution` draws their differences under the null hypothesis. `comparison` has both samples in memory, or
one of them as a `reference`: a small summary of rows, also from a compression, or on Dask (`partitions`). `regions` and `columns`
locate the change. `monitor` watches rows as they arrive.

May import: compression, stream, distributed and what is below them.
"""

from reduset.drift.columns import ColumnBins, ColumnChange, changed_columns
from reduset.drift.estimator import DriftTest, two_sample
from reduset.drift.monitor import DriftMonitor, MonitorState
from reduset.drift.regions import Region
from reduset.drift.registry import STATISTICS
from reduset.drift.result import DriftResult
from reduset.drift.statistic import Statistic

__all__ = [
    "STATISTICS",
    "ColumnChange",
    "DriftMonitor",
    "DriftResult",
    "DriftTest",
    "MonitorState",
    "Region",
    "Statistic",
    "two_sample",
]
