"""Files as tables of numbers, and weighted rows as files.

A format is one reader class and one line in `registry`. Its library is imported when the first such file is read.

May import: `_types`, `_messages`, `_validate`, `_archive` and `_engine`.
"""

from reduset.io.arrays import mapped_array
from reduset.io.automatic import on_estimated_scales
from reduset.io.batching import Batches, TableFiles, ahead, batches, open_files
from reduset.io.delimited import DelimitedReader
from reduset.io.encoding import DAYS, ONEHOT, ORDINAL, Encoder, parse_encoding
from reduset.io.fcs import LABELS_NOTE, FcsReader
from reduset.io.fcs_channels import PULSES, are_mass_channels, isotopes, no_dye, redundant
from reduset.io.fcs_writing import write_fcs
from reduset.io.folders import counted_order, files_of
from reduset.io.guard import Work, check_bomb, check_room, need
from reduset.io.images import read_image, write_image
from reduset.io.paths import head_of, path_text, suffix_of, write_file
from reduset.io.picking import SEPARATORS, is_text, pick_rows, write_text
from reduset.io.plans import gathered_notes
from reduset.io.reader import AUTO, FLAG, NONE, NUMBER, NUMERIC, PLAIN, FileReader, ReadOptions, unique_names
from reduset.io.reading import as_table, read, read_bags, read_for, read_labels, stems_of
from reduset.io.registry import format_by_suffix, formats, open_file, usual_suffixes, written_suffixes
from reduset.io.scale_estimates import FLUORESCENCE, MASS, automatic_scale, pooled, scale_of
from reduset.io.table import FileError, Table, listed, nearest, one_line, refusing
from reduset.io.transforms import Transform, parse_transform
from reduset.io.writing import write_rows, write_table

# the names that are not listed are for other packages of the library
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
