"""Components instead of single atoms, and their inner products under a kernel.

An atom is a point c. A component is a normal distribution N(c, S) of points, with S ⪰ 0. Its kernel mean is a wider Gaussian: with
g = exp(−|z − z'|²) in the coordinates of the kernel's product,

    ⟨component, φ(·, q)⟩ / C = N(q; c, S + ½I) / N(0; 0, ½I),        ⟨i, j⟩ / C = N(cᵢ; cⱼ, Sᵢ + Sⱼ + ½I) / N(0; 0, ½I)

S does not depend on the bandwidth, so components have an error at every scale, as atoms have. `ComponentPieces` can replace an
(m, d) array of atoms: it has a length, and supports slices, masks and rows. Each pair with a point costs O(d²), each pair of
components O(d³).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from reduset._engine import Components, Frame, blocks, component_sums
from reduset._types import Array, Floats, Report
from reduset.kernels import Gaussian, Kernel
from reduset.mean import KernelMean

OWN = 0.5  # the variance of the kernel's product, in the coordinates of the product
ROWS_AT_ONCE = 1 << 18
MIN_BANDWIDTH, MAX_BANDWIDTH = 1e-150, 1e150  # so that variances are finite and above 0


@dataclass(frozen=True)
class ComponentPieces:
    """Normal distributions.

    Attributes
    ----------
    places : (m, d) centres
    spreads : (m, d, d) covariances, without the covariance that the kernel adds
    """

    places: Array
    spreads: Array

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: Any) -> ComponentPieces:
        return ComponentPieces(self.places[rows], self.spreads[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of centres."""
        return self.places.shape

    def in_frame(self, frame: Frame) -> tuple[Array, Array]:
        """Centres (m, d) and covariances (m, d, d) in the coordinates of a frame."""
        return frame.apply(self.places), _mapped(self.spreads, frame.matrix)

    @classmethod
    def from_frame(cls, centres: Array, spreads: Array, frame: Frame) -> ComponentPieces:
        """Components from centres and covariances in the coordinates of a frame."""
        if np.ndim(frame.matrix) == 2:
            inverse: Any = np.linalg.inv(frame.matrix)
            return cls(centres @ inverse + frame.centre, _mapped(spreads, inverse))
        return cls(centres / frame.matrix + frame.centre, _mapped(spreads, 1 / np.asarray(frame.matrix)))

    def gram(self, kernel: Kernel) -> Array:
        """(m, m) inner products of all pairs of components, divided by C."""
        z, spreads = self.in_frame(frame_of(kernel, self.places))
        half = spreads + OWN / 2 * np.eye(z.shape[1])
        components = Components(np.ones(len(z)), z, half, True)
        return components.products(z, half) * np.exp(components.log_unit - _log_peak(z.shape[1]))

    def sums(self, kernel: Kernel, weights: Array, queries: Floats) -> Array:
        """Σⱼ wⱼ ⟨component j, φ(·, q)⟩ / C for each query q."""
        frame = frame_of(kernel, self.places)
        z, spreads = self.in_frame(frame)
        d = z.shape[1]
        values, log_unit = component_sums(frame.apply(queries), weights, z, spreads + OWN * np.eye(d), 0)
        return np.asarray(values[0] * np.exp(log_unit - _log_peak(d)))

    def kappa(self, full: KernelMean, report: Report | None = None) -> Array:
        """(m,) ⟨f, component⟩ / C, by one pass over the rows of f."""
        frame = frame_of(full.kernel, full.atoms)
        z, spreads = self.in_frame(frame)
        d = z.shape[1]
        half, total = spreads + OWN / 2 * np.eye(d), np.zeros(len(z))
        for a, b in blocks(full.size, ROWS_AT_ONCE):
            if report is not None:
                report(a, full.size)
            part = Components(full.weights[a:b], frame.apply(full.atoms[a:b]), np.broadcast_to(OWN / 2, b - a), True)
            total += part.totals(z, half) * np.exp(part.log_unit - _log_peak(d))
        return total

    def damping(self, frequencies: Array, frame: Frame) -> tuple[Array, Array]:
        """(s, m) angles ω·z and log-damping −½ωᵀSω of each component, for frequencies in the frame's coordinates."""
        z, spreads = self.in_frame(frame)
        d = z.shape[1]
        squares = (frequencies[:, :, None] * frequencies[:, None, :]).reshape(-1, d * d)
        return frequencies @ z.T, -0.5 * squares @ spreads.reshape(-1, d * d).T


Pieces: TypeAlias = Array | ComponentPieces  # atoms or components


def frame_of(kernel: Kernel, points: Floats) -> Frame:
    """Coordinates in which the product of a Gaussian kernel is exp(−|z − z'|²)."""
    if not isinstance(kernel, Gaussian):
        raise TypeError(f"kernel must be a Gaussian for components, got {kernel!r}; use pieces='atoms', or Gaussian(h)")
    return kernel.frame(points, kernel.product(points.shape[1]))


def own_covariance(kernel: Gaussian, dimension: int) -> Array:
    """(d, d) covariance of the kernel function as a density."""
    if not MIN_BANDWIDTH < kernel.width < MAX_BANDWIDTH:
        raise ValueError(
            f"bandwidth must lie between {MIN_BANDWIDTH:g} and {MAX_BANDWIDTH:g} for components, got {kernel!r}; "
            "multiply the points and the bandwidth by the same number"
        )
    unit = kernel.unit_covariance
    return kernel.width**2 * (np.eye(dimension) if unit is None else unit)


def _mapped(spreads: Array, matrix: Any) -> Array:
    """Covariances after the map x → x·matrix, for a number, a number for each column, or a matrix."""
    if np.ndim(matrix) < 2:
        return np.asarray(spreads * np.multiply.outer(matrix, matrix))
    return np.asarray(matrix.T @ spreads @ matrix)


def _log_peak(dimension: int) -> float:
    """log N(0; 0, ½I)."""
    return -0.5 * dimension * float(np.log(2 * np.pi * OWN))
