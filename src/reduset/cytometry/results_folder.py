"""A folder of results: made where it is not there, its files appear all or none, and no file that was read is written over."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reduset import _archive
from reduset.io.table import FileError, one_line


@contextmanager
def results_folder(folder: str) -> Iterator[Path]:
    """The folder, in which files that are written inside appear together; one that was made goes again where that fails."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise FileError(f"{folder}: is a file, and a folder is needed; give another name")
    made = not place.exists()
    try:
        place.mkdir(exist_ok=True)
    except FileNotFoundError as error:
        raise FileError(f"{folder}: cannot be made, for there is no folder {place.parent}") from error
    except OSError as error:
        raise FileError(f"{folder}: cannot be made ({one_line(error)})") from error
    try:
        with _archive.together():
            yield place
    except BaseException:
        if made and not any(place.iterdir()):
            place.rmdir()
        raise


def refuse_sources(targets: Sequence[Path], sources: Sequence[str]) -> None:
    """Refuse to write over a file that the study was read from."""
    read = {os.path.realpath(source) for source in sources}
    for target in targets:
        if os.path.realpath(target) in read:
            raise FileError(f"{target}: is a file of the study itself, and would be lost; give another folder")
