"""FlowSOM and Milo on cohorts of real cells: a process of their own environment that answers a line for each (`study_worker`)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness import data_folder

HERE = Path(__file__).resolve().parent


class Failed(Exception):
    """The worker ended without an answer; the message is the end of what it said."""


def study_python() -> Path:
    """The interpreter of the environment that the rivals are in."""
    return Path(os.environ.get("REDUSET_STUDY_PYTHON", HERE.parent / ".venv-study" / "bin" / "python"))


def pins() -> dict[str, str]:
    """The versions the comparison is made with."""
    return dict(line.split("==") for line in (HERE / "study-requirements.txt").read_text(encoding="utf-8").split())


def answers(method: str, spread: float, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """What a method found in the cohort of each seed, as it comes."""
    if not study_python().exists():
        raise Failed(f"no environment of the rivals at {study_python()}: run `make bench`, or set REDUSET_STUDY_PYTHON")
    asked = json.dumps({"method": method, "spread": spread, "seeds": list(seeds), "data": str(data_folder())})
    command = [str(study_python()), str(HERE / "study_worker.py"), asked]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        last = ""
        for line in process.stdout or ():
            if line.startswith("answer "):
                yield json.loads(line.removeprefix("answer "))
            else:
                last = line.strip() or last
    if process.returncode:
        raise Failed(f"{method} ended with {process.returncode}: {last[-300:]}")
