"""Compilation by numba: cached on disk if possible, and loops that are called by their address.

numba compiles a function together with all functions that it calls, once for every caller. Each loop over tiles would then contain
every metric and every family, although it runs one of each. Here a loop over points is passed as an address. It is compiled
separately on first use, and one loop over tiles serves all of them. A call costs nanoseconds and serves hundreds of points.
Addresses are valid in this process only, are never stored, and stay within this package (`distances`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np
from llvmlite import ir
from numba import cfunc, njit, types
from numba.core import cgutils, event
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from reduset._engine.arithmetic import FAST
from reduset._types import Array


def for_loops(values: Any) -> Array:
    """Convert to float64 in C order, writable. Loops are compiled for this one kind of array out of eight."""
    return np.require(values, np.float64, ["C", "W"])


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Compile without the GIL and cache the result for the next process.

    Two things compile slowly and are avoided in loops. The first is assigning arrays by slices and numpy reductions (loops are
    faster). The second is the literal 0 as an argument, for which numba compiles the function again (`np.int64(0)` avoids this).
    """

    def wrap(function: Any) -> Any:
        try:
            return njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # a read-only installation without a writable home directory, so that each process compiles again
            return njit(nogil=True, **options)(function)

    return wrap


def inner(**options: Any) -> Callable[[Any], Any]:
    """Compile a function that only compiled functions call, without the wrapper for Python.

    The wrapper takes as long to compile as a short loop, and longer for a state of many arrays. Python must not call such a
    function; a test checks this.
    """
    return compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)


ADDRESSED = "reduset:compile"  # event for loops called by address, for which numba emits no event


class _CompilationListener(event.Listener):
    """Report when compilation begins and ends; nested compilations count as one."""

    def __init__(self, report: Callable[[bool], None]) -> None:
        self.report, self.depth = report, 0

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            self.report(True)

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.report(False)


@contextmanager
def report_compilation(report: Callable[[bool], None]) -> Iterator[None]:
    """Call ``report(True)`` when a compilation begins inside the context, and ``report(False)`` when it ends."""
    listener = _CompilationListener(report)
    with event.install_listener("numba:compile", listener), event.install_listener(ADDRESSED, listener):
        yield


REAL: dict[type, Any] = {np.float32: types.float32, np.float64: types.float64}
_COMPILING = RLock()  # two threads that request a loop at once get one address


class Addressed:
    """A loop over values of one precision. It is compiled on the first request of its address, and cached on disk."""

    def __init__(self, function: Callable[..., None], arguments: Callable[[Any], Sequence[Any]]) -> None:
        self._function, self._arguments = function, arguments
        self._compiled: dict[type, Any] = {}  # keeps the compiled code alive, since addresses point into it

    def at(self, dtype: type) -> int:
        """The address of the loop for values of this type."""
        loop = self._compiled.get(dtype)
        if loop is None:
            with _COMPILING:
                loop = self._compiled.get(dtype) or self._compile(dtype)
                self._compiled[dtype] = loop
        return int(loop.address)

    def _compile(self, dtype: type) -> Any:
        signature = types.void(*self._arguments(REAL[dtype]))
        with event.trigger_event(ADDRESSED):
            try:
                return cfunc(signature, cache=True, fastmath=FAST)(self._function)
            except RuntimeError:  # no writable directory, as in `compiled`
                return cfunc(signature, fastmath=FAST)(self._function)


def addressed(arguments: Callable[[Any], Sequence[Any]]) -> Callable[[Callable[..., None]], Addressed]:
    """Make a function a loop called by its address; ``arguments`` returns its argument types for a type of real numbers."""
    return lambda function: Addressed(function, arguments)


def call(builder: Any, address: Any, values: Sequence[Any]) -> None:
    """Emit a call of the function at an address into a function that is being compiled."""
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    builder.call(builder.inttoptr(address, kind.as_pointer()), list(values))


def array_of(context: Any, builder: Any, kind: Any, value: Any) -> tuple[Any, list[Any]]:
    """The data pointer and the shape of an array, in a function that is being compiled."""
    array = make_array(kind)(context, builder, value)
    return array.data, cgutils.unpack_tuple(builder, array.shape)


def require_rows(*arrays: Any) -> None:
    """Raise `TypingError` for arrays that are not in C order."""
    for array in arrays:
        if not isinstance(array, types.Array) or array.layout != "C":
            raise TypingError(f"a loop called by its address needs arrays in C order, got {array}")


@intrinsic
def strip(typingctx: Any, array: Any, start: Any, count: Any) -> Any:
    """``array.ravel()[start : start + count]``, without bounds checks and reference counts, which make slices slow to compile."""
    require_rows(array)
    view = types.Array(array.dtype, 1, "C", readonly=not array.mutable)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, _ = array_of(context, builder, signature.args[0], args[0])
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(array.dtype)))
        result = make_array(view)(context, builder)
        populate_array(result, builder.gep(data, [args[1]]), [args[2]], [size], size, meminfo=None)
        return result._getvalue()

    return view(array, types.intp, types.intp), codegen


@intrinsic
def row(typingctx: Any, matrix: Any, index: Any) -> Any:
    """``matrix[index]``, compiled in the same way."""
    require_rows(matrix)
    view = types.Array(matrix.dtype, 1, "C", readonly=not matrix.mutable)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, (_, width) = array_of(context, builder, signature.args[0], args[0])
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(matrix.dtype)))
        result = make_array(view)(context, builder)
        populate_array(result, builder.gep(data, [builder.mul(args[1], width)]), [width], [size], size, meminfo=None)
        return result._getvalue()

    return view(matrix, types.intp), codegen
