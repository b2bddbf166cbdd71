"""A cluster may lose workers, vanish or be stopped; what comes of it is the same result or one plain line."""

import inspect
import os
import signal
import socket
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from sklearn.base import clone

from dask_cases import assert_equal, cluster, parts, points
from reduset import FunctionKernel, Gaussian, NotReachedWarning, cohort, distributed
from reduset.kernels import ANY_FAMILY

pytestmark = pytest.mark.slow

X = points()


def slowly(block):
    time.sleep(0.02)
    return block


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the pipes to a worker that was killed, which its nanny leaves open
def test_a_worker_that_is_killed_changes_nothing():
    D = parts(X, 750).map_blocks(slowly)
    expected = distributed.compress(D, Gaussian(0.8), size=40, rng=0)
    killed = []
    with cluster(2, processes=True) as (made, _):
        first = next(iter(made.workers.values()))

        def kill_in_the_middle(stage, done, total):
            if stage == "certifying" and done == 4 and not killed:
                killed.append(first.pid)
                os.kill(first.pid, signal.SIGKILL)

        result = distributed.compress(D, Gaussian(0.8), size=40, rng=0, progress=kill_in_the_middle)
        by_address = distributed.compress(parts(X, 6000), Gaussian(0.8), size=10, rng=0, client=made.scheduler_address)
    assert killed
    assert_equal(result, expected)
    assert_equal(by_address, distributed.compress(parts(X, 6000), Gaussian(0.8), size=10, rng=0))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_what_is_stopped_leaves_no_work_behind(error):
    begun = []

    def counted(block):
        begun.append(1)
        return slowly(block)

    D = parts(X, 200).map_blocks(counted, dtype=X.dtype, meta=np.empty((0, 0)))

    def stop(stage, done, total):
        if stage == "sampling" and done == 3:
            raise error

    with cluster(1) as (made, _):
        with pytest.raises(error):
            distributed.compress(D, Gaussian(0.8), size=10, rng=0, progress=stop)
        for _ in range(100):
            if not made.scheduler.tasks:
                break
            time.sleep(0.05)
        assert not made.scheduler.tasks
        assert len(begun) < 60
        assert distributed.compress(parts(X), Gaussian(0.8), size=10, rng=0).size == 10  # and the next one works
    begun.clear()
    with pytest.raises(error), dask.config.set(num_workers=1):
        distributed.compress(D, Gaussian(0.8), size=10, rng=0, progress=stop)
    assert len(begun) < 60


def test_a_failing_partition_is_the_users_own_error():
    def fail(block):
        raise OSError("the disk is on fire")

    D = parts(X).map_blocks(fail, dtype=X.dtype, meta=np.empty((0, 0)))
    with pytest.raises(OSError, match="the disk is on fire"):
        distributed.compress(D, Gaussian(0.8), size=10, rng=0)
    with cluster(1), pytest.raises(OSError, match="the disk is on fire"):
        distributed.compress(D, Gaussian(0.8), size=10, rng=0)


def test_a_scheduler_that_does_not_answer_is_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]  # nobody listens there
        for address in (f"tcp://127.0.0.1:{port}", f"127.0.0.1:{port}", "nonsense"):
            begun = time.monotonic()
            with pytest.raises(ConnectionError, match="no Dask scheduler answers at") as caught:
                distributed.compress(parts(X), Gaussian(0.8), size=10, client=address)
            assert address in str(caught.value)
            assert "\n" not in str(caught.value)
            assert caught.value.__suppress_context__
            assert time.monotonic() - begun < 10


def test_a_cluster_that_goes_away_is_one_line():
    with cluster(1) as (made, client):
        closing = threading.Thread(target=made.close)

        def close(stage, done, total):
            if stage == "certifying" and done == 1:
                client.cancel(list(client.futures))
                closing.start()

        with pytest.raises(ConnectionError, match="is gone, or has cancelled the work"):
            distributed.compress(parts(X, 500).map_blocks(slowly), Gaussian(0.8), size=10, rng=0, progress=close)
        closing.join()  # Dask does not bear to be closed twice at a time


def test_a_client_must_be_one_that_can_be_waited_for():
    with pytest.raises(TypeError, match="client must be a distributed"):
        distributed.compress(parts(X), size=3, client=7)
    with cluster(1) as (_, client):
        client.close()
        with pytest.raises(ConnectionError, match="its status is 'closed'"):
            distributed.compress(parts(X), size=3, client=client)


