"""Kernels by name: each is a file of CUDA, compiled for the card at hand when it is first asked for; CuPy keeps it on disk."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

OPTIONS = ("--std=c++17",)


@cache
def kernel(name: str, waits: bool = False, **defined: Any) -> Any:
    """The kernel of that name in the file of that name, with what is ``defined`` in it.

    One that ``waits`` for all its blocks must have them all at work.
    """
    import cupy

    code = files("reduset._engine.cuda").joinpath(f"{name}.cu").read_text(encoding="utf-8")
    options = (*OPTIONS, *(f"-D{key}={value}" for key, value in defined.items()))
    return cupy.RawKernel(code, name, options=options, enable_cooperative_groups=waits)


@cache
def processors(device: int) -> int:
    """How many multiprocessors a card has."""
    import cupy

    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])
