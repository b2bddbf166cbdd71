"""What there is to know of a file format, in one record. A reader is a file with a Source and its record, named in the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reduset.io.options import ReadOptions
    from reduset.io.source import Source


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes
    ----------
    title : what such a file is, in messages.
    suffixes : in small letters, the usual one first.
    open : makes the source of a file. What goes wrong in it is refused as a damaged file.
    magic : how its files begin; none for text, which begins in any way.
    sure : whether the magic suffices. If not, the suffix must say so too, and the reader is asked where the magic is not there.
    needs : the library that reads it, and the extra of this package that brings it.
    keyed : whether ``key`` chooses what is read of a file.
    gzipped : whether it is also read and written packed by gzip.
    nested : whether a folder of such files is a data set, whose folders are searched too.
    write : fills a stream with an Arrow table.
    written : the suffixes that are offered for writing.
    """

    title: str
    suffixes: tuple[str, ...]
    open: Callable[[str, ReadOptions], Source]
    magic: tuple[bytes, ...] = ()
    sure: bool = True
    needs: tuple[str, str] = ("numpy", "")
    keyed: bool = False
    gzipped: bool = False
    nested: bool = False
    write: Callable[[Any, Any], None] | None = None
    written: tuple[str, ...] = ()
