"""Streams: the whole of what came is certified, in any order and however it was cut; what is refused leaves no trace."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from cases import COVARIANCE
from reduset import Gaussian, KernelMean, Laplacian, Student, compress, set_threads
from reduset.kernels import ANY_FAMILY, FunctionKernel
from reduset.stream import StreamCompressor
from reduset.weights import KINDS
from stream_cases import ORDERS, apart, assert_identical, assert_within, error_of, mixture, ordered, streamed

KERNELS = [
    Gaussian(2.0),
    Gaussian(0.4),
    Gaussian(1.0, covariance=COVARIANCE, normalized=True),
    Gaussian(1.5, space="l2", normalized=True),
    Laplacian(2.0),
    Laplacian(1.5, metric="cityblock"),
    Student(1.5, exponent=2.5),
]


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_certificate_covers_the_whole_stream_in_any_order(kernel, order):
    X = ordered(mixture(2000, 2), order)
    result = streamed(X, kernel=kernel, buffer=250).result()
    assert result.n_samples == 2000
    assert result.size <= 60
    assert_within(X, result)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("dimension", "bandwidth"), [(2, 0.5), (5, 2.5), (5, 1.0), (12, 5.0)])
def test_a_stream_loses_little_more_than_all_rows_at_once(dimension, bandwidth, order):
    X, kernel = ordered(mixture(3000, dimension), order), Gaussian(bandwidth)
    batch = compress(X, kernel, size=60, rng=0).certificate.relative_error
    assert error_of(X, streamed(X, kernel=kernel, buffer=400).result().mean) <= 2 * batch


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kernel", [Gaussian(1.5), Gaussian(0.2), Laplacian(1.0)], ids=repr)
def test_the_covering_radius_in_the_remark_holds(kernel, order):
    X = np.concatenate([mixture(3000, 2), 15 * mixture(6, 2, 3)])  # six rows far from all others
    X = ordered(X, order)
    result = streamed(X, kernel=kernel, size=40).result()
    radius = apart(kernel, X, result.mean.atoms).min(axis=1).max()
    stated = float(result.remark.split("at most ")[1].split(" ")[0])
    assert radius / kernel.product(2).stretch <= stated * 1.01


@settings(max_examples=25, deadline=None)
@given(
    points=st.lists(st.tuples(st.integers(-30, 30), st.integers(-3, 3)), min_size=2, max_size=200),
    size=st.integers(1, 8),
    chunk=st.integers(1, 60),
)
def test_the_bound_holds_for_any_rows_in_any_chunks(points, size, chunk):
    X, kernel = np.array(points, float), Gaussian(2.0)
    result = streamed(X, chunk, kernel=kernel, size=size, buffer=16).result()
    assert error_of(X, result.mean) * KernelMean.from_samples(X, kernel).norm() <= result.certificate.bound * (1 + 1e-9) + 1e-7


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 3000), max_size=6))
def test_how_the_rows_are_cut_into_chunks_changes_nothing(cuts):
    X = mixture(3000, 3)
    w = np.linspace(0.5, 1.5, 3000)
    whole = streamed(X, 3000, w, size=40)
    stream = StreamCompressor(Gaussian(2.0), 40, 0, buffer=500)
    for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), 3000], strict=True):
        stream.partial_fit(X[a:b], sample_weight=w[a:b])
    assert_identical(stream.result(), whole.result())


def test_a_look_at_the_result_changes_nothing():
    X = mixture(4000, 2)
    one, other = streamed(X[:2300]), streamed(X[:2300])
    assert_identical(one.result(), one.result())
    assert_identical(one.partial_fit(X[2300:]).result(), other.partial_fit(X[2300:]).result())


def test_the_number_of_threads_changes_nothing():
    X = ordered(mixture(4000, 3), "sorted")
    try:
        results = []
        for threads in (1, 2):
            set_threads(threads)
            results.append(streamed(X).result())
    finally:
        set_threads(None)
    assert_identical(*results)


def test_weights_are_those_of_the_rows():
    X, w = mixture(5000, 2), np.random.default_rng(1).exponential(size=5000)
    w[::7] = 0
    result = streamed(X, sample_weight=w).result()
    assert result.n_samples == 5000
    assert_within(X, result, w)
    scaled = streamed(X, sample_weight=1e6 * w).result()
    np.testing.assert_allclose(scaled.mean.weights, result.mean.weights, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("weights", [kind for kind in KINDS if kind != "free"])
def test_every_kind_of_weights_is_certified(weights):
    X = ordered(mixture(4000, 2), "clustered")
    result = streamed(X, kernel=Gaussian(1.0), weights=weights).result()
    assert result.weighting == weights
    assert result.mean.mass == pytest.approx(1.0)
    assert_within(X, result)


def test_smaller_sizes_come_with_the_result():
    X = mixture(4000, 2)
    result = streamed(X).result()
    for size in (5, 20, 45):
        assert_within(X, result.at(size))
    assert len(result.path.sizes) == result.size


def test_forgetting_follows_a_drift():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 2)) + np.linspace(0, 12, 8000)[:, None]
    result = streamed(X, half_life=800.0, kernel=Gaussian(1.0)).result()
    w = 2.0 ** (-np.arange(7999, -1, -1) / 800)
    assert_within(X, result, w)
    assert np.average(result.mean.atoms[:, 0], weights=np.maximum(result.mean.weights, 0)) > 9


def test_a_stream_that_is_still_gathering_has_a_result():
    X = mixture(300, 2)
    stream = StreamCompressor(Gaussian(1.0), 30, 0).partial_fit(X)
    assert not hasattr(stream, "kernel_")
    assert_within(X, stream.result())


def test_a_rule_for_the_bandwidth_is_decided_by_the_first_rows():
    X = mixture(3000, 2)
    stream = StreamCompressor(Gaussian("scott"), 30, 0, buffer=1000).partial_fit(X)
    assert stream.kernel_ == Gaussian("scott").resolve(X[:1000], np.ones(1000))


def test_the_sample_is_of_the_rows():
    X = mixture(20_000, 2)
    sample = streamed(X, 3000).sample()
    assert sample.size == 8192
    assert sample.mass == pytest.approx(1.0)
    assert set(map(tuple, sample.atoms)) <= set(map(tuple, X))


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_fewer_rows_than_atoms_are_kept_as_they_are(rows):
    X = mixture(rows, 2)
    result = StreamCompressor(Gaussian(1.0), 10, 0).partial_fit(X).result()
    assert result.size == rows
    assert error_of(X, result.mean) < 1e-6


def test_rows_that_are_all_one_place_make_one_atom():
    result = streamed(np.ones((2000, 3)), size=5).result()
    np.testing.assert_array_equal(result.mean.atoms, np.ones((1, 3)))
    np.testing.assert_allclose(result.mean.weights, 1.0)


# -- what is refused ---------------------------------------------------------------------------------------------------------


def state_of(stream, tmp_path):
    stream.checkpoint(tmp_path / "state.npz")
    return (tmp_path / "state.npz").read_bytes()


def test_labels_are_ignored_by_every_way_of_fitting_and_weights_are_named():
    """As in scikit-learn: the second argument is y. Two classes, of which neither is to be lost."""
    X = np.concatenate([mixture(600, 2), mixture(600, 2) + 40.0])
    y = np.repeat([0, 1], 600)
    plain = StreamCompressor(Gaussian(1.0), 20, 0).fit(X).result()
    for stream in (StreamCompressor(Gaussian(1.0), 20, 0).fit(X, y), StreamCompressor(Gaussian(1.0), 20, 0).partial_fit(X, y)):
        assert_identical(stream.result(), plain)
    only = StreamCompressor(Gaussian(1.0), 20, 0).partial_fit(X, sample_weight=y).result()
    assert only.mean.atoms.min() > 20


@pytest.mark.parametrize(
    ("chunk", "weights", "error", "words"),
    [
        (np.ones((5, 3)), None, ValueError, "X has 3 features, but StreamCompressor is expecting 2 .*; call fit to start"),
        (np.array([[0.0, 1.0], [np.nan, 1.0]]), None, ValueError, "X .*got nan in row 1, column 0"),
        (np.array([[0.0, np.inf]]), None, ValueError, "X .*got inf"),
        (np.ones(4), None, ValueError, "X must have two dimensions"),
        (np.array([["a", "b"]]), None, TypeError, "X must hold numbers"),
        (np.ones((3, 2)), np.ones(2), ValueError, r"sample_weight must have shape \(3,\)"),
        (np.ones((3, 2)), -np.ones(3), ValueError, "sample_weight must not be negative"),
        (np.ones((3, 2)), np.array([1, np.nan, 1]), ValueError, "sample_weight must be finite"),
    ],
)
def test_a_chunk_that_is_refused_leaves_everything_as_it_was(chunk, weights, error, words, tmp_path):
    stream = streamed(mixture(1200, 2))
    before = state_of(stream, tmp_path)
    with pytest.raises(error, match=words):
        stream.partial_fit(chunk, sample_weight=weights)
    assert state_of(stream, tmp_path) == before
    assert stream.n_samples_seen_ == 1200


def test_bad_rows_at_the_end_of_a_long_chunk_take_nothing_in(tmp_path):
    stream = streamed(mixture(600, 2))
    before = state_of(stream, tmp_path)
    bad = mixture(5000, 2)
    bad[-1, 0] = np.nan
    with pytest.raises(ValueError, match="row 4999"):
        stream.partial_fit(bad)
    assert state_of(stream, tmp_path) == before


def test_an_interrupt_takes_nothing_in(tmp_path, monkeypatch):
    stream = streamed(mixture(600, 2))
    before = state_of(stream, tmp_path)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("reduset.stream.reservoir.Reservoir.absorb", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stream.partial_fit(mixture(2000, 2))
    monkeypatch.undo()
    assert state_of(stream, tmp_path) == before


@pytest.mark.parametrize(
    "empty", [np.empty((0, 2)), [], np.empty((0, 5)), pd.DataFrame({"a": [], "b": []})], ids=["rows", "list", "wide", "frame"]
)
def test_an_empty_chunk_changes_nothing(empty, tmp_path):
    stream = streamed(mixture(1200, 2))
    before = state_of(stream, tmp_path)
    assert stream.partial_fit(empty) is stream
    assert state_of(stream, tmp_path) == before
    fresh = StreamCompressor(Gaussian(1.0), 5, 0).partial_fit(empty)
    assert not hasattr(fresh, "n_features_in_")


def test_a_chunk_without_weight_is_counted_and_no_more(tmp_path):
    X = mixture(1200, 2)
    one, other = streamed(X), streamed(X).partial_fit(np.full((9, 2), 50.0), sample_weight=np.zeros(9))
    assert other.n_samples_seen_ == 1209
    np.testing.assert_array_equal(one.result().mean.weights, other.result().mean.weights)


def test_columns_of_frames_must_be_those_before():
    frame = pd.DataFrame(mixture(600, 2), columns=["a", "b"])
    stream = streamed(frame)
    assert stream.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"columns \['a', 'b'\] in this order"):
        stream.partial_fit(frame[["b", "a"]])
    stream.partial_fit(frame.to_numpy())


def test_there_is_no_result_of_nothing():
    with pytest.raises(NotFittedError, match="partial_fit"):
        StreamCompressor().result()
    with pytest.raises(ValueError, match="no rows of positive weight"):
        StreamCompressor().partial_fit(np.ones((3, 2)), sample_weight=np.zeros(3)).result()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"size": 0}, ValueError, "size must be at least 1"),
        ({"size": 2.5}, TypeError, "size must be a whole number"),
        ({"kernel": FunctionKernel("rbf", gamma=1.0)}, TypeError, f"a stream needs {ANY_FAMILY}"),
        ({"half_life": -1}, ValueError, "half_life must be above 0"),
        ({"buffer": 0}, ValueError, "buffer must be at least 1"),
        ({"weights": "own"}, ValueError, "weights must be one of"),
        ({"confidence": 2}, ValueError, "confidence must lie"),
        ({"random_state": "x"}, TypeError, "random_state"),
        ({"select": "nothing"}, ValueError, "select"),
    ],
)
def test_bad_parameters_are_named(options, error, words):
    with pytest.raises(error, match=words):
        StreamCompressor(**options).partial_fit(mixture(50, 2))


def test_what_a_stream_was_begun_with_cannot_change_on_the_way():
    stream = streamed(mixture(1200, 2))
    with pytest.raises(ValueError, match="size must not change during a stream"):
        stream.set_params(size=5).partial_fit(mixture(50, 2))
    with pytest.raises(ValueError, match="buffer must not change"):
        stream.set_params(size=60, buffer=7).partial_fit(mixture(50, 2))
    stream.set_params(buffer=500, weights="simplex")
    assert stream.partial_fit(mixture(50, 2)).result().weighting == "simplex"


# -- scikit-learn ------------------------------------------------------------------------------------------------------------


def test_fit_begins_anew():
    X = mixture(2000, 2)
    assert_identical(streamed(mixture(900, 3)).fit(X).result(), streamed(X).result())
    stream = streamed(X)
    with pytest.raises(ValueError, match="contains NaN"):
        stream.fit(np.full((3, 2), np.nan))
    assert_identical(stream.result(), streamed(X).result())


def test_copies_go_their_own_ways():
    X = mixture(3000, 2)
    stream = streamed(X[:1700])
    for twin in (copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))):
        assert_identical(twin.partial_fit(X[1700:]).result(), streamed(X).result())
    assert stream.n_samples_seen_ == 1700
    assert not hasattr(clone(stream), "n_samples_seen_")


def test_scikit_learn_finds_nothing_to_complain_about():
    check_estimator(StreamCompressor(size=5, random_state=0), on_skip=None)


WEIGHTS = {
    "fractions": np.random.default_rng(1).random(30),
    "counts": np.arange(1, 31),
    "counts as floats": np.arange(1.0, 31.0),
    "counts of a list": list(range(5, 35)),
    "a column of counts": np.arange(1, 31)[:, None],
    "a series": pd.Series(np.arange(1, 31)),
}
LABELS = {
    "classes": np.arange(30) % 3,
    "classes from 1 on": 1 + np.arange(30) % 20,
    "many classes": np.arange(30),
    "text": np.array([f"c{k}" for k in range(30)]),
    "signed": np.random.default_rng(1).normal(size=30),
    "booleans": np.arange(30) % 2 == 0,
}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_in_the_position_of_y_are_ignored(kind, method):
    getattr(StreamCompressor(size=5), method)(np.random.default_rng(0).normal(size=(30, 2)), LABELS[kind])


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights_in_the_position_of_y_raise_an_error(kind, method):
    X, w = np.random.default_rng(0).normal(size=(30, 2)), np.random.default_rng(1).random(30)
    with pytest.raises(ValueError, match=r"y .*got 30"):
        getattr(StreamCompressor(size=5), method)(X, WEIGHTS[kind])
    with pytest.raises(TypeError, match="positional"):
        getattr(StreamCompressor(size=5), method)(X, None, w)
