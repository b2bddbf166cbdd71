"""Probes: the measured distance ‖f − f_m‖² of a large mean f to a small one f_m, with a confidence interval.

The difference ‖f‖² − αᵀκ of two nearly equal numbers loses all digits, and ‖f‖² costs n². Three ways around both, each prepared
once for f and then cheap for every f_m:

`Frequencies`  ‖f − f_m‖² = C·E|f̂(ω) − f̂_m(ω)|² over the kernel's spectrum. Every term is a square, so the relative error of the
               estimate does not depend on how small the distance is. O(n·s). A first bank of frequencies on all scales shows where
               the energy lies, a second is drawn there. For shift-invariant kernels.
`Rows`         Σᵢ wᵢ r(xᵢ) − Σ αₗ r(cₗ) with r = f − f_m, the first sum from a sample of rows. O(n·s). For function kernels.
`Everything`   the same with every row: exact up to rounding. O(n²), for small n.

All in units where every bump has norm 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from reduset._engine.profile import Frame
from reduset._engine.threads import blocks
from reduset._engine.waves import wave_sums
from reduset.mean import KernelMean
from reduset.radial import Array, RadialKernel

EXACT_UP_TO = 4096
PILOT_PER_SCALE = 24
FREQUENCIES = 512
FEWEST_PER_SCALE = 6
ROWS = 512
LARGEST_SCALE = 4.0
SAFETY = 1.06  # the interval's width over the normal one: estimated variances of skewed terms run a little low


@dataclass(frozen=True)
class Measured:
    """A squared distance and the ends of its confidence interval."""

    square: float
    low: float
    high: float
    method: str

    def plus(self, exact: float) -> Measured:
        """After adding an amount that is known exactly."""
        return Measured(self.square + exact, self.low + exact, self.high + exact, self.method)


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
    waves = isinstance(mean.kernel, RadialKernel)
    if mean.size <= EXACT_UP_TO:
        return Everything(mean, Frequencies(mean, confidence, rng) if waves else None)
    return Frequencies(mean, confidence, rng) if waves else Rows(mean, confidence, rng)


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
        rounding = 4 * float(np.finfo(np.float64).eps) * float(np.abs(mean.weights).sum() + np.abs(weights).sum()) ** 2
        if self._finer is not None and square < 1e3 * rounding:
            return self._finer.measure(atoms, weights, kappa)
        return Measured(max(square, 0.0), max(square - rounding, 0.0), max(square, 0.0) + rounding, "exact")


Counts = NDArray[np.int64]
Drawn = tuple[Array, NDArray[np.int64], NDArray[np.complex128]]


class Frequencies(Probe):
    """By the kernel's spectrum, at several scales."""

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        kernel = mean.kernel
        if not isinstance(kernel, RadialKernel):
            raise TypeError("only shift-invariant kernels have frequencies")
        self._mean, self._rng = mean, rng
        self._quantile = float(stats.norm.ppf(0.5 + confidence / 2)) * SAFETY
        self._spectrum = kernel.spectrum(mean.dimension)
        self._frame = kernel.frame(mean.atoms, kernel.product(mean.dimension))
        lowest = min(0, -int(np.ceil(np.log2(max(_spread(mean, self._frame), 1e-9)))))
        self._scales = LARGEST_SCALE * 2.0 ** np.arange(lowest - int(np.log2(LARGEST_SCALE)), 1)
        self._bank: Drawn | None = None

    def _draw(self, counts: Counts) -> Drawn:
        """Frequencies, the scale each came from, and f̂ at each."""
        frequencies = np.concatenate([self._spectrum.draw(int(c), s, self._rng) for c, s in zip(counts, self._scales, strict=True)])
        return (
            frequencies,
            np.repeat(np.arange(len(counts)), counts),
            wave_sums(self._mean.atoms, self._mean.weights, frequencies, self._frame),
        )

    def _terms(self, drawn: Drawn, counts: Counts, atoms: Array, weights: Array) -> tuple[Array, float]:
        """log of |f̂ − f̂_m|² · spectrum / mixture for each frequency, up to the returned shift."""
        frequencies, _, waves = drawn
        gap = np.abs(waves - wave_sums(atoms, weights, frequencies, self._frame)) ** 2
        share = counts / counts.sum()
        mixture = np.logaddexp.reduce(
            [np.log(p) + self._spectrum.proposal_log_density(frequencies, s) for p, s in zip(share, self._scales, strict=True)]
        )
        with np.errstate(divide="ignore"):
            logs = np.log(gap) + self._spectrum.log_density(frequencies) - mixture
        shift = float(logs.max())
        return (np.exp(logs - shift), shift) if np.isfinite(shift) else (np.zeros(len(logs)), 0.0)

    def _estimate(self, drawn: Drawn, counts: Counts, atoms: Array, weights: Array) -> Measured:
        terms, shift = self._terms(drawn, counts, atoms, weights)
        share = counts / counts.sum()
        by_scale = [terms[drawn[1] == k] for k in range(len(counts))]
        mean = sum(p * float(t.mean()) for p, t in zip(share, by_scale, strict=True))
        variance = sum(p * p * float(t.var(ddof=1)) / len(t) for p, t in zip(share, by_scale, strict=True))
        if mean == 0:
            return Measured(0.0, 0.0, 0.0, "frequencies")
        # on the scale of the logarithm: the terms are positive and skewed
        width = self._quantile * np.sqrt(variance) / mean
        square = mean * np.exp(shift)
        return Measured(float(square), float(square * np.exp(-width)), float(square * np.exp(width)), "frequencies")

    @property
    def _pilot(self) -> Counts:
        return np.full(len(self._scales), PILOT_PER_SCALE)

    def _first_bank(self) -> Drawn:
        if self._bank is None:
            self._bank = self._draw(self._pilot)
        return self._bank

    def glance(self, atoms: Array, weights: Array, kappa: Array) -> Measured:
        return self._estimate(self._first_bank(), self._pilot, atoms, weights)

    def measure(self, atoms: Array, weights: Array, kappa: Array) -> Measured:
        bank = self._first_bank()
        terms, _ = self._terms(bank, self._pilot, atoms, weights)
        weight = np.array([np.sqrt(np.mean(terms[bank[1] == k] ** 2)) for k in range(len(self._scales))])
        if not weight.any():
            return Measured(0.0, 0.0, 0.0, "frequencies")
        # 30 % shared out evenly, against what the pilot did not see
        share = 0.7 * weight / weight.sum() + 0.3 / len(weight)
        counts = np.maximum(np.rint(FREQUENCIES * share), FEWEST_PER_SCALE).astype(np.int64)
        return self._estimate(self._draw(counts), counts, atoms, weights)


