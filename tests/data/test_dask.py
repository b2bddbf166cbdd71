"""The verbs on Dask collections: the results of arrays, whatever the partitions are and wherever the tasks run."""

import threading

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed

from cases import KERNELS
from dask_cases import assert_equal, cluster, parts, points, true_error
from reduset import Gaussian, Laplacian, NotReachedWarning, compress, get_threads
from reduset._engine.threads import thread_limit
from reduset.data import as_source
from reduset.weights import KINDS

X = points(6000)
COLUMNS = ["a", "b", "c"]
RADIAL = [name for name in KERNELS if name != "function"]


def assert_close(one, other):
    """Equal up to the rounding of sums."""
    np.testing.assert_allclose(one.mean.atoms, other.mean.atoms, rtol=1e-9)
    np.testing.assert_allclose(one.mean.weights, other.mean.weights, rtol=1e-6, atol=1e-9)
    assert one.certificate.relative_error == pytest.approx(other.certificate.relative_error, rel=1e-6)
    assert one.certificate.interval == pytest.approx(other.certificate.interval, rel=1e-6)
    assert one.certificate.norm == pytest.approx(other.certificate.norm, rel=1e-6)
    assert (one.n_samples, one.size) == (other.n_samples, other.size)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("kernel", RADIAL)
def test_the_result_is_that_of_an_array(kernel):
    Y = points(4500, 2)
    small, whole = (compress(given, KERNELS[kernel], size=40, rng=0) for given in (parts(Y, 800), Y))
    assert_close(small, whole)
    assert small.certificate.bound == pytest.approx(whole.certificate.bound, rel=1e-6)
    assert small.certificate.relative_error == pytest.approx(true_error(Y, small.mean), rel=0.3)


@pytest.mark.parametrize("kernel", [Gaussian(8.0), Laplacian(30.0, metric="cityblock")], ids=repr)
def test_many_columns(kernel):
    Y = points(4500, 45)
    assert_close(compress(parts(Y, 1500), kernel, size=30, rng=0), compress(Y, kernel, size=30, rng=0))


