"""Spectral methods on few weighted atoms: kernel PCA and manifold learning (Kingravi, Vela & Gray 2013).

Rows become weighted atoms (`reduction`), whose eigenproblem is solved (`components`, `graph`) and extended to any point
(`extension`); the estimators in the manner of scikit-learn stand beside them.

May import: compression, select and what is below them.
"""

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
