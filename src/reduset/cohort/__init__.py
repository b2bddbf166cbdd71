"""Cohorts: many bags of points, compared with each other and laid out on a map (Cruz Cortés & Scott 2017, Section VI-A)."""

from reduset.cohort.alignment import Alignment, procrustes
from reduset.cohort.distances import distances
from reduset.cohort.divergences import Divergences, divergences
from reduset.cohort.estimator import CohortMap

__all__ = ["Alignment", "CohortMap", "Divergences", "distances", "divergences", "procrustes"]
