"""Peak memory of a compression, of a process of its own: what docs/scaling.md says, also where rows repeat themselves."""

import os
import subprocess
import sys

import numpy as np
import pytest

from reduset.cli.compress import WORK

pytestmark = pytest.mark.slow

ROWS, COLUMNS = 1_000_000, 4
FIXED = 24 << 20  # batches and blocks of two threads, which do not grow with the rows: less than the 60 MB of docs/scaling.md

CODE = """
import os, sys, warnings
import numpy as np
from reduset import Gaussian, compress

warnings.simplefilter("ignore")
n, d = int(sys.argv[1]), int(sys.argv[2])
cases = list(zip(*[iter(sys.argv[3:])] * 3))

def memory(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) * 1024

def rows(kind, n):
    rng = np.random.default_rng(0)
    if kind == "normal":
        return rng.normal(size=(n, d))
    if kind == "duplicated":
        return rng.normal(size=(30, d))[rng.integers(30, size=n)]
    return np.ones((n, d)) if kind == "equal" else rng.integers(0, 255, size=(n, d)).astype(np.float64)

def work(X, name, value):
    if name == "size":
        return compress(X, size=int(value), rng=0)
    # else thousands of atoms, whose matrices are a matter of m²
    return compress(X, Gaussian("median"), tol=float(value), rng=0)

def risen(kind, *how):
    X = rows(kind, n)
    before = memory("VmRSS")
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
    work(X, *how)
    return memory("VmHWM") - before

for kind, *how in cases:
    work(rows(kind, 3000), *how)  # what the libraries themselves take
for case in cases:  # each in a child of its own, whose peak begins with that
    child = os.fork()
    if not child:
        print(risen(*case), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
"""
CASES = [(kind, *how) for kind in ("normal", "duplicated", "equal", "whole") for how in (("size", "100"), ("tol", "0.02"))]


@pytest.fixture(scope="module")
def risen():
    """How far memory rose above what it was with the rows, by case."""
    words = [sys.executable, "-c", CODE, str(ROWS), str(COLUMNS), *(word for case in CASES for word in case)]
    two = {**os.environ, "REDUSET_NUM_THREADS": "2"}
    out = subprocess.run(words, env=two, capture_output=True, text=True, check=True).stdout
    return dict(zip(CASES, map(int, out.split()), strict=True))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_work_takes_what_the_pages_say(case, risen):
    number, row = WORK
    assert 0 < risen[case] < ROWS * (number * COLUMNS + row) + FIXED


def test_places_that_are_rare_among_rows_that_repeat_themselves_are_found():
    """Those that a draw of rows does not hold: k-means looks for them, k-centre chooses them, and neither copies the rows."""
    from reduset import Gaussian, compress

    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 50_000, axis=0)
    X[[7, 77_777]] = [[0.3, 4.1], [9.2, 0.1]]
    for select in ("kmeans", "kcenter", "auto"):
        small = compress(X, Gaussian(0.1), size=10, select=select, rng=0)
        assert {tuple(place) for place in small.mean.atoms} == {tuple(place) for place in np.unique(X, axis=0)}
        assert small.certificate.relative_error < 1e-6
