"""A model: a compression, its error and its origin in one object and one file.

May import: compression and the packages below it.
"""

from reduset.model.column_histograms import histograms
from reduset.model.marginals import BEYOND, MarginalDensities, column_differences
from reduset.model.model import Model, column_names

__all__ = ["Model"]
