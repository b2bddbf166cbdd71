"""Features of bags of points, for linear models on distributions (Sutherland, Oliva, Póczos & Schneider 2016).

`DensityFeatures` and its alternatives turn each bag into a row; `pairwise` computes the distances that they approximate. Each
estimator has its own file, and `embedding` has their base classes. scikit-learn's `GridSearchCV` selects parameters.

May import: cohort and the packages below it.
"""

from reduset.features.density_features import DensityFeatures, pairwise
from reduset.features.error_bound import ErrorBound
from reduset.features.histogram import HistogramFeatures
from reduset.features.mean_map import MeanMapFeatures
from reduset.features.neighbour import NeighbourKLKernel

__all__ = [
    "DensityFeatures",
    "ErrorBound",
    "HistogramFeatures",
    "MeanMapFeatures",
    "NeighbourKLKernel",
    "pairwise",
]
