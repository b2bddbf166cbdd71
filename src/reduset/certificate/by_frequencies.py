"""The error by frequencies: ‖f − f_m‖² = C·E|f̂(ω) − f̂_m(ω)|² over the kernel's spectrum. For shift-invariant kernels, O(n·s).

Every term is a square, so the relative error of the estimate does not depend on how small the distance is. The energy of a
difference may sit where the spectrum seldom goes, so each draw is a ladder of frequencies ω, 2ω, 4ω, … that spans all scales from
the spread of the data to the spacing of the atoms, re-weighted (`frequencies`).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from reduset._engine import Frame, cached_property
from reduset._types import Array, Indices
from reduset.certificate.by_scale import Scales, WaveScales, own_bandwidths, sum_of_squares
from reduset.certificate.frequencies import FrequencyLadders, Waves, two_sided
from reduset.certificate.probe import Measurement, Probe
from reduset.kernels import RadialKernel
from reduset.kernels.spectra import ProductSpectrum
from reduset.mean import KernelMean, with_bandwidth
from reduset.mixture.pieces import Pieces

LADDERS, LADDERS_AT_A_GLANCE = 192, 64
SOME_ROWS = 4000
FEW_COLUMNS = 128  # up to which a covariance costs nothing
MANY_COLUMNS, FEWER_ROWS = 2048, 1000  # beyond so many columns, directions are looked for in the span of so many rows
MOST_AXES = 512  # that ladders climb along
WIDE = 0.02  # of the largest deviation
OCTAVES = 7  # that ladders climb at least
PHASES_UP_TO = 1e9  # bandwidths from the centre: beyond, an angle has no digits left, and every bump stands alone


def angles_have_digits(z: Array) -> bool:
    """Whether the angles ω·z of most points tell anything, z in the coordinates of the kernel's product."""
    return bool(np.median(np.abs(z)) < PHASES_UP_TO)


class _Bank(NamedTuple):
    """Ladders and f̂ at them; ``start`` draws the same ladders again where they are not kept."""

    start: np.random.Generator
    ladders: FrequencyLadders | None
    waves: Waves


