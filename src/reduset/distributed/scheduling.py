"""Where the work is done: on a Dask cluster, or by Dask's own threads; trees of tasks, progress, and an end when it is stopped.

Tasks are functions of their arguments alone, so that Dask may run any of them again, elsewhere, when a worker is lost. Whatever is
added is added in the order of the partitions, `FAN_IN` at a time, so that the result does not depend on who was first.
"""

from __future__ import annotations

import socket
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from dask import config
from dask.base import compute
from dask.callbacks import Callback
from dask.delayed import delayed

from reduset._engine import single_threaded_blas, thread_limit
from reduset._types import Report

FAN_IN = 8
CONNECT_WITHIN = 8.0  # seconds


@dataclass(frozen=True)
class Fault:
    """An error of the input checks in place of a task's result.

    A task that raises leaves the traceback of its worker in the user's error and in the worker's log. A fault is passed on by the
    tasks that take it, ends the work, and is raised as a plain error on the machine of the caller.
    """

    kind: type[Exception]
    message: str

    @classmethod
    def in_place(cls, check: Callable[..., Any], *arguments: Any) -> Any:
        """What a check of the input returns, or its error as a fault."""
        try:
            return check(*arguments)
        except (TypeError, ValueError) as error:
            return cls(TypeError if isinstance(error, TypeError) else ValueError, str(error))


class _Faulty(Exception):
    """Ends the work once a fault is known."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in the one thread that Dask gives it: the cores are shared with the other tasks."""
    given = (each for value in arguments for each in (value if isinstance(value, list) else [value]))
    fault = next((each for each in given if isinstance(each, Fault)), None)
    if fault is not None:
        return fault
    with thread_limit(1), single_threaded_blas():
        return function(*arguments)


def task(name: str, number: int | str, function: Callable[..., Any], *arguments: Any) -> Any:
    """A delayed call; ``name`` is what the dashboard shows."""
    return delayed(partial(alone, function), name=f"{name}-call", pure=False, traverse=False)(
        *arguments, dask_key_name=f"{name}-{number}"
    )


def tasks(name: str, function: Callable[..., Any], each: Iterable[tuple[Any, ...]], *shared: Any) -> list[Any]:
    """A delayed call for each of several arguments, followed by values that all of them take."""
    called = key(name)
    given = [constant(f"{called}-given-{k}", value) for k, value in enumerate(shared)]
    return [task(called, k, function, *arguments, *given) for k, arguments in enumerate(each)]


def constant(name: str, value: Any) -> Any:
    """A value that many tasks take, sent to each worker once."""
    return delayed(value, name=name, traverse=False)


def key(name: str) -> str:
    """A name of tasks that no earlier call has used."""
    return f"{name}-{uuid.uuid4().hex}"


def tree(name: str, leaves: Sequence[Any], merge: Callable[[int, int], Callable[[list[Any]], Any]], down_to: int = 1) -> list[Any]:
    """Merge delayed values, in order, until at most ``down_to`` are left; ``merge(level, place)`` makes the function for a node."""
    level, found = 0, list(leaves)
    while len(found) > down_to:
        groups = [found[a : a + FAN_IN] for a in range(0, len(found), FAN_IN)]
        found = [
            group[0] if len(group) == 1 else task(name, f"{level}-{place}", merge(level, place), group)
            for place, group in enumerate(groups)
        ]
        level += 1
    return found


class Scheduler(ABC):
    """Who does the work."""

    def run(self, goals: Sequence[Any], counted: Sequence[Any], report: Report) -> list[Any]:
        """The values of delayed goals; ``report`` is told how many of the counted ones, which they are made of, are done.

        The first fault among the counted ones ends the work and is raised.
        """
        try:
            return self._run(goals, counted, report)
        except _Faulty as error:
            fault = error.fault
        raise fault.kind(fault.message) from None

    @abstractmethod
    def _run(self, goals: Sequence[Any], counted: Sequence[Any], report: Report) -> list[Any]:
        """The same, by this scheduler; a fault is a `_Faulty`."""


