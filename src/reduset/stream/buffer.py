"""The state of a stream: its sketch, and the rows that wait until a block is full.

Rows are gathered into blocks of a fixed number before they are sketched. The result then depends on the sequence of rows and not on
the chunks. The random numbers of a block follow from the seed and the number of the block. So there is no generator with a state,
and a stream that was resumed from a file continues with the same bits. Frozen, like the sketch.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from reduset import _validate
from reduset._engine import on_device, rows_of, single_threaded_blas
from reduset._types import Array, Floats, KernelLike
from reduset.compression import Compression
from reduset.kernels import ANY_FAMILY, Kernel, RadialKernel, as_kernel
from reduset.select import as_selector
from reduset.stream.sketch import StreamSketch

MAX_ENTRIES = 1 << 22  # numbers in a block
MAX_CHUNKS = 64  # before they are joined


@dataclass(frozen=True)
class StreamSettings:
    """The parameters of a `StreamCompressor` that determine its sketch; ``block`` is its ``buffer``.

    The first block resolves a bandwidth rule of the kernel.
    """

    kernel: RadialKernel
    size: int
    block: int
    half_life: float | None
    select: str

    @classmethod
    def checked(cls, kernel: KernelLike, size: int, block: int, half_life: float | None, select: str) -> StreamSettings:
        """From the parameters of a user or a file."""
        as_selector(select)
        return cls(
            kernel=require_radial(as_kernel(kernel)),
            size=_validate.whole(size, "size", 1),
            block=_validate.whole(block, "buffer", 1),
            half_life=None if half_life is None else _validate.positive(half_life, "half_life", "it is a number of rows"),
            select=select,
        )

    def block_rows(self, dimension: int) -> int:
        """The rows of a block: bounded in memory, and at least twice the atoms."""
        return max(min(self.block, MAX_ENTRIES // dimension), 2 * self.size)


def require_radial(kernel: Kernel) -> RadialKernel:
    """The kernel, if its sums can be kept."""
    if not isinstance(kernel, RadialKernel):
        raise TypeError(f"a stream needs {ANY_FAMILY}, got {kernel!r}; other kernels have no sums that can be kept")
    return kernel


@dataclass(frozen=True)
class RowBuffer:
    """A buffer of rows before a sketch.

    Attributes
    ----------
    seed : Seed of all random numbers.
    seen : Number of rows so far, including rows without weight and waiting rows.
    blocks : Number of blocks that were sketched.
    sketch : None before the first block.
    waiting : Chunks of rows (k, d) and weights (k,).
    """

    settings: StreamSettings
    seed: int
    dimension: int
    seen: int = 0
    blocks: int = 0
    sketch: StreamSketch | None = None
    waiting: tuple[tuple[Array, Array], ...] = ()

    @property
    def kernel(self) -> RadialKernel:
        """With a resolved bandwidth as soon as there is a sketch."""
        return self.settings.kernel if self.sketch is None else self.sketch.kernel

    @property
    def gathered(self) -> int:
        """The number of waiting rows."""
        return sum(len(points) for points, _ in self.waiting)

    def rows_waiting(self) -> tuple[Array, Array]:
        """All waiting rows, and their weights."""
        if not self.waiting:
            return np.empty((0, self.dimension)), np.empty(0)
        points, weights = zip(*self.waiting, strict=True)
        return (points[0], weights[0]) if len(points) == 1 else (np.concatenate(points), np.concatenate(weights))

    def absorb(self, points: Floats, weights: Array | None) -> RowBuffer:
        """After more rows; None gives each the weight 1."""
        seen = self.seen + len(points)
        w = np.ones(len(points)) if weights is None else weights
        if (w == 0).any():
            points, w = rows_of(points, w > 0), w[w > 0]
        now, rows, start = self, self.settings.block_rows(self.dimension), 0
        full = now.gathered + len(points) >= rows
        with single_threaded_blas() if full else nullcontext():  # once for all blocks, since every switch wakes threads
            while now.gathered + len(points) - start >= rows:
                stop = start + rows - now.gathered
                if on_device(points) and not now.waiting:  # a whole block is sketched on its device
                    now = now._sketched(rows_of(points, slice(start, stop)), w[start:stop])
                else:
                    now = now._appended(points[start:stop], w[start:stop])._flushed()
                start = stop
        rest = np.array(points[start:], np.float64, order="C"), np.array(w[start:])  # copied, since the caller may change them
        return replace(now._appended(*rest), seen=seen)

    def _appended(self, points: Floats, weights: Array) -> RowBuffer:
        """With more waiting rows. Many short chunks are joined, so that no row is copied again and again."""
        if not len(points):
            return self
        now = replace(self, waiting=(*self.waiting, (np.ascontiguousarray(points, np.float64), weights)))
        return replace(now, waiting=(now.rows_waiting(),)) if len(now.waiting) > MAX_CHUNKS else now

    def _flushed(self) -> RowBuffer:
        """With the waiting rows in the sketch."""
        return self._sketched(*self.rows_waiting())

    def _sketched(self, points: Array, weights: Array) -> RowBuffer:
        """With these rows in the sketch, and none waiting."""
        rng = np.random.default_rng([self.seed, self.blocks])
        sketch, settings, rows = self.sketch, self.settings, len(points)
        if settings.half_life is not None:
            weights = weights * 2.0 ** (-np.arange(rows - 1, -1, -1) / settings.half_life)
            points, weights = rows_of(points, weights > 0), weights[weights > 0]  # weights that underflow are removed
            sketch = None if sketch is None else sketch.faded(2.0 ** (-rows / settings.half_life))
        if sketch is None:
            kernel = settings.kernel.resolve(points, weights)
            sketch = StreamSketch.from_first_chunk(points, weights, kernel, settings.size, settings.select, rng)
        else:
            sketch = sketch.absorb(points, weights, rng)
        return replace(self, blocks=self.blocks + 1, sketch=sketch, waiting=())

    def complete(self) -> StreamSketch:
        """The sketch of all rows, including the waiting ones."""
        with single_threaded_blas():
            sketch = self._flushed().sketch if self.waiting else self.sketch
        if sketch is None or not sketch.mass > 0:
            raise ValueError("the stream has no rows of positive weight yet; call partial_fit with a chunk first")
        return sketch

    def sibling(self) -> RowBuffer:
        """A stream without rows, for another part of the data: the same kernel and candidates, other random numbers."""
        seed = int(np.random.default_rng([self.seed, self.blocks, self.seen]).integers(1 << 62))
        return RowBuffer(self.settings, seed, self.dimension, sketch=self.complete().blank())

    def merge(self, other: RowBuffer) -> RowBuffer:
        """The stream of both parts, with this one's rows first; waiting rows still wait."""
        sketch = self.sketch or other.sketch
        if self.sketch is not None and other.sketch is not None:
            sketch = self.sketch.merge(other.sketch)
        now = replace(self, sketch=sketch, blocks=self.blocks + other.blocks + 1, waiting=())
        for part in (self, other):
            now = now.absorb(*part.rows_waiting())
        return replace(now, seen=self.seen + other.seen)

    def result(self, kind: str, confidence: float) -> Compression:
        """The compression of all rows."""
        rng = np.random.default_rng([self.seed, self.blocks, self.seen, 0])
        return self.complete().result(kind, confidence, self.seen, f"stream({self.settings.select})", rng)
