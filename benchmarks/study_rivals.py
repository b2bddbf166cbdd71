"""FlowSOM and Milo on cohorts of real cells: a process of their own environment that answers a line for each (`study_worker`).

Answers are kept in build/, so that another test of the same clusters needs no clustering again.
"""

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
    kept = HERE.parent / "build" / f"study-{method.replace(', ', '-')}-{spread:g}.jsonl"
    known = {line["seed"]: line for line in map(json.loads, kept.read_text().splitlines())} if kept.exists() else {}
    yield from (known[seed] for seed in seeds if seed in known)
    wanted = [seed for seed in seeds if seed not in known]
    if not wanted:
        return
    if not study_python().exists():
        raise Failed(f"no environment of the rivals at {study_python()}: run `make bench`, or set REDUSET_STUDY_PYTHON")
    kept.parent.mkdir(exist_ok=True)
    with open(kept, "a", encoding="utf-8") as stream:
        for answer in _asked(method, spread, wanted):
            stream.write(json.dumps(answer) + "\n")
            stream.flush()
            yield answer


def _asked(method: str, spread: float, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
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
