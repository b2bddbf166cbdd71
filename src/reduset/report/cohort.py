"""The report of a cohort (distances of samples, a map, the error of each sample), and displays of cohorts and embeddings.

Samples are in the order of the leaves of an average linkage tree. For up to 400 samples, this is the optimal leaf order. It takes
N³ operations.
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

from reduset import _archive, _validate
from reduset._drawing import axes
from reduset._types import Array
from reduset.certificate import Certificate
from reduset.cohort import scatter
from reduset.report.displays import MatplotlibDisplay
from reduset.report.page import Markup, Section, aside, choice, controls, hero, markup, packed, plot, sentence, table, write_page
from reduset.report.words import Card, count, percent

KINDS = ("map", "distances")
MAX_ORDERED = 400
PARAMETERS = {
    "distance": "Distance",
    "layout": "Layout of the map",
    "pieces_": "Atoms or components",
    "atoms": "Atoms of the samples",
    "size": "Number of atoms or components",
    "tol": "Tolerance",
    "n_neighbors": "Neighbours in the layout",
    "confidence": "Confidence of the errors",
    "random_state": "Random state",
}
DISTANCES = {
    "mmd": ("MMD", "maximum mean discrepancy", "The maximum mean discrepancy: the distance of two densities in the kernel's norm."),
    "kl": ("KL", "symmetrised Kullback–Leibler divergence", "The symmetrised Kullback–Leibler divergence of two densities."),
}


@dataclass(frozen=True)
class CohortFigure:
    """A cohort: its samples, their distances, and their coordinates on a map.

    Attributes
    ----------
    names : Names of the N samples.
    groups : Groups of the samples, None for samples without a group; None without groups.
    places : (N, k) coordinates on the map
    distances, errors : (N, N) distances and their errors
    order : (N,) samples in an order with similar samples next to each other
    certificates : Certificates of the samples; None without compression.
    sizes : (N, 2) number of rows and pieces of each sample; None without compression
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
    """The figure of a fitted `CohortMap`. ``groups`` has one for each sample, in order or by name."""
    check_is_fitted(cohort, "embedding_")
    names = list(cohort.names_)
    made = None if cohort.compressions_ is None else tuple(cohort.compressions_)
    distances = np.asarray(cohort.distances_, np.float64)
    return CohortFigure(
        tuple(map(str, names)),
        _group_labels(groups, names),
        np.asarray(cohort.embedding_, np.float64),
        distances,
        np.asarray(cohort.errors_, np.float64),
        alike_beside(distances),
        None if made is None else tuple(small.certificate for small in made),
        None if made is None else np.array([[small.n_samples, small.size] for small in made], np.int64),
    )


def _group_labels(groups: Sequence[Any] | Mapping[Any, Any] | None, names: list[Any]) -> tuple[str | None, ...] | None:
    if groups is None:
        return None
    if isinstance(groups, Mapping):
        unknown = [name for name in groups if name not in names]
        if unknown:
            raise ValueError(f"groups must have the names of the samples as keys, got {unknown[0]!r}; the names are {names[:5]} …")
        labels: list[Any] = [groups.get(name) for name in names]
    else:
        labels = list(groups)
    if len(labels) != len(names):
        raise ValueError(f"groups must have one entry for each of the {len(names)} samples, got {len(labels)}")
    return tuple(None if _validate.missing(group) else str(group) for group in labels)


def alike_beside(distances: Array) -> NDArray[np.int64]:
    """(N,) samples in an order with similar samples next to each other: the leaves of an average linkage tree."""
    size = len(distances)
    if size < 3:
        return np.arange(size)
    finite = distances[np.isfinite(distances)]
    filled = np.where(np.isfinite(distances), distances, 2 * finite.max(initial=1.0))
    condensed = squareform(np.maximum((filled + filled.T) / 2, 0.0), checks=False)
    tree = linkage(condensed, "average")
    return np.asarray(leaves_list(optimal_leaf_ordering(tree, condensed) if size <= MAX_ORDERED else tree), np.int64)


