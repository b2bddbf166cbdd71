"""Files of every kind, made wrong at random: how many were read or refused, and whether something else happened.

A minute of it; the hour that is recorded is `REDUSET_FUZZ_SECONDS=3600 python benchmarks/run.py fuzzing`.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from benchmarks._lib import table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import fuzz

TITLE = "Files made wrong"

SECONDS, SEED = float(os.environ.get("REDUSET_FUZZ_SECONDS", 60)), 13


def run() -> str:
    from fuzz_kinds import KINDS  # which `fuzz` finds

    begun = time.perf_counter()
    files, counts, failures = fuzz.run(SECONDS, SEED, 0, None, list(KINDS))
    took = time.perf_counter() - begun
    rows = [[kind, f"{counts[f'{kind} refused']:,}", f"{counts[f'{kind} read']:,}"] for kind in KINDS]
    failed = f"{len(failures)} failed" + "".join(f"\n- {Path(each['failed']).name}" for each in failures)
    return table(["kind", "refused", "read"], rows) + f"\n\n{files:,} files with seed {SEED} in {took:,.0f} s: {failed}."
