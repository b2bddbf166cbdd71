"""Coordinates of a row in the span of few atoms' kernels, at several scales at once, in which two samples are compared.

    φ_s(x) = P_sᵀ k_s(C, x),    δ = mean φ of the new rows − mean φ of the reference

P_s makes the coordinates of scale s orthonormal in the span and turns them to the principal axes of the rows it was shaped by, with
variances σⱼ². So statistics of kernel means are weighted sums of squares of δ (`kernel_statistics`). Scores of single columns
follow the coordinates of the scales (`column_scores`). O(n·m) for the means of n rows, O(n·m·p) for rows one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from reduset import bandwidth
from reduset._engine import blocks, cached_property, single_threaded_blas
from reduset._types import Array, Floats
from reduset.drift.column_scores import ColumnScores
from reduset.drift.columns import ColumnBins
from reduset.kernels import Gaussian

OCTAVES = (-1, 0, 1, 2, 3, 4)  # below the median distance
MOST_AXES = 96  # of one scale
DEPENDENT = 1e-6  # of the largest eigenvalue: what is added to those of the span, and below which axes of the rows are rounding
NEIGHBOURS = 2.0  # rows that an atom sees, itself perhaps among them: a scale at which it sees fewer tells nothing
ROWS_A_BLOCK = 4096


@dataclass(frozen=True)
class FeatureMap:
    """Coordinates at several scales, and of single columns.

    Attributes
    ----------
    scales : (d,) what columns are divided by
    atoms : (m, d)
    octaves, bandwidths : (S,) the scales that rows can be told apart at, and how wide they are
    projections : S matrices (m, p_s)
    variances : (p,) of the coordinates, all scales one after the other
    is_plain : whether only plain statistics are used, one a scale
    scores : scores of single columns, whose coordinates follow those of the scales; None where there are none
    """

    scales: Array
    atoms: Array
    octaves: tuple[int, ...]
    bandwidths: Array
    projections: tuple[Array, ...]
    variances: Array
    is_plain: bool = False
    scores: ColumnScores | None = None

    @classmethod
    def shaped(cls, rows: Floats, atoms: Array, scales: Array, width: float) -> FeatureMap:
        """By these rows, which are not to be those that are compared, unless they are told apart by a permutation.

        Parameters
        ----------
        rows : (N, d); atoms : (m, d); scales : (d,)
        width : the median distance of rows, in units of the scales
        """
        kept: list[int] = []
        widths, projections, variances = [], [], []
        with single_threaded_blas():
            for octave in OCTAVES:
                kernel = Gaussian(width * 2.0**-octave, scales=scales)
                values = kernel.product_gram(rows, atoms)
                if kept and float(values.sum(axis=0).mean()) < NEIGHBOURS:
                    break
                projection, spread = _axes(kernel.product_gram(atoms, atoms), values)
                if not len(spread):
                    break
                kept.append(octave)
                widths.append(kernel.width)
                projections.append(projection)
                variances.append(spread)
        if not kept:
            raise ValueError(
                "rows must differ for a change to be seen, got rows that are all alike; compare what is constant by eye"
            )
        return cls(scales, atoms, tuple(kept), np.asarray(widths), tuple(projections), np.concatenate(variances))

    def stored(self) -> FeatureMap:
        """With projections as a file keeps them, so that a reference gives the same answers before and after it is saved."""
        return replace(self, projections=tuple(each.astype(np.float32).astype(np.float64) for each in self.projections))

    def with_columns(self, bins: ColumnBins, shares: tuple[Array, ...]) -> FeatureMap:
        """The same with scores of single columns, shaped by the shares of their bins."""
        return replace(self, scores=ColumnScores.of(bins, shares))

    def plain(self) -> FeatureMap:
        """The same with plain statistics alone."""
        return replace(self, is_plain=True)

    def down_to(self, width: float) -> FeatureMap:
        """The same without scales finer than this, but for the coarsest."""
        count = max(int((self.bandwidths >= width * (1 - 1e-9)).sum()), 1)
        ends = self.parts[count - 1].stop
        return FeatureMap(
            self.scales, self.atoms, self.octaves[:count], self.bandwidths[:count], self.projections[:count], self.variances[:ends]
        )

    @property
    def size(self) -> int:
        """The number p of coordinates, of all scales and columns together."""
        return len(self.variances) + (0 if self.scores is None else self.scores.size)

    @property
    def column_part(self) -> slice:
        """The coordinates of single columns, the last ones."""
        return slice(len(self.variances), self.size)

    @cached_property
    def kernels(self) -> tuple[Gaussian, ...]:
        """One a scale."""
        return tuple(Gaussian(float(width), scales=self.scales) for width in self.bandwidths)

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The coordinates of each scale."""
        ends = np.cumsum([0, *(projection.shape[1] for projection in self.projections)])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @property
    def median_part(self) -> slice:
        """The coordinates of the scale of the median distance; of the only one, where there is no other."""
        return self.parts[min(1, len(self.parts) - 1)]

    def mean(self, rows: Floats, weights: Array, shares: tuple[Array, ...] | None = None) -> Array:
        """(p,) Σ wᵢ φ(xᵢ); ``shares`` are those of the bins of columns, where they are known."""
        sums = (kernel.product_sums(rows, weights, self.atoms, "auto") for kernel in self.kernels)
        means = [total @ projection for total, projection in zip(sums, self.projections, strict=True)]
        if self.scores is not None:
            means.append(self.scores.mean(self.scores.bins.shares(rows, weights) if shares is None else shares))
        return np.concatenate(means)

    def rows(self, rows: Floats) -> Array:
        """(n, p) the coordinates of every row; for few of them."""
        found = np.empty((len(rows), self.size))
        with single_threaded_blas():
            for kernel, projection, part in zip(self.kernels, self.projections, self.parts, strict=True):
                for a, b in blocks(len(rows), ROWS_A_BLOCK):
                    found[a:b, part] = kernel.product_gram(rows[a:b], self.atoms) @ projection
        if self.scores is not None:
            found[:, self.column_part] = self.scores.rows(rows)
        return found

    def by_block(self, rows: Floats) -> Iterator[tuple[int, int, Array]]:
        """The coordinates of rows, block by block."""
        for a, b in blocks(len(rows), ROWS_A_BLOCK):
            yield a, b, self.rows(rows[a:b])

    def covariance(self, rows: Floats) -> Array:
        """(p, p) of the coordinates of rows, block by block."""
        origin = self.rows(rows[:1])[0]  # near the mean, so that few digits cancel
        total, square = np.zeros(self.size), np.zeros((self.size, self.size))
        for _, _, block in self.by_block(rows):
            block -= origin
            total += block.sum(axis=0)
            with single_threaded_blas():
                square += block.T @ block
        mean = total / len(rows)
        return np.asarray(square / len(rows) - np.outer(mean, mean))

    def less(self, differences: Array, errors: Array) -> Array:
        """Differences (…, p) shortened at every scale by what (S,) they may be off by."""
        if not errors.any():
            return differences
        found = np.array(differences)
        for part, error in zip(self.parts, errors, strict=True):
            length = np.sqrt(np.square(differences[..., part]).sum(axis=-1, keepdims=True))
            found[..., part] *= np.maximum(1 - error / np.maximum(length, 1e-300), 0.0)
        return found

    def distances(self, difference: Array) -> Array:
        """(S,) the distance of the means at each scale, as far as the span sees it."""
        return np.asarray([np.sqrt(np.square(difference[part]).sum()) for part in self.parts])


