"""The design of a comparison: the groups of the samples, the nuisance variables, and the relabellings of permutation tests.

With indicators X of all groups but the first and nuisance Z (a constant, blocks, covariates, batches), the values of a population
are modelled as Zγ + Xβ. Blocks (patients with several samples) are part of Z, and labels are exchanged only within blocks.

Under the null hypothesis the labels are exchangeable within blocks. n samples in groups of n₁, n₂, … have n!/(n₁!·n₂!·…) labellings
in each block. All are used if they are few, otherwise random ones. The true labels come first and count as one labelling, so a
p-value is never 0 (Phipson & Smyth 2010).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import factorial, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from reduset._types import Array, Indices
from reduset._validate import missing

MIN_GROUP_SAMPLES = 2
RANK_TOLERANCE = 1e-9
MAX_RELABELLINGS = 9_999


class DesignError(ValueError):
    """The samples cannot be compared in this way."""


@dataclass(frozen=True)
class Design:
    """The design of a comparison.

    Attributes
    ----------
    name : Name of the labels, such as "condition".
    levels : The G groups. The first is the reference.
    rows : Indices of the samples that have a group, (n,).
    codes : Group of each of these samples, (n,).
    blocks : Block of each of these samples, (n,); all 0 without blocks.
    nuisance : Nuisance variables that are held fixed, (n, q), of full rank.
    adjusted : Names of the covariates and batches among the nuisance variables.
    notes : Remarks.
    is_confounded : Whether groups and batches are confounded.
    """

    name: str
    levels: tuple[str, ...]
    rows: Indices
    codes: Indices
    blocks: Indices
    nuisance: Array = field(repr=False)
    adjusted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_confounded: bool = False

    @property
    def counts(self) -> Indices:
        """(G,) samples of each group."""
        return np.bincount(self.codes, minlength=len(self.levels))

    @property
    def is_blocked(self) -> bool:
        """Whether labels are exchanged within blocks."""
        return bool(self.blocks.any())

    @property
    def freedom(self) -> int:
        """Residual degrees of freedom."""
        return len(self.codes) - self.nuisance.shape[1] - len(self.levels) + 1


def design_of(
    labels: Sequence[Any],
    name: str = "condition",
    *,
    block: Sequence[Any] | None = None,
    covariates: Mapping[str, Sequence[Any]] | None = None,
    batch: Sequence[Any] | None = None,
    first: str | None = None,
) -> Design:
    """The design of a comparison; raises `DesignError` if it cannot be tested.

    Parameters
    ----------
    labels : Group of each sample, (N,), texts or numbers. Samples with None or nan are omitted.
    name : Name of the labels.
    block : Block of each sample, (N,), such as the patient. Samples are compared within blocks.
    covariates : Covariates by name, (N,) numbers, or texts as categories.
    batch : Run of each sample, (N,). It is held fixed like a covariate if groups and batches are not confounded.
    first : Reference group; by default the first in the order of numbers, or of the alphabet.
    """
    known = [k for k, label in enumerate(labels) if not missing(label)]
    rows = np.array(known, np.int64)
    texts = [_text(labels[row]) for row in known]
    notes = [] if len(rows) == len(labels) else [f"{len(labels) - len(rows)} samples without {name} are not compared"]
    levels = _levels(texts, name, None if first is None else _text(first))
    codes = np.array([levels.index(text) for text in texts], np.int64)
    blocks = np.zeros(len(rows), np.int64) if block is None else _blocks([block[row] for row in known], codes, name)
    parts, adjusted = [np.ones((len(rows), 1)), _indicators(blocks)], []
    for title, values in (covariates or {}).items():
        parts.append(_covariate(title, [values[row] for row in known]))
        adjusted.append(title)
    effect = _indicators(codes)
    is_confounded = False
    if batch is not None:
        absent = sum(missing(batch[row]) for row in known)
        if absent:
            notes.append(f"{absent} samples without batch form one more batch")
        runs = _indicators(_classes([None if missing(batch[row]) else batch[row] for row in known]))
        is_confounded = not _is_identified(np.hstack([*parts, runs]), effect)
        if is_confounded:
            notes.append(f"{name} and batch are confounded: a difference may be due to either")
        else:
            parts.append(runs)
            adjusted.append("batch")
    nuisance = _independent(np.hstack(parts))
    if not _is_identified(nuisance, effect):
        held = ", ".join([*(["blocks"] if block is not None else []), *adjusted])
        raise DesignError(f"{name} is confounded with {held}, which determine the group of each sample; omit some of them")
    design = Design(name, levels, rows, codes, blocks, nuisance, tuple(adjusted), tuple(notes), is_confounded)
    if design.freedom < 1:
        raise DesignError(
            f"{len(rows)} samples leave no residual degrees of freedom with {nuisance.shape[1]} nuisance variables and "
            f"{len(levels)} groups; omit covariates or blocks, or measure more samples"
        )
    return design


def _levels(texts: Sequence[str], name: str, first: str | None) -> tuple[str, ...]:
    levels = sorted(set(texts), key=_in_order)
    if len(levels) < 2:
        raise DesignError(f"{name} must have at least two groups, got {', '.join(levels) or 'none'}; name another column")
    if first is not None:
        if first not in levels:
            raise DesignError(f"the reference must be a group of {name}, got {first!r}; there are {', '.join(levels)}")
        levels = [first, *(level for level in levels if level != first)]
    single = [level for level in levels if texts.count(level) < MIN_GROUP_SAMPLES]
    if single:
        raise DesignError(
            f"{name} has a single sample in {', '.join(single[:5])}, so that the variation within this group is unknown; omit the "
            "sample (an empty cell), or join the group with another one"
        )
    return tuple(levels)


def _text(label: Any) -> str:
    """A label as text; whole numbers without a point, however they were stored."""
    return str(int(label)) if isinstance(label, float | np.floating) and float(label).is_integer() else str(label)


def _in_order(level: str) -> tuple[float, str]:
    """Numbers by size, then texts by the alphabet."""
    try:
        return float(level), level
    except ValueError:
        return float("inf"), level


def _blocks(block: Sequence[Any], codes: Indices, name: str) -> Indices:
    absent = sum(map(missing, block))
    if absent:
        raise DesignError(f"every sample that is compared must have a block, {absent} have none; fill them in")
    blocks = _classes(block)
    if not any(len(set(codes[blocks == number].tolist())) > 1 for number in range(blocks.max() + 1)):
        raise DesignError(f"no block has samples of two groups of {name}, so nothing can be compared within blocks; omit blocks")
    return blocks


def _covariate(title: str, values: Sequence[Any]) -> Array:
    if any(map(missing, values)):
        raise DesignError(f"every sample that is compared must have covariate {title}; fill it in, or omit it")
    try:
        numbers = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        return _indicators(_classes(values))
    if not np.isfinite(numbers).all():
        raise DesignError(f"covariate {title} must be finite for every sample, got {numbers[~np.isfinite(numbers)][0]}")
    spread = numbers.std()
    return ((numbers - numbers.mean()) / (spread if spread > 0 else 1.0))[:, None]


def _classes(values: Sequence[Any]) -> Indices:
    """Texts as numbers from 0."""
    return np.asarray(np.unique(np.array([_text(value) for value in values]), return_inverse=True)[1], np.int64)


def _indicators(codes: Indices) -> Array:
    """Columns of 0 and 1 for all classes but the first."""
    return (codes[:, None] == np.arange(1, codes.max() + 1)).astype(np.float64)


def _independent(columns: Array) -> Array:
    """A largest set of linearly independent columns."""
    _, r, order = qr(columns, mode="economic", pivoting=True)
    size = np.abs(r.diagonal())
    return columns[:, np.sort(order[: int(np.sum(size > RANK_TOLERANCE * size[0]))])]


def _is_identified(nuisance: Array, effect: Array) -> bool:
    """Whether no part of the effect lies in the span of the nuisance variables."""
    rank = np.linalg.matrix_rank(np.hstack([nuisance, effect]), tol=1e-8)
    return bool(rank == np.linalg.matrix_rank(nuisance, tol=1e-8) + effect.shape[1])


@dataclass(frozen=True)
class Relabellings:
    """Labellings of the samples.

    Attributes
    ----------
    codes : Group of each sample under each labelling, (B, n), the true labels first.
    count : Number of all possible labellings.
    """

    codes: NDArray[np.int16] = field(repr=False)
    count: int

    def indicators(self, levels: int) -> NDArray[np.float64]:
        """(G − 1, B, n) 1 for a sample in a group, for all groups but the first."""
        return np.stack([self.codes == level for level in range(1, levels)]).astype(np.float64)


def relabellings(design: Design, rng: np.random.Generator, limit: int = MAX_RELABELLINGS) -> Relabellings:
    """All labellings, or ``limit`` random ones and the true one."""
    blocks = [np.flatnonzero(design.blocks == number) for number in np.unique(design.blocks)]
    count = prod(factorial(len(rows)) // prod(map(factorial, np.bincount(design.codes[rows]).tolist())) for rows in blocks)
    if count <= limit:
        choices = [_arrangements(design.codes[rows]) for rows in blocks]
        codes = np.empty((count, len(design.codes)), np.int16)
        for k, arrangement in enumerate(product(*choices)):
            for rows, labels in zip(blocks, arrangement, strict=True):
                codes[k, rows] = labels
        true = int(np.flatnonzero((codes == design.codes).all(axis=1))[0])
        codes[[0, true]] = codes[[true, 0]]
        return Relabellings(codes, count)
    codes = np.tile(design.codes.astype(np.int16), (limit + 1, 1))
    for rows in blocks:
        codes[1:, rows] = rng.permuted(codes[1:, rows], axis=1)
    return Relabellings(codes, count)


def _arrangements(codes: Indices) -> list[list[int]]:
    """All distinct orders of these labels."""

    def orders(counts: list[int]) -> list[list[int]]:
        if not any(counts):
            return [[]]
        return [
            [label, *rest]
            for label, count in enumerate(counts)
            if count
            for rest in orders([*counts[:label], count - 1, *counts[label + 1 :]])
        ]

    return orders(np.bincount(codes).tolist())
