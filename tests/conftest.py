"""How the tests are run.

Where the run must be the same every time (CI), hypothesis draws the same examples; elsewhere it looks for new ones. Two processes
of tests compile each function once. What was collected lives to the end, so the garbage collector need not look through it again
and again, while it is collected or later.
"""

import gc
import os

import pytest
from hypothesis import settings

from case_marks import mark_slow_cases
from compile_once import share_compilation
from timings import Timings

settings.register_profile("repeatable", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("repeatable")
share_compilation()


def pytest_addoption(parser):
    parser.addoption("--timings", action="store_true", help="show the slowest tests and the time by package")
    parser.addoption("--timings-file", help="write the seconds of each test to this JSON file, too")


def pytest_configure(config):
    if (config.option.timings or config.option.timings_file) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Timings(config.option.timings_file))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    mark_slow_cases(items)


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
