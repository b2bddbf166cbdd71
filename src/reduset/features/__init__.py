"""Features of bags of points, for linear models on distributions (Sutherland, Oliva, Póczos & Schneider 2016)."""

from reduset.features.density_features import DensityFeatures
from reduset.features.histogram import HistogramFeatures
from reduset.features.mean_map import MeanMapFeatures
from reduset.features.neighbour import NeighbourKLKernel
from reduset.features.pairwise import pairwise
from reduset.features.tuning import Tuned, tune

__all__ = ["DensityFeatures", "HistogramFeatures", "MeanMapFeatures", "NeighbourKLKernel", "Tuned", "pairwise", "tune"]
