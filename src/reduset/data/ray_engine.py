"""Ray: tasks on the cluster to which the process is connected. Blocks stay in the object store of the machine that has them.

Data are a Ray Dataset, or a list of references to arrays, frames or Arrow tables. A Dataset is computed once, when it is opened,
with its blocks in order. Ray repeats the tasks of a lost worker.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ray

from reduset.data.engine import FutureEngine, in_one_thread, task_name
from reduset.io import need


class RayEngine(FutureEngine):
    """Tasks of Ray."""

    @contextmanager
    def connected(self, address: str | None) -> Iterator[None]:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
            for number, handler in handlers.items():  # Ray sets its own, which end the process before files are removed
                signal.signal(number, handler)
            yield
        finally:
            ray.shutdown()

    def parts(self, data: Any) -> list[Any]:
        if not hasattr(data, "to_arrow_refs"):
            return super().parts(data)
        options = data.context.execution_options
        preserved, options.preserve_order = options.preserve_order, True
        try:
            return list(data.to_arrow_refs())
        finally:
            options.preserve_order = preserved

    def stored(self, part: Any) -> Any:
        return part if isinstance(part, ray.ObjectRef) else ray.put(part)

    def whole(self, table: Any) -> Any:
        parts = self.parts(table)
        return parts[0] if len(parts) == 1 else ray.remote(_concatenated).options(name="reduset join").remote(*parts)

    def _submitter(self, function: Callable[..., Any]) -> Callable[[Any, tuple[Any, ...]], Any]:
        task, shared = ray.remote(in_one_thread).options(name=task_name(function)), ray.put(function)
        return lambda part, given: task.remote(shared, part, given)

    def _result(self, task: Any) -> Any:
        try:
            return ray.get(task)
        except ray.exceptions.RayTaskError as error:  # its message is the traceback of the worker
            if isinstance(error.cause, Exception):
                raise error.cause from error
            raise

    def _cancel(self, task: Any) -> None:
        ray.cancel(task)

    def _workers(self) -> int:
        return int(ray.cluster_resources().get("CPU", 0))


def _concatenated(*tables: Any) -> Any:
    """Arrow tables, one after the other."""
    return need("joining blocks", "pyarrow", "tables").concat_tables(tables)
