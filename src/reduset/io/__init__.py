"""The files people have, as tables of numbers; and weighted rows as files.

Each format has its own reader, whose library is imported when the first such file is read.
"""

from reduset.io.images import read_image, write_image
from reduset.io.reading import as_table, batches, read, read_bags, read_labels
from reduset.io.table import FileError, Table
from reduset.io.writing import write_rows

__all__ = [
    "FileError",
    "Table",
    "as_table",
    "batches",
    "read",
    "read_bags",
    "read_image",
    "read_labels",
    "write_image",
    "write_rows",
]