class FrequencyProbe(Probe):
    """By the kernel's spectrum, at several scales in the directions in which the data spread."""

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        kernel = mean.kernel
        if not isinstance(kernel, RadialKernel):
            raise TypeError("only shift-invariant kernels have frequencies")
        self._mean, self._rng = mean, rng
        self._confidence, self._quantile = confidence, two_sided(confidence)
        self._spectrum = kernel.spectrum(mean.dimension)
        frame = kernel.frame(mean.atoms, kernel.product(mean.dimension))
        # centred where most points are, so that one far outlier does not cost the phases of all others their digits
        self.frame = Frame(np.median(self._some_rows(), axis=0), frame.matrix)
        self.resolved = angles_have_digits(self._coordinates())
        self._banks: dict[tuple[int, int], _Bank] = {}

    def _some_rows(self) -> Array:
        return np.asarray(self._mean.atoms[:: max(1, self._mean.size // SOME_ROWS)], np.float64)

    def _coordinates(self) -> Array:
        """Of some rows, in the frame."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.clip(self.frame.apply(self._some_rows()), -1e100, 1e100)

    @cached_property
    def _scales(self) -> tuple[NDArray[Any], float]:
        """The directions in which the data spread, and how far; found when they are first asked for: the exact error needs none."""
        find = _wide_directions if self._spectrum.rotates else _wide_columns
        return find(self._coordinates())

    def ladders(self, count: int, size: int) -> FrequencyLadders:
        """``count`` ladders for compressions to ``size`` atoms, drawn anew with every call."""
        return self._drawn(count, size, self._rng)

    def _drawn(self, count: int, size: int, rng: np.random.Generator) -> FrequencyLadders:
        starts, below, rungs = self._span_of_scales(size)
        spectrum, wide = self._spectrum, self._scales[0]
        if isinstance(spectrum, ProductSpectrum):
            return FrequencyLadders.along_axes(spectrum, wide, count, starts, below, rungs, rng)
        return FrequencyLadders.spanning(spectrum, wide, count, starts, below, rungs, rng)

    def scales(self, size: int, rng: np.random.Generator) -> Scales:
        found = self._own_scales(size, rng)
        if found.median is None or found.reaches_median():
            return found
        return replace(found, coarser=self.at(found.median, rng)._own_scales(size, rng))

    @property
    def kernel(self) -> RadialKernel:
        """The kernel of the points."""
        return cast(RadialKernel, self._mean.kernel)

    def at(self, bandwidth: float, rng: np.random.Generator) -> FrequencyProbe:
        """The probe of the same points for a kernel of another bandwidth."""
        wider = with_bandwidth(self._mean, bandwidth)
        return FrequencyProbe(wider, self._confidence, rng)

    def _own_scales(self, size: int, rng: np.random.Generator) -> WaveScales:
        """The errors at other scales by the ladders of the kernel's own bandwidth."""
        ladders, waves = self._bank(LADDERS, size)
        squares = sum_of_squares(self._mean.weights)
        return WaveScales.from_rows(self._mean, squares, ladders, waves, self.frame, rng, self.thin_in(ladders))

    def thin_in(self, ladders: FrequencyLadders) -> float:
        """How far the data spread in the directions in which they hardly move and no ladder climbs, in bandwidths."""
        if not ladders.thin:
            return 0.0
        wide, z = self._scales[0], _drawn_in(self._coordinates())
        rest = z - (z @ wide) @ wide.T
        stretch = self.kernel.product(self._mean.dimension).stretch
        return float(np.sqrt(np.mean(np.einsum("ij,ij->i", rest, rest)))) / stretch

    def bandwidths(self, size: int) -> Array:
        """At which a profile is told, from coarse to fine."""
        _, below, rungs = self._span_of_scales(size)
        return own_bandwidths(cast(RadialKernel, self._mean.kernel), below, rungs)

    def _bank(self, count: int, size: int) -> tuple[FrequencyLadders, Waves]:
        """``count`` ladders for compressions to ``size`` atoms, drawn once: f̂ at them is the only pass over the data."""
        rungs = self._span_of_scales(size)[2]
        if (count, rungs) not in self._banks:
            start = deepcopy(self._rng)
            ladders = self.ladders(count, size)
            self._banks[count, rungs] = _Bank(start, ladders, ladders.waves(self._mean.atoms, self._mean.weights, self.frame))
        known = self._banks[count, rungs]
        if known.ladders is None:
            known = self._banks[count, rungs] = known._replace(ladders=self._drawn(count, size, deepcopy(known.start)))
        return cast(FrequencyLadders, known.ladders), known.waves

    def release(self) -> None:
        """Keep no ladders that are larger than the data, as with many columns; they are drawn again when they are needed."""
        for key, known in self._banks.items():
            if known.ladders is not None and known.ladders.climbing.nbytes > self._mean.atoms.nbytes:
                self._banks[key] = known._replace(ladders=None)
                self.__dict__.pop("_scales", None)  # as large as the data

    def _span_of_scales(self, size: int) -> tuple[tuple[float, float], int, int]:
        """Where ladders start, how many rungs lie below the spectrum's own scale, and how many there are.

        Half of the ladders start at a power of two below the scale where a Gaussian cloud of this spread has its energy, half in
        the middle of the octave above, so that of every bandwidth half octaves apart one rung is the spectrum itself. They end
        where atoms at their typical spacing can no longer resolve anything, or where the spectrum does: a power law has weight
        down to the gaps between points that nearly coincide; and they span `OCTAVES` at least, for errors at other scales.
        """
        wide, spread = self._scales
        # lower rungs than these hold less of the spectrum than a thousandth of one point's own energy
        energy = max(1 / np.sqrt(1 + 4 * spread**2), 1 / (1000.0 * self._mean.size))
        top = self._spectrum.octaves
        if not self._spectrum.heavy:
            spacing = spread / size ** (1 / wide.shape[-1])
            top = min(top, max(2.0, np.log2(4 / max(spacing, 1e-9))))
        below = int(np.ceil(-np.log2(energy) - 1e-9))
        rungs = max(below + int(np.ceil(top)), OCTAVES) + 1
        return (2.0 ** (0.5 - below), 2.0**-below), below, rungs

    def _estimate(self, count: int, atoms: Pieces, weights: Array) -> Measurement:
        ladders, waves = self._bank(count, len(atoms))
        return ladders.measure(waves - ladders.waves(atoms, weights, self.frame), self._quantile)

    def glance(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        return self._estimate(LADDERS_AT_A_GLANCE, atoms, weights)

    def measure(self, atoms: Pieces, weights: Array, kappa: Array) -> Measurement:
        few = self._mean.size < LADDERS  # where ladders of many columns are larger than the rows
        return self._estimate(LADDERS_AT_A_GLANCE if few else LADDERS, atoms, weights)


def _wide_directions(z: Array) -> tuple[Array, float]:
    """An orthonormal basis (d, k) of the directions in which the coordinates z spread, and their spread along these.

    In the others they hardly move, so that the waves do not depend on the frequency there: to stretch it would only make the
    weights of the ladders uneven. Data near a sheet in many dimensions are measured as if they lay in the sheet.
    """
    if z.shape[1] > MANY_COLUMNS:
        z = z[:: -(-len(z) // FEWER_ROWS)]
    centred = _drawn_in(z)
    if z.shape[1] > max(FEW_COLUMNS, len(z)):  # a d × d matrix would cost d³, however few rows there are
        _, lengths, rows = np.linalg.svd(centred, full_matrices=False)
        variances, axes = lengths**2 / len(z), rows.T
    else:
        variances, axes = np.linalg.eigh(centred.T @ centred / len(z))
    deviations = np.sqrt(np.maximum(variances, 0.0))
    wide = deviations >= WIDE * deviations.max()
    return axes[:, wide], _spread(deviations[wide])


def _wide_columns(z: Array) -> tuple[Indices, float]:
    """The same where no direction but the columns themselves counts: which are wide, (k,), and their spread."""
    deviations = np.sqrt(np.mean(_drawn_in(z) ** 2, axis=0))
    wide = np.flatnonzero(deviations >= WIDE * deviations.max())
    if len(wide) > MOST_AXES:
        wide = np.sort(wide[np.argsort(-deviations[wide], kind="stable")[:MOST_AXES]])
    return wide, _spread(deviations[wide])


def _drawn_in(z: Array) -> Array:
    """Centred; a few far outliers are drawn in: they are bumps of their own, wherever they stand."""
    low, high = np.quantile(z, [0.005, 0.995], axis=0)
    reach = 3 * (high - low)
    centred = np.clip(z, low - reach, high + reach)
    centred -= centred.mean(axis=0)
    return np.asarray(centred)


def _spread(deviations: Array) -> float:
    return float(np.sqrt(np.mean(deviations**2)))
