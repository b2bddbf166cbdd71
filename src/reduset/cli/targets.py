"""Checks of output files before any work: the suffix, the folder, permissions, and that no input would be overwritten."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MODEL = frozenset({".npz"})
HTML = frozenset({".html", ".htm"})
IMAGE = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"})
LIBRARIES = ((HTML, "plotly", "report"), (IMAGE, "PIL", "images"))  # with the extra that installs each


def rows() -> frozenset[str]:
    """The suffixes of tables."""
    from reduset.io import written_suffixes

    return frozenset(written_suffixes())


def write_columns(path: Path | None, columns: dict[str, Any]) -> None:
    """Write a table of columns, unless the path is None; NaN becomes null."""
    if path is not None:
        from reduset.io import need, write_table

        arrow = need("writing rows", "pyarrow", "tables")
        write_table(str(path), arrow.table({name: arrow.array(values, from_pandas=True) for name, values in columns.items()}))


def check_all(*outputs: tuple[Path | None, frozenset[str], Sequence[Path]]) -> list[Path]:
    """Check outputs: a path, its suffixes, and the inputs that it must not overwrite. Returns the paths that are not None."""
    given = [(path, suffixes, inputs) for path, suffixes, inputs in outputs if path is not None]
    first: dict[str, Path] = {}
    for path, suffixes, inputs in given:
        check(path, suffixes, inputs)
        other = first.setdefault(os.path.normcase(os.path.realpath(path)), path)
        if other is not path:
            raise ValueError(f"outputs must be different files, got {path} twice; give one of them another name")
    return [path for path, _, _ in given]


def check(path: Path, suffixes: frozenset[str], inputs: Sequence[Path] = ()) -> None:
    """Raise an error for an output that has another suffix, cannot be written, or is an input."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise ValueError(
            f"{path} must end in {', '.join(sorted(suffixes))}, which sets the format; got {path.suffix or 'no ending'}"
        )
    for kinds, library, extra in (*LIBRARIES, (rows(), "pyarrow", "tables")):
        if suffix in kinds and find_spec(library) is None:
            raise ImportError(f"{path} cannot be written without {library}, which is not installed: pip install 'reduset[{extra}]'")
    check_location(path, inputs)


def check_location(path: Path, inputs: Sequence[Path] = (), is_folder: bool = False) -> None:
    """Raise an error for a file or a folder that cannot be written, is an input, or is inside an input folder."""
    parent = Path(os.path.realpath(path)).parent if path.is_symlink() else path.parent
    if not parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {parent}; create it first")
    if path.exists() and path.is_dir() != is_folder:
        raise OSError(f"{path} cannot be written: it is {'a folder' if path.is_dir() else 'not a folder'}")
    if path.exists() and not (is_folder or path.is_file()):
        raise ValueError(f"{path} cannot be written: it is a pipe or a device; give the output another name")
    folder = path if is_folder and path.exists() else parent
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path} cannot be written: no permission to write in {folder}")
    if path.is_file() and any(source.exists() and path.samefile(source) for source in inputs):
        raise ValueError(f"{path} is an input, and would be overwritten; give the output another name")
    target = path.resolve()
    for source in inputs:
        read = (source if source.is_dir() else source.parent).resolve()
        if (source.is_dir() and read in target.parents) or (is_folder and read == target):
            raise ValueError(f"{path} lies in {read}, which is an input, and would be read as data next time; write elsewhere")
