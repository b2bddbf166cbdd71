"""Probes: the measured distance ‖f − f_m‖² of a large mean f to a small one f_m, with a confidence interval.

The difference ‖f‖² − αᵀκ of two nearly equal numbers loses all digits, and ‖f‖² costs n². Three ways around both, each prepared
once for f and then cheap for every f_m:

`Frequencies`  ‖f − f_m‖² = C·E|f̂(ω) − f̂_m(ω)|² over the kernel's spectrum. Every term is a square, so the relative error of the
               estimate does not depend on how small the distance is. O(n·s). The energy of a difference may sit where the
               spectrum seldom goes, so each draw is a ladder of frequencies ω, 2ω, 4ω, … that spans all scales from the
               spread of the data to the spacing of the atoms, re-weighted. For shift-invariant kernels.
`Rows`         Σᵢ wᵢ r(xᵢ) − Σ αₗ r(cₗ) with r = f − f_m, the first sum from a sample of rows. O(n·s). For function kernels,
               for bandwidths too small for angles, and where much of the mass is missed (`Either`).
`Everything`   the same with every row: exact up to rounding. O(n²), for small n.

All in units where every bump has norm 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from reduset._engine.profile import Floats, Frame
from reduset.ladders import SAFETY, Ladders, Measured, Waves, two_sided
from reduset.mean import KernelMean
from reduset.radial import Array, Kernel, RadialKernel
from reduset.spectrum import ProductSpectrum

EXACT_UP_TO = 4096
LADDERS, LADDERS_AT_A_GLANCE = 192, 64
SOME_ROWS = 4000
WIDE = 0.02  # of the largest deviation
PHASES_UP_TO = 1e9  # bandwidths from the centre: beyond, an angle has no digits left, and every bump stands alone
ROWS = 384
MASS_MISSING = 0.1


class Probe(ABC):
    """Prepared for one mean."""

    @abstractmethod
    def glance(self, atoms: Array, weights: Array, kappa: Array) -> Measured:
        """A quick estimate, without another pass over the data."""

    def measure(self, atoms: Array, weights: Array, kappa: Array) -> Measured:
        """The estimate that a certificate states; by default the quick one is all there is."""
        return self.glance(atoms, weights, kappa)


def probe(mean: KernelMean, confidence: float, rng: np.random.Generator) -> Probe:
    """The right probe for the mean: exact where it is small, by frequencies where the kernel has them."""
    finer = None
    if isinstance(mean.kernel, RadialKernel):
        frequencies = Frequencies(mean, confidence, rng)
        if frequencies.resolved:
            finer = frequencies
    if mean.size <= EXACT_UP_TO:
        return Everything(mean, finer)
    rows = Rows(mean, confidence, rng)
    return Either(finer, rows) if finer else rows


class Everything(Probe):
    """Exact up to rounding; below the rounding it hands over to the frequencies, which have none to speak of."""

    def __init__(self, mean: KernelMean, finer: Probe | None) -> None:
        self._mean = mean
        self._values = mean.kernel.product_sums(mean.atoms, mean.weights, mean.atoms)
        self._finer = finer

    def glance(self, atoms: Array, weights: Array, kappa: Array) -> Measured:
        mean = self._mean
        residual = self._values - mean.kernel.product_sums(atoms, weights, mean.atoms)
        at_atoms = kappa - mean.kernel.product_sums(atoms, weights, atoms)
        square = float(mean.weights @ residual - weights @ at_atoms)
        rounding = 4 * float(np.finfo(np.float64).eps) * float(mean.magnitudes.sum() + np.abs(weights).sum()) ** 2
        if self._finer is not None and square < 1e3 * rounding:
            return self._finer.measure(atoms, weights, kappa)
        return Measured(max(square, 0.0), max(square - rounding, 0.0), max(square, 0.0) + rounding, "exact")


class Frequencies(Probe):
    """By the kernel's spectrum, at several scales in the directions in which the data spread."""

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        kernel = mean.kernel
        if not isinstance(kernel, RadialKernel):
            raise TypeError("only shift-invariant kernels have frequencies")
        self._mean, self._rng = mean, rng
        self._quantile = two_sided(confidence)
        self._spectrum = kernel.spectrum(mean.dimension)
        some = np.asarray(mean.atoms[:: max(1, mean.size // SOME_ROWS)], np.float64)
        frame = kernel.frame(mean.atoms, kernel.product(mean.dimension))
        # centred where most points are, so that one far outlier does not cost the phases of all others their digits
        self.frame = Frame(np.median(some, axis=0), frame.matrix)
        with np.errstate(over="ignore", invalid="ignore"):
            z = np.clip(self.frame.apply(some), -1e100, 1e100)
        self.resolved = bool(np.median(np.abs(z)) < PHASES_UP_TO)
        self._wide, self._spread = _wide_directions(z, self._spectrum.rotates)
        self._banks: dict[tuple[int, int], tuple[Ladders, Waves]] = {}

    def ladders(self, count: int, size: int) -> Ladders:
        """``count`` ladders for compressions to ``size`` atoms, drawn anew with every call."""
        starts, below, rungs = self._span_of_scales(size)
        spectrum = self._spectrum
        if isinstance(spectrum, ProductSpectrum):
            return Ladders.along_axes(spectrum, np.flatnonzero(self._wide.any(axis=1)), count, starts, rungs, self._rng)
        return Ladders.spanning(spectrum, self._wide, count, starts, below, rungs, self._rng)

    def _bank(self, count: int, size: int) -> tuple[Ladders, Waves]:
        """``count`` ladders for compressions to ``size`` atoms, drawn once: f̂ at them is the only pass over the data."""
        rungs = self._span_of_scales(size)[2]
        if (count, rungs) not in self._banks:
            ladders = self.ladders(count, size)
            self._banks[count, rungs] = ladders, ladders.waves(self._mean.atoms, self._mean.weights, self.frame)
        return self._banks[count, rungs]

    def _span_of_scales(self, size: int) -> tuple[tuple[float, float], int, int]:
        """Where ladders start, how many rungs lie below the spectrum's own scale, and how many there are.

        Half of the ladders start at the scale where a Gaussian cloud of this spread has its energy, half at a power of two below
        it, so that one rung is the spectrum itself. They end where atoms at their typical spacing can no longer resolve anything,
        or where the spectrum does: a power law has weight down to the gaps between points that nearly coincide.
        """
        # lower rungs than these hold less of the spectrum than a thousandth of one point's own energy
        energy = max(1 / np.sqrt(1 + 4 * self._spread**2), 1 / (1000.0 * self._mean.size))
        top = self._spectrum.octaves
        if not self._spectrum.heavy:
            spacing = self._spread / size ** (1 / self._wide.shape[1])
            top = min(top, max(2.0, np.log2(4 / max(spacing, 1e-9))))
        below = int(np.ceil(-np.log2(energy) - 1e-9))
        return (energy, 2.0**-below), below, below + int(np.ceil(top)) + 1

    def _estimate(self, count: int, atoms: Array, weights: Array) -> Measured:
        ladders, waves = self._bank(count, len(atoms))
        return ladders.measure(waves - ladders.waves(atoms, weights, self.frame), self._quantile)

    def glance(self, atoms: Array, weights: Array, kappa: Array) -> Measured:
        return self._estimate(LADDERS_AT_A_GLANCE, atoms, weights)

    def measure(self, atoms: Array, weights: Array, kappa: Array) -> Measured:
        return self._estimate(LADDERS, atoms, weights)


def _wide_directions(z: Array, rotates: bool) -> tuple[Array, float]:
    """An orthonormal basis (d, k) of the directions in which the coordinates z spread, and their spread along these.

    In the others they hardly move, so that the waves do not depend on the frequency there: to stretch it would only make the
    weights of the ladders uneven. Data near a sheet in many dimensions are measured as if they lay in the sheet.
    """
    low, high = np.quantile(z, [0.005, 0.995], axis=0)
    reach = 3 * (high - low)  # a few far outliers are drawn in: they are bumps of their own, wherever they stand
    centred = np.clip(z, low - reach, high + reach)
    centred -= centred.mean(axis=0)
    if rotates:
        variances, axes = np.linalg.eigh(centred.T @ centred / len(z))
    else:
        variances, axes = np.mean(centred**2, axis=0), np.eye(z.shape[1])
    deviations = np.sqrt(np.maximum(variances, 0.0))
    wide = deviations >= WIDE * deviations.max()
    return axes[:, wide], float(np.sqrt(np.mean(deviations[wide] ** 2)))


class Either(Probe):
    """Frequencies, except where the small mean misses much of the mass of the large one: then a sample of rows.

    The energy of such a difference is all near frequency 0 and, if the data lie on a lattice, near its reciprocal one: in spots so
    narrow that random frequencies miss them. Its values at the rows hardly vary, so that few rows tell it well.
    """

    def __init__(self, frequencies: Frequencies, rows: Rows) -> None:
        self._frequencies, self._rows = frequencies, rows

    def glance(self, atoms: Array, weights: Array, kappa: Array) -> Measured:
        return self._frequencies.glance(atoms, weights, kappa)

    def measure(self, atoms: Array, weights: Array, kappa: Array) -> Measured:
        better = self._rows if self._rows.mass_missing(weights) > MASS_MISSING else self._frequencies
        return better.measure(atoms, weights, kappa)


class Rows(Probe):
    """By a sample of rows, whose values of f are the only pass over the data."""

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        self._mean, self._rng = mean, rng
        self._total = float(mean.magnitudes.sum())
        self._quantile = rows_quantile(confidence)

    @cached_property
    def _drawn(self) -> tuple[NDArray[np.int64], Array]:
        """Rows drawn by weight, and f at each."""
        mean = self._mean
        rows = mean.draw_rows(ROWS, self._rng)
        return rows, mean.kernel.product_sums(mean.atoms, mean.weights, mean.atoms[rows])

    def mass_missing(self, weights: Array) -> float:
        """The mass that weights lack or have too much, as a share of Σ|w|."""
        return abs(self._mean.mass - float(weights.sum())) / self._total

    def glance(self, atoms: Array, weights: Array, kappa: Array) -> Measured:
        mean = self._mean
        rows, values = self._drawn
        signs = self._total * np.sign(mean.weights[rows])
        return by_rows(mean.kernel, mean.atoms[rows], values, signs, atoms, weights, kappa, self._quantile)


def by_rows(
    kernel: Kernel, places: Floats, values: Array, signs: Array, atoms: Array, weights: Array, kappa: Array, quantile: float
) -> Measured:
    """‖f − f_m‖² from the values of f at places drawn by |w|; ``signs`` are those of their weights, times Σ|w|."""
    terms = signs * (values - kernel.product_sums(atoms, weights, places))
    at_atoms = float(weights @ (kappa - kernel.product_sums(atoms, weights, atoms)))
    square = float(terms.mean()) - at_atoms
    # and for what was not drawn at all, up to three rows in as many as were
    width = np.hypot(quantile * float(terms.std(ddof=1)) / np.sqrt(len(terms)), 3 * float(np.abs(terms).max()) / len(terms))
    return Measured(max(square, 0.0), max(square - width, 0.0), max(square + width, 0.0), "rows")


def rows_quantile(confidence: float) -> float:
    """How many standard errors the interval of `by_rows` reaches to either side."""
    return float(special.stdtrit(ROWS - 1, 0.5 + confidence / 2)) * SAFETY
