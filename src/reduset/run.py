"""One compression on its way: the atoms so far, their κ, and the probe.

Sizes of a search grow by doubling, and each step adds to the selection and to κ only what is missing: a search costs little more
than its last step.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from reduset import weigh
from reduset._engine.threads import blocks
from reduset._progress import Progress
from reduset.certificate import Promise, promise
from reduset.mean import KernelMean
from reduset.nested import Nested
from reduset.probe import Measured, Probe, probe
from reduset.radial import Array
from reduset.select import Selector
from reduset.select.selection import Traversal

FIRST_SIZE = 32
ATOMS_A_STEP = 512
NEGLIGIBLE = 0.5  # of tol²: what the measured residual may take, so that the search for the smallest prefix is sharp

Rows = NDArray[np.int64]


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._stages: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens inside towards a stage."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._stages[name] = self._stages.get(name, 0.0) + time.perf_counter() - begun

    def timings(self) -> dict[str, float]:
        """Seconds of each stage, and in all."""
        return self._stages | {"total": time.perf_counter() - self._begun}


class Run:
    """The state of a compression of ``full``."""

    def __init__(self, full: KernelMean, rng: np.random.Generator, confidence: float, progress: Progress) -> None:
        self.full, self._confidence, self._progress = full, confidence, progress
        self.clock = Clock()
        self._select_rng, self._probe_rng = rng.spawn(2)
        self._atoms = np.empty((0, full.dimension))
        self._rows: Rows | None = np.empty(0, np.int64)
        self._kappa = np.empty(0)
        self._probe: Probe | None = None
        self._span: weigh.Span | None = None
        self._traversal: Traversal | None = None  # none where the atoms were given

    @property
    def span(self) -> weigh.Span:
        """The span of the atoms so far."""
        if self._span is None:
            raise RuntimeError("no atoms yet")
        return self._span

    @property
    def size(self) -> int:
        """How many atoms are kept."""
        return self.span.size

    def open(self, selector: Selector) -> None:
        """Begin the selection."""
        with self.clock.stage("select"):
            self._traversal = selector.begin(self.full, self._select_rng)

    def grow(self, size: int) -> bool:
        """Have ``size`` atoms; False where the data has no more that are distinct."""
        with self.clock.stage("select"):
            if self._traversal is None:
                raise RuntimeError("the selection has not begun")
            self._traversal.extend(size, self._progress.stage("selecting"))
            rows = self._traversal.indices[:size]
        fresh = rows[len(self._atoms) :]
        self.add(np.asarray(self.full.atoms[fresh], np.float64), fresh)
        return len(rows) == size

    def add(self, atoms: Array, rows: Rows | None) -> None:
        """Take these atoms: their κ, and the span of all so far."""
        with self.clock.stage("weigh"):
            report = self._progress.stage("weighing")
            parts = [self._kappa]
            for a, b in blocks(len(atoms), ATOMS_A_STEP):
                report(a, len(atoms))
                parts.append(self.full.kernel.product_sums(self.full.atoms, self.full.weights, atoms[a:b]))
            self._kappa = np.concatenate(parts)
            self._atoms = np.concatenate([self._atoms, atoms])
            self._rows = None if rows is None or self._rows is None else np.concatenate([self._rows, rows])
            self._span = weigh.span(self.full.kernel, self._atoms, self._kappa)

    def residual(self, carefully: bool) -> Measured:
        """‖f − Pf‖² for all the atoms so far."""
        with self.clock.stage("weigh"):
            free = self.span.weights("free", self.full.mass, self.size)
        with self.clock.stage("certify"):
            self._progress.stage("certifying")(0, 1)
            if self._probe is None:
                self._probe = probe(self.full, self._confidence, self._probe_rng)
            look = self._probe.measure if carefully else self._probe.glance
            return look(self.span.atoms, free, self.span.kappa)

    def rows(self) -> tuple[Rows | None, Rows]:
        """The rows of the atoms kept, and of those dropped as redundant."""
        if self._rows is None:
            return None, np.empty(0, np.int64)
        return self._rows[self.span.kept], self._rows[~self.span.kept]

    def nested(self, kind: str) -> Nested:
        """The family of all prefixes of the atoms so far, with a careful measurement."""
        full, span = self.full, self.span
        rows, _ = self.rows()
        shares = np.zeros(span.size) if rows is None else full.magnitudes[rows]
        radii = None if self._traversal is None else self._traversal.radii()
        covered = None
        if radii is not None:
            # up to the first atom dropped, which leaves its surroundings uncovered
            safe = len(span.kept) if span.kept.all() else int(np.argmin(span.kept))
            covered = full.kernel.product_at(radii[:safe], full.dimension)
        total = float(full.magnitudes.sum())
        return Nested(full.kernel, span, self.residual(True), kind, full.mass, total, shares, covered, self._confidence)

    def promise(self, nested: Nested, size: int) -> Promise:
        """The a-priori bounds for the first ``size`` atoms, from one more pass over the data."""
        with self.clock.stage("certify"):
            cover = None if self._traversal is None else self._traversal.cover
            return promise(self.full, nested.span.atoms[:size], float(nested.shares[:size].sum()), cover)


def search_tolerance(run: Run, tol: float, kind: str, most: int) -> tuple[Nested, int, bool]:
    """The smallest prefix whose error is certified within tol (all the atoms where none is), and whether it is."""
    size = min(FIRST_SIZE, most)
    while True:
        more = run.grow(size) and size < most
        residual = run.residual(carefully=False)
        goal = tol**2 * (run.span.energy(run.size) + residual.square)
        if more and residual.high > NEGLIGIBLE * goal:
            size = min(most, max(size + 1, int(1.25 * size)) if residual.high <= goal else 2 * size)
            continue
        nested = run.nested(kind)
        smallest = nested.smallest(tol)
        if smallest is not None:
            return nested, smallest, True
        if not more:
            return nested, run.size, False
        size = min(most, 2 * size)


def search_plateau(run: Run, epsilon: float, kind: str, most: int) -> tuple[Nested, int, bool]:
    """The first size at which an atom adds at most epsilon of the energy added since the first (2017, Section V-B)."""
    size = min(FIRST_SIZE, most)
    while True:
        more = run.grow(size) and size < most
        span = run.span
        if not isinstance(span, weigh.FactoredSpan):
            raise ValueError(f"plateau works up to {weigh.CHOLESKY_UP_TO} atoms; set max_size to that or less, or use tol")
        added = span.energies_added()
        since = np.cumsum(added) - added[0]
        flat = np.flatnonzero(added[1:] <= epsilon * since[1:])
        if len(flat):
            return run.nested(kind), int(flat[0]) + 2, True
        if not more:  # with every distinct point an atom, nothing is left to add
            return run.nested(kind), span.size, len(span.kept) < size or size == run.full.size
        size = min(most, 2 * size)
