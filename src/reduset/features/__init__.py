"""Features of bags of points, for linear models on distributions (Sutherland, Oliva, Póczos & Schneider 2016).

`DensityFeatures` and its rivals turn each bag into a row; `pairwise` computes the distances that they approximate. `embedding` is
their base class, and each estimator has its own file. Parameters are chosen with scikit-learn's `GridSearchCV`.

May import: cohort and what is below it.
"""

from reduset.features.density_features import DensityFeatures, pairwise
from reduset.features.error_bound import ErrorBound
from reduset.features.histogram import HistogramFeatures
from reduset.features.mean_map import MeanMapFeatures
from reduset.features.neighbour import NeighbourKLKernel
from reduset.features.quadrature import Quadrature

__all__ = [
    "DensityFeatures",
    "ErrorBound",
    "HistogramFeatures",
    "MeanMapFeatures",
    "NeighbourKLKernel",
    "Quadrature",
    "pairwise",
]
