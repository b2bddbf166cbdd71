"""The same seed, the same bits: from the main thread, other threads, many at once, forks, and new processes of any kind.

BLAS adds in another order with another number of threads. Each test therefore runs in a process of its own, where BLAS has several
threads, as it has on people's machines; elsewhere in the tests it has one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "support" / "bits_of_many_uses.py"
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
SEVERAL = {"OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "4", "REDUSET_NUM_THREADS": "2"}


def bits(how: str, environment: dict[str, str] = SEVERAL) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT), how],
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def in_the_main_thread():
    (digest,) = bits("main")
    return digest


@pytest.mark.parametrize("how", ["threads", "crowd", "fork", "spawn", "loky"])
def test_the_same_bits_come_from(how, in_the_main_thread):
    assert bits(how) == {in_the_main_thread}


def test_the_same_bits_come_with_one_thread_of_blas(in_the_main_thread):
    assert bits("main", dict.fromkeys(SEVERAL, "1")) == {in_the_main_thread}


@pytest.mark.parametrize("how", ["limits", "limits in a thread", "limits after a fork", "limits lifted by others"])
def test_the_limit_is_set_where_it_takes_effect_and_is_lifted(how):
    assert bits(how) == {"held", "lifted"}
