"""
Spectral: unrolling 20,000 rows from 400 atoms
==============================================

A diffusion map of the Swiss roll. The eigenproblem is that of 400 weighted atoms; every row gets its coordinate from them. It
is the position along the roll.

The page is :doc:`/docs/spectral`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_swiss_roll

from reduset import Gaussian
from reduset.spectral import ReducedDiffusionMap

roll, along = make_swiss_roll(20_000, random_state=0)
walk = ReducedDiffusionMap(n_components=1, kernel=Gaussian(1.5), reduce="kmeans", size=400, random_state=0).fit(roll)
position = walk.transform(roll)[:, 0]
position *= np.sign(np.corrcoef(position, along)[0, 1])

# %%
fig = plt.figure(figsize=(11, 3.8))
first, second = (fig.add_subplot(1, 3, k, projection="3d") for k in (1, 2))
first.scatter(*roll[::4].T, c=position[::4], s=2, cmap="viridis", linewidths=0, rasterized=True)
first.set_title("20,000 rows, coloured by\nthe coordinate that was found")
second.scatter(*walk.atoms_.T, s=0.35 * walk.weights_, color="C0", alpha=0.6, linewidths=0)
second.set_title(f"{len(walk.atoms_)} atoms, as large\nas the rows they stand for")
for axes in (first, second):
    axes.view_init(12, -72)
    axes.set_box_aspect(None, zoom=1.45)
    axes.set_axis_off()
line = fig.add_subplot(1, 3, 3)
line.scatter(along[::4], position[::4], c=position[::4], s=3, cmap="viridis", linewidths=0, rasterized=True)
line.set(title="coordinate against position", xlabel="where the row is along the roll", ylabel="diffusion coordinate")
plt.show()
