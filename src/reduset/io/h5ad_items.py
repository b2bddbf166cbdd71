"""The groups and arrays of an HDF5 file by name: those of the file itself, not of others that it links to.

Nothing here refers to its reader, so that a file is closed as soon as its reader is gone: one that stayed open would be read as it
was, whatever is written there since.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset.io.guard import need
from reduset.io.table import FileError


class StoredItems:
    """The items of a file.

    Attributes
    ----------
    file : as h5py opened it.
    own : its name.
    """

    def __init__(self, path: str) -> None:
        self.file = _opened(path)
        self.own = self.file.filename

    def get(self, name: str) -> Any:
        """A group or array of this very file; of an array in a compound one, its rows."""
        group, _, field = name.rpartition("/")
        outer = self.file[group] if group and group in self.file else None
        if outer is not None and hasattr(outer, "shape"):  # obsm before anndata 0.7
            self._check_own(outer, group)
            return np.asarray(outer[field])
        item = self.file[name]
        self._check_own(item, name)
        return item

    def keys(self) -> list[str]:
        """The arrays and frames that may be asked for."""
        groups = [group for group in ("obsm", "layers") if group in self.file]
        inside = [f"{group}/{name}" for group in groups for name in _members(self.get(group))]
        raw = ["raw/X"] if self.found("raw/X") is not None else []
        return [*(["X"] if "X" in self.file else []), *inside, *raw, "obs"]

    def found(self, key: str) -> str | None:
        """How the file calls an array; raw/X was called raw.X before anndata 0.7."""
        return key if key != "raw/X" else next((name for name in (key, "raw.X") if name in self.file), None)

    def _check_own(self, item: Any, name: str) -> None:
        if item.file.filename != self.own or (hasattr(item, "shape") and (item.external or item.is_virtual)):
            raise FileError(f"{self.own}: {name!r} lies in another file, which is not followed")


def _opened(path: str) -> Any:
    """A file, not locked; one that this process holds open must be opened as it was."""
    h5py = need("reading AnnData", "h5py", "h5ad")
    ways = (False, None, True, "best-effort")
    for locking in ways:
        try:
            return h5py.File(path, "r", locking=locking)
        except OSError as error:
            if "file locking" not in str(error):
                raise
            if locking == ways[-1]:
                raise FileError(f"{path}: is open in another way, perhaps in this process; close it there first") from error
    return None


def _members(item: Any) -> list[str]:
    """The names inside a group, or of the fields of a compound dataset."""
    return list(item.dtype.names or ()) if hasattr(item, "shape") else list(item)
