"""AnnData in, AnnData out: sketches, labels and scores for all cells, metacells, densities of embeddings, as scanpy stores them.

`studies` and `study_cells` have a cohort study as AnnData: its samples, and its cells.

May import: io, cohort, sketching, compression and what these may. The library anndata itself is imported where it is needed.
"""

from reduset.anndata.densities import density
from reduset.anndata.files import write_annotated
from reduset.anndata.metacell import metacells
from reduset.anndata.projecting import project
from reduset.anndata.sketching import sketch
from reduset.anndata.studies import from_study
from reduset.anndata.study_cells import cells_of_study

__all__ = ["cells_of_study", "density", "from_study", "metacells", "project", "sketch", "write_annotated"]
