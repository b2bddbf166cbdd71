"""Spectral methods on weighted atoms: kernel PCA, Nyström features, manifold learning and clustering (Kingravi, Vela & Gray 2013).

Rows become weighted atoms (`reduction`). Their eigenproblem is solved (`components`, `graph`) and extended to any point
(`extension`). The estimators are `kernel_pca`, `nystroem` and `walks`.

May import: compression, select and the packages below them.
"""

from reduset.spectral.bounds import SpectralBounds
from reduset.spectral.graph import DisconnectedWarning
from reduset.spectral.kernel_pca import ReducedKernelPCA
from reduset.spectral.nystroem import Nystroem, WeightedNystroem
from reduset.spectral.walks import ReducedDiffusionMap, ReducedLaplacianEigenmap, ReducedSpectralClustering

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
