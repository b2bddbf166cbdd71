"""Groups compressed separately: each has its own atoms, whose weights add up to exactly the weight of the group.

One fit for all rows would give the groups whatever weights make the sum of all best, and take them from their neighbours.
Separately, the proportions of classes, samples or batches are those of the data to the last digit, and a rare group has atoms. By
default their number follows the square root of the group's weight, between proportional sizes, which leave rare groups a few, and
equal ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import as_cupy, on_device, rows_of
from reduset._types import Array, Indices
from reduset.compression.certifying import Found, certify
from reduset.compression.pipeline import bandwidth_of_plan, find
from reduset.compression.plan import NOISE, RESOLUTION, Plan, plan_of
from reduset.compression.result import Compression, result_of
from reduset.compression.selecting import Atoms
from reduset.compression.target import Run
from reduset.compression.weighing import weigh
from reduset.mean import KernelMean
from reduset.weights import OWN

SQUARE_ROOT = "square root"
QUOTAS: dict[str, Callable[[Array], Array]] = {"equal": np.ones_like, "proportional": np.asarray, SQUARE_ROOT: np.sqrt}


def labels_of(groups: Any, size: int) -> tuple[NDArray[Any], Indices]:
    """The groups there are, and which of them each point belongs to."""
    labels = np.asarray(as_cupy(groups, "groups").get() if on_device(groups) else groups)
    if labels.shape != (size,):
        raise ValueError(f"groups must have shape ({size},), one label a point; got {labels.shape}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("groups must be labels, got missing or infinite ones; give these points a label, or leave them out")
    if (labels.dtype.kind in "mM" and np.isnat(labels).any()) or (
        labels.dtype == object and any(_validate.missing(label) for label in labels.tolist())
    ):
        raise ValueError("groups must be labels, got missing ones; give these points a label, or leave them out")
    texts = labels.astype(str) if labels.dtype == object else labels
    names, of = np.unique(texts, return_inverse=True)
    if labels.dtype == object and len(set(labels.tolist())) > len(names):
        raise ValueError(
            "groups must be labels of one kind, got some that differ and read the same, as 1 and '1' do; make all texts"
        )
    return names, of


def quotas(size: int, masses: Array, counts: Indices, rule: str = SQUARE_ROOT) -> Indices:
    """How many of ``size`` atoms each group gets by a rule of `QUOTAS`: at least 1, and no more than it has points."""
    claims = QUOTAS[_validate.one_of(rule, "quotas", QUOTAS)](np.maximum(masses, 0.0))
    if size < len(masses):
        raise ValueError(
            f"size must be at least the number of groups, {len(masses)}, since each needs an atom; got {size}. "
            "Ask for more atoms, or leave groups out"
        )
    found = np.ones(len(masses), np.int64)
    for _ in range(min(size, int(counts.sum())) - len(found)):  # the highest average next (D'Hondt), which fills exactly
        found[np.argmax(np.where(found < counts, claims / (found + 1), -1.0))] += 1
    return found


def find_groups(full: KernelMean, plan: Plan, groups: Any, rule: str, run: Run, **options: Any) -> Found:
    """Run the pipeline for each group, at one bandwidth, and certify the atoms of all groups together.

    Of the ``options`` of the call, ``size`` is divided among the groups by a rule of `QUOTAS`; the others hold for each.
    Free weights are taken with the mass of their group.
    """
    full = bandwidth_of_plan(full, plan, run)
    names, of = labels_of(groups, full.size)
    counts, masses = np.bincount(of), np.bincount(of, full.weights).astype(np.float64)
    size = plan.size if plan.bandwidth != NOISE else None
    sizes = None if size is None else quotas(size, masses, counts, rule)
    options |= {"select": plan.selector.for_part_of(len(names)), "confidence": plan.confidence}
    options |= {"weights": "sum_to_one" if plan.weighting == "free" else plan.weighting}
    if plan.bandwidth == RESOLUTION:
        options["tol"] = None
    streams, max_size = run.rng.spawn(len(names) + 1), options.pop("max_size")
    together = Run(streams[-1], plan.confidence, run.progress, run.clock).target(full)
    report = run.progress.stage("groups")
    parts: list[Compression] = []
    rows: list[Indices | None] = []
    for k in range(len(names)):
        report(k, len(names))
        own = np.flatnonzero(of == k)
        with run.clock.stage("groups"):
            part = KernelMean.unchecked(rows_of(full.atoms, own), full.weights[own], full.kernel)
            own_run = Run(streams[k], plan.confidence)
            most = None if max_size is None else min(max_size, len(own))
            part_plan = plan_of(part, False, size=None if sizes is None else int(sizes[k]), max_size=most, **options)
            small = result_of(find(part, part_plan, own_run), streams[k])
        parts.append(small)
        rows.append(None if small.indices is None else own[small.indices])
    # in turns, so that a prefix holds the first atoms of every group
    order = np.argsort(np.concatenate([(np.arange(part.size) + 0.5) / part.size for part in parts]), kind="stable")
    labels = names[np.repeat(np.arange(len(names)), [part.size for part in parts])[order]]
    weights = np.concatenate([_of_mass(part, mass) for part, mass in zip(parts, masses, strict=True)])[order]
    known = [each for each in rows if each is not None]
    indices = np.concatenate(known)[order] if len(known) == len(rows) else None
    remark = f"{len(names):,} groups apart, each with its own share of the weight"
    weighed = weigh(together, Atoms(np.concatenate([part.mean.atoms for part in parts])[order], indices, remark=remark))
    prefixes = certify(together, weighed, OWN, weights)
    return Found(
        together,
        weighed,
        prefixes,
        size=len(weights),
        reached=all(part.reached for part in parts),
        selection=str(plan.selector),
        weighting=f"{parts[0].weighting} by group",
        groups=labels,
    )


def _of_mass(part: Compression, mass: float) -> Array:
    """The weights of a group, which add up to its mass up to rounding, or to the weights that the selector gives."""
    total = part.mean.mass
    return np.asarray(part.mean.weights * (mass / total) if total != 0 else part.mean.weights)
