"""Tests of each population for a difference between groups, with samples as the units, and the same test at every atom.

Let a population have c of the n cells of a sample, and λ = nπ expected cells at the mean proportion π. The compared value is
y = log((c + ½)/(λ + ½)). It is close to 0 for a sample of too few cells. A change of the proportion by a factor exp(θ) moves y by
about bθ, b = λ/(λ + ½). The variance of y is b²(τ² + s²), the variation between samples and the sampling variance s² = (1 − π)/λ
of n cells. Weights are 1/(τ² + s²), so that a sample of fifty cells has less weight than one of a million. The mean proportion π
and τ² are estimated from all samples without their groups, from the weighted scatter about the nuisance (Paule & Mandel 1982).
Effects are differences of y. They are logarithms of fold changes, shrunk towards 0 for fewer than one or two expected cells.

F statistics. With weights w, nuisance Z, indicators X of the groups, and the projection M = I − P off √w·Z,

    explained = (Xᵀu)ᵀ (XᵀGX)⁻¹ (Xᵀu),     u = √w·M√w·y,     G = √w·M·√w,
    F = (explained / p) / max((yᵀGy − explained) / d, v),     p = G − 1 groups, d degrees of freedom.

Another labelling is another X, so B of them take one product with u and one with G. The variance is at least v, the sampling
variance of the cell counts and mean of w·s². For example, three samples without a cell and three with one still have a variance.
Variances are not shared between populations. They vary far more than the scaled inverse χ² distribution of moderated statistics
(Smyth 2004). Shrinkage to one variance would hide changes of populations with a small variance. All labellings are treated
equally, so an exact test stays exact. O(B·n²) for each population, O(B·n) for populations with the same weights.

p-values. The p-value of a population is the proportion of labellings with a statistic at least as large. A small number of
labellings cannot give p-values small enough for many populations. F statistics of all populations have nearly one distribution
under the null hypothesis, so they are pooled over all labellings. The q-values follow Benjamini & Hochberg (1995).

Witness. f_i(c) = Σ_a share_ia φ(c, c_a) is the density of sample i at an atom c, at the smallest bandwidth that the atoms resolve.
The difference of the groups' means of f is the witness function. It is the direction in which the kernel separates the groups
(Gretton et al. 2012, Section 2.3). Fold changes are those of log f, with equally weighted samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log10
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc
from scipy.stats import false_discovery_control
from scipy.stats import t as t_distribution

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._types import Array, SeedLike
from reduset._validate import seeded
from reduset.cytometry.design import MAX_RELABELLINGS, Design, DesignError, Relabellings, relabellings
from reduset.cytometry.populations import Populations
from reduset.kernels import RadialKernel
from reduset.mean import with_bandwidth

NULLS = ("auto", "permutation", "normal")
MIN_LABELLINGS = 100  # for a permutation test
LABELLINGS_PER_P_VALUE = 20  # to resolve the smallest p-value that can be significant
DIGITS = 12  # of logarithms, so that equal proportions stay equal in spite of rounding
ITERATIONS = 6  # of mean proportions and weights
MAX_PRINTED_COUNT = 10**7  # larger numbers are printed as powers of ten
RIDGE = 1e-12  # relative to the trace, for labellings that Z nearly determines
COLUMNS = 64  # populations at a time
VALUE_ROUNDING = 1e-12
RESIDUAL_ROUNDING = 1e-10  # of the energy
STATISTIC_ROUNDING = 1e-9  # equivalent labellings differ by rounding


@dataclass(frozen=True)
class Differences:
    """The differences of k populations between G groups of samples.

    Attributes
    ----------
    names : Names of the populations.
    design : Design of the comparison.
    shares : Mean proportion of each population in each group, (k, G).
    effects : Logarithms to base 2 of fold changes against the first group, adjusted for covariates, blocks and batches, (G − 1, k).
    intervals : Confidence limits of the effects, (G − 1, k, 2).
    p_values : Tests of the hypothesis that no group differs, (k,).
    q_values : Smallest false discovery rate at which each population is found, (k,).
    any_p_values : Family-wise p-values, (k,), the probability that any of the populations is as extreme if none differs.
    found : Whether a population is found at the false discovery rate ``fdr``, (k,).
    null : Null distribution, "permutation" or "normal".
    labellings : Number of possible labellings of the samples.
    """

    names: tuple[str, ...]
    design: Design
    shares: Array = field(repr=False)
    effects: Array = field(repr=False)
    intervals: Array = field(repr=False)
    p_values: Array = field(repr=False)
    q_values: Array = field(repr=False)
    any_p_values: Array = field(repr=False)
    found: NDArray[np.bool_] = field(repr=False)
    fdr: float
    confidence: float
    null: str
    labellings: int

    def order(self) -> NDArray[np.int64]:
        """(k,) the populations by p-value, then by decreasing effect."""
        return np.lexsort((-np.abs(self.effects).max(axis=0), self.p_values))

    def rows(self) -> list[dict[str, Any]]:
        """One row per population, the smallest p-value first, with proportions, fold changes and their limits, p and q."""
        rows = []
        for k in self.order():
            row: dict[str, Any] = {"population": self.names[k]}
            row |= {f"share {level}": float(share) for level, share in zip(self.design.levels, self.shares[k], strict=True)}
            for g, level in enumerate(self.design.levels[1:]):
                low, high = self.intervals[g, k]
                row |= {
                    f"log2 fold change {level}": float(self.effects[g, k]),
                    f"low {level}": float(low),
                    f"high {level}": float(high),
                }
            row |= {"p": float(self.p_values[k]), "q": float(self.q_values[k]), "found": bool(self.found[k])}
            rows.append(row)
        return rows

    def __str__(self) -> str:
        levels, counts = self.design.levels, self.design.counts
        groups = " against ".join(f"{count} {level}" for level, count in zip(levels, counts, strict=True))
        within = ", within blocks" if self.design.is_blocked else ""
        count = self.labellings
        possible = f"{count:,}" if count < MAX_PRINTED_COUNT else f"about 10^{log10(count):.0f}"
        null = f"normal distribution; {possible} labellings are possible"
        if self.null == "permutation":
            null = f"{min(count, MAX_RELABELLINGS + 1):,} of {possible} labellings"
        lines = [f"{int(self.found.sum())} of {len(self.names)} populations differ, at a false discovery rate of {self.fdr:.0%}"]
        lines.append(f"samples    {groups}{within}")
        lines.append(f"null       {null}")
        for k in np.flatnonzero(self.found)[np.argsort(self.p_values[self.found], kind="stable")]:
            lines.append(f"found      {self.names[k]}: {self.format_population(int(k))}")
        return "\n  ".join(lines)

    def format_population(self, k: int) -> str:
        """The result for one population as text."""
        first = self.design.levels[0]
        parts = [f"{100 * self.shares[k, 0]:.3g} % in {first}"]
        for g, level in enumerate(self.design.levels[1:]):
            low, high = 2.0 ** self.intervals[g, k]
            share = f"{100 * self.shares[k, g + 1]:.3g} % in {level}"
            interval = f"{self.confidence:.0%} CI {low:.2f}-{high:.2f}"
            parts.append(f"{share}, {2.0 ** self.effects[g, k]:.2f}-fold ({interval})")
        q = "" if self.q_values[k] == self.any_p_values[k] == self.p_values[k] else f", q = {self.q_values[k]:.2g}"
        return f"{', '.join(parts)}; p = {self.p_values[k]:.2g}{q}"


@seeded
def compare(
    counts: NDArray[np.integer],
    sizes: NDArray[np.integer],
    design: Design,
    names: Sequence[str] | None = None,
    *,
    fdr: float = 0.05,
    confidence: float = 0.95,
    null: str = "auto",
    rng: SeedLike = None,
) -> Differences:
    """Test every population for a difference between the groups of a design.

    Parameters
    ----------
    counts : Number of cells of each sample in each population, (N, k).
    sizes : Number of cells of each sample, (N,).
    design : Design of the N samples.
    names : Names of the populations.
    fdr : The false discovery rate.
    confidence : Confidence of the intervals.
    null : "permutation", "normal", or "auto": normal if fewer than 100 labellings are possible.
    rng : None, seed or Generator.
    """
    counts, sizes = np.asarray(counts)[design.rows], np.asarray(sizes)[design.rows]
    if (sizes == 0).any():
        raise DesignError(f"every sample that is compared must have cells, {int((sizes == 0).sum())} have none; omit them")
    if counts.ndim != 2 or not counts.shape[1]:
        raise ValueError(f"counts must have a row per sample and at least one column per population; got shape {counts.shape}")
    names = tuple(f"population {k + 1}" for k in range(counts.shape[1])) if names is None else tuple(names)
    if len(names) != counts.shape[1]:
        raise ValueError(f"names must be one for each of the {counts.shape[1]} columns of counts, got {len(names)}")
    fdr, confidence = _validate.confidence(fdr, "fdr"), _validate.confidence(confidence)
    _validate.one_of(null, "null", NULLS)
    labelled = relabellings(design, _validate.generator(rng))
    if null == "auto":
        null = "permutation" if labelled.count >= MIN_LABELLINGS else "normal"
    if null == "normal":  # needs the true labels only
        labelled = replace(labelled, codes=labelled.codes[:1])
    with single_threaded_blas():
        logs = log_shares(counts, sizes, design)
        fits = fit(logs.values, logs.weights, design, labelled, logs.known, logs.sampling_variance)
    groups = len(design.levels) - 1
    p = p_values(fits, labelled, null, fdr, groups)
    q = np.asarray(false_discovery_control(p))
    any_p = np.minimum(p * len(p), 1.0)
    if null == "permutation":  # the proportion of labellings in which any statistic is at least as large (Westfall 1993)
        comparable = on_one_scale(fits, groups)
        any_p = proportion_beyond(comparable.max(axis=1), comparable[0])
    effects = fits.effects / np.log(2)
    reach = t_distribution.ppf((1 + confidence) / 2, fits.freedom) * fits.errors / np.log(2)
    shares = counts / sizes[:, None]
    return Differences(
        names=names,
        design=design,
        shares=np.stack([shares[design.codes == g].mean(axis=0) for g in range(len(design.levels))], axis=1),
        effects=effects,
        intervals=np.stack([effects - reach, effects + reach], axis=-1),
        p_values=p,
        q_values=q,
        any_p_values=any_p,
        found=q <= fdr,
        fdr=fdr,
        confidence=confidence,
        null=null,
        labellings=labelled.count,
    )


class LogShares(NamedTuple):
    """The values that are compared.

    Attributes
    ----------
    values : Logarithms of proportions over mean proportions, (n, k).
    weights : Weights with mean 1 for each population, (n, k).
    known : Effective proportion of the degrees of freedom, (k,); 1 if all samples are as informative as the weighted ones.
    sampling_variance : Sampling variance of the values, (n, k).
    """

    values: Array
    weights: Array
    known: Array
    sampling_variance: Array


def log_shares(counts: NDArray[Any], sizes: NDArray[np.integer], design: Design) -> LogShares:
    """The values to compare, from (n, k) numbers of cells, which need not be integers."""
    n = sizes[:, None].astype(np.float64)
    shares = counts / n
    weights = np.ones_like(shares)
    for _ in range(ITERATIONS):
        mean = np.maximum((weights * shares).sum(axis=0) / weights.sum(axis=0), 0.5 / n.sum())
        expected = n * mean
        damping, sampling_variance = expected / (expected + 0.5), (1 - mean) / expected
        values = np.where(counts.any(axis=0), np.round(np.log((counts + 0.5) / (expected + 0.5)), DIGITS), 0.0)
        squares, free = scatter(values, weights, design.nuisance)
        information = free * weights * damping**2
        between = np.maximum((squares - (information * sampling_variance).sum(axis=0)) / information.sum(axis=0), 0.0)
        weights = 1 / np.maximum(between + sampling_variance, 10.0**-DIGITS)
        weights /= weights.mean(axis=0)
    unweighted, weighted = (free * damping**2).sum(axis=0) / free.sum(axis=0), (weights * damping**2).mean(axis=0)
    return LogShares(values, weights, np.minimum(unweighted / weighted, 1.0), damping**2 * sampling_variance)


def scatter(values: Array, weights: Array, nuisance: Array) -> tuple[Array, Array]:
    """(k,) weighted squares about the nuisance, yᵀPy, and (n, k) the leverage that each sample keeps, Pᵢᵢ/wᵢ."""
    root = np.sqrt(weights).T
    q, _ = np.linalg.qr(root[:, :, None] * nuisance)
    full = root * values.T
    off = full - np.einsum("kiq,kq->ki", q, np.einsum("kiq,ki->kq", q, full))
    return np.square(off).sum(axis=1), 1 - np.square(q).sum(axis=2).T


# -- F statistics -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fits:
    """Statistics of k populations.

    Attributes
    ----------
    statistics : F statistics under each labelling, (B, k), the true labelling first.
    effects : Differences β to the first group with the true labels, (G − 1, k).
    errors : Standard errors of the effects, (G − 1, k).
    freedom : Degrees of freedom of the variances, (k,).
    """

    statistics: Array
    effects: Array
    errors: Array
    freedom: Array


def fit(
    values: Array,
    weights: Array | None,
    design: Design,
    labelled: Relabellings,
    known: Array | float = 1.0,
    sampling_variance: Array | float = 0.0,
) -> Fits:
    """Fit the model to every column of values, (n, k), with weights of the same shape or none.

    ``known`` is the effective proportion of the degrees of freedom of a column. It is below 1 if some samples have little
    information. ``sampling_variance`` is the sampling variance of each value, (n, k).
    """
    X, k = labelled.indicators(len(design.levels)), values.shape[1]
    p, B = len(X), X.shape[1]
    statistics, variance = np.empty((B, k)), np.empty(k)
    effects, spreads = np.empty((p, k)), np.empty((p, k))
    known = np.broadcast_to(known, k)
    freedom = known * design.freedom
    least = (
        np.broadcast_to(sampling_variance if weights is None else weights * sampling_variance, values.shape).mean(axis=0) / known
    )
    shared = GroupProjection.of(np.ones(len(values)), design, X) if weights is None else None
    step = COLUMNS if weights is None else 1  # columns of the same weights
    for first in range(0, k, step):
        columns = slice(first, first + step)
        projection = GroupProjection.of(weights[:, first], design, X) if weights is not None else cast(GroupProjection, shared)
        explained, energy, effects[:, columns] = projection.explained(values[:, columns], X)
        spreads[:, columns] = projection.spreads[:, None]
        residual = energy - explained
        residual[residual < RESIDUAL_ROUNDING * energy] = 0.0
        within = np.maximum(residual / freedom[columns], least[columns])
        variance[columns] = within[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            statistics[:, columns] = np.where(explained > 0, explained / p / within, 0.0)
    return Fits(statistics, effects, spreads * np.sqrt(variance), freedom)


class GroupProjection(NamedTuple):
    """Arrays that depend only on the weights: √w, M, XᵀGX, whether Z determines a labelling, and √ of (XᵀGX)⁻¹'s diagonal."""

    root: Array
    off: Array
    square: Array
    fixed: Array
    spreads: Array

    @classmethod
    def of(cls, weights: Array, design: Design, X: Array) -> GroupProjection:
        root = np.sqrt(weights)
        q, _ = np.linalg.qr(design.nuisance * root[:, None])
        off = np.eye(len(root)) - q @ q.T
        G = off * np.outer(root, root)
        p, B = len(X), X.shape[1]
        square = np.empty((B, p, p))
        for a in range(p):
            product = X[a] @ G
            for b in range(a, p):
                square[:, a, b] = square[:, b, a] = np.einsum("bn,bn->b", product, X[b])
        total = float(np.sum(weights))
        fixed = np.trace(square, axis1=1, axis2=2) < 1e-6 * total / len(root)
        square += np.eye(p) * (RIDGE * total)
        return cls(root, off, square, fixed, np.sqrt(np.linalg.inv(square[0]).diagonal()))

    def explained(self, values: Array, X: Array) -> tuple[Array, Array, Array]:
        """(B, k) explained, (k,) yᵀGy, and (p, k) effects of the true labels."""
        full = values * self.root[:, None]
        scaled = self.off @ full
        energy = np.einsum("nk,nk->k", scaled, scaled)
        constant = energy <= VALUE_ROUNDING**2 * np.einsum("nk,nk->k", full, full)
        scaled[:, constant], energy[constant] = 0.0, 0.0
        along = np.einsum("pbn,nk->bpk", X, scaled * self.root[:, None], optimize=True)
        solved = np.linalg.solve(self.square, along)
        explained = np.einsum("bpk,bpk->bk", along, solved)
        explained[self.fixed] = 0.0
        return explained, energy, solved[0]


