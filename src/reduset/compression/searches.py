"""Searches for a size, at a given bandwidth or at the scale of the sampling error, and for groups: loops around the stages.

    size        this number of atoms
    tolerance   the smallest prefix with an error that is certified within it, by doubling
    plateau     the first atom that adds at most a proportion of the energy so far (Cruz Cortés & Scott 2017, Section V-B)
    none        all atoms of the selector

Each step extends the selection and κ, so a search costs little more than its last step. Atoms that do not nest, and moved atoms,
are sorted by the energy that each adds. Their prefixes are then good.

The bandwidth for ``tol`` alone is the scale of the sampling error. If every kernel function has norm 1, and Σ w = 1, the error

    E ‖f − distribution‖² / ‖f‖² = Σ wᵢ² (1 − ‖f‖²) / ‖f‖²

increases as the bandwidth decreases. Below the scale at which it is tol², sampling noise exceeds tol. With more rows, this scale is
finer. ‖f‖² is estimated from pairs of rows, O(1) in n.

Groups are compressed one by one. Their atoms keep exactly the weight of the group: weights for all rows at once would move weight
between groups. By default the number of atoms is proportional to the square root of the group's weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log2
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import as_cupy, on_device, rows_of
from reduset._types import Array, Indices
from reduset.certificate import bandwidth_where, square_norms, sum_of_squares
from reduset.compression.components import find_component_bandwidth, find_components
from reduset.compression.plan import COMPONENTS, GIVEN, NOISE, SQUARE_ROOT, Plan
from reduset.compression.prefixes import Prefixes
from reduset.compression.refine import move
from reduset.compression.resolution import at_coarser_scales, begin_search
from reduset.compression.stages import (
    NONE_KNOWN,
    Atoms,
    Run,
    SearchResult,
    Target,
    Weighed,
    certify,
    first_atoms,
    select_atoms,
    weigh_atoms,
)
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean, with_bandwidth
from reduset.mixture import as_density
from reduset.select import Traversal
from reduset.weights import CHOLESKY_UP_TO, OWN, FactoredSpan

FIRST_SIZE = 32
ROUNDS_OF_MOVED_ATOMS = 4  # after the doubling
NEGLIGIBLE_RESIDUAL = 0.5  # of tol²: below it, the search finds the smallest prefix
EXTRAPOLATION_FROM = 512  # atoms, since the errors of fewer predict little
GIVE_UP_FACTOR = 4  # the search stops if it predicts a size above this multiple of the largest allowed size
MAX_DOUBLINGS = 40
OCTAVES_COARSER, OCTAVES_FINER, STEPS_PER_OCTAVE = 6, 14, 4  # than the median distance, for the scale of the sampling error
GROWTH_FOR_COARSER_SCALES = 1.25
QUOTAS: dict[str, Callable[[Array], Array]] = {"equal": np.ones_like, "proportional": np.asarray, SQUARE_ROOT: np.sqrt}


def find(full: KernelMean, plan: Plan, run: Run) -> SearchResult:
    """Carry out a plan."""
    if plan.pieces == COMPONENTS:
        full = as_density(full)  # norms are then in the units of the result
    if plan.bandwidth == GIVEN:
        return _at_bandwidth(full, plan, run)
    if plan.bandwidth == NOISE:
        result = _at_noise(full, plan, run)
        if result.reached:
            return result
    if plan.pieces == COMPONENTS:
        result = find_component_bandwidth(full, plan, run)
    else:
        search, guess = begin_search(full, plan, run)
        result = search.certified(guess)
    way_out = f"no bandwidth of the search is within the tolerance; raise the number of {plan.pieces} or tol"
    return replace(result, way_out=way_out, resolution=result.resolution if result.reached else None)


def _at_bandwidth(full: KernelMean, plan: Plan, run: Run) -> SearchResult:
    return find_components(full, plan, run) if plan.pieces == COMPONENTS else find_size(run.target(full), plan)


def _at_noise(full: KernelMean, plan: Plan, run: Run) -> SearchResult:
    """The fewest pieces within the tolerance at the scale of the sampling error and at coarser scales, if they exist."""
    tol, median = cast(float, plan.tol), cast(RadialKernel, full.kernel).width
    first = _at_bandwidth(with_bandwidth(full, noise_bandwidth(full, tol, run.rng)), plan, run)
    result, _ = at_coarser_scales(first, tol, median)
    while first.reached and not result.reached and result.size < len(result.prefixes.atoms):
        size = min(int(GROWTH_FOR_COARSER_SCALES * result.size) + 1, len(result.prefixes.atoms))
        result, _ = at_coarser_scales(replace(result, size=size), tol, median)
    return replace(result, resolution=None if result.resolution is None else replace(result.resolution, by_noise=True))


def noise_bandwidth(mean: KernelMean, tol: float, rng: np.random.Generator) -> float:
    """The bandwidth at which the sampling error is ``tol``. The grid reaches from 64 median distances to 1/13,777 of one."""
    kernel = cast(RadialKernel, mean.kernel)
    widths = kernel.width * 2.0 ** np.arange(OCTAVES_COARSER, -OCTAVES_FINER, -1 / STEPS_PER_OCTAVE)
    squares = sum_of_squares(mean.weights)
    norms = square_norms(mean, squares, kernel, widths, rng)[:, 0] / mean.mass**2
    noise = np.sqrt(squares / mean.mass**2 * np.clip(1 - norms, 0.0, None) / norms)
    bandwidth = bandwidth_where(widths, np.maximum.accumulate(noise), tol)  # monotone up to rounding and the random pairs
    return float(widths[0]) if bandwidth is None else bandwidth


# -- sizes -----------------------------------------------------------------------------------------------------------------


def find_size(target: Target, plan: Plan) -> SearchResult:
    """The atoms of a plan at the bandwidth of the target."""
    traversal = target.begin(plan.selector)
    if plan.size is not None:
        result = _all_atoms(target, grow(target, traversal, plan.size), plan.weighting, plan.steps, True)
    elif plan.plateau is not None:
        result = by_plateau(target, traversal, plan.plateau, plan.weighting, plan.most, plan.steps)
    elif plan.tol is None:
        result = _by_end(target, traversal, plan.weighting, plan.most, plan.steps)
    elif plan.steps is None:
        result = by_tolerance(target, traversal, plan.tol, plan.weighting, plan.most)
    else:
        result = _moved_by_tolerance(target, traversal, plan.tol, plan.weighting, plan.most, plan.steps)
    ended = f"{plan.selector} has no more atoms that add to these" if result.weighed.span.size < plan.most else ""
    return replace(result, way_out=result.way_out or ended, selection=plan.name)


def grow(target: Target, traversal: Traversal, size: int, known: Array = NONE_KNOWN) -> Weighed:
    """``size`` atoms of a traversal, with weights. ``known`` is κ of its previous atoms."""
    return weigh_atoms(target, select_atoms(target, traversal, size), known if traversal.nested else NONE_KNOWN)


def _certified(target: Target, weighed: Weighed, weighting: str, steps: int | None) -> tuple[Weighed, Prefixes]:
    """Certify the atoms, moved first unless ``steps`` is None."""
    return (weighed, certify(target, weighed, weighting)) if steps is None else move(target, weighed, weighting, steps)


def _all_atoms(target: Target, weighed: Weighed, weighting: str, steps: int | None, reached: bool) -> SearchResult:
    weighed, prefixes = _certified(target, weighed, weighting, steps)
    return SearchResult(target, weighed, prefixes, len(prefixes.atoms), reached)


def _by_end(target: Target, traversal: Traversal, weighting: str, most: int, steps: int | None) -> SearchResult:
    """All atoms of the selector, up to the largest number allowed."""
    grown = grow(target, traversal, most)
    result = _all_atoms(target, grown, weighting, steps, not grown.atoms.complete or most == target.full.size)
    if not result.reached:  # the selector may have exactly ``most`` atoms
        traversal.extend(most + 1)
        rows = traversal.indices
        result = replace(result, reached=rows is not None and len(rows) == most)
    return result


def by_tolerance(target: Target, traversal: Traversal, tol: float, weighting: str, most: int) -> SearchResult:
    """The smallest prefix with an error that is certified within tol; all atoms if none has one."""
    size, known = min(FIRST_SIZE, most), NONE_KNOWN
    sizes: list[int] = []
    squares: list[float] = []
    while True:
        weighed = grow(target, traversal, size, known)
        known, more = weighed.kappa, weighed.atoms.complete and size < most
        span = weighed.span
        free = span.weights("free", target.full.mass, span.size)
        with target.run.clock.stage("certify"):
            rest = target.probe.glance(span.atoms, free, span.kappa)
        goal = tol**2 * (span.energy(span.size) + rest.square)
        sizes.append(size)
        squares.append(rest.square)
        needed = atoms_needed(sizes, squares, goal, target.full.dimension) if more else 0.0
        if needed > GIVE_UP_FACTOR * most:
            about = float(f"{min(needed, target.full.size):.2g}")  # all points are always enough
            way_out = (
                f"it cannot be reached with {most:,} atoms: the errors of up to {size:,} predict about {about:,.0f}, so the "
                f"search stopped. Raise tol, widen the bandwidth, or give size={most}"
            )
            return replace(_all_atoms(target, weighed, weighting, None, False), way_out=way_out)
        if more and rest.high > NEGLIGIBLE_RESIDUAL * goal:
            size = min(most, max(size + 1, int(1.25 * size)) if rest.high <= goal else 2 * size)
            continue
        prefixes = certify(target, weighed, weighting)
        smallest = prefixes.smallest(tol)
        if smallest is not None or not more:
            return SearchResult(target, weighed, prefixes, smallest or len(prefixes.atoms), smallest is not None)
        size = min(most, 2 * size)


def _moved_by_tolerance(target: Target, traversal: Traversal, tol: float, weighting: str, most: int, steps: int) -> SearchResult:
    """Double until the moved atoms are within tol, then bisect: move shorter prefixes again while they stay within it."""
    size, known, too_small = min(FIRST_SIZE, most), NONE_KNOWN, 0
    while True:
        grown = grow(target, traversal, size, known)
        known, more = grown.kappa, grown.atoms.complete and size < most
        weighed, prefixes = move(target, grown, weighting, steps)
        smallest = prefixes.smallest(tol)
        if smallest is not None:
            break
        if not more:
            return SearchResult(target, weighed, prefixes, len(prefixes.atoms), False)
        too_small, size = size, min(most, 2 * size)
    best = SearchResult(target, weighed, prefixes, smallest, True)
    for _ in range(ROUNDS_OF_MOVED_ATOMS):
        size = max(too_small + 1, (too_small + best.size) // 2)
        if size >= best.size:
            break
        shorter = first_atoms(target, best.weighed, size)
        # the order is removed, since the covering radii of the traversal do not hold for moved atoms
        weighed, prefixes = move(target, replace(shorter, atoms=replace(shorter.atoms, order=None)), weighting, steps)
        smallest = prefixes.smallest(tol)
        if smallest is None:
            too_small = size
        else:
            best = SearchResult(target, weighed, prefixes, smallest, True)
    return best


def by_plateau(
    target: Target, traversal: Traversal, epsilon: float, weighting: str, most: int, steps: int | None = None
) -> SearchResult:
    """The first size at which an atom adds at most epsilon of the energy added since the first."""
    size, known = min(FIRST_SIZE, most), NONE_KNOWN
    while True:
        weighed = grow(target, traversal, size, known)
        known, span = weighed.kappa, weighed.span
        if not isinstance(span, FactoredSpan):
            raise ValueError(f"plateau works up to {CHOLESKY_UP_TO} atoms; set max_size to that or less, or use tol")
        added = span.y**2
        since_first = np.cumsum(added) - added[0]
        flat = np.flatnonzero(added[1:] <= epsilon * since_first[1:])
        if len(flat) or not weighed.atoms.complete or size >= most:
            break
        size = min(most, 2 * size)
    # if every distinct point is an atom, no other can be added
    reached = bool(len(flat)) or len(span.kept) < size or size == target.full.size
    chosen = int(flat[0]) + 2 if len(flat) else span.size
    if steps is not None:
        return _all_atoms(target, first_atoms(target, weighed, chosen), weighting, steps, reached)
    result = _all_atoms(target, weighed, weighting, None, reached)
    return replace(result, size=chosen) if len(flat) else result


def atoms_needed(sizes: Sequence[int], squares: Sequence[float], goal: float, dimension: int) -> float:
    """Extrapolate the number of atoms that reaches the squared error of the goal, from the sizes so far; 0 without three sizes.

    A doubling of the atoms divides the squared error by 2^e. For smooth kernels e grows with every doubling, at most like m^(2/d),
    since the error of a Gaussian is about exp(−c·m^(2/d)). So e is assumed to grow by its last factor or by 2^(2/d), whichever is
    larger.
    """
    if len(sizes) < 3 or sizes[-1] < EXTRAPOLATION_FROM or min(squares) <= 0:
        return 0.0
    before, last = (log2(squares[k - 1] / squares[k]) / log2(sizes[k] / sizes[k - 1]) for k in (len(sizes) - 2, len(sizes) - 1))
    least = 2 ** (2 / dimension)
    growth = min(max(least, last / before if before > 0 else least), 4.0)
    missing, rate, doublings = log2(squares[-1] / goal) if goal > 0 else float("inf"), max(last, 1e-3), 0
    while missing > 0 and doublings < MAX_DOUBLINGS:
        rate *= growth
        missing -= rate
        doublings += 1
    return sizes[-1] * 2.0 ** (doublings + missing / rate if missing < 0 else doublings)


# -- groups ----------------------------------------------------------------------------------------------------------------


def find_groups(full: KernelMean, plan: Plan, groups: Any, rule: str, run: Run) -> SearchResult:
    """Carry out a plan for each group, at one bandwidth, and certify the atoms of all groups together.

    The size is divided among the groups by a rule of `QUOTAS`. Free weights of a group are scaled to the weight of its rows.
    """
    if plan.bandwidth == NOISE:
        full = with_bandwidth(full, noise_bandwidth(full, cast(float, plan.tol), run.rng))
    elif plan.bandwidth != GIVEN:
        full = find(full, plan, run).target.full
    names, group_of = labels_of(groups, full.size)
    masses = np.bincount(group_of, full.weights).astype(np.float64)
    sizes = None if plan.size is None else quotas(plan.size, masses, np.bincount(group_of), rule)
    streams = run.rng.spawn(len(names) + 1)
    together = Run(streams[-1], plan.confidence, run.progress, run.clock).target(full)
    report = run.progress.stage("groups")
    parts: list[SearchResult] = []
    points, weights, rows = [], [], []
    for k in range(len(names)):
        report(k, len(names))
        with run.clock.stage("groups"):
            members = np.flatnonzero(group_of == k)
            mean = KernelMean.unchecked(rows_of(full.atoms, members), full.weights[members], full.kernel)
            part_plan = plan.for_group(mean, None if sizes is None else int(sizes[k]), len(names))
            part = find(mean, part_plan, Run(streams[k], plan.confidence))
            own = part.prefixes.error(part.size).weights
            shown = np.flatnonzero(own) if own.any() else np.arange(part.size)
            own = own[shown]
        parts.append(part)
        points.append(part.prefixes.atoms[: part.size][shown])
        weights.append(own * (masses[k] / own.sum()) if own.sum() != 0 else own)
        rows.append(None if part.rows is None else members[part.rows[shown]])
    # groups alternate, so that a prefix has the first atoms of every group
    counts = [len(own) for own in weights]
    order = np.argsort(np.concatenate([(np.arange(count) + 0.5) / count for count in counts]), kind="stable")
    known = [part_rows for part_rows in rows if part_rows is not None]
    indices = np.concatenate(known)[order] if len(known) == len(rows) else None
    remark = f"{len(names):,} groups compressed separately, each with its own proportion of the weight"
    weighed = weigh_atoms(together, Atoms(np.concatenate(points)[order], indices, remark=remark))
    return SearchResult(
        together,
        weighed,
        certify(together, weighed, OWN, np.concatenate(weights)[order]),
        size=len(order),
        reached=all(part.reached for part in parts),
        selection=str(plan.selector),
        weighting=f"{parts[0].prefixes.kind} by group",
        groups=names[np.repeat(np.arange(len(names)), counts)[order]],
    )


def labels_of(groups: Any, size: int) -> tuple[NDArray[Any], Indices]:
    """The distinct groups, and the position of each point's group among them."""
    labels = np.asarray(as_cupy(groups, "groups").get() if on_device(groups) else groups)
    if labels.shape != (size,):
        raise ValueError(f"groups must have shape ({size},), one label for each point; got {labels.shape}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("groups must be labels, got missing or infinite ones; label these points, or omit them")
    if (labels.dtype.kind in "mM" and np.isnat(labels).any()) or (
        labels.dtype == object and any(_validate.missing(label) for label in labels.tolist())
    ):
        raise ValueError("groups must be labels, got missing ones; label these points, or omit them")
    texts = labels.astype(str) if labels.dtype == object else labels
    names, positions = np.unique(texts, return_inverse=True)
    if labels.dtype == object and len(set(labels.tolist())) > len(names):
        raise ValueError("groups must be labels of one type, got some that are equal as text, such as 1 and '1'; use str")
    return names, positions


def quotas(size: int, masses: Array, counts: Indices, rule: str = SQUARE_ROOT) -> Indices:
    """Divide ``size`` among groups by a rule of `QUOTAS`. Each group gets at least 1 atom, and at most its number of points."""
    claims = QUOTAS[_validate.one_of(rule, "quotas", QUOTAS)](np.maximum(masses, 0.0))
    if size < len(masses):
        raise ValueError(f"size must be at least the number of groups, {len(masses)}, got {size}; raise it, or omit groups")
    atoms = np.ones(len(masses), np.int64)
    for _ in range(min(size, int(counts.sum())) - len(atoms)):  # to the highest average (D'Hondt), which sums to the size exactly
        atoms[np.argmax(np.where(atoms < counts, claims / (atoms + 1), -1.0))] += 1
    return atoms
