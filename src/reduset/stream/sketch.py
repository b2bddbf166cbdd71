"""The state of a stream: sums over its rows, which are added chunk by chunk and part by part.

- `CandidateAtoms`: inner products at about 1.4·m points, which determine atoms and weights, and the sums of the a-priori bound.
- Fourier sums: Σ w exp(i ω·x) over all rows at fixed frequencies (`FrequencyLadders.of_kernel`), for the measured error.
- `Reservoir`: a uniform sample of rows for `StreamCompressor.sample` and the test for drift. It also measures the error if the
  frequencies have no digits, or if much of the mass is missing.

The result comes from the stages of `reduset.compression`: weigh, certify, result. A sketch is frozen. A chunk makes a new sketch,
so an error leaves the old one unchanged. O(m²) memory; a row costs O(m·d).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from reduset._engine import Frame, single_threaded_blas
from reduset._types import Array
from reduset.certificate import (
    MASS_MISSING,
    STEPS,
    Bounds,
    Certificate,
    FrequencyLadders,
    Measurement,
    Probe,
    Scales,
    Waves,
    WaveScales,
    angles_have_digits,
    median_distance,
    rung_bandwidths,
    square_norms,
    two_sided,
)
from reduset.compression import Atoms, Compression, Run, assemble, certify, weigh_atoms
from reduset.kernels import RadialKernel, exponential
from reduset.mean import KernelMean
from reduset.mixture import Pieces
from reduset.select import as_selector
from reduset.stream.candidates import CandidateAtoms
from reduset.stream.reservoir import Reservoir


@dataclass(frozen=True)
class StreamSketch:
    """A mergeable sketch.

    Attributes
    ----------
    size : Number of atoms of a result.
    mass, squares : Σ w and Σ w².
    origin : (d,) origin of the angles of the Fourier sums.
    waves : (s, rungs) Fourier sums.
    """

    size: int
    mass: float
    squares: float
    origin: Array
    waves: Waves
    candidates: CandidateAtoms
    reservoir: Reservoir

    @property
    def kernel(self) -> RadialKernel:
        return self.candidates.kernel

    @property
    def dimension(self) -> int:
        return len(self.origin)

    @property
    def ladders(self) -> FrequencyLadders:
        return FrequencyLadders.of_kernel(self.kernel, self.dimension)

    @property
    def frame(self) -> Frame:
        return Frame(self.origin, self.kernel.frame(self.origin[None], self.kernel.product(self.dimension)).matrix)

    @classmethod
    def from_first_chunk(
        cls, points: Array, weights: Array, kernel: RadialKernel, size: int, select: str, rng: np.random.Generator
    ) -> StreamSketch:
        """From the first chunk of rows, with a resolved bandwidth."""
        candidates = CandidateAtoms.from_first_chunk(points, weights, kernel, size, as_selector(select), rng)
        origin = np.median(points[:], axis=0).astype(np.float64)
        return cls._without_rows(candidates, origin)._added(points, weights, candidates, rng)

    @classmethod
    def _without_rows(cls, candidates: CandidateAtoms, origin: Array) -> StreamSketch:
        waves = np.zeros(FrequencyLadders.of_kernel(candidates.kernel, len(origin)).log_weights.shape, np.complex128)
        return cls(candidates.size, 0.0, 0.0, origin, waves, candidates, Reservoir.empty(len(origin)))

    def blank(self) -> StreamSketch:
        """A sketch without rows and with the same candidates, which can be merged with this one without interpolation."""
        return self._without_rows(self.candidates.blank(), self.origin)

    def absorb(self, points: Array, weights: Array, rng: np.random.Generator) -> StreamSketch:
        """After a chunk of rows."""
        candidates = self.candidates.absorb(points, weights, self.mass, self.reservoir.points, rng)
        return self._added(points, weights, candidates, rng)

    def _added(self, points: Array, weights: Array, candidates: CandidateAtoms, rng: np.random.Generator) -> StreamSketch:
        return replace(
            self,
            mass=self.mass + float(weights.sum()),
            squares=self.squares + float(weights @ weights),
            waves=self.waves + self.ladders.waves(points, weights, self.frame),
            candidates=candidates,
            reservoir=self.reservoir.absorb(points[:], weights, rng),
        )

    def faded(self, factor: float) -> StreamSketch:
        """After all weights shrank by a factor."""
        return replace(
            self,
            mass=self.mass * factor,
            squares=self.squares * factor**2,
            waves=self.waves * factor,
            candidates=self.candidates.faded(factor),
            reservoir=self.reservoir.faded(factor),
        )

    def merge(self, other: StreamSketch) -> StreamSketch:
        """The sketch of both parts."""
        shift = other.frame.apply(self.origin[None])[0]
        reservoir = self.reservoir.merge(other.reservoir)
        with single_threaded_blas():
            candidates = self.candidates.merge(other.candidates, (self.mass, other.mass), reservoir.points)
        return replace(
            self,
            mass=self.mass + other.mass,
            squares=self.squares + other.squares,
            waves=self.waves + self.ladders.turned(other.waves, -shift),
            candidates=candidates,
            reservoir=reservoir,
        )

    def sample(self) -> KernelMean:
        """A uniform sample of the rows."""
        return KernelMean(self.reservoir.points, self.reservoir.shares, self.kernel)

    # -- the result ---------------------------------------------------------------------------------------------------------

    def result(self, kind: str, confidence: float, rows: int, selection: str, rng: np.random.Generator) -> Compression:
        """The compression of ``rows`` rows to ``size`` atoms, or fewer if fewer are distinct."""
        probe = SketchProbe(self, confidence)
        target = Run(rng, confidence).target(self.sample(), probe)
        with single_threaded_blas():
            atoms, interpolated = self._atoms()
            weighed = weigh_atoms(target, atoms)
            prefixes = certify(target, weighed, kind)
            radius, moved = self.candidates.covering(prefixes.atoms)
            result = assemble(
                prefixes,
                weighed.span.size,
                rows,
                selection,
                target.run.clock,
                bounds=self._bounds(radius, moved),
                remark=self._remark(radius, interpolated),
                scales=target.scales(weighed.span.size),
            )
            return result if interpolated == 0 else replace(result, certificate=self._measured_again(result, probe))

    def _atoms(self) -> tuple[Atoms, float]:
        """The candidates that explain most, with κ, and the proportion of the stream for which κ was interpolated."""
        candidates = self.candidates
        best = candidates.best(self.size)
        points = candidates.points[best]
        if self.reservoir.is_everything:
            rows = self.reservoir
            kappa, missed = self.kernel.product_sums(rows.points, rows.weights, points), 0.0
        else:
            # Interpolated and exact κ agree only up to an error, which nearly dependent kernel functions would magnify.
            kappa = candidates.interpolated(points) if candidates.missed.any() else candidates.kappa[best]
            missed = float(np.mean(candidates.missed[best])) / self.mass
        return Atoms(points, in_order=False, kappa=kappa / self.mass), missed

    def _bounds(self, radius: float, moved: float) -> Bounds:
        """The a-priori bounds from the covering radius and from the assignments of all rows."""
        incoherence = float(self.kernel.product_at(np.array([radius]), self.dimension)[0])
        bounds = Bounds.from_incoherence(1.0, incoherence)
        summed = moved if bounds.summed is None else min(moved, bounds.summed)
        return Bounds(summed, bounds.theorem, moved, incoherence)

    def _remark(self, radius: float, interpolated: float) -> str:
        text = f"covering radius at most {radius / self.kernel.product(self.dimension).stretch:.3g} bandwidths"
        if interpolated > 0:
            text += f"; {100 * interpolated:.3g} % of the inner products at the atoms were interpolated"
        return text

    def _measured_again(self, result: Compression, probe: SketchProbe) -> Certificate:
        """The certificate if κ of some atoms was interpolated, so that the weights are not exactly the best.

        Pythagoras, ‖f − f_α‖² = ‖f − P f‖² + ‖P f − f_α‖², needs f − P f perpendicular to the span. With an interpolated κ, the
        free weights give a projection that differs from P f, and the rest is not perpendicular. For weights other than "free", the
        error is therefore measured for the mean that is returned. The bound is the one that holds for any weights.
        """
        small, certificate = cast(KernelMean, result.mean), result.certificate
        bound, unit = self.candidates.error_bound(small), exponential(self.kernel.log_energy(self.dimension) / 2)
        sup = None if certificate.sup_bound is None else bound * unit**2
        certificate = replace(certificate, bound=bound * unit, theorem_bound=None, sup_bound=sup)
        if result.weighting == "free" or not 0 < unit < np.inf or not certificate.norm > 0:
            return certificate
        measured = probe.glance(np.asarray(small.atoms, np.float64), small.weights)
        error, low, high = (np.sqrt(square) * unit / certificate.norm for square in (measured.square, measured.low, measured.high))
        return replace(certificate, relative_error=float(error), interval=(float(low), float(high)), method=measured.method)


class SketchProbe(Probe):
    """Errors from the Fourier sums over all rows. If rows are needed, the more precise estimate of Fourier sums and sample."""

    def __init__(self, sketch: StreamSketch, confidence: float) -> None:
        self._sketch, self._quantile = sketch, two_sided(confidence)
        self._has_digits = angles_have_digits(sketch.frame.apply(sketch.reservoir.points))
        self._squares = sketch.squares / sketch.mass / sketch.mass

    def glance(self, atoms: Pieces, weights: Array, kappa: Array | None = None) -> Measurement:
        sketch, ladders = self._sketch, self._sketch.ladders
        small = KernelMean(cast(Array, atoms), weights, sketch.kernel)
        by_waves = ladders.measure(sketch.waves / sketch.mass - ladders.waves(atoms, weights, sketch.frame), self._quantile)
        if self._has_digits and abs(1.0 - small.mass) <= MASS_MISSING:
            return by_waves
        square, width = sketch.reservoir.square_distance(small, self._squares, self._quantile)
        is_better = self._has_digits and by_waves.high - by_waves.low < 2 * width
        return by_waves if is_better else Measurement.within(square, width, "sample")

    def scales(self, size: int, rng: np.random.Generator) -> Scales | None:
        """From the sums over all rows. Norms and the median distance come from the sample."""
        if not self._has_digits:
            return None
        sketch = self._sketch
        rows, waves = sketch.sample(), sketch.waves / sketch.mass
        kernel, ladders, squares, median = sketch.kernel, sketch.ladders, self._squares, median_distance(rows)
        rungs = rung_bandwidths(kernel, ladders.below, ladders.rungs)
        norms = square_norms(rows, squares, kernel, rungs, rng)
        # ladders start at much larger scales than the data
        shown = rungs if median is None else rungs[max(int((rungs >= median).sum()) - STEPS, 0) :]
        return WaveScales(kernel, ladders, waves, sketch.frame, rows.mass, squares, norms, 0.0, median, rungs, shown)
