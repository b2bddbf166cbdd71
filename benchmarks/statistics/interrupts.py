"""Interrupts under load: a process that deals tiny tasks to threads is struck by SIGHUP again and again, the cores being busy.

Before, a handler that raised inside a condition variable of an executor left it locked: 31 of 640 were never answered.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np

from benchmarks._lib import table

TITLE = "Interrupts under load"

STRIKES, TASKS, LIMIT = 1000, 3000, 30.0  # how many, tasks a call, seconds after which one counts as never answered
STRUCK = f"""
import signal, sys
from reduset._engine import run_all, set_threads
def strike(number, frame):
    raise KeyboardInterrupt
set_threads(4)
run_all([int] * 8, blas=True)
signal.signal(signal.SIGHUP, strike)
tasks = [int] * {TASKS}
print("ready", flush=True)
for _ in range({STRIKES}):
    try:
        while True:
            run_all(tasks, blas=True)
    except KeyboardInterrupt:
        print("answered", flush=True)
"""


def _burn() -> None:
    while True:
        sum(range(10_000))


def run() -> str:
    rng = np.random.default_rng(0)
    burners = [multiprocessing.Process(target=_burn, daemon=True) for _ in range(2 * (os.cpu_count() or 1))]
    for burner in burners:
        burner.start()
    waits: list[float] = []
    try:
        with subprocess.Popen([sys.executable, "-c", STRUCK], stdout=subprocess.PIPE, text=True) as struck:
            assert struck.stdout is not None
            struck.stdout.readline()
            for _ in range(STRIKES):
                time.sleep(float(rng.uniform(0, 0.02)))
                begun = time.perf_counter()
                struck.send_signal(signal.SIGHUP)
                signal.alarm(int(LIMIT))  # a hang ends the benchmark with an error
                assert struck.stdout.readline() == "answered\n"
                signal.alarm(0)
                waits.append(time.perf_counter() - begun)
    finally:
        for burner in burners:
            burner.terminate()
    rows = [[f"{STRIKES:,}", f"{len(waits):,}", f"{1000 * np.median(waits):.1f} ms", f"{1000 * max(waits):.0f} ms"]]
    return table(["interrupts", "answered", "median wait", "longest"], rows) + (
        f"\n\nFour threads of `run_all` with {TASKS:,} tiny tasks a call, BLAS held; {len(burners)} other processes burn the cores."
    )