def test_errors_at_all_bandwidths_are_those_of_an_array():
    small, whole = (compress(given, size=30, rng=0) for given in (parts(X), X))
    assert small.resolution == pytest.approx(whole.resolution, rel=1e-6)
    one, other = small.profile(), whole.profile()
    np.testing.assert_allclose(one.bandwidths, other.bandwidths, rtol=1e-9)
    np.testing.assert_allclose(one.relative_errors, other.relative_errors, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(one.intervals, other.intervals, rtol=1e-5, atol=1e-9)
    assert small.near_median.relative_error == pytest.approx(whole.near_median.relative_error, rel=1e-5)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("rows", [77, 1000, 6000])
def test_the_size_of_partitions_does_not_matter(rows):
    assert_close(compress(parts(X, rows), Gaussian(0.8), size=30, rng=0), compress(X, Gaussian(0.8), size=30, rng=0))


@pytest.mark.parametrize("options", [{"tol": 0.1}, {"size": 30}, {"size": 30, "refine": True}], ids=str)
def test_searches_are_those_of_an_array(options):
    kernel = None if "size" in options and "refine" not in options else Gaussian(0.8)
    small, whole = (compress(given, kernel, rng=0, **options) for given in (parts(X), X))
    assert small.size == whole.size
    assert small.certificate.relative_error == pytest.approx(whole.certificate.relative_error, rel=0.02)
    assert small.mean.kernel.width == pytest.approx(whole.mean.kernel.width, rel=1e-6)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("weights", KINDS)
def test_weightings(weights):
    options = {"kernel": Gaussian(0.8), "size": 30, "weights": weights, "rng": 0}
    assert_close(compress(parts(X), **options), compress(X, **options))


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("rule", ["median", "iqr", "scott", "silverman"])
def test_bandwidth_rules_are_those_of_all_rows(rule):
    small = compress(parts(X), Gaussian(rule), size=10, rng=0)
    assert small.mean.kernel.width == pytest.approx(Gaussian(rule).resolve(X).width, rel=1e-6)


def test_a_tolerance_that_is_not_reached_gives_a_warning():
    with pytest.warns(NotReachedWarning, match="max_size"):
        small = compress(parts(X), Gaussian(0.3), tol=1e-4, max_size=30, rng=0)
    assert not small.reached


# -- where tasks run ------------------------------------------------------------------------------------------------------


def test_threads_one_worker_and_three_give_equal_bits():
    D = parts(X)
    by_threads = compress(D, Gaussian(0.8), size=30, rng=0)
    with dask.config.set(scheduler="synchronous"):
        assert_equal(compress(D, Gaussian(0.8), size=30, rng=0), by_threads)
    for workers in (1, 3):
        with cluster(workers) as (made, _):
            assert_equal(compress(D, Gaussian(0.8), size=30, rng=0), by_threads)
            assert made.scheduler.task_prefixes


def test_of_two_clusters_the_current_client_is_used():
    with cluster(1) as (one, first), cluster(1) as (other, _):
        with first.as_current():
            small = compress(parts(X), Gaussian(0.8), size=10, rng=0)
        assert one.scheduler.task_prefixes
        assert not other.scheduler.task_prefixes
    assert_equal(small, compress(parts(X), Gaussian(0.8), size=10, rng=0))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_may_compress_on_its_own_cluster(workers):
    def compressed():
        return compress(parts(X, 1500), Gaussian(0.5), size=10, rng=0)

    with cluster(workers) as (_, client):
        inside = client.submit(compressed, pure=False).result(timeout=60)
    assert_equal(inside, compressed())


def test_tasks_use_one_thread_each():
    rows = as_source(parts(X, 1500))
    before, elsewhere = get_threads(), []
    with thread_limit(2):
        thread = threading.Thread(target=lambda: elsewhere.append(get_threads()))
        thread.start()
        thread.join()
        assert rows.map_rows(lambda block: np.full(len(block), get_threads())).tolist() == [1] * len(X)
    assert [get_threads(), *elsewhere] == [before, before]


# -- kinds of collections ---------------------------------------------------------------------------------------------------


def test_a_frame_an_array_and_delayed_parts_of_the_same_rows_are_the_same():
    frame = pd.DataFrame(X, columns=COLUMNS)
    pieces = [X[a : a + 1500] for a in range(0, len(X), 1500)]
    expected = compress(parts(X, 1500), Gaussian(0.8), size=20, rng=0)
    given = [
        parts(X, 1500, 2),  # columns in two blocks
        dd.from_pandas(frame, npartitions=4),
        [delayed(piece) for piece in pieces],
        [delayed(pd.DataFrame(piece)) for piece in pieces],
        [delayed(pieces[0]), *pieces[1:]],
    ]
    for collection in given:
        assert_equal(compress(collection, Gaussian(0.8), size=20, rng=0), expected)


def test_rows_of_unknown_number_and_empty_partitions_work():
    D = parts(points(12_000), 1500)
    kept = D[D[:, 0] > 0.5]  # lengths unknown
    small = compress(kept, Gaussian(0.8), size=20, rng=0)
    assert small.n_samples == (points(12_000)[:, 0] > 0.5).sum()
    frame = dd.from_pandas(pd.DataFrame(X, columns=COLUMNS).assign(row=np.arange(len(X))), npartitions=8)
    few = frame[frame.row >= 1500][COLUMNS]  # the first partitions are empty
    assert_close(compress(few, Gaussian(0.8), size=20, rng=0), compress(X[1500:], Gaussian(0.8), size=20, rng=0))


def test_partitions_may_have_different_number_types():
    whole = np.rint(3 * X)
    pieces = [whole[:1500], whole[1500:3000].astype(np.float32), whole[3000:4500].astype(np.int16), whole[4500:] > 0]
    mixed = compress([delayed(piece) for piece in pieces], Gaussian(2.0), size=20, rng=0)
    assert_close(mixed, compress(np.concatenate([piece.astype(float) for piece in pieces]), Gaussian(2.0), size=20, rng=0))


def test_weights_may_come_in_three_ways():
    w = np.random.default_rng(0).integers(0, 4, size=len(X))
    frame = pd.DataFrame(X, columns=COLUMNS).assign(w=w)
    options = {"kernel": Gaussian(0.8), "size": 20, "rng": 0}
    expected = compress(X, sample_weight=w, **options)
    for given, weight in (
        (parts(X, 2000), da.from_array(w, chunks=700)),
        (parts(X, 2000), w),
        (dd.from_pandas(frame, npartitions=3), "w"),
    ):
        assert_close(compress(given, sample_weight=weight, **options), expected)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.ones(5), r"sample_weight must have shape \(6000,\)"),
        (np.zeros(len(X)), "sample_weight must not be all zero"),
        (-np.ones(len(X)), "sample_weight must not be negative"),
    ],
)
def test_weights_that_do_not_fit_raise(weight, words):
    with pytest.raises(ValueError, match=words):
        compress(parts(X), Gaussian(0.8), size=3, sample_weight=da.from_array(weight))
