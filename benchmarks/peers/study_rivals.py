"""FlowSOM and Milo on cohorts of real cells: a process in their environment that prints one answer per cohort (`study_worker`).

Answers are kept in build/, so that a change of our test needs no new clustering.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import _lib
from benchmarks._lib import BENCHMARKS, ROOT, data_folder, python_of
from benchmarks._lib.remote import Failed

WORKER = Path(__file__).with_name("study_worker.py")


def pins() -> dict[str, str]:
    """The versions of the comparison."""
    return _lib.pins("study")


def answers(method: str, spread: float, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The result of a method for the cohort of each seed, as it comes."""
    kept = ROOT / "build" / f"study-{method.replace(', ', '-')}-{spread:g}.jsonl"
    known = {line["seed"]: line for line in map(json.loads, kept.read_text().splitlines())} if kept.exists() else {}
    yield from (known[seed] for seed in seeds if seed in known)
    missing = [seed for seed in seeds if seed not in known]
    if not missing:
        return
    kept.parent.mkdir(exist_ok=True)
    with open(kept, "a", encoding="utf-8") as stream:
        for answer in _measured(method, spread, missing):
            stream.write(json.dumps(answer) + "\n")
            stream.flush()
            yield answer


def _measured(method: str, spread: float, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    options = json.dumps({"method": method, "spread": spread, "seeds": list(seeds), "data": str(data_folder())})
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS / "_lib")}  # for cohort_real_data
    command = [python_of("study"), str(WORKER), options]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        last = ""
        for line in process.stdout or ():
            if line.startswith("answer "):
                yield json.loads(line.removeprefix("answer "))
            else:
                last = line.strip() or last
    if process.returncode:
        raise Failed(f"{method} ended with {process.returncode}: {last[-300:]}")
