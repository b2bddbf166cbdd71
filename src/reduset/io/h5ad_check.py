"""Whether HDF5 comes to the end of a file: found out by a short-lived process, since a wait or crash in the library ends ours too.

A file is looked at once while it stays what it is. Where no such process can be started (a frozen program, an embedded
interpreter, a browser) the file is read unchecked, as it is where REDUSET_CHECK_HDF5 is 0.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from reduset.io.source import ReadOptions
from reduset.io.table import FileError

PROBE = Path(__file__).with_name("h5ad_probe.py")
SECONDS = 10.0  # for any file
SPEED = 5e7  # bytes a second that any disk reads
START = 60.0  # seconds for the process itself to start


def check_readable(path: str, options: ReadOptions) -> None:
    """Refuse a file on which HDF5 crashes or waits for ever."""
    if os.environ.get("REDUSET_CHECK_HDF5", "1") == "0" or not _can_start():
        return
    found = os.stat(path)
    columns = {*(options.columns or ()), *(name for name in (options.weight_column, options.group_column) if name is not None)}
    key = "X" if options.key is None else options.key
    asked = None if key == "obs" and options.columns is None else sorted(columns)
    fault = _fault(os.path.abspath(path), key, json.dumps(asked), found.st_size, found.st_mtime_ns, found.st_ino)
    if fault is not None:
        raise FileError(
            f"{path}: is damaged, for HDF5 {fault}; take another copy, or try h5clear -s on it and save it again with anndata"
        )


def _can_start() -> bool:
    """Whether a Python of ours can be started: the executable may be missing, or a program that holds one."""
    python = Path(sys.executable or "").stem.lower().startswith(("python", "pypy"))
    return python and not getattr(sys, "frozen", False) and PROBE.is_file()


@lru_cache(maxsize=4096)
def _fault(path: str, key: str, columns: str, size: int, changed: int, inode: int) -> str | None:
    """What happens to a process that reads a file, in words; None for nothing, or where that cannot be found out."""
    seconds = SECONDS + size / SPEED
    asked = {"file": path, "key": key, "columns": json.loads(columns), "seconds": seconds}
    asked["modules"] = [each for each in sys.path if os.path.isabs(each)]  # h5py is found where it was found here
    try:
        ended = subprocess.run(
            [sys.executable, "-I", str(PROBE)],
            input=json.dumps(asked),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="ascii",
            timeout=START + seconds,  # it ends itself long before; and where we are interrupted, it is ended
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    said = ended.stdout.split()
    if said != ["open"]:
        return None
    return f"finds no end in it within {seconds:.0f} s" if ended.returncode == 1 else "crashes on it"
