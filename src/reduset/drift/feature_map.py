"""The coordinates of rows in which two samples are compared: projections onto the kernel functions of atoms, at several scales.

    φ_s(x) = P_sᵀ k_s(C, x),    δ = mean φ of the new rows − mean φ of the reference

P_s makes the coordinates of scale s orthonormal in the span and rotates them to the principal axes of the rows that it was fitted
to, with variances σⱼ². Statistics of kernel means are therefore weighted sums of squares of δ (`statistics`). Scores of
single columns follow the coordinates of the scales (`ColumnScores`). O(n·m) for the means of n rows, O(n·m·p) for single rows.
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
from reduset.drift.columns import ColumnBins, ColumnScores
from reduset.kernels import Gaussian

OCTAVES = (-1, 0, 1, 2, 3, 4)  # below the median distance
MAX_AXES = 96  # of one scale
RIDGE = 1e-6  # times the largest eigenvalue: added to the Gram matrix, and the limit below which axes of the rows are rounding
MIN_NEIGHBOURS = 2.0  # rows within reach of an atom, possibly including itself; finer scales have no information
BLOCK_ROWS = 4096


@dataclass(frozen=True)
class FeatureMap:
    """Coordinates at several scales, and of single columns.

    Attributes
    ----------
    scales : (d,) units of the columns.
    atoms : (m, d)
    octaves, bandwidths : (S,) the usable scales in octaves below the median distance, and their bandwidths.
    projections : S matrices (m, p_s).
    variances : (p,) variances of the coordinates, all scales one after the other.
    bins : The bins of the columns.
    scores : Scores of single columns. Their coordinates follow the coordinates of the scales. None if there are none.
    is_plain : True if only plain statistics are used, one for each scale.
    """

    scales: Array
    atoms: Array
    octaves: tuple[int, ...]
    bandwidths: Array
    projections: tuple[Array, ...]
    variances: Array
    bins: ColumnBins
    scores: ColumnScores | None = None
    is_plain: bool = False

    @classmethod
    def fitted(cls, rows: Floats, atoms: Array, scales: Array, width: float, bins: ColumnBins) -> FeatureMap:
        """Fitted to rows. They must not be rows of the comparison, unless the test permutes labels.

        Parameters
        ----------
        rows : (N, d)
        atoms : (m, d)
        scales : (d,)
        width : The median distance of rows, in units of the scales.
        bins : The bins of the columns. `with_scores` adds scores of single columns.
        """
        kept: list[tuple[int, float, Array, Array]] = []  # octave, bandwidth, projection, variances
        with single_threaded_blas():
            for octave in OCTAVES:
                kernel = Gaussian(width * 2.0**-octave, scales=scales)
                values = kernel.product_gram(rows, atoms)
                if kept and float(values.sum(axis=0).mean()) < MIN_NEIGHBOURS:
                    break
                projection, spread = _axes(kernel.product_gram(atoms, atoms), values)
                if not len(spread):
                    break
                kept.append((octave, kernel.width, projection, spread))
        if not kept:
            raise ValueError("rows must differ for a test of drift, got equal rows; compare constant values directly")
        octaves, widths, projections, variances = zip(*kept, strict=True)
        return cls(scales, atoms, octaves, np.asarray(widths), projections, np.concatenate(variances), bins)

    def stored(self) -> FeatureMap:
        """With projections rounded as in a file, so that a reference gives the same results before and after it is saved."""
        rounded = tuple(projection.astype(np.float32).astype(np.float64) for projection in self.projections)
        return replace(self, projections=rounded)

    def with_scores(self, shares: tuple[Array, ...]) -> FeatureMap:
        """The same with scores of single columns, fitted to the proportions of their bins."""
        return replace(self, scores=ColumnScores.of(shares))

    def plain_down_to(self, width: float) -> FeatureMap:
        """The same with plain statistics only, without scales below a bandwidth. The coarsest scale always stays."""
        count = max(int((self.bandwidths >= width * (1 - 1e-9)).sum()), 1)
        variances = self.variances[: self.parts[count - 1].stop]
        kept = (self.octaves[:count], self.bandwidths[:count], self.projections[:count], variances)
        return FeatureMap(self.scales, self.atoms, *kept, self.bins, is_plain=True)

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
        """One kernel for each scale."""
        return tuple(Gaussian(float(width), scales=self.scales) for width in self.bandwidths)

    @cached_property
    def parts(self) -> tuple[slice, ...]:
        """The coordinates of each scale."""
        ends = np.cumsum([0, *(projection.shape[1] for projection in self.projections)])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(ends))

    @property
    def median_part(self) -> slice:
        """The coordinates of the scale of the median distance, or of the only scale."""
        return self.parts[min(1, len(self.parts) - 1)]

    def mean(self, rows: Floats, weights: Array, shares: tuple[Array, ...] | None = None) -> Array:
        """(p,) Σ wᵢ φ(xᵢ). ``shares`` are the proportions of the bins of columns, if they are known."""
        sums = (kernel.product_sums(rows, weights, self.atoms, "auto") for kernel in self.kernels)
        means = [total @ projection for total, projection in zip(sums, self.projections, strict=True)]
        if self.scores is not None:
            means.append(self.scores.mean(self.bins.shares(rows, weights) if shares is None else shares))
        return np.concatenate(means)

    def rows(self, rows: Floats) -> Array:
        """(n, p) the coordinates of every row, for small numbers of rows."""
        coordinates = np.empty((len(rows), self.size))
        with single_threaded_blas():
            for kernel, projection, part in zip(self.kernels, self.projections, self.parts, strict=True):
                for a, b in blocks(len(rows), BLOCK_ROWS):
                    coordinates[a:b, part] = kernel.product_gram(rows[a:b], self.atoms) @ projection
        if self.scores is not None:
            coordinates[:, self.column_part] = self.scores.rows(self.bins, rows)
        return coordinates

    def by_block(self, rows: Floats) -> Iterator[tuple[int, int, Array]]:
        """The coordinates of rows, block by block."""
        for a, b in blocks(len(rows), BLOCK_ROWS):
            yield a, b, self.rows(rows[a:b])

    def covariance(self, rows: Floats) -> Array:
        """(p, p) covariance of the coordinates of rows, block by block."""
        origin = self.rows(rows[:1])[0]  # close to the mean, so that hardly any digits cancel
        total, square = np.zeros(self.size), np.zeros((self.size, self.size))
        for _, _, block in self.by_block(rows):
            block -= origin
            total += block.sum(axis=0)
            with single_threaded_blas():
                square += block.T @ block
        mean = total / len(rows)
        return np.asarray(square / len(rows) - np.outer(mean, mean))

    def less(self, differences: Array, errors: Array) -> Array:
        """Differences (…, p) shortened at every scale by the errors (S,) of the reference."""
        if not errors.any():
            return differences
        shortened = np.array(differences)
        for part, error in zip(self.parts, errors, strict=True):
            length = np.sqrt(np.square(differences[..., part]).sum(axis=-1, keepdims=True))
            shortened[..., part] *= np.maximum(1 - error / np.maximum(length, 1e-300), 0.0)
        return shortened


def column_units(rows: Floats, scales: str | None) -> Array:
    """(d,) units of the columns; 1 for ``scales=None``."""
    return np.ones(rows.shape[1]) if scales is None else bandwidth.column_scales(rows, rule=scales)


def median_distance(rows: Floats, scales: Array) -> float:
    """The median distance of different rows in units of the scales."""
    try:
        return bandwidth.median(rows, scales=scales)
    except ValueError as error:
        raise ValueError(
            "rows must differ by amounts within floating-point range, got rows that are equal or nearly equal; compare constant "
            "values directly, or rescale the columns"
        ) from error


def _axes(gram: Array, values: Array) -> tuple[Array, Array]:
    """The projection of kernel values at the atoms to the principal axes of the rows in the span, and the variances along these."""
    m = len(gram)
    ridge = RIDGE * float(gram.sum(axis=0).max())
    factor = cholesky(gram + ridge * np.eye(m), lower=True)
    coordinates = solve_triangular(factor, values.T, lower=True)
    coordinates -= coordinates.mean(axis=1, keepdims=True)
    spread, axes = eigh(coordinates @ coordinates.T / len(values))  # LAPACK can fail to compute only some eigenvectors
    spread, axes = spread[::-1][:MAX_AXES], axes[:, ::-1][:, :MAX_AXES]
    kept = spread > RIDGE * max(float(spread[0]), 1e-300)
    spread, axes = spread[kept], axes[:, kept]
    return np.ascontiguousarray(solve_triangular(factor, axes, lower=True, trans="T")), np.ascontiguousarray(spread)
