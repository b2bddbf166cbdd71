"""Spectral methods on few weighted atoms: kernel PCA and manifold learning (Kingravi, Vela & Gray 2013)."""

from reduset.spectral.bounds import SpectralBounds
from reduset.spectral.clustering import ReducedSpectralClustering
from reduset.spectral.graph import DisconnectedWarning
from reduset.spectral.kernel_pca import ReducedKernelPCA
from reduset.spectral.manifolds import ReducedDiffusionMap, ReducedLaplacianEigenmap
from reduset.spectral.nystroem import Nystroem, WeightedNystroem

__all__ = [
    "DisconnectedWarning",
    "Nystroem",
    "ReducedDiffusionMap",
    "ReducedKernelPCA",
    "ReducedLaplacianEigenmap",
    "ReducedSpectralClustering",
    "SpectralBounds",
    "WeightedNystroem",
]
