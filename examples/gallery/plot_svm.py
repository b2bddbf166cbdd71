"""
SVMs: few bumps for many support vectors
========================================

The decision function of an SVM is a sum of bumps on its support vectors. Fifteen bumps with places and widths of their own draw
nearly the same border.

The page is :doc:`/docs/svm`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from reduset.svm import compress_svm

X, y = make_moons(3_000, noise=0.28, random_state=0)
svm = SVC(gamma=3.0).fit(X, y)
small = compress_svm(svm, size=15, X=X, y=y, rng=0)
print(small.loss_)

# %%
across, up = np.meshgrid(np.linspace(-1.9, 2.9, 200), np.linspace(-1.6, 2.1, 150))
places = np.column_stack([across.ravel(), up.ravel()])
fig, panels = plt.subplots(1, 2, figsize=(10.5, 4.3), sharex=True, sharey=True)
bumps = small.expansion_
names = (f"the SVM: {len(svm.support_):,} support vectors", f"compressed: {len(bumps.centres)} bumps, circles as wide as each")
for axes, model, name in zip(panels, (svm, small), names, strict=True):
    values = model.decision_function(places).reshape(across.shape)
    axes.contourf(across, up, values, levels=np.linspace(-2.4, 2.4, 17), cmap="PuOr", alpha=0.75, extend="both")
    axes.contour(across, up, values, levels=[0], colors="black", linewidths=2)
    axes.set(title=name, aspect="equal", xticks=[], yticks=[])
    axes.set(xlim=across[0, [0, -1]], ylim=up[[0, -1], 0])
    axes.spines[:].set_visible(False)
panels[0].scatter(*svm.support_vectors_.T, s=7, c="black", alpha=0.55, linewidths=0)
panels[1].scatter(*bumps.centres.T, s=18, c="black", linewidths=0)
for centre, width in zip(bumps.centres, bumps.widths, strict=True):
    panels[1].add_patch(plt.Circle(centre, width, fill=False, color="black", linewidth=0.8, alpha=0.7))
plt.show()
