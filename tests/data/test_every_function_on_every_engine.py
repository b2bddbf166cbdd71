"""Every function that takes rows, on arrays, files, an executor, Dask and Ray: the same rows, and numbers equal up to rounding.

All engines and every number of workers return the same bits.
"""

import numpy as np
import pandas as pd
import pytest

from cases import cloud
from engine_cases import engine
from reduset import Gaussian, compress, cover, sketch, weigh
from reduset.cohort import CohortMap
from reduset.data import opened, partitions
from reduset.density import SparseKernelDensity
from reduset.drift import DriftTest

pytestmark = pytest.mark.slow
COLUMNS = ["a", "b", "c"]
X = pd.DataFrame(cloud(9000, 3, 0), columns=COLUMNS)
PARTS = [X[:4500], X[4500:5000], X[5000:8200], X[8200:]]  # one part has half of all rows
QUERIES, OTHER = (pd.DataFrame(cloud(n, 3, n), columns=COLUMNS) for n in (50, 500))
BAGS = [pd.DataFrame(cloud(900 + 10 * k, 3, k) + 0.4 * (k % 3), columns=COLUMNS) for k in range(5)]


def results(rows, bags):
    """Row numbers, and other numbers, of each function."""
    small = compress(rows, size=40, rng=0)  # searches for the resolution
    sample = sketch(rows, 40, rng=0)
    cover_of_rows = cover(rows, 30)
    best = weigh(rows, np.arange(0, 9000, 300), Gaussian(1.0), rng=0)
    test = DriftTest(random_state=0).fit(rows)
    density = SparseKernelDensity(size=40, random_state=0).fit(rows)
    cohort = CohortMap(layout="mds", size=20, random_state=0).fit(bags)
    drift = test.test(OTHER)
    numbers = {"sketch": sample.indices, "cover": cover_of_rows.indices, "assignments": cover_of_rows.assignments}
    values = {
        "compress": [small.mean.atoms, small.mean.weights, small.resolution, small.certificate.relative_error],
        "sketch": [sample.weights],
        "cover": [cover_of_rows.distances, cover_of_rows.radius, cover_of_rows.assignment_distances],
        "weigh": [best.mean.weights, best.certificate.relative_error],
        "drift": [drift.p_value, drift.statistic, drift.distance],
        "density": [density.score_samples(QUERIES), density.score_samples(rows)],
        "queries": [small.mean(QUERIES), small.mean(rows)],
        "cohort": [cohort.distances_, cohort.errors_],
    }
    return numbers, values


def assert_same(one, other, rtol):
    for name, expected in one[0].items():
        np.testing.assert_array_equal(other[0][name], expected, err_msg=name)
    for name, expected in one[1].items():
        for mine, theirs in zip(other[1][name], expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-3 * rtol, err_msg=name)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The rows in four files, and a file for each bag."""
    rows, bags = (tmp_path_factory.mktemp(name) for name in ("rows", "bags"))
    for folder, parts in ((rows, PARTS), (bags, BAGS)):
        for k, part in enumerate(parts):
            part.to_parquet(folder / f"{k}.parquet")
    return rows, bags


@pytest.fixture(scope="module")
def expected():
    return results(X, BAGS)


@pytest.fixture(scope="module")
def on_threads(folders):
    return run_on("threads", 2, folders)


def run_on(name, workers, folders):
    rows, bags = folders
    with engine(name, workers) as chosen:
        return results(partitions(rows, chosen), [partitions(path, chosen) for path in sorted(bags.iterdir())])


def test_files_give_the_results_of_arrays(folders, expected):
    rows, bags = folders
    assert_same(expected, results(opened(rows), sorted(bags.iterdir())), 1e-6)


def test_an_executor_gives_the_results_of_arrays(expected, on_threads):
    assert_same(expected, on_threads, 1e-6)


@pytest.mark.parametrize(
    ("name", "workers"), [("threads", 1), ("processes", 2), ("dask", 1), ("dask", 2), ("ray", 1), ("ray", 2)], ids=str
)
def test_engines_and_numbers_of_workers_change_no_bit(name, workers, folders, on_threads):
    assert_same(on_threads, run_on(name, workers, folders), 0)