def _spread(mean: KernelMean, frame: Frame) -> float:
    """The root mean square coordinate of the atoms in the frame, from some of them."""
    z = frame.apply(mean.atoms[:: max(1, mean.size // 10_000)])
    return float(np.sqrt(np.mean((z - z.mean(axis=0)) ** 2)))


class Rows(Probe):
    """By a sample of rows."""

    def __init__(self, mean: KernelMean, confidence: float, rng: np.random.Generator) -> None:
        self._mean = mean
        self._total = float(np.abs(mean.weights).sum())
        self._rows = rng.choice(mean.size, size=ROWS, p=np.abs(mean.weights) / self._total)
        self._values = np.concatenate(
            [mean.kernel.product_sums(mean.atoms, mean.weights, mean.atoms[self._rows[a:b]]) for a, b in blocks(ROWS, 128)]
        )
        self._quantile = float(stats.t.ppf(0.5 + confidence / 2, ROWS - 1)) * SAFETY

    def glance(self, atoms: Array, weights: Array, kappa: Array) -> Measured:
        mean = self._mean
        residual = self._values - mean.kernel.product_sums(atoms, weights, mean.atoms[self._rows])
        terms = self._total * np.sign(mean.weights[self._rows]) * residual
        at_atoms = float(weights @ (kappa - mean.kernel.product_sums(atoms, weights, atoms)))
        square = float(terms.mean()) - at_atoms
        width = self._quantile * float(terms.std(ddof=1)) / np.sqrt(ROWS)
        return Measured(max(square, 0.0), max(square - width, 0.0), max(square + width, 0.0), "rows")
