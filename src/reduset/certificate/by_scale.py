"""The error at every scale: one result looked at with bandwidths other than its own, from the waves that are there anyway.

A bandwidth s times as wide has a spectrum s times as narrow, so the same waves re-weighted (`FrequencyLadders.shares_at`) tell

    e(s)² = ‖f − f_m‖² / ‖f‖²    at every bandwidth s,    ‖f‖² = ‖f_m‖² + E(|f̂|² − |f̂_m|²)

where ‖f_m‖² is exact and the rest small where f_m is near; where not, ‖f‖² comes from pairs of rows, whose sums were taken before.
No further look at the data is needed. The intervals of all scales hold at once: their width is a quantile of the largest deviation,
by multipliers on the ladders, which are independent (Chernozhukov, Chetverikov & Kato 2013). And none leaves what is certain,
|‖f‖ − ‖f_m‖| ≤ ‖f − f_m‖ ≤ ‖f‖ + ‖f_m‖.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from reduset._engine import Frame, blocks, cached_property
from reduset._types import Array, Precision
from reduset.certificate.frequencies import MASS_MISSING, FrequencyLadders, Waves
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.mixture.component_mean import SmallMean, pieces_of
from reduset.mixture.pieces import ComponentPieces, Pieces, own_sums_of

STEPS = 2  # scales an octave
WIDENED = 1.2  # over the normal width: the terms of lattices and of fine scales are skewed
DRAWS, SEED = 2000, 20131
FEW_ROWS, MANY_ROWS = 384, 4096  # whose pairs are looked at
EPSILON = float(np.finfo(np.float64).eps)
MASS_ROUNDING = 1e-12
ROWS_A_STEP = 512
MANY_ATOMS = 4096  # from which ‖f_m‖² is computed in single precision, to 1e-5: less than its share of the interval
SORTED_BY = 64  # columns that order atoms for a search; ties only cost a comparison
HARDLY = 0.25  # of a bandwidth: directions in which data spread less do not count
EFFECTIVE = 0.25  # of the ladders: with a smaller effective number, few of them decide the error
THIN_WIDER = 2**0.25  # times the own bandwidth, above which directions without ladders are measured at too fine a scale


@dataclass(frozen=True)
class ErrorProfile:
    """The error of a small mean at every bandwidth.

    Attributes
    ----------
    bandwidths : (k,) from coarse to fine
    relative_errors : (k,) ‖f − f_m‖ / ‖f‖ at each bandwidth
    intervals : (k, 2) simultaneous confidence intervals
    random_rows : (k,) root mean square error of as many random rows
    noise : (k,) sampling error of the data themselves, root mean square
    confidence : of the intervals
    limit : the error as the bandwidth goes to infinity, |1 − Σα / Σw|; it and the error at the coarsest bandwidth bound the errors
        in between
    """

    bandwidths: Array
    relative_errors: Array
    intervals: Array
    random_rows: Array
    noise: Array
    confidence: float
    limit: float = 0.0

    def finest(self, tol: float) -> float | None:
        """The smallest bandwidth at which, and at all larger ones, the error is certified to be at most ``tol``; None for none."""
        within = np.cumprod(self.intervals[:, 1] <= tol) * (self.limit <= tol)
        return float(self.bandwidths[int(within.sum()) - 1]) if within[0] else None

    @classmethod
    def joined(cls, parts: Sequence[ErrorProfile]) -> ErrorProfile:
        """One of several, from coarse to fine, whose errors are exact: of others the intervals would no longer hold at once."""
        bandwidths, errors, intervals, random, noise = (
            np.concatenate(each)
            for each in zip(
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
    """The error at the scale of the data, at which results on the same data can be compared.

    Attributes
    ----------
    relative_error : ‖f − f_m‖ / ‖f‖ at ``bandwidth``
    bandwidth : the median distance, or the nearest to it at which the error is measured
    distance : the median distance of the rows
    """

    relative_error: float
    bandwidth: float
    distance: float

    @property
    def is_exact(self) -> bool:
        """Whether the error is that at the median distance itself."""
        return self.bandwidth == self.distance


class Scales(ABC):
    """What is known of a large mean at every scale.

    Attributes
    ----------
    bandwidths : (k,) at which it is told unasked, from coarse to fine
    certain : whether errors are exact, at a cost for every bandwidth
    median : the median distance of the rows, with which the search for a bandwidth starts; None if all rows coincide
    """

    bandwidths: Array
    certain: ClassVar[bool] = False
    median: float | None

    def nearest(self, bandwidth: float) -> float:
        """The bandwidth nearest to this one at which errors can be measured."""
        return bandwidth

    @abstractmethod
    def profile(self, small: SmallMean, bandwidths: Array, confidence: float, random: int) -> ErrorProfile:
        """The errors of a small mean, and those of ``random`` rows, at bandwidths from coarse to fine."""


@dataclass(frozen=True)
class ExactScales(Scales):
    """The mean itself, where it has few rows: n²/2 products a scale for ‖f‖², once, and n·m for each small mean."""

    mean: KernelMean
    bandwidths: Array
    certain = True

    @cached_property
    def median(self) -> float | None:
        return median_distance(self.mean)

    @cached_property
    def _norms(self) -> dict[float, float]:
        """‖f‖² by bandwidth."""
        return {}

    @cached_property
    def _products(self) -> dict[tuple[float, bytes], Array]:
        """Of the mean with the atoms looked at last, in the order of their coordinates, by bandwidth and atoms."""
        return {}

    def _kappas(self, atoms: Pieces, kernels: Sequence[RadialKernel]) -> Iterator[Array]:
        """⟨f, φ(·, c)⟩ at each atom, once for the same atoms in whatever order and with whatever weights; or at each law."""
        if isinstance(atoms, ComponentPieces):
            yield from (atoms.kappa(KernelMean.unchecked(self.mean.atoms, self.mean.weights, kernel)) for kernel in kernels)
            return
        order = np.lexsort(atoms.T[-SORTED_BY:])  # of an iterator for each column, 2 kB; ties cost only a look-up
        places, known = np.ascontiguousarray(atoms[order]), self._products
        key = hashlib.sha256(places.tobytes()).digest()
        if known and next(iter(known))[1] != key:
            known.clear()
        for kernel in kernels:
            if (kernel.width, key) not in known:
                known[kernel.width, key] = kernel.product_sums(self.mean.atoms, self.mean.weights, places)
            kappa = np.empty(len(atoms))
            kappa[order] = known[kernel.width, key]
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
        alone, drawn = _by_chance(whole, mean.mass, squares, random)
        limit = missing_mass(mean.mass, small.mass)
        return ErrorProfile(np.asarray(bandwidths), np.sqrt(errors), ends, drawn, alone, confidence, limit)


@dataclass(frozen=True)
class WaveScales(Scales):
    """The waves of a large mean, from which its distance to a small one can be told at any bandwidth.

    Attributes
    ----------
    kernel : whose spectrum the ladders have
    waves : (s, rungs) of the mean
    mass, squares : Σ w and Σ w² of the mean
    norms : (k, 2) ‖f‖² with bumps of each of the bandwidths, from pairs of rows, and its relative standard error
    thin : how far the data spread in directions in which no ladder climbs, in the frame's coordinates
    hidden : how many of the coarsest bandwidths are not shown by default
    coarser : the same with the median distance as the kernel's bandwidth, if the ladders do not reach it; else None
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
    hidden: int = 0
    coarser: WaveScales | None = None

    @classmethod
    def from_rows(
        cls,
        rows: KernelMean,
        squares: float,
        ladders: FrequencyLadders,
        waves: Waves,
        frame: Frame,
        rng: np.random.Generator,
        thin: float = 0.0,
    ) -> WaveScales:
        """For a mean of the same mass whose waves are known, and of which these are all the rows or a fair sample."""
        kernel = cast(RadialKernel, rows.kernel)
        norms = square_norms(rows, squares, kernel, own_bandwidths(kernel, ladders.below, ladders.rungs), rng)
        return cls(kernel, ladders, waves, frame, rows.mass, squares, norms, thin, median_distance(rows))

    @property
    def _own(self) -> Array:
        """The bandwidths that have a rung of their own."""
        return own_bandwidths(self.kernel, self.ladders.below, self.ladders.rungs)

    @property
    def bandwidths(self) -> Array:  # type: ignore[override]
        return self._own[self.hidden :]

    def from_spread(self) -> WaveScales:
        """The same with a grid that starts at the scale of the data, for ladders that start far above it."""
        if self.median is None:
            return self
        return replace(self, hidden=max(int((self._own >= self.median).sum()) - STEPS, 0))

    def _measures(self, bandwidth: float) -> bool:
        return measures(self.kernel, self.ladders, bandwidth)

    def reaches_median(self) -> bool:
        """Whether the error at the median distance can be measured."""
        return self.median is None or reaches(self.kernel, self.ladders, self.median)

    def nearest(self, bandwidth: float) -> float:
        if self._measures(bandwidth) or (self.coarser is not None and self.coarser._measures(bandwidth)):
            return bandwidth
        return float(self._own[np.abs(np.log(self._own / bandwidth)).argmin()])

    def profile(self, small: SmallMean, bandwidths: Array, confidence: float, random: int) -> ErrorProfile:
        measured, coarser = np.array([self._measures(float(width)) for width in bandwidths]), self.coarser
        if coarser is not None:
            reached = [reaches(self.kernel, self.ladders, float(width)) for width in bandwidths]
            far = ~np.array(reached) & [coarser._measures(float(width)) for width in bandwidths]
            if far.any():
                return self._with_coarser(coarser, far, small, np.asarray(bandwidths), confidence, random)
        return self._profile(small, bandwidths, measured, confidence, random)

    def _with_coarser(
        self, coarser: WaveScales, far: NDArray[np.bool_], small: SmallMean, bandwidths: Array, confidence: float, random: int
    ) -> ErrorProfile:
        """The errors at bandwidths of which those ``far`` need other ladders; all intervals hold at once (Bonferroni)."""
        each = confidence if far.all() else (1 + confidence) / 2
        parts = [coarser.profile(small, bandwidths[far], each, random)]
        if not far.all():
            parts.append(self.profile(small, bandwidths[~far], each, random))
        order = np.argsort(np.concatenate([np.flatnonzero(far), np.flatnonzero(~far)]))
        errors, intervals, drawn, alone = (
            np.concatenate([getattr(part, name) for part in parts])[order]
            for name in ("relative_errors", "intervals", "random_rows", "noise")
        )
        return ErrorProfile(bandwidths, errors, intervals, drawn, alone, confidence, parts[0].limit)

    def _profile(
        self, small: SmallMean, bandwidths: Array, measured: NDArray[np.bool_], confidence: float, random: int
    ) -> ErrorProfile:
        """The errors by the ladders; where these do not measure them, only the certain ends of the interval are known."""
        ladders, own = self.ladders, self._own
        pieces, missing = pieces_of(small), abs(self.mass - small.mass) > MASS_MISSING * abs(self.mass)
        # the energy of a difference of much mass is all near frequency 0, so f − f_m = (f − g) + (g − f_m), with g = f_m of the
        # mass of f: the ladders measure the first part, and the norm of the second is known
        scale = self.mass / small.mass if missing and small.mass * self.mass > MASS_MISSING * self.mass**2 else 1.0
        ours, rest = scale * ladders.waves(pieces, small.weights, self.frame), 1 - 1 / scale
        apart = self.waves - ours
        losses = np.abs(apart) ** 2 + 2 * rest * (apart * ours.conj()).real
        changes = np.abs(self.waves) ** 2 - np.abs(ours) ** 2
        lost, changed = (np.empty((len(bandwidths), len(ours))) for _ in range(2))
        for k, width in enumerate(bandwidths):
            shares = np.exp(ladders.shares_at(width / self.kernel.width))
            lost[k], changed[k] = (shares * losses).sum(axis=1), (shares * changes).sum(axis=1)
        theirs = np.array([_square_norm(pieces, small.weights, self.kernel.with_bandwidth(width)) for width in bandwidths])
        lost += (np.square(rest * scale) * theirs)[:, None]
        pairs = np.exp(np.interp(np.log(bandwidths), np.log(own[::-1]), np.log(self.norms[::-1, 0])))
        unsure = np.interp(np.log(bandwidths), np.log(own[::-1]), self.norms[::-1, 1])
        near = scale**2 * theirs + changed.mean(axis=1)
        by_pairs = unsure * pairs < _standard_errors(changed, ladders.kinds)
        whole = np.where(by_pairs | (near <= 0), pairs, near)
        with np.errstate(divide="ignore", invalid="ignore"):
            influence = np.nan_to_num(lost / lost.mean(axis=1, keepdims=True))
            influence -= np.where(by_pairs, 0.0, 1 / whole)[:, None] * changed
            errors = np.sqrt(np.maximum(lost.mean(axis=1), 0.0) / whole)
            norm = np.sqrt(theirs / whole)
        width = _simultaneous(influence, np.where(by_pairs, unsure, 0.0), ladders.kinds, confidence)
        width[~measured | missing] = np.inf
        width[self.thin * self.kernel.width > HARDLY * bandwidths] = np.inf  # there what is thin counts, and no ladder climbs in it
        with np.errstate(over="ignore", invalid="ignore"):
            ends = np.stack([errors * np.exp(-width / 2), np.where(np.isinf(width), np.inf, errors * np.exp(width / 2))], axis=1)
        slack = np.where(by_pairs, unsure, 1.0) * norm
        intervals = np.clip(ends, np.maximum(np.abs(1 - norm) - slack, 0.0)[:, None], (1 + norm + slack)[:, None])
        alone, drawn = _by_chance(whole, self.mass, self.squares, random)
        limit = missing_mass(self.mass, small.mass)
        return ErrorProfile(np.asarray(bandwidths), np.clip(errors, *intervals.T), intervals, drawn, alone, confidence, limit)


