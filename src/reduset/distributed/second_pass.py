"""What pass two computes of a partition: sums against the chosen atoms. All can be added, and are, in the order of the partitions.

    κⱼ = Σᵢ wᵢ g(xᵢ, cⱼ)          the right side of the equations for the weights
    f̂(ω) = Σᵢ wᵢ exp(i ω·zᵢ)      the waves of f at ladders of frequencies, for the measured error, here and at other bandwidths
    Σᵢ wᵢ √(1 − g(dᵢ)²), min g     the parts of the a-priori bounds, dᵢ the distance to the nearest atom

Where the atoms miss much of the mass, or the bandwidth is too small for angles, f is also summed at some rows, which then tell the
error; and for a density at some more, to see how its logarithm changes. O(n·(m + s)) in all, spread over the partitions.

κ is summed in float32 where the rounding of that, as the equations enlarge it, stays far below the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import reduce
from typing import cast

import numpy as np
from scipy.linalg import solve_triangular

from reduset._engine import Frame, leaves_for, nearest
from reduset._types import Array, Floats, Precision
from reduset.certificate.bounds import Bounds, BoundTerms
from reduset.certificate.by_frequencies import FrequencyProbe
from reduset.certificate.by_scale import WaveScales, median_distance, reaches
from reduset.certificate.certificate import DENSITY_ROWS
from reduset.certificate.frequencies import FrequencyLadders, Waves, two_sided
from reduset.certificate.probe import Measurement
from reduset.certificate.rule import PROBE_ROWS, by_rows, rows_needed, rows_quantile
from reduset.distributed.partitions import PartitionRows
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.weights import FactoredSpan, Span

LADDERS = 96  # half of what a compression in memory takes: intervals are √2 times as wide, in half the time
SINGLE_ROUNDING = 1e-5  # relative, of κ summed in float32
LEAST_LOST = 1e-9  # of ‖f‖², below which the difference that tells the error is rounding itself
ROUNDING_SHARE = 0.01  # of the squared error, which rounding may add
ROUGHLY = 2  # times the mass that the atoms miss as pass one weighs them is sure to be above what they will miss


@dataclass(frozen=True)
class CoarserLadders:
    """Ladders for the median distance of the rows, if those of the kernel's bandwidth do not reach it."""

    kernel: RadialKernel
    frame: Frame
    ladders: FrequencyLadders
    thin: float

    @classmethod
    def reaching_median(
        cls, own: FrequencyProbe, ladders: FrequencyLadders, sample: KernelMean, size: int, rng: np.random.Generator
    ) -> CoarserLadders | None:
        """None if the ladders reach the median distance of a sample, or if its rows coincide."""
        median = median_distance(sample)
        if median is None or reaches(cast(RadialKernel, sample.kernel), ladders, median):
            return None
        probe = own.at(median, deepcopy(rng).spawn(1)[0])  # the numbers drawn later stay the same
        drawn = probe.ladders(LADDERS, size)
        return cls(probe.kernel, probe.frame, drawn, probe.thin_in(drawn))


