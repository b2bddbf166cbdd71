"""Relabellings: all of them where they are few, within blocks, the true one first."""

import numpy as np
import pytest

from reduset.cytometry import design_of
from reduset.cytometry.design import relabellings
from reference_differences import all_labellings

DESIGNS = {
    "two groups": (["a"] * 3 + ["b"] * 4, None),
    "three groups": (["a", "a", "b", "b", "c", "c", "c"], None),
    "pairs": (["a", "b"] * 3, [1, 1, 2, 2, 3, 3]),
    "blocks of all sizes": (["a", "b", "b", "a", "b", "a", "c"], ["p", "p", "p", "q", "q", "r", "q"]),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_all_labellings_are_those_of_all_orders_of_the_samples(name):
    labels, block = DESIGNS[name]
    labels = [*labels, "c"] if name == "blocks of all sizes" else labels
    block = [*block, "p"] if name == "blocks of all sizes" else block
    design = design_of(labels, block=block)
    found = relabellings(design, np.random.default_rng(0))
    assert {tuple(row) for row in found.codes.tolist()} == all_labellings(design.codes, design.blocks)
    assert len(found.codes) == found.count
    assert len(found.codes) == found.count
    np.testing.assert_array_equal(found.codes[0], design.codes)


def test_drawn_labellings_keep_the_groups_of_every_block_and_begin_with_the_true_one():
    rng = np.random.default_rng(0)
    block = rng.integers(0, 5, 60)
    design = design_of(rng.choice(["a", "b", "c"], 60), block=block.tolist())
    found = relabellings(design, rng, 200)
    assert found.codes.shape == (201, 60)
    assert found.count > 10**20
    assert len(found.codes) < found.count
    np.testing.assert_array_equal(found.codes[0], design.codes)
    for each in range(5):
        rows = design.blocks == each
        np.testing.assert_array_equal(np.sort(found.codes[:, rows], axis=1), np.tile(np.sort(design.codes[rows]), (201, 1)))


def test_hundreds_of_groups_are_labelled_as_two_are():
    design = design_of([f"{k // 2}" for k in range(600)])
    found = relabellings(design, np.random.default_rng(0), 3)
    assert found.codes.min() == 0
    assert found.codes.max() == 299
    assert found.indicators(300).sum() == 4 * 598


def test_two_rare_samples_among_many_are_enumerated_too():
    found = relabellings(design_of(["a"] * 2 + ["b"] * 100), np.random.default_rng(0))
    assert found.count == len(found.codes) == 102 * 101 // 2
    assert (found.codes == 0).sum() == 2 * found.count
