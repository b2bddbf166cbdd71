"""The error by frequencies, with its confidence interval, for shift-invariant kernels: O(n·s).

The square ‖f − f_m‖² is the mean of C·|f̂(ω) − f̂_m(ω)|² over the kernel's spectrum. Every term is a square, so the relative error
of the estimate does not depend on the size of the distance. The energy of a difference may lie at frequencies that are rare under
the spectrum. Therefore each draw is a ladder of frequencies ω, 2ω, 4ω, … with importance weights (`frequencies`). It spans all
scales from the spread of the data to the spacing of the atoms.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from reduset._engine import Frame, cached_property
from reduset._types import Array, Indices
from reduset.certificate.by_scale import WaveScales, median_distance, rung_bandwidths, square_norms, sum_of_squares
from reduset.certificate.frequencies import MASS_MISSING, FrequencyLadders, Waves, two_sided
from reduset.certificate.probe import Measurement, Probe, RowProbe
from reduset.kernels import ProductSpectrum, RadialKernel
from reduset.mean import KernelMean, with_bandwidth
from reduset.mixture import Pieces

LADDERS, QUICK_LADDERS = 192, 64
SAMPLE_ROWS = 4000
COVARIANCE_COLUMNS = 128  # up to this number of columns, a covariance matrix is inexpensive
MANY_COLUMNS, SPAN_ROWS = 2048, 1000  # with more columns, directions are computed from this number of rows
MAX_AXES = 512  # axes along which ladders climb
WIDE = 0.02  # wide directions have at least this proportion of the largest standard deviation
MIN_OCTAVES = 7  # of a ladder
MAX_DISTANCE = 1e9  # bandwidths from the centre; beyond, an angle has no correct digits


def angles_have_digits(z: Array) -> bool:
    """Whether the angles ω·z of most points have correct digits, with z in the coordinates of the kernel's product."""
    return bool(np.median(np.abs(z)) < MAX_DISTANCE)


class _Bank(NamedTuple):
    """Ladders and f̂ at their frequencies. ``start`` is the generator that draws the same ladders again if they are not kept."""

    start: np.random.Generator
    ladders: FrequencyLadders | None
    waves: Waves


