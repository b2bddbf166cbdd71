"""Rows, wherever they are: arrays, frames, arrays on a GPU, files larger than memory, and Dask collections.

`as_source` turns what a user gives into checked rows, once. `opened` does so for rows outside of main memory alone: `FileRows` and
`DaskRows`, which are read in passes (`_engine.passes`) and never held as a whole.

May import: `_types`, `_engine`, `_frames`, `_validate` and `io`.
"""

from reduset.data.file_rows import FileRows
from reduset.data.source import as_source, opened, row_weights

# the names that are not listed are for other packages of the library
__all__ = ["as_source"]
