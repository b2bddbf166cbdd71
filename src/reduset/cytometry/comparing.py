"""Which populations differ between groups, by a test of each with samples as the units; and where among the markers groups differ.

A population with c of the n cells of a sample enters as y = log((c + ½)/(λ + ½)), where λ = nπ is the number of cells expected at
the mean proportion π. A sample of too few cells to be informative is at 0, whatever its group. A change of the proportion by a
factor exp(θ) moves y by about bθ, b = λ/(λ + ½). The variance of y is b²(τ² + s²): the variation between samples, and the sampling
variance s² = (1 − π)/λ of n cells. Weights are 1/(τ² + s²), so that a sample of fifty cells counts for what it contributes next to
one of a million. π and τ² are estimated from all samples without their groups, from the weighted scatter about what is held fixed
(Paule & Mandel 1982). Effects are differences of y. They are logarithms of fold changes, shrunk towards 0 for fewer than one or two
expected cells.

Witness. f_i(c) = Σ_a share_ia φ(c, c_a) is the density of sample i at an atom c, at the smallest bandwidth that the atoms resolve.
The difference of the groups' means of f is the witness function, the direction in which the kernel separates the groups (Gretton et
al. 2012, Section 2.3). Each atom is tested on log f as populations are, with equally weighted samples, and q-values are over all
atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log10
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc
from scipy.stats import t as t_law

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._types import Array, SeedLike
from reduset._validate import seeded
from reduset.cytometry.design import MAX_RELABELLINGS, Design, DesignError, Relabellings, relabellings
from reduset.cytometry.fitting import Fits, fit, largest_p_values, own_p_values, pooled_p_values, q_values
from reduset.cytometry.populations import Populations
from reduset.kernels import RadialKernel
from reduset.mean import with_bandwidth

NULLS = ("auto", "permutation", "normal")
MIN_LABELLINGS = 100  # for a permutation test
LABELLINGS_PER_P_VALUE = 20  # needed to resolve the smallest p-value that can be significant
DIGITS = 12  # of logarithms, so that equal proportions stay equal in spite of rounding
ITERATIONS = 6  # of mean proportions and weights
WRITTEN_OUT = 10**7  # the largest number that is printed in full


@dataclass(frozen=True)
class Differences:
    """Which of k populations differ between G groups of samples.

    Attributes
    ----------
    names : of the populations
    design : of the comparison
    shares : (k, G) mean proportion of each population in each group
    effects : (G − 1, k) logarithms to base 2 of fold changes against the first group, adjusted for what is held fixed
    intervals : (G − 1, k, 2) confidence limits of the effects
    p_values, q_values : (k,) of the test whether any group differs; q is the smallest false discovery rate that finds it
    any_p_values : (k,) adjusted for all populations: the probability of one as extreme as this, if none differs
    found : (k,) bool, at the false discovery rate ``fdr``
    null : "permutation" or "normal", the null distribution
    labellings : the number of possible labellings of the samples
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

    def rows(self) -> list[dict[str, Any]]:
        """A row a population, the smallest p-value first: names, proportions, fold changes with their limits, p and q."""
        rows = []
        for k in np.lexsort((-np.abs(self.effects).max(axis=0), self.p_values)):
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
        lines = [f"{int(self.found.sum())} of {len(self.names)} populations differ, at a false discovery rate of {self.fdr:.0%}"]
        lines.append(f"samples    {groups}{within}; chance by {self._chance()}")
        for k in np.flatnonzero(self.found)[np.argsort(self.p_values[self.found], kind="stable")]:
            lines.append(f"found      {self.names[k]}: {self.told(int(k))}")
        return "\n  ".join(lines)

    def told(self, k: int) -> str:
        """The result for one population as text."""
        first = self.design.levels[0]
        parts = [f"{100 * self.shares[k, 0]:.3g} % in {first}"]
        for g, level in enumerate(self.design.levels[1:]):
            low, high = 2.0 ** self.intervals[g, k]
            share = f"{100 * self.shares[k, g + 1]:.3g} % in {level}"
            parts.append(f"{share}, {2.0 ** self.effects[g, k]:.2f}-fold ({low:.2f} to {high:.2f})")
        return f"{', '.join(parts)}; p = {self.p_values[k]:.2g}, q = {self.q_values[k]:.2g}"

    def _chance(self) -> str:
        if self.null == "normal":
            return f"the normal law; there are {_many(self.labellings)} ways to label the samples"
        return f"{min(self.labellings, MAX_RELABELLINGS + 1):,} of {_many(self.labellings)} ways to label the samples"


