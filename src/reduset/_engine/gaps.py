"""The metrics: how coordinates give the gap t of two points. Each is a loop that is called by its address.

Points lie by columns: coordinate j of point i at ``Z[j·stride + i]``, whether they are a tile of many or a leaf of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from reduset._engine.addresses import addressed, array_of, call, require_rows
from reduset._engine.arithmetic import log_of

SQUARED = 0  # Σ (zⱼ − qⱼ)²
CITYBLOCK = 1  # Σ |zⱼ − qⱼ|
SOFT_CITYBLOCK = 2  # Σ |zⱼ − qⱼ| − log(1 + |zⱼ − qⱼ|): the L2 product of city-block Laplacians


def _arguments(real: Any) -> tuple[Any, ...]:
    return types.CPointer(real), types.intp, types.intp, types.intp, types.CPointer(real), types.CPointer(real)


@addressed(_arguments)
def _squared(Z, stride, count, d, query, t):
    # by fours, so that t is written and read a quarter as often, and summed as `FarthestFirst` counts on; what is left over first
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


@addressed(_arguments)
def _cityblock(Z, stride, count, d, query, t):
    qa = query[0]
    for i in range(count):
        t[i] = abs(Z[i] - qa)
    for j in range(1, d):
        a = j * stride
        qa = query[j]
        for i in range(count):
            t[i] += abs(Z[a + i] - qa)


@addressed(_arguments)
def _soft_cityblock(Z, stride, count, d, query, t):
    for i in range(count):
        t[i] = 0
    for j in range(d):
        a = j * stride
        qa = query[j]
        for i in range(count):
            u = abs(Z[a + i] - qa)
            t[i] += u - log_of(1 + u)


_LOOPS = {SQUARED: _squared, CITYBLOCK: _cityblock, SOFT_CITYBLOCK: _soft_cityblock}


def gaps_at(metric: int, dtype: type) -> int:
    """The address of the loop over gaps of this metric, for coordinates of this type."""
    if metric == SOFT_CITYBLOCK and dtype is np.float32:
        raise TypeError("the soft city-block metric has no loop in single precision: see Profile.in_single")
    return _LOOPS[metric].at(dtype)


@intrinsic
def to_gaps(typingctx: Any, gaps: Any, Z: Any, start: Any, stride: Any, count: Any, query: Any, t: Any) -> Any:
    """t[i] = the gap to ``query`` (d,) of the point whose coordinates are Z.ravel()[start + i + j·stride], for ``count`` points."""
    require_rows(Z, query, t)
    if len({Z.dtype, query.dtype, t.dtype}) != 1:
        raise TypingError(f"gaps are of one precision: {Z}, {query}, {t}")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        points, _ = array_of(context, builder, kinds[1], args[1])
        to, (d,) = array_of(context, builder, kinds[5], args[5])
        found, _ = array_of(context, builder, kinds[6], args[6])
        call(builder, args[0], [builder.gep(points, [args[2]]), args[3], args[4], d, to, found])
        return context.get_dummy_value()

    return types.void(types.intp, Z, types.intp, types.intp, types.intp, query, t), codegen