def column_units(rows: Floats, scales: str | None) -> Array:
    """(d,) what columns are divided by: 1 where nothing was asked for."""
    return np.ones(rows.shape[1]) if scales is None else bandwidth.column_scales(rows, rule=scales)


def median_distance(rows: Floats, scales: Array) -> float:
    """The median distance of different rows in units of the scales."""
    try:
        return bandwidth.median(rows, scales=scales)
    except ValueError as error:
        raise ValueError(
            "the rows that are compared must differ, and by no more than numbers can tell: these are all alike, or nearly so; look "
            "at what is constant itself, or rescale the columns"
        ) from error


def _axes(gram: Array, values: Array) -> tuple[Array, Array]:
    """The projection of kernel values at the atoms to the principal axes of the rows in the span, and the variances along them."""
    m = len(gram)
    ridge = DEPENDENT * float(gram.sum(axis=0).max())
    factor = cholesky(gram + ridge * np.eye(m), lower=True)
    coordinates = solve_triangular(factor, values.T, lower=True)
    coordinates -= coordinates.mean(axis=1, keepdims=True)
    spread, turned = eigh(coordinates @ coordinates.T / len(values))  # all of them: for a part LAPACK can fail
    spread, turned = spread[::-1][:MOST_AXES], turned[:, ::-1][:, :MOST_AXES]
    told = spread > DEPENDENT * max(float(spread[0]), 1e-300)
    spread, turned = spread[told], turned[:, told]
    return np.ascontiguousarray(solve_triangular(factor, turned, lower=True, trans="T")), np.ascontiguousarray(spread)
