"""Mean shift (Comaniciu & Meer 2002): every point climbs a density to its mode, and modes that are close are one.

A step costs O(m) for the m atoms of a kernel mean, or the components of a mixture (`steps`). Trajectories flow together, so those
that meet within a small part of a bandwidth go on as one: after a few steps of all points, there are few left to move. A point may
also come to rest on a saddle, or stop short on a ridge: so those that remain are nudged, as Comaniciu & Meer do, and are modes if
they come back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from reduset._engine import DevicePoints, array_module, device_of, take_on_device, to_numpy
from reduset._types import Array, Floats, Labels, Report
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.modes.grid import cells
from reduset.modes.steps import AscentDensity, as_ascent, to_data

MOST_STEPS = 3000  # along flat ridges points take hundreds, and few are left then: a step of these costs next to nothing
MEET = 0.05  # bandwidths, the side of a cell in which trajectories are one
REST = 1e-3  # bandwidths, a step below which a point has arrived
NUDGE = 0.1  # bandwidths, from which a mode is found again
FINE = 1e-5  # bandwidths, a step below which a nudged point has arrived: it may have to leave a saddle, where steps are short


@dataclass(frozen=True)
class Ascent:
    """Where mean shift ends."""

    limits: Array  # (k, d) the distinct ends
    owner: Labels  # (n,) which of them is whose
    steps: int  # the most that any point took
    unfinished: int  # how many points had not come to rest by then

    @property
    def ends(self) -> Array:
        return take_on_device(self.limits, self.owner)


def mean_shift(
    density: KernelMean | Mixture | AscentDensity,
    starts: Floats,
    most: int = MOST_STEPS,
    meet: float = MEET,
    rest: float = REST,
    report: Report | None = None,
) -> Ascent:
    """Climb from every start, at most ``most`` steps.

    Parameters
    ----------
    density : weights not negative
    starts : (n, d); of those on a GPU ``owner`` of the result lies there too
    meet : trajectories this close go on as one, in bandwidths (the density's unit of length); 0 keeps them apart
    rest : a step below which a point has arrived, in bandwidths
    """
    with device_of(starts):
        return _climbed(as_ascent(density), starts, most, meet, rest, report)


def _climbed(surface: AscentDensity, starts: Floats, most: int, meet: float, rest: float, report: Report | None) -> Ascent:
    places = starts.values.astype(np.float64) if isinstance(starts, DevicePoints) else np.array(starts, np.float64)
    leader = array_module(places).arange(len(places))  # whom each follows; leaders follow themselves, or another since
    moving = array_module(places).arange(len(places))
    steps = 0
    while steps < most and len(moving):
        if meet > 0:
            first, joined = cells(surface.frame.apply(places[moving]), meet)
            leader[moving] = moving[first[joined]]
            moving = moving[first]
        there, height, length = surface.step(places[moving])
        places[moving] = there
        steps += 1
        going = length > rest
        # the highest first: of those that meet it goes on, or whoever comes from behind would take the others back
        moving = moving[going][np.argsort(-height[going], kind="stable")]
        if report is not None:
            report(steps, most)
    while not bool((leader == leader[leader]).all()):
        leader = leader[leader]
    used, owner = np.unique(leader, return_inverse=True)
    unfinished = int(np.isin(leader, moving).sum())
    return Ascent(to_numpy(places[used]), owner.astype(np.int64), steps, unfinished)


def merge_modes(density: KernelMean | Mixture | AscentDensity, places: Array, radius: float) -> tuple[Array, Labels]:
    """Modes and, for each place, the number of its own: places within ``radius`` bandwidths of each other are one, by chains.

    A mode is the highest of its places. The highest mode comes first.
    """
    surface = as_ascent(density)
    z = surface.frame.apply(places)
    pairs = cKDTree(z).query_pairs(radius, output_type="ndarray")
    links = coo_array((np.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), shape=(len(z), len(z)))
    count, group = connected_components(links, directed=False)
    height = surface.log_density(places)
    order = np.lexsort((-height, group))
    tops = order[np.searchsorted(group[order], np.arange(count))]
    by_height = np.argsort(-height[tops], kind="stable")
    rank = np.empty(count, np.int64)
    rank[by_height] = np.arange(count)
    return places[tops[by_height]], rank[group]


def find_modes(
    density: KernelMean | Mixture | AscentDensity, places: Array, radius: float, most: int = MOST_STEPS
) -> tuple[Array, Labels]:
    """As `merge_modes`, without saddles: where a nudge leads away, to either side, places belong to the higher of the two ends."""
    surface = as_ascent(density)
    modes, mode_of = merge_modes(surface, places, radius)
    count = len(modes)
    if count == 1:
        return modes, mode_of
    nudge = np.random.default_rng(0).standard_normal(modes.shape)
    nudge = to_data(nudge * (NUDGE / np.linalg.norm(nudge, axis=1, keepdims=True)), surface.frame.matrix)
    ends = mean_shift(surface, np.concatenate([modes + nudge, modes - nudge]), most, meet=0.0, rest=FINE).ends.reshape(2, count, -1)
    away = np.linalg.norm(surface.frame.apply(ends) - surface.frame.apply(modes), axis=2)
    left = np.flatnonzero(away.min(axis=0) > radius)
    higher = surface.log_density(ends.reshape(2 * count, -1)).reshape(2, count).argmax(axis=0)
    _, closest = cKDTree(surface.frame.apply(places)).query(surface.frame.apply(ends[higher[left], left]))
    links = coo_array((np.ones(len(left), bool), (left, mode_of[closest])), shape=(count, count))
    _, group = connected_components(links, directed=False)
    _, highest, joined = np.unique(group, return_index=True, return_inverse=True)  # the first of a group is the highest
    rank = np.argsort(np.argsort(highest))
    return modes[np.sort(highest)], rank[joined][mode_of]
