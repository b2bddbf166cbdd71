"""One compression on its way: the atoms so far, their κ, and the probe.

Sizes of a search grow by doubling, and each step adds to the selection and to κ only what is missing: a search costs little more
than its last step. Selections that do not nest, and moved atoms, are put in the order of the energy that each adds, so that their
prefixes are good ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reduset._engine import LeafCover, blocks, order_by_energy
from reduset._progress import Progress
from reduset._types import Array
from reduset.certificate.bounds import Bounds, bounds_of
from reduset.certificate.by_scale import Scales
from reduset.certificate.probe import Measurement, Probe
from reduset.certificate.rule import probe_for
from reduset.compression.clock import Clock
from reduset.compression.prefixes import Prefixes
from reduset.compression.refine import refine
from reduset.mean import KernelMean
from reduset.mixture.pieces import ComponentPieces, Pieces, gram_of
from reduset.select import Selector, with_own_weights
from reduset.select.contract import Traversal
from reduset.weights.kinds import OWN
from reduset.weights.span import CHOLESKY_UP_TO, Span, span_of

ATOMS_A_STEP = 512

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Atoms:
    """The atoms so far.

    Attributes
    ----------
    places : (m, d), or laws in their place
    rows : (m,) of the data, or None where they are new points
    kappa : (m,) products of f with their bumps
    order : (m,) where the traversal has each, or None where they are not its any more
    """

    places: Pieces
    rows: Rows | None
    kappa: Array
    order: Rows | None


class Builder:
    """The state of a compression of ``full``."""

    def __init__(
        self, full: KernelMean, rng: np.random.Generator, confidence: float, progress: Progress, clock: Clock | None = None
    ) -> None:
        self.full, self._confidence, self._progress = full, confidence, progress
        self.clock = clock or Clock()
        self._select_rng, self._probe_rng, self._refine_rng, self._scale_rng = rng.spawn(4)
        self._atoms: Atoms | None = None
        self._selected = np.empty(0)  # κ of the atoms that a prefixes traversal has given so far
        self._probe: Probe | None = None
        self._span: Span | None = None
        self._traversal: Traversal | None = None  # none where the atoms were given
        self._scales: Scales | None = None
        self._looked = False
        self.remark = ""
        self.outlook = ""  # why a search ended before its last size

    @property
    def span(self) -> Span:
        """The span of the atoms so far."""
        if self._span is None:
            raise RuntimeError("no atoms yet")
        return self._span

    @property
    def atoms(self) -> Atoms:
        """The atoms so far, redundant ones included."""
        if self._atoms is None:
            raise RuntimeError("no atoms yet")
        return self._atoms

    @property
    def traversal(self) -> Traversal:
        """The selection."""
        if self._traversal is None:
            raise RuntimeError("the selection has not begun")
        return self._traversal

    @property
    def size(self) -> int:
        """How many atoms are kept."""
        return self.span.size

    def open(self, selector: Selector) -> None:
        """Begin the selection."""
        with self.clock.stage("select"):
            self._traversal = selector.begin(self.full, self._select_rng)

    def choose(self, size: int) -> tuple[Array, Rows | None]:
        """The places of ``size`` atoms (fewer where the data has no more that are distinct) and their rows, not yet taken."""
        traversal = self.traversal
        with self.clock.stage("select"):
            traversal.extend(size, self._progress.stage("selecting"))
            self.remark = traversal.remark()
            rows = traversal.indices
            if rows is not None:
                rows = rows[:size]
            return traversal.points[:size] if rows is None else np.asarray(self.full.atoms[rows], np.float64), rows

    def grow(self, size: int) -> bool:
        """Have ``size`` atoms; False where the data has no more that are distinct."""
        traversal, (places, rows) = self.traversal, self.choose(size)
        if not traversal.nested:
            self.place(places, rows, traversal.kappa)
        else:
            # of the traversal's own atoms, whatever has been moved or cut since
            self._selected = np.concatenate([self._selected, self._kappa_of(places[len(self._selected) :])])
            self._set(Atoms(places, rows, self._selected[: len(places)], np.arange(len(places))))
        return len(places) == size

    def place(
        self, places: Pieces, rows: Rows | None, kappa: Array | None = None, moved: bool = False, ordered: bool = False
    ) -> None:
        """Take these atoms instead of any before, in the order of the energy that each adds, or as they are."""
        if kappa is None:
            kappa = self._kappa_of(places)
        order = np.arange(len(places))
        if not ordered and len(places) <= CHOLESKY_UP_TO:  # beyond, no matrix of the atoms is held
            with self.clock.stage("weigh"):
                order = order_by_energy(gram_of(self.full.kernel, places), kappa)
        self._set(Atoms(places[order], None if rows is None else rows[order], kappa[order], None if moved else order))

    def cut(self, size: int) -> None:
        """Keep only the first ``size`` of the atoms that are kept."""
        some = np.flatnonzero(self.span.kept)[:size]
        now = self.atoms
        rows, order = (None if each is None else each[some] for each in (now.rows, now.order))
        self._set(Atoms(now.places[some], rows, now.kappa[some], order))

    def _kappa_of(self, places: Pieces) -> Array:
        with self.clock.stage("weigh"):
            report = self._progress.stage("weighing")
            if isinstance(places, ComponentPieces):
                return places.kappa(self.full, report)
            parts = []
            for a, b in blocks(len(places), ATOMS_A_STEP):
                report(a, len(places))
                parts.append(self.full.kernel.product_sums(self.full.atoms, self.full.weights, places[a:b]))
            return np.concatenate(parts) if parts else np.empty(0)

    def _set(self, atoms: Atoms) -> None:
        with self.clock.stage("weigh"):
            self._atoms = atoms
            self._span = span_of(self.full.kernel, atoms.places, atoms.kappa)

    def refine(self, kind: str, steps: int) -> Prefixes:
        """Move the atoms; go back where, measured on the data with weights of this kind, they lose more than before.

        ``steps`` of 0 leaves their number to the time they take.
        """
        before = self.prefixes(kind)
        lost = before.error(self.size).relative
        kept_atoms, kept_span = self._atoms, self._span
        with self.clock.stage("refine"):
            report = self._progress.stage("moving")
            found = refine(self.full, self.span.atoms, kind, lost**2, steps, self._refine_rng, report)
        if found.stayed:  # then neither weights nor error are found a second time, which may take as long
            after = before
            words = f"not moved by L-BFGS, {found.words}"
        elif (gained := (after := self._moved_to(found.places, kind)).error(self.size).relative) < lost:
            words = f"moved by L-BFGS, {found.words}: error {lost:.3g} before, {gained:.3g} after"
        else:
            self._atoms, self._span, after = kept_atoms, kept_span, before
            words = f"not moved: L-BFGS, {found.words}, found nothing better"
        chosen = self.traversal.remark() if self._traversal is not None else ""
        self.remark = f"{chosen}; {words}" if chosen else words
        return after

    def _moved_to(self, places: Array, kind: str) -> Prefixes:
        self.place(places, None, moved=True)
        return self.prefixes(kind)

    def residual(self, carefully: bool) -> Measurement:
        """‖f − Pf‖² for all the atoms so far."""
        with self.clock.stage("weigh"):
            free = self.span.weights("free", self.full.mass, self.size)
        with self.clock.stage("certify"):
            self._progress.stage("certifying")(0, 1)
            look = self.probe.measure if carefully else self.probe.glance
            return look(self.span.atoms, free, self.span.kappa)

    @property
    def probe(self) -> Probe:
        """Prepared for the data, once."""
        if self._probe is None:
            self._probe = probe_for(self.full, self._confidence, self._probe_rng)
        return self._probe

    def scales(self, size: int | None = None) -> Scales | None:
        """What is known of the data at every scale, found once; for ``size`` atoms where there are none yet."""
        if not self._looked:
            with self.clock.stage("certify"):
                self._scales, self._looked = self.probe.scales(size or self.size, self._scale_rng), True
        return self._scales

    def rows(self) -> tuple[Rows | None, Rows]:
        """The rows of the atoms kept, and of those dropped as redundant."""
        rows, kept = self.atoms.rows, self.span.kept
        if rows is None:
            return None, np.empty(0, np.int64)
        return rows[kept], rows[~kept]

    def prefixes(self, kind: str, own: Array | None = None) -> Prefixes:
        """The family of all prefixes of the atoms so far, with a careful measurement; ``own`` weights may be given."""
        full, span, atoms = self.full, self.span, self.atoms
        if kind == OWN and own is None:
            own = self._own_weights()
        rows = atoms.rows if atoms.rows is None or own is not None else atoms.rows[span.kept]
        shares = np.zeros(len(atoms.places)) if rows is None else full.magnitudes[rows]
        unmoved = self._traversal is not None and atoms.order is not None
        radii = self.traversal.radii() if unmoved else None
        covered = None
        if radii is not None:
            # up to the first atom dropped, which leaves its surroundings uncovered
            safe = len(span.kept) if span.kept.all() else int(np.argmin(span.kept))
            covered = full.kernel.product_at(radii[:safe], full.dimension)
            covered[np.isinf(radii[:safe])] = 0.0  # a group without an atom is not covered: the bound is then Σ|w| of the rest
        total = full.total
        return Prefixes(full.kernel, span, self.residual(True), kind, full.mass, total, shares, covered, self._confidence, own)

    @property
    def _cover(self) -> LeafCover | None:
        """The points in leaves, where the selector has them."""
        return None if self._traversal is None else self._traversal.cover

    def _own_weights(self) -> Array:
        """The selector's own weights, in the order of the atoms."""
        order = self.atoms.order
        own = None if self._traversal is None or order is None else self._traversal.weights()
        if own is None or order is None:
            raise ValueError(
                f"weights='own' are those of a selector that has any ({with_own_weights()}), for atoms that were not moved; "
                "use weights='free'"
            )
        return own[order]

    def bounds(self, prefixes: Prefixes, size: int) -> Bounds:
        """The a-priori bounds for the first ``size`` atoms, from one more pass over the data."""
        if isinstance(prefixes.atoms, ComponentPieces):  # whose bumps are no rows' own: nothing is certain before measuring
            return Bounds(None, None, None, None)
        with self.clock.stage("weigh"):
            carrying = prefixes.error(size).weights != 0
        with self.clock.stage("certify"):
            found = bounds_of(self.full, prefixes.atoms[:size], float(prefixes.shares[:size].sum()), self._cover)
            if carrying.all() or not carrying.any():
                return found
            # atoms without a weight are left out of the result, and cover nothing there
            return replace(found, radius=bounds_of(self.full, prefixes.atoms[:size][carrying], 0.0, self._cover).radius)
