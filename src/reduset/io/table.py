"""What reading a file gives: named columns, weights and groups beside them; and the error that says what is wrong with a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reduset._messages import closest, printable

if TYPE_CHECKING:
    from reduset.io.automatic import ChannelSample


class FileError(ValueError):
    """A file that cannot be read or written. One line: the file, the rule, what was seen, and the way out."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(" ".join(message.splitlines())))  # names may hold line breaks, and worse


@dataclass(frozen=True)
class Table:
    """Rows of numbers with named columns.

    Attributes
    ----------
    values : (n, d), C-contiguous; float32 where every column read is, else float64.
    columns : d names.
    weights : (n,) float64 from the weight column, or None.
    groups : (n,) labels, text or whole numbers, from the group column, or None.
    sources : the files, as they were given.
    notes : what was done on the way, in words.
    dropped : how many rows were left out, for they lacked a value.
    channels : of FCS files that were read without a transform, what is known of their channels, file by file; else empty.
    omitted : which rows these are, ascending and counted from 0 over all files; None where that is not known, as in batches.
    scales : the transform of each column that has one.
    in_one_unit : whether all columns have one unit: pixels, representations in obsm, and channels of FCS files, all transformed.
    encoding : how columns of categories and dates became numbers; as ``encode`` it makes others the same way.
    """

    values: NDArray[Any]
    columns: tuple[str, ...]
    weights: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    dropped: int = 0
    scales: dict[str, str] = field(default_factory=dict)
    encoding: dict[str, Any] = field(default_factory=dict)
    channels: tuple[ChannelSample, ...] = field(default=(), repr=False)
    omitted: NDArray[np.int64] | None = field(default=None, repr=False)
    in_one_unit: bool = False

    def file_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers that rows of this table have in the files, counted from 0 over all of them."""
        if self.omitted is None or not len(self.omitted):
            return rows
        before = self.omitted - np.arange(len(self.omitted))  # how many rows of the table lie before each
        return rows + np.searchsorted(before, rows, side="right")

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype, copy=copy)

    def to_numpy(self) -> NDArray[Any]:
        """The values, not copied: by this a table is taken wherever a frame is."""
        return self.values

    def __repr__(self) -> str:
        beside = [name for name, there in (("weights", self.weights), ("groups", self.groups)) if there is not None]
        return (
            f"Table({len(self):,} rows of {printable(listed(self.columns, 8))}{', with ' + ' and '.join(beside) if beside else ''})"
        )


def listed(names: Iterable[Any], most: int = 12) -> str:
    """Names for a message, cut where they are many."""
    names = list(names)
    return ", ".join(map(str, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def nearest(name: str, names: Iterable[str]) -> str:
    """A question that names what may have been meant, or nothing."""
    found = closest(name, names)
    return f" (did you mean {found!r}?)" if found is not None else ""


def one_line(error: BaseException, most: int = 200) -> str:
    """What an error says, on one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    text = " ".join(str(error).split()) or type(error).__name__
    text = f"no entry {text}" if isinstance(error, KeyError) else text
    return text if len(text) <= most else text[: most - 1] + "…"


@contextmanager
def refusing(path: str, what: str) -> Iterator[None]:
    """Whatever a damaged file provokes in the libraries that read it, it is refused in one line."""
    try:
        yield
    except FileError:
        raise
    except MemoryError as error:
        raise FileError(f"{path}: too large for this machine's memory; choose fewer columns") from error
    except Exception as error:
        raise FileError(f"{path}: cannot be read as {what}; it is damaged or cut short ({one_line(error)})") from error
