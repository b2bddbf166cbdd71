"""The numbers of a cohort's pictures: the report embeds them, the display draws them.

Samples that are alike stand beside each other in the order of the leaves of the tree that average linkage grows; up to some hundred
samples the order is the best one that the tree allows, which takes N³.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._types import Array
from reduset.certificate import Certificate

MOST_ORDERED = 400


@dataclass(frozen=True)
class CohortFigure:
    """A cohort: its samples, their distances, and their places on a map.

    Attributes
    ----------
    names : of the N samples, as texts
    groups : one a sample, None where it has none; None where there are no groups at all
    places : (N, k)
    distances, errors : (N, N)
    order : (N,) samples that are alike beside each other
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
    """(N,) the leaves of the tree that average linkage grows, so that samples that are alike stand beside each other."""
    count = len(distances)
    if count < 3:
        return np.arange(count)
    finite = distances[np.isfinite(distances)]
    filled = np.where(np.isfinite(distances), distances, 2 * finite.max(initial=1.0))
    near = squareform(np.maximum((filled + filled.T) / 2, 0.0), checks=False)
    tree = linkage(near, "average")
    return np.asarray(leaves_list(optimal_leaf_ordering(tree, near) if count <= MOST_ORDERED else tree), np.int64)
