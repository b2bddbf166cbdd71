"""
Modes: photographs in flat colours
==================================

Every pixel is a point of colour and place. Mean shift lets each climb to a mode of their density, here on some 500 atoms in
place of all pixels; pixels that end at the same mode are a segment.

The page is :doc:`/docs/modes`.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_sample_images

from reduset.modes import segment

images = [image[::2, ::2] for image in load_sample_images().images]
found = [segment(image, bandwidth=0.065, spatial=0.5, min_size=100, random_state=0) for image in images]
print(*found, sep="\n\n")

# %%
fig, panels = plt.subplots(1, 4, figsize=(12.5, 2.4))
for (before, after), image, result in zip(panels.reshape(2, 2), images, found, strict=True):
    before.imshow(image)
    before.set_title(f"{result.labels.size:,} pixels")
    after.imshow(result.image)
    after.set_title(f"{result.count} segments")
for axes in panels:
    axes.axis("off")
plt.show()