class FrequencyProbe(Probe):
    """By frequencies of the kernel's spectrum, at several scales in the directions in which the data spread.

    `measure` uses a sample of rows instead if the small mean misses much of the mass (`MASS_MISSING`).
    """

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        self._mean, self._rng, self.kernel = mean, rng, cast(RadialKernel, mean.kernel)
        self._confidence, self._quantile = confidence, two_sided(confidence)
        self._spectrum = self.kernel.spectrum(mean.dimension)
        matrix = self.kernel.frame(mean.atoms, self.kernel.product(mean.dimension)).matrix
        self._sample = mean.atoms[:: max(1, mean.size // SAMPLE_ROWS)]
        # The median is the origin. With the mean, one distant outlier would cost the angles of all other points their digits.
        self.frame = Frame(np.median(np.asarray(self._sample, np.float64), axis=0), matrix)
        self.resolved = angles_have_digits(self._coordinates())
        self._banks: dict[tuple[int, int], _Bank] = {}

    def _coordinates(self) -> Array:
        """The coordinates of a sample of rows in the frame."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.clip(self.frame.apply(np.asarray(self._sample, np.float64)), -1e100, 1e100)

    @cached_property
    def _scales(self) -> tuple[NDArray[Any], float]:
        """The directions in which the data spread, and the spread. Computed on first use, because exact errors do not need them."""
        find = _wide_directions if self._spectrum.rotates else _wide_columns
        return find(self._coordinates())

    @cached_property
    def _by_rows(self) -> RowProbe:
        return RowProbe(self._mean, self._confidence, self._rng)

    def scales(self, size: int, rng: np.random.Generator) -> WaveScales:
        """The errors at every scale, also at the median distance of the rows: by the ladders of its bandwidth if necessary."""
        mean, squares, median = self._mean, sum_of_squares(self._mean.weights), median_distance(self._mean)
        probe, own = self, None
        while True:
            kernel, wide = probe.kernel, probe._scales[0]
            ladders, waves = probe._bank(LADDERS, size)
            thin = 0.0  # the spread of the data, in bandwidths, in the directions in which no ladder climbs
            if ladders.thin:
                z = _winsorized(probe._coordinates())
                rest = z - (z @ wide) @ wide.T
                thin = float(np.sqrt(np.mean(np.einsum("ij,ij->i", rest, rest)))) / kernel.product(mean.dimension).stretch
            rungs = rung_bandwidths(kernel, ladders.below, ladders.rungs)
            norms = square_norms(mean, squares, kernel, rungs, rng)
            scales = WaveScales(kernel, ladders, waves, probe.frame, mean.mass, squares, norms, thin, median, rungs, rungs)
            if own is not None:
                return replace(own, coarser=scales)
            if median is None or (median <= rungs[0] * (1 + 1e-9) and scales.measures(median)):
                return scales
            own, probe = scales, FrequencyProbe(with_bandwidth(mean, median), self._confidence, rng)

    def bandwidths(self, size: int) -> Array:
        """The bandwidths of a profile, from coarse to fine."""
        _, below, rungs = self._span_of_scales(size)
        return rung_bandwidths(self.kernel, below, rungs)

    def _bank(self, count: int, size: int) -> tuple[FrequencyLadders, Waves]:
        """``count`` ladders for compressions to ``size`` atoms, drawn once, and f̂ at their frequencies. One pass over the data."""
        mean, (starts, below, rungs) = self._mean, self._span_of_scales(size)
        bank = self._banks.get((count, rungs))
        if bank is None or bank.ladders is None:
            begin = deepcopy(self._rng) if bank is None else bank.start
            draw: Any = FrequencyLadders.along_axes if isinstance(self._spectrum, ProductSpectrum) else FrequencyLadders.spanning
            rng = self._rng if bank is None else deepcopy(begin)
            ladders = draw(self._spectrum, self._scales[0], count, starts, below, rungs, rng)
            waves = ladders.waves(mean.atoms, mean.weights, self.frame) if bank is None else bank.waves
            bank = self._banks[count, rungs] = _Bank(begin, ladders, waves)
        return cast(FrequencyLadders, bank.ladders), bank.waves

    def release(self) -> None:
        """Free ladders that are larger than the data, as happens with many columns. They are drawn again when needed."""
        for key, bank in self._banks.items():
            if bank.ladders is not None and bank.ladders.climbing.nbytes > self._mean.atoms.nbytes:
                self._banks[key] = bank._replace(ladders=None)
                self.__dict__.pop("_scales", None)  # as large as the data

    def _span_of_scales(self, size: int) -> tuple[tuple[float, float], int, int]:
        """The starts of the ladders, the number of rungs below the scale of the spectrum, and the number of all rungs.

        Half of the ladders start at a power of two below the scale where a Gaussian cloud of this spread has its energy. The others
        start in the middle of the octave above, so that each bandwidth of a grid in half octaves has a rung with its spectrum.
        Ladders end at the resolution of atoms at their typical spacing, or at the end of the spectrum. Spectra with power-law tails
        have weight down to the distances between points that nearly coincide. Ladders span at least `MIN_OCTAVES` octaves, for
        errors at other scales.
        """
        wide, spread = self._scales
        # Lower rungs hold less of the spectrum than a thousandth of the energy of one point.
        energy = max(1 / np.sqrt(1 + 4 * spread**2), 1 / (1000.0 * self._mean.size))
        top = self._spectrum.octaves
        if not self._spectrum.heavy:
            spacing = spread / size ** (1 / wide.shape[-1])
            top = min(top, max(2.0, np.log2(4 / max(spacing, 1e-9))))
        below = int(np.ceil(-np.log2(energy) - 1e-9))
        rungs = max(below + int(np.ceil(top)), MIN_OCTAVES) + 1
        return (2.0 ** (0.5 - below), 2.0**-below), below, rungs

    def glance(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        ladders, waves = self._bank(QUICK_LADDERS, len(atoms))
        return ladders.measure(waves - ladders.waves(atoms, weights, self.frame), self._quantile)

    def measure(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        mean = self._mean
        if abs(mean.mass - float(weights.sum())) > MASS_MISSING * mean.total:
            return self._by_rows.measure(atoms, weights, kappa)
        # with many columns, ladders would be larger than a few rows
        ladders, waves = self._bank(QUICK_LADDERS if mean.size < LADDERS else LADDERS, len(atoms))
        return ladders.measure(waves - ladders.waves(atoms, weights, self.frame), self._quantile)


def _wide_directions(z: Array) -> tuple[Array, float]:
    """An orthonormal basis (d, k) of the wide directions of the coordinates z, and the spread along these directions.

    In the other directions the data hardly vary, so that the Fourier sums do not depend on the frequency there. Scaling that
    frequency would only make the weights of the ladders uneven. Data near a subspace are measured as if they lay in the subspace.
    """
    if z.shape[1] > MANY_COLUMNS:
        z = z[:: -(-len(z) // SPAN_ROWS)]
    centred = _winsorized(z)
    if z.shape[1] > max(COVARIANCE_COLUMNS, len(z)):  # a d × d matrix would cost d³ for any number of rows
        _, lengths, rows = np.linalg.svd(centred, full_matrices=False)
        variances, axes = lengths**2 / len(z), rows.T
    else:
        variances, axes = np.linalg.eigh(centred.T @ centred / len(z))
    deviations = np.sqrt(np.maximum(variances, 0.0))
    wide = deviations >= WIDE * deviations.max()
    return axes[:, wide], float(np.sqrt(np.mean(deviations[wide] ** 2)))


def _wide_columns(z: Array) -> tuple[Indices, float]:
    """The wide columns (k,) and their spread, for kernels that are products over columns."""
    deviations = np.sqrt(np.mean(_winsorized(z) ** 2, axis=0))
    wide = np.flatnonzero(deviations >= WIDE * deviations.max())
    if len(wide) > MAX_AXES:
        wide = np.sort(wide[np.argsort(-deviations[wide], kind="stable")[:MAX_AXES]])
    return wide, float(np.sqrt(np.mean(deviations[wide] ** 2)))


def _winsorized(z: Array) -> Array:
    """Centred coordinates with distant outliers moved closer. An isolated point contributes the same at any distance."""
    low, high = np.quantile(z, [0.005, 0.995], axis=0)
    reach = 3 * (high - low)
    centred = np.clip(z, low - reach, high + reach)
    centred -= centred.mean(axis=0)
    return np.asarray(centred)
