"""Which atoms serve all scales at once: centres of k-means where their cells are small, thinned rows elsewhere.

In few dimensions the centres of k-means are the better places. In many, cells are as wide as the data, and a centre lies off the
shell of its rows, where f is not: no weights make up for it at finer scales. Which of the two it is the masses of the cells tell,
whose error at every scale costs no solve: it is either well below that of as many random rows, or many times theirs. Rows thinned
near the resolution are then better than random rows at every scale, with equal weights already (Dwivedi & Mackey 2021).

The best weights at the resolution may still lose a little at finer scales, where they are not the best. On the way from them to
steady ones, which know no scale, the error at the resolution grows with the square of the step, as at any minimum, and that at
other scales falls with the step itself: a quarter of the way costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reduset._engine import to_numpy
from reduset._types import Array, Indices
from reduset.certificate.by_scale import ErrorProfile, Scales
from reduset.compression.builder import Builder
from reduset.mean import KernelMean
from reduset.select import KMeans, Selector, Thinning
from reduset.select.auto import KMEANS_ROWS
from reduset.weights.counts import counts, with_nearest_atoms

HALF = 0.5  # of ‖f‖: where random rows lose more, they are no measure of anything
ALONE = 1.01  # of the noise at the finest scale over that where bumps are said not to overlap
THINNED_AT = 1.5  # of the tolerance: what random rows lose at the resolution of thinned ones, by a glance
THINNED_ROWS = 64  # for each that stays: random ones would be an eighth of the error that as few as stay have
LEAST_SHARE = 0.5  # of the mass of an atom: groups of less may go without
FAR, TOGETHER, MOST_FAR = 0.2, 0.5, 2048  # products of bumps of norm 1: with every atom, within a group; rows that are looked at
GIVEN_WAY = (0.25, 0.5, 1.0)  # from the best weights to the steady ones
CLEARLY = 0.95  # of what random rows lose: errors at other scales are known to some per cent


@dataclass(frozen=True)
class Chosen:
    """Atoms for a search.

    Attributes
    ----------
    places : (m, d)
    rows : (m,) of the data, or None where they are new points
    counts : (m,) what the rows nearest to each weigh
    steady : (m,) weights that are as good at every scale: the counts, or of thinned rows their own
    own : (m,) the selector's own weights, where it has any
    profile : with steady ones for weights, as far as it was looked at
    """

    places: Array
    rows: Indices | None
    counts: Array
    steady: Array
    selection: str
    remark: str
    own: Array | None = None
    profile: ErrorProfile | None = None


def chosen_by(builder: Builder, selector: Selector, size: int, own: bool = True) -> Chosen:
    """The atoms of a selector, through the kernel of the builder's mean, and its own weights, which may take another pass."""
    builder.open(selector)
    places, rows = builder.choose(size)
    with builder.clock.stage("weigh"):
        masses = counts(builder.full, places)
    return Chosen(places, rows, masses, masses, str(selector), builder.remark, builder.traversal.weights() if own else None)


def chosen_by_default(builder: Builder, scales: Scales, size: int, tol: float, own: bool, at: Callable[[float], Builder]) -> Chosen:
    """Centres of k-means, or thinned rows where random ones would be better; ``at`` has builders for other bandwidths."""
    centres = chosen_by(builder, KMeans(rows=KMEANS_ROWS), size, own)
    with builder.clock.stage("certify"):
        profile = while_random_rows_tell(scales, KernelMean(centres.places, centres.steady, builder.full.kernel), 0.95, size)
    width = bandwidth_where(profile.bandwidths, profile.random_rows, THINNED_AT * tol)
    if width is None or worst(profile) <= 1:
        return replace(centres, profile=profile)
    other = at(width)
    rows = chosen_by(other, Thinning(rows=THINNED_ROWS * size), size)
    words = "thinned rows: random ones would be better than centres of k-means"
    rows = replace(rows, steady=rows.counts if rows.own is None else rows.own, remark=words)
    with other.clock.stage("select"):
        return with_groups_missed(other.full, rows)


