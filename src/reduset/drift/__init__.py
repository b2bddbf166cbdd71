"""Drift: two-sample tests of changes in distribution, by regions and columns, and monitors (Gretton et al. 2012).

Two samples are compared by kernel means at a small number of atoms and several scales (`feature_map`). `statistics` lists the
statistics, and `null_distribution` draws differences under the null hypothesis. `comparison` has both samples in memory, or one of
them as a `reference`: a small summary of rows or of a compression. `regions` and `columns` locate the change. `monitor` watches
rows as they arrive.

May import: compression, stream and the packages below them.
"""

from reduset.drift.columns import ColumnBins, ColumnChange, changed_columns
from reduset.drift.estimator import DriftTest, two_sample
from reduset.drift.feature_map import FeatureMap
from reduset.drift.monitor import DriftMonitor, MonitorState
from reduset.drift.regions import Cells, Region
from reduset.drift.result import DriftResult, apart, change, null_distances, place, seen
from reduset.drift.result import p_value as printed_p_value
from reduset.drift.statistics import STATISTICS, KernelStatistics, Statistic

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
