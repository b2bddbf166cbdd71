"""Calls into the environment of the peers for drift: arrays there and back in .npz files, a process each (`drift_worker.py`)."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent


class Failed(Exception):
    """The worker ended without an answer; the message is the end of what it said."""


def drift_python() -> str:
    """The interpreter of the environment that the peers are in."""
    python = os.environ.get("REDUSET_DRIFT_PYTHON", str(HERE.parent / ".venv-drift" / "bin" / "python"))
    if not Path(python).exists():
        raise SystemExit(f"no environment of the peers for drift at {python}: run `make bench`, or set REDUSET_DRIFT_PYTHON")
    return python


def call(method: str, arrays: dict[str, np.ndarray] | None = None, **options: Any) -> dict[str, Any]:
    """What ``method`` of the worker returns for these arrays and options."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, **(arrays or {}))
        process = subprocess.run(
            [drift_python(), str(HERE / "drift_worker.py"), method, str(given), str(found), json.dumps(options)],
            capture_output=True, text=True,
        )  # fmt: skip
        if process.returncode:
            raise Failed(f"{method} ended with {process.returncode}: {process.stderr.strip()[-500:]}")
        with np.load(found) as file:
            return {key: file[key] if file[key].ndim else file[key].item() for key in file.files}
