"""Displays of maps for matplotlib: samples of a cohort, and rows by the coordinates that an estimator gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from reduset._drawing import axes
from reduset._types import Array
from reduset.cohort.scatter import scatter
from reduset.report.cohort_figure import CohortFigure, cohort_figure
from reduset.report.displays import MatplotlibDisplay

KINDS = ("map", "distances")


@dataclass(eq=False, repr=False)
class CohortDisplay(MatplotlibDisplay):
    """A cohort: the map of its samples, or the distances of every two.

    Parameters
    ----------
    figure : CohortFigure, the numbers
    """

    figure: CohortFigure

    @classmethod
    def from_estimator(cls, cohort: Any, groups: Sequence[Any] | Mapping[Any, Any] | None = None) -> Self:
        """Of a fitted `CohortMap`; groups are one a sample in order, or by the names of the samples."""
        return cls(cohort_figure(cohort, groups))

    def plot(self, ax: Any = None, kind: str = "map", labels: bool = False, **kw: Any) -> Self:
        """Draw it, on axes given or new.

        Parameters
        ----------
        ax : matplotlib axes, optional
        kind : "map", or "distances", a picture of the matrix with samples that are alike beside each other
        labels : whether to write the names of the samples
        **kw : as of ``Axes.scatter``, or of ``Axes.imshow``
        """
        self._check(kind, KINDS)
        shown = self.figure
        if kind == "map":
            return self._on(scatter(shown.places, ax, shown.names if labels else None, shown.groups, **kw))
        ax = axes(ax)
        image = ax.imshow(shown.distances[np.ix_(shown.order, shown.order)], **{"cmap": "Blues_r"} | kw)
        ax.figure.colorbar(image, ax=ax, label="distance")
        places = range(len(shown.names)) if labels else []
        named = [shown.names[k] for k in shown.order] if labels else []
        ax.set_xticks(places, named, rotation=90)
        ax.set_yticks(places, named)
        return self._on(ax)


class EmbeddingDisplay(MatplotlibDisplay):
    """Rows at the coordinates that an estimator gives them.

    Parameters
    ----------
    places : (n, k), of which the first two are drawn
    groups : (n,) one colour and shape for each value; None for none
    values : (n,) numbers to colour by; None for none
    """

    def __init__(self, places: Any, groups: Sequence[Any] | None = None, values: Any = None) -> None:
        array: Array = np.asarray(places, np.float64)
        if array.ndim != 2 or array.shape[1] < 1:
            raise ValueError(f"places must be (n, k), a row of coordinates for each row; got shape {array.shape}")
        if groups is not None and values is not None:
            raise ValueError("give groups or values, not both: a marker has one colour")
        if values is not None and np.shape(values) != (len(array),):
            raise ValueError(f"values must have one entry for each of the {len(array)} rows, got shape {np.shape(values)}")
        self.places = array
        self.groups = None if groups is None else list(groups)
        self.values = None if values is None else np.asarray(values, np.float64)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, groups: Sequence[Any] | None = None, values: Any = None) -> Self:
        """Of a fitted estimator with ``transform``: `ReducedKernelPCA`, `ReducedDiffusionMap`, … or any of scikit-learn's."""
        return cls(estimator.transform(X), groups, values)

    @classmethod
    def from_array(cls, places: Any, groups: Sequence[Any] | None = None, values: Any = None) -> Self:
        """Of coordinates, (n, k)."""
        return cls(places, groups, values)

    def plot(self, ax: Any = None, **kw: Any) -> Self:
        """Draw it, on axes given or new; ``kw`` as of ``Axes.scatter``."""
        options = {"s": 12} | kw
        if self.values is not None:
            options = {"c": self.values, "cmap": "cividis"} | options
        ax = scatter(self.places, ax, None, self.groups, things="rows", **options)
        if self.values is not None:
            ax.figure.colorbar(ax.collections[-1], ax=ax)
        ax.set(xlabel="first coordinate", ylabel="second coordinate" if self.places.shape[1] > 1 else "")
        return self._on(ax)
