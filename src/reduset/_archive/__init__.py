"""Files: the one archive format of reduset, and atomic writing of any file.

`archive` reads and writes .npz files with a JSON header and replaces files of any kind whole. `fields` has the types of the fields.

May import: `_types`, `_messages` and `_validate`.
"""

from reduset._archive import fields
from reduset._archive.archive import Kind, Path_, has_header, kind_of, npy_header, read, together, write, write_whole

__all__ = ["Kind", "Path_", "fields", "has_header", "kind_of", "npy_header", "read", "together", "write", "write_whole"]