def measures(kernel: RadialKernel, ladders: FrequencyLadders, bandwidth: float) -> bool:
    """Whether ladders of a kernel measure the error at another bandwidth.

    They do at those of their rungs, and between these if the effective number of ladders, (Σw)² / Σw² (Kish), is large enough.
    """
    if np.isclose(own_bandwidths(kernel, ladders.below, ladders.rungs), bandwidth, rtol=1e-9, atol=0).any():
        return True
    ratio = bandwidth / kernel.width
    if ladders.thin and ratio > THIN_WIDER:
        return False
    return _effective(ladders.shares_at(ratio)) >= EFFECTIVE


def reaches(kernel: RadialKernel, ladders: FrequencyLadders, bandwidth: float) -> bool:
    """Whether ladders of a kernel measure the error at a bandwidth that is not above those of their rungs."""
    coarsest = own_bandwidths(kernel, ladders.below, ladders.rungs)[0]
    return bool(bandwidth <= coarsest * (1 + 1e-9)) and measures(kernel, ladders, bandwidth)


def _effective(shares: Array) -> float:
    """The effective number of ladders, as a proportion of them, from the logarithms of their weights, (s, rungs)."""
    weights = np.exp(shares - shares.max()).sum(axis=1)
    return float(weights.sum() ** 2 / (len(weights) * (weights @ weights)))


