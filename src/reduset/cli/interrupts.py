"""Interrupts that are answered: Ctrl-C, and a polite request to end, which is an end like it.

Python drops an exception that strikes while it runs something for itself (the callback of a weak reference, a finaliser), and with
it the interrupt. So an interrupt is raised again, every `AGAIN` seconds, until somebody has it in hand. While a module is
imported, or LLVM compiles, it waits, for at most `LONGEST_IMPORT` seconds: compiled modules print a traceback and raise another
error, and LLVM's callbacks print one and drop it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AGAIN = 1.0  # seconds
LONGEST_IMPORT, LOOK_AGAIN = 10.0, 0.05
LLVM = f"{os.sep}llvmlite{os.sep}"
_asked: list[float] = []  # when the first interrupt came
ENDS = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
IGNORED = (signal.SIG_IGN, None)  # as nohup has it, or somebody who is no Python


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise a KeyboardInterrupt inside for any of the signals that ask for an end, until it is out."""
    numbers = [getattr(signal, name) for name in ENDS if hasattr(signal, name)]
    if hasattr(signal, "setitimer"):
        numbers.append(signal.SIGALRM)
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler not in IGNORED:
            signal.signal(number, _interrupt)
    try:
        yield
    finally:
        _again(0.0)
        _asked.clear()
        for number, handler in before.items():
            if handler not in IGNORED:
                signal.signal(number, handler)


def _interrupt(number: int, frame: Any) -> None:
    _asked.append(time.monotonic())
    if hasattr(signal, "setitimer") and must_not_interrupt(frame) and time.monotonic() - _asked[0] < LONGEST_IMPORT:
        _again(LOOK_AGAIN)
        return
    _again(AGAIN)
    if not isinstance(sys.exception(), KeyboardInterrupt):  # while one is on its way out, nothing may stop the tidying up
        raise KeyboardInterrupt


def must_not_interrupt(frame: Any) -> bool:
    """Whether a frame is inside of an import, or of llvmlite, whose callbacks from LLVM print an exception and drop it."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib") or LLVM in file:
            return True
        frame = frame.f_back
    return False


def _again(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
