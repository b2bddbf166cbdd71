"""What is checked before anything is imported or allocated: optional libraries, and room in memory.

A compressed file may unpack to far more than it holds. Nothing is unpacked before its size is known to fit; and where little is
said to become very much, it is refused even if it would fit.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from reduset._engine import physical_memory
from reduset.io.table import FileError

LARGE = 1 << 31
ABSURD = 200  # times smaller than what is inside: no measured data are, and deflate ends at 1,032


def need(what: str, module: str, extra: str) -> Any:
    """An optional library, imported now; where it is missing, the error names the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        home = module.split(".")[0]
        package = {"PIL": "pillow", "python_calamine": "python-calamine"}.get(home, home)
        raise FileError(f"{what} needs {package}, which is not installed: pip install 'reduset[{extra}]'") from error


def memory() -> float:
    """Bytes of memory that this process may have; 16 GiB where the system does not say."""
    return physical_memory(unknown=16 << 30)


@dataclass(frozen=True)
class Work:
    """What is done with a table once it is read: what that takes beside it, and what to do where there is no room for both."""

    number: int = 0  # bytes for each number of the table
    row: int = 0  # bytes for each row
    what: str = "the columns read"
    way_out: str = "choose fewer columns, or read it in batches"

    def beside(self, columns: int) -> int:
        """Bytes a row beside the table."""
        return self.number * columns + self.row


READ = Work()


def check_room(path: str, size: float, what: str = READ.what, way_out: str = READ.way_out) -> None:
    """Refuse what cannot fit in memory."""
    if size > memory():
        raise FileError(f"{path}: {what} would take {size / 2**30:,.1f} GiB, this machine has {memory() / 2**30:,.1f}; {way_out}")


def check_bomb(path: str, packed: int, unpacked: int, member: str) -> None:
    """Refuse a compressed member that says it unpacks to absurdly much."""
    if unpacked > LARGE and unpacked > ABSURD * max(packed, 1):
        raise FileError(
            f"{path}: its member {member!r} has {packed:,} bytes and would unpack to {unpacked:,}; no data do, so it is not opened"
        )
