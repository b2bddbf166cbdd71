"""A map as a scatter plot, each group in its own colour and shape; matplotlib is imported only when a plot is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reduset import _validate
from reduset._drawing import axes
from reduset._types import Array

SHAPES = "osD^vP*X"  # told apart where colours are not


def scatter(
    places: Array, ax: Any, labels: Sequence[Any] | None, groups: Sequence[Any] | None, *, things: str = "bags", **options: Any
) -> Any:
    """Draw the first two columns of a map, those of no group in grey; ``options`` as of ``Axes.scatter``; return the axes."""
    for name, given in (("labels", labels), ("groups", groups)):
        if given is not None and len(given) != len(places):
            raise ValueError(f"{name} must have one entry for each of the {len(places)} {things}, got {len(given)}")
    ax = axes(ax)
    x, y = places[:, 0], places[:, 1] if places.shape[1] > 1 else np.zeros(len(places))
    if groups is None:
        ax.scatter(x, y, **options)
    else:
        none = np.array([_validate.missing(group) for group in groups])
        for k, group in enumerate(dict.fromkeys(group for group, gone in zip(groups, none, strict=True) if not gone)):
            mine = np.array([not gone and other == group for other, gone in zip(groups, none, strict=True)])
            ax.scatter(x[mine], y[mine], **{"label": str(group), "marker": SHAPES[k % len(SHAPES)]} | options)
        if none.any():
            ax.scatter(x[none], y[none], **options | {"label": "no group", "color": "lightgrey"})
        ax.legend()
    for place_x, place_y, label in zip(x, y, labels if labels is not None else (), strict=labels is not None):
        ax.annotate(str(label), (place_x, place_y), xytext=(4, 4), textcoords="offset points", fontsize="small")
    ax.set_aspect("equal", adjustable="datalim")  # a map's distances mean the same in every direction
    return ax
