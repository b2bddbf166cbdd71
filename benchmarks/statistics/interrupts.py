"""Interrupts under load: does a process that gives short tasks to threads answer every SIGHUP while the cores are busy?

An earlier version answered 609 of 640: a handler that raised an exception inside a condition variable of an executor left it
locked. Goal: all interrupts are answered.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks._lib import table, verdict

TITLE = "Interrupts under load"
SOURCES = ("_engine/threads.py",)

INTERRUPTS, QUICK_INTERRUPTS = 1000, 50
TASKS, LIMIT = 3000, 30.0  # tasks of a call; seconds after which an interrupt counts as unanswered
PROGRAM = f"""
import signal, sys
from reduset._engine import run_all, set_threads
def interrupt(number, frame):
    raise KeyboardInterrupt
set_threads(4)
run_all([int] * 8, blas=True)
signal.signal(signal.SIGHUP, interrupt)
tasks = [int] * {TASKS}
print("ready", flush=True)
for _ in range(int(sys.argv[1])):
    try:
        while True:
            run_all(tasks, blas=True)
    except KeyboardInterrupt:
        print("answered", flush=True)
"""


def _burn() -> None:
    while True:
        sum(range(10_000))


def measure(quick: bool) -> dict[str, Any]:
    count = QUICK_INTERRUPTS if quick else INTERRUPTS
    rng = np.random.default_rng(0)
    burners = [multiprocessing.Process(target=_burn, daemon=True) for _ in range(2 * (os.cpu_count() or 1))]
    for burner in burners:
        burner.start()
    waits: list[float] = []
    try:
        with subprocess.Popen([sys.executable, "-c", PROGRAM, str(count)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            for _ in range(count):
                time.sleep(float(rng.uniform(0, 0.02)))
                begun = time.perf_counter()
                process.send_signal(signal.SIGHUP)
                signal.alarm(int(LIMIT))  # a hang ends the benchmark with an error
                assert process.stdout.readline() == "answered\n"
                signal.alarm(0)
                waits.append(time.perf_counter() - begun)
    finally:
        for burner in burners:
            burner.terminate()
    median, longest = f"{1000 * np.median(waits):.1f} ms", f"{1000 * max(waits):.0f} ms"
    details = table(["interrupts", "answered", "median wait", "longest"], [[f"{count:,}", f"{len(waits):,}", median, longest]]) + (
        f"\n\nFour threads of `run_all` with {TASKS:,} short tasks a call, BLAS held; {len(burners)} other processes use the cores."
    )
    summary = [
        ["interrupts answered", f"{len(waits):,} of {count:,}", f"{count:,}", verdict(len(waits), count)],
        ["longest wait", longest, "", ""],
    ]
    return {"summary": summary, "details": details}
