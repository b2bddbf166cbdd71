"""Interrupts that are answered: Ctrl-C, and a polite request to end, which is an end like it.

Python drops an exception that strikes while it runs something for itself (the callback of a weak reference, a finaliser), and with
it the interrupt. So an interrupt is raised again, every `AGAIN` seconds, until somebody has it in hand.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AGAIN = 1.0  # seconds
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
        for number, handler in before.items():
            if handler not in IGNORED:
                signal.signal(number, handler)


def _interrupt(number: int, frame: Any) -> None:
    _again(AGAIN)
    if not isinstance(sys.exception(), KeyboardInterrupt):  # while one is on its way out, nothing may stop the tidying up
        raise KeyboardInterrupt


def _again(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
