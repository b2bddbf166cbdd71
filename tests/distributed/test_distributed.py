"""compress on Dask: as good as in memory, whatever the partitions are and whoever works on them."""

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
from reduset import Gaussian, KernelMean, Laplacian, NotReachedWarning, compress, distributed, get_threads
from reduset._engine.threads import thread_limit
from reduset.weights import KINDS

X = points()
RADIAL = [name for name in KERNELS if name != "function"]


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("kernel", RADIAL)
def test_it_loses_about_as_much_as_in_memory_and_says_so_truly(kernel, monkeypatch):
    kernel = KERNELS[kernel]
    monkeypatch.setattr(distributed.first_pass, "SAMPLE_ROWS", 1600)  # fewer than there are
    Y = points(2000, 2)
    small, batch = distributed.compress(parts(Y, 280), kernel, size=60, rng=0), compress(Y, kernel, size=60, rng=0)
    stated, known = small.certificate, true_error(Y, small.mean)
    assert stated.relative_error == pytest.approx(known, rel=0.35, abs=1e-6)
    assert stated.interval[0] * 0.8 <= known <= stated.interval[1] * 1.2 + 1e-6
    assert stated.relative_error < 1.15 * batch.certificate.relative_error
    full = KernelMean.from_samples(Y, kernel)
    assert (small.mean - full).norm() <= stated.bound * (1 + 1e-9)
    assert stated.bound == pytest.approx(batch.certificate.bound, rel=0.15)
    assert stated.norm == pytest.approx(full.norm(), rel=0.01)
    assert small.size == 60
    assert small.n_samples == 2000
    assert small.indices is None


def test_the_weights_are_the_best_for_the_atoms():
    small = distributed.compress(parts(X), Gaussian(0.8), size=80, rng=0)
    again = small.reweigh(KernelMean.from_samples(X, Gaussian(0.8)), rng=0)
    assert true_error(X, small.mean) <= true_error(X, again.mean) * (1 + 1e-3)
    assert small.certificate.bound == pytest.approx(again.certificate.bound, rel=1e-9)
    assert small.certificate.incoherence == pytest.approx(again.certificate.incoherence, rel=1e-9)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("rows", [12_000, 5000, 1000, 77])
def test_how_the_rows_are_cut_hardly_matters(rows):
    kernel = Gaussian(0.8)
    whole = compress(X, kernel, size=80, rng=0)
    small = distributed.compress(parts(X, rows), kernel, size=80, rng=0)
    assert small.certificate.relative_error < 1.25 * whole.certificate.relative_error
    low, high = small.certificate.interval
    assert low * 0.8 <= true_error(X, small.mean) <= high * 1.2


@pytest.mark.slow
def test_the_interval_of_many_runs_holds_the_true_error_about_as_often_as_it_says():
    Y = points(3000, 2)
    runs = [distributed.compress(parts(Y, 1000), Gaussian(0.8), size=25, rng=seed) for seed in range(20)]
    held = sum(run.certificate.interval[0] <= true_error(Y, run.mean) <= run.certificate.interval[1] for run in runs)
    assert held >= 16


@pytest.mark.parametrize("tol", [0.1, 0.02])
def test_a_tolerance_is_reached_with_about_as_many_atoms_as_in_memory(tol, monkeypatch):
    monkeypatch.setattr(distributed.first_pass, "SAMPLE_ROWS", 1400)  # in about the proportion that it has to 12,000 rows
    monkeypatch.setattr(distributed.two_pass, "FIRST_SIZE", 500)
    Y = X[:4000]
    small = distributed.compress(parts(Y, 500), Gaussian(0.8), tol=tol, rng=0)
    batch = compress(Y, Gaussian(0.8), tol=tol, rng=0)
    assert small.reached
    assert small.certificate.interval[1] <= tol
    assert true_error(Y, small.mean) <= tol
    assert small.size <= 1.3 * batch.size
    assert small.certificate.bound is not None
    assert (small.mean - KernelMean.from_samples(Y, Gaussian(0.8))).norm() <= small.certificate.bound
    assert small.at(10).size == 10


@pytest.mark.parametrize("tol", [1, 1.0, 3])
def test_a_tolerance_is_below_one(tol):
    with pytest.raises(ValueError, match=f"tol .*got {tol!r}"):
        distributed.compress(parts(X), Gaussian(0.8), tol=tol)


def test_a_tolerance_out_of_reach_is_said():
    with pytest.warns(NotReachedWarning, match="tol=0.001.*30.*max_size"):
        small = distributed.compress(parts(X), Gaussian(0.8), tol=1e-3, max_size=30, rng=0)
    assert not small.reached
    assert small.size == 30


