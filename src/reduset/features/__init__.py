"""Features of bags of points, for linear models on distributions (Sutherland, Oliva, Póczos & Schneider 2016).

`DensityFeatures` and its rivals turn each bag into a row; `pairwise` is what they approximate, `tune` chooses their parameters.
`embedding` says how bags become rows, one estimator a file beside it.

May import: cohort and what is below it.
"""

from reduset.features.density_features import DensityFeatures
from reduset.features.error_bound import ErrorBound
from reduset.features.histogram import HistogramFeatures
from reduset.features.mean_map import MeanMapFeatures
from reduset.features.neighbour import NeighbourKLKernel
from reduset.features.pairwise import pairwise
from reduset.features.quadrature import Quadrature
from reduset.features.tuning import Tuned, tune

__all__ = [
    "DensityFeatures",
    "ErrorBound",
    "HistogramFeatures",
    "MeanMapFeatures",
    "NeighbourKLKernel",
    "Quadrature",
    "Tuned",
    "pairwise",
    "tune",
]
