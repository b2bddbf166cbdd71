"""Modes and clusters: mean shift on weighted atoms, segmentation of images, and distances between clusterings.

May import: density, simplification, compression and the packages below them.
"""

from reduset.modes.clustering_metrics import clustering_distance, discrepancy_index
from reduset.modes.estimator import SparseMeanShift
from reduset.modes.segmentation import Segmentation, features, pixels, segment

__all__ = ["Segmentation", "SparseMeanShift", "clustering_distance", "discrepancy_index", "segment"]
