"""A stream on its way: what has been tallied, and the rows that wait until there are enough of them.

Rows are gathered to blocks of a fixed number before they are tallied, so that a result depends on the sequence of rows and not on
how it was cut into chunks. Each block has its own random numbers, from the seed and its number: there is no state of a generator,
and a stream that goes on from a file goes on as if nothing had happened. Frozen, like the tally.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from reduset._engine import single_threaded_blas
from reduset._types import Array, Floats
from reduset.compression.result import Compression
from reduset.kernels.base import RadialKernel
from reduset.mean import KernelMean
from reduset.stream.sketch import Tally

ENTRIES = 1 << 22  # numbers that wait, at most
CHUNKS = 64  # in which they wait


@dataclass(frozen=True)
class Plan:
    """What a stream is tallied with: decided when it begins.

    Attributes
    ----------
    kernel : its bandwidth may be a rule, which the first block decides
    size : atoms
    block : rows that are tallied at once
    half_life : rows after which a row counts half; None where nothing is forgotten
    select : the selector of the first sites
    """

    kernel: RadialKernel
    size: int
    block: int
    half_life: float | None
    select: str

    def rows_of(self, dimension: int) -> int:
        """How many rows are tallied at once: bounded in memory, and more than there will be sites."""
        return max(min(self.block, ENTRIES // dimension), 2 * self.size)


@dataclass(frozen=True)
class Flow:
    """A stream so far.

    Attributes
    ----------
    seed : of everything random
    seen : rows that came, those without weight and those that wait included
    blocks : how many were tallied
    tally : None before the first
    waiting : chunks of rows that wait, (k, d) and (k,) their weights
    """

    plan: Plan
    seed: int
    dimension: int
    seen: int
    blocks: int
    tally: Tally | None
    waiting: tuple[tuple[Array, Array], ...] = ()

    @classmethod
    def begun(cls, plan: Plan, seed: int, dimension: int) -> Flow:
        return cls(plan, seed, dimension, 0, 0, None)

    @property
    def gathered(self) -> int:
        """How many rows wait."""
        return sum(len(points) for points, _ in self.waiting)

    def rows_waiting(self) -> tuple[Array, Array]:
        """All rows that wait, and their weights."""
        if not self.waiting:
            return np.empty((0, self.dimension)), np.empty(0)
        points, weights = zip(*self.waiting, strict=True)
        return (points[0], weights[0]) if len(points) == 1 else (np.concatenate(points), np.concatenate(weights))

    def take(self, points: Floats, weights: Array | None) -> Flow:
        """After more rows; None weighs each as 1."""
        seen = self.seen + len(points)
        w = np.ones(len(points)) if weights is None else weights
        if (w == 0).any():
            points, w = points[w > 0], w[w > 0]
        now, rows, start = self, self.plan.rows_of(self.dimension), 0
        full = now.gathered + len(points) >= rows
        with single_threaded_blas() if full else nullcontext():  # once for all: switching wakes threads that get in the way
            while now.gathered + len(points) - start >= rows:
                stop = start + rows - now.gathered
                now, start = now._with(points[start:stop], w[start:stop])._tallied(), stop
        rest = np.array(points[start:], np.float64, order="C"), np.array(w[start:])  # the caller's own may change
        return replace(now._with(*rest), seen=seen)

    def _with(self, points: Floats, weights: Array) -> Flow:
        """With more rows that wait; many short chunks are put together, so that a row is not copied again and again."""
        if not len(points):
            return self
        now = replace(self, waiting=(*self.waiting, (np.ascontiguousarray(points, np.float64), weights)))
        return replace(now, waiting=(now.rows_waiting(),)) if len(now.waiting) > CHUNKS else now

    def _tallied(self) -> Flow:
        """With the rows that wait in the tally."""
        points, weights = self.rows_waiting()
        rng = np.random.default_rng([self.seed, self.blocks])
        tally, plan, rows = self.tally, self.plan, len(points)
        if plan.half_life is not None:
            weights = weights * 2.0 ** (-np.arange(rows - 1, -1, -1) / plan.half_life)
            points, weights = points[weights > 0], weights[weights > 0]  # others are forgotten to the last digit
            tally = None if tally is None else tally.faded(2.0 ** (-rows / plan.half_life))
        if tally is None:
            tally = Tally.begun(points, weights, plan.kernel.resolve(points, weights), plan.size, plan.select, rng)
        else:
            tally = tally.absorb(points, weights, rng)
        return replace(self, blocks=self.blocks + 1, tally=tally, waiting=())

    def complete(self) -> Tally:
        """The tally of all rows, those that wait included; raises where there are none."""
        with single_threaded_blas():
            whole = self._tallied() if self.waiting else self
        if whole.tally is None or not whole.tally.mass > 0:
            raise ValueError("no row of any weight has come yet; partial_fit a chunk first")
        return whole.tally

    def sibling(self) -> Flow:
        """A stream without rows, for another part of the data: the same kernel and sites, other random numbers."""
        tally = self.complete().blank()
        seed = int(np.random.default_rng([self.seed, self.blocks, self.seen]).integers(1 << 62))
        return replace(Flow.begun(self.plan, seed, self.dimension), tally=tally)

    def merge(self, other: Flow) -> Flow:
        """The stream of both parts, this one's rows first; rows that wait still wait."""
        tally = self.tally or other.tally
        if self.tally is not None and other.tally is not None:
            tally = self.tally.merge(other.tally)
        now = replace(self, tally=tally, blocks=self.blocks + other.blocks + 1, waiting=())
        for part in (self, other):
            now = now.take(*part.rows_waiting())
        return replace(now, seen=self.seen + other.seen)

    def finish(self, kind: str, confidence: float) -> Compression:
        """The compression of all rows."""
        return self.complete().result(kind, confidence, self.seen, f"stream({self.plan.select})")

    def sample(self) -> KernelMean:
        """A fair sample of all rows."""
        return self.complete().sample()
