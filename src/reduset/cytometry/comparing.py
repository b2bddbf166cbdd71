"""Which populations differ between groups: a test of each, with samples as the units, and how much they differ.

The share of a population in a sample of n cells, c of them its own, enters as y = log((c + ½)/(λ + ½)) beside the λ = nπ cells that
it has at the mean share π: a sample of too few cells to know is at 0, whatever group it is in. A change of the share
by θ moves y by about bθ, b = λ/(λ + ½); its variance is b²(τ² + s²), what samples differ by and what n cells leave to chance,
s² = (1 − π)/λ. Weights are 1/(τ² + s²), so that a sample of fifty cells counts for what it knows beside one of a million. π and τ²
come from all samples, the weighted scatter about what is held fixed (Paule & Mandel 1982), without a look at the groups. Effects
are differences of y: logarithms of fold changes, drawn towards 0 where fewer than a cell or two are expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log10
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc
from scipy.stats import t as t_law

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._types import Array, SeedLike
from reduset._validate.seeds import seeded
from reduset.cytometry.design import Design, DesignError
from reduset.cytometry.discovery import found_at, largest_p_values, own_p_values, pooled_p_values, q_values
from reduset.cytometry.fitting import Fits, fit
from reduset.cytometry.relabelling import MOST, Relabellings, relabellings

NULLS = ("auto", "permutation", "normal")
ENOUGH = 100  # labellings from which chance is judged by them
FINE = 20  # labellings for each p-value that may be called found
DIGITS = 12  # shares that are the same are so, beyond rounding
ROUNDS = 6  # of mean shares and weights, each from the other
TOO_MANY = 10**7  # to be written out


@dataclass(frozen=True)
class Differences:
    """Which of k populations differ between G groups of samples.

    Attributes
    ----------
    names : of the populations
    design : what was compared
    shares : (k, G) the mean share of each population in each group
    effects : (G − 1, k) logarithms to base 2 of fold changes against the first group, adjusted for what is held fixed
    intervals : (G − 1, k, 2) between which limits each effect lies
    p_values, q_values : (k,) of the test whether any group differs; q is the false discovery rate at which it is found
    any_p_values : (k,) the chance that any population is as far off as this one, if none differs
    found : (k,) bool, at the false discovery rate ``fdr``
    null : "permutation" or "normal", what chance was judged by
    labellings : in how many ways the samples could be labelled
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
        """A row a population, the surest first: names, shares, fold changes with their limits, p and q."""
        told = []
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
            told.append(row)
        return told

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
        """What is known of one population, in words."""
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
        return f"{min(self.labellings, MOST + 1):,} of {_many(self.labellings)} ways to label the samples"


def _many(count: int) -> str:
    return f"{count:,}" if count < TOO_MANY else f"about 10^{log10(count):.0f}"


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
    counts : (N, k) how many cells of each sample belong to each population
    sizes : (N,) how many cells each sample has
    design : of the N samples
    names : of the populations
    fdr : the false discovery rate
    confidence : of the intervals
    null : "permutation", "normal", or "auto": the normal law where fewer than 100 labellings are possible
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
    judged = null if null != "auto" else "permutation" if labelled.count >= ENOUGH else "normal"
    if judged == "normal":  # the true labels will do
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
        found=found_at(q, fdr),
        fdr=fdr,
        confidence=confidence,
        null=judged,
        labellings=labelled.count,
    )


class LogShares(NamedTuple):
    """(n, k) logarithms of shares over mean shares, their weights, 1 on average for each population, what share of the samples'
    freedom is known: (k,), 1 where all samples know as much as those that count; and the variance that counting cells leaves to
    each logarithm, (n, k)."""

    values: Array
    weights: Array
    known: Array
    chance: Array


def log_shares(counts: NDArray[Any], sizes: NDArray[np.integer], design: Design) -> LogShares:
    """What is compared of each population in each sample, from (n, k) numbers of cells, which need not be whole."""
    n = sizes[:, None].astype(np.float64)
    shares = counts / n
    weights = np.ones_like(shares)
    for _ in range(ROUNDS):
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
    """(k,) the weighted squares about what is held fixed, yᵀPy, and (n, k) of each sample Pᵢᵢ/wᵢ, what is left of it there."""
    root = np.sqrt(weights).T
    q, _ = np.linalg.qr(root[:, :, None] * nuisance)
    full = root * values.T
    off = full - np.einsum("kiq,kq->ki", q, np.einsum("kiq,ki->kq", q, full))
    return np.square(off).sum(axis=1), 1 - np.square(q).sum(axis=2).T


def chances(fits: Fits, labelled: Relabellings, null: str, rate: float, p: int) -> Array:
    """(k,) p-values: by the normal law, each by its own labellings where these are many enough for the rate, else pooled."""
    if null == "normal":
        return np.asarray(fdtrc(p, fits.freedom, fits.statistics[0]))
    many = fits.statistics.shape[1] * FINE / rate
    return own_p_values(fits.statistics) if min(labelled.count, MOST) >= many else pooled_p_values(on_one_scale(fits, p))


def on_one_scale(fits: Fits, p: int) -> Array:
    """(B, k) statistics that can be held against each other: F of the same freedom, else how improbable the normal law has them."""
    if np.ptp(fits.freedom) == 0:
        return fits.statistics
    with np.errstate(divide="ignore"):
        return -np.log(fdtrc(p, fits.freedom, fits.statistics))
