"""Kernel sums on a GPU: `kernel_sums`, `gradient_sums` and `log_sums` of the engine, where points or queries lie there or are sent.

Points go by a chunk at a time, queries by a block, and a card sees both in the coordinates of the frame. Single precision is taken
by the rules of the processor (`_engine.sums`): weights of one sign, coordinates within reach, results that are not deep in a tail;
chunks that fail the second are computed in double, and so are, again, queries that fail the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from reduset._engine.cuda.chunks import REALS, chunks, placed, uploaded_weights
from reduset._engine.cuda.guard import in_room
from reduset._engine.cuda.kernels import kernel
from reduset._engine.cuda.long_rows import launch_products
from reduset._engine.cuda.place import on_card
from reduset._engine.cuda.points import DevicePoints
from reduset._engine.distances import LINEAR, ROOT, SQUARED
from reduset._engine.profile import BLAS_REACH, FEW_COLUMNS, SINGLE_FLOOR, SINGLE_REACH, Frame, Profile, extent, takes_single
from reduset._engine.threads import blocks
from reduset._types import Precision

THREADS = 128
SPAN = 1 << 13  # points of a block
LONG_ENTRIES = 1 << 28  # of a block of long queries
ENTRIES, PARTS = 1 << 26, 1 << 26  # numbers of a chunk of points or a block of queries, and of partial sums
REGISTERS: dict[Any, int] = {np.float32: 128, np.float64: 32}  # numbers of queries that a thread holds
MOST_EACH = 6  # queries of a thread: with more, fewer threads find registers
MOST_POINTS, SHARED = 128, 1 << 15  # of a tile, and its bytes
VALUES, LOGS, GRADIENTS = "value_sums", "log_sums", "gradient_sums"
FILES = {VALUES: "sums", LOGS: "logs", GRADIENTS: "gradients"}


class _Chunk(NamedTuple):
    """Points in the coordinates of the frame, weights, the precision of both, and how long a query may be for gaps by products."""

    points: Any
    weights: Any
    real: Any
    close: float


class _Sum:
    """One kind of sum over points, which may lie anywhere."""

    def __init__(self, kind: str, points: Any, weights: Any, frame: Frame, profile: Profile) -> None:
        self.kind, self.points, self.weights, self.frame, self.profile = kind, points, weights, frame, profile
        self.d = frame.centre.shape[0]
        self.width = {VALUES: 1, LOGS: 2, GRADIENTS: 1 + self.d}[kind]
        corner = points.reach(frame) if isinstance(points, DevicePoints) else np.full(self.d, np.inf)
        self._largest, self._longest = float(corner.max()), float(corner @ corner)
        if self.d > FEW_COLUMNS and (kind == GRADIENTS or profile.metric != SQUARED):
            what = "gradients" if kind == GRADIENTS else "sums of this kernel"
            raise ValueError(f"{what} on a GPU are of at most {FEW_COLUMNS} columns, got {self.d}; bring the rows to the processor")

    def at(self, queries: DevicePoints, chosen: Any, unit: float = 1.0, reach: float = np.inf) -> Any:
        """(width, m) at queries; by ``chosen`` None each chunk of points takes single precision where it is within reach.

        NaN where a query has a coordinate beyond reach of the single precision that was taken.
        """
        import cupy

        out = cupy.empty((self.width, len(queries)))
        within = chosen is not None or bool(queries.reach(self.frame).max() <= reach)
        entries = ENTRIES if self.d <= FEW_COLUMNS else LONG_ENTRIES
        rows = max(THREADS, entries // self.d // max(1, self.width // 4))
        most = self._chunk

        def work(length: int) -> None:
            chunk = max(SPAN, most * length // rows // SPAN * SPAN)  # where queries find no room, points take less as well
            few = list(self._chunks(chosen, unit, reach, chunk)) if len(self.points) <= chunk else None
            for a, b in blocks(len(queries), length):
                parts = self._chunks(chosen, unit, reach, chunk) if few is None else few
                out[:, a:b] = self._block(queries.values[a:b], parts, np.inf if within else reach)

        in_room(work, rows, THREADS)
        return out

    @property
    def _chunk(self) -> int:
        """Points at a time."""
        return max(SPAN, ENTRIES // self.d // SPAN * SPAN)

    def _chunks(self, chosen: Any, unit: float, reach: float, rows: int) -> Iterator[_Chunk]:
        profile = self.profile
        for a, b, values in chunks(self.points, rows):
            real = np.float32 if chosen is None else chosen
            Z = placed(values, self.frame, real)
            if chosen is None and not (self._largest <= reach or _largest(Z) <= reach):
                real = np.float64
                Z = placed(values, self.frame, real)
            close = BLAS_REACH[real] / profile.slope
            if self.kind != VALUES or profile.metric != SQUARED or profile.family == ROOT:
                close = -1.0  # a root magnifies what cancels
            elif not (self._longest <= close or _longest(Z) <= close):
                close = -1.0
            yield _Chunk(Z, uploaded_weights(self.weights, a, b, unit, real), real, close)

    def _block(self, queries: Any, parts: Iterable[_Chunk], reach: float) -> Any:
        import cupy

        total = cupy.zeros((self.width, len(queries)))
        if self.kind == LOGS:
            total[0] = np.inf
        known: dict[Any, Any] = {}
        for part in parts:
            if part.real not in known:
                known[part.real] = placed(queries, self.frame, part.real)
            self._add(part, known[part.real], total)
        if np.isfinite(reach) and np.float32 in known:
            total[:, cupy.abs(known[np.float32]).max(axis=1) > reach] = np.nan
        return total

    def _add(self, points: _Chunk, Q: Any, total: Any) -> None:
        """Add the sums over one chunk of points, span by span."""
        import cupy

        Z, w, real, _ = points
        group = max(1, PARTS // (self.width * len(Q)))
        for a, b in blocks(len(Z), group * SPAN):
            spans = (b - a + SPAN - 1) // SPAN
            part = cupy.empty((spans, self.width, len(Q)))
            if self.d > FEW_COLUMNS:
                launch_products(self.kind, Z[a:b], w[a:b], Q, real, self.profile, SPAN, part)
            else:
                self._launch(points._replace(points=Z[a:b], weights=w[a:b]), Q, part)
            count = len(Q) if self.kind == LOGS else self.width * len(Q)
            add = kernel("add", "add_logs" if self.kind == LOGS else "add_sums")
            add(((count + THREADS - 1) // THREADS,), (THREADS,), (part, np.int32(spans), np.int64(count), total))

    def _launch(self, points: _Chunk, Q: Any, part: Any) -> None:
        import cupy

        profile, d, (Z, w, real, close) = self.profile, self.d, points
        each = 1 if self.kind == GRADIENTS else max(1, min(MOST_EACH, REGISTERS[real] // d))
        tile = min(MOST_POINTS, SHARED // (d * np.dtype(real).itemsize))
        defined = {"REAL": REALS[real], "D": d, "R": each, "TILE": tile, "THREADS": THREADS}
        if self.kind == VALUES:
            defined["FOLDED"] = int(real is np.float32 and profile.metric == SQUARED and profile.family == LINEAR)
        program = kernel(FILES[self.kind], self.kind, **defined, METRIC=profile.metric, FAMILY=profile.family)
        table = cupy.asarray(profile.table)
        numbers = np.float64(profile.exponent), table, np.int32(len(table)), np.float64(profile.step), np.float64(close)
        grid = (len(Q) + THREADS * each - 1) // (THREADS * each), part.shape[0]
        program(grid, (THREADS,), (Q, np.int64(len(Q)), Z, w, np.int64(len(Z)), np.int32(SPAN), *numbers, part))


def _largest(Z: Any) -> float:
    """The largest coordinate, in size."""
    return max(-float(Z.min()), float(Z.max()))


def _longest(Z: Any) -> float:
    """The largest squared length."""
    return float((Z * Z).sum(axis=1).max())


def kernel_sums(points: Any, weights: Any, queries: Any, frame: Frame, profile: Profile, precision: Precision = "double") -> Any:
    """Σᵢ wᵢ φ(xᵢ, q) for each query, (m,): on its device where the queries are on one."""
    with on_card(points, queries) as (asked, answer):
        return answer(_values(points, weights, asked, frame, profile, precision))


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
        unsafe = cupy.flatnonzero(~(cupy.abs(sums) >= SINGLE_FLOOR * abs(_added_up(weights))))
        if len(unsafe):
            sums[unsafe] = work.at(queries.among(unsafe), np.float64)[0]
    return sums


def _added_up(weights: Any) -> float:
    return len(weights) * float(weights[0]) if weights.strides == (0,) else float(weights.sum())


def gradient_sums(
    points: Any, weights: Any, queries: Any, frame: Frame, profile: Profile, precision: Precision = "double"
) -> tuple[Any, Any]:
    """Σᵢ wᵢ φ(xᵢ, q), (m,), and Σᵢ wᵢ ∇φ(xᵢ, q) in the frame's coordinates, (m, d), in one pass."""
    import cupy

    chosen = np.float64 if precision == "double" or not profile.in_single else None if precision == "auto" else np.float32
    unit = 1.0 if chosen is np.float64 else max(map(abs, extent(weights))) or 1.0
    with on_card(points, queries) as (asked, answer):
        work = _Sum(GRADIENTS, points, weights, frame, profile)
        both = work.at(asked, chosen, unit, _reach(profile, points.shape[1]))
        if chosen is None:
            beyond = cupy.flatnonzero(cupy.isnan(both[0]))
            if len(beyond):
                both[:, beyond] = work.at(asked.among(beyond), np.float64) / unit
        both *= unit
        return answer(both[0]), answer(cupy.ascontiguousarray(both[1:].T))


