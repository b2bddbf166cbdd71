"""Apache ORC, by pyarrow: stripe by stripe, of each the chosen columns alone.

A stripe is read whole, as its writer cut it (64 MiB if nothing else was said), so memory holds one stripe of the chosen columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reduset.io.arrow import PYARROW, ArrowReader, counted, opened, pyarrow, slices
from reduset.io.reader import Format, ReadOptions


class OrcReader(ArrowReader):
    """An ORC file."""

    def __init__(self, path: str, _: ReadOptions) -> None:
        file = pyarrow(".orc").ORCFile(opened(path))
        super().__init__(path, file.schema, file.nrows)

    def _batches(self, names: list[str], rows: int, start: int) -> Iterator[tuple[int, Any]]:
        reader = pyarrow(".orc").ORCFile
        # opened anew for each, for a file keeps what was read of it
        stripes = (reader(opened(self.path)).read_stripe(number, names) for number in range(reader(opened(self.path)).nstripes))
        return counted(piece for stripe in stripes for piece in slices(stripe, rows))


# not sure by its first bytes, for three letters may well begin a name
FORMATS = (Format("ORC", (".orc",), OrcReader, magic=(b"ORC",), sure=False, needs=PYARROW, nested=True),)
