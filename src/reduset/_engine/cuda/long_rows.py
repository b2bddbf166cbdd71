"""Kernel sums of rows of many columns: inner products on the tensor cores, then a pass over these.

In double precision the cores multiply doubles. In single precision every number is split in two halves of 11 bits each, and three
products of halves make up for one: |z·q| is right to some 2⁻²¹ of |z|·|q|, several times as quick as single precision itself. Where
that is too coarse, for rows far from the middle of the points in bandwidths, it is double precision again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset._engine.cuda.chunks import REALS
from reduset._engine.cuda.device_rows import half_products
from reduset._engine.cuda.kernels import kernel
from reduset._engine.distances import ROOT
from reduset._engine.profile import BLAS_REACH, Profile
from reduset._engine.threads import blocks

THREADS = 128
ENTRIES = 1 << 27  # of a matrix of products
LOW = 2.0**11  # by which the lower halves are magnified, so that they are no subnormal numbers


def launch_products(kind: str, Z: Any, w: Any, Q: Any, real: Any, profile: Profile, span: int, part: Any) -> None:
    """Fill ``part``, (spans, width, m), with the sums over each span of points Z, (n, d), at queries Q, (m, d)."""
    import cupy

    squares, own = ((each * each).sum(axis=1) for each in (Z, Q))
    reach = max(float(squares.max()), float(own.max())) * profile.slope
    if real is np.float32 and (profile.family == ROOT or not reach <= BLAS_REACH[np.float32]):
        real = np.float64
        Z, w, Q, squares, own = (each.astype(real) for each in (Z, w, Q, squares, own))
    table = cupy.asarray(profile.table)
    numbers = np.float64(profile.exponent), table, np.int32(len(table)), np.float64(profile.step)
    program = kernel("long", kind, REAL=REALS[real], D=1, METRIC=profile.metric, FAMILY=profile.family)
    n, d, m = len(Z), Z.shape[1], len(Q)
    halves = _split(Q) if real is np.float32 else None
    for first, last in blocks(part.shape[0], max(1, ENTRIES // (span * m))):
        a, b = first * span, min(n, last * span)
        G = Z[a:b] @ Q.T if halves is None else _by_halves(Z[a:b], halves)
        given = (G, Z[a:b], squares[a:b], w[a:b], np.int64(b - a), Q, own, np.int64(m), np.int32(d), np.int32(span), *numbers)
        program(((m + THREADS - 1) // THREADS, last - first), (THREADS,), (*given, part[first:last]))


def _split(values: Any) -> tuple[Any, Any]:
    """Numbers in single precision as two in half, of which the second is magnified."""
    import cupy

    values = cupy.ascontiguousarray(values)
    high, low = (cupy.empty(values.shape, cupy.float16) for _ in range(2))
    program = kernel("split", LOW=f"{LOW}f")
    program(((values.size + THREADS - 1) // THREADS,), (THREADS,), (values, np.int64(values.size), high, low))
    return high, low


def _by_halves(Z: Any, halves: tuple[Any, Any]) -> Any:
    """(n, m) inner products in single precision, by three products of halves."""
    high, low = _split(Z)
    found = half_products(high, halves[1], 1 / LOW)
    found = half_products(low, halves[0], 1 / LOW, found)
    return half_products(high, halves[0], 1.0, found)
