"""The error of one result at every bandwidth, from Fourier sums that were computed for its own bandwidth.

A bandwidth s times as wide has a spectrum s times as narrow. The same Fourier sums with other importance weights
(`FrequencyLadders.log_weights_at`) therefore estimate, at every bandwidth s,

    e(s)² = ‖f − f_m‖² / ‖f‖²,    ‖f‖² = ‖f_m‖² + E(|f̂|² − |f̂_m|²)

‖f_m‖² is exact, and the expectation is small if f_m is close to f. Otherwise ‖f‖² comes from sums over pairs of rows that were
computed before. No further pass over the data is needed.

The intervals hold simultaneously at all scales. Their width is a quantile of the largest deviation, from a multiplier bootstrap
over the independent ladders (Chernozhukov, Chetverikov & Kato 2013). Intervals are cut off at the triangle inequality,
|‖f‖ − ‖f_m‖| ≤ ‖f − f_m‖ ≤ ‖f‖ + ‖f_m‖.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from reduset._engine import Frame, blocks, cached_property
from reduset._types import Array, Precision
from reduset.certificate.frequencies import MASS_MISSING, FrequencyLadders, Waves
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.mixture import ComponentPieces, Pieces, SmallMean, own_sums_of, pieces_of

STEPS = 2  # scales per octave
WIDENED = 1.2  # factor on normal intervals, because the terms of lattices and of fine scales are skewed
DRAWS, SEED = 2000, 20131
PAIR_ROWS = 384, 4096  # the pairs of these numbers of rows estimate ‖f‖²
EPSILON = float(np.finfo(np.float64).eps)
MASS_ROUNDING = 1e-12
BLOCK_ROWS = 512
MANY_ATOMS = 4096  # from this number on, ‖f_m‖² is computed in single precision; its error of 1e-5 is below the interval
SORT_COLUMNS = 64  # columns that sort the atoms for the key of the cache; ties only cost a missed look-up
MAX_THIN = 0.25  # of a bandwidth; directions with a smaller spread are neglected
MIN_EFFECTIVE = 0.25  # of the ladders; with a smaller effective number, a few ladders dominate the estimate
MAX_WIDER = 2**0.25  # times the kernel's bandwidth; above it, directions without ladders are measured at too fine a scale


@dataclass(frozen=True)
class ErrorProfile:
    """The error of a small mean at every bandwidth.

    Attributes
    ----------
    bandwidths : (k,) bandwidths from coarse to fine.
    relative_errors : (k,) ‖f − f_m‖ / ‖f‖ at each bandwidth.
    intervals : (k, 2) simultaneous confidence intervals.
    random_rows : (k,) root mean square error of the same number of random rows.
    noise : (k,) sampling error of the data, root mean square.
    confidence : Confidence level of the intervals.
    limit : The error as the bandwidth goes to infinity, |1 − Σα / Σw|. Above the coarsest bandwidth, errors lie
        between this limit and the error at the coarsest bandwidth.
    """

    bandwidths: Array
    relative_errors: Array
    intervals: Array
    random_rows: Array
    noise: Array
    confidence: float
    limit: float = 0.0

    def finest(self, tol: float) -> float | None:
        """The smallest bandwidth for which the certified error is at most ``tol``, there and at all larger bandwidths; or None."""
        within = np.cumprod(self.intervals[:, 1] <= tol) * (self.limit <= tol)
        return float(self.bandwidths[int(within.sum()) - 1]) if within[0] else None

    @classmethod
    def joined(cls, parts: Sequence[ErrorProfile]) -> ErrorProfile:
        """One profile of several with exact errors, from coarse to fine. Estimated intervals would not hold simultaneously."""
        bandwidths, errors, intervals, random, noise = (
            np.concatenate(arrays)
            for arrays in zip(
                *((part.bandwidths, part.relative_errors, part.intervals, part.random_rows, part.noise) for part in parts),
                strict=True,
            )
        )
        return cls(bandwidths, errors, intervals, random, noise, parts[0].confidence, parts[0].limit)

    def coarser_error(self, bandwidth: float) -> float:
        """The largest upper end of the error at coarser bandwidths, up to infinity."""
        return max(self.limit, float(self.intervals[self.bandwidths > bandwidth * (1 + 1e-9), 1].max(initial=0.0)))


@dataclass(frozen=True)
class MedianError:
    """The error at the median distance of the data. It makes results on the same data comparable.

    Attributes
    ----------
    relative_error : ‖f − f_m‖ / ‖f‖ at ``bandwidth``.
    bandwidth : The median distance, or the nearest bandwidth at which the error can be measured.
    distance : The median distance of the rows.
    """

    relative_error: float
    bandwidth: float
    distance: float

    @property
    def is_exact(self) -> bool:
        """Whether the error is measured at the median distance itself."""
        return self.bandwidth == self.distance


class Scales(ABC):
    """A large mean, prepared to measure errors at every scale.

    Attributes
    ----------
    bandwidths : (k,) default bandwidths, from coarse to fine.
    certain : True if errors are exact, at a cost for every bandwidth.
    median : The median distance of the rows, where the search for a bandwidth starts. None if all rows coincide.
    """

    bandwidths: Array
    certain: ClassVar[bool] = False
    median: float | None

    def nearest(self, bandwidth: float) -> float:
        """The nearest bandwidth at which errors can be measured."""
        return bandwidth

    @abstractmethod
    def profile(self, small: SmallMean, bandwidths: Array, confidence: float, random: int) -> ErrorProfile:
        """The errors of a small mean, and of ``random`` random rows, at bandwidths from coarse to fine."""


@dataclass(frozen=True)
class ExactScales(Scales):
    """The mean itself, for a small number of rows. Each scale costs n²/2 products for ‖f‖², once, and n·m for each small mean."""

    mean: KernelMean
    bandwidths: Array
    # ‖f‖² by bandwidth; the products with the latest atoms, sorted by coordinates, by bandwidth and hash of the atoms
    _norms: dict[float, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    _products: dict[tuple[float, bytes], Array] = field(default_factory=dict, init=False, repr=False, compare=False)
    certain = True

    @cached_property
    def median(self) -> float | None:
        return median_distance(self.mean)

    def _kappas(self, atoms: Pieces, kernels: Sequence[RadialKernel]) -> Iterator[Array]:
        """⟨f, φ(·, c)⟩ at each atom or component. Values of the latest atoms are cached, for any order and weights."""
        if isinstance(atoms, ComponentPieces):
            yield from (atoms.kappa(KernelMean.unchecked(self.mean.atoms, self.mean.weights, kernel)) for kernel in kernels)
            return
        order = np.lexsort(atoms.T[-SORT_COLUMNS:])  # NumPy allocates 2 kB per column; ties only cost a missed look-up
        points, cache = np.ascontiguousarray(atoms[order]), self._products
        key = hashlib.sha256(points.tobytes()).digest()
        if cache and next(iter(cache))[1] != key:
            cache.clear()
        for kernel in kernels:
            if (kernel.width, key) not in cache:
                cache[kernel.width, key] = kernel.product_sums(self.mean.atoms, self.mean.weights, points)
            kappa = np.empty(len(atoms))
            kappa[order] = cache[kernel.width, key]
            yield kappa

    def profile(self, small: SmallMean, bandwidths: Array, confidence: float, random: int) -> ErrorProfile:
        mean, squares = self.mean, sum_of_squares(self.mean.weights)
        errors, whole, rounding = (np.empty(len(bandwidths)) for _ in range(3))
        kernels = [cast(RadialKernel, mean.kernel).with_bandwidth(width) for width in bandwidths]
        pieces = pieces_of(small)
        for k, (kernel, kappa) in enumerate(zip(kernels, self._kappas(pieces, kernels), strict=True)):
            width = kernel.width
            if width not in self._norms:
                self._norms[width] = _square_norm(np.asarray(mean.atoms, np.float64), mean.weights, kernel)
            square = self._norms[width] - 2 * float(small.weights @ kappa) + _square_norm(pieces, small.weights, kernel)
            whole[k] = max(self._norms[width], 1e-300)
            errors[k] = max(square, 0.0) / whole[k]
            rounding[k] = 4 * EPSILON * (mean.total + float(small.magnitudes.sum())) ** 2 / whole[k]
        ends = np.sqrt(np.stack([np.maximum(errors - rounding, 0.0), errors + rounding], axis=1))
        noise, drawn = _sampling_errors(whole, mean.mass, squares, random)
        limit = missing_mass(mean.mass, small.mass)
        return ErrorProfile(np.asarray(bandwidths), np.sqrt(errors), ends, drawn, noise, confidence, limit)


@dataclass(frozen=True)
class WaveScales(Scales):
    """The Fourier sums of a large mean. They determine its distance to a small mean at any bandwidth.

    Attributes
    ----------
    kernel : The kernel with the spectrum of the ladders.
    waves : (s, rungs) Fourier sums of the mean.
    mass, squares : Σ w and Σ w² of the mean.
    norms : (k, 2) ‖f‖² at the bandwidth of each rung, from pairs of rows, and its relative standard error.
    thin : Spread of the data in directions in which no ladder climbs, in the frame's coordinates.
    rungs : (k,) the bandwidths of the rungs, from coarse to fine
    bandwidths : The bandwidths that are shown by default.
    coarser : The same for the median distance as bandwidth, if the ladders do not reach it. Otherwise None.
    """

    kernel: RadialKernel
    ladders: FrequencyLadders
    waves: Waves
    frame: Frame
    mass: float
    squares: float
    norms: Array
    thin: float
    median: float | None
    rungs: Array
    bandwidths: Array
    coarser: WaveScales | None = None

    def measures(self, bandwidth: float, log_weights: Array | None = None) -> bool:
        """Whether the ladders measure the error at a bandwidth: a rung's, or one with many effective ladders (Kish).

        ``log_weights`` at this bandwidth may be given if they are known.
        """
        if np.isclose(self.rungs, bandwidth, rtol=1e-9, atol=0).any():
            return True
        ratio = bandwidth / self.kernel.width
        if self.ladders.thin and ratio > MAX_WIDER:
            return False
        log_weights = self.ladders.log_weights_at(ratio) if log_weights is None else log_weights
        weights = np.exp(log_weights - log_weights.max()).sum(axis=1)
        return float(weights.sum() ** 2 / (len(weights) * (weights @ weights))) >= MIN_EFFECTIVE

    def nearest(self, bandwidth: float) -> float:
        if self.measures(bandwidth) or (self.coarser is not None and self.coarser.measures(bandwidth)):
            return bandwidth
        return float(self.rungs[np.abs(np.log(self.rungs / bandwidth)).argmin()])

    def profile(self, small: SmallMean, bandwidths: Array, confidence: float, random: int) -> ErrorProfile:
        """The errors by the ladders. At bandwidths that they do not measure, only the triangle inequality holds."""
        bandwidths, ladders, rungs = np.asarray(bandwidths), self.ladders, self.rungs
        log_weights = [ladders.log_weights_at(width / self.kernel.width) for width in bandwidths]
        measured = np.array([self.measures(*known) for known in zip(bandwidths.tolist(), log_weights, strict=True)])
        if self.coarser is not None:
            reached = measured & (bandwidths <= rungs[0] * (1 + 1e-9))
            far = np.array([not known and self.coarser.measures(width) for width, known in zip(bandwidths, reached, strict=True)])
            if far.any():
                return self._with_coarser(self.coarser, far, small, bandwidths, confidence, random)
        pieces, missing = pieces_of(small), abs(self.mass - small.mass) > MASS_MISSING * abs(self.mass)
        # The energy of a difference in mass is concentrated near frequency 0. Therefore f − f_m = (f − g) + (g − f_m), where g is
        # f_m scaled to the mass of f. The ladders measure the first part, and the norm of the second is known.
        scale = self.mass / small.mass if missing and small.mass * self.mass > MASS_MISSING * self.mass**2 else 1.0
        small_waves, rest = scale * ladders.waves(pieces, small.weights, self.frame), 1 - 1 / scale
        differences = self.waves - small_waves
        error_terms = np.abs(differences) ** 2 + 2 * rest * (differences * small_waves.conj()).real
        norm_terms = np.abs(self.waves) ** 2 - np.abs(small_waves) ** 2
        squares, changes = (np.empty((len(bandwidths), len(small_waves))) for _ in range(2))
        for k, logs in enumerate(log_weights):
            weights = np.exp(logs)
            squares[k], changes[k] = (weights * error_terms).sum(axis=1), (weights * norm_terms).sum(axis=1)
        small_norms = np.array([_square_norm(pieces, small.weights, self.kernel.with_bandwidth(width)) for width in bandwidths])
        squares += (np.square(rest * scale) * small_norms)[:, None]
        pairs = np.exp(np.interp(np.log(bandwidths), np.log(rungs[::-1]), np.log(self.norms[::-1, 0])))
        pair_errors = np.interp(np.log(bandwidths), np.log(rungs[::-1]), self.norms[::-1, 1])
        by_ladders = scale**2 * small_norms + changes.mean(axis=1)
        by_pairs = pair_errors * pairs < _standard_errors(changes, ladders.kinds)
        whole = np.where(by_pairs | (by_ladders <= 0), pairs, by_ladders)
        with np.errstate(divide="ignore", invalid="ignore"):
            influence = np.nan_to_num(squares / squares.mean(axis=1, keepdims=True))
            influence -= np.where(by_pairs, 0.0, 1 / whole)[:, None] * changes
            errors = np.sqrt(np.maximum(squares.mean(axis=1), 0.0) / whole)
            norm = np.sqrt(small_norms / whole)
        width = _simultaneous(influence, np.where(by_pairs, pair_errors, 0.0), ladders.kinds, confidence)
        width[~measured | missing] = np.inf
        width[self.thin * self.kernel.width > MAX_THIN * bandwidths] = np.inf  # no ladder climbs in directions that matter here
        with np.errstate(over="ignore", invalid="ignore"):
            ends = np.stack([errors * np.exp(-width / 2), np.where(np.isinf(width), np.inf, errors * np.exp(width / 2))], axis=1)
        slack = np.where(by_pairs, pair_errors, 1.0) * norm
        intervals = np.clip(ends, np.maximum(np.abs(1 - norm) - slack, 0.0)[:, None], (1 + norm + slack)[:, None])
        noise, drawn = _sampling_errors(whole, self.mass, self.squares, random)
        limit = missing_mass(self.mass, small.mass)
        return ErrorProfile(bandwidths, np.clip(errors, *intervals.T), intervals, drawn, noise, confidence, limit)

    def _with_coarser(
        self, coarser: WaveScales, far: NDArray[np.bool_], small: SmallMean, bandwidths: Array, confidence: float, random: int
    ) -> ErrorProfile:
        """The errors if the bandwidths ``far`` need coarser ladders. All intervals hold simultaneously (Bonferroni)."""
        level = confidence if far.all() else (1 + confidence) / 2
        parts = [coarser.profile(small, bandwidths[far], level, random)]
        if not far.all():
            parts.append(self.profile(small, bandwidths[~far], level, random))
        order = np.argsort(np.concatenate([np.flatnonzero(far), np.flatnonzero(~far)]))
        errors, intervals, drawn, noise = (
            np.concatenate([getattr(part, name) for part in parts])[order]
            for name in ("relative_errors", "intervals", "random_rows", "noise")
        )
        return ErrorProfile(bandwidths, errors, intervals, drawn, noise, confidence, parts[0].limit)


def median_distance(rows: KernelMean) -> float | None:
    """The bandwidth of the median rule for these rows, in the coordinates of their kernel; None if (nearly) all rows coincide."""
    atoms = rows.atoms
    if all(bool((part.min(axis=0) == part.max(axis=0)).all()) for part in (atoms[:64], atoms)):
        return None
    try:
        width = replace(cast(RadialKernel, rows.kernel), bandwidth="median").resolve(atoms, rows.magnitudes).width
    except ValueError:  # all pairs drawn coincide
        return None
    return width if width > 0 else None


def missing_mass(mass: float, small: float) -> float:
    """|1 − Σα / Σw|, the error as the bandwidth goes to infinity; 0 if the difference is within the rounding of a sum."""
    missing = abs(mass - small)
    if missing <= MASS_ROUNDING * max(abs(mass), abs(small)):
        return 0.0
    return missing / abs(mass) if mass != 0 else np.inf


def sum_of_squares(weights: Array) -> float:
    """Σ w², without expanding equal weights that are stored as one number."""
    return len(weights) * float(weights[0]) ** 2 if weights.strides == (0,) else float(np.einsum("i,i->", weights, weights))


def rung_bandwidths(kernel: RadialKernel, below: int, rungs: int) -> Array:
    """The bandwidths of the rungs of ladders, from coarse to fine. ``below`` rungs lie below the spectrum of the kernel."""
    steps = np.arange(STEPS * (rungs - 1) + 1)
    return np.asarray(kernel.width * 2.0 ** (below - steps / STEPS))


def _sampling_errors(whole: Array, mass: float, squares: float, random: int) -> tuple[Array, Array]:
    """The sampling error of the rows and the error of ``random`` rows drawn from them, both root mean square, relative to ‖f‖."""
    if mass == 0:
        return np.zeros(len(whole)), np.zeros(len(whole))
    noise = np.sqrt(np.clip(mass**2 - whole, 0.0, None) * squares / mass**2 / whole)
    return noise, noise * np.sqrt(max(mass**2 / squares / random - 1, 0.0))


def _square_norm(pieces: Pieces, weights: Array, kernel: RadialKernel) -> float:
    """‖f‖² in units where every kernel function has norm 1. Every pair of atoms is evaluated once."""
    if isinstance(pieces, ComponentPieces):
        return float(weights @ own_sums_of(kernel, pieces, weights))
    precision: Precision = "auto" if len(pieces) >= MANY_ATOMS else "double"
    total = 0.0
    for a, b in blocks(len(pieces), BLOCK_ROWS):
        values = kernel.product_sums(pieces[a:b], weights[a:b], pieces[a:], precision)
        values[b - a :] *= 2
        total += float(weights[a:] @ values)
    return total


def square_norms(mean: KernelMean, squares: float, kernel: RadialKernel, bandwidths: Array, rng: np.random.Generator) -> Array:
    """‖f‖² at every bandwidth from pairs of different rows drawn by |w|, and the relative standard errors, (k, 2)."""
    total = mean.total
    first, second = (np.unique(mean.draw_rows(count, rng)) for count in PAIR_ROWS)
    signs, second_signs = np.sign(mean.weights[first]), np.sign(mean.weights[second])
    both = np.isin(first, second)  # the product of a row with itself is 1
    sums, queries, others = np.empty((len(bandwidths), len(first))), mean.atoms[first], mean.atoms[second]
    for k, width in enumerate(bandwidths):
        products = kernel.with_bandwidth(width).product_sums(others, second_signs, queries)
        sums[k] = (products * signs - both) / np.maximum(len(second) - both, 1)
    pair_weight = max(total**2 - squares, 0.0)  # of all pairs of different rows
    values = squares + pair_weight * sums.mean(axis=1)
    errors = pair_weight * sums.std(axis=1, ddof=1) / np.sqrt(len(first)) if len(first) > 1 else np.zeros(len(bandwidths))
    values = np.maximum(values, 1e-300)
    return np.stack([values, errors / values], axis=1)


def _standard_errors(terms: Array, kinds: int) -> Array:
    """The standard errors (k,) of the means of terms (k, s), drawn in equal numbers from ``kinds`` distributions."""
    families = terms.reshape(len(terms), kinds, -1)
    return np.asarray(np.sqrt(families.var(axis=2, ddof=1).sum(axis=1) / families.shape[2]) / kinds)


def _simultaneous(influence: Array, others: Array, kinds: int, confidence: float) -> Array:
    """Half the width of simultaneous intervals, (k,), from the influence of each ladder, (k, s), and errors of other sources."""
    families = influence.reshape(len(influence), kinds, -1)
    centred = (families - families.mean(axis=2, keepdims=True)).reshape(len(influence), -1)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    drawn = np.random.default_rng(SEED).standard_normal((DRAWS, centred.shape[1]))
    largest = np.abs(drawn @ (centred / np.maximum(lengths, 1e-300)).T).max(axis=1)
    return np.asarray(WIDENED * float(np.quantile(largest, confidence)) * np.hypot(_standard_errors(influence, kinds), others))


def bandwidth_where(bandwidths: Array, errors: Array, level: float) -> float | None:
    """The smallest bandwidth, interpolated, for which errors are at most ``level``, there and at all larger bandwidths; or None."""
    within = int(np.cumprod(errors <= level).sum())
    if within == 0:
        return None
    if within == len(bandwidths) or errors[within - 1] <= 0:
        return float(bandwidths[within - 1])
    logs, widths = np.log(errors), np.log(bandwidths)
    fraction = (np.log(level) - logs[within - 1]) / (logs[within] - logs[within - 1])
    return float(np.exp(widths[within - 1] + fraction * (widths[within] - widths[within - 1])))
