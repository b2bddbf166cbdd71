"""Tables read from files, and the error that describes a fault of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reduset._messages import closest, printable

if TYPE_CHECKING:
    from reduset.io.channels import ChannelSample


class FileError(ValueError):
    """A file cannot be read or written. The message is one line: file, rule, value, way out."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(" ".join(message.splitlines())))  # names may hold line breaks and control characters


@dataclass(frozen=True)
class Table:
    """Rows of numbers with named columns.

    Attributes
    ----------
    values : (n, d), C-contiguous; float32 if all columns are, otherwise float64.
    columns : d names.
    weights : (n,) float64 from the weight column, or None.
    groups : (n,) labels from the group column, text or whole numbers, or None.
    sources : the files, as given.
    notes : how the files were read, for messages.
    dropped : number of rows omitted because of missing values.
    channels : a sample of each FCS file read without a transform; otherwise empty.
    omitted : ascending numbers of the omitted rows, from 0 over all files; None in batches.
    scales : transform of each transformed column.
    in_one_unit : True if all columns have one unit: pixels, representations in obsm, transformed channels of FCS files.
    encoding : encoding of categories and dates. As ``encode`` it encodes other files the same way.
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
        """Numbers of rows of this table in the files, from 0 over all files."""
        if self.omitted is None or not len(self.omitted):
            return rows
        kept_before = self.omitted - np.arange(len(self.omitted))
        return rows + np.searchsorted(kept_before, rows, side="right")

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype, copy=copy)

    def to_numpy(self) -> NDArray[Any]:
        """The values, not copied. This method makes a table acceptable in place of a frame."""
        return self.values

    def __repr__(self) -> str:
        extras = [name for name in ("weights", "groups") if getattr(self, name) is not None]
        with_extras = f", with {' and '.join(extras)}" if extras else ""
        return f"Table({len(self):,} rows of {printable(listed(self.columns, 8))}{with_extras})"


def listed(names: Iterable[Any], limit: int = 12) -> str:
    """Names for a message, cut after ``limit`` of them."""
    names = list(names)
    return ", ".join(map(str, names[:limit])) + (f" and {len(names) - limit} more" if len(names) > limit else "")


def nearest(name: str, names: Iterable[str]) -> str:
    """A question with the most similar name, or ""."""
    similar = closest(name, names)
    return "" if similar is None else f" (did you mean {similar!r}?)"


def one_line(error: BaseException, limit: int = 200) -> str:
    """The message of an error on one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    text = " ".join(str(error).split()) or type(error).__name__
    text = f"no entry {text}" if isinstance(error, KeyError) else text
    return text if len(text) <= limit else text[: limit - 1] + "…"


@contextmanager
def refusing(path: str, kind: str) -> Iterator[None]:
    """Turn any exception of the libraries that read a damaged file into a `FileError`."""
    try:
        yield
    except FileError:
        raise
    except MemoryError as error:
        raise FileError(f"{path}: too large for this machine's memory; choose fewer columns") from error
    except Exception as error:
        raise FileError(f"{path}: cannot be read as {kind}; it is damaged or cut short ({one_line(error)})") from error