def median_distance(rows: KernelMean) -> float | None:
    """The bandwidth that the median rule gives these rows, in the coordinates of their kernel; None if (nearly) all coincide."""
    atoms = rows.atoms
    if all(bool((some.min(axis=0) == some.max(axis=0)).all()) for some in (atoms[:64], atoms)):
        return None
    try:
        width = replace(cast(RadialKernel, rows.kernel), bandwidth="median").resolve(atoms, rows.magnitudes).width
    except ValueError:  # all pairs drawn coincide
        return None
    return width if width > 0 else None


def missing_mass(mass: float, small: float) -> float:
    """|1 − Σα / Σw|, the error as the bandwidth goes to infinity; rounding errors of a sum are not counted."""
    missing = abs(mass - small)
    if missing <= MASS_ROUNDING * max(abs(mass), abs(small)):
        return 0.0
    return missing / abs(mass) if mass != 0 else np.inf


def sum_of_squares(weights: Array) -> float:
    """Σ w², without a copy of weights that are one number."""
    return len(weights) * float(weights[0]) ** 2 if weights.strides == (0,) else float(np.einsum("i,i->", weights, weights))


def own_bandwidths(kernel: RadialKernel, below: int, rungs: int) -> Array:
    """The bandwidths whose spectra are rungs of ladders of which so many lie below the kernel's own, from coarse to fine."""
    steps = np.arange(STEPS * (rungs - 1) + 1)
    return np.asarray(kernel.width * 2.0 ** (below - steps / STEPS))


