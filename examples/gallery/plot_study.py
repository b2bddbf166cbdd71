"""
Studies: which populations differ
=================================

Sixteen patients, 4,000 cells each, of six kinds; in half of them a rare kind has doubled. Populations are found without the groups;
then every one is tested, with patients as the units.

The page is :doc:`/docs/study`.
"""

import matplotlib.pyplot as plt
import numpy as np

from reduset.cytometry import CohortStudy, DifferencesDisplay, PopulationDisplay, SampleSet

rng = np.random.default_rng(1)
markers = ["CD3", "CD4", "CD8", "CD19", "CD56", "HLA-DR"]
kinds = np.array(
    [
        [4, 4, 0, 0, 0, 0],  # CD4 T
        [4, 0, 4, 0, 0, 0],  # CD8 T
        [0, 0, 0, 4, 0, 4],  # B
        [0, 0, 0, 0, 4, 0],  # NK
        [0, 2, 0, 0, 0, 4],  # monocytes
        [4, 0, 4, 0, 0, 4],  # activated CD8 T
    ]
)
shares = np.array([0.42, 0.24, 0.11, 0.11, 0.11, 0.01])


def patient(changed):
    """Cells of six kinds, in shares that vary from patient to patient."""
    own = shares * np.exp(rng.normal(0, 0.25, 6)) * np.where(changed, [1, 1, 1, 1, 1, 2], 1)
    which = rng.choice(6, size=4000, p=own / own.sum())
    return kinds[which] + rng.normal(0, 0.5, size=(4000, 6))


group = ["healthy"] * 8 + ["ill"] * 8
bags = [patient(each == "ill") for each in group]
table = {"sample_id": [f"p{k + 1}" for k in range(16)], "condition": group}
study = CohortStudy(test="condition", random_state=0).fit(SampleSet.of(bags, table, markers))

# %%
fig, (what, how) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=[1.1, 1], layout="constrained")
PopulationDisplay.from_study(study).plot(ax=what)
DifferencesDisplay.from_study(study).plot(ax=how)
what.set_title("populations, by their markers")
how.set(title="how much they differ", xlabel="log2 fold change, ill against healthy")
plt.show()
