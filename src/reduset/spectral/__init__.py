"""Spectral methods on few weighted atoms: kernel PCA and manifold learning (Kingravi, Vela & Gray 2013)."""

from reduset.spectral.bounds import SpectralBounds
from reduset.spectral.kernel_pca import ReducedKernelPCA

__all__ = ["ReducedKernelPCA", "SpectralBounds"]
