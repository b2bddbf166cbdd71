"""
Resolution: how fine so many atoms see
======================================

An error belongs to a scale. At the median bandwidth 300 atoms lose next to nothing of 40,000 rows, because it sees one heap. The
same number, chosen and weighed at the finest scale at which they lose 5 %, keeps the ring, the arms and a group of one row in 200.
The last picture has the error of both at every scale, beside that of as many random rows and the noise of the sample itself.

The page is :doc:`/docs/certificate`.
"""

import matplotlib.pyplot as plt
import numpy as np

from reduset import Gaussian, compress
from reduset.report import ProfileDisplay

rng = np.random.default_rng(5)
turn = rng.uniform(0.6, 2.6, 31_800) * np.pi
arms = np.stack([turn * np.cos(turn), turn * np.sin(turn)], axis=1) / 3 * rng.choice([-1, 1], (31_800, 1))
angle = rng.uniform(0, 2 * np.pi, 8_000)
ring = np.stack([np.cos(angle), np.sin(angle)], axis=1) * 0.35
rare = rng.normal([2.3, -2.3], 0.02, (200, 2))
X = np.concatenate([arms, ring, rare]) + rng.normal(0, 0.09, (40_000, 2))

coarse = compress(X, Gaussian("median"), size=300, rng=0)
fine = compress(X, size=300, tol=0.05, rng=0)

# %%
side = np.linspace(-3.4, 3.4, 160)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
fig, panels = plt.subplots(1, 4, figsize=(15, 3.4), width_ratios=[1, 1, 1, 1.2])
panels[0].scatter(*X[::4].T, s=1.5, color="C0", alpha=0.25, linewidths=0, rasterized=True)
panels[0].set_title("40,000 rows\n")
for axes, small, name in ((panels[1], coarse, "median bandwidth"), (panels[2], fine, "resolution")):
    h = small.mean.kernel.width
    lost = 100 * small.certificate.relative_error
    axes.pcolormesh(side, side, small.mean(grid).reshape(160, 160), cmap="Blues", shading="gouraud", rasterized=True)
    axes.set_title(f"the {name}, {h:.2g}:\n300 atoms lose {'less than 0.001' if lost < 0.001 else f'{lost:.2g}'} %")
for axes in panels[:3]:
    axes.set(aspect="equal", xlim=side[[0, -1]], ylim=side[[0, -1]], xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
ProfileDisplay.from_compression(fine).plot(panels[3], color="C1", label="300 atoms at the resolution")
other = coarse.profile()
panels[3].plot(other.bandwidths, other.relative_errors, color="C0", label="300 atoms at the median bandwidth")
panels[3].set_title("the error at every scale\n")
panels[3].legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
plt.show()
