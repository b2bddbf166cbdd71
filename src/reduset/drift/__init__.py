"""Drift."""
from reduset.drift.estimator import DriftTest, two_sample
__all__ = ["DriftTest", "two_sample"]
