"""The error by frequencies: ‖f − f_m‖² = C·E|f̂(ω) − f̂_m(ω)|² over the kernel's spectrum. For shift-invariant kernels, O(n·s).

Every term is a square, so the relative error of the estimate does not depend on how small the distance is. The energy of a
difference may sit where the spectrum seldom goes, so each draw is a ladder of frequencies ω, 2ω, 4ω, … that spans all scales from
the spread of the data to the spacing of the atoms, re-weighted (`frequencies`).
"""

from __future__ import annotations

import numpy as np

from reduset._engine import Frame
from reduset._types import Array
from reduset.certificate.frequencies import FrequencyLadders, Waves, two_sided
from reduset.certificate.probe import Measurement, Probe
from reduset.kernels import RadialKernel
from reduset.kernels.spectra import ProductSpectrum
from reduset.mean import KernelMean

LADDERS, LADDERS_AT_A_GLANCE = 192, 64
SOME_ROWS = 4000
WIDE = 0.02  # of the largest deviation
PHASES_UP_TO = 1e9  # bandwidths from the centre: beyond, an angle has no digits left, and every bump stands alone


def angles_have_digits(z: Array) -> bool:
    """Whether the angles ω·z of most points tell anything, z in the coordinates of the kernel's product."""
    return bool(np.median(np.abs(z)) < PHASES_UP_TO)


class FrequencyProbe(Probe):
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
        self.resolved = angles_have_digits(z)
        self._wide, self._spread = _wide_directions(z, self._spectrum.rotates)
        self._banks: dict[tuple[int, int], tuple[FrequencyLadders, Waves]] = {}

    def ladders(self, count: int, size: int) -> FrequencyLadders:
        """``count`` ladders for compressions to ``size`` atoms, drawn anew with every call."""
        starts, below, rungs = self._span_of_scales(size)
        spectrum = self._spectrum
        if isinstance(spectrum, ProductSpectrum):
            return FrequencyLadders.along_axes(spectrum, np.flatnonzero(self._wide.any(axis=1)), count, starts, rungs, self._rng)
        return FrequencyLadders.spanning(spectrum, self._wide, count, starts, below, rungs, self._rng)

    def _bank(self, count: int, size: int) -> tuple[FrequencyLadders, Waves]:
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

    def _estimate(self, count: int, atoms: Array, weights: Array) -> Measurement:
        ladders, waves = self._bank(count, len(atoms))
        return ladders.measure(waves - ladders.waves(atoms, weights, self.frame), self._quantile)

    def glance(self, atoms: Array, weights: Array, kappa: Array) -> Measurement:
        return self._estimate(LADDERS_AT_A_GLANCE, atoms, weights)

    def measure(self, atoms: Array, weights: Array, kappa: Array) -> Measurement:
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
