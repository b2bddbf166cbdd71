"""CUDA kernels by file name. They are compiled for the current GPU on first use, and CuPy caches them on disk."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

OPTIONS = ("--std=c++17",)
TYPES = {"float16": "__half", "float32": "float", "float64": "double"}
INCLUDES = re.compile(r'^#include "(\w+\.cuh)"$', re.MULTILINE)


@cache
def kernel(file: str, name: str | None = None, cooperative: bool = False, **defined: Any) -> Any:
    """The kernel ``name`` of a file, by default the file's name, with preprocessor definitions ``defined``.

    A ``cooperative`` kernel synchronises all its blocks, which must therefore run at the same time.
    """
    import cupy

    folder = files("reduset._engine.cuda")
    code = folder.joinpath(f"{file}.cu").read_text(encoding="utf-8")
    code = INCLUDES.sub(lambda match: folder.joinpath(match[1]).read_text(encoding="utf-8"), code)
    options = (*OPTIONS, *(f"-D{key}={value}" for key, value in defined.items()))
    return cupy.RawKernel(code, name or file, options=options, enable_cooperative_groups=cooperative)


@cache
def multiprocessors(device: int) -> int:
    """The number of multiprocessors of a GPU."""
    import cupy

    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])
