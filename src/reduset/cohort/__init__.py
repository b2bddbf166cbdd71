"""Cohorts: many bags of points, compared with each other and laid out on a map (Cruz Cortés & Scott 2017, Section VI-A).

Bags (`bag_source`) are put on shared atoms (`shared_atoms`, as many as `stopping` asks for) or on their own, compared
(`comparison`, `distances`, `divergences`), and laid out (`layouts`); `estimator` has it all in the manner of scikit-learn.

May import: compression and what is below it.
"""

from reduset.cohort.alignment import Alignment, procrustes
from reduset.cohort.distances import distances
from reduset.cohort.divergences import Divergences, divergences
from reduset.cohort.estimator import CohortMap
from reduset.cohort.shared_atoms import pool

__all__ = ["Alignment", "CohortMap", "Divergences", "distances", "divergences", "procrustes"]
