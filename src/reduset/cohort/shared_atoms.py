"""Shared atoms: many bags compressed onto the same atoms, with optimal weights for each bag.

The atoms are selected for the mean of all bags, in which every bag has the same weight. Let P be the projection onto their span.
Let f and g be two bags, D = ‖f − g‖ and D₀ = ‖P f − P g‖. Both are projected onto one span, so by Pythagoras

    D² − D₀² = ‖(I − P)(f − g)‖² ≤ (e_f + e_g)²,    e_f = ‖f − P f‖,
    0 ≤ D − D₀ ≤ √(D₀² + (e_f + e_g)²) − D₀.

The error of a distance is of second order in the errors of the bags. With different atoms for each bag (Cruz Cortés & Scott 2017,
Section VI-A), the projections differ, and only |D − D₀| ≤ e_f + e_g holds. Part of the error of a bag is its sampling noise, with
an energy of about (1 − ‖Pφ‖²)/n, which is independent between bags. Small bags therefore need many atoms for a small tolerance.

The number of atoms follows from one measurement. Let y_i = L⁻¹κ_i be the coordinates of bag i in the span, and r_i the measured
‖f_i − P f_i‖² with all atoms. With the first m atoms, bag i has the squared error e_i² = r_i + Σ_{l>m} y_il². The distance of two
bags is ‖y_i − y_j‖ over the first m coordinates. The upper ends of the intervals of r are used, in units where every kernel
function has norm 1. O(N²·m) for each size.

Cost: the selection, on at most `POOL_ROWS` rows; Σn·m kernel values for all weights; Σn·192 frequencies for all certificates; and
one factor, O(m³/3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from scipy.spatial.distance import pdist

from reduset._engine import single_threaded_blas
from reduset._progress import Clock, Progress
from reduset._types import Array, Floats, Indices
from reduset.cohort.bags import BagEvidence, BagProjector, Bags
from reduset.compression import AtomRequest, Compression, Prefixes, Run, Target, assemble, by_plateau, by_tolerance, grow
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.select import Traversal, as_selector
from reduset.weights import CHOLESKY_UP_TO, FactoredSpan, Span, span_of

POOL_ROWS = 1 << 15
DISTANCE_TOL = 0.01  # without tol and size
SIZE_MARGIN = 1.02  # factor on the size that the measured errors predict
MIN_GROWTH, MAX_GROWTH = 1.1, 2.0  # of the size in one step


def pool(bags: Sequence[Floats], kernel: Kernel, rng: np.random.Generator) -> KernelMean:
    """The mean of all bags with equal weights. From many rows, the same number of each bag is drawn.

    A bandwidth rule of the kernel is resolved on these points.
    """
    drawn = rows_drawn([len(bag) for bag in bags], rng)
    return pooled([bag[:] if rows is None else bag[rows] for bag, rows in zip(bags, drawn, strict=True)], kernel)


def rows_drawn(sizes: Sequence[int], rng: np.random.Generator) -> list[Indices | None]:
    """The rows of each bag that are pooled, None for all of them."""
    if sum(sizes) <= POOL_ROWS:
        return [None] * len(sizes)
    limit = max(2, POOL_ROWS // len(sizes))
    return [None if size <= limit else np.sort(rng.choice(size, limit, replace=False)) for size in sizes]


def pooled(drawn: Sequence[Floats], kernel: Kernel) -> KernelMean:
    """The mean of the rows drawn from all bags, with the same weight for each bag."""
    weights = np.concatenate([np.full(len(rows), 1 / (len(drawn) * len(rows))) for rows in drawn])
    return KernelMean(np.concatenate(drawn), weights, kernel)


# -- the number of atoms ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PrefixLosses:
    """The errors of all bags on every prefix of the atoms.

    Attributes
    ----------
    coordinates : Coordinates y of each bag, (N, m).
    rest : Upper end of ‖f − P f‖² with all atoms, (N,).
    """

    coordinates: Array
    rest: Array

    def squares(self, size: int) -> Array:
        """(N,) ‖f − P f‖² with the first ``size`` atoms."""
        return np.asarray(self.rest + np.square(self.coordinates[:, size:]).sum(axis=1))

    @property
    def norms(self) -> Array:
        """(N,) ‖f‖."""
        return np.asarray(np.sqrt(self.rest + np.square(self.coordinates).sum(axis=1)))


@dataclass(frozen=True)
class BagTolerance:
    """The goal that ‖f − f_m‖ / ‖f‖ is at most ``tol`` for every bag."""

    tol: float

    def lack(self, losses: PrefixLosses, size: int) -> float:
        """The ratio of the errors with the first ``size`` atoms to the allowed errors; the goal is reached at 1."""
        return float(np.max(np.sqrt(losses.squares(size)) / losses.norms)) / self.tol

    @property
    def start(self) -> float:
        """The relative error of the mean of all bags at which the bags are first measured."""
        return self.tol

    def fewest(self, losses: PrefixLosses) -> int:
        """The smallest size that reaches the goal, if all atoms reach it. The ratio decreases with the size."""
        low, high = 0, losses.coordinates.shape[1]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.lack(losses, middle) <= 1 else (middle, high)
        return high


class DistanceTolerance(BagTolerance):
    """The goal that the error bounds are at most ``tol`` times the distances, in the Frobenius norm.

    If bags are nearly equal, no error is small compared with the distances. Distances count as at least ``tol`` times the bags'
    norms.
    """

    def lack(self, losses: PrefixLosses, size: int) -> float:
        distances = pdist(losses.coordinates[:, :size])
        residuals = np.sqrt(losses.squares(size))
        i, j = np.triu_indices(len(residuals), 1)
        errors = np.hypot(distances, residuals[i] + residuals[j]) - distances
        scale = max(np.linalg.norm(distances), self.tol * np.linalg.norm(losses.norms[i]))
        return float(np.sqrt(np.linalg.norm(errors) / (self.tol * scale)))  # they are of second order in the bags' errors

    @property
    def start(self) -> float:
        return float(np.sqrt(self.tol))


# -- the atoms --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SharedAtoms:
    """Atoms onto which any bag can be projected.

    Attributes
    ----------
    span : Span of the atoms. Its κ is not used.
    request : The kind of weights and the confidence of the certificates.
    """

    span: Span
    request: AtomRequest

    def put(self, mean: KernelMean, rng: np.random.Generator) -> Compression:
        """A bag on these atoms, in one pass over its points."""
        evidence = BagProjector(mean, self.request.confidence, rng).project(self.span)
        prefixes = evidence.prefixes(self.span, mean.kernel, self.request.weights, self.request.confidence)
        return _compression(prefixes, self.span.size, evidence.size, self.request)


class Sharing(NamedTuple):
    """The atoms, every bag on them, and whether the goal was reached."""

    atoms: SharedAtoms
    compressions: list[Compression]
    reached: bool


def share(source: Bags, pooled: KernelMean, request: AtomRequest, rng: np.random.Generator, progress: Progress) -> Sharing:
    """Select atoms for the mean of all bags, ``pooled``, until the goal is reached, and project each bag onto them.

    Without a goal, the error bounds of the distances are at most `DISTANCE_TOL`. Weights other than "free" need a goal.
    """
    pooled_rng, *bag_rngs = rng.spawn(1 + len(source.sizes))
    bags = _BagsOnAtoms(source, pooled.kernel, request, bag_rngs, progress)
    # every bag is on all atoms, so that the largest number depends on the rows of all bags, not only on the pooled rows
    max_size = min(request.most(sum(source.sizes)), pooled.size, CHOLESKY_UP_TO)
    with single_threaded_blas():
        target = Run(pooled_rng, request.confidence, progress).target(pooled)
        traversal = target.begin(as_selector(request.select))
        if request.size is None and request.plateau is None:
            rule = DistanceTolerance(DISTANCE_TOL) if request.tol is None else BagTolerance(request.tol)
            span, size, reached = _grow_until(rule, bags, target, traversal, max_size)
        elif request.plateau is not None:
            result = by_plateau(target, traversal, request.plateau, "free", max_size)
            span, size, reached = result.weighed.span, result.size, result.reached
            bags.project(span)
        else:
            span = grow(target, traversal, min(cast(int, request.size), pooled.size)).span
            size, reached = span.size, True
            bags.project(span)
        if size < span.size:
            span = span_of(pooled.kernel, span.atoms[:size], span.kappa[:size])
        return Sharing(SharedAtoms(span, request), bags.compressions(size), reached)


class _BagsOnAtoms:
    """All bags on the same atoms, which may grow."""

    def __init__(
        self, source: Bags, kernel: Kernel, request: AtomRequest, rngs: list[np.random.Generator], progress: Progress
    ) -> None:
        self._source, self._kernel, self.request, self._rngs = source, kernel, request, rngs
        self._report = progress.stage("weighing bags")
        self._spans: list[Span] = []
        self._evidence: list[BagEvidence] = []
        self._prefixes: list[Prefixes] = []

    def project(self, span: Span) -> None:
        """Project every bag onto these atoms, which replace the previous atoms."""
        self._spans.append(span)
        confidence = self.request.confidence
        self._evidence = self._source.project(self._spans, self._kernel, confidence, self._rngs, self._report)
        self._prefixes = [evidence.prefixes(span, self._kernel, self.request.weights, confidence) for evidence in self._evidence]

    def losses(self) -> PrefixLosses:
        """The errors of free weights, for every number of atoms at once."""
        spans = [prefixes.span for prefixes in self._prefixes]
        coordinates = np.stack([span.y for span in spans if isinstance(span, FactoredSpan)])  # up to CHOLESKY_UP_TO atoms, all are
        return PrefixLosses(coordinates, np.array([prefixes.residual.high for prefixes in self._prefixes]))

    def largest_error(self, size: int) -> float:
        """The upper end of the relative error of the worst bag, with the kind of weights in the request."""
        return max(prefixes.error(size).interval[1] for prefixes in self._prefixes)

    def compressions(self, size: int) -> list[Compression]:
        """Each bag on the first ``size`` atoms."""
        pairs = zip(self._prefixes, self._evidence, strict=True)
        return [_compression(prefixes, size, evidence.size, self.request) for prefixes, evidence in pairs]


def _compression(prefixes: Prefixes, size: int, rows: int, request: AtomRequest) -> Compression:
    remark = "atoms shared with other bags"
    return assemble(prefixes, size, rows, str(as_selector(request.select)), Clock(), remark=remark, all_shown=True)


def _grow_until(
    rule: BagTolerance, bags: _BagsOnAtoms, target: Target, traversal: Traversal, max_size: int
) -> tuple[Span, int, bool]:
    """Add atoms until the rule holds: their span, the number needed, and whether the rule was reached.

    The first number comes from the mean of all bags, which is quick to measure. Its error is smaller than the errors of the bags,
    because their noise is independent. Then the bags are measured, each time with more atoms.
    """
    free = bags.request.weights == "free"
    start = by_tolerance(target, traversal, rule.start, "free", max_size)
    requested, known = start.size, start.weighed.kappa
    while True:
        weighed = grow(target, traversal, requested, known)
        known = max(known, weighed.kappa, key=len)
        more, span = weighed.atoms.complete and requested < max_size, weighed.span
        bags.project(span)
        size = span.size  # without redundant atoms
        losses = bags.losses()
        lack = rule.lack(losses, size)
        if lack <= 1 and not free:  # other weights have a larger error, and need a solve for every size
            lack = bags.largest_error(size) / rule.start
        if lack <= 1:
            return span, rule.fewest(losses) if free else size, True
        if not more:
            return span, size, False
        factor = SIZE_MARGIN * lack ** (1 / _steepness(rule, losses, size, lack))
        requested = min(max_size, max(requested + 1, int(requested * np.clip(factor, MIN_GROWTH, MAX_GROWTH))))


def _steepness(rule: BagTolerance, losses: PrefixLosses, size: int, lack: float) -> float:
    """The exponent s in lack ~ size⁻ˢ, estimated over the last quarter of the atoms; at least ½."""
    if size <= 1:
        return 0.5
    earlier = max(1, 3 * size // 4)
    decrease = np.log(rule.lack(losses, earlier) / lack)
    return max(float(decrease / np.log((size + 1) / (earlier + 1))), 0.5)
