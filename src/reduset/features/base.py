"""Input of the estimators on bags: checked bags, weighted bags, and consecutive blocks of bags for the threads.

Blocks depend on the bags alone, so the number of threads changes the time and not the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._engine import get_threads, run_all
from reduset._types import Array, BagsLike, Floats, ProgressLike, Report
from reduset.compression import Compression
from reduset.mean import KernelMean
from reduset.mixture import Mixture

BLOCK_POINTS = 1 << 15
TASKS_BETWEEN_REPORTS = 8  # for each thread


def bag_blocks(sizes: Sequence[int], most_bags: int) -> list[tuple[int, int]]:
    """Consecutive (first, last) bags, at most so many of them and 2¹⁵ points, or a single bag."""
    cuts, first, held = [], 0, 0
    for k, size in enumerate(sizes):
        if k > first and (k - first == most_bags or held + size > BLOCK_POINTS):
            cuts.append((first, k))
            first, held = k, 0
        held += size
    return [*cuts, (first, len(sizes))]


def run_in_rounds(
    tasks: Sequence[Callable[[], None]], done: Sequence[int], report: Report | None = None, threads: int | None = None
) -> None:
    """Run all tasks, and say after every few how many of ``done[-1]`` things are done."""
    step = TASKS_BETWEEN_REPORTS * (get_threads() if threads is None else threads)
    for start in range(0, len(tasks), step):
        run_all(tasks[start : start + step], most=threads)
        if report is not None:
            report(done[min(start + step, len(tasks)) - 1], done[-1])


@dataclass(eq=False, repr=False, kw_only=True)
class BagTransformer(TransformerMixin, BaseEstimator):
    """A transformer whose samples are bags.

    A list of (n, d) arrays or frames, a mapping of names to them, an (N, n, d) array, an Arrow column of lists of points, or one
    long table, where ``group`` names the column that says which bag a row belongs to. Fields are scikit-learn's parameters: the
    constructor stores them and does nothing else.
    """

    group: Any = None
    n_jobs: int | None = None
    progress: ProgressLike = False
    feature_names_in_: NDArray[Any] = field(init=False)

    def _checked(self, bags: BagsLike, *, reset: bool = False) -> tuple[list[Any], list[Floats]]:
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


def with_shares(bags: BagsLike) -> tuple[Any, list[Array | None] | None]:
    """Bags with atoms in place of every `Compression` or `KernelMean` among them, and the shares of points; None for plain bags."""
    items = _items(bags)
    if not any(isinstance(item, Compression | KernelMean | Mixture) for item in items):
        return bags, None
    points, shares = [], []
    for name, item in zip(bags if isinstance(bags, Mapping) else range(len(items)), items, strict=True):
        mean = item.mean if isinstance(item, Compression) else item
        if isinstance(mean, Mixture):
            raise TypeError(
                f"bags[{name!r}] must be points or atoms, got a {type(mean).__name__}, whose components are neither; compress the "
                "bag with pieces='atoms', or give draws of it: mean.sample(1000)"
            )
        weighted = isinstance(mean, KernelMean)
        if weighted and mean.mass <= 0:
            raise ValueError(f"bags[{name!r}] must have weights of positive sum, got {mean.mass:.3g}; it is no density")
        points.append(mean.atoms if weighted else mean)
        shares.append(mean.weights / mean.mass if weighted else None)
    return (dict(zip(bags, points, strict=True)) if isinstance(bags, Mapping) else points), shares


def counts_of(bags: BagsLike, parts: list[Floats]) -> list[int]:
    """How many points each bag has; the atoms of a `Compression` count as those they stand for."""
    counts = [len(part) for part in parts]
    for k, item in enumerate(_items(bags)):
        if isinstance(item, Compression):
            counts[k] = item.n_samples
    return counts


def _items(bags: BagsLike) -> list[Any]:
    """The bags one by one, where they come so; none for tables and columns."""
    return list(bags.values()) if isinstance(bags, Mapping) else list(bags) if isinstance(bags, list | tuple) else []
