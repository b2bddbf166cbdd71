"""What the estimators on bags share: checking bags, the cube, and the width of a Gaussian kernel between what bags became."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._engine.profile import Floats
from reduset.compression import Compression
from reduset.features.waves import directions
from reduset.mean import KernelMean

Array = NDArray[np.float64]

SOME_BAGS = 500  # whose distances say what is near
MOST_NUMBERS = 1 << 28  # of the frequencies of random features: 2 GiB


class OnBags(TransformerMixin, BaseEstimator):
    """An estimator whose samples are bags.

    A list of (n, d) arrays or frames, a mapping of names to them, an (N, n, d) array, an Arrow column of lists of points, or one
    long table, where ``group`` names the column that says which bag a row belongs to.
    """

    group: Any = None
    n_jobs: int | None = None
    feature_names_in_: NDArray[Any]

    def _checked(self, bags: Any, *, reset: bool = False) -> tuple[list[Any], list[Floats]]:
        """The names and the points of the bags; with the columns of those that were fitted unless ``reset``."""
        if reset:
            names, parts, columns = _validate.bags(bags, self.group, by="group")
            self.n_features_in_ = parts[0].shape[1]
            self._columns = columns
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            if columns is not None and all(isinstance(column, str) for column in columns):
                self.feature_names_in_ = np.array(columns, dtype=object)
        else:
            check_is_fitted(self)
            names, parts, _ = _validate.bags(bags, self.group, dimension=self.n_features_in_, columns=self._columns, by="group")
        return names, parts

    def _threads(self) -> int | None:
        if self.n_jobs is None or self.n_jobs == -1:
            return None
        return _validate.whole(self.n_jobs, "n_jobs", 1, way_out="-1 or None takes all")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.no_validation = True
        return tags


def with_shares(bags: Any) -> tuple[Any, list[Array | None] | None]:
    """Bags with atoms in place of every `Compression` or `KernelMean` among them, and the shares of points; None for plain bags."""
    items = list(bags.values()) if isinstance(bags, Mapping) else bags if isinstance(bags, list | tuple) else []
    if not any(isinstance(item, Compression | KernelMean) for item in items):
        return bags, None
    points, shares = [], []
    for name, item in zip(bags if isinstance(bags, Mapping) else range(len(items)), items, strict=True):
        mean = item.mean if isinstance(item, Compression) else item
        weighted = isinstance(mean, KernelMean)
        if weighted and mean.mass <= 0:
            raise ValueError(f"bags[{name!r}] must have weights of positive sum, got {mean.mass:.3g}; it is no density")
        points.append(mean.atoms if weighted else mean)
        shares.append(mean.weights / mean.mass if weighted else None)
    return (dict(zip(bags, points, strict=True)) if isinstance(bags, Mapping) else points), shares


def kernel_width_of(value: Any, vectors: Array, rng: np.random.Generator) -> float:
    """σ: a number, or the median distance of (some of) the training vectors."""
    if not isinstance(value, str):
        return _validate.positive(value, "kernel_width", "'median' takes the median distance of the bags")
    _validate.one_of(value, "kernel_width", ("median",))
    some = vectors if len(vectors) <= SOME_BAGS else vectors[np.sort(rng.choice(len(vectors), SOME_BAGS, replace=False))]
    if len(some) < 2:
        return 1.0
    distances = pdist(some)
    middle = float(np.median(distances))
    # more than half of the pairs may coincide; where all do, any width is right
    return middle if middle > 0 else float(distances.max()) or 1.0


def room_for_waves(n_components: Any, length: int, what: str, way_out: str) -> None:
    """Refuse more random frequencies than memory should be asked for, before anything is computed."""
    half = _validate.whole(n_components, "n_components", 2) // 2
    if length * half > MOST_NUMBERS:
        raise ValueError(
            f"n_components={n_components} for vectors of {length:,} numbers ({what}) takes {length * half * 8 / 2**30:.1f} GiB of "
            f"random frequencies, and {MOST_NUMBERS * 8 / 2**30:.0f} are the most; use {way_out}, smaller n_components, or "
            "output='distance'"
        )


def frequencies_of(dimension: int, n_components: Any, orthogonal: Any, width: float, rng: np.random.Generator) -> Array:
    """(dimension, n_components / 2) frequencies of the Gaussian kernel of that width."""
    count = _validate.whole(n_components, "n_components", 2)
    if count % 2:
        raise ValueError(f"n_components must be even, a sine and a cosine each, got {count}; use {count + 1}")
    return directions(dimension, count // 2, _validate.flag(orthogonal, "orthogonal"), rng) / width
