"""
Densities: a kernel density estimate from few atoms
===================================================

The density of 50,000 points, the same from the atoms that a tolerance of 2 % takes, and what is between the two.

The page is :doc:`/docs/density`.
"""

import matplotlib.pyplot as plt
import numpy as np

from reduset.density import SparseKernelDensity

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 20_000)
ring = np.stack([2.2 * np.cos(angle), 1.6 * np.sin(angle)], axis=1) + rng.normal(0, 0.22, size=(20_000, 2))
X = np.concatenate([ring, rng.normal([0, 0], [0.5, 0.3], size=(20_000, 2)), rng.normal([3.4, 1.9], 0.35, size=(10_000, 2))])

density = SparseKernelDensity(tol=0.02, random_state=0).fit(X)
exact = SparseKernelDensity(bandwidth=density.bandwidth_, size=len(X)).fit(X)  # all points: what the small one stands for
print(density.certificate_)

# %%
across, up = np.meshgrid(np.linspace(-3.2, 4.8, 160), np.linspace(-2.6, 3.3, 120))
places = np.column_stack([across.ravel(), up.ravel()])
full, small = (np.exp(each.score_samples(places)).reshape(across.shape) for each in (exact, density))
top = full.max()

fig, panels = plt.subplots(1, 3, figsize=(11.5, 3.3), sharex=True, sharey=True)
panels[0].contourf(across, up, full, levels=np.linspace(0, 1.02 * top, 16))
panels[0].set_title(f"from {len(X):,} points")
panels[1].contourf(across, up, small, levels=np.linspace(0, 1.02 * top, 16))
panels[1].scatter(*density.mean_.atoms.T, s=5, color="white", linewidths=0)
panels[1].set_title(f"from {density.mean_.size} atoms, certified to {100 * density.certificate_.interval[1]:.2g} % in L2")
shown = panels[2].pcolormesh(across, up, 100 * (small - full) / top, cmap="PuOr", vmin=-6, vmax=6, rasterized=True)
panels[2].set_title("their difference")
fig.colorbar(shown, ax=panels[2], label="% of the highest value", shrink=0.9)
for axes in panels:
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
plt.show()
