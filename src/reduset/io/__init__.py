"""Files as tables of numbers, and weighted rows as files.

A format is one reader class and one line in `registry`. Its library is imported with the first such file.

May import: `_types`, `_messages`, `_validate`, `_archive` and `_engine`.
"""

from reduset.io.arrays import mapped_array
from reduset.io.batching import Batches, FileShard, TableFiles, ahead, batches, open_files
from reduset.io.channels import (
    FLUORESCENCE,
    MASS,
    PULSES,
    are_mass_channels,
    automatic_scale,
    isotopes,
    no_dye,
    on_estimated_scales,
    pooled,
    redundant,
    scale_of,
)
from reduset.io.delimited import DelimitedReader
from reduset.io.encoding import DAYS, ONEHOT, ORDINAL, Encoder, parse_encoding
from reduset.io.fcs import LABELS_NOTE, FcsReader
from reduset.io.fcs_writing import write_fcs
from reduset.io.guard import Work, check_bomb, check_room, head_of, need, path_text, suffix_of, write_file
from reduset.io.images import read_image, write_image
from reduset.io.picking import is_text, pick_rows
from reduset.io.reader import AUTO, FLAG, NONE, NUMBER, NUMERIC, PLAIN, FileReader, ReadOptions, unique_names
from reduset.io.reading import as_table, gathered_notes, read, read_bags, read_for, read_labels, stems_of
from reduset.io.registry import counted_order, files_of, format_by_suffix, formats, open_file, usual_suffixes, written_suffixes
from reduset.io.table import FileError, Table, listed, nearest, one_line, refusing
from reduset.io.transforms import Transform, parse_transform
from reduset.io.writing import SEPARATORS, write_rows, write_table, write_text

# other names are for packages of the library
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