def write_cohort(
    path: _archive.Path_,
    cohort: Any,
    *,
    groups: Sequence[Any] | Mapping[Any, Any] | None = None,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write the report of a cohort: one HTML file that opens offline.

    Parameters
    ----------
    path : The HTML file.
    cohort : A fitted `CohortMap`.
    groups : One for each sample, in order or by the names of the samples. None and NaN mark samples without a group.
    about : Plain values to show: "command", "sources", "notes", "versions", and any others.
    """
    shown = cohort_figure(cohort, groups)
    parameters = {label: getattr(cohort, name) for name, label in PARAMETERS.items()}
    settings = {"Kernel": repr(cohort.kernel_)} | {label: value for label, value in parameters.items() if value is not None}
    title = markup('$samples <small>samples,</small> <span class="accent">compared</span>', samples=count(len(shown.names)))
    write_page(
        path,
        f"{count(len(shown.names), 'sample')} compared",
        hero(title, [_rows(shown, cohort.pieces_), f"distance: {DISTANCES[cohort.distance][1]}"], _cards(cohort, shown)),
        [
            _map(shown),
            _distances(shown),
            Section("errors", "Error of each sample", [_certificates(shown, cohort.pieces_)]),
        ],
        ["samples.js", "cohort.js"],
        about=about,
        settings=settings,
        data={"names": list(shown.names), "sampled": cohort.distance == "kl"},
    )


def _map(shown: CohortFigure) -> Section:
    places = np.column_stack([shown.places, np.zeros((len(shown.names), 2))])[:, :2]
    data = {
        "groups": None if shown.groups is None else list(shown.groups),
        "places": packed(places - places.mean(axis=0)),
        "flat": shown.places.shape[1] < 2,
    }
    text = "Each dot is a sample. Similar samples are close to each other. Directions have no meaning."
    return Section(
        "map",
        "Map of the samples",
        [text, plot("map", "Map of the samples", "tall"), aside(name="grid"), aside(name="nameless")],
        data,
    )


def _distances(shown: CohortFigure) -> Section:
    above = np.triu_indices(len(shown.names), 1)
    data = {
        "distances": packed(shown.distances[above]),
        "errors": packed(shown.errors[above]),
        "order": shown.order.tolist(),
    }
    orders = (("alike", "similar samples next to each other"), ("given", "as given"))
    blocks = [
        "Each square is the distance between two samples. Hover over it, or touch it, for the names, the distance and its error.",
        controls([choice("order", "Order", orders)], "Order of the samples"),
        plot("heat", "Matrix of the distances between samples", "heat"),
    ]
    return Section("heat", "Distances", blocks, data)


def _rows(shown: CohortFigure, pieces: str) -> str:
    """The number of rows, and of the atoms or components of each sample."""
    if shown.sizes is None:
        return ""
    rows, sizes = f"{count(int(shown.sizes[:, 0].sum()), 'row')} in all", shown.sizes[:, 1]
    if len(set(sizes.tolist())) == 1:
        return f"{rows}, {count(sizes[0], pieces.removesuffix('s'))} each"
    return f"{rows}, {sizes.min():,} to {sizes.max():,} {pieces} each"


def _cards(cohort: Any, shown: CohortFigure) -> list[Card]:
    itself = np.eye(len(shown.names), dtype=bool)
    norm, error = (float(np.linalg.norm(matrix[~itself])) for matrix in (shown.distances, shown.errors))
    first, second = np.unravel_index(np.where(itself, np.inf, shown.distances).argmin(), itself.shape)
    far = np.unravel_index(np.where(np.isfinite(shown.distances), shown.distances, -1.0).argmax(), itself.shape)
    text = f"The largest change of the distances by compression, in Frobenius norm, with {percent(cohort.confidence)} confidence."
    if cohort.distance == "kl":
        text = "The standard error of the distances, which are Monte Carlo estimates, in Frobenius norm."
    elif shown.certificates is None:
        text = "All rows were compared, so distances are exact."
    return [
        Card("Closest", f"{shown.distances[first, second]:.3g}", f"{shown.names[first]} and {shown.names[second]}."),
        Card("Farthest", f"{shown.distances[far]:.3g}", f"{shown.names[far[0]]} and {shown.names[far[1]]}."),
        Card("Error of distances", percent(error / norm if norm > 0 else 0.0), text),
        Card("Distance", *DISTANCES[cohort.distance][::2]) if shown.groups is None else _groups(shown),
    ]


def _groups(shown: CohortFigure) -> Card:
    """The mean distance within groups, compared with the mean distance between groups."""
    groups = np.array([group if group is not None else "" for group in shown.groups or ()], dtype=object)
    known = np.array([group is not None for group in shown.groups or ()])
    both = known[:, None] & known & ~np.eye(len(groups), dtype=bool)
    same = both & (groups[:, None] == groups)
    other = both & ~same
    text = "Shown by colour and shape."
    if same.any() and other.any():
        inside, between = float(np.mean(shown.distances[same])), float(np.mean(shown.distances[other]))
        text = f"Mean distance within groups {inside:.3g}, between groups {between:.3g}."
    return Card("Groups", str(len(set(groups[known].tolist()))), text)


def _certificates(shown: CohortFigure, pieces: str) -> Markup:
    if shown.certificates is None or shown.sizes is None:
        return sentence("All rows were compared: nothing was compressed.")
    rows = []
    for k, (name, certificate, (n, m)) in enumerate(zip(shown.names, shown.certificates, shown.sizes, strict=True)):
        low, high = certificate.interval
        interval = "exact" if certificate.method == "exact" else f"{percent(low)} to {percent(high)}"
        group = [] if shown.groups is None else [shown.groups[k] or "—"]
        rows.append([name, *group, f"{n:,}", f"{m:,}", percent(certificate.relative_error), interval])
    groups = [] if shown.groups is None else ["group"]
    head = ["sample", *groups, "rows", pieces, "error", f"{percent(shown.certificates[0].confidence)} interval"]
    return table(head, rows, "Relative error of the compression of each sample")


@dataclass(eq=False, repr=False)
class CohortDisplay(MatplotlibDisplay):
    """A cohort: the map of its samples, or the matrix of their distances.

    Parameters
    ----------
    figure : CohortFigure
    """

    figure: CohortFigure

    @classmethod
    def from_estimator(cls, cohort: Any, groups: Sequence[Any] | Mapping[Any, Any] | None = None) -> Self:
        """The display of a fitted `CohortMap`. ``groups`` has one for each sample, in order or by name."""
        return cls(cohort_figure(cohort, groups))

    def plot(self, ax: Any = None, kind: str = "map", labels: bool = False, **kw: Any) -> Self:
        """Draw it on ``ax`` or new axes.

        Parameters
        ----------
        ax : matplotlib axes, optional
        kind : "map" or "distances"
            "distances" is the matrix, with similar samples next to each other.
        labels : bool
            Whether to write the names of the samples.
        **kw : options of ``Axes.scatter`` or ``Axes.imshow``
        """
        self._check(kind, KINDS)
        shown = self.figure
        if kind == "map":
            return self._on(scatter(shown.places, ax, shown.names if labels else None, shown.groups, **kw))
        ax = axes(ax)
        image = ax.imshow(shown.distances[np.ix_(shown.order, shown.order)], **{"cmap": "Blues_r"} | kw)
        ax.figure.colorbar(image, ax=ax, label="distance")
        names = [shown.names[k] for k in shown.order] if labels else []
        ax.set_xticks(range(len(names)), names, rotation=90)
        ax.set_yticks(range(len(names)), names)
        return self._on(ax)


class EmbeddingDisplay(MatplotlibDisplay):
    """Rows at the coordinates of an estimator.

    Parameters
    ----------
    places : (n, k) array
        Coordinates. The first two are drawn.
    groups : (n,) array, optional
        One colour and shape for each value.
    values : (n,) numbers, optional
        Colours on a continuous scale.
    """

    def __init__(self, places: Any, groups: Sequence[Any] | None = None, values: Any = None) -> None:
        array: Array = np.asarray(places, np.float64)
        if array.ndim != 2 or array.shape[1] < 1:
            raise ValueError(f"places must be (n, k), a row of coordinates for each row; got shape {array.shape}")
        if groups is not None and values is not None:
            raise ValueError("give groups or values, not both, since a marker has one colour")
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
        """Draw it on ``ax`` or new axes; ``kw`` are options of ``Axes.scatter``."""
        options = {"s": 12} | kw
        if self.values is not None:
            options = {"c": self.values, "cmap": "cividis"} | options
        ax = scatter(self.places, ax, None, self.groups, things="rows", **options)
        if self.values is not None:
            ax.figure.colorbar(ax.collections[-1], ax=ax)
        ax.set(xlabel="first coordinate", ylabel="second coordinate" if self.places.shape[1] > 1 else "")
        return self._on(ax)
