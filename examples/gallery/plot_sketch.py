"""
Sketch: rare and right
======================

Three populations, one of them of 0.2 %, and a few rows far from all. Random rows keep how many there are of each and lose what is
rare; farthest-first rows keep what is rare and lose how many; rows with weights keep both. A row of the sketch is drawn as large as
what it stands for.

The page is :doc:`/docs/sketch`.
"""

import matplotlib.pyplot as plt
import numpy as np

from reduset import Gaussian, KernelMean, sketch
from reduset.select import KCenter

rng = np.random.default_rng(1)
sizes = {"common": 60_000, "other": 24_000, "rare": 170}
centres, spreads = {"common": (0, 0), "other": (5, 1), "rare": (1.5, 6)}, {"common": 1.0, "other": 0.8, "rare": 0.25}
X = np.concatenate([rng.normal(centres[kind], spreads[kind], size=(count, 2)) for kind, count in sizes.items()])
kind = np.repeat(list(sizes), list(sizes.values()))

size = 120
small = sketch(X, size, rng=0)
choices = {
    "random rows": (rng.choice(len(X), size, replace=False), np.full(size, 1 / size)),
    "farthest-first": (KCenter().select(KernelMean.from_samples(X, Gaussian(1.0)), size, rng=0).indices, np.full(size, 1 / size)),
    "sketch": (small.indices, small.weights),
}

# %%
fig, panels = plt.subplots(1, 4, figsize=(12, 3.3), gridspec_kw={"width_ratios": [3, 3, 3, 2.4]})
for axes, (name, (rows, weights)) in zip(panels, choices.items(), strict=False):
    axes.scatter(*X[::20].T, s=2, color="#d9dbde", linewidths=0, rasterized=True)
    axes.scatter(*X[kind == "rare"].T, s=2, color="#d9dbde", linewidths=0)
    for k, each in enumerate(sizes):
        mine = kind[rows] == each
        area = 12 + 1500 * weights[mine] if name == "sketch" else 16
        axes.scatter(*X[rows[mine]].T, s=area, color=f"C{k}", edgecolors="white", linewidths=0.5)
    axes.set_title(f"{name}\n{np.sum(kind[rows] == 'rare')} rare of {size}")
    axes.set(aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set_visible(False)

axes = panels[-1]
true = {each: np.mean(kind == each) for each in sizes}
for place, (name, (rows, weights)) in enumerate(choices.items()):
    for k, each in enumerate(sizes):
        share = weights[kind[rows] == each].sum()
        axes.scatter(true[each], max(share, 4e-4), color=f"C{k}", marker="^os"[place], s=36, zorder=3)
    axes.scatter([], [], color="0.4", marker="^os"[place], label=name)
axes.plot([5e-4, 1], [5e-4, 1], color="0.7", linewidth=1)
axes.set(xscale="log", yscale="log", xlabel="share of all rows", ylabel="share by weight", title="shares")
axes.legend(frameon=False, fontsize=8)
plt.show()
