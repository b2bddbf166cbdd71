"""How the tests are run.

Where the run must be the same every time (CI), hypothesis draws the same examples; elsewhere it looks for new ones. Two processes
of tests compile each function once. What was collected lives to the end, so the garbage collector need not look through it again
and again, while it is collected or later.
"""

import gc
import os

import pytest
from hypothesis import settings

from compile_once import share_compilation

settings.register_profile("repeatable", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("repeatable")
share_compilation()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
