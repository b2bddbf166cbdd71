"""Sketches: rows of the data with weights that preserve means, spreads, quantiles and proportions, with the measured error.

May import: compression, select, weights, certificate and what these may.
"""

from reduset.sketching.columns import MAXIMUM, MEAN, MINIMUM, PROPORTION, SPREAD, Change, ColumnTable
from reduset.sketching.result import Sketch
from reduset.sketching.sketching import sketch
from reduset.sketching.tables import TableRows

__all__ = ["Change", "ColumnTable", "Sketch", "sketch"]