@pytest.mark.parametrize("on_a_cluster", [False, True])
def test_progress_counts_the_partitions(on_a_cluster):
    told = []

    def run():
        distributed.compress(parts(X), size=10, rng=0, progress=lambda *args: told.append(args))

    if on_a_cluster:
        with cluster(2):
            run()
    else:
        run()
    for stage in ("looking", "sampling", "certifying"):
        assert [done for name, done, total in told if name == stage and total == 8] == list(range(9))


def test_the_dashboard_shows_what_tasks_do():
    with cluster(1) as (made, _):
        distributed.compress(parts(X, 1000), size=10, rng=0)
        names = set(made.scheduler.task_prefixes)
    assert {"reduset-look", "reduset-sample", "reduset-merge", "reduset-certify"} <= names


# -- bad input --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused_by_partition(bad):
    Y = X.copy()
    Y[4000, 1] = bad
    with pytest.raises(ValueError, match=r"partition 2 must be finite, got (nan|inf) in row 1000, column 1"):
        distributed.compress(parts(Y), Gaussian(0.8), size=10)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (lambda: X, TypeError, "collection must be a Dask array.*use reduset.compress"),
        (lambda: parts(X)[:, 0], ValueError, "must have two dimensions"),
        (lambda: [delayed(X[:500]), delayed(X[:500, :2])], ValueError, "partition 1 .*got 2"),
        (lambda: [delayed(X[:0]), delayed(X[:0])], ValueError, "all its partitions are empty"),
        (
            lambda: [delayed(pd.DataFrame(X[:9], columns=list("abc"))), delayed(pd.DataFrame(X[:9], columns=list("acb")))],
            ValueError,
            r"partition 1 must have the columns \['a', 'b', 'c'\]",
        ),
        (
            lambda: dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), npartitions=1),
            TypeError,
            "partition 0 must hold",
        ),
    ],
)
def test_what_is_no_table_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        distributed.compress(given(), Gaussian(0.8), size=10)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, ValueError, "exactly one of size .* and tol"),
        ({"size": 3, "tol": 0.1}, ValueError, "exactly one of size .* and tol"),
        ({"size": 3, "max_size": 9}, ValueError, "max_size goes with tol"),
        ({"size": 20_000}, ValueError, "size must be between 1 and"),
        ({"size": 3, "weights": "own"}, ValueError, "weights must be one of"),
        ({"size": 3, "kernel": FunctionKernel("rbf", gamma=1.0)}, TypeError, f"must be a {ANY_FAMILY}"),
        ({"size": 3, "sample_weight": np.ones(5)}, ValueError, r"sample_weight must have shape \(12000,\)"),
        ({"size": 3, "sample_weight": np.zeros(len(X))}, ValueError, "all weights are zero"),
        ({"size": 3, "sample_weight": -np.ones(len(X))}, ValueError, r"sample_weight of partition \d must not be negative"),
    ],
)
def test_what_cannot_be_done_is_said(options, error, words):
    with pytest.raises(error, match=words):
        distributed.compress(parts(X), **{"kernel": Gaussian(0.8)} | options)


def test_a_size_beyond_the_rows_is_refused():
    with pytest.raises(ValueError, match=r"size .*got 10"):
        distributed.compress(parts(X[:9], 4), Gaussian(0.8), size=10)


# -- cohorts ----------------------------------------------------------------------------------------------------------------

BAGS = [points(900 + 10 * k, 2, seed=k) + 0.4 * (k % 3) for k in range(6)]


def away(bags):
    """The same bags, each given in another way."""
    ways = [
        delayed,
        lambda bag: da.from_array(bag, chunks=(300, 2)),
        lambda bag: dd.from_pandas(pd.DataFrame(bag), npartitions=2),
        lambda bag: bag,
    ]
    return {f"bag {k}": ways[k % 4](bag) for k, bag in enumerate(bags)}