def _many(count: int) -> str:
    return f"{count:,}" if count < WRITTEN_OUT else f"about 10^{log10(count):.0f}"


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
    counts : (N, k) cells of each sample in each population
    sizes : (N,) cells of each sample
    design : of the N samples
    names : of the populations
    fdr : the false discovery rate
    confidence : of the intervals
    null : "permutation", "normal", or "auto": normal if fewer than 100 labellings are possible
    rng : None, seed or Generator
    """
    counts, sizes = np.asarray(counts)[design.rows], np.asarray(sizes)[design.rows]
    if (sizes == 0).any():
        raise DesignError(f"{int((sizes == 0).sum())} samples hold no cells; leave them out")
    if counts.ndim != 2 or not counts.shape[1]:
        raise ValueError(f"counts must have a row a sample and a column a population, at least one; got shape {counts.shape}")
    named = tuple(f"population {k + 1}" for k in range(counts.shape[1])) if names is None else tuple(names)
    if len(named) != counts.shape[1]:
        raise ValueError(f"names must be one for each of the {counts.shape[1]} columns of counts, got {len(named)}")
    fdr, confidence = _validate.confidence(fdr, "fdr"), _validate.confidence(confidence)
    _validate.one_of(null, "null", NULLS)
    labelled = relabellings(design, _validate.generator(rng))
    judged = null if null != "auto" else "permutation" if labelled.count >= MIN_LABELLINGS else "normal"
    if judged == "normal":  # needs the true labels only
        labelled = replace(labelled, codes=labelled.codes[:1])
    with single_threaded_blas():
        seen = log_shares(counts, sizes, design)
        fits = fit(seen.values, seen.weights, design, labelled, seen.known, seen.chance)
    groups = len(design.levels) - 1
    p = chances(fits, labelled, judged, fdr, groups)
    q = q_values(p)
    reach = t_law.ppf((1 + confidence) / 2, fits.freedom) * fits.errors
    effects = fits.effects / np.log(2)
    return Differences(
        names=named,
        design=design,
        shares=np.stack([(counts / sizes[:, None])[design.codes == g].mean(axis=0) for g in range(len(design.levels))], axis=1),
        effects=effects,
        intervals=np.stack([effects - reach / np.log(2), effects + reach / np.log(2)], axis=-1),
        p_values=p,
        q_values=q,
        any_p_values=largest_p_values(on_one_scale(fits, groups)) if judged == "permutation" else np.minimum(p * len(p), 1.0),
        found=q <= fdr,
        fdr=fdr,
        confidence=confidence,
        null=judged,
        labellings=labelled.count,
    )


class LogShares(NamedTuple):
    """The values that are compared.

    Attributes
    ----------
    values : (n, k) logarithms of proportions over mean proportions
    weights : (n, k) of mean 1 for each population
    known : (k,) the effective proportion of the degrees of freedom; 1 if all samples are as informative as the weighted ones
    chance : (n, k) sampling variance of the values
    """

    values: Array
    weights: Array
    known: Array
    chance: Array


def log_shares(counts: NDArray[Any], sizes: NDArray[np.integer], design: Design) -> LogShares:
    """The values to compare, from (n, k) numbers of cells, which need not be integers."""
    n = sizes[:, None].astype(np.float64)
    shares = counts / n
    weights = np.ones_like(shares)
    for _ in range(ITERATIONS):
        usual = np.maximum((weights * shares).sum(axis=0) / weights.sum(axis=0), 0.5 / n.sum())
        expected = n * usual
        damped, chance = expected / (expected + 0.5), (1 - usual) / expected
        values = np.where(counts.any(axis=0), np.round(np.log((counts + 0.5) / (expected + 0.5)), DIGITS), 0.0)
        scatter, free = _scatter(values, weights, design.nuisance)
        looked = free * weights * damped**2
        between = np.maximum((scatter - (looked * chance).sum(axis=0)) / looked.sum(axis=0), 0.0)
        weights = 1 / np.maximum(between + chance, 10.0**-DIGITS)
        weights /= weights.mean(axis=0)
    seen, usually = (free * damped**2).sum(axis=0) / free.sum(axis=0), (weights * damped**2).mean(axis=0)
    return LogShares(values, weights, np.minimum(seen / usually, 1.0), damped**2 * chance)


def _scatter(values: Array, weights: Array, nuisance: Array) -> tuple[Array, Array]:
    """(k,) weighted squares about what is held fixed, yᵀPy, and (n, k) the leverage that each sample keeps, Pᵢᵢ/wᵢ."""
    root = np.sqrt(weights).T
    q, _ = np.linalg.qr(root[:, :, None] * nuisance)
    full = root * values.T
    off = full - np.einsum("kiq,kq->ki", q, np.einsum("kiq,ki->kq", q, full))
    return np.square(off).sum(axis=1), 1 - np.square(q).sum(axis=2).T


def chances(fits: Fits, labelled: Relabellings, null: str, rate: float, p: int) -> Array:
    """(k,) p-values: normal, or from each population's own permutations if they are enough for the rate, else pooled."""
    if null == "normal":
        return np.asarray(fdtrc(p, fits.freedom, fits.statistics[0]))
    many = fits.statistics.shape[1] * LABELLINGS_PER_P_VALUE / rate
    return (
        own_p_values(fits.statistics) if min(labelled.count, MAX_RELABELLINGS) >= many else pooled_p_values(on_one_scale(fits, p))
    )


