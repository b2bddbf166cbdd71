"""Files by URL, such as s3://bucket/rows.parquet, through fsspec. The libraries of object stores find their own credentials."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reduset.io.table import FileError, one_line

SCHEMES = ("s3", "gs", "az", "abfs", "memory")


def url_of(text: str) -> str | None:
    """The URL in a text, or None for other paths. A path object has only one slash after the scheme."""
    scheme, colon, rest = text.partition(":/")
    if os.sep == "\\":
        rest = rest.replace("\\", "/")
    return f"{scheme}://{rest.removeprefix('/')}" if colon and scheme in SCHEMES and "::" not in rest else None


def stream_of(url: str) -> Any:
    """The file at a URL, opened for reading."""
    with _faults_of(url):
        return _file_system(url).open(url, "rb")


def files_at(url: str) -> list[str]:
    """The URLs of the files in a folder or of a pattern with *; for a file, its own."""
    with _faults_of(url):
        system = _file_system(url)
        if "*" not in url and not system.isdir(url):
            return [url]
        names = system.glob(url) if "*" in url else system.find(url)
        root = system._strip_protocol(url).split("*")[0].rpartition("/")[0] if "*" in url else system._strip_protocol(url)
        shown = (name for name in names if not any(part.startswith((".", "_")) for part in name.removeprefix(root).split("/")))
        return [system.unstrip_protocol(name) for name in shown]


def _file_system(url: str) -> Any:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise FileError(f"{url}: reading it needs fsspec, which is not installed: pip install 'reduset[tables]'") from error
    return url_to_fs(url)[0]


@contextmanager
def _faults_of(url: str) -> Iterator[None]:
    """Turn any error of a file system into a `FileError`."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError as error:
        raise FileError(f"{url}: no such file") from error
    except Exception as error:  # each library of an object store has its own
        raise FileError(f"{url}: cannot be opened ({one_line(error)})") from error