def test_a_cohort_has_the_parameters_that_it_has_in_memory_and_a_client():
    local, remote = (list(inspect.signature(one.CohortMap).parameters) for one in (cohort, distributed))
    assert remote == [*local, "client"]
    asked = distributed.CohortMap("kl", n_components=3, client="tcp://nowhere:1")
    assert asked.get_params() == cohort.CohortMap("kl", n_components=3).get_params() | {"client": "tcp://nowhere:1"}
    assert clone(asked).get_params() == asked.get_params()
    with pytest.raises(TypeError, match="unexpected keyword argument 'workers'"):
        distributed.CohortMap(workers=3)


@pytest.mark.parametrize(
    "options", [{}, {"tol": 0.1}, {"size": 30, "atoms": "own"}, {"distance": "kl", "size": 30}, {"tol": 0.05, "distance": "kl"}]
)
def test_a_cohort_has_the_numbers_that_it_has_in_memory(options):
    local, remote = (one.CohortMap(layout="mds", random_state=0, **options) for one in (cohort, distributed))
    local.fit(BAGS)
    remote.fit(away(BAGS))
    for name in ("embedding_", "distances_", "errors_"):
        np.testing.assert_array_equal(getattr(remote, name), getattr(local, name))
    assert remote.kernel_ == local.kernel_
    assert remote.names_ == [f"bag {k}" for k in range(6)]
    assert [each.certificate for each in remote.compressions_] == [each.certificate for each in local.compressions_]
    near = points(500, 2, seed=9)
    for given, expected in zip(remote.distances_to_fitted([delayed(near)]), local.distances_to_fitted([near]), strict=True):
        np.testing.assert_allclose(given, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(remote.transform([delayed(near)]), local.transform([near]), rtol=1e-6, atol=1e-9)


def test_a_later_bag_that_is_not_seen_is_named():
    remote = distributed.CohortMap(layout="mds", size=30, random_state=0).fit(away(BAGS))
    with pytest.warns(NotReachedWarning, match=r"1 of the later bags \('far'\) have errors up to") as caught:
        remote.distances_to_fitted({"near": delayed(BAGS[0]), "far": delayed(BAGS[0] + 50)})
    assert caught[0].filename == __file__


def arrays_in(value):
    """All arrays that a result of a task holds."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, list | tuple):
        return [array for each in value for array in arrays_in(each)]
    return arrays_in(list(vars(value).values())) if hasattr(value, "__dict__") else []


def test_a_cohort_on_a_cluster_is_the_same_and_its_points_stay_there(monkeypatch):
    seen, come = [], []
    plain = distributed.scheduling.ClusterScheduler.run

    def run(self, *arguments):
        come.append(plain(self, *arguments))
        return come[-1]

    monkeypatch.setattr(distributed.scheduling.ClusterScheduler, "run", run)
    monkeypatch.setattr(cohort.shared_atoms, "POOL_ROWS", 600)

    def read(k):
        return BAGS[k]

    local = cohort.CohortMap(layout="mds", size=20, random_state=0).fit(BAGS)
    with cluster(2) as (_, client):
        remote = distributed.CohortMap(layout="mds", size=20, random_state=0, client=client)
        remote.set_params(progress=lambda *args: seen.append(args)).fit([delayed(read)(k) for k in range(6)])
    np.testing.assert_array_equal(remote.distances_, local.distances_)
    assert {"opening", "weighing bags"} <= {stage for stage, _, _ in seen}
    assert max(len(array) for array in arrays_in(come)) == 100  # of each bag's 900 rows, those that are pooled


@pytest.mark.parametrize(
    ("bags", "options", "error", "words"),
    [
        (lambda: BAGS[:1], {}, ValueError, "at least 2"),
        (lambda: parts(BAGS[0]), {}, TypeError, "one Dask collection"),
        (lambda: [delayed(BAGS[0]), delayed(BAGS[1][:, :1])], {}, ValueError, r"bags\[1\] must have 2 columns like bags\[0\]"),
        (lambda: [delayed(BAGS[0]), delayed(BAGS[1][:1])], {}, ValueError, r"bags\[1\] must hold at least 2 points"),
        (lambda: [delayed(BAGS[0]), delayed(BAGS[1] * np.nan)], {}, ValueError, r"bags\[1\] must be finite"),
        (lambda: BAGS, {"atoms": "all"}, ValueError, "use reduset.cohort.CohortMap"),
    ],
)
def test_bags_that_cannot_be_compared_are_refused(bags, options, error, words):
    with pytest.raises(error, match=words):
        distributed.CohortMap(layout="mds", random_state=0, **options).fit(bags())
