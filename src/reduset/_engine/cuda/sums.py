"""Kernel sums on a GPU: `kernel_sums`, `gradient_sums`, `log_sums` and `gram` of the engine.

Points are processed in chunks and queries in blocks, both in the coordinates of the frame. Single precision follows the rules of
the processor (`_engine.sums`): weights of one sign, moderate coordinates, and results that are not deep in a tail. Chunks that fail
the second test are computed in double precision. Queries that fail the last test are computed again in double precision.

Rows of many columns use inner products on the tensor cores. In double precision the cores multiply doubles. In single precision
every number is split into two halves of 11 bits each, and three products of halves replace one product. The error of |z·q| is about
2⁻²¹ of |z|·|q|, and this is several times faster than single precision itself. If that is too coarse, for rows many bandwidths from
the middle of the points, double precision is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reduset._engine.cuda.chunks import REALS, chunks, frame_coordinates, on_gpu, uploaded_weights
from reduset._engine.cuda.device_rows import half_products
from reduset._engine.cuda.guard import with_fitting_blocks
from reduset._engine.cuda.kernels import kernel
from reduset._engine.cuda.points import DevicePoints
from reduset._engine.distances import LINEAR, ROOT, SQUARED
from reduset._engine.profile import (
    BLAS_REACH,
    MAX_REGISTER_COLUMNS,
    SINGLE_FLOOR,
    SINGLE_REACH,
    Frame,
    Profile,
    extent,
    takes_single,
)
from reduset._engine.threads import blocks
from reduset._types import Precision

THREADS = 128
SPAN = 1 << 13  # points per block
LONG_ENTRIES = 1 << 28  # entries of a block of queries with many columns
ENTRIES, PART_ENTRIES = 1 << 26, 1 << 26  # entries of a chunk of points or a block of queries, and of partial sums
REGISTERS: dict[Any, int] = {np.float32: 128, np.float64: 32}  # coordinates of queries held by one thread
MAX_QUERIES_PER_THREAD = 6  # with more queries, registers limit the number of threads
MAX_TILE_POINTS, SHARED_BYTES = 128, 1 << 15  # of a tile, and its size in bytes
VALUES, LOGS, GRADIENTS = "value_sums", "log_sums", "gradient_sums"
FILES = {VALUES: "sums", LOGS: "logs", GRADIENTS: "gradients"}

PRODUCT_ENTRIES = 1 << 27  # entries of a matrix of products
LOW_FACTOR = 2.0**11  # scales the lower halves, so that they are not subnormal
GRAM_THREADS = 256
GRAM_ENTRIES = 1 << 26  # entries of the matrix at a time


class _Chunk(NamedTuple):
    """Points in the frame's coordinates, weights, the precision of both, and the largest squared length for products."""

    points: Any
    weights: Any
    real: Any
    close: float