def _by_chance(whole: Array, mass: float, squares: float, random: int) -> tuple[Array, Array]:
    """How far a sample is from its law, and so many rows drawn from it from the sample, in the mean square, relative to ‖f‖."""
    if mass == 0:
        return np.zeros(len(whole)), np.zeros(len(whole))
    alone = np.sqrt(np.clip(mass**2 - whole, 0.0, None) * squares / mass**2 / whole)
    return alone, alone * np.sqrt(max(mass**2 / squares / random - 1, 0.0))


def _square_norm(pieces: Pieces, weights: Array, kernel: RadialKernel) -> float:
    """‖f‖² with bumps of another bandwidth, each of norm 1; every pair of atoms once."""
    if isinstance(pieces, ComponentPieces):
        return float(weights @ own_sums_of(kernel, pieces, weights))
    precision: Precision = "auto" if len(pieces) >= MANY_ATOMS else "double"
    total = 0.0
    for a, b in blocks(len(pieces), ROWS_A_STEP):
        there = kernel.product_sums(pieces[a:b], weights[a:b], pieces[a:], precision)
        there[b - a :] *= 2
        total += float(weights[a:] @ there)
    return total


def square_norms(mean: KernelMean, squares: float, kernel: RadialKernel, bandwidths: Array, rng: np.random.Generator) -> Array:
    """‖f‖² at every bandwidth from pairs of different rows drawn by |w|, and their relative standard errors, (k, 2)."""
    total = mean.total
    few, many = np.unique(mean.draw_rows(FEW_ROWS, rng)), np.unique(mean.draw_rows(MANY_ROWS, rng))
    signs, theirs = np.sign(mean.weights[few]), np.sign(mean.weights[many])
    both = np.isin(few, many)  # pairs of a row with itself, whose product is 1
    sums, some, others = np.empty((len(bandwidths), len(few))), mean.atoms[few], mean.atoms[many]
    for k, width in enumerate(bandwidths):
        there = kernel.with_bandwidth(width).product_sums(others, theirs, some)
        sums[k] = (there * signs - both) / np.maximum(len(many) - both, 1)
    apart = max(total**2 - squares, 0.0)  # the weight of pairs of different rows
    values = squares + apart * sums.mean(axis=1)
    errors = apart * sums.std(axis=1, ddof=1) / np.sqrt(len(few)) if len(few) > 1 else np.zeros(len(bandwidths))
    values = np.maximum(values, 1e-300)
    return np.stack([values, errors / values], axis=1)


