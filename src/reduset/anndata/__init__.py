"""AnnData in, AnnData out: sketches, labels and scores carried back to all cells, densities of embeddings; as scanpy keeps them.

May import: io, sketching, compression and what these may. The library anndata itself is imported where an object is at hand.
"""

from reduset.anndata.densities import density
from reduset.anndata.projecting import project
from reduset.anndata.sketching import sketch

__all__ = ["density", "project", "sketch"]
