"""Modes and clusters: mean shift on few atoms, segments of images, and how far two clusterings are apart.

May import: simplification, compression and what is below them.
"""

from reduset.modes.clustering_metrics import clustering_distance, discrepancy_index
from reduset.modes.estimator import SparseMeanShift, segment
from reduset.modes.segmentation import Segmentation, features

__all__ = ["Segmentation", "SparseMeanShift", "clustering_distance", "discrepancy_index", "segment"]
