"""Segmentation of images by mean shift: pixels become rows of position and colour, and segments get their mean colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from reduset import _validate
from reduset._messages import warn
from reduset._types import Array, BandwidthLike, Labels
from reduset.certificate import Certificate
from reduset.compression import error_text
from reduset.modes.estimator import SparseMeanShift

MAX_USUAL_FLOAT = 2.0  # Larger colours are probably not scaled to 1.


@dataclass(frozen=True)
class Segmentation:
    """The segments of an image.

    Attributes
    ----------
    labels : (h, w)
        Segment of each pixel. The segment of the highest mode is 0.
    image : array
        Image with each segment in its mean colour. Shape, dtype and transparency are unchanged.
    certificate : Certificate
        Error of the compressed density of the pixels.
    bandwidth : float
        Bandwidth of the density.
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
        proportions = np.sort(np.bincount(self.labels.ravel()) / self.labels.size)[::-1]
        largest = ", ".join(f"{proportion:.1%}" for proportion in proportions[:5])
        lines = [
            f"{height} × {width} pixels in {self.count} segments (largest {largest})",
            f"error      {error_text(self.certificate)} of the density of the pixels",
            f"bandwidth  {self.bandwidth:.3g}",
        ]
        return "\n  ".join(lines)


def pixels(image: Any, colours_only: bool = False) -> NDArray[Any]:
    """The validated image as (h, w, channels). With ``colours_only``, the scale of the colours is arbitrary."""
    if np.ma.isMaskedArray(image):
        raise TypeError("image must not be masked, since every pixel gets a segment; fill it first: image.filled(0)")
    array = np.asarray(image)
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or 0 in array.shape:
        raise ValueError(f"image must be grey (h, w), RGB (h, w, 3) or RGBA (h, w, 4), got an array of shape {np.shape(image)}")
    if array.dtype.kind not in "buif":
        raise TypeError(f"image must hold numbers, got dtype {array.dtype}")
    if array.dtype.kind in "ui" and array.dtype.itemsize > 2:
        raise TypeError(
            f"integers of an image must have 8 or 16 bits, because their range scales the colours, got dtype {array.dtype}; use "
            "image.astype(np.uint8), or floats from 0 to 1"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("image must be finite, got NaN or infinity; fill these pixels first")
    if array.dtype.kind == "f" and not colours_only and float(np.abs(array).max()) > MAX_USUAL_FLOAT:
        warn(
            f"the image has floats up to {float(np.abs(array).max()):.3g}, which give colour more weight than position; divide the "
            "image by the value of white, such as 255, or use a larger spatial"
        )
    return array


def features(array: NDArray[Any], spatial: float) -> Array:
    """(h·w, 2 + colours) features of the pixels: row and column, then the colours.

    The longer side has the length ``spatial``. Integers are scaled to 1. With ``spatial=0``, the result has only the colours.
    """
    height, width = array.shape[:2]
    colours = array[:, :, :3] if array.shape[2] == 4 else array
    scale = np.iinfo(array.dtype).max if array.dtype.kind in "ui" else 1
    scaled = colours.reshape(height * width, -1) / scale
    if spatial == 0:
        return scaled
    row, column = np.mgrid[:height, :width] * (spatial / max(height, width))
    return np.column_stack([row.ravel(), column.ravel(), scaled])


def flat(array: NDArray[Any], labels: NDArray[np.int64]) -> NDArray[Any]:
    """The image, (h, w, channels), with the mean colour of its segment in every pixel. The dtype is unchanged."""
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


def segment(
    image: ArrayLike, bandwidth: BandwidthLike | None = None, spatial: float = 1.0, min_size: int = 1, **options: Any
) -> Segmentation:
    """Split an image into segments of similar colour, by mean shift on position and colour.

    Parameters
    ----------
    image : (h, w), (h, w, 3) or (h, w, 4) array
        Grey, RGB or RGBA image. Integers use the range of their type. Floats stay unchanged. Transparent pixels count by their
        colour.
    bandwidth : float, str or None
        Bandwidth of the density. One unit is the full range of integer colours and, with ``spatial=1``, the longer side of the
        image.
    spatial : float
        Weight of the position: the length of the longer side, in the same unit. With ``spatial=0``, only the colours count.
    min_size : int
        Minimum number of pixels. Smaller segments join the segment with the nearest mode.
    **options : parameters of `SparseMeanShift`
        A ``radius`` with ``via="mixture"`` has the same unit. 25/255 is 25 levels of 8 bits.

    Notes
    -----
    The setting of Table I of Zhang and Kwok (2010) is ``bandwidth=0.1, spatial=0, via="mixture", radius=25 / 255, finish=False``.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.modes import segment
    >>> image = np.zeros((20, 30), np.uint8)
    >>> image[:, 15:] = 200
    >>> result = segment(image, bandwidth=0.2, random_state=0)
    >>> result.count, result.image[0, 0].item(), result.image[0, 29].item()
    (2, 0, 200)
    """
    if _validate.finite(spatial, "spatial") != 0:
        spatial = _validate.positive(spatial, "spatial", "it is the length of the longer side, or 0 for colours only")
    array = pixels(image, colours_only=spatial == 0)
    min_size = _validate.whole(min_size, "min_size", 1)
    X = features(array, spatial)
    shift = SparseMeanShift(bandwidth=bandwidth, **options)
    if not shift.cluster_all:
        raise ValueError("cluster_all must be True, because every pixel belongs to a segment, got False; omit it")
    shift.fit(X)
    modes = shift.cluster_centers_
    counts = np.bincount(shift.labels_, minlength=len(modes))
    kept = np.flatnonzero(counts >= min(min_size, int(counts.max())))
    _, closest = cKDTree(modes[kept]).query(modes)
    labels: Labels = np.asarray(closest, np.int64)[shift.labels_]
    coloured = flat(array, labels).reshape(np.shape(image))
    return Segmentation(labels.reshape(array.shape[:2]), coloured, shift.certificate_, shift.bandwidth_)
