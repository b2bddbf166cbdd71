"""A method of the comparison of sketches, run once in a fresh process of its own environment, within a time and a memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
START_UP = 90.0  # seconds for imports, for reading the rows and for a first run on a few of them
OURS = ("reduset", "hopper", "treehopper")  # what runs in our environment: ours, and what is made of our exact farthest-first


class TooMuch(Exception):
    """It took longer than it was allowed to, or more memory; the message says which."""


class Failed(Exception):
    """It raised; the message is the library's own."""


def peers_python() -> str:
    """The interpreter of the environment that the peers are in."""
    python = os.environ.get("REDUSET_SKETCH_PYTHON", str(HERE.parent / ".venv-sketch" / "bin" / "python"))
    if not Path(python).exists():
        raise SystemExit(
            f"no environment of the peers for sketches at {python}: run `make sketching`, or set REDUSET_SKETCH_PYTHON"
        )
    return python


def pins() -> dict[str, str]:
    """The versions the comparison is made with."""
    return dict(line.split("==") for line in (HERE / "sketch-requirements.txt").read_text(encoding="utf-8").split())


def call(method: str, rows: Path, limit: float, memory: float, **options: Any) -> dict[str, Any]:
    """What the worker found on the rows of an .npy file, in at most ``limit`` seconds and ``memory`` GB."""
    python = sys.executable if method in OURS else peers_python()
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.npz"
        command = [python, str(HERE / "sketching_worker.py"), str(rows), str(found)]
        asked = json.dumps({"method": method, "memory": memory} | options)
        try:
            process = subprocess.run([*command, asked], capture_output=True, text=True, timeout=limit + START_UP)
        except subprocess.TimeoutExpired as error:
            raise TooMuch(f"over {limit:g} s") from error
        if process.returncode:
            last = (process.stderr.strip().splitlines() or [""])[-1]
            # a library that is refused memory says so, or crashes; one that the system ended was too large as well
            if "MemoryError" in last or "Unable to allocate" in last or process.returncode in (-9, -11, -6):
                raise TooMuch(f"over {memory:g} GB")
            raise Failed(f"ended with {process.returncode}: {last[-200:]}")
        with np.load(found) as file:
            answer = {key: file[key] if file[key].ndim else file[key].item() for key in file.files}
    if answer["seconds"] > limit:
        raise TooMuch(f"over {limit:g} s")
    return answer