@dataclass(frozen=True)
class SecondPassPlan:
    """The plan of pass two: what to sum, for every partition the same.

    Attributes
    ----------
    atoms : (m, d); ladders : None where the bandwidth is too small for angles
    thin : how far the sample spreads in directions in which no ladder climbs, in the frame's coordinates
    coarser : ladders with the median distance as bandwidth, if the first ones do not reach it; else None
    sizes : of the prefixes of the atoms that bounds are wanted for, the last is m
    rows : (r, d) where f is wanted too, or none; density_rows : (q, d) where its logarithm is, or none
    """

    kernel: RadialKernel
    atoms: Array
    sizes: tuple[int, ...]
    precision: Precision
    frame: Frame
    ladders: FrequencyLadders | None
    rows: Floats
    density_rows: Floats
    thin: float = 0.0
    coarser: CoarserLadders | None = None

    @classmethod
    def for_atoms(
        cls, span: Span, sizes: tuple[int, ...], square_norm: float, sample: KernelMean, confidence: float, rng: np.random.Generator
    ) -> SecondPassPlan:
        """For the first atoms of the span that pass one found, as many as the last size says.

        Parameters
        ----------
        square_norm : ‖f‖² of the mean that the span faces; sample : some of the rows, in place of all
        """
        size, kernel = sizes[-1], sample.kernel
        if not isinstance(kernel, RadialKernel):
            raise TypeError(f"only shift-invariant kernels have frequencies, {kernel!r} is none")
        frequencies = FrequencyProbe(sample, confidence, rng)
        ladders = frequencies.ladders(LADDERS, size) if frequencies.resolved else None
        missing = abs(1 - float(span.weights("free", 1.0, size).sum()))
        rows = density_rows = sample.atoms[:0]
        if rows_needed(frequencies.resolved, ROUGHLY * missing):
            rows = sample.atoms[sample.draw_rows(PROBE_ROWS, rng)]
        if kernel.normalized:
            density_rows = sample.atoms[np.unique(sample.draw_rows(min(DENSITY_ROWS, sample.size), rng))]
        precision, atoms = _precision_for(span, size, square_norm), span.atoms[:size]
        thin, coarser = 0.0, None
        if ladders is not None:
            thin, coarser = frequencies.thin_in(ladders), CoarserLadders.reaching_median(frequencies, ladders, sample, size, rng)
        return cls(kernel, atoms, sizes, precision, frequencies.frame, ladders, rows, density_rows, thin, coarser)


def _precision_for(span: Span, size: int, square_norm: float) -> Precision:
    """Float32 where its rounding adds little: δκ adds ‖L⁻¹δκ‖² to the squared error."""
    if not isinstance(span, FactoredSpan):
        return "double"
    enlarged = solve_triangular(span.L[:size, :size], np.diag(span.kappa[:size]), lower=True, check_finite=False)
    added = SINGLE_ROUNDING**2 * float(np.square(enlarged).sum())
    lost = square_norm - span.energy(size)
    return "auto" if lost > LEAST_LOST * square_norm and added < ROUNDING_SHARE * lost else "double"


@dataclass(frozen=True)
class SecondPassSums:
    """The sums of pass two over some partitions.

    Attributes
    ----------
    kappa : (m,); waves : (s, rungs), empty without ladders; values : (r,); logs : (q,)
    coarse_waves : (s, rungs) of the coarser ladders, empty without them
    bounds : (k, 3) Σw√(1 − g²), Σw√(2 − 2g) and Σw for each size; nearest : (k,) min g
    """

    kappa: Array
    waves: Waves
    values: Array
    logs: Array
    bounds: Array
    nearest: Array
    coarse_waves: Waves

    @classmethod
    def of(cls, rows: PartitionRows, plan: SecondPassPlan) -> SecondPassSums | None:
        """Over the rows of one partition, None where it has none: a task."""
        points, weights, kernel, coarser = rows.points, rows.weights, plan.kernel, plan.coarser
        if not len(points):
            return None
        sums = kernel.product_sums(points, weights, np.concatenate([plan.atoms, plan.rows]), plan.precision)
        return cls(
            sums[: len(plan.atoms)],
            _waves(plan.ladders, points, weights, plan.frame),
            sums[len(plan.atoms) :],
            kernel.log_sums(points, weights, plan.density_rows) if len(plan.density_rows) else np.empty(0),
            *_bound_sums(plan, points, weights),
            _waves(None if coarser is None else coarser.ladders, points, weights, plan.frame if coarser is None else coarser.frame),
        )

    def plus(self, other: SecondPassSums) -> SecondPassSums:
        """Over the partitions of both."""
        return SecondPassSums(
            self.kappa + other.kappa,
            self.waves + other.waves,
            self.values + other.values,
            np.logaddexp(self.logs, other.logs),
            self.bounds + other.bounds,
            np.minimum(self.nearest, other.nearest),
            self.coarse_waves + other.coarse_waves,
        )


def add_sums(sums: Sequence[SecondPassSums | None]) -> SecondPassSums | None:
    """Over all the partitions of several, added in order."""
    some = [each for each in sums if each is not None]
    return reduce(SecondPassSums.plus, some) if some else None


