"""A log density that is right in the tails: merged rows in the leaves of a tree, to a relative error that is measured.

    rows → merged in cells of a tenth of a bandwidth → leaves → near leaves row by row, far leaves by their moments

An L2 error says little about low densities: 127 atoms within 3 % of f in L2 have a log density that is wrong by up to 22 at an
outlier. Here every row of low density is an atom (`merged_rows`), and the sum at a query has a bounded relative error
(`LeafSums`). The bound ρ is halved until held-out rows meet the tolerance with room to spare: the density of the other rows
is built with it, and compared with the exact one (`log_error`). Fitting costs O(n·(d + log n)) and one exact sum over n rows for
each held-out row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from reduset._engine import CITYBLOCK, SQUARED, LeafSums
from reduset._messages import NotReachedWarning, warn
from reduset._types import Array, Floats
from reduset.density.log_error import EXACT, LogError, held_out_split
from reduset.density.merged_rows import merge_rows
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean

EXACT_UP_TO = 2048  # rows, or atoms, which are quicker summed than sorted
MOST_COLUMNS = 16  # beyond, the boxes of a tree say nothing
MOST_ATOMS = 1 << 20
LARGEST_SIDE = 0.25  # of a cell, in bandwidths
FEW_COLUMNS = 3  # in which a small ρ costs a third more time at most, and keeps near ties of outliers in their order
LARGEST_RATIO, LARGEST_RATIO_OF_FEW_COLUMNS = 2.0, 0.25  # ρ, which is halved until it meets the tolerance
LOWEST = -2e4  # of a logarithm: below, single precision rounds exponents by more than 0.005
LONGEST_LEAF, SHORTEST_LEAF, LEAVES = 128, 16, 256  # atoms of a leaf, and how many leaves there are at least
ROOM = 0.5  # of the tolerance, for rows that come later


@dataclass(frozen=True)
class LeafDensity:
    """A mean whose log density is evaluated by leaves; by all its atoms where these are few or their columns many."""

    mean: KernelMean
    sums: LeafSums | None
    ratio: float

    @classmethod
    def of(cls, mean: KernelMean, kernel: RadialKernel, ratio: float, length: int | None = None) -> LeafDensity:
        """Sort the atoms into leaves of at most ``length``, which by default depends on their number."""
        shape = kernel.bump(mean.dimension)
        by_leaves = mean.size > EXACT_UP_TO and mean.dimension <= MOST_COLUMNS and shape.profile.metric in (SQUARED, CITYBLOCK)
        if not by_leaves:
            return cls(mean, None, ratio)
        frame, length = kernel.frame(mean.atoms, shape), length or _leaf_length(mean.size)
        return cls(mean, LeafSums.of(mean.atoms, mean.weights, frame, shape.profile, length), ratio)

    def log_density(self, Q: Floats, ratio: float | None = None) -> Array:
        """At each row of Q, (q,)."""
        if self.sums is None:
            return self.mean.log_density(Q)
        found = self.sums.logs(Q, self.ratio if ratio is None else ratio)
        far = np.flatnonzero(~(found > LOWEST))  # NaN where squares overflow
        found += self.mean.kernel.density_log_peak(self.mean.dimension)
        if len(far):
            found[far] = self.mean.log_density(Q[far], "double")
        return found


def fit_leaves(
    full: KernelMean, kernel: RadialKernel, log_tol: float, max_size: int | None, rng: np.random.Generator
) -> tuple[LeafDensity, LogError]:
    """The density of all rows, and its error at held-out rows.

    ``kernel`` is that of ``full``. Warns if ``log_tol`` would take more than ``max_size`` atoms.
    """
    most = MOST_ATOMS if max_size is None else max_size
    side, mean = _small_enough(full, kernel, log_tol, most)
    if side == 0 and (mean.size <= EXACT_UP_TO or mean.dimension > MOST_COLUMNS):
        return LeafDensity(mean, None, 0.0), EXACT
    others, queries = held_out_split(full, rng)
    ratio, error = _calibrated(mean.size, others, queries, kernel, side, log_tol)
    if error.q99 > log_tol and side <= _first_side(full, log_tol):  # dense cells far from a query: only coincident rows are one
        whole = merge_rows(full, kernel, 0.0, most)
        if whole is not None:
            mean, (ratio, error) = whole, _calibrated(whole.size, others, queries, kernel, 0.0, log_tol)
    if error.q99 > log_tol:
        warn(
            f"log_tol={log_tol:g} takes more than {most:,} atoms for {full.size:,} points: the error of the log density exceeds "
            f"{error.q99:.2g} at 1 % of held-out rows. Raise max_size, log_tol or the bandwidth",
            NotReachedWarning,
        )
    return LeafDensity.of(mean, kernel, ratio), error


def _calibrated(
    size: int, others: KernelMean, queries: Floats, kernel: RadialKernel, side: float, log_tol: float
) -> tuple[float, LogError]:
    """The largest ρ whose error at held-out rows is within the tolerance, or whose bound is; and that error.

    ``size`` is the number of atoms with the held-out rows. Leaves are shorter without them, so that there are as many.
    """
    ratio = LARGEST_RATIO_OF_FEW_COLUMNS if others.dimension <= FEW_COLUMNS else LARGEST_RATIO
    if len(queries) == 0:
        return ratio, LogError.of(np.empty(0), np.empty(0))
    exact = others.log_density(queries)
    merged = cast(KernelMean, merge_rows(others, kernel, side))
    trial = LeafDensity.of(merged, kernel, ratio, -(-_leaf_length(size) * merged.size // size))
    while True:
        error = LogError.of(trial.log_density(queries, ratio), exact)
        if trial.sums is None or error.q99 <= ROOM * log_tol or np.log1p(ratio) <= ROOM * log_tol:
            return ratio, error
        ratio /= 2


def _leaf_length(size: int) -> int:
    """The most atoms of a leaf."""
    return int(np.clip(size // LEAVES, SHORTEST_LEAF, LONGEST_LEAF))


def _first_side(full: KernelMean, log_tol: float) -> float:
    """The side of cells that the tolerance sets, in bandwidths; few rows are merged only where they coincide."""
    return 0.0 if np.count_nonzero(full.weights) <= EXACT_UP_TO else min(log_tol, LARGEST_SIDE)


def _small_enough(full: KernelMean, kernel: RadialKernel, log_tol: float, most: int) -> tuple[float, KernelMean]:
    """The side of cells, in bandwidths, and the merged mean: cells grow until there are few enough."""
    side = _first_side(full, log_tol)
    while (mean := merge_rows(full, kernel, side, most)) is None:
        side = 2 * side if side else min(log_tol, LARGEST_SIDE)
    return side, mean
