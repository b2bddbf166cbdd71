"""Ladders of frequencies: ‖f − f'‖² from the Fourier sums of two means, without a difference of nearly equal numbers.

    ‖f − f'‖² = C·E|f̂(ω) − f̂'(ω)|²,   ω drawn from the kernel's spectrum,   f̂(ω) = Σᵢ wᵢ exp(i ω·zᵢ)

The energy of a difference may lie at frequencies that are rare under the spectrum. Therefore each draw is a ladder ω, 2ω, 4ω, …
that spans all scales. Each rung has the importance weight spectrum / mixture of the distributions of all rungs. The Fourier sums f̂
(`waves`) are sums over points, so they can be computed by chunks. The sums of two data sets can be added if their ladders are
equal. The ladders of `of_kernel` depend only on the kernel and the dimension.

All values are in units where every kernel function has norm 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from reduset._engine import Frame, blocks, fourier_sums
from reduset._types import Array, Floats
from reduset.certificate.probe import SAFETY, Measurement
from reduset.kernels import ProductSpectrum, RadialKernel, Spectrum
from reduset.mixture import ComponentPieces

Waves = NDArray[np.complex128]

COUNT, OCTAVES_BELOW = 64, 12  # ladders for any data, and the octaves that they start below the scale of the spectrum
SEED = 20171
BLOCK_ENTRIES = 1 << 15  # numbers in a block of frequencies
# The largest difference in mass, relative, that frequencies measure well. The energy of a difference in mass is concentrated near
# frequency 0, and for data on a lattice also near the reciprocal lattice. Random frequencies miss such narrow regions. The values
# of the difference at the rows hardly vary, so that a small sample of rows estimates it well.
MASS_MISSING = 0.1


@dataclass(frozen=True)
class FrequencyLadders:
    """Frequencies in the coordinates of the kernel's product, and their importance weights.

    Attributes
    ----------
    spectrum : The distribution of the frequencies.
    below : Number of rungs below the scale of the spectrum.
    climbing : (s, d) lowest rung of the part that doubles from rung to rung.
    late : (s, d) lowest rung of the part that doubles from rung ``release`` on. None if there is no such part.
    log_weights : (s, rungs) log of spectrum / mixture.
    rungs : Number of frequencies of a ladder.
    kinds : Number of proposal distributions. The ladders of each come one after the other, the same number from each.
    thin : Number of directions that never climb, because the data hardly vary in them.
    """

    spectrum: Spectrum
    below: int
    climbing: Array
    late: Array | None
    release: int
    log_weights: Array
    rungs: int
    kinds: int
    thin: int = 0

    @staticmethod
    def of_kernel(kernel: RadialKernel, dimension: int) -> FrequencyLadders:
        """The ladders for any data: from 12 octaves below the scale of the spectrum to its end, in all directions equally."""
        return _of_spectrum(kernel.spectrum(dimension))

    @classmethod
    def spanning(
        cls,
        spectrum: Spectrum,
        wide: Array | None,
        count: int,
        starts: Sequence[float],
        below: int,
        rungs: int,
        rng: np.random.Generator,
    ) -> FrequencyLadders:
        """Ladders that climb in the directions ``wide``, half of them from each of the two starts.

        Parameters
        ----------
        wide : An orthonormal basis (d, k); None for all directions.
        starts : Scales of the lowest rungs, in units of the scale of the spectrum.
        below : Number of rungs below the scale of the spectrum.
        """
        half, k = count // 2, spectrum.dimension if wide is None else wide.shape[1]
        # With many columns these arrays are larger than the data, so they are changed without a copy.
        rest = spectrum.draw(2 * half, rng)
        climbing = rest.copy() if wide is None else (rest @ wide) @ wide.T
        rest -= climbing
        climbing *= np.repeat(starts, half)[:, None]
        # A spectrum with power-law tails is wide in all directions at once. Above its scale, all directions therefore climb.
        release = below if spectrum.heavy else rungs
        climbed = 2.0 ** np.maximum(0, np.arange(rungs) - release)
        s, t = np.array([(start * 2.0**j, climbed[j]) for start in starts for j in range(rungs)]).T[:, :, None]
        volumes = k * np.log(s) + (spectrum.dimension - k) * np.log(t)
        # The density of a rung under the distribution of another depends on their difference only, since powers of 2 scale exactly.
        origins = np.array(starts)[:, None, None]
        densities: dict[tuple[int, float], Array] = {}
        for steps in range(1 - rungs, rungs):
            ratios = np.unique([climbed[j] / climbed[j - steps] for j in range(max(0, steps), min(rungs, rungs + steps))])
            by_start = np.empty((len(starts), len(ratios), len(climbing)))
            for a, b in blocks(len(climbing), max(1, BLOCK_ENTRIES // (spectrum.dimension * len(starts) * len(ratios)))):
                scaled = (climbing[a:b] / origins * 2.0**steps)[:, None] + rest[a:b] * ratios[:, None, None]
                values = spectrum.proposal_log_density(scaled.reshape(-1, spectrum.dimension))
                by_start[:, :, a:b] = values.reshape(len(starts), len(ratios), -1)
            densities.update(((steps, ratio), by_start[:, i]) for i, ratio in enumerate(ratios))
        log_weights = np.empty((len(climbing), rungs))
        for j in range(rungs):
            proposals = np.stack([densities[j - i, climbed[j] / climbed[i]] for i in range(rungs)], axis=1).reshape(len(s), -1)
            target = _by_blocks(spectrum, climbing, rest, 2.0**j, climbed[j])
            log_weights[:, j] = target - np.logaddexp.reduce(proposals - volumes) + np.log(2.0)
        return cls(
            spectrum,
            below,
            climbing,
            None if k == spectrum.dimension else rest,
            release,
            log_weights,
            rungs,
            2,
            0 if spectrum.heavy else spectrum.dimension - k,
        )

    @classmethod
    def along_axes(
        cls,
        spectrum: ProductSpectrum,
        axes: NDArray[np.int64],
        count: int,
        starts: Sequence[float],
        below: int,
        rungs: int,
        rng: np.random.Generator,
    ) -> FrequencyLadders:
        """For a product of densities with power-law tails. Its weight lies along the axes: one large coordinate, the others near 0.

        Half of the ladders climb in all coordinates at once. The others climb in one coordinate, with the other coordinates at the
        scale of the spectrum.
        """
        quarter = count // 4
        climbs = np.zeros((4 * quarter, spectrum.dimension), np.bool_)
        climbs[np.ix_(np.arange(2 * quarter), axes)] = True
        climbs[np.arange(2 * quarter, 4 * quarter), rng.choice(axes, 2 * quarter)] = True
        drawn = spectrum.draw(4 * quarter, rng)
        climbing, rest = np.tile(np.repeat(starts, quarter), 2)[:, None] * drawn * climbs, drawn * ~climbs
        scale = np.array([start * 2.0**j for start in starts for j in range(rungs)])[:, None]
        up, still = (np.ascontiguousarray(part.T[axes])[:, None] for part in (climbing, rest))  # (axes, 1, s)
        # Densities of climbing coordinates depend on the difference of two rungs only, since powers of 2 scale exactly.
        units, steps = up[:, :, None] / np.array(starts)[:, None, None], 2.0 ** np.arange(1 - rungs, rungs)[:, None]
        rising, staying = spectrum.log_densities(units * steps), spectrum.log_densities(still / scale)
        log_weights = np.empty((len(climbing), rungs))
        for j in range(rungs):
            proposals = rising[:, :, j : j + rungs][:, :, ::-1].reshape(len(axes), len(scale), -1)  # of rung 0, 1, …
            target = spectrum.log_densities(up * 2.0**j + still)
            log_ratios = np.where(climbs.T[axes][:, None], proposals, staying) - np.log(scale) - target
            log_weights[:, j] = _log_weights(log_ratios)
        return cls(spectrum, below, climbing, rest, rungs, log_weights, rungs, 4)

    def waves(self, points: Floats | ComponentPieces, weights: Floats, frame: Frame) -> Waves:
        """(s, rungs) Fourier sums over the points at every frequency. The frame's centre is the origin of the angles.

        A component contributes the term of its centre, damped by its spread: exp(iω·c − ½ωᵀSω).
        """
        if isinstance(points, ComponentPieces):
            return np.stack([self._damped(points, weights, frame, rung) for rung in range(self.rungs)], axis=1)
        return fourier_sums(points, weights, self.climbing, frame, self.rungs, self.late, self.release)

    def _damped(self, pieces: ComponentPieces, weights: Floats, frame: Frame, rung: int) -> Waves:
        frequencies = self.climbing * 2.0**rung
        if self.late is not None:
            frequencies = frequencies + self.late * 2.0 ** max(0, rung - self.release)
        angles, damping = pieces.damping(frequencies, frame)
        return np.asarray(np.exp(1j * angles + damping) @ weights)

    def turned(self, waves: Waves, shift: Array) -> Waves:
        """The Fourier sums after the origin moved by −shift, in the frame's coordinates. Every angle grows by ω·shift."""
        angles = (self.climbing @ shift)[:, None] * 2.0 ** np.arange(self.rungs)
        if self.late is not None:
            angles += (self.late @ shift)[:, None] * 2.0 ** np.maximum(0, np.arange(self.rungs) - self.release)
        return np.asarray(waves * np.exp(1j * angles))

    def log_weights_at(self, ratio: float) -> Array:
        """The log-weights for a bandwidth ``ratio`` times as wide: (s, rungs) log of its spectrum / mixture.

        Thin directions, in which no ladder climbs, keep the original bandwidth, because the data hardly vary in them.
        """
        d, still = self.spectrum.dimension, 1.0 if self.thin else ratio
        wider, original = np.empty_like(self.log_weights), np.empty_like(self.log_weights)
        for j in range(self.rungs):
            climbed, late = 2.0**j, 2.0 ** max(0, j - self.release)
            original[:, j] = _by_blocks(self.spectrum, self.climbing, self.late, climbed, late)
            wider[:, j] = _by_blocks(self.spectrum, self.climbing, self.late, ratio * climbed, still * late)
        return self.log_weights + wider - original + (d - self.thin) * np.log(ratio)

    def measure(self, difference: Waves, quantile: float) -> Measurement:
        """‖f − f'‖² from the difference of their Fourier sums. The interval is ± ``quantile`` standard errors."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.abs(difference) ** 2) + self.log_weights
        shift = float(logs.max())
        if not np.isfinite(shift):
            return Measurement(0.0, 0.0, 0.0, "frequencies")
        terms = np.exp(logs - shift).sum(axis=1).reshape(self.kinds, -1)  # one for each ladder: independent and positive
        mean = float(terms.mean())
        error = float(np.sqrt(terms.var(axis=1, ddof=1).sum() / terms.shape[1])) / self.kinds
        width = quantile * SAFETY * error / mean  # on the scale of the logarithm, because the terms are skewed
        square = mean * np.exp(shift)
        return Measurement(float(square), float(square * np.exp(-width)), float(square * np.exp(width)), "frequencies")


def _by_blocks(spectrum: Spectrum, climbing: Array, late: Array | None, up: float, along: float) -> Array:
    """(s,) log-density of the spectrum at up·climbing + along·late, by blocks of ladders."""
    values = np.empty(len(climbing))
    for a, b in blocks(len(climbing), max(1, BLOCK_ENTRIES // spectrum.dimension)):
        frequencies = climbing[a:b] * up
        if late is not None:
            frequencies += late[a:b] * along
        values[a:b] = spectrum.log_density(frequencies)
    return values


@lru_cache(maxsize=32)
def _of_spectrum(spectrum: Spectrum) -> FrequencyLadders:
    rng, d = np.random.default_rng(SEED), spectrum.dimension
    below = OCTAVES_BELOW
    starts, rungs = (2.0**-below, 2.0 ** (0.5 - below)), below + int(np.ceil(spectrum.octaves)) + 1
    if isinstance(spectrum, ProductSpectrum):
        return FrequencyLadders.along_axes(spectrum, np.arange(d), COUNT, starts, below, rungs, rng)
    return FrequencyLadders.spanning(spectrum, None, COUNT, starts, below, rungs, rng)


def two_sided(confidence: float) -> float:
    """The normal quantile of a two-sided interval: 1.96 for a confidence of 0.95."""
    return float(special.ndtri(0.5 + confidence / 2))


def _log_weights(log_ratios: Array) -> Array:
    """log of spectrum / mixture of the proposal distributions, which differ from the spectrum only in coordinates that climb.

    ``log_ratios`` are the log-densities of the proposals minus the log-density of the spectrum, (axes, scales, s).
    """
    largest = log_ratios.max(axis=0)
    all_axes = log_ratios.sum(axis=0)
    one_axis = largest + np.log(np.exp(log_ratios - largest).mean(axis=0))
    return np.log(4.0) - np.logaddexp.reduce(np.concatenate([all_axes, one_axis]))
