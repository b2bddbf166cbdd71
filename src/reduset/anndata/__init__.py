"""Functions of AnnData objects: sketches, labels and scores for all cells, metacells, and densities of embeddings, as in scanpy.

May import: io, cohort, sketching, compression and the packages below these. The library anndata is imported when it is needed.
"""

from reduset.anndata.annotated import MADE_BY, library, opened, write_annotated
from reduset.anndata.densities import density
from reduset.anndata.metacell import metacells
from reduset.anndata.projecting import project
from reduset.anndata.representation import Representation
from reduset.anndata.sketching import ASSIGNMENT, NAME, WEIGHT, sketch, sketch_facts

__all__ = ["density", "metacells", "project", "sketch", "write_annotated"]
