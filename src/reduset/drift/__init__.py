"""Drift."""
from reduset.drift.estimator import DriftTest, two_sample
from reduset.drift.monitor import DriftMonitor, MonitorState
__all__ = ["DriftMonitor", "DriftTest", "MonitorState", "two_sample"]
