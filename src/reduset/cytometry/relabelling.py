"""Relabellings: all ways in which the samples could have been labelled if the groups meant nothing, within blocks.

Of n samples in groups of n₁, n₂, … there are n!/(n₁!·n₂!·…) ways in each block; all of them where they are few, else as many as are
asked for, drawn at random. The labels that there are come first: a p-value counts them too, and is never 0 (Phipson & Smyth 2010).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from reduset._types import Indices
from reduset.cytometry.design import Design

MOST = 9_999


@dataclass(frozen=True)
class Relabellings:
    """Ways to label the samples.

    Attributes
    ----------
    codes : (B, n) the group of each sample, the true ones first
    count : in how many ways it could be done at all
    """

    codes: NDArray[np.int16] = field(repr=False)
    count: int

    @property
    def complete(self) -> bool:
        """Whether these are all."""
        return len(self.codes) == self.count

    def indicators(self, levels: int) -> NDArray[np.float64]:
        """(G − 1, B, n) 1 where a sample is in a group, of all groups but the first."""
        return np.stack([self.codes == level for level in range(1, levels)]).astype(np.float64)


def relabellings(design: Design, rng: np.random.Generator, most: int = MOST) -> Relabellings:
    """All of them, or ``most`` and the true one."""
    blocks = [np.flatnonzero(design.blocks == each) for each in np.unique(design.blocks)]
    count = prod(_ways(design.codes[rows]) for rows in blocks)
    if count <= most:
        choices = [_arrangements(design.codes[rows]) for rows in blocks]
        codes = np.empty((count, len(design.codes)), np.int16)
        for k, one in enumerate(product(*choices)):
            for rows, labels in zip(blocks, one, strict=True):
                codes[k, rows] = labels
        own = int(np.flatnonzero((codes == design.codes).all(axis=1))[0])
        codes[[0, own]] = codes[[own, 0]]
        return Relabellings(codes, count)
    codes = np.tile(design.codes.astype(np.int16), (most + 1, 1))
    for rows in blocks:
        codes[1:, rows] = rng.permuted(codes[1:, rows], axis=1)
    return Relabellings(codes, count)


def _ways(codes: Indices) -> int:
    """n!/(n₁!·n₂!·…)."""
    found, left = 1, len(codes)
    for each in np.bincount(codes):
        found *= comb(left, int(each))
        left -= int(each)
    return found


def _arrangements(codes: Indices) -> list[list[int]]:
    """All orders of some labels, each once."""

    def rest(counts: list[int], length: int) -> list[list[int]]:
        if length == 0:
            return [[]]
        found = []
        for label, left in enumerate(counts):
            if left:
                fewer = [*counts[:label], left - 1, *counts[label + 1 :]]
                found += [[label, *tail] for tail in rest(fewer, length - 1)]
        return found

    return rest(np.bincount(codes).tolist(), len(codes))