def log_sums(points: Any, weights: Any, queries: Any, frame: Frame, profile: Profile, precision: Precision = "double") -> Any:
    """log Σᵢ wᵢ φ(xᵢ, q), (m,); −inf where the sum is 0, NaN where it is negative."""
    import cupy

    with on_card(points, queries) as (asked, answer):
        low, unit = extent(weights)
        if precision == "double" or not low >= 0 < unit or not takes_single(points, weights, queries, profile):
            return answer(_logs(points, weights, asked, frame, profile))
        logs = _Sum(VALUES, points, weights, frame, profile).at(asked, None, unit, _reach(profile, points.shape[1]))[0]
        faint = cupy.flatnonzero(~(logs >= SINGLE_FLOOR * _added_up(weights) / unit))
        cupy.log(logs, out=logs)
        logs += np.log(unit)
        if len(faint):
            logs[faint] = _logs(points, weights, asked.among(faint), frame, profile)
        return answer(logs)


def _logs(points: Any, weights: Any, queries: Any, frame: Frame, profile: Profile) -> Any:
    import cupy

    least, total = _Sum(LOGS, points, weights, frame, profile).at(queries, np.float64)
    return cupy.log(total) - least


def _reach(profile: Profile, d: int) -> float:
    """How large a coordinate may be in single precision."""
    return float(SINGLE_REACH / (profile.steepness * np.sqrt(max(1.0, d / 16))))