def test_a_search_that_begins_too_small_goes_on(monkeypatch):
    monkeypatch.setattr(distributed.two_pass, "FIRST_SIZE", 8)
    monkeypatch.setattr(distributed.two_pass, "LEAST_SIZE", 8)
    monkeypatch.setattr(distributed.two_pass, "TOGETHER", 8)
    small = distributed.compress(parts(X, 4000), Gaussian(1.0), tol=0.05, rng=0)
    assert small.reached
    assert true_error(X, small.mean) <= 0.05


@pytest.mark.parametrize("weights", [kind for kind in KINDS if kind != "free"])
def test_other_weights_are_kept_and_charged(weights):
    small = distributed.compress(parts(X), Gaussian(0.8), size=40, weights=weights, rng=0)
    assert small.mean.mass == pytest.approx(1.0)
    assert weights == "sum_to_one" or small.mean.weights.min() >= 0
    assert small.certificate.relative_error == pytest.approx(true_error(X, small.mean), rel=0.3)


def test_a_density_says_how_its_logarithm_changes():
    kernel = Gaussian(1.5, normalized=True)
    small, batch = distributed.compress(parts(X), kernel, size=60, rng=0), compress(X, kernel, size=60, rng=0)
    full = KernelMean.from_samples(X, kernel)
    largest = np.abs(small.mean.log_density(X) - full.log_density(X)).max()
    assert 0 < small.certificate.log_density_change <= largest * (1 + 1e-9)
    assert small.certificate.log_density_change < 5 * batch.certificate.log_density_change


# -- where and by whom ------------------------------------------------------------------------------------------------------


def test_threads_one_worker_and_three_give_the_same_to_the_last_bit():
    D = parts(X)
    by_threads = distributed.compress(D, Gaussian(0.8), size=50, rng=0)
    with dask.config.set(scheduler="synchronous"):
        assert_equal(distributed.compress(D, Gaussian(0.8), size=50, rng=0), by_threads)
    for workers in (1, 3):
        with cluster(workers) as (_, client):
            assert_equal(distributed.compress(D, Gaussian(0.8), size=50, rng=0), by_threads)  # the client in use
            assert_equal(distributed.compress(D, Gaussian(0.8), size=50, rng=0, client=client), by_threads)


def test_another_seed_gives_another_result():
    one, other = (distributed.compress(parts(X), Gaussian(0.8), size=20, rng=seed) for seed in (0, 1))
    assert not np.array_equal(one.mean.atoms, other.mean.atoms)


def test_tasks_keep_to_one_thread_and_others_do_not_notice():
    before = get_threads()
    distributed.compress(parts(X, 3000), Gaussian(0.8), size=20, rng=0)
    assert get_threads() == before
    with thread_limit(1):
        inside = []
        other = threading.Thread(target=lambda: inside.append(get_threads()))
        other.start()
        other.join()
        assert get_threads() == 1
        assert inside == [before]
    found = dask.compute(*[distributed.scheduling.task("one", k, get_threads) for k in range(4)], scheduler="threads")
    assert found == (1, 1, 1, 1)


# -- what may be given ------------------------------------------------------------------------------------------------------


def test_a_frame_an_array_and_delayed_parts_of_the_same_rows_are_the_same():
    D = parts(X, 3000)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    pieces = [X[a : a + 3000] for a in range(0, len(X), 3000)]
    expected = distributed.compress(D, Gaussian(0.8), size=30, rng=0)
    given = [
        parts(X, 3000, 2),  # columns in two blocks
        dd.from_pandas(frame, npartitions=4),
        [delayed(piece) for piece in pieces],
        [delayed(pd.DataFrame(piece)) for piece in pieces],
        [delayed(pieces[0]), *pieces[1:]],
    ]
    for collection in given:
        assert_equal(distributed.compress(collection, Gaussian(0.8), size=30, rng=0), expected)


def test_rows_of_unknown_number_and_empty_partitions_work():
    D = parts(X, 1500)
    kept = D[D[:, 0] > 0.5]  # lengths unknown
    small = distributed.compress(kept, Gaussian(0.8), size=30, rng=0)
    assert small.n_samples == (X[:, 0] > 0.5).sum()
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "c"]).assign(row=np.arange(len(X))), npartitions=8)
    few = frame[frame.row >= 9000][["a", "b", "c"]]  # the first partitions are empty
    small = distributed.compress(few, Gaussian(0.8), size=30, rng=0)
    assert small.n_samples == 3000
    assert small.certificate.relative_error == pytest.approx(true_error(X[9000:], small.mean), rel=0.3)


