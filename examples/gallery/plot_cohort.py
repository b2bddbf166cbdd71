"""
Cohorts: a map of samples
=========================

Thirty patients, 4,000 cells each, in three groups that differ in the shares of their cells. All patients are put on the same
few atoms; their distances are certain to 1 %, and make the map.

The page is :doc:`/docs/cohort`.
"""

import matplotlib.pyplot as plt
import numpy as np

from reduset import Gaussian
from reduset.cohort import CohortMap

rng = np.random.default_rng(4)
kinds = rng.normal(0, 2.2, size=(4, 3))
mixes = {"healthy": [12, 8, 4, 1], "early": [8, 8, 6, 3], "late": [3, 6, 8, 8]}


def patient(mix):
    """Cells of four kinds, in shares and places that vary from patient to patient."""
    shares = rng.dirichlet(np.multiply(4, mix))
    which = rng.choice(4, size=4000, p=shares)
    return (kinds + rng.normal(0, 0.15, size=(4, 3)))[which] + rng.normal(0, 0.6, size=(4000, 3))


groups = np.repeat(list(mixes), 10)
bags = [patient(mixes[group]) for group in groups]
cohort = CohortMap(kernel=Gaussian("iqr"), layout="mds", random_state=0).fit(bags)
atoms = cohort.compressions_[0].size

# %%
fig, (heat, where) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=[1.05, 1.2])
shown = heat.imshow(cohort.distances_)
fig.colorbar(shown, ax=heat, label="distance", shrink=0.85)
heat.set_title(f"distances, from {atoms} shared atoms")
heat.set(xticks=[4.5, 14.5, 24.5], yticks=[4.5, 14.5, 24.5], xticklabels=list(mixes), yticklabels=list(mixes))
heat.tick_params(length=0)
for group, marker in zip(mixes, ("o", "^", "s"), strict=True):
    where.scatter(*cohort.embedding_[groups == group].T, s=70, marker=marker, alpha=0.85, edgecolors="white", label=group)
where.set(title="the map", aspect="equal", xticks=[], yticks=[])
where.spines[:].set_visible(False)
where.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
