"""What is kept of a stream: sums over its rows, each of which can be added up chunk by chunk and part by part.

`Sites`       inner products at some 1.5·m places, from which the atoms and their weights come
`Covering`    k-centres by the doubling algorithm: the covering radius and a bound that holds before anything is measured
waves         Σ w exp(i ω·x) of every row at fixed frequencies (`FrequencyLadders.of_kernel`): the measured error
`Reservoir`   a fair sample of rows: how far the atoms may be from the best covering, whether a chunk is news, and the error where
              frequencies see too little of it

A tally is frozen: a chunk makes a new one, and whatever goes wrong on the way leaves the old one as it was. O(m²) memory; a row
costs O(m·d).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reduset._engine import Frame, order_by_energy, single_threaded_blas
from reduset._types import Array
from reduset.certificate.bounds import Bounds, theorem_one
from reduset.certificate.by_frequencies import PHASES_UP_TO
from reduset.certificate.certificate import Certificate
from reduset.certificate.frequencies import FrequencyLadders, Waves, two_sided
from reduset.certificate.probe import Measurement
from reduset.certificate.rule import MASS_MISSING
from reduset.compression.clock import Clock
from reduset.compression.prefixes import Prefixes
from reduset.compression.result import Compression, assemble
from reduset.kernels.base import RadialKernel, exponential
from reduset.mean import KernelMean
from reduset.select import as_selector
from reduset.stream.candidates import Sites
from reduset.stream.online_kcenter import Covering
from reduset.stream.reservoir import Reservoir
from reduset.weights.span import span_of


@dataclass(frozen=True)
class Tally:
    """Sums over the rows so far.

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
    sites: Sites
    covering: Covering
    reservoir: Reservoir

    @property
    def kernel(self) -> RadialKernel:
        return self.sites.kernel

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
    def begun(cls, points: Array, weights: Array, kernel: RadialKernel, size: int, select: str, rng: np.random.Generator) -> Tally:
        """From the first chunk of rows, the kernel's bandwidth a number."""
        mean = KernelMean(points, weights / weights.sum(), kernel)
        sites = Sites.begun(mean, float(weights.sum()), size, as_selector(select), rng)
        d = points.shape[1]
        blank = cls(
            size=size,
            mass=0.0,
            squares=0.0,
            origin=np.median(points, axis=0).astype(np.float64),
            waves=np.zeros((1, 1), np.complex128),
            sites=sites,
            covering=Covering.empty(kernel, size, d),
            reservoir=Reservoir.empty(d),
        )
        return blank._with(points, weights, sites, rng)

    def absorb(self, points: Array, weights: Array, rng: np.random.Generator) -> Tally:
        """After a chunk of rows."""
        sites = self.sites.absorb(points, weights, self.mass, self.reservoir, rng)
        return self._with(points, weights, sites, rng)

    def _with(self, points: Array, weights: Array, sites: Sites, rng: np.random.Generator) -> Tally:
        return replace(
            self,
            mass=self.mass + float(weights.sum()),
            squares=self.squares + float(weights @ weights),
            waves=self.waves + self._ladders.waves(points, weights, self.frame),
            sites=sites,
            covering=self.covering.absorb(points, weights),
            reservoir=self.reservoir.absorb(points, weights, rng),
        )

    def blank(self) -> Tally:
        """Without any rows, with the same sites: what is added to it can be added to this one without loss."""
        zero = np.zeros(len(self.sites.kappa))
        return replace(
            self,
            mass=0.0,
            squares=0.0,
            waves=np.zeros_like(self.waves),
            sites=replace(self.sites, kappa=zero, missed=zero),
            covering=Covering.empty(self.kernel, self.size, self.dimension),
            reservoir=Reservoir.empty(self.dimension),
        )

    def faded(self, factor: float) -> Tally:
        """After all weights shrank by a factor."""
        return replace(
            self,
            mass=self.mass * factor,
            squares=self.squares * factor**2,
            waves=self.waves * factor,
            sites=self.sites.faded(factor),
            covering=self.covering.faded(factor),
            reservoir=self.reservoir.faded(factor),
        )

    def merge(self, other: Tally) -> Tally:
        """The tally of both parts."""
        shift = other.frame.apply(self.origin[None])[0]
        with single_threaded_blas():
            sites = self.sites.merge(other.sites, (self.mass, other.mass), (self.reservoir, other.reservoir))
        return replace(
            self,
            mass=self.mass + other.mass,
            squares=self.squares + other.squares,
            waves=self.waves + self._ladders.turned(other.waves, -shift),
            sites=sites,
            covering=self.covering.merge(other.covering),
            reservoir=self.reservoir.merge(other.reservoir),
        )

    # -- the result ---------------------------------------------------------------------------------------------------------

    def result(self, kind: str, confidence: float, rows: int, selection: str) -> Compression:
        """The compression of that many rows to ``size`` atoms, or fewer where fewer are distinct."""
        clock = Clock()
        with single_threaded_blas():
            covering = self.covering.sharpened(self.reservoir.remembered())
            atoms, kappa, missed, forced = self._atoms(covering)
            order = order_by_energy(self.kernel.product_gram(atoms, atoms), kappa)
            span = span_of(self.kernel, atoms[order], kappa[order])
            free = span.weights("free", 1.0, span.size)
            residual = self._measured(KernelMean(span.atoms, free, self.kernel), confidence)
            prefixes = Prefixes(self.kernel, span, residual, kind, 1.0, 1.0, np.zeros(span.size), None, confidence)
            radius, moved = covering.of_atoms(prefixes.atoms)
            incoherence = float(self.kernel.product_at(np.array([radius]), self.dimension)[0])
            theorem = theorem_one(1.0, incoherence) + covering.lost / self.mass
            bounds = Bounds(min(moved, theorem), theorem, moved, incoherence)
            remark = self._remark(radius, covering.floor, missed, forced)
            result = assemble(prefixes, span.size, rows, selection, clock, bounds=bounds, remark=remark)
            if missed > 0 or forced:
                result = replace(result, certificate=self._of_what_is_known(result.certificate, result.mean, covering, kind))
        return result

    def _atoms(self, covering: Covering) -> tuple[Array, Array, float, int]:
        """Atoms, κ there, how much of the stream they know only by interpolation, and how many are there for the covering alone.

        The sites that explain most, the last of them given up where a centre's rows lie farther from all of them than promised.
        """
        sites = self.sites
        order = sites.best(self.size)
        chosen = covering.wanted(sites.places[order], self.size)
        order = order[: self.size - len(chosen)]
        atoms = np.concatenate([sites.places[order], covering.centres[chosen]])
        if self.reservoir.is_everything:
            rows = self.reservoir
            return atoms, self.kernel.product_sums(rows.points, rows.weights, atoms) / self.mass, 0.0, 0
        # what was read off other sites agrees with these only up to its error, which nearly dependent bumps would magnify
        own = sites.values(sites.places[order]) if sites.missed.any() else sites.kappa[order]
        kappa = np.concatenate([own, sites.values(covering.centres[chosen])]) / self.mass
        return atoms, kappa, float(np.mean(sites.missed[order])) / self.mass if len(order) else 0.0, len(chosen)

    def _of_what_is_known(self, certificate: Certificate, small: KernelMean, covering: Covering, kind: str) -> Certificate:
        """The certificate of weights that are the best of what is known of f, which are not quite the best there are.

        f less the best of its span is then not quite perpendicular to it: nothing is added by Pythagoras, all is measured. And what
        is promised for the best weights is not promised for these.
        """
        surely, unit = covering.of_mean(small), exponential(self.kernel.log_energy(self.dimension) / 2)
        sup = None if certificate.sup_bound is None else surely * unit**2
        certificate = replace(certificate, bound=surely * unit, theorem_bound=None, sup_bound=sup)
        if kind == "free" or not 0 < unit < np.inf or not certificate.norm > 0:
            return certificate
        measured = self._measured(small, certificate.confidence)
        error, low, high = (np.sqrt(square) * unit / certificate.norm for square in (measured.square, measured.low, measured.high))
        return replace(certificate, relative_error=float(error), interval=(float(low), float(high)), method=measured.method)

    def _measured(self, small: KernelMean, confidence: float) -> Measurement:
        """‖f − f_m‖²."""
        quantile = two_sided(confidence)
        ladders = self._ladders
        by_waves = ladders.measure(self.waves / self.mass - ladders.waves(small.atoms, small.weights, self.frame), quantile)
        resolved = np.median(np.abs(self.frame.apply(self.reservoir.points))) < PHASES_UP_TO
        if resolved and abs(1.0 - small.mass) <= MASS_MISSING:
            return by_waves
        square, width = self.reservoir.square_distance(small, self.squares / self.mass / self.mass, quantile)
        by_sample = Measurement(max(square, 0.0), max(square - width, 0.0), max(square + width, 0.0), "sample")
        # much mass missing may be energy in spots so narrow that random frequencies miss them: whichever is surer
        return by_waves if resolved and by_waves.high - by_waves.low < 2 * width else by_sample

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
