"""matplotlib, imported when the first plot is asked for: nothing else of the library needs it."""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset._types import Array


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that says how to get it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib, which is not installed: pip install 'reduset[plots]'") from error
    return pyplot


def axes(ax: Any) -> Any:
    """The axes given, or new ones."""
    return pyplot().subplots()[1] if ax is None else ax


def shaded(colour: Any, opacities: Array) -> Array:
    """(m, 4) one colour in many opacities."""
    pyplot()
    from matplotlib.colors import to_rgb

    return np.column_stack([np.tile(to_rgb(colour), (len(opacities), 1)), opacities])


def ellipses(ax: Any, places: Array, covariances: Array, **looks: Any) -> None:
    """Draw ellipses of one standard deviation about (m, 2) places, by their (m, 2, 2) covariances, and make room for them."""
    pyplot()
    from matplotlib.collections import EllipseCollection

    values, vectors = np.linalg.eigh(covariances)
    (shorter, longer), axis = 2 * np.sqrt(values.T), vectors[:, :, 1]
    turned = np.degrees(np.arctan2(axis[:, 1], axis[:, 0]))
    ax.add_collection(
        EllipseCollection(longer, shorter, turned, units="xy", offsets=places, offset_transform=ax.transData, **looks)
    )
    reach = np.sqrt(covariances.diagonal(axis1=1, axis2=2))
    ax.update_datalim(np.concatenate([places - reach, places + reach]))
    ax.autoscale_view()
