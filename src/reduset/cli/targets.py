"""Files to be written, checked before any work is done: the kind by its suffix, the folder, and whether it may be written to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

MODEL = frozenset({".npz"})
HTML = frozenset({".html", ".htm"})
IMAGE = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"})
NEEDED = ((HTML, "plotly", "report"), (IMAGE, "PIL", "images"))  # with the extra that brings it


def rows() -> frozenset[str]:
    """The suffixes of tables."""
    from reduset.io import written_suffixes

    return frozenset(written_suffixes())


def check_all(*outputs: tuple[Path | None, frozenset[str], Sequence[Path]]) -> list[Path]:
    """Those outputs that were asked for: each a path, its kinds, and the inputs it must not be among."""
    asked = [(path, kinds, inputs) for path, kinds, inputs in outputs if path is not None]
    for path, kinds, inputs in asked:
        check(path, kinds, inputs)
    places = [os.path.normcase(os.path.realpath(path)) for path, _, _ in asked]
    for number, place in enumerate(places):
        if place in places[:number]:
            first = asked[places.index(place)][0]
            raise ValueError(
                f"outputs must be different files, got {asked[number][0]} for two of them, and {first} would be lost; "
                "give one another name"
            )
    return [path for path, _, _ in asked]


def check(path: Path, kinds: frozenset[str], inputs: Sequence[Path] = ()) -> None:
    """Refuse a target that could not be written in the end, and one that is among the files read: they would be lost."""
    if path.suffix.lower() not in kinds:
        raise ValueError(
            f"{path} must end in {', '.join(sorted(kinds))}, so that it is clear what to write; got {path.suffix or 'no ending'}"
        )
    for endings, library, extra in (*NEEDED, (rows(), "pyarrow", "tables")):
        if path.suffix.lower() in endings and find_spec(library) is None:
            raise ImportError(f"{path} cannot be written: that needs {library}, not installed: pip install 'reduset[{extra}]'")
    check_place(path, inputs)


def check_place(path: Path, inputs: Sequence[Path] = ()) -> None:
    """Refuse a place that cannot be written to, one that is read, and one in a folder that is read: it would be data next time."""
    folder = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent  # of what a link leads to
    if not folder.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {folder}; make it first")
    if path.is_dir():
        raise IsADirectoryError(f"{path} cannot be written: it is a folder")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} cannot be written: it is a pipe or a device; give the output another name")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path} cannot be written: no permission to write in {folder}")
    if path.exists() and any(each.exists() and path.samefile(each) for each in inputs):
        raise ValueError(f"{path} is read, and would be lost when it is written; give the output another name")
    for each in inputs:
        if each.is_dir() and each.resolve() in path.resolve().parents:
            raise ValueError(f"{path} lies in {each}, which is read, and would be taken for data the next time; write it elsewhere")


def check_folder(folder: Path, inputs: Sequence[Path] = ()) -> None:
    """Refuse a folder that could not be written to, and one that is read: what is written would be data the next time."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} cannot be written: it is a file, and a folder is needed")
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"{folder} cannot be written: there is no folder {folder.parent}; make it first")
    if not os.access(folder if folder.exists() else folder.parent, os.W_OK):
        raise PermissionError(f"{folder} cannot be written: no permission to write in it")
    for each in inputs:
        place = each if each.is_dir() else each.parent
        if place.resolve() == folder.resolve() or (each.is_dir() and each.resolve() in folder.resolve().parents):
            raise ValueError(f"{folder} lies in {place}, which is read, and would be taken for data the next time; write elsewhere")
