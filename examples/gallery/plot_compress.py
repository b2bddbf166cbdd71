"""
Compress: points to atoms
=========================

60,000 points become 80 weighted atoms. The error of every smaller size comes from the same run; beside it, that of as many
points drawn at random, each with the same weight.

The guide is :doc:`/docs/compress`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from reduset import Gaussian, KernelMean, compress

moons, _ = make_moons(40_000, noise=0.12, random_state=0)
blob = np.random.default_rng(0).normal([2.4, 1.1], [0.25, 0.15], size=(20_000, 2))
X = np.concatenate([moons, blob])
full = KernelMean.from_samples(X, Gaussian(0.2))

small = compress(full, size=80, weights="simplex", rng=0)  # weights that are not negative, and sum to 1
print(small)

# %%
# What a random subsample loses: the same kernel mean, from rows drawn by chance.
sizes = np.array([1, 2, 5, 10, 20, 40, 80])


def error_of_a_draw(size, seed):
    return compress(full, size=size, select="random", weights="own", rng=seed).certificate.relative_error


drawn = [np.mean([error_of_a_draw(size, seed) for seed in range(5)]) for size in sizes]

# %%
fig, (points, atoms, errors) = plt.subplots(1, 3, figsize=(11, 3.6), width_ratios=[1, 1, 1.1])
points.hexbin(*X.T, gridsize=60, mincnt=1, linewidths=0.3, edgecolors="face")
points.set(title=f"{len(X):,} points", aspect="equal", xticks=[], yticks=[])

weights = small.mean.weights
atoms.scatter(*small.mean.atoms.T, s=150 * weights / weights.max(), color="C0", edgecolors="white", linewidths=0.5)
atoms.set(title=f"{small.size} atoms, as large as their weights", aspect="equal", xticks=[], yticks=[])
atoms.set(xlim=points.get_xlim(), ylim=points.get_ylim())
for axes in (points, atoms):
    axes.spines[:].set_visible(False)

error, (low, high) = small.certificate.relative_error, small.certificate.interval
errors.loglog(small.path.sizes, small.path.relative_errors, label="atoms of compress", linewidth=2)
errors.loglog(sizes, drawn, "o--", label="random rows", markersize=4)
errors.errorbar(small.size, error, [[error - low], [high - error]], fmt="o", color="C0", capsize=4)
errors.set(title="what is lost, ‖f − fₘ‖ / ‖f‖", xlabel="atoms")
errors.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
errors.legend(loc="lower left")
plt.show()
