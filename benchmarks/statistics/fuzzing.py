"""Do readers survive files with random faults? Each file must be read, or raise an error with a message.

The fuzzer is `tests/support/fuzz.py` (`make fuzz`). A run takes a minute; the recorded hour is `REDUSET_FUZZ_SECONDS=3600 python
benchmarks/run.py statistics/fuzzing`. Goal: no crash, timeout or other exception.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks._lib import ROOT, table, verdict

sys.path.append(str(ROOT / "tests" / "support"))
import fuzz
from fuzz_kinds import KINDS

TITLE = "Files with random faults"
SOURCES = ("io", "model", "_archive", "drift/reference_file.py", "stream/checkpoint.py")

SECONDS, SEED = float(os.environ.get("REDUSET_FUZZ_SECONDS", 60)), 13
QUICK_FILES = 4  # of each kind


def measure(quick: bool) -> dict[str, Any]:
    count, seconds = (QUICK_FILES * len(KINDS), 600.0) if quick else (None, SECONDS)
    begun = time.perf_counter()
    files, counts, failures = fuzz.run(seconds, SEED, 0, count, list(KINDS))
    took = time.perf_counter() - begun
    rows = [[kind, f"{counts[f'{kind} refused']:,}", f"{counts[f'{kind} read']:,}"] for kind in KINDS]
    failed = f"{len(failures)} failed" + "".join(f"\n- {Path(each['failed']).name}" for each in failures)
    summary = [
        [f"failures among {files:,} files", f"{len(failures)}", "0", verdict(0, len(failures))],
        ["time", f"{took:,.0f} s", "", ""],
    ]
    details = table(["kind", "errors", "read"], rows) + f"\n\n{files:,} files with seed {SEED} in {took:,.0f} s: {failed}."
    return {"summary": summary, "details": details}
