"""A stream on its way: what has been tallied, and the rows that wait until there are enough of them.

Rows are gathered to blocks of a fixed number before they are tallied, so that a result depends on the sequence of rows and not on
how it was cut into chunks. Each block has its own random numbers, from the seed and its number: there is no state of a generator,
and a stream that goes on from a file goes on as if nothing had happened. Frozen, like the tally.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from reduset._engine.profile import Floats
from reduset._engine.threads import single_threaded_blas
from reduset.compression import Compression
from reduset.mean import KernelMean
from reduset.radial import Array, RadialKernel
from reduset.tally import Tally

ENTRIES = 1 << 22  # numbers that wait, at most


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
    waiting : rows that wait and their weights, in parts, each at least twice as long as the next: a row that comes alone moves few
        of the others
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
    def rows(self) -> tuple[Array, Array]:
        """(k, d), (k,) the rows that wait, and their weights."""
        return _joined(self.waiting) if self.waiting else (np.empty((0, self.dimension)), np.empty(0))

    def take(self, points: Floats, weights: Array | None) -> Flow:
        """After more rows; None weighs each as 1."""
        seen = self.seen + len(points)
        w = np.ones(len(points)) if weights is None else weights
        if (w == 0).any():
            points, w = points[w > 0], w[w > 0]
        now, rows, start = self, self.plan.rows_of(self.dimension), 0
        count = sum(len(part[1]) for part in self.waiting)
        full = count + len(points) >= rows
        with single_threaded_blas() if full else nullcontext():  # once for all: switching wakes threads that get in the way
            while count + len(points) - start >= rows:
                stop = start + rows - count
                block = _joined((*now.waiting, (np.ascontiguousarray(points[start:stop], np.float64), w[start:stop])))
                now, start, count = now._tallied(*block), stop, 0
        parts = list(now.waiting)
        if start < len(points):
            parts.append((np.array(points[start:], np.float64, order="C"), np.array(w[start:])))
        while len(parts) > 1 and len(parts[-2][1]) < 2 * len(parts[-1][1]):
            parts[-2:] = [_joined(parts[-2:])]
        return replace(now, seen=seen, waiting=tuple(parts))

    def _tallied(self, points: Array, weights: Array) -> Flow:
        """With a block of rows in the tally, and nothing waiting."""
        rng = np.random.default_rng([self.seed, self.blocks])
        tally, plan, rows = self.tally, self.plan, len(points)
        if plan.half_life is not None:
            weights = weights * 2.0 ** (-np.arange(len(points) - 1, -1, -1) / plan.half_life)
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
            whole = self._tallied(*self.rows) if self.waiting else self
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
            now = now.take(*part.rows)
        return replace(now, seen=self.seen + other.seen)

    def finish(self, kind: str, confidence: float) -> Compression:
        """The compression of all rows."""
        return self.complete().result(kind, confidence, self.seen, f"stream({self.plan.select})")

    def sample(self) -> KernelMean:
        """A fair sample of all rows."""
        return self.complete().sample()


def _joined(parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Rows and weights of several parts."""
    return (
        parts[0] if len(parts) == 1 else (np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]))
    )
