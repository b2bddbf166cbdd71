"""Cohorts: many bags of points, their distances and a map of them (Cruz Cortés & Scott 2017, Section VI-A).

Bags (`bags`) are compressed to shared atoms (`shared_atoms`) or to atoms of each bag. Then they are compared (`comparison`,
`distances`, `divergences`) and embedded in a map (`layouts`). `estimator` is the scikit-learn estimator.

May import: compression and the packages below it.
"""

from reduset.cohort.distances import distances
from reduset.cohort.divergences import Divergences, divergences
from reduset.cohort.estimator import CohortMap
from reduset.cohort.layouts import SHAPES, Alignment, procrustes, scatter
from reduset.cohort.shared_atoms import pool

__all__ = ["Alignment", "CohortMap", "Divergences", "distances", "divergences", "procrustes"]
