"""What is kept of a stream: sums over its rows, each of which can be added up chunk by chunk and part by part.

`CandidateAtoms`  inner products at some 1.5·m places, from which the atoms and their weights come
`OnlineKCenter`   k centres by the doubling algorithm: the covering radius and a bound that holds before anything is measured
`GaussianMoments`  coordinates of the mean of a Gaussian in few dimensions at a wide bandwidth, from which κ follows at every place
waves             Σ w exp(i ω·x) of every row at fixed frequencies (`FrequencyLadders.of_kernel`): the measured error
`Reservoir`       a fair sample of rows: how far the atoms may be from the best covering, whether a chunk is news, and the error
                  where frequencies see too little of it

A sketch is frozen: a chunk makes a new one, and whatever goes wrong on the way leaves the old one as it was. O(m²) memory; a row
costs O(m·d).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from reduset._engine import Frame, order_by_energy, single_threaded_blas
from reduset._progress import Clock
from reduset._types import Array
from reduset.certificate import Certificate
from reduset.certificate.bounds import Bounds
from reduset.certificate.by_frequencies import angles_have_digits
from reduset.certificate.by_scale import Scales, WaveScales
from reduset.certificate.frequencies import FrequencyLadders, Waves, two_sided
from reduset.certificate.probe import Measurement
from reduset.certificate.rule import rows_needed
from reduset.compression import Compression
from reduset.compression.prefixes import Prefixes
from reduset.compression.result import assemble
from reduset.kernels import Gaussian, RadialKernel
from reduset.kernels.base import exponential
from reduset.mean import KernelMean
from reduset.select import as_selector
from reduset.stream.candidates import CandidateAtoms, PivotedBasis
from reduset.stream.moments import GaussianMoments
from reduset.stream.online_kcenter import OnlineKCenter
from reduset.stream.reservoir import Reservoir
from reduset.weights import span_of

FARTHEST = 1e100  # coordinates whose squares are numbers
REMEMBERED = 1024  # rows of the sample that may become atoms, where κ is known at every place


@dataclass(frozen=True)
class StreamSketch:
    """A mergeable sketch: sums over the rows so far.

    Attributes
    ----------
    size : how many atoms will be asked for
    mass, squares : Σ w and Σ w²
    origin : (d,) of the waves' angles
    """

    size: int
    mass: float
    squares: float
    origin: Array
    waves: Waves
    candidates: CandidateAtoms
    centres: OnlineKCenter
    reservoir: Reservoir
    moments: GaussianMoments | None = None

    @property
    def kernel(self) -> RadialKernel:
        return self.candidates.kernel

    @property
    def dimension(self) -> int:
        return len(self.origin)

    @property
    def _ladders(self) -> FrequencyLadders:
        return FrequencyLadders.of_kernel(self.kernel, self.dimension)

    @property
    def frame(self) -> Frame:
        return Frame(self.origin, self.kernel.frame(self.origin[None], self.kernel.product(self.dimension)).matrix)

    @classmethod
    def from_first_chunk(
        cls, points: Array, weights: Array, kernel: RadialKernel, size: int, select: str, rng: np.random.Generator
    ) -> StreamSketch:
        """From the first chunk of rows, the kernel's bandwidth a number."""
        candidates = CandidateAtoms.from_first_chunk(points, weights, kernel, size, as_selector(select), rng)
        blank = cls._without_rows(candidates, np.median(points[:], axis=0).astype(np.float64))
        moments = GaussianMoments.for_rows(blank._coordinates(points[:]), weights, size) if isinstance(kernel, Gaussian) else None
        return replace(blank, moments=moments)._added(points, weights, candidates, rng)

    @classmethod
    def _without_rows(cls, candidates: CandidateAtoms, origin: Array) -> StreamSketch:
        kernel, size, d = candidates.kernel, candidates.size, len(origin)
        waves = np.zeros(FrequencyLadders.of_kernel(kernel, d).shares.shape, np.complex128)
        return cls(size, 0.0, 0.0, origin, waves, candidates, OnlineKCenter.empty(kernel, size, d), Reservoir.empty(d))

    def blank(self) -> StreamSketch:
        """Without any rows, with the same candidates: what is added to it can be added to this one without loss."""
        zero = np.zeros(len(self.candidates.kappa))
        blank = self._without_rows(replace(self.candidates, kappa=zero, missed=zero), self.origin)
        return replace(blank, moments=None if self.moments is None else self.moments.blank())

    def absorb(self, points: Array, weights: Array, rng: np.random.Generator) -> StreamSketch:
        """After a chunk of rows."""
        candidates = self.candidates.absorb(points, weights, self.mass, self.reservoir, rng)
        return self._added(points, weights, candidates, rng)

    def _coordinates(self, points: Array) -> Array:
        """Those of the moments, in which the inner product of a Gaussian's bumps is exp(−|u − v|²/2)."""
        with np.errstate(over="ignore"):
            return np.clip(np.sqrt(2.0) * self.frame.apply(points), -FARTHEST, FARTHEST)

    def _around(self, centres: OnlineKCenter, moments: GaussianMoments) -> GaussianMoments:
        """The moments about the middle of the rows that the centres cover, where there are any."""
        places = self._coordinates(centres.centres)
        if not len(places):
            return moments
        return moments.around(places.min(axis=0), places.max(axis=0), self.mass)

    def _added(self, points: Array, weights: Array, candidates: CandidateAtoms, rng: np.random.Generator) -> StreamSketch:
        here = points[:]  # where they lie on a GPU: κ and waves are summed there, books of single rows are kept here
        mass, moments, centres = self.mass + float(weights.sum()), self.moments, self.centres.absorb(here, weights)
        if moments is not None:
            moments = self._around(centres, moments).absorb(self._coordinates(here), weights).unless_lost(mass)
        return replace(
            self,
            mass=mass,
            moments=moments,
            squares=self.squares + float(weights @ weights),
            waves=self.waves + self._ladders.waves(points, weights, self.frame),
            candidates=candidates,
            centres=centres,
            reservoir=self.reservoir.absorb(here, weights, rng),
        )

    def faded(self, factor: float) -> StreamSketch:
        """After all weights shrank by a factor."""
        return replace(
            self,
            mass=self.mass * factor,
            squares=self.squares * factor**2,
            waves=self.waves * factor,
            moments=None if self.moments is None else self.moments.faded(factor),
            candidates=self.candidates.faded(factor),
            centres=self.centres.faded(factor),
            reservoir=self.reservoir.faded(factor),
        )

    def merge(self, other: StreamSketch) -> StreamSketch:
        """The sketch of both parts."""
        shift = other.frame.apply(self.origin[None])[0]
        mass, centres, moments = self.mass + other.mass, self.centres.merge(other.centres), None
        with single_threaded_blas():
            candidates = self.candidates.merge(other.candidates, (self.mass, other.mass), (self.reservoir, other.reservoir))
            if self.moments is not None and other.moments is not None:
                theirs = replace(other.moments, origin=other.moments.origin - np.sqrt(2.0) * shift)
                moments = self._around(centres, self.moments).merge(theirs).unless_lost(mass)
        return replace(
            self,
            mass=mass,
            moments=moments,
            squares=self.squares + other.squares,
            waves=self.waves + self._ladders.turned(other.waves, -shift),
            candidates=candidates,
            centres=centres,
            reservoir=self.reservoir.merge(other.reservoir),
        )

    # -- the result ---------------------------------------------------------------------------------------------------------

    def result(self, kind: str, confidence: float, rows: int, selection: str, rng: np.random.Generator) -> Compression:
        """The compression of that many rows to ``size`` atoms, or fewer where fewer are distinct."""
        clock = Clock()
        with single_threaded_blas():
            centres = self.centres.with_floor_of(self.reservoir.remembered())
            atoms, kappa, missed, forced = self._atoms(centres)
            order = order_by_energy(self.kernel.product_gram(atoms, atoms), kappa)
            span = span_of(self.kernel, atoms[order], kappa[order])
            free = span.weights("free", 1.0, span.size)
            residual = self._measured(KernelMean(span.atoms, free, self.kernel), confidence)
            prefixes = Prefixes.of_new_points(self.kernel, span, residual, kind, confidence)
            radius, moved = centres.of_atoms(prefixes.atoms)
            remark = self._remark(radius, centres.floor, missed, forced)
            bounds = self._bounds(radius, moved, centres.lost)
            with clock.stage("certify"):
                scales = self._scales(rng)
            result = assemble(prefixes, span.size, rows, selection, clock, bounds=bounds, remark=remark, scales=scales)
            if missed > 0 or forced:
                result = replace(result, certificate=self._without_pythagoras(result, centres))
        return result

    def _atoms(self, centres: OnlineKCenter) -> tuple[Array, Array, float, int]:
        """Atoms, κ there, how much of the stream they know only by interpolation, and how many are there for the covering alone.

        The candidates that explain most, the last of them given up where a centre's rows lie farther from all of them than
        promised.
        """
        candidates = self.candidates if self.moments is None else self._remembered(self.moments)
        order = candidates.best(self.size)
        wanted = centres.wanted(candidates.places[order], self.size)
        order = order[: self.size - len(wanted)]
        places, others = candidates.places[order], centres.centres[wanted]
        atoms = np.concatenate([places, others])
        if self.reservoir.is_everything:
            rows = self.reservoir
            return atoms, self.kernel.product_sums(rows.points, rows.weights, atoms) / self.mass, 0.0, 0
        # what was read off other candidates agrees with these only up to its error, which nearly dependent bumps would magnify
        own = candidates.projected(places) if candidates.missed.any() else candidates.kappa[order]
        kappa = np.concatenate([own, candidates.projected(others)]) / self.mass
        missed = float(np.mean(candidates.missed[order])) / self.mass if len(order) else 0.0
        return atoms, kappa, missed, len(wanted)

    def _remembered(self, moments: GaussianMoments) -> CandidateAtoms:
        """All places that are remembered as candidates, where the moments tell κ at each, as if all had been there from the first.

        Where the error is near rounding, it is decided by rows at the rim: these are found among the centres, and the places in
        between by a pivoted factor of all at once.
        """
        places = np.concatenate([self.candidates.places, self.centres.centres, self.reservoir.points[:REMEMBERED]])
        kappa = moments.at(self._coordinates(places))
        return replace(self.candidates, basis=PivotedBasis(self.kernel, places), kappa=kappa, missed=np.zeros(len(places)))

    def _bounds(self, radius: float, moved: float, lost: float) -> Bounds:
        """The a-priori bounds from the covering: all rows within a radius of an atom, except for those that were forgotten."""
        incoherence = float(self.kernel.product_at(np.array([radius]), self.dimension)[0])
        known = Bounds.from_incoherence(1.0, incoherence)
        theorem, summed = (None if each is None else each + lost / self.mass for each in (known.theorem, known.summed))
        return Bounds(moved if summed is None else min(moved, summed), theorem, moved, incoherence)

    def _without_pythagoras(self, result: Compression, centres: OnlineKCenter) -> Certificate:
        """The certificate where κ of some atoms was read off other candidates, so that the weights are not quite the best.

        Pythagoras, ‖f − f_α‖² = ‖f − Pf‖² + ‖Pf − f_α‖², needs f − Pf perpendicular to the span. The best weights for a κ that is
        not quite that of f give a projection that is not quite Pf: what is left of f is then not perpendicular to the atoms, and
        nothing may be added to its square. So the error of other weights than free ones, for which it was measured, is measured
        for the very mean that is returned. And what is promised of the best weights is not promised of these: the bound is the
        one that holds for any weights, by way of the centres.
        """
        small, certificate = cast(KernelMean, result.mean), result.certificate
        surely, unit = centres.of_mean(small), exponential(self.kernel.log_energy(self.dimension) / 2)
        sup = None if certificate.sup_bound is None else surely * unit**2
        certificate = replace(certificate, bound=surely * unit, theorem_bound=None, sup_bound=sup)
        if result.weighting == "free" or not 0 < unit < np.inf or not certificate.norm > 0:
            return certificate
        measured = self._measured(small, certificate.confidence)
        error, low, high = (np.sqrt(square) * unit / certificate.norm for square in (measured.square, measured.low, measured.high))
        return replace(certificate, relative_error=float(error), interval=(float(low), float(high)), method=measured.method)

    @property
    def _has_digits(self) -> bool:
        """Whether the bandwidth is large enough for random Fourier features."""
        return angles_have_digits(self.frame.apply(self.reservoir.points))

    def _scales(self, rng: np.random.Generator) -> Scales | None:
        """The errors at other scales, from the sums over all rows; norms and the median distance are those of the sample."""
        if not self._has_digits:
            return None
        squares, waves = self.squares / self.mass / self.mass, self.waves / self.mass
        return WaveScales.from_rows(self.sample(), squares, self._ladders, waves, self.frame, rng).from_spread()

    def _measured(self, small: KernelMean, confidence: float) -> Measurement:
        """‖f − f_m‖² by waves, by the sample where rows are needed; there, whichever is surer."""
        quantile, ladders = two_sided(confidence), self._ladders
        by_waves = ladders.measure(self.waves / self.mass - ladders.waves(small.atoms, small.weights, self.frame), quantile)
        resolved = self._has_digits
        if not rows_needed(resolved, abs(1.0 - small.mass)):
            return by_waves
        square, width = self.reservoir.square_distance(small, self.squares / self.mass / self.mass, quantile)
        if resolved and by_waves.high - by_waves.low < 2 * width:
            return by_waves
        return Measurement(max(square, 0.0), max(square - width, 0.0), max(square + width, 0.0), "sample")

    def _remark(self, radius: float, floor: float, missed: float, forced: int) -> str:
        unit = self.kernel.product(self.dimension).stretch
        words = (
            f"covering radius at most {radius / unit:.3g} bandwidths; no {self.size} points do with less than {floor / unit:.3g}"
        )
        if forced:
            words += f"; {forced} of the atoms are there for the covering alone"
        if missed > 0:
            words += f"; the atoms saw {100 * (1 - missed):.3g} % of the stream, the rest was read off the sites before them"
        return words

    def sample(self) -> KernelMean:
        """A fair sample of the rows."""
        return KernelMean(self.reservoir.points, self.reservoir.shares, self.kernel)
