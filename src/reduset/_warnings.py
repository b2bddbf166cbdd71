"""Warnings that point at the caller's line, however deep inside the library they arise."""

from __future__ import annotations

import sys
import warnings

BETWEEN = ("reduset", "sklearn", "contextlib")  # whose frames lie between the fault and the line that a user can change


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn on the line of whoever called the library: the first frame that is neither ours nor one of the wrappers around us."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
