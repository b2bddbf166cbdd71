"""Mean shift (Comaniciu & Meer 2002): every point moves uphill to a mode of the density, and close modes are merged.

A step for kernels of one width (Comaniciu & Meer 2002), and for components (Comaniciu, Ramesh & Meer 2001):

    y ← Σᵢ aᵢ tᵢ / Σᵢ aᵢ,                  aᵢ = wᵢ φ(y, tᵢ)
    y ← (Σᵢ aᵢ Hᵢ⁻¹)⁻¹ Σᵢ aᵢ Hᵢ⁻¹ tᵢ,      aᵢ = wᵢ N(y; tᵢ, Hᵢ)

With non-negative weights, each step goes uphill. The reason is that exp(−u/2) is convex in u. Let |z|ᵢ² = zᵀHᵢ⁻¹z. Then f(x) is at
least f(y) − ½ Σ aᵢ (|x − tᵢ|ᵢ² − |y − tᵢ|ᵢ²). The step ends at the maximum of this bound. f rises by at least ½ Σ aᵢ |x − y|ᵢ², for
any covariances, and no step has to be shortened. A step costs O(m·d) a point, or O(m·d²) with full covariances.

Trajectories within a small fraction of a bandwidth continue as one trajectory. So the number of moving points falls after the first
steps. A point may also stop on a saddle or on a ridge. So the limits are nudged, as Comaniciu & Meer do, and are modes if they
return.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from reduset._engine import (
    SQUARED,
    BlockRows,
    DevicePoints,
    Frame,
    array_module,
    as_diagonal,
    blocks,
    build_leaves,
    component_sums,
    device_of,
    from_lower_rows,
    gradient_sums,
    is_shared,
    log_peaks,
    nearest,
    on_device,
    take_on_device,
    to_device_of,
    to_numpy,
)
from reduset._types import Array, Floats, Labels, Report
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.mixture import Mixture, inverses, solved
from reduset.modes.component_density import cells

MAX_STEPS = 3000  # On flat ridges, the last points need hundreds of steps, at little cost.

# In bandwidths.
MERGE_DISTANCE = 0.05  # Trajectories this close continue as one trajectory.
MIN_STEP = 1e-3  # A shorter step ends a trajectory.
NUDGE_LENGTH = 0.1  # Shift of a limit that tests whether it is a mode.
MIN_NUDGED_STEP = 1e-5  # The same for a nudged point. It is smaller, because steps near a saddle are short.

MIN_DENSITY = 1e-33  # Relative to the mass. Single precision loses lower densities. A step then leads to the nearest atom.
MIN_VALUE = 1e-200  # Relative to the highest peak. Lower contributions are compared by their logarithms.
ENTRIES_PER_BLOCK = 1 << 20
MAX_EXPONENT = 1e300  # Exponents are clipped to this, so that further arithmetic does not overflow.


class MeanShiftStep(NamedTuple):
    """A mean-shift step of many points.

    It has the new points, the densities before the step up to a factor, and the lengths of the step in bandwidths.
    """

    points: Array
    density: Array
    length: Array


class AscentDensity(Protocol):
    """A density with its mean-shift steps. In the coordinates of its frame, a bandwidth is 1."""

    frame: Frame

    def step(self, points: Array) -> MeanShiftStep: ...

    def log_density(self, points: Floats) -> Array: ...


def as_ascent(density: KernelMean | Mixture | AscentDensity) -> AscentDensity:
    """The density as an `AscentDensity`."""
    if isinstance(density, KernelMean):
        return KernelMeanAscent(density)
    return MixtureAscent(density) if isinstance(density, Mixture) else density


class KernelMeanAscent:
    """Mean shift on a Gaussian kernel mean. The unit of length is its bandwidth."""

    def __init__(self, mean: KernelMean) -> None:
        if not isinstance(mean.kernel, Gaussian):
            raise TypeError(f"the kernel of a mean must be Gaussian for mean shift, got {mean.kernel!r}; use Gaussian")
        self._mean = mean
        self._shape = mean.kernel.bump(mean.dimension)
        self._loops = mean.kernel.frame(mean.atoms, self._shape)  # φ = exp(−|z|²), so a bandwidth is √½.
        self.frame = mean.kernel.plain_frame(mean.atoms)
        self._total = float(np.abs(mean.weights).sum())
        self._weighted_atoms = mean.atoms[mean.weights != 0]
        self.log_density = mean.log_density

    def step(self, points: Array) -> MeanShiftStep:
        mean, frame = self._mean, self._loops
        queries = cast(Array, DevicePoints(points)) if on_device(points) else points
        value, gradient = gradient_sums(mean.atoms, mean.weights, queries, frame, self._shape.profile, "auto")
        distant = value <= MIN_DENSITY * self._total
        move = gradient / (2 * np.where(distant, 1.0, value))[:, None]
        moved = points + to_data(move, frame.matrix)
        length = np.sqrt(2 * np.einsum("ij,ij->i", move, move))
        if distant.any():
            outliers = to_numpy(points[distant])  # Single precision may not distinguish the atoms.
            leaves = build_leaves(outliers, frame, np.float64)
            closest, distance = nearest(outliers, self._weighted_atoms, frame, SQUARED, leaves)
            moved[distant] = to_device_of(points, self._weighted_atoms[closest])
            length[distant] = to_device_of(points, np.sqrt(2) * distance)
        return MeanShiftStep(moved, value, length)


class MixtureAscent:
    """Mean shift on a mixture with non-negative weights.

    In the coordinates of the computation, the average precision of the components is a multiple of the identity. The unit of length
    is the width of the narrowest component. So a fraction of the unit is at most this fraction of any component's width.

    Parameters
    ----------
    mixture : Mixture
    width : float, optional
        Another unit of length: the bandwidth of the approximated density.
    """

    def __init__(self, mixture: Mixture, width: float | None = None) -> None:
        if not mixture.is_density or not mixture.mass > 0:
            raise ValueError(
                f"the weights of a mixture must not be negative for mean shift, got one of {mixture.weights.min():.3g}; use "
                "the positive part, or simplify with density=True"
            )
        shared = is_shared(mixture.covariances)
        covariances = mixture.covariances[:1] if shared else mixture.covariances
        present = mixture.weights > 0
        self._weights = mixture.weights[present] / mixture.mass
        matrix = (
            _isotropic_frame(self._weights, covariances if shared else covariances[present]) if width is None else 1 / float(width)
        )
        self.frame = Frame.around(mixture.means, matrix)
        self._means = self.frame.apply(mixture.means[present])
        covariances = _transformed(covariances, matrix)
        shape = (len(self._means), *covariances.shape[1:])
        self._covariances = np.broadcast_to(covariances, shape) if shared else covariances[present]
        self.log_density = mixture.log_density

    def step(self, points: Array) -> MeanShiftStep:
        z = self.frame.apply(points)
        d = z.shape[1]
        sums, _ = component_sums(z, self._weights, self._means, self._covariances, 2)
        value = sums[0]
        distant = ~(value > MIN_VALUE)
        sums = sums[1:] / np.where(distant, 1.0, value)
        move = np.empty_like(z)
        near = ~distant
        move[near] = _solved(sums[d:, near].T, sums[:d, near].T)
        if distant.any():
            move[distant] = self._distant_move(z[distant])
        moved = points + to_data(move, self.frame.matrix)
        return MeanShiftStep(moved, value, np.sqrt(np.einsum("ij,ij->i", move, move)))

    def _distant_move(self, z: Array) -> Array:
        """The same step where the density underflows. It is relative to the largest contribution to each point."""
        m, d = self._means.shape
        full = self._covariances.ndim == 3
        precisions = inverses(self._covariances if full else as_diagonal(self._covariances, d))
        logs = np.log(self._weights) + log_peaks(self._covariances, d)
        rows, columns = np.tril_indices(d)
        move = np.empty_like(z)
        for a, b in blocks(len(z), max(1, ENTRIES_PER_BLOCK // (m * d))):
            differences = self._means - z[a:b, None]
            pulls = np.einsum("mij,qmj->qmi", precisions, differences) if full else precisions * differences
            with np.errstate(over="ignore"):
                exponents = np.minimum(0.5 * np.einsum("qmi,qmi->qm", differences, pulls) - logs, MAX_EXPONENT)
            proportions = np.exp(exponents.min(axis=1, keepdims=True) - exponents)
            proportions /= proportions.sum(axis=1, keepdims=True)
            precision = proportions @ (precisions[:, rows, columns] if full else precisions)
            move[a:b] = _solved(precision, np.einsum("qm,qmi->qi", proportions, pulls))
        return move


def _isotropic_frame(weights: Array, covariances: Array) -> Any:
    """The matrix of a frame with an isotropic average precision. The narrowest component has width 1 in this frame."""
    if covariances.ndim == 1:
        return float(1 / np.sqrt(covariances.min()))
    proportions = weights if len(covariances) > 1 else np.ones(1)
    if covariances.ndim == 2:
        precision = proportions @ inverses(covariances)
        return np.sqrt(precision / (covariances * precision).min())
    root = np.linalg.cholesky(np.tensordot(proportions, inverses(covariances), 1))
    narrowest = np.linalg.eigvalsh(root.T @ covariances @ root).min()
    return root / np.sqrt(narrowest)


def _transformed(covariances: Array, matrix: float | Array) -> Array:
    """Covariances in the coordinates of the frame with this matrix."""
    if np.ndim(matrix) < 2:  # One number, or one per column.
        return np.asarray((covariances * matrix) * matrix)
    return np.asarray(np.transpose(matrix) @ covariances @ matrix)


def _solved(precision: Array, pull: Array) -> Array:
    """M⁻¹b for each row. M is given by its lower rows or its diagonal."""
    d = pull.shape[1]
    return solved(precision if precision.shape[1] == d else from_lower_rows(precision, d), pull)


def to_data(move: Array, matrix: float | Array) -> Array:
    """Transform a move from the coordinates of a frame to the coordinates of the data."""
    return move / matrix if np.ndim(matrix) < 2 else np.asarray(np.linalg.solve(np.transpose(matrix), move.T).T, np.float64)


@dataclass(frozen=True)
class Ascent:
    """The limits of mean shift.

    Attributes
    ----------
    limits : (k, d)
        Distinct limits.
    assignments : (n,)
        Limit of each point.
    steps : int
        Maximum number of steps of a point.
    unfinished : int
        Number of points that have not converged.
    """

    limits: Array
    assignments: Labels
    steps: int
    unfinished: int

    @property
    def ends(self) -> Array:
        return take_on_device(self.limits, self.assignments)


def mean_shift(
    density: KernelMean | Mixture | AscentDensity,
    starts: Floats,
    max_steps: int = MAX_STEPS,
    merge_distance: float = MERGE_DISTANCE,
    min_step: float = MIN_STEP,
    report: Report | None = None,
) -> Ascent:
    """Run mean shift from every start.

    Parameters
    ----------
    density : KernelMean, Mixture or AscentDensity
        Density with non-negative weights. A bandwidth below is its unit of length.
    starts : (n, d) array, or rows in blocks
        Start points. If they are on a GPU, ``assignments`` of the result is on it too.
    max_steps : int
        Maximum number of steps of each point.
    merge_distance : float
        Distance in bandwidths. Trajectories this close continue as one. With ``merge_distance=0``, all trajectories stay separate.
    min_step : float
        Shortest step, in bandwidths. A shorter step ends a trajectory.
    report : function, optional
    """
    surface = as_ascent(density)
    if isinstance(starts, BlockRows):
        ascend = partial(_ascend, surface, max_steps, merge_distance, min_step, None)
        return _of_blocks(surface, starts, ascend, merge_distance, report)
    with device_of(starts):
        return _ascend(surface, max_steps, merge_distance, min_step, report, starts)


def _of_blocks(
    surface: AscentDensity, starts: BlockRows, ascend: Callable[[Floats], Ascent], merge_distance: float, report: Report | None
) -> Ascent:
    """The limits of all blocks. Limits close to a limit of an earlier block are the same."""
    limits, assignments = np.empty((0, starts.shape[1])), np.empty(len(starts), np.int64)
    steps = unfinished = 0
    for a, b, found in starts.results(ascend):
        both, place = np.concatenate([limits, found.limits]), len(limits) + found.assignments
        if merge_distance > 0:
            first, cell = cells(surface.frame.apply(both), merge_distance)
            kept = np.sort(first)
            limits, place = both[kept], np.searchsorted(kept, first)[cell][place]
        else:
            limits = both
        assignments[a:b] = place
        steps, unfinished = max(steps, found.steps), unfinished + found.unfinished
        if report is not None:
            report(b, len(starts))
    return Ascent(limits, assignments, steps, unfinished)


def _ascend(
    surface: AscentDensity, max_steps: int, merge_distance: float, min_step: float, report: Report | None, starts: Floats
) -> Ascent:
    points = starts.values.astype(np.float64) if isinstance(starts, DevicePoints) else np.array(starts, np.float64)
    leader = array_module(points).arange(len(points))  # The point that each point follows: itself, or a point close to it.
    moving = array_module(points).arange(len(points))
    steps = 0
    while steps < max_steps and len(moving):
        if merge_distance > 0:
            first, cell = cells(surface.frame.apply(points[moving]), merge_distance)
            leader[moving] = moving[first[cell]]
            moving = moving[first]
        points[moving], height, length = surface.step(points[moving])
        steps += 1
        continuing = length > min_step
        # Sort by density. Of points that meet, the highest continues. A lower point would move the others back.
        moving = moving[continuing][np.argsort(-height[continuing], kind="stable")]
        if report is not None:
            report(steps, max_steps)
    while not bool((leader == leader[leader]).all()):
        leader = leader[leader]
    used, assignments = np.unique(leader, return_inverse=True)
    unfinished = int(np.isin(leader, moving).sum())
    return Ascent(to_numpy(points[used]), assignments.astype(np.int64), steps, unfinished)


def merge_modes(density: KernelMean | Mixture | AscentDensity, points: Array, radius: float) -> tuple[Array, Labels]:
    """Modes in descending order of density, and the mode of each point.

    Points in a chain of distances up to ``radius`` bandwidths belong to one mode. The mode is the highest of these points.
    """
    surface = as_ascent(density)
    z = surface.frame.apply(points)
    pairs = cKDTree(z).query_pairs(radius, output_type="ndarray")
    links = coo_array((np.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), shape=(len(z), len(z)))
    count, group = connected_components(links, directed=False)
    height = surface.log_density(points)
    order = np.lexsort((-height, group))
    tops = order[np.searchsorted(group[order], np.arange(count))]
    by_height = np.argsort(-height[tops], kind="stable")
    rank = np.empty(count, np.int64)
    rank[by_height] = np.arange(count)
    return points[tops[by_height]], rank[group]


def find_modes(
    density: KernelMean | Mixture | AscentDensity, points: Array, radius: float, max_steps: int = MAX_STEPS
) -> tuple[Array, Labels]:
    """As `merge_modes`, but without saddles.

    Each mode is nudged in two opposite directions. If both nudged points move away, the mode is a saddle. Its points then belong to
    the higher of the two limits.
    """
    surface = as_ascent(density)
    modes, mode_of = merge_modes(surface, points, radius)
    count = len(modes)
    if count == 1:
        return modes, mode_of
    nudge = np.random.default_rng(0).standard_normal(modes.shape)
    nudge = to_data(nudge * (NUDGE_LENGTH / np.linalg.norm(nudge, axis=1, keepdims=True)), surface.frame.matrix)
    nudged = np.concatenate([modes + nudge, modes - nudge])
    ends = mean_shift(surface, nudged, max_steps, merge_distance=0.0, min_step=MIN_NUDGED_STEP).ends.reshape(2, count, -1)
    distance = np.linalg.norm(surface.frame.apply(ends) - surface.frame.apply(modes), axis=2)
    saddles = np.flatnonzero(distance.min(axis=0) > radius)
    higher = surface.log_density(ends.reshape(2 * count, -1)).reshape(2, count).argmax(axis=0)
    _, closest = cKDTree(surface.frame.apply(points)).query(surface.frame.apply(ends[higher[saddles], saddles]))
    links = coo_array((np.ones(len(saddles), bool), (saddles, mode_of[closest])), shape=(count, count))
    _, group = connected_components(links, directed=False)
    _, highest, inverse = np.unique(group, return_index=True, return_inverse=True)  # The first mode of a group is the highest.
    rank = np.argsort(np.argsort(highest))
    return modes[np.sort(highest)], rank[inverse][mode_of]
