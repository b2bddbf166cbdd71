"""Atoms that are good at all scales: centres of k-means if their clusters are small, thinned rows elsewhere.

In few dimensions the centres of k-means are the better points. In many, clusters are as wide as the data, and a centre lies off the
shell of its rows, where f is not: no weights make up for it at finer scales. Centres weighted by the mass of their clusters show
which of the two it is, without a solve: their error is either well below that of as many random rows, or many times theirs. Rows
thinned near the resolution are then better than random rows at every scale, with equal weights already (Dwivedi & Mackey 2021).

The best weights at the resolution may have a larger error at finer scales, where they are not the best. On the way from them to
scale-free weights, such as the masses of clusters, the error at the resolution grows with the square of the step, as at any
minimum, and that at other scales falls with the step itself: a quarter of the way costs next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from reduset._engine import to_numpy
from reduset._types import Array, Indices
from reduset.certificate.by_scale import ErrorProfile, Scales, bandwidth_where
from reduset.compression.selecting import begin, select
from reduset.compression.target import Target
from reduset.mean import KernelMean, with_bandwidth
from reduset.select import KMeans, Selector, Thinning
from reduset.select.auto import KMEANS_ROWS
from reduset.weights import masses_of, with_nearest_atoms

MEANINGFUL = 0.5  # of ‖f‖: beyond, the error of random rows is no standard of comparison
ALONE = 1.01  # of the noise at the finest scale, beyond which kernel functions do not overlap
THINNED_AT = 1.5  # of the tolerance: the error of random rows at the scale of thinning
THINNED_ROWS = 64  # for each that stays: random ones would have an eighth of the error of as few as stay
LEAST_SHARE = 0.5  # of the mass of an atom: groups of less may go without
FAR, TOGETHER, MAX_FAR = 0.2, 0.5, 2048  # products: with every atom, within a group; rows that are examined
STEPS_TO_SCALE_FREE = (0.25, 0.5, 1.0)
CLEARLY = 0.95  # of the error of random rows: errors at other scales are known to some per cent


@dataclass(frozen=True)
class Chosen:
    """Atoms for a search over bandwidths.

    Attributes
    ----------
    points : (m, d)
    rows : (m,) of the data, or None if they are new points
    counts : (m,) the weight of the rows nearest to each
    scale_free : (m,) weights that are equally good at every scale: the counts, or the own ones of thinned rows
    own : (m,) the selector's own weights, if it has any
    profile : the errors with scale-free weights, as far as they are known
    """

    points: Array
    rows: Indices | None
    counts: Array
    scale_free: Array
    selection: str
    remark: str
    own: Array | None = None
    profile: ErrorProfile | None = None


def chosen_by(target: Target, selector: Selector, size: int, own: bool = True) -> Chosen:
    """The atoms of a selector, through the kernel of the target, and its own weights, which may take another pass."""
    traversal = begin(target, selector)
    atoms = select(target, traversal, size)
    points = cast(Array, atoms.points)
    with target.run.clock.stage("weigh"):
        masses = masses_of(target.full, points)
    return Chosen(points, atoms.rows, masses, masses, str(selector), atoms.remark, traversal.weights() if own else None)


def chosen_by_scales(target: Target, scales: Scales, size: int, tol: float, own: bool) -> Chosen:
    """Centres of k-means, or thinned rows if random ones would be better."""
    run, full = target.run, target.full
    centres = chosen_by(target, KMeans(rows=KMEANS_ROWS), size, own)
    with run.clock.stage("certify"):
        small = KernelMean.unchecked(centres.points, centres.scale_free, full.kernel)
        profile = meaningful_profile(scales, small, 0.95, size)
    width = bandwidth_where(profile.bandwidths, profile.random_rows, THINNED_AT * tol)
    if width is None or worst(profile) <= 1:
        return replace(centres, profile=profile)
    near = run.target(with_bandwidth(full, width))
    rows = chosen_by(near, Thinning(rows=THINNED_ROWS * size), size)
    words = "thinned rows: random ones would be better than centres of k-means"
    rows = replace(rows, scale_free=rows.counts if rows.own is None else rows.own, remark=words)
    with run.clock.stage("select"):
        return with_groups_missed(near.full, rows)


def with_groups_missed(full: KernelMean, thinned: Chosen) -> Chosen:
    """The same with a row for each group of rows that are far from all, and together have half the mass of an atom.

    Of a group with the mass of one atom, thinning keeps one row, or none, or two. The rows that are most like others make room.
    """
    missed = _missed(full, thinned.points)
    if thinned.rows is None or not missed:
        return thinned
    alike = full.kernel.product_gram(thinned.points, thinned.points)
    np.fill_diagonal(alike, 0.0)
    rows, room = thinned.rows.copy(), np.argsort(-alike.max(axis=1), kind="stable")[: len(missed)]
    rows[room] = missed[: len(room)]
    points = np.asarray(full.atoms[rows], np.float64)
    return replace(thinned, points=points, rows=rows, counts=masses_of(full, points))


def _missed(full: KernelMean, points: Array) -> list[int]:
    """A row amid each group that none of the points is near: always the one with most mass about it."""
    parts: list[Indices] = []

    def note(_: int, rows: Any, __: Any, product: Array, ___: Array) -> None:
        some = to_numpy(np.flatnonzero(product < FAR))
        parts.append(some + rows.start if isinstance(rows, slice) else rows[some])

    with_nearest_atoms(full, points, None, note, there=True)
    far = np.sort(np.concatenate(parts))
    far = far[full.weights[far] > 0]
    some = far[:: max(1, -(-len(far) // MAX_FAR))]
    if not len(some):
        return []
    together = full.kernel.product_gram(full.atoms[some], full.atoms[some]) >= TOGETHER
    left = full.weights[some] * (full.weights[far].sum() / full.weights[some].sum())
    found = []
    while (about := together @ left).max() >= LEAST_SHARE * full.mass / len(points):
        found.append(int(some[np.argmax(about)]))
        left[together[np.argmax(about)]] = 0.0
    return found


def meaningful_profile(scales: Scales, small: KernelMean, confidence: float, random: int, at_least: float = np.inf) -> ErrorProfile:
    """The profile from the coarsest scale to where so many random rows have an error of a half, and to a bandwidth at least.

    It also ends where kernel functions do not overlap: nearly as many random rows as there are rows never reach an error of a half.
    """
    grid = scales.bandwidths
    if not scales.certain:
        return scales.profile(small, grid, confidence, random)
    alone = float(scales.profile(small, grid[-1:], confidence, random).noise[0]) / ALONE
    parts = [scales.profile(small, grid[:1], confidence, random)]
    for k in range(1, len(grid)):
        before, last = (float(part.random_rows[0]) for part in (parts[-2:] if k > 1 else parts * 2))
        # errors are a power of the bandwidth, or nearly so
        if grid[k - 1] <= at_least and (last**2 >= MEANINGFUL * before > 0 or parts[-1].noise[0] >= alone > 0):
            break
        parts.append(scales.profile(small, grid[k : k + 1], confidence, random))
    return ErrorProfile.joined(parts)


def worst(profile: ErrorProfile) -> float:
    """The largest ratio of the errors to those of random rows, where these are below a half."""
    tell = (profile.random_rows < MEANINGFUL) & (profile.random_rows > 0)
    return float((profile.relative_errors[tell] / profile.random_rows[tell]).max(initial=0.0))


def scale_robust(
    scales: Scales, small: KernelMean, scale_free: Array, confidence: float, random: int, at_least: float
) -> tuple[Array, ErrorProfile]:
    """The weights, blended with the scale-free ones until random rows are not better at any scale, and their profile."""
    found = small.weights, meaningful_profile(scales, small, confidence, random, at_least)
    least = worst(found[1])
    for k, share in enumerate(STEPS_TO_SCALE_FREE):
        if least <= (1.0 if k else CLEARLY):
            break
        weights = (1 - share) * small.weights + share * scale_free
        blended = KernelMean.unchecked(small.atoms, weights, small.kernel)
        profile = meaningful_profile(scales, blended, confidence, random, at_least)
        if worst(profile) < least:
            found, least = (weights, profile), worst(profile)
    return found
