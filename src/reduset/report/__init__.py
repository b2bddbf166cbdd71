"""Reports as one HTML file that opens offline, and displays for matplotlib, of the same numbers."""

from reduset.report.cohort import write_cohort
from reduset.report.compression import write_compression
from reduset.report.displays import AtomsDisplay, DensityDisplay, PathDisplay
from reduset.report.maps import CohortDisplay, EmbeddingDisplay
from reduset.report.segmentation import write_segmentation

__all__ = [
    "AtomsDisplay",
    "CohortDisplay",
    "DensityDisplay",
    "EmbeddingDisplay",
    "PathDisplay",
    "write_cohort",
    "write_compression",
    "write_segmentation",
]