def _standard_errors(terms: Array, kinds: int) -> Array:
    """Of the means of rows of terms, (k, s), drawn from so many laws, as many from each."""
    families = terms.reshape(len(terms), kinds, -1)
    return np.asarray(np.sqrt(families.var(axis=2, ddof=1).sum(axis=1) / families.shape[2]) / kinds)


def _simultaneous(influence: Array, others: Array, kinds: int, confidence: float) -> Array:
    """Half the width of intervals that hold at once, (k,), from what each ladder adds, (k, s), and errors of other sources."""
    families = influence.reshape(len(influence), kinds, -1)
    centred = (families - families.mean(axis=2, keepdims=True)).reshape(len(influence), -1)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    drawn = np.random.default_rng(SEED).standard_normal((DRAWS, centred.shape[1]))
    largest = np.abs(drawn @ (centred / np.maximum(lengths, 1e-300)).T).max(axis=1)
    return np.asarray(WIDENED * float(np.quantile(largest, confidence)) * np.hypot(_standard_errors(influence, kinds), others))


def bandwidth_where(bandwidths: Array, errors: Array, level: float) -> float | None:
    """The finest bandwidth at which, and at every coarser one, errors are within a level, interpolated; None if there is none."""
    within = int(np.cumprod(errors <= level).sum())
    if within == 0:
        return None
    if within == len(bandwidths) or errors[within - 1] <= 0:
        return float(bandwidths[within - 1])
    logs, widths = np.log(errors), np.log(bandwidths)
    share = (np.log(level) - logs[within - 1]) / (logs[within] - logs[within - 1])
    return float(np.exp(widths[within - 1] + share * (widths[within] - widths[within - 1])))
