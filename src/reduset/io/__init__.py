"""The files people have, as tables of numbers; and weighted rows as files.

A format is a record of `registry.py` with a reader of its own, whose library is imported when the first such file is read.

May import: `_types`, `_messages`, `_validate` and `_archive`; of the rooms before it none.
"""

from reduset.io.batching import Batches, batches
from reduset.io.fcs_writing import write_fcs
from reduset.io.folders import files_of
from reduset.io.images import read_image, write_image
from reduset.io.reading import as_table, read, read_bags, read_labels
from reduset.io.table import FileError, Table
from reduset.io.writing import write_rows

__all__ = [
    "Batches",
    "FileError",
    "Table",
    "as_table",
    "batches",
    "files_of",
    "read",
    "read_bags",
    "read_image",
    "read_labels",
    "write_fcs",
    "write_image",
    "write_rows",
]