def with_groups_missed(full: KernelMean, thinned: Chosen) -> Chosen:
    """The same with a row for each group of rows that are far from all, and together have half the mass of an atom.

    Of a group with the mass of one atom, thinning keeps one row, or none, or two. The rows that are most like others make room.
    """
    missed = _missed(full, thinned.places)
    if thinned.rows is None or not missed:
        return thinned
    alike = full.kernel.product_gram(thinned.places, thinned.places)
    np.fill_diagonal(alike, 0.0)
    rows, room = thinned.rows.copy(), np.argsort(-alike.max(axis=1), kind="stable")[: len(missed)]
    rows[room] = missed[: len(room)]
    places = np.asarray(full.atoms[rows], np.float64)
    return replace(thinned, places=places, rows=rows, counts=counts(full, places))


def _missed(full: KernelMean, places: Array) -> list[int]:
    """A row amid each group that none of the places is near: always the one with most mass about it."""
    parts: list[Indices] = []

    def note(_: int, rows: Any, __: Any, product: Array, ___: Array) -> None:
        some = to_numpy(np.flatnonzero(product < FAR))
        parts.append(some + rows.start if isinstance(rows, slice) else rows[some])

    with_nearest_atoms(full, places, None, note, there=True)
    far = np.sort(np.concatenate(parts))
    far = far[full.weights[far] > 0]
    some = far[:: max(1, -(-len(far) // MOST_FAR))]
    if not len(some):
        return []
    together = full.kernel.product_gram(full.atoms[some], full.atoms[some]) >= TOGETHER
    left = full.weights[some] * (full.weights[far].sum() / full.weights[some].sum())
    found = []
    while (about := together @ left).max() >= LEAST_SHARE * full.mass / len(places):
        found.append(int(some[np.argmax(about)]))
        left[together[np.argmax(about)]] = 0.0
    return found


def while_random_rows_tell(
    scales: Scales, small: KernelMean, confidence: float, random: int, at_least: float = np.inf
) -> ErrorProfile:
    """The profile from the coarsest scale to where so many random rows lose half, and to a bandwidth at least.

    It also ends where no bump overlaps another: nearly as many random rows as there are rows never lose half.
    """
    grid = scales.bandwidths
    if not scales.certain:
        return scales.profile(small, grid, confidence, random)
    alone = float(scales.profile(small, grid[-1:], confidence, random).noise[0]) / ALONE
    parts = [scales.profile(small, grid[:1], confidence, random)]
    for k in range(1, len(grid)):
        before, last = (float(part.random_rows[0]) for part in (parts[-2:] if k > 1 else parts * 2))
        # errors are a power of the bandwidth, or nearly so
        if grid[k - 1] <= at_least and (last**2 >= HALF * before > 0 or parts[-1].noise[0] >= alone > 0):
            break
        parts.append(scales.profile(small, grid[k : k + 1], confidence, random))
    return ErrorProfile.joined(parts)


def worst(profile: ErrorProfile) -> float:
    """The largest ratio of the errors to those of random rows, where these lose less than half."""
    tell = (profile.random_rows < HALF) & (profile.random_rows > 0)
    return float((profile.relative_errors[tell] / profile.random_rows[tell]).max(initial=0.0))


def not_worse(small: KernelMean, steady: Array, profile_of: Callable[[KernelMean], ErrorProfile]) -> tuple[Array, ErrorProfile]:
    """The weights, or as far from them towards the steady ones as random rows are not better at any scale, and their profile."""
    found = small.weights, profile_of(small)
    least = worst(found[1])
    for k, share in enumerate(GIVEN_WAY):
        if least <= (1.0 if k else CLEARLY):
            break
        weights = (1 - share) * small.weights + share * steady
        profile = profile_of(KernelMean(small.atoms, weights, small.kernel))
        if worst(profile) < least:
            found, least = (weights, profile), worst(profile)
    return found


def bandwidth_where(bandwidths: Array, errors: Array, level: float) -> float | None:
    """The finest bandwidth at which, and at every coarser one, errors are within a level, between those given; None for none."""
    within = int(np.cumprod(errors <= level).sum())
    if within == 0:
        return None
    if within == len(bandwidths) or errors[within - 1] <= 0:
        return float(bandwidths[within - 1])
    logs, widths = np.log(errors), np.log(bandwidths)
    share = (np.log(level) - logs[within - 1]) / (logs[within] - logs[within - 1])
    return float(np.exp(widths[within - 1] + share * (widths[within] - widths[within - 1])))
