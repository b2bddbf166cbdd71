"""Pieces with shapes: normal laws in place of single atoms, and what a kernel sees of them.

An atom is a place c. A component is a normal law N(c, S) of places, S ⪰ 0, so that the bump of it is the kernel's own, widened:
with g = exp(−|z − z'|²) in the coordinates of the kernel's product,

    ⟨component, φ(·, q)⟩ / C = N(q; c, S + ½I) / N(0; 0, ½I),        ⟨i, j⟩ / C = N(cᵢ; cⱼ, Sᵢ + Sⱼ + ½I) / N(0; 0, ½I)

At another bandwidth the same law is seen by another kernel: components have an error at every scale, as atoms do. Wherever atoms
are an (m, d) array, `ComponentPieces` may stand: it has a length, and is cut by slices, masks and rows. O(d²) a pair, O(d³) between
components.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from reduset._engine import Components, Frame, blocks, component_sums
from reduset._types import Array, Floats, Report
from reduset.kernels import Gaussian, Kernel
from reduset.mean import KernelMean

OWN = 0.5  # the variance of the kernel's product in its own coordinates
ROWS_AT_ONCE = 1 << 18
NARROWEST, WIDEST = 1e-150, 1e150  # bandwidth


@dataclass(frozen=True)
class ComponentPieces:
    """Normal laws.

    Attributes
    ----------
    places : (m, d) their centres
    spreads : (m, d, d) their covariances, to which the kernel adds its own
    """

    places: Array
    spreads: Array

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, which: Any) -> ComponentPieces:
        return ComponentPieces(self.places[which], self.spreads[which])

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array of the centres, as that of atoms."""
        return self.places.shape

    def in_frame(self, frame: Frame) -> tuple[Array, Array]:
        """Centres (m, d) and covariances (m, d, d) in the coordinates of a frame."""
        return frame.apply(self.places), _mapped(self.spreads, frame.matrix)

    @classmethod
    def from_frame(cls, places: Array, spreads: Array, frame: Frame) -> ComponentPieces:
        """Those with these centres and covariances in the coordinates of a frame."""
        if np.ndim(frame.matrix) == 2:
            back: Any = np.linalg.inv(frame.matrix)
            return cls(places @ back + frame.centre, _mapped(spreads, back))
        return cls(places / frame.matrix + frame.centre, _mapped(spreads, 1 / np.asarray(frame.matrix)))

    def gram(self, kernel: Kernel) -> Array:
        """(m, m) products of the pieces with each other, over C."""
        z, spreads = self.in_frame(frame_of(kernel, self.places))
        half = spreads + OWN / 2 * np.eye(z.shape[1])
        side = Components(np.ones(len(z)), z, half, True)
        return side.products(z, half) * np.exp(side.log_unit - _log_peak(z.shape[1]))

    def sums(self, kernel: Kernel, weights: Array, queries: Floats) -> Array:
        """Σⱼ wⱼ ⟨component j, φ(·, q)⟩ / C for each query."""
        frame = frame_of(kernel, self.places)
        z, spreads = self.in_frame(frame)
        d = z.shape[1]
        values, log_unit = component_sums(frame.apply(queries), weights, z, spreads + OWN * np.eye(d), 0)
        return np.asarray(values[0] * np.exp(log_unit - _log_peak(d)))

    def kappa(self, full: KernelMean, report: Report | None = None) -> Array:
        """(m,) ⟨f, component⟩ / C: one pass over the rows of f."""
        frame = frame_of(full.kernel, full.atoms)
        z, spreads = self.in_frame(frame)
        d = z.shape[1]
        half, total = spreads + OWN / 2 * np.eye(d), np.zeros(len(z))
        for a, b in blocks(full.size, ROWS_AT_ONCE):
            if report is not None:
                report(a, full.size)
            some = Components(full.weights[a:b], frame.apply(full.atoms[a:b]), np.broadcast_to(OWN / 2, b - a), True)
            total += some.totals(z, half) * np.exp(some.log_unit - _log_peak(d))
        return total

    def damping(self, frequencies: Array, frame: Frame) -> tuple[Array, Array]:
        """Angles ω·z and the logarithm of what spreads leave of each wave, (s, m), for frequencies in the frame's coordinates."""
        z, spreads = self.in_frame(frame)
        d = z.shape[1]
        squares = (frequencies[:, :, None] * frequencies[:, None, :]).reshape(-1, d * d)
        return frequencies @ z.T, -0.5 * squares @ spreads.reshape(-1, d * d).T


Pieces: TypeAlias = Array | ComponentPieces  # atoms as they are, or laws


def frame_of(kernel: Kernel, points: Floats) -> Frame:
    """The coordinates in which the product of a Gaussian is exp(−|z − z'|²)."""
    if not isinstance(kernel, Gaussian):
        raise TypeError(
            f"only a Gaussian kernel sees components in closed form, got {kernel!r}; use pieces='atoms', or Gaussian(h)"
        )
    return kernel.frame(points, kernel.product(points.shape[1]))


def own_covariance(kernel: Gaussian, dimension: int) -> Array:
    """(d, d) covariance of the kernel's bump, as a density."""
    if not NARROWEST < kernel.width < WIDEST:
        raise ValueError(
            f"bandwidth must lie between {NARROWEST:g} and {WIDEST:g} for components, whose variance it makes, got {kernel!r}; "
            "multiply the points and the bandwidth by the same number, which changes nothing"
        )
    unit = kernel.unit_covariance
    return kernel.width**2 * (np.eye(dimension) if unit is None else unit)


def _mapped(spreads: Array, matrix: Any) -> Array:
    """Covariances after the map x → x·matrix, by a number, a number a column, or a matrix."""
    if np.ndim(matrix) < 2:
        return np.asarray(spreads * np.multiply.outer(matrix, matrix))
    return np.asarray(matrix.T @ spreads @ matrix)


def gram_of(kernel: Kernel, pieces: Pieces) -> Array:
    """(m, m) products of pieces with each other, over C."""
    return pieces.gram(kernel) if isinstance(pieces, ComponentPieces) else kernel.product_gram(pieces, pieces)


def sums_of(kernel: Kernel, pieces: Pieces, weights: Array, queries: Floats) -> Array:
    """⟨g, φ(·, q)⟩ / C at each query, g the sum of the pieces by these weights."""
    if isinstance(pieces, ComponentPieces):
        return pieces.sums(kernel, weights, queries)
    return kernel.product_sums(pieces, weights, queries)


def own_sums_of(kernel: Kernel, pieces: Pieces, weights: Array) -> Array:
    """⟨g, piece⟩ / C for each piece."""
    if isinstance(pieces, ComponentPieces):
        return np.asarray(pieces.gram(kernel) @ weights)
    return kernel.product_sums(pieces, weights, pieces)


def kappa_of(full: KernelMean, pieces: Pieces, report: Report | None = None) -> Array:
    """(m,) ⟨f, piece⟩ / C: one pass over f."""
    if isinstance(pieces, ComponentPieces):
        return pieces.kappa(full, report)
    return full.kernel.product_sums(full.atoms, full.weights, pieces)


def _log_peak(dimension: int) -> float:
    """log N(0; 0, ½I)."""
    return -0.5 * dimension * float(np.log(2 * np.pi * OWN))
