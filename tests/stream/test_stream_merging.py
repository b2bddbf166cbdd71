"""Merged streams: the whole of both parts, certified, and hardly worse than one pass."""

import copy

import numpy as np
import pytest

from reduset import Gaussian, Laplacian
from reduset.stream import StreamCompressor
from stream_cases import ORDERS, assert_identical, assert_within, error_of, mixture, ordered, streamed


def in_a_tree(parts):
    while len(parts) > 1:
        parts = [one.merge(other) for one, other in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def one_after_the_other(parts):
    first, *rest = parts
    for part in rest:
        first.merge(part)
    return first


# every order with the kernel that tells most, and the others in the order that is hardest
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("kernel", "order"),
    [*((Gaussian(2.5), order) for order in ORDERS), (Gaussian(0.8), "clustered"), (Laplacian(2.0), "clustered")],
    ids=str,
)
def test_sixteen_parts_lose_little_more_than_one_pass(kernel, order):
    X = ordered(mixture(3200, 4), order)
    one_pass = error_of(X, streamed(X, kernel=kernel, size=20, buffer=100).result().mean)
    parts = [streamed(part, kernel=kernel, size=20, seed=k, buffer=100) for k, part in enumerate(np.array_split(X, 16))]
    for merge in (in_a_tree, one_after_the_other):
        merged = merge(copy.deepcopy(parts)).result()
        assert merged.n_samples == 3200
        assert_within(X, merged)
        assert error_of(X, merged.mean) <= 1.3 * one_pass


def test_siblings_add_up_as_if_they_were_one():
    X = mixture(6000, 3)
    first = streamed(X[:1500], kernel=Gaussian("median"), buffer=1500)
    merged = one_after_the_other([first, *(first.sibling().partial_fit(part) for part in np.array_split(X[1500:], 3))])
    result = merged.result()
    assert "interpolated" not in result.remark  # nothing was read off other sites
    assert_within(X, result)
    at_atoms = result.mean.kernel.product_sums(X, np.full(6000, 1 / 6000), result.mean.atoms)
    sketch, candidates = merged._stream.complete(), merged._stream.complete().candidates
    there = {tuple(place): value / sketch.mass for place, value in zip(candidates.points, candidates.kappa, strict=True)}
    known = [k for k, atom in enumerate(result.mean.atoms) if tuple(atom) in there]
    assert len(known) > 40
    np.testing.assert_allclose([there[tuple(result.mean.atoms[k])] for k in known], at_atoms[known], rtol=1e-9)


def test_a_sibling_begins_empty():
    first = streamed(mixture(1500, 2))
    sibling = first.sibling()
    assert sibling.n_samples_seen_ == 0
    assert sibling.kernel_ == first.kernel_
    with pytest.raises(ValueError, match="no rows of positive weight"):
        sibling.result()
    before = first.result()
    assert_identical(first.merge(sibling).result(), before)


def test_siblings_whose_first_rows_are_news_take_them_in():
    X = ordered(mixture(6000, 3), "clustered")
    first = streamed(X[:1500], buffer=1500)
    far, again = (first.sibling().partial_fit(part + 8.0) for part in np.array_split(X, 2))
    assert len(far._stream.sketch.candidates.points) > len(first._stream.sketch.candidates.points)
    merged = one_after_the_other([first, far, again]).result()
    assert merged.n_samples == 7500
    assert_within(np.concatenate([X[:1500], X + 8.0]), merged)


def test_merging_is_in_place_and_leaves_the_other_alone():
    X = mixture(4000, 2)
    one, other = streamed(X[:2200]), streamed(X[2200:], seed=1)
    kept = other.result()
    assert one.merge(other) is one
    assert one.n_samples_seen_ == 4000
    assert_identical(other.result(), kept)
    assert_within(X, one.result())


@pytest.mark.parametrize("sizes", [(300, 200), (300, 2000), (2000, 300), (1, 1)])
def test_parts_that_still_gather_are_merged_too(sizes):
    X = mixture(sum(sizes), 2)
    one, other = streamed(X[: sizes[0]]), streamed(X[sizes[0] :], seed=1)
    result = one.merge(other).result()
    assert result.n_samples == sum(sizes)
    assert error_of(X, result.mean) <= max(1.3 * result.certificate.interval[1], 1e-6)


def test_merging_with_an_empty_stream_changes_nothing():
    X = mixture(1500, 2)
    stream, empty = streamed(X), StreamCompressor(Gaussian(2.0), 60, 0, buffer=500)
    assert_identical(stream.merge(empty).result(), streamed(X).result())
    assert_within(X, empty.merge(stream).result())


def test_a_merged_stream_goes_on():
    X = mixture(6000, 2)
    stream = streamed(X[:2000]).merge(streamed(X[2000:4000], seed=1)).partial_fit(X[4000:])
    assert_within(X, stream.result())


def test_weights_of_both_parts_count():
    X, w = mixture(4000, 2), np.random.default_rng(0).uniform(0, 3, 4000)
    merged = streamed(X[:1500], sample_weight=w[:1500]).merge(streamed(X[1500:], sample_weight=w[1500:], seed=1))
    assert_within(X, merged.result(), w)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: streamed(mixture(900, 3)), "other has 3 features, but StreamCompressor is expecting 2 features"),
        (lambda: streamed(mixture(900, 2), kernel=Gaussian(1.0)), "both must have the same kernel"),
        (lambda: streamed(mixture(900, 2), size=20), "both .*got 60 and 20"),
        (lambda: streamed(mixture(900, 2), half_life=10.0), "both must have the same half_life"),
    ],
)
def test_streams_that_were_begun_differently_are_not_merged(other, words):
    X = mixture(900, 2)
    stream = streamed(X)
    with pytest.raises(ValueError, match=words):
        stream.merge(other())
    assert_identical(stream.result(), streamed(X).result())


def test_bandwidths_found_apart_are_told_apart():
    one, other = (streamed(mixture(900, 2, seed), kernel=Gaussian("scott")) for seed in (0, 1))
    with pytest.raises(ValueError, match="both streams must have the same bandwidth"):
        one.merge(other)


def test_only_streams_are_merged():
    with pytest.raises(TypeError, match="other must be a StreamCompressor"):
        StreamCompressor().merge(3)


def test_siblings_add_their_sums_where_both_have_a_site_though_one_has_found_more():
    X = mixture(2500, 2)
    far = X[1500:] + 25.0
    parent = streamed(X[:500], kernel=Gaussian(0.8))
    same, widened = parent.sibling().partial_fit(X[500:1500]), parent.sibling().partial_fit(far)
    shared = len(parent._stream.complete().candidates.points)
    assert len(widened._stream.complete().candidates.points) > shared
    merged = same.merge(widened)._stream.complete()
    candidates = merged.candidates
    known = candidates.missed == 0
    assert known.any()  # of those that are kept
    expected = candidates.kernel.product_sums(np.concatenate([X[500:1500], far]), np.ones(2000), candidates.points[known])
    np.testing.assert_allclose(candidates.kappa[known], expected, rtol=1e-12, atol=1e-12)
