"""Kernels by name: each is a file of CUDA, compiled for the card at hand when it is first asked for; CuPy keeps it on disk."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

OPTIONS = ("--std=c++17",)
TYPES = {"float16": "__half", "float32": "float", "float64": "double"}
SHARED = re.compile(r'^#include "(\w+\.cuh)"$', re.MULTILINE)


@cache
def kernel(file: str, name: str | None = None, waits: bool = False, **defined: Any) -> Any:
    """A kernel of a file, the one of its name if no other is named, with what is ``defined`` in it.

    One that ``waits`` for all its blocks must have them all at work.
    """
    import cupy

    folder = files("reduset._engine.cuda")
    code = folder.joinpath(f"{file}.cu").read_text(encoding="utf-8")
    code = SHARED.sub(lambda found: folder.joinpath(found[1]).read_text(encoding="utf-8"), code)
    options = (*OPTIONS, *(f"-D{key}={value}" for key, value in defined.items()))
    return cupy.RawKernel(code, name or file, options=options, enable_cooperative_groups=waits)


@cache
def processors(device: int) -> int:
    """How many multiprocessors a card has."""
    import cupy

    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])
