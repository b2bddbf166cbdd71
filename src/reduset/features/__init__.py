"""Features of bags of points, for linear models on distributions (Sutherland, Oliva, Póczos & Schneider 2016)."""

from reduset.features.density_features import DensityFeatures
from reduset.features.pairwise import pairwise

__all__ = ["DensityFeatures", "pairwise"]
