"""Drift: has the law of the rows changed, where, in which columns, and how sure is that (Gretton et al. 2012).

Two samples are looked at from few places at all scales (`feature_map`), what chance does to their difference is drawn
(`null_law`), and both are put side by side (`comparison`), with both at hand or against a `reference` that was made small once,
also from a compression (`compressed`) or on Dask (`partitions`). `regions` and `columns` say where; `monitor` watches rows as they
come.

May import: compression, stream, distributed and what is below them.
"""

from reduset.drift.columns import ColumnChange
from reduset.drift.estimator import DriftTest, two_sample
from reduset.drift.monitor import DriftMonitor, MonitorState
from reduset.drift.regions import Region
from reduset.drift.result import DriftResult

__all__ = ["ColumnChange", "DriftMonitor", "DriftResult", "DriftTest", "MonitorState", "Region", "two_sample"]
