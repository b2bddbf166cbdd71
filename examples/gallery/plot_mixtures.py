"""
Mixtures: components with covariances of their own
==================================================

A kernel density estimate has one narrow bump for every point. Twelve components that adapt to its shape are nearer to it than
twelve atoms of its own bandwidth can be.

The page is :doc:`/docs/mixtures`.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from reduset import Gaussian, KernelMean, compress, simplify

rng = np.random.default_rng(0)
bend = rng.uniform(0, np.pi, 4_000)
X = np.stack([np.cos(bend), np.sin(bend)], axis=1) + rng.normal(0, 0.1, (4_000, 2))
full = KernelMean.from_samples(X, Gaussian("scott", normalized=True, space="l2"))

atoms = compress(full, size=12, refine=True, weights="simplex", rng=0)
mixture = simplify(full, size=12, rng=0)
print(mixture)


# %%
def outline(axes, centre, covariance, share):
    """An ellipse of one deviation, as dark as the weight."""
    squares, directions = np.linalg.eigh(covariance)
    width, height = 2 * np.sqrt(squares[::-1])
    angle = np.degrees(np.arctan2(*directions[::-1, -1]))
    axes.add_patch(Ellipse(centre, width, height, angle=angle, facecolor="C1", alpha=0.15 + 0.4 * share))
    axes.add_patch(Ellipse(centre, width, height, angle=angle, fill=False, edgecolor="C1", linewidth=1.2))


fig, panels = plt.subplots(1, 3, figsize=(11.5, 2.9), sharex=True, sharey=True)
for axes in panels:
    axes.scatter(*X[::2].T, s=3, color="C0", alpha=0.25, linewidths=0, rasterized=True)
    axes.set(aspect="equal", xlim=(-1.5, 1.5), ylim=(-0.45, 1.45), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
panels[0].set_title(f"{len(X):,} points, a bump on each")
round_ones = np.eye(2) * full.kernel.width**2
for centre, weight in zip(atoms.mean.atoms, atoms.mean.weights, strict=True):
    outline(panels[1], centre, round_ones, weight / atoms.mean.weights.max())
panels[1].set_title(f"{atoms.size} atoms: lost {100 * atoms.certificate.relative_error:.2g} %")
for centre, covariance, weight in zip(mixture.mixture.means, mixture.mixture.covariances, mixture.mixture.weights, strict=True):
    outline(panels[2], centre, covariance, weight / mixture.mixture.weights.max())
panels[2].set_title(f"{mixture.size} components: lost {100 * mixture.error:.2g} %")
plt.show()
