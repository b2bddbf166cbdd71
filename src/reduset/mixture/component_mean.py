"""A mean of components: the mixture Σⱼ wⱼ N(·; cⱼ, Sⱼ + h²Σ) that represents a kernel density, together with its kernel.

Sⱼ is the covariance of component j without the kernel (`pieces`), h²Σ the covariance of the kernel function. The two are known
separately, so the bandwidth can be changed. The mean can also be compared with kernel means in the space of the kernel, because an
inner product in "rkhs" with bandwidth h is one in "l2" with bandwidth h/√2. It is always a density: the kernel is normalized.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reduset import _archive
from reduset._engine import blocks
from reduset._types import Array, BandwidthLike, Floats, Report
from reduset.kernels import Gaussian, Kernel, exponential, stored_kernel
from reduset.mean import KernelMean
from reduset.mixture.covariances import symmetric
from reduset.mixture.mixture import MIXTURE, Mixture
from reduset.mixture.pieces import ComponentPieces, Pieces, frame_of, own_covariance

ATOMS_PER_STEP = 512  # inner products of this number of atoms are computed between two reports of progress
ROUNDING = 1e-6  # negative eigenvalues of S that are accepted, relative to 1 + the largest one
COMPONENT_MEAN = _archive.Kind(
    "reduset.ComponentMean", "mean of components", {"kernel": stored_kernel, **MIXTURE.fields}, holds=(MIXTURE,)
)


@dataclass(frozen=True, eq=False)
class ComponentMean(Mixture):
    """A mixture that represents a kernel mean.

    Parameters
    ----------
    weights : (m,) array, means : (m, d) array, covariances : (m, d, d) array
        The components of the density. The covariances include the covariance of the kernel function.
    kernel : Gaussian
        The kernel of the kernel mean, normalized.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean, compress
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> small = compress(X, Gaussian(0.3, normalized=True), size=4, pieces="components", rng=0).mean
    >>> small
    ComponentMean(4 components in 2 dimensions, Gaussian(0.3, normalized=True))
    >>> full = KernelMean.from_samples(X, small.kernel)
    >>> small.distance(full) < 0.1 * full.norm()
    True
    """

    kernel: Gaussian
    _called = "mean of components"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.kernel, Gaussian):
            raise TypeError(f"kernel must be a Gaussian, the only kernel with a closed form for components, got {self.kernel!r}")
        object.__setattr__(self, "kernel", replace(self.kernel.resolve(self.means), normalized=True))
        if self.covariances.ndim != 3:
            raise ValueError(
                f"covariances of a mean of components must be full, (m, d, d), got an array of {self.covariances.shape}"
            )

    @classmethod
    def from_pieces(cls, pieces: ComponentPieces, weights: Array, kernel: Gaussian) -> ComponentMean:
        """The density of these components smoothed with a kernel."""
        return cls(weights, pieces.places, symmetric(pieces.spreads + own_covariance(kernel, pieces.shape[1])), kernel)

    @property
    def pieces(self) -> ComponentPieces:
        """The components without the kernel: its covariance is subtracted."""
        return ComponentPieces(self.means, self.covariances - own_covariance(self.kernel, self.dimension))

    @property
    def atoms(self) -> Array:
        """(m, d) centres."""
        return self.means

    @property
    def magnitudes(self) -> Array:
        """|w|."""
        return np.abs(self.weights)

    def part(self, rows: Any) -> ComponentMean:
        """Some of the components, by a mask, a slice or rows."""
        return replace(self, weights=self.weights[rows], means=self.means[rows], covariances=self.covariances[rows])

    def with_bandwidth(self, bandwidth: BandwidthLike) -> ComponentMean:
        """The same components smoothed with another bandwidth."""
        return ComponentMean.from_pieces(self.pieces, self.weights, replace(self.kernel, bandwidth=bandwidth))

    # -- geometry -----------------------------------------------------------------------------------------------------------

    def inner(self, other: Any) -> float:
        """⟨f, other⟩, in the kernel's space for a mean of the same kernel and in L2 for any other mixture."""
        if not isinstance(other, KernelMean | ComponentMean):
            return super().inner(other)
        self._require_same_kernel(other)
        energy = exponential(self.kernel.log_energy(self.dimension))
        if isinstance(other, KernelMean):
            return float(self.weights @ kappa_of(other, self.pieces)) * energy
        both = ComponentPieces(*(np.concatenate(pair) for pair in zip(_parts(self.pieces), _parts(other.pieces), strict=True)))
        return float(self.weights @ both.gram(self.kernel)[: self.size, self.size :] @ other.weights) * energy

    def norm(self) -> float:
        """‖f‖ in the kernel's space."""
        return float(np.sqrt(max(self.inner(self), 0.0)))

    def distance(self, other: Any) -> float:
        """‖f − other‖, in the kernel's space for a mean of the same kernel and in L2 for any other mixture.

        Differences below about 1e-8 of the norms are lost in rounding.
        """
        if not isinstance(other, KernelMean | ComponentMean):
            return super().distance(other)
        if other is self:
            return 0.0
        square = self.inner(self) - 2 * self.inner(other) + other.norm() ** 2
        return float(np.sqrt(max(square, 0.0)))

    def _require_same_kernel(self, other: KernelMean | ComponentMean) -> None:
        if other.dimension != self.dimension:
            raise ValueError(f"both means must have the same dimension, got {self.dimension} and {other.dimension}")
        if other.kernel != self.kernel:
            raise ValueError(
                f"both means must have the same kernel, got {self.kernel} and {other.kernel}; components need a normalized kernel: "
                "use KernelMean.from_samples(X, small.mean.kernel)"
            )

    def _require_wide(self) -> None:
        """Raise `ValueError` if a covariance is smaller than the covariance of the kernel."""
        spreads = self.pieces.in_frame(frame_of(self.kernel, self.means))[1]
        values = np.linalg.eigvalsh(spreads)
        if (values[:, 0] < -ROUNDING * (1 + values[:, -1])).any():
            raise ValueError(f"covariances must be at least the covariance of {self.kernel!r}, which they include")

    def __add__(self, other: Mixture) -> Mixture:
        """A mean of components if both have the same kernel, otherwise a plain mixture."""
        total = super().__add__(other)
        if isinstance(other, ComponentMean) and isinstance(total, Mixture) and other.kernel == self.kernel:
            return ComponentMean(total.weights, total.means, total.covariances, self.kernel)
        return total

    # -- files --------------------------------------------------------------------------------------------------------------

    def save(self, path: _archive.Path_) -> None:
        """Write an .npz with a JSON header, atomically. Nothing in it is ever executed."""
        _archive.write(path, COMPONENT_MEAN, vars(self))

    @classmethod
    def load(cls, path: _archive.Path_) -> ComponentMean:
        """Read a file of `save`, or the mean in a larger file.

        Raises `ValueError` if the file is damaged, edited, newer or foreign.
        """
        return _archive.read(path, {COMPONENT_MEAN: cls.from_values})

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> ComponentMean:
        """The mean from the values of a file."""
        mean = cls(**values)
        mean._require_wide()
        return mean

    def __repr__(self) -> str:
        return f"ComponentMean({self.size:,} components in {self.dimension} dimensions, {self.kernel!r})"


