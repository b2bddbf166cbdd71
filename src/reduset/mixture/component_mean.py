"""A mean of components: the mixture Σⱼ wⱼ N(·; cⱼ, Sⱼ + h²Σ) that stands for a kernel density, and knows of which kernel.

S are the laws' own covariances (`pieces`), h²Σ that of the kernel's bump. So it can be looked at with another bandwidth, and
compared with kernel means in their own space: an inner product of "rkhs" with bandwidth h is one of "l2" with bandwidth h/√2. A
density always: weights are shares, and the kernel counts as normalized.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reduset import _archive
from reduset._types import Array, BandwidthLike
from reduset.kernels import Gaussian
from reduset.kernels.base import exponential
from reduset.kernels.registry import stored_kernel
from reduset.mean import KernelMean
from reduset.mixture.covariances import symmetric
from reduset.mixture.mixture import MIXTURE, Mixture
from reduset.mixture.pieces import ComponentPieces, Pieces, frame_of, gram_of, kappa_of, own_covariance

ROUNDING = 1e-6  # of a spread, beside the kernel's own
COMPONENT_MEAN = _archive.Kind(
    "reduset.ComponentMean", "mean of components", {"kernel": stored_kernel, **MIXTURE.fields}, holds=(MIXTURE,)
)


@dataclass(frozen=True, eq=False)
class ComponentMean(Mixture):
    """A mixture that stands for a kernel mean.

    Parameters
    ----------
    weights : (m,) array, means : (m, d) array, covariances : (m, d, d) array
        Those of the density: the kernel's own bump is in the covariances.
    kernel : Gaussian
        Of the kernel mean; normalized.

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
            raise TypeError(f"kernel must be a Gaussian, got {self.kernel!r}: only its components have a closed form")
        object.__setattr__(self, "kernel", replace(self.kernel.resolve(self.means), normalized=True))
        if self.covariances.ndim != 3:
            raise ValueError(
                f"covariances of a mean of components must be full, (m, d, d), got an array of {self.covariances.shape}"
            )

    @classmethod
    def from_pieces(cls, pieces: ComponentPieces, weights: Array, kernel: Gaussian) -> ComponentMean:
        """The density of laws, seen with a kernel."""
        return cls(weights, pieces.places, symmetric(pieces.spreads + own_covariance(kernel, pieces.shape[1])), kernel)

    @property
    def pieces(self) -> ComponentPieces:
        """The laws themselves, without the kernel's bump."""
        return ComponentPieces(self.means, self.covariances - own_covariance(self.kernel, self.dimension))

    @property
    def atoms(self) -> Array:
        """(m, d) the centres."""
        return self.means

    @property
    def magnitudes(self) -> Array:
        """|w|."""
        return np.abs(self.weights)

    def part(self, which: Any) -> ComponentMean:
        """Some of the components, by a mask, a slice or rows."""
        return replace(self, weights=self.weights[which], means=self.means[which], covariances=self.covariances[which])

    def with_bandwidth(self, bandwidth: BandwidthLike) -> ComponentMean:
        """The same laws seen with a kernel of another bandwidth."""
        return ComponentMean.from_pieces(self.pieces, self.weights, replace(self.kernel, bandwidth=bandwidth))

    # -- geometry -----------------------------------------------------------------------------------------------------------

    def inner(self, other: Any) -> float:
        """⟨f, other⟩ in the kernel's space with a mean of the same kernel; in L2 with any other mixture."""
        if not isinstance(other, KernelMean | ComponentMean):
            return super().inner(other)
        self._require_alike_kernel(other)
        energy = exponential(self.kernel.log_energy(self.dimension))
        if isinstance(other, KernelMean):
            return float(self.weights @ kappa_of(other, self.pieces)) * energy
        both = ComponentPieces(*(np.concatenate(pair) for pair in zip(_parts(self.pieces), _parts(other.pieces), strict=True)))
        return float(self.weights @ gram_of(self.kernel, both)[: self.size, self.size :] @ other.weights) * energy

    def norm(self) -> float:
        """‖f‖ in the kernel's space."""
        return float(np.sqrt(max(self.inner(self), 0.0)))

    def distance(self, other: Any) -> float:
        """‖f − other‖ in the kernel's space with a mean of the same kernel; in L2 with any other mixture.

        Differences below about 1e-8 of the norms are lost in rounding.
        """
        if not isinstance(other, KernelMean | ComponentMean):
            return super().distance(other)
        if other is self:
            return 0.0
        square = self.inner(self) - 2 * self.inner(other) + other.norm() ** 2
        return float(np.sqrt(max(square, 0.0)))

    def _require_alike_kernel(self, other: KernelMean | ComponentMean) -> None:
        if other.dimension != self.dimension:
            raise ValueError(f"both means must have the same dimension, got {self.dimension} and {other.dimension}")
        if other.kernel != self.kernel:
            raise ValueError(
                f"both means must have the same kernel, got {self.kernel} and {other.kernel}; components are a density: give "
                "KernelMean.from_samples(X, small.mean.kernel)"
            )

    def _require_wide(self) -> None:
        """Refuse covariances in which the kernel's bump cannot be."""
        spreads = self.pieces.in_frame(frame_of(self.kernel, self.means))[1]
        values = np.linalg.eigvalsh(spreads)
        if (values[:, 0] < -ROUNDING * (1 + values[:, -1])).any():
            raise ValueError(f"covariances must be at least those of the bumps of {self.kernel!r}, which are in them")

    def __add__(self, other: Mixture) -> Mixture:
        """A mean of components where both have one kernel; a plain mixture where not."""
        found = super().__add__(other)
        if isinstance(other, ComponentMean) and isinstance(found, Mixture) and other.kernel == self.kernel:
            return ComponentMean(found.weights, found.means, found.covariances, self.kernel)
        return found

    # -- files --------------------------------------------------------------------------------------------------------------

    def save(self, path: _archive.Path_) -> None:
        """Write an .npz with a JSON header, atomically. Nothing in it is ever executed."""
        _archive.write(path, COMPONENT_MEAN, vars(self))

    @classmethod
    def load(cls, path: _archive.Path_) -> ComponentMean:
        """Read what `save` wrote, or the mean in a larger file; a damaged, edited, newer or foreign file is a ValueError."""
        return _archive.read(path, {COMPONENT_MEAN: cls.from_values})

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> ComponentMean:
        """The mean in a file."""
        found = cls(**values)
        found._require_wide()
        return found

    def __repr__(self) -> str:
        return f"ComponentMean({self.size:,} components in {self.dimension} dimensions, {self.kernel!r})"


SmallMean = KernelMean | ComponentMean


def pieces_of(mean: SmallMean) -> Pieces:
    """What a small mean is made of."""
    return mean.pieces if isinstance(mean, ComponentMean) else np.asarray(mean.atoms, np.float64)


def mean_of(pieces: Pieces, weights: Array, kernel: Any) -> SmallMean:
    """A small mean of these pieces."""
    if isinstance(pieces, ComponentPieces):
        return ComponentMean.from_pieces(pieces, weights, kernel)
    return KernelMean.unchecked(pieces, weights, kernel)


def as_density(mean: KernelMean) -> KernelMean:
    """The mean of a Gaussian kernel with bumps that integrate to 1, as components are compared with."""
    if not isinstance(mean.kernel, Gaussian):
        raise TypeError(f"only a Gaussian kernel sees components in closed form, got {mean.kernel!r}; use Gaussian(h)")
    kernel = replace(mean.kernel, normalized=True)
    return mean if mean.kernel == kernel else KernelMean.unchecked(mean.atoms, mean.weights, kernel)


def _parts(pieces: ComponentPieces) -> tuple[Array, Array]:
    return pieces.places, pieces.spreads
