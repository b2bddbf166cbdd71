"""Images as points and back: pixels become rows of position and colour, labels become an image of flat colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._messages import warn
from reduset._types import Array
from reduset.certificate import Certificate
from reduset.compression.summary import error

BRIGHT = 2.0  # a float beyond it is no share of white


@dataclass(frozen=True)
class Segmentation:
    """An image cut into segments.

    Attributes
    ----------
    labels : (h, w), 0 for the segment of the highest mode
    image : like the image given: each segment in its mean colour, transparency as it was
    certificate : what the compressed density of the pixels lost
    bandwidth : of the density
    """

    labels: NDArray[np.int64]
    image: NDArray[Any]
    certificate: Certificate
    bandwidth: float

    @property
    def count(self) -> int:
        """The number of segments."""
        return int(self.labels.max()) + 1

    def __str__(self) -> str:
        height, width = self.labels.shape
        shares = np.sort(np.bincount(self.labels.ravel()) / self.labels.size)[::-1]
        largest = ", ".join(f"{share:.1%}" for share in shares[:5])
        lines = [
            f"{height} × {width} pixels in {self.count} segments (largest {largest})",
            f"error      {error(self.certificate)}, of the density whose modes define the segments",
            f"bandwidth  {self.bandwidth:.3g}",
        ]
        return "\n  ".join(lines)


def pixels(image: Any, alone: bool = False) -> NDArray[Any]:
    """The image as (h, w, channels), checked; ``alone`` where colours do not have to agree with positions."""
    if np.ma.isMaskedArray(image):
        raise TypeError("image must not be masked, every pixel has its segment; fill it first: image.filled(0)")
    array = np.asarray(image)
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or 0 in array.shape:
        raise ValueError(f"image must be grey (h, w), RGB (h, w, 3) or RGBA (h, w, 4), got an array of shape {np.shape(image)}")
    if array.dtype.kind not in "buif":
        raise TypeError(f"image must hold numbers, got dtype {array.dtype}")
    if array.dtype.kind in "ui" and array.dtype.itemsize > 2:
        raise TypeError(
            f"whole numbers of an image must have 8 or 16 bits, whose range is that of the colours; got dtype {array.dtype}. "
            "Use image.astype(np.uint8), or floats from 0 to 1"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("image must be finite, got NaN or infinity; fill these pixels first")
    if array.dtype.kind == "f" and not alone and float(np.abs(array).max()) > BRIGHT:
        warn(
            f"the floats of the image go to {float(np.abs(array).max()):.3g}, so that colour outweighs position; divide them by "
            "255, or whatever white is, or give a larger spatial"
        )
    return array


def features(array: NDArray[Any], spatial: float) -> Array:
    """(h·w, 2 + colours): row and column, the longer side of length ``spatial``, then the colours, whole numbers as shares of 1.

    Colours alone where ``spatial`` is 0.
    """
    height, width = array.shape[:2]
    colours = array[:, :, :3] if array.shape[2] == 4 else array
    scale = np.iinfo(array.dtype).max if array.dtype.kind in "ui" else 1
    shares = colours.reshape(height * width, -1) / scale
    if spatial == 0:
        return shares
    row, column = np.mgrid[:height, :width] * (spatial / max(height, width))
    return np.column_stack([row.ravel(), column.ravel(), shares])


def flat(array: NDArray[Any], labels: NDArray[np.int64]) -> NDArray[Any]:
    """The image, (h, w, channels), with every colour replaced by the mean of its segment; its type as given."""
    height, width, channels = array.shape
    colours = min(channels, 3) if channels != 1 else 1
    counts = np.bincount(labels)
    out = array.copy()
    for c in range(colours):
        mean = np.bincount(labels, array[:, :, c].ravel().astype(np.float64)) / counts
        if array.dtype.kind != "f":
            mean = np.rint(mean)
        out[:, :, c] = mean[labels].reshape(height, width).astype(array.dtype)
    return out
