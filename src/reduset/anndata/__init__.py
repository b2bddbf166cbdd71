"""AnnData in, AnnData out: sketches, labels and scores for all cells, metacells, densities of embeddings, as scanpy stores them.

May import: io, cohort, sketching, compression and what these may. The library anndata itself is imported where it is needed.
"""

from reduset.anndata.densities import density
from reduset.anndata.files import write_annotated
from reduset.anndata.metacell import metacells
from reduset.anndata.projecting import project
from reduset.anndata.sketching import sketch

__all__ = ["density", "metacells", "project", "sketch", "write_annotated"]
