"""Sources of rows: arrays, frames, arrays on a GPU, files larger than memory, and data on Dask or Ray.

`as_source` checks the rows of a user, once. `opened` does so only for rows outside of main memory. These become `FileRows` or
`PartitionRows`, which are read in passes (`_engine.passes`) and are never in memory as a whole. `partitions` sets the engine that
runs the passes. `open_tables` and `on_each` are for many tables, such as the bags of a cohort.

May import: `_types`, `_engine`, `_frames`, `_validate` and `io`.
"""

from reduset.data.file_rows import FileRows
from reduset.data.partition_rows import PartitionRows
from reduset.data.source import (
    ENGINES,
    as_source,
    engine_named,
    has_paths,
    is_dask,
    is_elsewhere,
    on_each,
    open_tables,
    opened,
    partitions,
    row_weights,
)

# imported names that are not listed are for other packages of the library
__all__ = ["as_source", "partitions"]