class _Sum:
    """One kind of sum over points on any device."""

    def __init__(self, kind: str, points: Any, weights: Any, frame: Frame, profile: Profile) -> None:
        self.kind, self.points, self.weights, self.frame, self.profile = kind, points, weights, frame, profile
        self.d = frame.centre.shape[0]
        self.width = {VALUES: 1, LOGS: 2, GRADIENTS: 1 + self.d}[kind]
        corner = points.reach(frame) if isinstance(points, DevicePoints) else np.full(self.d, np.inf)
        self._largest, self._longest = float(corner.max()), float(corner @ corner)
        if self.d > MAX_REGISTER_COLUMNS and (kind == GRADIENTS or profile.metric != SQUARED):
            name = "gradients" if kind == GRADIENTS else "sums of this kernel"
            raise ValueError(
                f"points must have at most {MAX_REGISTER_COLUMNS} columns for {name} on a GPU, got {self.d}; copy them to main "
                "memory"
            )

    def at(self, queries: DevicePoints, chosen: Any, unit: float = 1.0, reach: float = np.inf) -> Any:
        """(width, m) at queries. If ``chosen`` is None, each chunk of points uses single precision if its coordinates are within
        reach.

        NaN for queries with a coordinate beyond the reach of single precision, if that was used.
        """
        import cupy

        out = cupy.empty((self.width, len(queries)))
        within = chosen is not None or bool(queries.reach(self.frame).max() <= reach)
        entries = ENTRIES if self.d <= MAX_REGISTER_COLUMNS else LONG_ENTRIES
        rows = max(THREADS, entries // self.d // max(1, self.width // 4))
        chunk_rows = self._chunk_rows

        def work(length: int) -> None:
            # if memory limits the queries, chunks of points shrink in proportion
            chunk = max(SPAN, chunk_rows * length // rows // SPAN * SPAN)
            kept = list(self._chunks(chosen, unit, reach, chunk)) if len(self.points) <= chunk else None
            for a, b in blocks(len(queries), length):
                parts = self._chunks(chosen, unit, reach, chunk) if kept is None else kept
                out[:, a:b] = self._block(queries.values[a:b], parts, np.inf if within else reach)

        with_fitting_blocks(work, rows, THREADS)
        return out

    @property
    def _chunk_rows(self) -> int:
        """Number of points at a time."""
        return max(SPAN, ENTRIES // self.d // SPAN * SPAN)

    def _chunks(self, chosen: Any, unit: float, reach: float, rows: int) -> Iterator[_Chunk]:
        profile = self.profile
        for a, b, values in chunks(self.points, rows):
            real = np.float32 if chosen is None else chosen
            Z = frame_coordinates(values, self.frame, real)
            if chosen is None and not (self._largest <= reach or _largest(Z) <= reach):
                real = np.float64
                Z = frame_coordinates(values, self.frame, real)
            close = BLAS_REACH[real] / profile.slope
            if self.kind != VALUES or profile.metric != SQUARED or profile.family == ROOT:
                close = -1.0  # a root magnifies cancellation
            elif not (self._longest <= close or _longest(Z) <= close):
                close = -1.0
            yield _Chunk(Z, uploaded_weights(self.weights, a, b, unit, real), real, close)

    def _block(self, queries: Any, parts: Iterable[_Chunk], reach: float) -> Any:
        import cupy

        total = cupy.zeros((self.width, len(queries)))
        if self.kind == LOGS:
            total[0] = np.inf
        coordinates: dict[Any, Any] = {}
        for part in parts:
            if part.real not in coordinates:
                coordinates[part.real] = frame_coordinates(queries, self.frame, part.real)
            self._add(part, coordinates[part.real], total)
        if np.isfinite(reach) and np.float32 in coordinates:
            total[:, cupy.abs(coordinates[np.float32]).max(axis=1) > reach] = np.nan
        return total

    def _add(self, points: _Chunk, Q: Any, total: Any) -> None:
        """Add the sums over one chunk of points, one span after the other."""
        import cupy

        Z, w, real, _ = points
        group = max(1, PART_ENTRIES // (self.width * len(Q)))
        for a, b in blocks(len(Z), group * SPAN):
            spans = (b - a + SPAN - 1) // SPAN
            part = cupy.empty((spans, self.width, len(Q)))
            if self.d > MAX_REGISTER_COLUMNS:
                _launch_products(self.kind, Z[a:b], w[a:b], Q, real, self.profile, SPAN, part)
            else:
                self._launch(points._replace(points=Z[a:b], weights=w[a:b]), Q, part)
            count = len(Q) if self.kind == LOGS else self.width * len(Q)
            add = kernel("add", "add_logs" if self.kind == LOGS else "add_sums")
            add(((count + THREADS - 1) // THREADS,), (THREADS,), (part, np.int32(spans), np.int64(count), total))

    def _launch(self, points: _Chunk, Q: Any, part: Any) -> None:
        import cupy

        profile, d, (Z, w, real, close) = self.profile, self.d, points
        queries_per_thread = 1 if self.kind == GRADIENTS else max(1, min(MAX_QUERIES_PER_THREAD, REGISTERS[real] // d))
        tile = min(MAX_TILE_POINTS, SHARED_BYTES // (d * np.dtype(real).itemsize))
        defined = {"REAL": REALS[real], "D": d, "R": queries_per_thread, "TILE": tile, "THREADS": THREADS}
        if self.kind == VALUES:
            defined["FOLDED"] = int(real is np.float32 and profile.metric == SQUARED and profile.family == LINEAR)
        program = kernel(FILES[self.kind], self.kind, **defined, METRIC=profile.metric, FAMILY=profile.family)
        table = cupy.asarray(profile.table)
        numbers = np.float64(profile.exponent), table, np.int32(len(table)), np.float64(profile.step), np.float64(close)
        grid = (len(Q) + THREADS * queries_per_thread - 1) // (THREADS * queries_per_thread), part.shape[0]
        program(grid, (THREADS,), (Q, np.int64(len(Q)), Z, w, np.int64(len(Z)), np.int32(SPAN), *numbers, part))


def _largest(Z: Any) -> float:
    """The largest coordinate in absolute value."""
    return max(-float(Z.min()), float(Z.max()))


def _longest(Z: Any) -> float:
    """The largest squared length."""
    return float((Z * Z).sum(axis=1).max())


def kernel_sums(points: Any, weights: Any, queries: Any, frame: Frame, profile: Profile, precision: Precision = "double") -> Any:
    """Σᵢ wᵢ φ(xᵢ, q) for each query, (m,), on the device of the queries."""
    with on_gpu(points, queries) as (uploaded, bring_back):
        return bring_back(_values(points, weights, uploaded, frame, profile, precision))


def _values(points: Any, weights: Any, queries: Any, frame: Frame, profile: Profile, precision: Precision) -> Any:
    import cupy

    work = _Sum(VALUES, points, weights, frame, profile)
    low, high = extent(weights)
    single = profile.in_single if precision == "single" else takes_single(points, weights, queries, profile)
    if precision == "double" or not single:
        return work.at(queries, np.float64)[0]
    unit = max(-low, high) or 1.0
    sums = work.at(queries, np.float32 if precision == "single" else None, unit, _reach(profile, points.shape[1]))[0]
    sums *= unit
    if precision == "auto":
        unsafe = cupy.flatnonzero(~(cupy.abs(sums) >= SINGLE_FLOOR * abs(_total_weight(weights))))
        if len(unsafe):
            sums[unsafe] = work.at(queries.among(unsafe), np.float64)[0]
    return sums


def _total_weight(weights: Any) -> float:
    return len(weights) * float(weights[0]) if weights.strides == (0,) else float(weights.sum())


def gradient_sums(
    points: Any, weights: Any, queries: Any, frame: Frame, profile: Profile, precision: Precision = "double"
) -> tuple[Any, Any]:
    """Σᵢ wᵢ φ(xᵢ, q), (m,), and Σᵢ wᵢ ∇φ(xᵢ, q) in the frame's coordinates, (m, d), in one pass."""
    import cupy

    chosen = np.float64 if precision == "double" or not profile.in_single else None if precision == "auto" else np.float32
    unit = 1.0 if chosen is np.float64 else max(map(abs, extent(weights))) or 1.0
    with on_gpu(points, queries) as (uploaded, bring_back):
        work = _Sum(GRADIENTS, points, weights, frame, profile)
        both = work.at(uploaded, chosen, unit, _reach(profile, points.shape[1]))
        if chosen is None:
            beyond = cupy.flatnonzero(cupy.isnan(both[0]))
            if len(beyond):
                both[:, beyond] = work.at(uploaded.among(beyond), np.float64) / unit
        both *= unit
        return bring_back(both[0]), bring_back(cupy.ascontiguousarray(both[1:].T))


def log_sums(points: Any, weights: Any, queries: Any, frame: Frame, profile: Profile, precision: Precision = "double") -> Any:
    """log Σᵢ wᵢ φ(xᵢ, q), (m,); −∞ if the sum is 0, NaN if it is negative."""
    import cupy

    with on_gpu(points, queries) as (uploaded, bring_back):
        low, unit = extent(weights)
        if precision == "double" or not low >= 0 < unit or not takes_single(points, weights, queries, profile):
            return bring_back(_logs(points, weights, uploaded, frame, profile))
        logs = _Sum(VALUES, points, weights, frame, profile).at(uploaded, None, unit, _reach(profile, points.shape[1]))[0]
        faint = cupy.flatnonzero(~(logs >= SINGLE_FLOOR * _total_weight(weights) / unit))
        cupy.log(logs, out=logs)
        logs += np.log(unit)
        if len(faint):
            logs[faint] = _logs(points, weights, uploaded.among(faint), frame, profile)
        return bring_back(logs)


def _logs(points: Any, weights: Any, queries: Any, frame: Frame, profile: Profile) -> Any:
    import cupy

    least, total = _Sum(LOGS, points, weights, frame, profile).at(queries, np.float64)
    return cupy.log(total) - least


def _reach(profile: Profile, d: int) -> float:
    """The largest coordinate for single precision."""
    return float(SINGLE_REACH / (profile.steepness * np.sqrt(max(1.0, d / 16))))


def _launch_products(kind: str, Z: Any, w: Any, Q: Any, real: Any, profile: Profile, span: int, part: Any) -> None:
    """Fill ``part``, (spans, width, m), with the sums over each span of points Z, (n, d), at queries Q, (m, d)."""
    import cupy

    squares, query_squares = ((values * values).sum(axis=1) for values in (Z, Q))
    reach = max(float(squares.max()), float(query_squares.max())) * profile.slope
    if real is np.float32 and (profile.family == ROOT or not reach <= BLAS_REACH[np.float32]):
        real = np.float64
        Z, w, Q, squares, query_squares = (values.astype(real) for values in (Z, w, Q, squares, query_squares))
    table = cupy.asarray(profile.table)
    numbers = np.float64(profile.exponent), table, np.int32(len(table)), np.float64(profile.step)
    program = kernel("long", kind, REAL=REALS[real], D=1, METRIC=profile.metric, FAMILY=profile.family)
    n, d, m = len(Z), Z.shape[1], len(Q)
    halves = _split(Q) if real is np.float32 else None
    for first, last in blocks(part.shape[0], max(1, PRODUCT_ENTRIES // (span * m))):
        a, b = first * span, min(n, last * span)
        G = Z[a:b] @ Q.T if halves is None else _by_halves(Z[a:b], halves)
        arguments = (
            G,
            Z[a:b],
            squares[a:b],
            w[a:b],
            np.int64(b - a),
            Q,
            query_squares,
            np.int64(m),
            np.int32(d),
            np.int32(span),
            *numbers,
        )
        program(((m + THREADS - 1) // THREADS, last - first), (THREADS,), (*arguments, part[first:last]))


def _split(values: Any) -> tuple[Any, Any]:
    """Split numbers in single precision into two in half precision; the second is scaled by `LOW_FACTOR`."""
    import cupy

    values = cupy.ascontiguousarray(values)
    high, low = (cupy.empty(values.shape, cupy.float16) for _ in range(2))
    program = kernel("split", LOW=f"{LOW_FACTOR}f")
    program(((values.size + THREADS - 1) // THREADS,), (THREADS,), (values, np.int64(values.size), high, low))
    return high, low


def _by_halves(Z: Any, halves: tuple[Any, Any]) -> Any:
    """(n, m) inner products in single precision, from three products of halves."""
    high, low = _split(Z)
    products = half_products(high, halves[1], 1 / LOW_FACTOR)
    products = half_products(low, halves[0], 1 / LOW_FACTOR, products)
    return half_products(high, halves[0], 1.0, products)


def gram(points: Any, others: Any, frame: Frame, profile: Profile) -> NDArray[np.float64]:
    """The matrix φ(xᵢ, yⱼ), (n, m), in double precision, copied to main memory block by block."""
    import cupy

    out = np.empty((len(points), len(others)))
    with on_gpu(points, others) as (uploaded, _):
        Y, table = frame_coordinates(uploaded.values, frame, np.float64), cupy.asarray(profile.table)
        program = kernel("gram", REAL="double", D=points.shape[1], METRIC=profile.metric, FAMILY=profile.family)
        numbers = np.float64(profile.exponent), table, np.int32(len(table)), np.float64(profile.step)

        def work(length: int) -> None:
            for a, b, values in chunks(points, length):
                part = cupy.empty((b - a, len(Y)))
                arguments = frame_coordinates(values, frame, np.float64), Y, np.int64(b - a), np.int32(len(Y)), *numbers, part
                program(((part.size + GRAM_THREADS - 1) // GRAM_THREADS,), (GRAM_THREADS,), arguments)
                out[a:b] = part.get()

        with_fitting_blocks(work, max(1, GRAM_ENTRIES // len(Y)), 1)
    return out
