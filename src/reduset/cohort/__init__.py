"""Cohorts: many bags of points, compared with each other and laid out on a map (Cruz Cortés & Scott 2017, Section VI-A).

Bags (`bag_source`) are put on shared atoms (`shared_atoms`, as many as `stopping` asks for) or on their own, compared
(`comparison`, `distances`, `divergences`), and laid out (`layouts`); `estimator` has it all in the manner of scikit-learn. `study`
goes on from there: populations of all samples, which differ between groups, where (`witness`), and what runs do (`batches`).

May import: populations, differences, compression and what is below them.
"""

from reduset.cohort.alignment import Alignment, procrustes
from reduset.cohort.distances import distances
from reduset.cohort.divergences import Divergences, divergences
from reduset.cohort.estimator import CohortMap
from reduset.cohort.sample_set import SampleSet
from reduset.cohort.study import CohortStudy

__all__ = ["Alignment", "CohortMap", "CohortStudy", "Divergences", "SampleSet", "distances", "divergences", "procrustes"]
