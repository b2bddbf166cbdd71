"""What only shows between processes and threads: the compiled code's cache, real interrupts, BLAS left as it was found."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from cases import SELECTORS
from reduset import Gaussian, KernelMean, compress
from reduset._engine.compiled import compiled

pytestmark = pytest.mark.slow

CACHED = """
import numpy as np
from reduset import Gaussian, compress
from reduset._engine import balance, factor, farthest, fourier, leaves, neighbours, profile, shadows, tiles

X = np.random.default_rng(0).normal(size=(6000, 3))
for select in ("kcenter", "kmeans", "thinning", "shadow"):
    small = compress(X, Gaussian(1.0, normalized=True), size=40, select=select, refine=3, rng=0)
small.mean(np.zeros((2, 3))), small.mean.gradient(np.zeros((2, 3)))
missed = [
    f"{module.__name__}.{name}"
    for module in (balance, factor, farthest, fourier, leaves, neighbours, profile, shadows, tiles)
    for name, function in vars(module).items()
    if hasattr(function, "stats") and sum(function.stats.cache_misses.values())
]
print(missed)
"""

LONG = """
import numpy as np
from reduset import Gaussian, KernelMean

mean = KernelMean.from_samples(np.random.default_rng(0).normal(size=(2_000_000, 3)), Gaussian(1.0))
mean(np.zeros((1, 3)))
print("begun", flush=True)
mean.norm()
"""

STRUCK = """
import faulthandler, random, signal
from reduset._engine.threads import run_all, set_threads

def strike(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, strike)
set_threads(2)
faulthandler.dump_traceback_later(120, exit=True)
moments, answered = random.Random(0), 0
for _ in range(2000):
    try:
        signal.setitimer(signal.ITIMER_REAL, moments.uniform(1e-5, 2e-3))
        while True:
            run_all([int] * 40)
    except KeyboardInterrupt:
        answered += 1
print(answered)
"""


def test_a_second_process_compiles_nothing():
    for _ in range(2):  # the first may be the one that fills the cache
        done = subprocess.run([sys.executable, "-c", CACHED], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_where_nothing_can_be_cached_code_is_compiled_all_the_same():
    namespace: dict = {}
    exec("def double(x):\n    return 2 * x", namespace)  # a function without a file has nowhere to be cached
    assert compiled()(namespace["double"])(21) == 42


def test_an_interrupt_ends_a_long_sum_soon():
    two = os.environ | {"REDUSET_NUM_THREADS": "2"}
    words = [sys.executable, "-c", LONG]
    with subprocess.Popen(words, env=two, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)  # it would run for many minutes
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_an_interrupt_of_threads_is_answered_at_whatever_moment_it_comes():
    """Threads are started, handed tasks and waited for thousands of times: no interrupt is dropped, and none waits for ever."""
    done = subprocess.run([sys.executable, "-c", STRUCK], capture_output=True, text=True)
    assert done.stdout.strip() == "2000", done.stderr


def test_blas_is_left_as_it_was_found_even_by_several_threads():
    def limits():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = limits()
    X = np.random.default_rng(0).normal(size=(5000, 50))
    threads = [threading.Thread(target=compress, args=(X, Gaussian(7.0)), kwargs={"size": 20, "rng": k}) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert limits() == before


@pytest.mark.parametrize("select", SELECTORS)
def test_equal_weights_give_one_result_however_they_are_stored(tmp_path, select):
    X = np.random.default_rng(0).normal(size=(5000, 2))
    full = KernelMean.from_samples(X, Gaussian(1.0))
    full.save(tmp_path / "full.npz")
    stored = [full, KernelMean.load(tmp_path / "full.npz"), KernelMean.from_samples(X, Gaussian(1.0), np.ones(5000))]
    results = [compress(mean, size=20, select=SELECTORS[select], rng=3) for mean in stored]
    for other in results[1:]:
        np.testing.assert_array_equal(other.indices, results[0].indices)
        np.testing.assert_allclose(other.mean.atoms, results[0].mean.atoms, atol=1e-9)
        np.testing.assert_allclose(other.certificate.interval, results[0].certificate.interval, rtol=1e-9)
