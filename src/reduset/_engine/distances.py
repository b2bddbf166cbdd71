"""The loops that compute distances from coordinates and kernel exponents from distances. Each is called by its address.

**Metrics.** A metric gives the distance t of two points; for `SQUARED` it is the squared distance. Points are stored by columns:
coordinate j of point i is at ``Z[j·stride + i]``, for a tile as for a leaf.

**Families.** A family gives the exponent of a distance, φ = exp(−exponent), and the pull of a point. The pull is the factor of
z − q in the gradient. The exponent of the Gaussian is the distance itself. Its address is 0, and no loop is called.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from reduset._engine.arithmetic import log_of
from reduset._engine.compiled import Addressed, addressed, array_of, call, require_rows

SQUARED = 0  # Σ (zⱼ − qⱼ)²
CITYBLOCK = 1  # Σ |zⱼ − qⱼ|
SOFT_CITYBLOCK = 2  # Σ |zⱼ − qⱼ| − log(1 + |zⱼ − qⱼ|): the L2 product of city-block Laplacians


def _distance_arguments(real: Any) -> tuple[Any, ...]:
    return types.CPointer(real), types.intp, types.intp, types.intp, types.CPointer(real), types.CPointer(real)


@addressed(_distance_arguments)
def _squared(Z, stride, count, d, query, t):
    # The first one or two columns start the sum. The others are added by fours, so that t is read and written a quarter as often;
    # a remaining pair comes last. The error bound of `FarthestFirst` relies on this order.
    if d % 2 == 1:
        qa = query[0]
        for i in range(count):
            u = Z[i] - qa
            t[i] = u * u
        j = 1
    else:
        qa = query[0]
        qb = query[1]
        for i in range(count):
            u = Z[i] - qa
            v = Z[stride + i] - qb
            t[i] = u * u + v * v
        j = 2
    while j + 3 < d:
        a = j * stride
        b = a + stride
        c = b + stride
        e = c + stride
        qa = query[j]
        qb = query[j + 1]
        qc = query[j + 2]
        qe = query[j + 3]
        for i in range(count):
            u = Z[a + i] - qa
            v = Z[b + i] - qb
            x = Z[c + i] - qc
            y = Z[e + i] - qe
            t[i] += (u * u + v * v) + (x * x + y * y)
        j += 4
    while j < d:
        a = j * stride
        b = a + stride
        qa = query[j]
        qb = query[j + 1]
        for i in range(count):
            u = Z[a + i] - qa
            v = Z[b + i] - qb
            t[i] += u * u + v * v
        j += 2


@addressed(_distance_arguments)
def _cityblock(Z, stride, count, d, query, t):
    qa = query[0]
    for i in range(count):
        t[i] = abs(Z[i] - qa)
    for j in range(1, d):
        a = j * stride
        qa = query[j]
        for i in range(count):
            t[i] += abs(Z[a + i] - qa)


@addressed(_distance_arguments)
def _soft_cityblock(Z, stride, count, d, query, t):
    for i in range(count):
        t[i] = 0
    for j in range(d):
        a = j * stride
        qa = query[j]
        for i in range(count):
            u = abs(Z[a + i] - qa)
            t[i] += u - log_of(1 + u)


_DISTANCES = {SQUARED: _squared, CITYBLOCK: _cityblock, SOFT_CITYBLOCK: _soft_cityblock}


def distances_at(metric: int, dtype: type) -> int:
    """The address of the loop over distances in this metric, for coordinates of this type."""
    if metric == SOFT_CITYBLOCK and dtype is np.float32:
        raise TypeError("the soft city-block metric does not support single precision, see Profile.in_single")
    return _DISTANCES[metric].at(dtype)


@intrinsic
def to_distances(typingctx: Any, distances: Any, Z: Any, start: Any, stride: Any, count: Any, query: Any, t: Any) -> Any:
    """t[i] = the distance of point i to ``query`` (d,), for ``count`` points.

    Coordinate j of point i is Z.ravel()[start + i + j·stride].
    """
    require_rows(Z, query, t)
    if len({Z.dtype, query.dtype, t.dtype}) != 1:
        raise TypingError(f"Z, query and t must have one precision, got {Z}, {query}, {t}")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        points, _ = array_of(context, builder, kinds[1], args[1])
        to, (d,) = array_of(context, builder, kinds[5], args[5])
        result, _ = array_of(context, builder, kinds[6], args[6])
        call(builder, args[0], [builder.gep(points, [args[2]]), args[3], args[4], d, to, result])
        return context.get_dummy_value()

    return types.void(types.intp, Z, types.intp, types.intp, types.intp, query, t), codegen


LINEAR = 0  # t: the Gaussian (its frame holds the factor √½), and the Laplacian in city-block distance
ROOT = 1  # √t: the Laplacian
LOGARITHM = 2  # a·log(1 + t): the Student kernel
TABLE = 3  # a cubic spline in log(1 + √t): inner products without a fast closed form


def _exponent_arguments(real: Any) -> tuple[Any, ...]:
    table = types.CPointer(types.float64)  # (knots, 2), row after row: exponent and its slope at each knot
    return types.CPointer(real), types.intp, real, table, types.intp, types.float64


def _pull_arguments(real: Any) -> tuple[Any, ...]:
    return types.CPointer(real), *_exponent_arguments(real)


@addressed(_exponent_arguments)
def _root(t, count, exponent, table, knots, step):
    for i in range(count):
        t[i] = np.sqrt(t[i])


@addressed(_exponent_arguments)
def _logarithm(t, count, exponent, table, knots, step):
    one = type(exponent)(1)
    for i in range(count):
        t[i] = exponent * log_of(one + t[i])


@addressed(_exponent_arguments)
def _tabulated(t, count, exponent, table, knots, step):
    last = knots - 2
    for i in range(count):
        x = log_of(1.0 + np.sqrt(t[i])) / step
        k = min(np.int64(x), last)
        x -= k
        if x > 1.0:  # beyond the table, continue its last knot as a power function
            t[i] = table[2 * last + 2] + (x - 1.0) * step * table[2 * last + 3]
        else:  # cubic Hermite between two knots
            y = 1.0 - x
            t[i] = (
                y * y * (1.0 + 2.0 * x) * table[2 * k]
                + x * x * (1.0 + 2.0 * y) * table[2 * k + 2]
                + step * x * y * (y * table[2 * k + 1] - x * table[2 * k + 3])
            )


@addressed(_pull_arguments)
def _pull_of_linear(distance, t, count, exponent, table, knots, step):
    for i in range(count):
        t[i] += t[i]


@addressed(_pull_arguments)
def _pull_of_root(distance, t, count, exponent, table, knots, step):
    zero = type(exponent)(0)
    for i in range(count):  # a Laplacian has no gradient at its centre; 0 is used there
        t[i] = t[i] / np.sqrt(distance[i]) if distance[i] > zero else zero


@addressed(_pull_arguments)
def _pull_of_logarithm(distance, t, count, exponent, table, knots, step):
    one = type(exponent)(1)
    a = exponent + exponent
    for i in range(count):
        t[i] *= a / (one + distance[i])


@addressed(_pull_arguments)
def _pull_by_table(distance, t, count, exponent, table, knots, step):
    last = knots - 2
    for i in range(count):
        r = np.sqrt(distance[i])
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


_EXPONENTS = {ROOT: _root, LOGARITHM: _logarithm, TABLE: _tabulated}
_PULLS = {LINEAR: _pull_of_linear, ROOT: _pull_of_root, LOGARITHM: _pull_of_logarithm, TABLE: _pull_by_table}


def exponents_at(family: int, dtype: type) -> int:
    """The address of the loop that converts distances to exponents; 0 if they are equal."""
    return 0 if family == LINEAR else _address(_EXPONENTS[family], family, dtype)


def pulls_at(family: int, dtype: type) -> int:
    """The address of the loop that converts weighted values to pulls."""
    return _address(_PULLS[family], family, dtype)


def _address(loop: Addressed, family: int, dtype: type) -> int:
    if family == TABLE and dtype is np.float32:
        raise TypeError("a table does not support single precision, see Profile.in_single")
    return loop.at(dtype)


@intrinsic
def to_exponents(typingctx: Any, exponents: Any, exponent: Any, table: Any, step: Any, t: Any, count: Any) -> Any:
    """Convert the first ``count`` distances t to exponents, in place. The address 0 leaves them unchanged."""
    require_rows(table, t)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        knots, (number, _) = array_of(context, builder, kinds[2], args[2])
        result, _ = array_of(context, builder, kinds[4], args[4])
        with builder.if_then(builder.icmp_signed("!=", args[0], args[0].type(0))):
            call(builder, args[0], [result, args[5], args[1], knots, number, args[3]])
        return context.get_dummy_value()

    return types.void(types.intp, t.dtype, table, types.float64, t, types.intp), codegen


@intrinsic
def to_pulls(typingctx: Any, pulls: Any, exponent: Any, table: Any, step: Any, distance: Any, t: Any, count: Any) -> Any:
    """Convert weighted values t to t·2·d(exponent)/d(distance), the factors of z − q in the gradient, for squared ``distance``."""
    require_rows(table, distance, t)
    if distance.dtype != t.dtype:
        raise TypingError(f"distance and t must have one precision, got {distance}, {t}")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        knots, (number, _) = array_of(context, builder, kinds[2], args[2])
        at, _ = array_of(context, builder, kinds[4], args[4])
        result, _ = array_of(context, builder, kinds[5], args[5])
        call(builder, args[0], [at, result, args[6], args[1], knots, number, args[3]])
        return context.get_dummy_value()

    return types.void(types.intp, t.dtype, table, types.float64, distance, t, types.intp), codegen
