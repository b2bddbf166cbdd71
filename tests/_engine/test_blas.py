"""The same seed, the same bits: from the main thread, other threads, many at once, forks, and new processes of any kind.

BLAS adds in another order with another number of threads. All of this is therefore run in processes of its own, where BLAS has
several threads, as it has on people's machines; elsewhere in the tests it has one. A crowd of threads has a process to itself, in
which it is the first to load anything; the other ways follow each other in one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[1] / "support" / "bits_of_many_uses.py"
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
SEVERAL = {"OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "4", "REDUSET_NUM_THREADS": "2"}


LIMITS = ["limits", "limits in a thread", "limits after a fork", "limits lifted by others"]  # the last leaves others behind


def bits(*ways: str, environment: dict[str, str] = SEVERAL) -> dict[str, list[str]]:
    """What each way printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), *ways],
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return {way: found for way, *found in (line.split("\t") for line in done.stdout.splitlines())}


@pytest.fixture(scope="module")
def found():
    return bits("threads", "fork", "spawn", "loky", *LIMITS) | bits("crowd")


@pytest.fixture(scope="module")
def in_the_main_thread(found):
    return found["threads"][0]


@pytest.mark.parametrize("how", ["threads", "crowd", "fork", "spawn", "loky"])
def test_the_same_bits_come_from(how, found, in_the_main_thread):
    assert len(found[how]) >= 2
    assert set(found[how]) == {in_the_main_thread}


def test_the_same_bits_come_with_one_thread_of_blas(in_the_main_thread):
    assert bits("main", environment=dict.fromkeys(SEVERAL, "1")) == {"main": [in_the_main_thread]}


@pytest.mark.parametrize("how", LIMITS)
def test_the_limit_is_set_where_it_takes_effect_and_is_lifted(how, found):
    assert set(found[how]) == {"held", "lifted"}
