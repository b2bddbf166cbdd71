"""Groups compressed apart: each by atoms of its own, whose weights add up to exactly what the group weighs.

One fit for all rows would give the groups whatever weight makes the sum of all best, and take it from their neighbours. Apart, the
shares of classes, samples or batches are those of the data to the last digit, and a rare group has atoms: by default as many as the
square root of its weight says, between shares in proportion, which leave it a few, and equal ones, which leave the others too few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import as_cupy, on_device, rows_of
from reduset._progress import Progress
from reduset._types import Array, Indices
from reduset.compression.builder import Builder
from reduset.compression.result import Compression, assemble_built
from reduset.mean import KernelMean
from reduset.select import Auto, Selector
from reduset.weights.kinds import OWN

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


def compress_groups(
    full: KernelMean,
    groups: Any,
    compress: Callable[..., Compression],
    selector: Selector,
    weights: str,
    confidence: float,
    rng: np.random.Generator,
    progress: Progress,
    limits: dict[str, int | None],
    goals: dict[str, Any],
    shared: str = SQUARE_ROOT,
) -> Compression:
    """Compress each group by ``compress`` and put the results together, certified as one.

    Of the ``limits`` the "size" is shared out among the groups by the rule ``shared``; "max_size" and the ``goals`` hold for each.
    Free weights are taken with the mass of their group.
    """
    size, max_size = limits["size"], limits["max_size"]
    names, of = labels_of(groups, full.size)
    counts = np.bincount(of)
    masses = np.bincount(of, full.weights).astype(np.float64)
    shares = None if size is None else quotas(size, masses, counts, shared)
    if isinstance(selector, Auto):
        selector = replace(selector, budget=selector.budget / len(names))
    report = progress.stage("groups")
    streams = rng.spawn(len(names) + 1)
    builder = Builder(full, streams[-1], confidence, progress)
    parts, rows, reached = [], [], True
    for k in range(len(names)):
        report(k, len(names))
        own = np.flatnonzero(of == k)
        with builder.clock.stage("groups"):
            small = compress(
                KernelMean(rows_of(full.atoms, own), full.weights[own], full.kernel),
                size=None if shares is None else int(shares[k]),
                max_size=None if max_size is None else min(max_size, len(own)),
                select=selector,
                weights="sum_to_one" if weights == "free" else weights,
                confidence=confidence,
                rng=streams[k],
                **goals,
            )
        parts.append(small)
        rows.append(None if small.indices is None else own[small.indices])
        reached &= small.reached
    # in turns, so that a prefix holds the first atoms of every group
    order = np.argsort(np.concatenate([(np.arange(part.size) + 0.5) / part.size for part in parts]), kind="stable")
    label = np.repeat(np.arange(len(names)), [part.size for part in parts])[order]
    mine = np.concatenate([_of_mass(part, mass) for part, mass in zip(parts, masses, strict=True)])[order]
    known = [each for each in rows if each is not None]
    indices = np.concatenate(known)[order] if len(known) == len(rows) else None
    builder.place(np.concatenate([part.mean.atoms for part in parts])[order], indices, ordered=True)
    builder.remark = f"{len(names):,} groups apart, each with its own share of the weight"
    prefixes = builder.prefixes(OWN, mine)
    result = assemble_built(builder, prefixes, len(mine), str(selector), reached, rng, names[label])
    return replace(result, weighting=f"{parts[0].weighting} by group")


def _of_mass(part: Compression, mass: float) -> Array:
    """The weights of a group, which add up to its mass but for rounding or for the selector's own idea of them."""
    total = part.mean.mass
    return np.asarray(part.mean.weights * (mass / total) if total != 0 else part.mean.weights)
