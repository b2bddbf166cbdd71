"""
Bags: learning from densities
=============================

How many clumps is a bag of points made of? Means and covariances hardly say. Features of the bags' densities do, with the same
ridge regression.

The page is :doc:`/docs/features`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from reduset.features import DensityFeatures

rng = np.random.default_rng(0)


def bag(clumps):
    """200 points of the plane."""
    centres = rng.uniform(-3, 3, size=(clumps, 2))
    return centres[rng.integers(clumps, size=200)] + rng.normal(0, 0.35, size=(200, 2))


counts = rng.integers(1, 9, size=1200)
bags = [bag(count) for count in counts]
known, later = slice(0, 900), slice(900, 1200)

moments = np.array([[*points.mean(axis=0), *np.cov(points.T).ravel()] for points in bags])
by_moments = Ridge(0.1).fit(moments[known], counts[known]).predict(moments[later])
model = make_pipeline(DensityFeatures("js", n_basis=8, kernel_width=1.2, margin=0.1, random_state=0), Ridge(3e-4))
by_density = model.fit(bags[known], counts[known]).predict(bags[later])

# %%
fig, panels = plt.subplots(1, 4, figsize=(12, 3), width_ratios=[1, 1, 1.5, 1.5])
for axes, wanted in zip(panels, (3, 7), strict=False):
    axes.scatter(*bags[np.flatnonzero(counts == wanted)[0]].T, s=5, color="C2", linewidths=0)
    axes.set(title=f"a bag of {wanted} clumps", aspect="equal", xlim=(-4.5, 4.5), ylim=(-4.5, 4.5), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
shake = rng.uniform(-0.25, 0.25, size=300)
for axes, guess, name in zip(panels[2:], (by_moments, by_density), ("mean and covariance", "densities"), strict=True):
    error = np.sqrt(np.mean((guess - counts[later]) ** 2))
    axes.plot([1, 8], [1, 8], color="#b9bcc1", linewidth=1)
    axes.scatter(counts[later] + shake, guess, s=7, alpha=0.7, linewidths=0)
    axes.set(title=f"{name}: off by {error:.2f}", xlabel="clumps", ylim=(-1, 10))
panels[2].set_ylabel("predicted")
plt.show()