# -- p-values -----------------------------------------------------------------------------------------------------------------


def p_values(fits: Fits, labelled: Relabellings, null: str, rate: float, p: int) -> Array:
    """(k,) p-values, normal or from permutations. Permutations are pooled over populations if too few are possible for the rate."""
    if null == "normal":
        return np.asarray(fdtrc(p, fits.freedom, fits.statistics[0]))
    needed = fits.statistics.shape[1] * LABELLINGS_PER_P_VALUE / rate
    if min(labelled.count, MAX_RELABELLINGS) >= needed:
        return np.asarray(np.mean(fits.statistics >= fits.statistics[0] * (1 - STATISTIC_ROUNDING), axis=0))
    comparable = on_one_scale(fits, p)
    return proportion_beyond(comparable, comparable[0])


def on_one_scale(fits: Fits, p: int) -> Array:
    """(B, k) comparable statistics: F if all have the same degrees of freedom, otherwise −log p of the normal distribution."""
    if np.ptp(fits.freedom) == 0:
        return fits.statistics
    with np.errstate(divide="ignore"):
        return -np.log(fdtrc(p, fits.freedom, fits.statistics))


def proportion_beyond(statistics: Array, values: Array) -> Array:
    """The proportion of statistics that are at least as large as each value."""
    below = np.searchsorted(np.sort(statistics, axis=None), values * (1 - STATISTIC_ROUNDING), side="left")
    return np.asarray((statistics.size - below) / statistics.size)


