"""Mean-shift steps on a density: where a step leads, how long it is, how high one stands.

    y ← Σᵢ aᵢ tᵢ / Σᵢ aᵢ,    aᵢ = wᵢ φ(y, tᵢ)                          bumps of one width (Comaniciu & Meer 2002)
    y ← (Σᵢ aᵢ Hᵢ⁻¹)⁻¹ Σᵢ aᵢ Hᵢ⁻¹ tᵢ,    aᵢ = wᵢ N(y; tᵢ, Hᵢ)         components of their own (Comaniciu, Ramesh & Meer 2001)

Each step goes uphill where no weight is negative: exp(−u/2) is convex in u, so that, with |z|ᵢ² = zᵀHᵢ⁻¹z, f(x) is nowhere below
f(y) − ½ Σ aᵢ (|x − tᵢ|ᵢ² − |y − tᵢ|ᵢ²), whose top is the step's end. f rises by at least ½ Σ aᵢ |x − y|ᵢ² on the way there,
whatever the covariances, and no step needs to be tried or shortened. A step costs O(m·d), O(m·d²) where covariances are full.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from reduset._engine import (
    SQUARED,
    DevicePoints,
    Frame,
    as_diagonal,
    blocks,
    build_leaves,
    component_sums,
    from_lower_rows,
    gradient_sums,
    is_shared,
    log_peaks,
    nearest,
    on_device,
    to_device_of,
    to_numpy,
)
from reduset._types import Array, Floats
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.mixture.covariances import inverses, solved

FAINT = 1e-33  # of the mass: below, single precision has lost the density, and the nearest atom is where a step leads
UNDERFLOW = 1e-200  # of the highest peak: below, contributions are compared by their logarithms
ROOM = 1 << 20  # numbers of a block of points from afar
FARTHEST = 1e300  # a depth: beyond, squares overflow


class MeanShiftStep(NamedTuple):
    """A mean-shift step of many points: where it leads, how high each stood (in some unit), and its length in bandwidths."""

    there: Array
    height: Array
    length: Array


class AscentDensity(Protocol):
    """A density with its mean-shift steps. Its frame has coordinates in which a bandwidth is 1."""

    frame: Frame

    def step(self, here: Array) -> MeanShiftStep: ...

    def log_density(self, places: Floats) -> Array: ...


def as_ascent(density: KernelMean | Mixture | AscentDensity) -> AscentDensity:
    """A density with its steps."""
    if isinstance(density, KernelMean):
        return KernelMeanAscent(density)
    return MixtureAscent(density) if isinstance(density, Mixture) else density


class KernelMeanAscent:
    """Mean shift on a Gaussian kernel mean; the unit of length is its bandwidth."""

    def __init__(self, mean: KernelMean) -> None:
        if not isinstance(mean.kernel, Gaussian):
            raise TypeError(f"mean shift climbs a Gaussian density, got {mean.kernel!r}")
        self._mean = mean
        self._shape = mean.kernel.bump(mean.dimension)
        self._loops = mean.kernel.frame(mean.atoms, self._shape)  # in which φ = exp(−|z|²): a bandwidth is √½
        self.frame = mean.kernel.plain_frame(mean.atoms)
        self._total = float(np.abs(mean.weights).sum())
        self._weighty = mean.atoms[mean.weights != 0]
        self.log_density = mean.log_density

    def step(self, here: Array) -> MeanShiftStep:
        mean, frame = self._mean, self._loops
        queries = cast(Array, DevicePoints(here)) if on_device(here) else here
        value, uphill = gradient_sums(mean.atoms, mean.weights, queries, frame, self._shape.profile, "auto")
        lost = value <= FAINT * self._total
        move = uphill / (2 * np.where(lost, 1.0, value))[:, None]
        there = here + to_data(move, frame.matrix)
        length = np.sqrt(2 * np.einsum("ij,ij->i", move, move))
        if lost.any():
            far = to_numpy(here[lost])  # so far that single precision may not tell the atoms apart
            closest, distance = nearest(far, self._weighty, frame, SQUARED, build_leaves(far, frame, np.float64))
            there[lost] = to_device_of(here, self._weighty[closest])
            length[lost] = to_device_of(here, np.sqrt(2) * distance)
        return MeanShiftStep(there, value, length)


class MixtureAscent:
    """Mean shift on a mixture whose weights are not negative.

    The unit of length is that of the narrowest component, in the coordinates in which the components' average precision is round:
    trajectories that meet within a part of it meet within that part of any component's width. All is computed there.

    Parameters
    ----------
    mixture : Mixture
    width : float, optional
        A unit of length in place of the mixture's own: the bandwidth of the density that it stands for.
    """

    def __init__(self, mixture: Mixture, width: float | None = None) -> None:
        if not mixture.is_density or not mixture.mass > 0:
            raise ValueError(
                f"mean shift climbs a density, whose weights are not negative; got one of {mixture.weights.min():.3g}. "
                "Give the positive part, or simplify with density=True"
            )
        shared = is_shared(mixture.covariances)
        own = mixture.covariances[:1] if shared else mixture.covariances
        present = mixture.weights > 0
        self._weights = mixture.weights[present] / mixture.mass
        matrix = _rounding(self._weights, own if shared else own[present]) if width is None else 1 / float(width)
        self.frame = Frame.around(mixture.means, matrix)
        self._means = self.frame.apply(mixture.means[present])
        own = _in_coordinates(own, matrix)
        self._covariances = np.broadcast_to(own, (len(self._means), *own.shape[1:])) if shared else own[present]
        self.log_density = mixture.log_density

    def step(self, here: Array) -> MeanShiftStep:
        z = self.frame.apply(here)
        d = z.shape[1]
        sums, _ = component_sums(z, self._weights, self._means, self._covariances, 2)
        value = sums[0]
        lost = ~(value > UNDERFLOW)
        sums = sums[1:] / np.where(lost, 1.0, value)
        move = np.empty_like(z)
        near = ~lost
        move[near] = _solved(sums[d:, near].T, sums[:d, near].T)
        if lost.any():
            move[lost] = self._from_afar(z[lost])
        there = here + to_data(move, self.frame.matrix)
        return MeanShiftStep(there, value, np.sqrt(np.einsum("ij,ij->i", move, move)))

    def _from_afar(self, z: Array) -> Array:
        """The same step where the density underflows: relative to the largest contribution of each point."""
        m, d = self._means.shape
        full = self._covariances.ndim == 3
        precisions = inverses(self._covariances if full else as_diagonal(self._covariances, d))
        logs = np.log(self._weights) + log_peaks(self._covariances, d)
        rows, columns = np.tril_indices(d)
        move = np.empty_like(z)
        for a, b in blocks(len(z), max(1, ROOM // (m * d))):
            away = self._means - z[a:b, None]
            pulls = np.einsum("mij,qmj->qmi", precisions, away) if full else precisions * away
            with np.errstate(over="ignore"):
                depth = np.minimum(0.5 * np.einsum("qmi,qmi->qm", away, pulls) - logs, FARTHEST)
            shares = np.exp(depth.min(axis=1, keepdims=True) - depth)
            shares /= shares.sum(axis=1, keepdims=True)
            stiff = shares @ (precisions[:, rows, columns] if full else precisions)
            move[a:b] = _solved(stiff, np.einsum("qm,qmi->qi", shares, pulls))
        return move


def _rounding(weights: Array, covariances: Array) -> Any:
    """The matrix of the frame in which the average precision is a multiple of 1 and the narrowest component has width 1."""
    if covariances.ndim == 1:
        return float(1 / np.sqrt(covariances.min()))
    shares = weights if len(covariances) > 1 else np.ones(1)
    if covariances.ndim == 2:
        precision = shares @ inverses(covariances)
        return np.sqrt(precision / (covariances * precision).min())
    root = np.linalg.cholesky(np.tensordot(shares, inverses(covariances), 1))
    narrowest = np.linalg.eigvalsh(root.T @ covariances @ root).min()
    return root / np.sqrt(narrowest)


def _in_coordinates(covariances: Array, matrix: float | Array) -> Array:
    """Covariances as the frame of this matrix has them."""
    if np.ndim(matrix) < 2:  # of variances: a covariance for each column has one number here, or one for each column
        return np.asarray((covariances * matrix) * matrix)
    return np.asarray(np.transpose(matrix) @ covariances @ matrix)


def _solved(stiff: Array, pull: Array) -> Array:
    """M⁻¹b for each row: M in lower rows, or a diagonal."""
    d = pull.shape[1]
    return solved(stiff if stiff.shape[1] == d else from_lower_rows(stiff, d), pull)


def to_data(move: Array, matrix: float | Array) -> Array:
    """A move in the frame's coordinates as one in the data's."""
    return move / matrix if np.ndim(matrix) < 2 else np.asarray(np.linalg.solve(np.transpose(matrix), move.T).T, np.float64)
