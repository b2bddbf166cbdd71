"""Maps: the numbers of a cohort's pictures, and displays for matplotlib of cohorts and of embeddings.

The samples of a cohort are in the order of the leaves of the tree of average linkage; up to some hundred samples in the best order
that the tree allows, which takes N³ operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._drawing import axes
from reduset._types import Array
from reduset.certificate import Certificate
from reduset.cohort.scatter import scatter
from reduset.report.displays import MatplotlibDisplay

KINDS = ("map", "distances")
MOST_ORDERED = 400


@dataclass(frozen=True)
class CohortFigure:
    """A cohort: its samples, their distances, and their coordinates on a map.

    Attributes
    ----------
    names : of the N samples, as texts
    groups : one a sample, None where it has none; None where there are no groups at all
    places : (N, k)
    distances, errors : (N, N)
    order : (N,) samples in an order in which similar ones are neighbours
    certificates : one a sample; None where nothing was compressed
    sizes : rows and pieces of each sample, (N, 2); None where nothing was compressed
    """

    names: tuple[str, ...]
    groups: tuple[str | None, ...] | None
    places: Array
    distances: Array
    errors: Array
    order: NDArray[np.int64]
    certificates: tuple[Certificate, ...] | None
    sizes: NDArray[np.int64] | None


def cohort_figure(cohort: Any, groups: Sequence[Any] | Mapping[Any, Any] | None = None) -> CohortFigure:
    """Of a fitted `CohortMap`; groups are one a sample in order, or by the names of the samples."""
    check_is_fitted(cohort, "embedding_")
    names = list(cohort.names_)
    made = None if cohort.compressions_ is None else tuple(cohort.compressions_)
    distances = np.asarray(cohort.distances_, np.float64)
    return CohortFigure(
        tuple(map(str, names)),
        _groups(groups, names),
        np.asarray(cohort.embedding_, np.float64),
        distances,
        np.asarray(cohort.errors_, np.float64),
        alike_beside(distances),
        None if made is None else tuple(each.certificate for each in made),
        None if made is None else np.array([[each.n_samples, each.size] for each in made], np.int64),
    )


def _groups(groups: Sequence[Any] | Mapping[Any, Any] | None, names: list[Any]) -> tuple[str | None, ...] | None:
    if groups is None:
        return None
    if isinstance(groups, Mapping):
        strange = [name for name in groups if name not in names]
        if strange:
            raise ValueError(
                f"groups must be by the names of the samples, got {strange[0]!r}, which is none; they are {names[:5]} …"
            )
        listed: list[Any] = [groups.get(name) for name in names]
    else:
        listed = list(groups)
    if len(listed) != len(names):
        raise ValueError(f"groups must have one entry for each of the {len(names)} samples, got {len(listed)}")
    return tuple(None if _validate.missing(group) else str(group) for group in listed)


def alike_beside(distances: Array) -> NDArray[np.int64]:
    """(N,) the leaves of the tree of average linkage, so that similar samples are neighbours."""
    count = len(distances)
    if count < 3:
        return np.arange(count)
    finite = distances[np.isfinite(distances)]
    filled = np.where(np.isfinite(distances), distances, 2 * finite.max(initial=1.0))
    near = squareform(np.maximum((filled + filled.T) / 2, 0.0), checks=False)
    tree = linkage(near, "average")
    return np.asarray(leaves_list(optimal_leaf_ordering(tree, near) if count <= MOST_ORDERED else tree), np.int64)


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
        kind : "map", or "distances", a picture of the matrix with similar samples next to each other
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