# -- the witness --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Witness:
    """The differences of the groups' densities at every atom.

    Attributes
    ----------
    values : Witness function of each group against the first, relative to the largest density of any group, (G − 1, m).
    fold_changes : Logarithms to base 2 of the ratio of densities, (G − 1, m).
    bandwidth : Bandwidth of the densities.
    """

    values: Array = field(repr=False)
    fold_changes: Array = field(repr=False)
    bandwidth: float


def witness_of(populations: Populations, design: Design) -> Witness:
    """The witness function of the groups of a design at every atom."""
    mean = populations.sketch.mean
    narrow = with_bandwidth(mean, populations.sketch.resolution or cast(RadialKernel, mean.kernel).width)
    gram = narrow.kernel.product_gram(narrow.atoms, narrow.atoms)
    labelled = Relabellings(design.codes[None].astype(np.int16), 1)
    with single_threaded_blas():
        sizes, heights = populations.sizes[design.rows], (populations.atom_shares @ gram)[design.rows]
        logs = log_shares(sizes[:, None] * heights, sizes, design)
        fits = fit(logs.values, None, design, labelled, logs.known)
    groups = np.stack([heights[design.codes == g].mean(axis=0) for g in range(len(design.levels))])
    return Witness(
        values=(groups[1:] - groups[0]) / float(groups.max()),
        fold_changes=fits.effects / np.log(2),
        bandwidth=cast(RadialKernel, narrow.kernel).width,
    )
