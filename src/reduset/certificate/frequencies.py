"""Ladders of frequencies: ‖f − f'‖² from the waves of two means, without a difference of nearly equal numbers.

    ‖f − f'‖² = C·E|f̂(ω) − f̂'(ω)|²,   ω drawn from the kernel's spectrum,   f̂(ω) = Σᵢ wᵢ exp(i ω·zᵢ)

The energy of a difference may sit where the spectrum seldom goes, so each draw is a ladder ω, 2ω, 4ω, … that spans all scales, each
rung re-weighted by spectrum over mixture of the laws of all rungs. The waves are sums over points: they can be added up chunk by
chunk, and those of two parts of the data added together, as long as the ladders are the same. `of_kernel` depends on nothing but
the kernel and the dimension, so that any two who use the same kernel have the same.

All in units where every bump has norm 1.
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
from reduset.certificate.probe import Measurement
from reduset.kernels import RadialKernel
from reduset.kernels.spectra import ProductSpectrum, Spectrum
from reduset.mixture.pieces import ComponentPieces

Waves = NDArray[np.complex128]

SAFETY = 1.1  # the interval's width over the normal one: estimated variances of skewed terms run a little low
COUNT, DEEP = 64, 12  # ladders for any data, and the octaves they start below the spectrum's own scale
SEED = 20171
ROOM = 1 << 15  # numbers of a block of frequencies
MASS_MISSING = 0.1  # of the mass: of a difference of so much, waves see too little (`rule.rows_needed`)


@dataclass(frozen=True)
class FrequencyLadders:
    """Frequencies in the coordinates of the kernel's product, and how much each counts.

    Attributes
    ----------
    spectrum : whose draws they are
    below : how many rungs lie below the spectrum's own scale
    climbing : (s, d) the lowest rung of what doubles from rung to rung
    late : (s, d) the lowest rung of what doubles from the rung ``release`` on; None where nothing does
    shares : (s, rungs) log of spectrum / mixture at each
    kinds : how many laws the ladders are drawn from, as many from each, one after the other
    thin : how many directions never climb, because the data hardly move in them
    """

    spectrum: Spectrum
    below: int
    climbing: Array
    late: Array | None
    release: int
    shares: Array
    kinds: int
    thin: int = 0

    @property
    def rungs(self) -> int:
        return int(self.shares.shape[1])

    @staticmethod
    def of_kernel(kernel: RadialKernel, dimension: int) -> FrequencyLadders:
        """For whatever data may come: from far below the spectrum's own scale to its end, in all directions alike."""
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
        """FrequencyLadders that climb in the directions ``wide``, half of them from either start.

        Parameters
        ----------
        wide : an orthonormal basis (d, k); None for all directions
        starts : scales of the lowest rungs, in units of the spectrum's own
        below : how many rungs lie below the spectrum's own scale
        """
        half, k = count // 2, spectrum.dimension if wide is None else wide.shape[1]
        # with many columns these are larger than the data, so that they are changed in place
        rest = spectrum.draw(2 * half, rng)
        climbing = rest.copy() if wide is None else (rest @ wide) @ wide.T
        rest -= climbing
        climbing *= np.repeat(starts, half)[:, None]
        # a power law is wide in all directions at once, so above its own scale they all climb; other laws not
        release = below if spectrum.heavy else rungs
        climbed = 2.0 ** np.maximum(0, np.arange(rungs) - release)
        s, t = np.array([(start * 2.0**j, climbed[j]) for start in starts for j in range(rungs)]).T[:, :, None]
        volumes = k * np.log(s) + (spectrum.dimension - k) * np.log(t)
        # a rung in the units of another's law depends on how far they are apart: powers of 2 scale without rounding
        origins = np.array(starts)[:, None, None]
        known: dict[tuple[int, float], Array] = {}
        for apart in range(1 - rungs, rungs):
            further = np.unique([climbed[j] / climbed[j - apart] for j in range(max(0, apart), min(rungs, rungs + apart))])
            laws = np.empty((len(starts), len(further), len(climbing)))
            for a, b in blocks(len(climbing), max(1, ROOM // (spectrum.dimension * len(starts) * len(further)))):
                within = (climbing[a:b] / origins * 2.0**apart)[:, None] + rest[a:b] * further[:, None, None]
                found = spectrum.proposal_log_density(within.reshape(-1, spectrum.dimension))
                laws[:, :, a:b] = found.reshape(len(starts), len(further), -1)
            known.update(((apart, ratio), laws[:, i]) for i, ratio in enumerate(further))
        shares = np.empty((len(climbing), rungs))
        for j in range(rungs):
            laws = np.stack([known[j - i, climbed[j] / climbed[i]] for i in range(rungs)], axis=1).reshape(len(s), -1) - volumes
            at = _by_blocks(spectrum, climbing, rest, 2.0**j, climbed[j])
            shares[:, j] = at - np.logaddexp.reduce(laws) + np.log(2.0)
        return cls(
            spectrum,
            below,
            climbing,
            None if k == spectrum.dimension else rest,
            release,
            shares,
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
        """For a product of power laws, whose weight lies along the axes: far out in one coordinate, near 0 in the others.

        Half of the ladders climb in all coordinates at once, half in a single one, the others at the spectrum's own scale.
        """
        each = count // 4
        climbs = np.zeros((4 * each, spectrum.dimension), np.bool_)
        climbs[np.ix_(np.arange(2 * each), axes)] = True
        climbs[np.arange(2 * each, 4 * each), rng.choice(axes, 2 * each)] = True
        drawn = spectrum.draw(4 * each, rng)
        climbing, rest = np.tile(np.repeat(starts, each), 2)[:, None] * drawn * climbs, drawn * ~climbs
        scale = np.array([start * 2.0**j for start in starts for j in range(rungs)])[:, None]
        up, still = (np.ascontiguousarray(part.T[axes])[:, None] for part in (climbing, rest))  # (axes, 1, s)
        # what climbs depends on how far two rungs are apart, since powers of 2 scale without rounding, and what stays on the law
        units, apart = up[:, :, None] / np.array(starts)[:, None, None], 2.0 ** np.arange(1 - rungs, rungs)[:, None]
        rising, staying = spectrum.log_densities(units * apart), spectrum.log_densities(still / scale)
        shares = np.empty((len(climbing), rungs))
        for j in range(rungs):
            laws = rising[:, :, j : j + rungs][:, :, ::-1].reshape(len(axes), len(scale), -1)  # of rung 0, 1, …
            own = spectrum.log_densities(up * 2.0**j + still)
            shares[:, j] = _share(np.where(climbs.T[axes][:, None], laws, staying) - np.log(scale) - own)
        return cls(spectrum, below, climbing, rest, rungs, shares, 4)

    def waves(self, points: Floats | ComponentPieces, weights: Floats, frame: Frame) -> Waves:
        """(s, rungs) sums over the points, at every rung; the frame's centre is the origin of the angles.

        Those of a component are the wave of its centre, damped by its spread: exp(iω·c − ½ωᵀSω).
        """
        if isinstance(points, ComponentPieces):
            return np.stack([self._damped(points, weights, frame, rung) for rung in range(self.rungs)], axis=1)
        return fourier_sums(points, weights, self.climbing, frame, self.rungs, self.late, self.release)

    def _damped(self, pieces: ComponentPieces, weights: Floats, frame: Frame, rung: int) -> Waves:
        angles, damping = pieces.damping(self._at_rung(rung), frame)
        return np.asarray(np.exp(1j * angles + damping) @ weights)

    def _at_rung(self, rung: int) -> Array:
        """(s, d) the frequencies of one rung."""
        climbed = self.climbing * 2.0**rung
        return climbed if self.late is None else climbed + self.late * 2.0 ** max(0, rung - self.release)

    def turned(self, waves: Waves, shift: Array) -> Waves:
        """The waves of points after an origin moved by −shift, in the frame's coordinates: every angle grows by ω·shift."""
        angles = (self.climbing @ shift)[:, None] * 2.0 ** np.arange(self.rungs)
        if self.late is not None:
            angles += (self.late @ shift)[:, None] * 2.0 ** np.maximum(0, np.arange(self.rungs) - self.release)
        return np.asarray(waves * np.exp(1j * angles))

    def shares_at(self, ratio: float) -> Array:
        """The shares for a bandwidth ``ratio`` times as wide: (s, rungs) log of its spectrum / mixture.

        In thin directions, in which no ladder climbs, every bandwidth counts as the own one: the data hardly move in them.
        """
        d, still = self.spectrum.dimension, 1.0 if self.thin else ratio
        wider, own = np.empty_like(self.shares), np.empty_like(self.shares)
        for j in range(self.rungs):
            climbed, late = 2.0**j, 2.0 ** max(0, j - self.release)
            own[:, j] = _by_blocks(self.spectrum, self.climbing, self.late, climbed, late)
            wider[:, j] = _by_blocks(self.spectrum, self.climbing, self.late, ratio * climbed, still * late)
        return self.shares + wider - own + (d - self.thin) * np.log(ratio)

    def measure(self, difference: Waves, quantile: float) -> Measurement:
        """‖f − f'‖² from the difference of their waves; the interval reaches ``quantile`` standard errors to either side."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.abs(difference) ** 2) + self.shares
        shift = float(logs.max())
        if not np.isfinite(shift):
            return Measurement(0.0, 0.0, 0.0, "frequencies")
        terms = np.exp(logs - shift).sum(axis=1).reshape(self.kinds, -1)  # one a ladder: independent, positive
        mean = float(terms.mean())
        error = float(np.sqrt(terms.var(axis=1, ddof=1).sum() / terms.shape[1])) / self.kinds
        width = quantile * SAFETY * error / mean  # on the scale of the logarithm, because the terms are skewed
        square = mean * np.exp(shift)
        return Measurement(float(square), float(square * np.exp(-width)), float(square * np.exp(width)), "frequencies")


def _by_blocks(spectrum: Spectrum, climbing: Array, late: Array | None, up: float, along: float) -> Array:
    """(s,) log-density of the spectrum at up·climbing + along·late, by blocks of ladders."""
    found = np.empty(len(climbing))
    for a, b in blocks(len(climbing), max(1, ROOM // spectrum.dimension)):
        frequencies = climbing[a:b] * up
        if late is not None:
            frequencies += late[a:b] * along
        found[a:b] = spectrum.log_density(frequencies)
    return found


@lru_cache(maxsize=32)
def _of_spectrum(spectrum: Spectrum) -> FrequencyLadders:
    rng, d = np.random.default_rng(SEED), spectrum.dimension
    starts, rungs = (2.0**-DEEP, 2.0 ** (0.5 - DEEP)), DEEP + int(np.ceil(spectrum.octaves)) + 1
    if isinstance(spectrum, ProductSpectrum):
        return FrequencyLadders.along_axes(spectrum, np.arange(d), COUNT, starts, DEEP, rungs, rng)
    return FrequencyLadders.spanning(spectrum, None, COUNT, starts, DEEP, rungs, rng)


def two_sided(confidence: float) -> float:
    """How many standard errors an interval of that confidence reaches to either side."""
    return float(special.ndtri(0.5 + confidence / 2))


def _share(further: Array) -> Array:
    """log of spectrum / mixture of all ladders' laws, which differ from the spectrum in the coordinates that climb alone.

    By how much the log-densities of the laws are ``further`` than that of the spectrum, (axes, scales, s).
    """
    largest = further.max(axis=0)
    together = further.sum(axis=0)
    alone = largest + np.log(np.exp(further - largest).mean(axis=0))
    return np.log(4.0) - np.logaddexp.reduce(np.concatenate([together, alone]))
