"""Streams that were made to break things: rows far out, odd weights, edited files, interrupts."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from reduset import Gaussian
from reduset.stream import StreamCompressor
from reduset.weights import KINDS


def exact_error(X, w, mean):
    """‖f − f_m‖ / ‖f‖ by the definition, in float64 from all pairs; Gaussians alone."""
    h = mean.kernel.bandwidth

    def gram(A, B):
        return np.exp(-cdist(A, B, "sqeuclidean") / (2 * h * h))

    w = w / w.sum()
    square, across = float(w @ gram(X, X) @ w), float(mean.weights @ gram(mean.atoms, X) @ w)
    return np.sqrt(max(square - 2 * across + float(mean.weights @ gram(mean.atoms, mean.atoms) @ mean.weights), 0.0) / square)


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("far", [1e6, 1e12, 1e18, 1e36, 1e100])
@pytest.mark.parametrize("place", [0, 1500])
@pytest.mark.parametrize("d", [2, 45])
def test_a_row_far_out_does_not_blur_the_others(far, place, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, d)) / np.sqrt(d)
    X[place] = far
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = StreamCompressor(Gaussian(0.5), 20, 0, buffer=500)
        for a in range(0, len(X), 700):
            stream.partial_fit(X[a : a + 700])
        small = stream.result()
    error, (low, high) = exact_error(X, np.ones(len(X)), small.mean), small.certificate.interval
    assert 0.95 * low <= error <= 1.05 * high
    assert small.certificate.bound >= error * small.certificate.norm


# -- little of a stream, and other parts of it ------------------------------------------------------------------------------


def begun(X, size=20, **options):
    return StreamCompressor(Gaussian(1.0), size, 0, buffer=400, **options).partial_fit(X)


@pytest.mark.parametrize("rows", [1, 5, 30, 1000])
def test_a_sibling_may_meet_rows_that_the_stream_has_never_seen(rows):
    rng = np.random.default_rng(2)
    X, other = rng.normal(size=(1200, 3)), 6 + rng.normal(size=(rows, 3))
    stream = begun(X)
    sibling = stream.sibling().partial_fit(other)
    alone = sibling.result()
    error, (low, high) = exact_error(other, np.ones(rows), alone.mean), alone.certificate.interval
    assert 0.95 * low - 1e-7 <= error <= 1.05 * high + 1e-7
    assert alone.certificate.relative_error < 0.3
    merged = stream.merge(sibling).result()
    assert merged.n_samples == 1200 + rows
    error, (low, high) = exact_error(np.concatenate([X, other]), np.ones(1200 + rows), merged.mean), merged.certificate.interval
    assert 0.95 * low <= error <= 1.05 * high


def test_a_sibling_without_rows_can_be_kept_in_a_file(tmp_path):
    stream = begun(np.random.default_rng(3).normal(size=(900, 2)))
    stream.sibling().checkpoint(tmp_path / "sibling.npz")
    resumed, rows = StreamCompressor.resume(tmp_path / "sibling.npz"), np.random.default_rng(4).normal(size=(500, 2))
    assert_same(resumed.partial_fit(rows).result(), stream.sibling().partial_fit(rows).result())


def assert_same(one, other):
    """The same to the last bit."""
    np.testing.assert_array_equal(one.mean.atoms, other.mean.atoms)
    np.testing.assert_array_equal(one.mean.weights, other.mean.weights)
    assert one.certificate == other.certificate
    assert one.remark == other.remark


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("half_life", [1e-3, 1.0, 10.0, 1e300])
@pytest.mark.parametrize("buffer", [400, 4000])
def test_the_certificate_holds_however_fast_a_stream_forgets(half_life, buffer, tmp_path):
    X = np.random.default_rng(5).normal(size=(2000, 3))
    with np.errstate(under="ignore"):
        w = 2.0 ** (-np.arange(len(X) - 1, -1, -1) / half_life)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = StreamCompressor(Gaussian(1.0), 20, 0, buffer=buffer, half_life=half_life).fit(X)
        small = stream.result()
        stream.checkpoint(tmp_path / "state.npz")
        assert_same(StreamCompressor.resume(tmp_path / "state.npz").result(), small)
    error, certificate = exact_error(X, w, small.mean), small.certificate
    low, high = certificate.interval
    assert 0.95 * low - 1e-7 <= error <= 1.05 * high + 1e-7
    assert error * certificate.norm <= certificate.bound + 1e-7


@pytest.mark.parametrize("weight", [1e300, 1e150, 1e-150, 1e-300])
def test_weights_whose_squares_are_no_numbers_are_refused(weight):
    X = np.random.default_rng(6).normal(size=(50, 2))
    with pytest.raises(ValueError, match="sample_weight must lie between 1e-140 and 1e\\+140"):
        begun(X).partial_fit(X, sample_weight=np.full(50, weight))


def test_one_row_may_have_all_the_weight():
    X = np.random.default_rng(7).normal(size=(2000, 2))
    for light in (1e-12, 1e-300):
        w = np.full(len(X), light)
        w[1700] = 1.0
        small = StreamCompressor(Gaussian(1.0), 10, 0, buffer=300).fit(X, sample_weight=w).result()
        error, (low, high) = exact_error(X, w, small.mean), small.certificate.interval
        assert 0.95 * low - 1e-7 <= error <= 1.05 * high + 1e-7


def test_rows_that_come_one_by_one_do_not_move_all_those_that_wait():
    X = np.random.default_rng(8).normal(size=(3000, 40))
    stream = StreamCompressor(Gaussian(6.0), 10, 0)
    moved = 0
    for row in X:
        before = {id(part[0]) for part in stream._stream.waiting} if stream._stream else set()
        stream.partial_fit(row[None])
        moved += sum(len(part[0]) for part in stream._stream.waiting if id(part[0]) not in before)
    assert moved < len(X) ** 2 / 20
    assert_same(stream.result(), StreamCompressor(Gaussian(6.0), 10, 0).fit(np.asfortranarray(X)).result())


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_the_certificate_and_its_bound_hold_where_atoms_have_seen_a_part_alone(kind, monkeypatch):
    from reduset.stream import reservoir, sketch

    monkeypatch.setattr(
        sketch.Reservoir, "empty", lambda d: reservoir.Reservoir(np.empty((0, d)), np.empty(0), np.empty(0), np.inf, 250)
    )
    held = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1200, 1 + seed % 2))
        X[: 400 + 50 * seed] *= 0.01
        stream = StreamCompressor(Gaussian(1.0), 25, seed, weights=kind, buffer=150).fit(X)
        small = stream.result()
        assert "interpolated" in small.remark
        error, certificate = exact_error(X, np.ones(len(X)), small.mean), small.certificate
        low, high = certificate.interval
        held.append(0.98 * low - 1e-7 <= error <= 1.02 * high + 1e-7)
        assert error * certificate.norm <= certificate.bound * (1 + 1e-9) + 1e-7
    assert sum(held) >= 7


# -- odd chunks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [sparse.csr_array(np.eye(3)), sparse.csr_matrix(np.eye(3)), np.array(1.0), None])
def test_what_has_no_length_is_refused_in_plain_words(chunk, tmp_path):
    stream = begun(np.random.default_rng(9).normal(size=(900, 3)))
    stream.checkpoint(tmp_path / "before.npz")
    with pytest.raises((TypeError, ValueError), match="X must"):
        stream.partial_fit(chunk)
    stream.checkpoint(tmp_path / "after.npz")
    assert (tmp_path / "before.npz").read_bytes() == (tmp_path / "after.npz").read_bytes()


def test_to_fit_nothing_is_refused_and_forgets_nothing():
    stream = begun(np.random.default_rng(10).normal(size=(900, 3)))
    with pytest.raises(ValueError, match="0 sample"):
        stream.fit(np.empty((0, 3)))
    assert stream.result().n_samples == 900
