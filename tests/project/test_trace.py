"""The path of a call of `compress`: the files, functions and depth that a reader follows, and one validation of the points."""

import sys
from pathlib import Path

import numpy as np
import pytest

import reduset
from reduset import compress

PACKAGE = f"{Path(reduset.__file__).parent}/"
MAX_FILES, MAX_FUNCTIONS, MAX_DEPTH = 35, 180, 12
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


def traced(call):
    """The functions of the package outside of the engine that a call passes, as (file, name, first line), and the largest depth."""
    functions, stack, depth = [], [], 0

    def profile(frame, event, _):
        nonlocal depth
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or code.co_name in COMPREHENSIONS:
            return
        path = code.co_filename.removeprefix(PACKAGE)
        if path.startswith("_engine/"):
            return
        if event == "call":
            functions.append((path, code.co_name, code.co_firstlineno))
            stack.append(code)
            depth = max(depth, len(stack))
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return functions, depth


@pytest.mark.slow
def test_a_reader_follows_compress_through_few_files_and_functions():
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    compress(X[:3000], size=50, tol=0.2, rng=0)  # so that nothing is imported or compiled below
    functions, depth = traced(lambda: compress(X, size=500, tol=0.05, rng=0))
    assert len({path for path, _, _ in functions}) <= MAX_FILES
    assert len(set(functions)) <= MAX_FUNCTIONS
    assert depth <= MAX_DEPTH
    assert sum(name == "points" and path.startswith("_validate/arrays") for path, name, _ in functions) == 1
