"""Compilation by numba: cached on disk if possible, and loops that are called by their address.

numba compiles a function together with all functions that it calls, once for every caller. Each loop over tiles would be compiled
with every metric and every family in it, of which it runs one. A loop called by an address that comes as an argument is compiled by
itself, when it is first requested, and one loop over tiles serves them all. A call costs nanoseconds and serves hundreds of points.
Addresses are those of this process and are never stored. They stay within this package: `distances`.
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
    """These values as float64 in rows, writable: the one kind of array that a loop is compiled for, of eight that there are."""
    return np.require(values, np.float64, ["C", "W"])


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Compile without the GIL, cached: the next process does not compile again.

    What takes long to compile, and is found in no loop therefore: arrays set from arrays by slices and reductions of numpy (loops
    do), and the number 0 itself as an argument, for which a function is compiled once more (`np.int64(0)` is not).
    """

    def wrap(function: Any) -> Any:
        try:
            return njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # a read-only installation and no writable home: each process compiles for itself
            return njit(nogil=True, **options)(function)

    return wrap


def inner(**options: Any) -> Callable[[Any], Any]:
    """Compile what only compiled functions of its own file or idea call: without the way in from Python, which takes as long to
    compile as a short loop, and longer where a state of many arrays comes in.

    Python must not call it, for there is nothing to call: a test looks that it does not.
    """
    return compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)


ADDRESSED = "reduset:compile"  # the event of what numba tells nothing of: loops that are called by their address


class _Ear(event.Listener):
    """Hears when compiling begins and when it is over; what is compiled on the way is part of it."""

    def __init__(self, tell: Callable[[bool], None]) -> None:
        self.tell, self.depth = tell, 0

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            self.tell(True)

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.tell(False)


@contextmanager
def report_compilation(tell: Callable[[bool], None]) -> Iterator[None]:
    """Call ``tell(True)`` whenever something begins to be compiled inside, and ``tell(False)`` when it has been."""
    ear = _Ear(tell)
    with event.install_listener("numba:compile", ear), event.install_listener(ADDRESSED, ear):
        yield


REAL: dict[type, Any] = {np.float32: types.float32, np.float64: types.float64}
_COMPILING = RLock()  # two threads that ask at once get one address


class Addressed:
    """A loop over values of one precision, compiled for it when its address is first asked for, and cached on disk."""

    def __init__(self, function: Callable[..., None], arguments: Callable[[Any], Sequence[Any]]) -> None:
        self._function, self._arguments = function, arguments
        self._compiled: dict[type, Any] = {}  # kept: what an address points to lives as long as this

    def at(self, dtype: type) -> int:
        """Where the loop over values of this type is."""
        found = self._compiled.get(dtype)
        if found is None:
            with _COMPILING:
                found = self._compiled.get(dtype) or self._compile(dtype)
                self._compiled[dtype] = found
        return int(found.address)

    def _compile(self, dtype: type) -> Any:
        signature = types.void(*self._arguments(REAL[dtype]))
        with event.trigger_event(ADDRESSED):
            try:
                return cfunc(signature, cache=True, fastmath=FAST)(self._function)
            except RuntimeError:  # nowhere to write, as in `compiled`
                return cfunc(signature, fastmath=FAST)(self._function)


def addressed(arguments: Callable[[Any], Sequence[Any]]) -> Callable[[Callable[..., None]], Addressed]:
    """Make a loop one that is called by its address; ``arguments`` are its types, given that of real numbers."""
    return lambda function: Addressed(function, arguments)


def call(builder: Any, address: Any, values: Sequence[Any]) -> None:
    """Write a call of what is at the address into a function that is being compiled."""
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    builder.call(builder.inttoptr(address, kind.as_pointer()), list(values))


def array_of(context: Any, builder: Any, kind: Any, value: Any) -> tuple[Any, list[Any]]:
    """Where the numbers of an array begin, and its shape, in a function that is being compiled."""
    array = make_array(kind)(context, builder, value)
    return array.data, cgutils.unpack_tuple(builder, array.shape)


def require_rows(*arrays: Any) -> None:
    """Refuse to compile for arrays that do not lie row after row."""
    for array in arrays:
        if not isinstance(array, types.Array) or array.layout != "C":
            raise TypingError(f"a loop that is called by its address takes arrays that lie row after row, not {array}")


@intrinsic
def strip(typingctx: Any, array: Any, start: Any, count: Any) -> Any:
    """``array.ravel()[start : start + count]`` without what makes a slice long to compile: bounds, and a count of references."""
    require_rows(array)
    view = types.Array(array.dtype, 1, "C", readonly=not array.mutable)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, _ = array_of(context, builder, signature.args[0], args[0])
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(array.dtype)))
        found = make_array(view)(context, builder)
        populate_array(found, builder.gep(data, [args[1]]), [args[2]], [size], size, meminfo=None)
        return found._getvalue()

    return view(array, types.intp, types.intp), codegen


@intrinsic
def row(typingctx: Any, matrix: Any, index: Any) -> Any:
    """``matrix[index]``, likewise."""
    require_rows(matrix)
    view = types.Array(matrix.dtype, 1, "C", readonly=not matrix.mutable)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, (_, width) = array_of(context, builder, signature.args[0], args[0])
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(matrix.dtype)))
        found = make_array(view)(context, builder)
        populate_array(found, builder.gep(data, [builder.mul(args[1], width)]), [width], [size], size, meminfo=None)
        return found._getvalue()

    return view(matrix, types.intp), codegen
