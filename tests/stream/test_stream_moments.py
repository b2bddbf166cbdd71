"""GaussianMoments of a Gaussian stream: κ at every place to rounding, and errors near rounding in any order of rows."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive_cases import parts, store
from reduset import Gaussian, KernelMean, Laplacian, compress
from reduset.certificate.rule import probe_for
from reduset.stream import StreamCompressor
from reduset.stream.moments import LOST, GaussianMoments
from stream_cases import ORDERS, assert_identical, ordered

SIZE, WIDE = 100, Gaussian(2.0)


def some_rows(dimension, count=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (count, dimension)) / np.sqrt(dimension), rng.random(count) + 0.1


def sums(rows, weights, places):
    return np.exp(-0.5 * np.square(places[:, None] - rows).sum(axis=2)) @ weights


@cache
def rim(count=4000):
    """Rows of two columns within few bandwidths, some of them far out."""
    return np.random.default_rng(1).normal(size=(count, 2))


def streamed(X, seed=0, **options):
    return StreamCompressor(WIDE, SIZE, seed, **{"buffer": 512} | options).fit(X)


def in_order(kind):
    return ordered(rim(), kind)


@cache
def batch():
    """The largest error over seeds: near rounding, one selection can have three times the error of another."""
    return max(compress(rim(), WIDE, size=SIZE, rng=seed).certificate.relative_error for seed in range(5))


# -- the sums -------------------------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(dimension=st.integers(1, 4), seed=st.integers(0, 99))
def test_the_sums_at_any_place_are_those_over_the_rows(dimension, seed):
    rows, weights = some_rows(dimension, seed=seed)
    places = 2 * some_rows(dimension, 40, seed + 1)[0]  # beyond the rows too
    moments = GaussianMoments.for_rows(rows, weights, 400).absorb(rows, weights)
    assert moments.lost <= LOST * weights.sum()
    np.testing.assert_allclose(moments.at(places), sums(rows, weights, places), rtol=0, atol=(1e-14 + LOST) * weights.sum())
    near = places / 2
    np.testing.assert_allclose(moments.at(near), sums(rows, weights, near), rtol=0, atol=1e-13 * weights.sum())


@settings(max_examples=20, deadline=None)
@given(dimension=st.integers(1, 3), seed=st.integers(0, 99), far=st.floats(0.01, 0.6))
def test_moments_are_the_same_about_another_origin(dimension, seed, far):
    rows, weights = some_rows(dimension, seed=seed)
    before = GaussianMoments.for_rows(rows, weights, 600).absorb(rows, weights)
    after = before.moved(np.full(dimension, far) / np.sqrt(dimension), before.degree)
    np.testing.assert_allclose(after.at(rows), before.at(rows), rtol=0, atol=1e-13 * weights.sum() + (after.lost - before.lost))
    back = after.moved(before.origin, before.degree)
    np.testing.assert_allclose(back.values, before.values, rtol=0, atol=1e-13 * weights.sum() + (back.lost - before.lost))


def test_moments_of_two_parts_are_those_of_both_whatever_their_origins_and_degrees():
    rows, weights = some_rows(2)
    whole = GaussianMoments.for_rows(rows, weights, 100)
    first = whole.absorb(rows[:80], weights[:80])
    other = replace(GaussianMoments.for_rows(rows, weights, 60), origin=np.array([0.3, -0.2])).absorb(rows[80:], weights[80:])
    assert other.degree < whole.degree
    merged, expected = first.merge(other), whole.absorb(rows, weights)
    assert merged.degree == whole.degree
    np.testing.assert_allclose(merged.at(rows), expected.at(rows), rtol=0, atol=1e-13 * weights.sum())
    alike = first.merge(whole.absorb(rows[80:], weights[80:]))
    np.testing.assert_array_equal(alike.values, first.values + whole.absorb(rows[80:], weights[80:]).values)


def test_parts_too_far_from_each_other_have_none_in_common():
    rows, weights = some_rows(2)
    moments = GaussianMoments.for_rows(rows, weights, 100).absorb(rows, weights)
    assert moments.merge(replace(moments, origin=np.full(2, 1e90))).unless_lost(1e300) is None


def test_what_is_lost_is_no_less_than_what_the_sums_are_off():
    rows, weights = some_rows(2)
    moments = GaussianMoments.for_rows(rows, weights, 30)
    far = 4 * rows
    moments = moments.absorb(far, weights)
    off = np.abs(moments.at(far) - sums(far, weights, far)).max()
    assert 1e-12 < off <= moments.lost


# -- the stream -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ORDERS)
def test_errors_near_rounding_are_those_of_a_batch_in_any_order(kind):
    assert batch() < 1e-6
    assert streamed(in_order(kind)).result().certificate.relative_error < 2 * batch()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shuffled", "sorted"])
def test_errors_near_rounding_survive_merging(kind):
    parts = np.array_split(in_order(kind), 4)
    first = streamed(parts[0])
    for number, part in enumerate(parts[1:], 1):
        first.merge(streamed(part, number))
    assert first.result().certificate.relative_error < 2 * batch()
    parent = streamed(rim()[::5])
    family = [parent.sibling().partial_fit(part) for part in parts]
    for sibling in family[1:]:
        family[0].merge(sibling)
    assert family[0].result().certificate.relative_error < 2 * batch()


def test_siblings_that_only_gather_rows_are_merged():
    parent = streamed(rim()[:1000])
    merged = parent.sibling().partial_fit(rim()[1000:1200]).merge(parent.sibling().partial_fit(rim()[1200:1400]))
    assert merged.merge(parent).result().n_samples == 1400


@pytest.mark.parametrize("options", [{}, {"half_life": 1500.0}, {"weights": "sum_to_one"}])
def test_the_certificate_holds_near_rounding(options):
    X = in_order("sorted")
    small = streamed(X, **options).result()
    age = np.arange(len(X) - 1, -1, -1) / options.get("half_life", np.inf)
    full = KernelMean.from_samples(X, WIDE, sample_weight=2.0**-age)
    probe = probe_for(full, 0.95, np.random.default_rng(3))
    atoms = np.asarray(small.mean.atoms)
    found = probe.measure(atoms, small.mean.weights, WIDE.product_sums(full.atoms, full.weights, atoms))
    low, high = small.certificate.interval
    assert low / 2 <= np.sqrt(found.square) / small.certificate.norm <= 2 * high


def test_there_are_none_where_they_would_be_too_many():
    rng = np.random.default_rng(0)
    for kernel, d in ((Gaussian(0.1), 2), (Gaussian(2.0), 8), (Laplacian(2.0), 2)):
        stream = StreamCompressor(kernel, 30, 0, buffer=200).fit(rng.normal(size=(400, d)))
        assert stream._stream.sketch.moments is None
        assert stream.result().size <= 30


def test_a_row_out_of_reach_ends_them_and_the_stream_goes_on():
    X = rim().copy()
    X[2000] = 1e6
    stream = streamed(X)
    assert stream._stream.sketch.moments is None
    assert stream.result().certificate.relative_error < 1e-4


# -- files ----------------------------------------------------------------------------------------------------------------


def test_moments_come_back_from_a_file(tmp_path):
    X, path = in_order("sorted"), tmp_path / "state.npz"
    streamed(X[:1700]).checkpoint(path)
    resumed = StreamCompressor.resume(path)
    assert resumed._stream.sketch.moments is not None
    assert_identical(resumed.partial_fit(X[1700:]).result(), streamed(X).result())


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header["moments"].update(degree=90),
        lambda header, arrays: header["moments"].update(degree="many"),
        lambda header, arrays: header["moments"].update(lost=-1.0),
        lambda header, arrays: header.update(moments=[1]),
        lambda header, arrays: arrays.update(moments_values=arrays["moments_values"][:-1]),
        lambda header, arrays: arrays.update(moments_origin=np.zeros(3)),
    ],
)
def test_moments_that_do_not_fit_are_refused(change, tmp_path):
    path = tmp_path / "state.npz"
    streamed(rim()[:1000]).checkpoint(path)
    header, arrays = parts(path)
    change(header, arrays)
    store(path, header, arrays)
    with pytest.raises(ValueError, match="describes no stream"):
        StreamCompressor.resume(path)