def test_partitions_may_be_of_different_number_types():
    whole = np.rint(3 * X)
    pieces = [whole[:3000], whole[3000:6000].astype(np.float32), whole[6000:9000].astype(np.int16), whole[9000:] > 0]
    mixed = distributed.compress([delayed(piece) for piece in pieces], Gaussian(2.0), size=30, rng=0)
    plain = distributed.compress([delayed(piece.astype(np.float64)) for piece in pieces], Gaussian(2.0), size=30, rng=0)
    np.testing.assert_allclose(mixed.mean.atoms, plain.mean.atoms, rtol=1e-9)
    np.testing.assert_allclose(mixed.mean.weights, plain.mean.weights, rtol=1e-6, atol=1e-9)


def test_weights_mean_repetition():
    w = np.random.default_rng(0).integers(0, 4, size=3000)
    Y = X[:3000]
    repeated = np.repeat(Y, w, axis=0)
    frame = pd.DataFrame(Y, columns=["a", "b", "c"]).assign(w=w)
    ways = [
        distributed.compress(parts(Y, 1000), Gaussian(0.8), size=40, rng=0, sample_weight=da.from_array(w, chunks=700)),
        distributed.compress(parts(Y, 1000), Gaussian(0.8), size=40, rng=0, sample_weight=w),
        distributed.compress(dd.from_pandas(frame, npartitions=3), Gaussian(0.8), size=40, rng=0, sample_weight="w"),
    ]
    for small in ways:
        assert small.n_samples == 3000
        assert_equal(small, ways[0])
    assert true_error(repeated, ways[0].mean) == pytest.approx(true_error(Y, ways[0].mean, w.astype(float)), rel=1e-6)
    assert ways[0].certificate.relative_error == pytest.approx(true_error(repeated, ways[0].mean), rel=0.3)
    batch = compress(Y, Gaussian(0.8), size=40, rng=0, sample_weight=w)
    assert ways[0].certificate.relative_error < 1.2 * batch.certificate.relative_error


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("rule", ["median", "iqr", "scott", "silverman", "mode_clustering"])
def test_a_bandwidth_rule_comes_near_that_of_all_rows(rule):
    small = distributed.compress(parts(X), Gaussian(rule), size=10, rng=0)
    assert small.mean.kernel.width == pytest.approx(Gaussian(rule).resolve(X).width, rel=0.05)
    Y = X[:2000]  # which the sample holds all of
    few = distributed.compress(parts(Y, 500), Gaussian(rule), size=10, rng=0)
    assert few.mean.kernel.width == pytest.approx(Gaussian(rule).resolve(Y).width, rel=1e-9)


def test_few_rows_and_single_places_are_no_trouble():
    Y = X[:5]
    small = distributed.compress(parts(Y, 2), Gaussian(0.8), size=5, rng=0)
    assert small.size == 5
    assert small.certificate.relative_error < 1e-6
    with pytest.warns(UserWarning, match="all points coincide"):
        one = distributed.compress(da.ones((100, 2), chunks=(30, 2)), size=1, rng=0)
    assert one.certificate.relative_error < 1e-6


def test_a_city_block_kernel_in_many_dimensions_works():
    Y = np.random.default_rng(0).normal(size=(2000, 45))
    for kernel in (Gaussian(8.0), Laplacian(30.0, metric="cityblock")):
        small = distributed.compress(parts(Y, 600), kernel, size=40, rng=0)
        assert small.certificate.relative_error == pytest.approx(true_error(Y, small.mean), rel=0.3)


def test_fewer_atoms_than_asked_for_are_explained():
    Y = np.random.default_rng(0).normal(size=(3000, 2))
    small = distributed.compress(da.from_array(Y, chunks=(1000, 2)), Gaussian(1.7), size=300, rng=0)
    assert small.size < 300
    assert f"{small.size} of the 300 atoms asked for: more are redundant at this bandwidth" in str(small)
    whole = distributed.compress(da.from_array(Y, chunks=(1000, 2)), Gaussian(0.4), size=300, rng=0)
    assert whole.size == 300
    assert "asked for" not in str(whole)


@pytest.mark.parametrize("tol", [0.05, 0.01])
def test_a_tolerance_selects_about_as_many_atoms_as_in_memory(tol):
    Y, selected = np.random.default_rng(0).normal(size=(3000, 3)), []
    collection = da.from_array(Y, chunks=(750, 3))

    def progress(stage, done, total):
        if stage == "selecting":
            selected.append(total)

    small = distributed.compress(collection, Gaussian(1.0), tol=tol, rng=0, progress=progress)
    few = compress(Y, Gaussian(1.0), tol=tol, rng=0).size
    assert small.size <= 1.3 * few
    assert 0 < max(selected) <= 4 * few
