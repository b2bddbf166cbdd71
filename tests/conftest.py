import pytest

import reduset


@pytest.fixture(autouse=True)
def _default_threads():
    yield
    reduset.set_threads(None)
