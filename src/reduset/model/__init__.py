"""A compression and what is known of it in one object and one file.

May import: compression and what is below it.
"""

from reduset.model.columns import column_differences
from reduset.model.histograms import histograms
from reduset.model.marginals import BEYOND, MarginalDensities
from reduset.model.model import Model, column_names

__all__ = ["Model"]
