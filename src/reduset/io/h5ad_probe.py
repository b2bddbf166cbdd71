"""A process of its own that looks into an HDF5 file first: the library can crash on a damaged one, or wait for ever.

Run as a script by `h5ad_check`, it imports h5py and nothing of ours, so that it starts in a fraction of a second. What it is asked
comes as JSON; it says "open" before it opens the file and "done" when it came to the end. Errors are no news: the reader meets them
again, and says what they are. It ends itself when its time is over, also where nobody waits for it any more.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

PART = 1 << 25  # bytes of an array up to which it is read to the end
COLUMN = 1 << 30  # the same of a column that was asked for
END = 1 << 22  # bytes at either end of what is larger
ROOM = 4 << 30  # bytes beyond what the libraries take

ignored = contextlib.suppress(Exception)


def within_limits(seconds: float) -> None:
    """No more than so much time and memory, and no core dump."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 it is kept
    with contextlib.suppress(ImportError, OSError, ValueError, AttributeError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm", encoding="ascii") as sizes:
            taken = int(sizes.read().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        wanted = taken + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


def is_array(item: Any) -> bool:
    """Whether it is an array, and no group."""
    return hasattr(item, "shape")


def names(item: Any, _: int = 0) -> list[str]:
    """Those inside a group."""
    return [] if is_array(item) else list(item)


def members(item: Any) -> Iterator[Any]:
    """What is inside a group, as far as it can be opened."""
    found: list[str] = []
    with ignored:
        found = names(item)
    for name in found:
        with ignored:
            yield item[name]


def look(item: Any, depth: int) -> None:
    """At its attributes and what is said of its array, and at those inside."""
    with ignored:
        list(item.attrs.items())
    with ignored:
        repr((item.shape, item.dtype, item.chunks, item.external, item.is_virtual) if is_array(item) else item)
    for each in members(item) if depth else ():
        look(each, depth - 1)


def read(item: Any, most: int, depth: int = 2) -> None:
    """All of an array, or both ends of a large one and the list of its chunks; of a group, the arrays in it."""
    if not is_array(item):
        for each in members(item) if depth else ():
            read(each, most, depth - 1)
    elif item.nbytes <= most or not item.shape:
        item[()]
    else:
        rows = max(1, min(item.shape[0], END * item.shape[0] // item.nbytes))
        if item.chunks:
            item.id.get_num_chunks()
        for part in (slice(0, rows), slice(item.shape[0] - rows, None)):
            with ignored:
                item[part]


def read_compound(item: Any, most: int) -> None:
    """A table that is one array, as anndata wrote them before 0.7."""
    if is_array(item):
        read(item, most)


def read_index(frame: Any, most: int) -> None:
    """The names of the rows of a frame."""
    read(frame if is_array(frame) else frame[frame.attrs.get("_index", "_index")], most)


def read_numbers(frame: Any, most: int) -> None:
    """All columns but those of text."""
    for each in members(frame):
        if not is_array(each) or each.dtype.kind != "O":
            read(each, most)


def jobs(key: str, columns: list[str] | None) -> Iterator[tuple[Callable[[Any, int], Any], str, int]]:
    """What the reader does, and with which item, where it is there: the frames, the columns asked for, the array and its names."""
    arrays = (key, key.replace("/", ".")) if key.startswith("raw") else (key,)
    for group in ("/", "obsm", "layers"):
        yield names, group, 0
    for frame in ("obs", *(array for array in arrays if array.startswith("obsm"))):
        yield look, frame, 2
        yield read_compound, frame.split("/")[0], COLUMN
    for column in columns or ():
        for where in (f"obs/{column}", f"obs/__categories/{column}", f"uns/{column}_categories", f"{key}/{column}"):
            yield read, where, COLUMN
    if key == "obs":
        if columns is None:
            yield read_numbers, "obs", COLUMN
        return
    for array in arrays:
        if not key.startswith("obsm"):
            var = array[:-1] + "var" if key.startswith("raw") else "var"
            yield look, var, 2
            yield read_index, var, COLUMN
        yield look, array, 1
        yield read, f"{array}/indptr", COLUMN
        yield read, array, PART


def main() -> None:
    """Look at the file that standard input names."""
    asked = json.load(sys.stdin)
    sys.path[:] = asked["modules"]
    h5py = importlib.import_module("h5py")

    within_limits(asked["seconds"])
    print("open", flush=True)
    with ignored, h5py.File(asked["file"], "r", locking=False) as file:
        for act, where, amount in jobs(asked["key"], asked["columns"]):
            with ignored:
                act(file[where], amount)
    print("done", flush=True)


if __name__ == "__main__":
    main()
