"""Run a method of the comparison of sketches once, in a new process of its environment, with limits of time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import python_of
from benchmarks._lib.remote import Failed

WORKER = Path(__file__).with_name("sketching_worker.py")
START_UP = 90.0  # seconds for imports, reading the rows, and a first run on a few of them
LOCAL = ("reduset", "hopper", "treehopper", "uniform")  # methods that need no peer


class TooMuch(Exception):
    """A run exceeded its limit of time or memory; the message states which."""


def call(method: str, rows: Path, limit: float, memory: float, **options: Any) -> dict[str, Any]:
    """The result of the worker for the rows of an .npy file, in at most ``limit`` seconds and ``memory`` GB."""
    python = sys.executable if method in LOCAL else python_of("sketch")
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.npz"
        command = [python, str(WORKER), str(rows), str(found)]
        asked = json.dumps({"method": method, "memory": memory} | options)
        try:
            process = subprocess.run([*command, asked], capture_output=True, text=True, timeout=limit + START_UP)
        except subprocess.TimeoutExpired as error:
            raise TooMuch(f"over {limit:g} s") from error
        if process.returncode:
            last = (process.stderr.strip().splitlines() or [""])[-1]
            # a library without memory raises or crashes; a process that the system killed was too large as well
            if "MemoryError" in last or "Unable to allocate" in last or process.returncode in (-9, -11, -6):
                raise TooMuch(f"over {memory:g} GB")
            raise Failed(f"ended with {process.returncode}: {last[-200:]}")
        with np.load(found) as file:
            answer = {key: file[key] if file[key].ndim else file[key].item() for key in file.files}
    if answer["seconds"] > limit:
        raise TooMuch(f"over {limit:g} s")
    return answer