def on_one_scale(fits: Fits, p: int) -> Array:
    """(B, k) comparable statistics: F if all have the same degrees of freedom, else −log p of the normal distribution."""
    if np.ptp(fits.freedom) == 0:
        return fits.statistics
    with np.errstate(divide="ignore"):
        return -np.log(fdtrc(p, fits.freedom, fits.statistics))


@dataclass(frozen=True)
class Witness:
    """Where among the markers groups differ.

    Attributes
    ----------
    values : (G − 1, m) the witness function of each group against the first, relative to the largest density of any group
    fold_changes : (G − 1, m) logarithms to base 2 of the ratio of densities
    q_values : (m,) the smallest false discovery rate at which an atom is found
    found : (m,) bool
    bandwidth : of the densities
    """

    values: Array = field(repr=False)
    fold_changes: Array = field(repr=False)
    q_values: Array = field(repr=False)
    found: NDArray[np.bool_] = field(repr=False)
    bandwidth: float


def witness_of(populations: Populations, design: Design, fdr: float, rng: np.random.Generator) -> Witness:
    """The witness function of the groups of a design, tested at every atom."""
    mean = populations.sketch.mean
    narrow = with_bandwidth(mean, populations.sketch.resolution or cast(RadialKernel, mean.kernel).width)
    near = narrow.kernel.product_gram(narrow.atoms, narrow.atoms)
    shares = populations.atom_counts / populations.sizes[:, None]
    labelled = relabellings(design, rng)
    with single_threaded_blas():
        sizes, heights = populations.sizes[design.rows], (shares @ near)[design.rows]
        seen = log_shares(sizes[:, None] * heights, sizes, design)
        fits = fit(seen.values, None, design, labelled, seen.known)
    null = "permutation" if labelled.count >= MIN_LABELLINGS else "normal"
    q = q_values(chances(fits, labelled, null, fdr, len(design.levels) - 1))
    groups = np.stack([heights[design.codes == g].mean(axis=0) for g in range(len(design.levels))])
    most = float(groups.max())
    return Witness(
        values=(groups[1:] - groups[0]) / most,
        fold_changes=fits.effects / np.log(2),
        q_values=q,
        found=q <= fdr,
        bandwidth=cast(RadialKernel, narrow.kernel).width,
    )