def _waves(ladders: FrequencyLadders | None, points: Floats, weights: Array, frame: Frame) -> Waves:
    """(s, rungs) of rows, empty without ladders."""
    return np.empty((0, 0), np.complex128) if ladders is None else ladders.waves(points, weights, frame)


def _bound_sums(plan: SecondPassPlan, rows: Floats, weights: Array) -> tuple[Array, Array]:
    """The parts of the bounds for each size: every prefix looks only at the atoms that the one before it lacks."""
    kernel, d = plan.kernel, rows.shape[1]
    shape = kernel.product(d)
    metric = shape.profile.ranking
    frame, scale = kernel.frame(rows, shape).sized(rows)
    leaves = leaves_for(rows, frame, len(plan.atoms))  # once for all prefixes
    terms, distance, start = [], np.full(len(rows), np.inf), 0
    for stop in plan.sizes:
        distance = np.minimum(distance, nearest(rows, plan.atoms[start:stop], frame, metric, leaves)[1])
        terms.append(BoundTerms.of(kernel.product_at(scale * distance, d), weights))
        start = stop
    return np.array([(each.summed, each.quantised, each.total) for each in terms]), np.array([each.least for each in terms])


def residual(plan: SecondPassPlan, sums: SecondPassSums, span: Span, mass: float, confidence: float) -> Measurement:
    """‖f − Pf‖² for all the atoms of a span that faces κ / mass, f of mass 1."""
    free = span.weights("free", 1.0, span.size)
    if len(plan.rows) and rows_needed(plan.ladders is not None, abs(1 - float(free.sum()))):
        signs, quantile = np.ones(len(plan.rows)), rows_quantile(confidence)
        return by_rows(plan.kernel, plan.rows, sums.values / mass, signs, span.atoms, free, span.kappa, quantile)
    if plan.ladders is None:
        raise RuntimeError("neither frequencies nor rows to measure by")
    difference = sums.waves / mass - plan.ladders.waves(span.atoms, free, plan.frame)
    return plan.ladders.measure(difference, two_sided(confidence))


def scales_from_sums(
    plan: SecondPassPlan, sums: SecondPassSums, sample: KernelMean, mass: float, squares: float, rng: np.random.Generator
) -> WaveScales | None:
    """The errors at other scales for f of mass 1, from the sums over all rows; norms and the median are those of the sample.

    Parameters
    ----------
    mass, squares : Σw and Σw² of all rows
    """
    if plan.ladders is None:
        return None
    squares = squares / mass / mass
    found = WaveScales.from_rows(sample, squares, plan.ladders, sums.waves / mass, plan.frame, rng, plan.thin)
    if plan.coarser is None:
        return found
    far, rows = plan.coarser, KernelMean(sample.atoms, sample.weights, plan.coarser.kernel)
    coarser = WaveScales.from_rows(rows, squares, far.ladders, sums.coarse_waves / mass, far.frame, rng, far.thin)
    return replace(found, coarser=coarser)


def bounds_from_sums(plan: SecondPassPlan, sums: SecondPassSums, size: int, mass: float) -> Bounds | None:
    """The a-priori bounds of the first ``size`` atoms for f of mass 1, by the largest prefix of them that was looked at."""
    looked = [k for k, each in enumerate(plan.sizes) if each <= size]
    if not looked:
        return None
    least = float(sums.nearest[looked[-1]])  # of a radial kernel, so not negative
    summed, quantised, total = (sums.bounds[looked[-1]] / mass).tolist()
    return Bounds.from_terms(BoundTerms(summed, quantised, total, least, least**2))


def density_change(plan: SecondPassPlan, sums: SecondPassSums, mass: float, small: KernelMean) -> float | None:
    """The largest change of the logarithm of the density at the rows looked at; None where f is no density."""
    if not len(plan.density_rows):
        return None
    before = sums.logs - np.log(mass) + plan.kernel.density_log_peak(small.dimension)
    return float(np.nan_to_num(np.abs(small.log_density(plan.density_rows) - before), nan=np.inf).max())
