"""Small tables for learning: a background for explanations, and rows that a model can be fitted to in place of all.

May import: compression, select, weights, mean, kernels and what these may.
"""

from reduset.learning.background_rows import background
from reduset.learning.explained import Background
from reduset.learning.labelled import compress_labelled
from reduset.learning.rows_with_labels import LabelledRows

__all__ = ["Background", "LabelledRows", "background", "compress_labelled"]
