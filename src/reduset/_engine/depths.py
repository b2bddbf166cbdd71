"""The families: how a gap gives a depth, φ = exp(−depth), and how hard a point pulls. Each is a loop that is called by its address.

The Gaussian's gap is its depth, so there is nothing to call: its address is 0, and who computes asks for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from reduset._engine.addresses import Addressed, addressed, array_of, call, require_rows
from reduset._engine.arithmetic import log_of

LINEAR = 0  # t: the Gaussian (its frame holds the factor √½), and the Laplacian in city-block distance
ROOT = 1  # √t: the Laplacian
LOGARITHM = 2  # a·log(1 + t): the Student
TABLE = 3  # a cubic spline of log(1 + √t): inner products without a fast closed form


def _depth_arguments(real: Any) -> tuple[Any, ...]:
    table = types.CPointer(types.float64)  # (knots, 2), row after row: depth and its slope at each knot
    return types.CPointer(real), types.intp, real, table, types.intp, types.float64


def _pull_arguments(real: Any) -> tuple[Any, ...]:
    return types.CPointer(real), *_depth_arguments(real)


@addressed(_depth_arguments)
def _root(t, count, exponent, table, knots, step):
    for i in range(count):
        t[i] = np.sqrt(t[i])


@addressed(_depth_arguments)
def _logarithm(t, count, exponent, table, knots, step):
    one = type(exponent)(1)
    for i in range(count):
        t[i] = exponent * log_of(one + t[i])


@addressed(_depth_arguments)
def _tabulated(t, count, exponent, table, knots, step):
    last = knots - 2
    for i in range(count):
        x = log_of(1.0 + np.sqrt(t[i])) / step
        k = min(np.int64(x), last)
        x -= k
        if x > 1.0:  # beyond the table: the tail of its last knot, a power law
            t[i] = table[2 * last + 2] + (x - 1.0) * step * table[2 * last + 3]
        else:  # cubic Hermite between two knots
            y = 1.0 - x
            t[i] = (
                y * y * (1.0 + 2.0 * x) * table[2 * k]
                + x * x * (1.0 + 2.0 * y) * table[2 * k + 2]
                + step * x * y * (y * table[2 * k + 1] - x * table[2 * k + 3])
            )


@addressed(_pull_arguments)
def _pull_of_linear(gap, t, count, exponent, table, knots, step):
    for i in range(count):
        t[i] += t[i]


@addressed(_pull_arguments)
def _pull_of_root(gap, t, count, exponent, table, knots, step):
    zero = type(exponent)(0)
    for i in range(count):  # a Laplacian has a corner at its centre: its gradient there is taken as 0
        t[i] = t[i] / np.sqrt(gap[i]) if gap[i] > zero else zero


@addressed(_pull_arguments)
def _pull_of_logarithm(gap, t, count, exponent, table, knots, step):
    one = type(exponent)(1)
    a = exponent + exponent
    for i in range(count):
        t[i] *= a / (one + gap[i])


@addressed(_pull_arguments)
def _pull_by_table(gap, t, count, exponent, table, knots, step):
    last = knots - 2
    for i in range(count):
        r = np.sqrt(gap[i])
        if r == 0.0:
            t[i] = 0.0
            continue
        x = log_of(1.0 + r) / step
        k = min(np.int64(x), last)
        x -= k
        if x > 1.0:
            slope = table[2 * last + 3]
        else:  # the derivative of the cubic Hermite
            rise = 6.0 * x * (1.0 - x) * (table[2 * k + 2] - table[2 * k]) / step
            slope = rise + (1.0 - x) * (1.0 - 3.0 * x) * table[2 * k + 1] + x * (3.0 * x - 2.0) * table[2 * k + 3]
        t[i] *= slope / ((1.0 + r) * r)


_DEPTHS = {ROOT: _root, LOGARITHM: _logarithm, TABLE: _tabulated}
_PULLS = {LINEAR: _pull_of_linear, ROOT: _pull_of_root, LOGARITHM: _pull_of_logarithm, TABLE: _pull_by_table}


def depths_at(family: int, dtype: type) -> int:
    """The address of the loop that turns gaps of this type into depths; 0 where they are depths already."""
    return 0 if family == LINEAR else _address(_DEPTHS[family], family, dtype)


def pulls_at(family: int, dtype: type) -> int:
    """The address of the loop that turns weighted values into pulls."""
    return _address(_PULLS[family], family, dtype)


def _address(loop: Addressed, family: int, dtype: type) -> int:
    if family == TABLE and dtype is np.float32:
        raise TypeError("a table has no loop in single precision: see Profile.in_single")
    return loop.at(dtype)


@intrinsic
def to_depths(typingctx: Any, depths: Any, exponent: Any, table: Any, step: Any, t: Any, count: Any) -> Any:
    """Turn the first ``count`` gaps t into depths, in place; ``depths`` is not 0."""
    require_rows(table, t)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        knots, (number, _) = array_of(context, builder, kinds[2], args[2])
        found, _ = array_of(context, builder, kinds[4], args[4])
        call(builder, args[0], [found, args[5], args[1], knots, number, args[3]])
        return context.get_dummy_value()

    return types.void(types.intp, t.dtype, table, types.float64, t, types.intp), codegen


@intrinsic
def to_pulls(typingctx: Any, pulls: Any, exponent: Any, table: Any, step: Any, gap: Any, t: Any, count: Any) -> Any:
    """Turn weighted values t at squared distances ``gap`` into t·2·d(depth)/d(gap): how hard each point pulls along z − q."""
    require_rows(table, gap, t)
    if gap.dtype != t.dtype:
        raise TypingError(f"pulls are of one precision: {gap}, {t}")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        knots, (number, _) = array_of(context, builder, kinds[2], args[2])
        at, _ = array_of(context, builder, kinds[4], args[4])
        found, _ = array_of(context, builder, kinds[5], args[5])
        call(builder, args[0], [at, found, args[6], args[1], knots, number, args[3]])
        return context.get_dummy_value()

    return types.void(types.intp, t.dtype, table, types.float64, gap, t, types.intp), codegen
