"""The design of a comparison: the groups of the samples, and what is held fixed while they are compared.

With indicators X of all groups but the first and nuisance Z (a constant, blocks, covariates, batches) a population's values are
modelled as Zγ + Xβ. Blocks (patients with several samples) are part of Z, and labels are exchanged only within them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import qr

from reduset._types import Array, Indices
from reduset._validate import missing

FEWEST = 2  # samples of a group
RANK = 1e-9


class DesignError(ValueError):
    """What is to be compared cannot be."""


@dataclass(frozen=True)
class Design:
    """What is compared.

    Attributes
    ----------
    name : of what is compared, "condition"
    levels : its G groups; the first is what the others are compared with
    rows : (n,) the samples that have a group, among all
    codes : (n,) the group of each
    blocks : (n,) the block of each, all 0 without blocks
    nuisance : (n, q) what is held fixed, of full rank
    adjusted : the names of covariates and batches among it
    notes : what there is to say of it
    """

    name: str
    levels: tuple[str, ...]
    rows: Indices
    codes: Indices
    blocks: Indices
    nuisance: Array = field(repr=False)
    adjusted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> Indices:
        """(G,) how many samples each group has."""
        return np.bincount(self.codes, minlength=len(self.levels))

    @property
    def is_blocked(self) -> bool:
        """Whether labels are exchanged within blocks."""
        return bool(self.blocks.any())

    @property
    def freedom(self) -> int:
        """Degrees of freedom that are left of the samples."""
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
    """The design of a comparison, looked at before anything is computed.

    Parameters
    ----------
    labels : (N,) the group of each sample, texts or numbers; None or nan for samples that are left out
    name : of the labels
    block : (N,) patients, say, whose samples are compared with each other
    covariates : by name (N,) numbers, or texts that are taken as categories
    batch : (N,) the run of each sample, held fixed like a covariate where groups and batches can be told apart
    first : the group that the others are compared with; the first in the order of numbers, or of the alphabet, if not given
    """
    given = [k for k, each in enumerate(labels) if not missing(each)]
    rows = np.array(given, np.int64)
    told = [_text(labels[row]) for row in given]
    notes = [] if len(rows) == len(labels) else [f"{len(labels) - len(rows)} samples without {name} are not compared"]
    levels = _levels(told, name, None if first is None else _text(first))
    codes = np.array([levels.index(each) for each in told], np.int64)
    blocks = np.zeros(len(rows), np.int64) if block is None else _blocks([block[row] for row in given], codes, name)
    parts, adjusted = [np.ones((len(rows), 1)), _indicators(blocks)], []
    for title, values in (covariates or {}).items():
        parts.append(_covariate(title, [values[row] for row in given]))
        adjusted.append(title)
    effect = _indicators(codes)
    if batch is not None:
        runs = _indicators(_runs([batch[row] for row in given], notes))
        if _told_apart(np.hstack([*parts, runs]), effect):
            parts.append(runs)
            adjusted.append("batch")
        else:
            notes.append(f"{name} and batch cannot be told apart: what is found may be either")
    nuisance = _independent(np.hstack(parts))
    if not _told_apart(nuisance, effect):
        held = ", ".join([*(["blocks"] if block is not None else []), *adjusted])
        raise DesignError(f"{name} cannot be told apart from {held}: they fix the group of each sample; leave some of them out")
    design = Design(name, levels, rows, codes, blocks, nuisance, tuple(adjusted), tuple(notes))
    if design.freedom < 1:
        raise DesignError(
            f"{len(rows)} samples leave nothing to judge chance by: {nuisance.shape[1]} numbers are held fixed and "
            f"{len(levels)} groups compared; leave covariates or blocks out, or measure more samples"
        )
    return design


def _levels(told: Sequence[str], name: str, first: str | None) -> tuple[str, ...]:
    levels = sorted(set(told), key=_in_order)
    if len(levels) < 2:
        raise DesignError(f"{name} must have at least two groups, got {', '.join(levels) or 'none'}; name another column")
    if first is not None:
        if first not in levels:
            raise DesignError(f"the reference must be a group of {name}, got {first!r}; there are {', '.join(levels)}")
        levels = [first, *(each for each in levels if each != first)]
    alone = [level for level in levels if told.count(level) < FEWEST]
    if alone:
        raise DesignError(
            f"{name} has a single sample in {', '.join(alone[:5])}: nothing says how much samples of that group differ; "
            "leave it out (an empty cell), or join it with another group"
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
    absent = sum(missing(each) for each in block)
    if absent:
        raise DesignError(f"blocks must be there for every sample that is compared, {absent} have none; fill them in")
    found = _classes(block)
    if not any(len(set(codes[found == each].tolist())) > 1 for each in range(found.max() + 1)):
        raise DesignError(
            f"no block has samples of two groups of {name}, so nothing can be compared within blocks; leave blocks out"
        )
    return found


def _covariate(title: str, values: Sequence[Any]) -> Array:
    if any(missing(each) for each in values):
        raise DesignError(f"covariate {title} must be there for every sample that is compared; fill it in, or leave it out")
    try:
        numbers = np.array([float(each) for each in values])
    except (TypeError, ValueError):
        return _indicators(_classes(values))
    if not np.isfinite(numbers).all():
        raise DesignError(f"covariate {title} must be finite for every sample, got {numbers[~np.isfinite(numbers)][0]}")
    spread = numbers.std()
    return ((numbers - numbers.mean()) / (spread if spread > 0 else 1.0))[:, None]


def _runs(batch: Sequence[Any], notes: list[str]) -> Indices:
    absent = sum(missing(each) for each in batch)
    if absent:
        notes.append(f"{absent} samples without batch are taken as one batch more")
    return _classes([None if missing(each) else each for each in batch])


def _classes(values: Sequence[Any]) -> Indices:
    """Texts as numbers from 0 on."""
    return np.asarray(np.unique(np.array([_text(each) for each in values]), return_inverse=True)[1], np.int64)


def _indicators(codes: Indices) -> Array:
    """Columns of 0 and 1 for all classes but the first."""
    return (codes[:, None] == np.arange(1, codes.max() + 1)).astype(np.float64)


def _independent(columns: Array) -> Array:
    """As many of the columns as are independent."""
    _, r, order = qr(columns, mode="economic", pivoting=True)
    size = np.abs(r.diagonal())
    return columns[:, np.sort(order[: int(np.sum(size > RANK * size[0]))])]


def _told_apart(nuisance: Array, effect: Array) -> bool:
    """Whether no part of the effect lies in what is held fixed."""
    whole = np.linalg.matrix_rank(np.hstack([nuisance, effect]), tol=1e-8)
    return bool(whole == np.linalg.matrix_rank(nuisance, tol=1e-8) + effect.shape[1])
