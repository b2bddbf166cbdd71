"""
Select: which points become atoms
=================================

Four selectors, and atoms that were moved to better places, at the same size. Shown is where the atoms are, and what the mean of
all points loses with their best weights.

The page is :doc:`/docs/select`.
"""

import matplotlib.pyplot as plt
import numpy as np

from reduset import Gaussian, KernelMean, compress

rng = np.random.default_rng(3)
turn = rng.uniform(0.5, 3.5, 12_000) * np.pi
spiral = np.stack([turn * np.cos(turn), turn * np.sin(turn)], axis=1) / 4 + rng.normal(0, 0.18, (12_000, 2))
X = np.concatenate([spiral, rng.normal([1.4, 2.6], 0.15, size=(6_000, 2))])
full = KernelMean.from_samples(X, Gaussian(0.35))

kinds = {
    "random": {"select": "random"},
    "k-centre": {"select": "kcenter"},
    "k-means": {"select": "kmeans"},
    "greedy": {"select": "greedy"},
    "greedy, then moved": {"select": "greedy", "refine": True},
}
results = {name: compress(full, size=60, rng=0, **options) for name, options in kinds.items()}

# %%
fig, panels = plt.subplots(1, 5, figsize=(12, 3.1), sharex=True, sharey=True)
for axes, (name, small) in zip(panels, results.items(), strict=True):
    axes.scatter(*X[::6].T, s=2, color="#d9dbde", linewidths=0, rasterized=True)
    axes.scatter(*small.mean.atoms.T, s=22, color="C0", edgecolors="white", linewidths=0.6)
    axes.set_title(f"{name}\nlost {100 * small.certificate.relative_error:.2g} %")
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
plt.show()
