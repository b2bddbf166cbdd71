"""Engines: where the tasks of a pass over partitions run. A task is a function of one partition.

`FutureEngine` keeps a bounded number of tasks in flight. Results are returned in the order of the partitions, so no result depends
on the number of workers. If the caller stops, tasks that have not begun are cancelled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine import single_threaded_blas, thread_limit

MIN_TASKS = 32  # tasks in flight
TASKS_PER_WORKER = 4


class Engine(ABC):
    """A way to run a function of each partition.

    Attributes
    ----------
    encode : advice on columns of text, for errors
    """

    encode = "encode such columns equally in all partitions, or drop them"

    @abstractmethod
    def each(self, function: Callable[..., Any], parts: Sequence[Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """The results of ``function(part, *arguments[k])`` for the k-th partition, in order."""

    @abstractmethod
    def connected(self, address: str | None) -> AbstractContextManager[Any]:
        """A context with a connection to the cluster at an address, or to workers on this machine."""

    def parts(self, data: Any) -> list[Any]:
        """The partitions of the data, as `each` takes them."""
        return [self.stored(part) for part in (data if isinstance(data, list | tuple) else [data])]

    def stored(self, part: Any) -> Any:
        """A partition as `each` takes it."""
        return part

    def whole(self, table: Any) -> Any:
        """A table as one partition, which one task computes."""
        return self.stored(table)

    def gathered(self, vector: Any) -> NDArray[Any]:
        """The (n,) entries of a vector in partitions."""
        parts = self.parts(vector)
        return np.concatenate([np.ravel(part) for part in self.each(np.asarray, parts, [()] * len(parts))])


class FutureEngine(Engine):
    """An engine with tasks that are submitted one by one."""

    @abstractmethod
    def _submitter(self, function: Callable[..., Any]) -> Callable[[Any, tuple[Any, ...]], Any]:
        """A function that begins a task for a partition and its arguments."""

    @abstractmethod
    def _result(self, task: Any) -> Any:
        """The result of a task."""

    @abstractmethod
    def _cancel(self, task: Any) -> None:
        """Do not begin a task, if it has not begun."""

    @abstractmethod
    def _workers(self) -> int:
        """The number of tasks that run at the same time, or 0 if unknown."""

    def each(self, function: Callable[..., Any], parts: Sequence[Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        limit, submit = max(MIN_TASKS, TASKS_PER_WORKER * self._workers()), self._submitter(function)
        waiting: deque[Any] = deque()
        try:
            for part, given in zip(parts, arguments, strict=True):
                if len(waiting) == limit:
                    yield self._result(waiting.popleft())
                waiting.append(submit(part, given))
            while waiting:
                yield self._result(waiting.popleft())
        finally:
            for task in waiting:
                self._cancel(task)


@dataclass(frozen=True)
class ExecutorEngine(FutureEngine):
    """Tasks in the threads or processes of a `concurrent.futures.Executor`. Engines with the same executor are equal."""

    executor: Executor

    def connected(self, address: str | None) -> AbstractContextManager[Any]:
        return nullcontext()

    def _submitter(self, function: Callable[..., Any]) -> Callable[[Any, tuple[Any, ...]], Any]:
        return lambda part, given: self.executor.submit(in_one_thread, function, part, given)

    def _result(self, task: Any) -> Any:
        return task.result()

    def _cancel(self, task: Any) -> None:
        task.cancel()

    def _workers(self) -> int:
        return int(getattr(self.executor, "_max_workers", 0))


def in_one_thread(function: Callable[..., Any], part: Any, given: tuple[Any, ...]) -> Any:
    """A function of one partition, in one thread, because the tasks of a worker share its cores."""
    with thread_limit(1), single_threaded_blas():
        return function(part, *given)


def task_name(function: Callable[..., Any]) -> str:
    """The name of the tasks of a function, such as "reduset kernel_sums": that of the innermost function of partial calls."""
    while isinstance(function, partial):
        inner = next((value for value in function.args if callable(value)), None)
        function = function.func if inner is None else inner
    return f"reduset {getattr(function, '__name__', type(function).__name__).strip('_')}"