class LocalScheduler(Scheduler):
    """Dask's own scheduler in this process: threads, unless its configuration says otherwise."""

    def _run(self, goals: Sequence[Any], counted: Sequence[Any], report: Report) -> list[Any]:
        waiting = {each.key for each in counted}
        total = len(waiting)

        def done(key: Any, value: Any, *_: Any) -> None:
            if isinstance(value, Fault):
                raise _Faulty(value)
            if key in waiting:
                waiting.remove(key)
                report(total - len(waiting), total)

        report(0, total)
        with Callback(posttask=done):
            return list(compute(*goals, scheduler=self._configured()))

    def _configured(self) -> Any:
        """The scheduler of Dask's configuration; a client that is gone may have left its own there."""
        name = config.get("scheduler", "threads")
        return "threads" if name in ("dask.distributed", "distributed") else name


class ClusterScheduler(Scheduler):
    """A cluster, through its client."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._address = str(client.scheduler.address)

    def _run(self, goals: Sequence[Any], counted: Sequence[Any], report: Report) -> list[Any]:
        from distributed import as_completed

        keys = {each.key for each in counted}
        report(0, len(keys))
        futures = self._client.compute([*goals, *counted])
        ends, running, done = futures[: len(goals)], set(futures), 0
        del futures  # what is merged already may be forgotten
        try:
            for future in as_completed(running.copy(), loop=self._client.loop):  # which else asks for a default client
                running.discard(future)
                if future.status != "finished":
                    future.result()  # raises what went wrong
                if future.type is Fault:  # known here without the result
                    raise _Faulty(future.result())
                if future.key in keys:
                    done += 1
                    report(done, len(keys))
            return list(self._client.gather(ends))
        except (CancelledError, UnboundLocalError):  # the latter from distributed itself, where what it waits for is cancelled
            raise ConnectionError(f"the Dask cluster at {self._address} is gone, or has cancelled the work") from None
        finally:  # nobody waits for what is still to be done, so that it is not begun
            for future in running:
                future.release()


@contextmanager
def scheduler(client: Any = None) -> Iterator[Scheduler]:
    """Who is to do the work: the client or the scheduler's address given, the client in use, or else threads.

    A task that asks for more has its worker's cluster do it.
    """
    with _opened(client) as found:
        yield LocalScheduler() if found is None else ClusterScheduler(found)


def _opened(client: Any) -> AbstractContextManager[Any]:
    """The client to work through, None for threads; what was opened here is closed afterwards."""
    if isinstance(client, str):
        return _connected(client)
    if client is None and _current("get_worker") is not None:
        from distributed import worker_client

        return worker_client()  # which leaves the task's thread to the work that the task waits for
    found = _current("default_client") if client is None else client
    if found is None:
        return nullcontext()
    if not hasattr(found, "compute") or not hasattr(found, "cancel"):
        raise TypeError(f"client must be a distributed.Client, the address of a scheduler, or None; got {client!r}")
    if getattr(found, "asynchronous", False):
        raise TypeError("client must not be asynchronous: this call waits for its result; use Client(..., asynchronous=False)")
    if found.status != "running":
        raise ConnectionError(f"client is not connected to a scheduler, its status is {found.status!r}; open another one")
    return nullcontext(found)


def _current(name: str) -> Any:
    """What ``distributed.get_worker`` finds inside a task, or ``default_client`` anywhere; None where there is none."""
    if "distributed" not in sys.modules:  # whoever has one has imported it
        return None
    import distributed

    try:
        return getattr(distributed, name)()
    except ValueError:
        return None


def _connected(address: str) -> Any:
    from distributed import Client

    try:
        _require_answer(address)
        return Client(address, timeout=CONNECT_WITHIN, set_as_default=False)
    except Exception as error:  # whatever answers there may be no scheduler, and may say anything
        words = str(error).strip().splitlines()
        raise ConnectionError(
            f"no Dask scheduler answers at {address!r} ({words[0] if words else type(error).__name__}); is it running?"
        ) from None


def _require_answer(address: str) -> None:
    """Knock: a client that finds nobody keeps trying, and complains long after it was given up."""
    from distributed.comm.addressing import get_address_host_port, parse_address

    if parse_address(address)[0] != "inproc":
        socket.create_connection(get_address_host_port(address), timeout=CONNECT_WITHIN).close()
