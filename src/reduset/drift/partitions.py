"""A Dask collection as a reference: two passes over its partitions, which are never brought together.

The first draws two fair samples, one to shape where rows are looked at and one to say what chance does; the second adds up the sums
(`ReferenceSums`). A collection of few rows is brought together and is a reference like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from reduset._types import Array
from reduset.drift.reference import TOGETHER, Places, ReferenceSums, StoredReference
from reduset.drift.sample import Sample, names_of
from reduset.kernels import Gaussian

if TYPE_CHECKING:
    from reduset.distributed.first_pass import PartitionSketch
    from reduset.distributed.partitions import PartitionRows

GATHERED_ROWS = 200_000


def is_partitioned(value: Any) -> bool:
    """Whether it is a Dask collection, or a list of delayed parts, without importing Dask."""
    first = value[0] if isinstance(value, list | tuple) and value else value
    return type(first).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(first, "dask")


def of_partitions(
    collection: Any, sample_weight: Any, size: int, scales: str | None, keep_rows: bool, rng: np.random.Generator
) -> StoredReference | Sample:
    """The reference that a collection is, or its rows where they are few."""
    from reduset.distributed.partitions import partitions
    from reduset.distributed.scheduling import key, scheduler, tasks, tree
    from reduset.distributed.two_pass import on_rows

    parts = partitions(collection, sample_weight)
    seeds = [int(each) for each in rng.integers(2**63, size=2)]

    def passed(name: str, each: Callable[..., Any], merge: Callable[..., Any], *given: Any) -> Any:
        rows = [(part, weights, parts.weight_column, k) for k, (part, weights) in enumerate(parts.parts)]
        leaves = tasks(f"reduset-{name}", partial(on_rows, each), rows, *given)
        return workers.run(tree(key("reduset-merge"), leaves, lambda *_: merge), leaves, lambda *_: None)[0]

    with scheduler() as workers:
        shaping, fair = passed("look", _two_samples, _joined, seeds)
        fair.require_rows()
        columns, count = fair.columns, fair.count
        shaping, fair = (_equal_rows(each, rng) for each in (shaping, fair))
        if count <= GATHERED_ROWS:
            points, weights = passed("gather", _rows_and_weights, _together)
            return Sample.of(points, weights, columns)
        places = Places.of(shaping, size, scales, rng, 1 if keep_rows else TOGETHER)
        total = passed("sum", _sums, _added, places)
    return StoredReference.put_together(
        places, total, fair, keep_rows, names_of(columns, fair.shape[1]), columns is not None, count
    )


def _equal_rows(sketch: PartitionSketch, rng: np.random.Generator) -> Array:
    """The rows of a sample in random order, each as probable as any other."""
    mean = sketch.mean(Gaussian(1.0))
    return np.asarray(mean.atoms[rng.permutation(mean.size) if mean.is_uniform else mean.draw_rows(mean.size, rng)])


def _rows_and_weights(rows: PartitionRows) -> tuple[Array, Array]:
    return np.asarray(rows.points), np.asarray(rows.weights)


def _together(pairs: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    some = [each for each in pairs if len(each[1])] or list(pairs[:1])
    return np.concatenate([rows for rows, _ in some]), np.concatenate([weights for _, weights in some])


def _two_samples(rows: PartitionRows, seeds: Sequence[int]) -> tuple[PartitionSketch, PartitionSketch]:
    from reduset.distributed.first_pass import look_at

    return look_at(rows, seeds[0]), look_at(rows, seeds[1])


def _joined(pairs: Sequence[tuple[PartitionSketch, PartitionSketch]]) -> tuple[PartitionSketch, PartitionSketch]:
    from reduset.distributed.first_pass import join_sketches

    one, two = zip(*pairs, strict=True)
    return join_sketches(one), join_sketches(two)


def _sums(rows: PartitionRows, places: Places) -> ReferenceSums | None:
    return ReferenceSums.of(places, rows.points, rows.weights) if len(rows.points) else None


def _added(sums: Sequence[ReferenceSums | None]) -> ReferenceSums | None:
    some = [each for each in sums if each is not None]
    return reduce(add, some) if some else None