SmallMean = KernelMean | ComponentMean


def pieces_of(mean: SmallMean) -> Pieces:
    """The components of a small mean, or its atoms."""
    return mean.pieces if isinstance(mean, ComponentMean) else np.asarray(mean.atoms, np.float64)


def mean_of(pieces: Pieces, weights: Array, kernel: Any) -> SmallMean:
    """The small mean with these atoms or components."""
    if isinstance(pieces, ComponentPieces):
        return ComponentMean.from_pieces(pieces, weights, kernel)
    return KernelMean.unchecked(pieces, weights, kernel)


def sums_of(kernel: Kernel, pieces: Pieces, weights: Array, queries: Floats) -> Array:
    """⟨g, φ(·, q)⟩ / C at each query, with g the weighted sum of the pieces."""
    if isinstance(pieces, ComponentPieces):
        return pieces.sums(kernel, weights, queries)
    return kernel.product_sums(pieces, weights, queries)


def own_sums_of(kernel: Kernel, pieces: Pieces, weights: Array) -> Array:
    """⟨g, piece⟩ / C for each piece, with g their weighted sum."""
    if isinstance(pieces, ComponentPieces):
        return np.asarray(pieces.gram(kernel) @ weights)
    return kernel.product_sums(pieces, weights, pieces)


def kappa_of(full: KernelMean, pieces: Pieces, report: Report | None = None) -> Array:
    """(m,) ⟨f, piece⟩ / C, by one pass over f; for many atoms, one pass for each `ATOMS_PER_STEP`."""
    if isinstance(pieces, ComponentPieces):
        return pieces.kappa(full, report)
    kappa = np.empty(len(pieces))
    for a, b in blocks(len(pieces), ATOMS_PER_STEP):
        if report is not None:
            report(a, len(pieces))
        kappa[a:b] = full.kernel.product_sums(full.atoms, full.weights, pieces[a:b])
    return kappa


def as_density(mean: KernelMean) -> KernelMean:
    """The same atoms and weights with the normalized kernel, for comparison with components."""
    if not isinstance(mean.kernel, Gaussian):
        raise TypeError(f"kernel must be a Gaussian for components, got {mean.kernel!r}; use Gaussian(h)")
    kernel = replace(mean.kernel, normalized=True)
    return mean if mean.kernel == kernel else KernelMean.unchecked(mean.atoms, mean.weights, kernel)


def _parts(pieces: ComponentPieces) -> tuple[Array, Array]:
    return pieces.places, pieces.spreads
