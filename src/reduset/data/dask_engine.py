"""Dask: tasks on the cluster of the client in use, or in Dask's threads. Each pass computes every partition of a collection again.

Collections are Dask arrays, Dask data frames, and lists of delayed arrays or frames. So persist collections that are expensive to
compute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from uuid import uuid4

import numpy as np
from dask.base import compute
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from reduset.data.engine import MIN_TASKS, TASKS_PER_WORKER, Engine, in_one_thread, task_name


class DaskEngine(Engine):
    """Tasks of Dask."""

    encode = "encode such columns equally in all partitions (dask.dataframe.get_dummies(collection.categorize())), or drop them"

    def connected(self, address: str | None) -> AbstractContextManager[Any]:
        if address is None:
            return nullcontext()  # Dask's threads
        from distributed import Client

        client: AbstractContextManager[Any] = Client(address)
        return client

    def parts(self, data: Any) -> list[Any]:
        if hasattr(data, "chunks") and hasattr(data, "rechunk"):
            if data.ndim != 2:
                hint = "; use X.reshape(-1, 1) for points on a line" if data.ndim == 1 else ""
                raise ValueError(f"X must have two dimensions (rows, columns), got {data.ndim}{hint}")
            whole_rows = data if data.numblocks[1] == 1 else data.rechunk({1: -1})
            return list(whole_rows.to_delayed().reshape(-1))
        if hasattr(data, "npartitions") and hasattr(data, "columns"):
            return list(data.to_delayed())
        if not isinstance(data, list | tuple | Delayed):
            raise TypeError(f"X must be a Dask array, a Dask data frame or delayed partitions, got {type(data).__name__}")
        return super().parts(data)

    def stored(self, part: Any) -> Any:
        return part if isinstance(part, Delayed) else delayed(part, traverse=False)

    def whole(self, table: Any) -> Any:
        return table  # a task takes all partitions of a collection

    def gathered(self, vector: Any) -> NDArray[Any]:
        if not isinstance(vector, list | tuple):
            (vector,) = compute(vector)
            return np.asarray(vector)
        parts = [np.asarray(part) for part in compute(*vector)]
        return np.concatenate(parts) if parts[0].ndim else np.asarray(parts)

    def each(self, function: Callable[..., Any], parts: Sequence[Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        shared, size = delayed(function, traverse=False, pure=False), max(MIN_TASKS, TASKS_PER_WORKER * _workers())
        task, name = delayed(in_one_thread, pure=False, traverse=False), task_name(function).replace(" ", "-")
        for a in range(0, len(parts), size):
            pairs = zip(parts[a : a + size], arguments[a : a + size], strict=True)
            yield from compute(*(task(shared, part, given, dask_key_name=f"{name}-{uuid4()}") for part, given in pairs))


def _workers() -> int:
    """The number of threads of the cluster of the current client, or 0 without one."""
    if "distributed" in sys.modules:
        from distributed import get_client

        try:
            return sum(get_client().nthreads().values())
        except ValueError:  # no client
            return 0
    return 0
