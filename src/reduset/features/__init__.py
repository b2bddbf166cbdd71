"""Features of bags of points, for linear models on distributions (Sutherland, Oliva, Póczos & Schneider 2016)."""

from reduset.features.histogram import HistogramFeatures
from reduset.features.mean_map import MeanMapFeatures
from reduset.features.neighbour import NeighbourKLKernel

__all__ = ["HistogramFeatures", "MeanMapFeatures", "NeighbourKLKernel"]
