"""Blocks of bags: bounded, in order, and each bag once."""

import numpy as np
import pytest

from reduset.features import embedding


@pytest.mark.parametrize("sizes", [[3], [5] * 200, [1 << 14] * 5, [1 << 20, 2, 2, 1 << 20, 7]])
@pytest.mark.parametrize("most", [1, 7, 64])
def test_blocks_hold_every_bag_once_and_no_more_than_they_may(sizes, most):
    cuts = embedding.bag_blocks(sizes, most)
    assert [k for first, last in cuts for k in range(first, last)] == list(range(len(sizes)))
    for first, last in cuts:
        assert 0 < last - first <= most
        assert last - first == 1 or sum(sizes[first:last]) <= embedding.POINTS_PER_BLOCK


def test_small_bags_share_a_block():
    assert embedding.bag_blocks([10] * 100, 64) == [(0, 64), (64, 100)]


def test_long_vectors_are_held_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(embedding, "ENTRIES_PER_BLOCK", 100)
    held = []

    def vectors_of(bags):
        held.append(len(bags))
        return np.repeat([[float(bag[0])] for bag in bags], 30, axis=1)

    frequencies = np.random.default_rng(0).normal(size=(30, 4))
    found = embedding.embed([(k, 0) for k in range(10)], vectors_of, 30, frequencies, lambda *_: None)
    assert max(held) == 3
    np.testing.assert_allclose(
        found, embedding.fourier_features(np.repeat(np.arange(10.0)[:, None], 30, axis=1), frequencies), atol=1e-12
    )


def test_progress_ends_with_everything_done():
    heard = []
    embedding.run_in_rounds([lambda: None] * 50, range(1, 51), lambda *told: heard.append(told))
    assert heard[-1] == (50, 50)
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)


def test_the_first_fault_of_a_task_is_raised():
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        embedding.run_in_rounds([fail] * 3, range(1, 4), lambda *_: None)
