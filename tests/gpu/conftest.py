"""Tests that need a CUDA device: left out where there is none."""

import pytest


def _device():
    try:
        import cupy

        return cupy.cuda.runtime.getDeviceCount() > 0
    except Exception:  # no library, no driver, no card
        return False


def pytest_collection_modifyitems(items):
    if _device():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="there is no CUDA device, or no cupy"))
