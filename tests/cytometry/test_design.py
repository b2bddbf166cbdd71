"""Designs: what is compared, what is held fixed, and what is refused before anything is computed."""

import numpy as np
import pytest

from reduset.cytometry import DesignError, compare, design_of

TWO = ["ill"] * 4 + ["healthy"] * 4


def test_groups_are_in_the_order_of_the_alphabet_unless_a_reference_is_named():
    assert design_of(TWO).levels == ("healthy", "ill")
    design = design_of([*TWO, "mild", "mild"], first="mild")
    assert design.levels == ("mild", "healthy", "ill")
    np.testing.assert_array_equal(design.counts, [2, 4, 4])
    with pytest.raises(DesignError, match=r"the reference .*got 'well'"):
        design_of(TWO, first="well")


def test_labels_that_are_numbers_are_in_the_order_of_numbers_however_they_are_stored():
    design = design_of([10, 2.0, np.float32(10), np.int64(2), 9, 9.0], first=9)
    assert design.levels == ("9", "2", "10")
    assert design_of([True, False] * 3).levels == ("False", "True")
    assert design_of([10, 2, 10, 2]).levels == ("2", "10")


def test_samples_without_a_label_are_left_out_with_a_note():
    design = design_of(["a", None, "b", "b", float("nan"), "a"])
    np.testing.assert_array_equal(design.rows, [0, 2, 3, 5])
    np.testing.assert_array_equal(design.codes, [0, 1, 1, 0])
    assert design.notes == ("2 samples without condition are not compared",)


def test_freedom_is_what_groups_blocks_and_covariates_leave():
    assert design_of(TWO).freedom == 6
    assert design_of(TWO, block=[1, 2, 3, 4, 1, 2, 3, 4]).freedom == 3
    assert design_of(TWO, block=[1, 2, 3, 4, 1, 2, 3, 5]).freedom == 2
    assert design_of(TWO, covariates={"age": range(8), "twice": range(0, 16, 2)}).freedom == 5
    assert design_of(TWO, covariates={"sex": ["f", "m"] * 4}, batch=[1, 1, 2, 2] * 2).freedom == 4
    assert design_of(TWO, covariates={"same": [1.0] * 8}).freedom == 6


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (["a", "a", "a"], {}, "condition .*got a"),
        ([None, None], {}, "condition .*got none"),
        (["a", "a", "b"], {}, "condition has a single sample in b"),
        (TWO, {"block": [1, 1, 2, 2, 3, 3, 4, 4]}, "no block has samples of two groups of condition"),
        (TWO, {"block": [1, 2, 3, 4, 1, 2, 3, None]}, "must have a block, 1 have none"),
        (TWO, {"block": [1, 2, 3, 4, 1, 2, 3, float("nan")]}, "must have a block"),
        (TWO, {"covariates": {"age": [1, 2, 3, 4, 5, 6, 7, None]}}, "must have covariate age"),
        (TWO, {"covariates": {"age": [1, 2, 3, 4, 5, 6, 7, "inf"]}}, "covariate age .*got inf"),
        (TWO, {"covariates": {"site": ["x"] * 4 + ["y"] * 4}}, "condition is confounded with site"),
        (TWO, {"covariates": {"site": ["x", "y"] + ["z"] * 2 + ["v", "w", "u", "u"]}}, "condition is confounded with site"),
        (
            ["a", "b"] * 2,
            {"block": [1, 1, 2, 2], "covariates": {"t": [1, 2, 3, 5]}},
            "4 samples leave no residual",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(labels, options, message):
    with pytest.raises(DesignError, match=message):
        design_of(labels, **options)


def test_groups_that_are_batches_are_compared_with_a_note():
    design = design_of(TWO, batch=["x"] * 4 + ["y"] * 4)
    assert design.notes == ("condition and batch are confounded: a difference may be due to either",)
    assert design.adjusted == ()
    assert design.freedom == 6


def test_batches_that_overlap_with_groups_are_held_fixed():
    design = design_of(TWO, batch=["x", "x", "x", "y", "x", "y", "y", "y"])
    assert (design.adjusted, design.notes, design.freedom) == (("batch",), (), 5)
    absent = design_of(TWO, batch=["x", "x", None, None] * 2)
    assert absent.notes == ("4 samples without batch form one more batch",)


def test_a_block_without_a_partner_says_nothing_of_the_groups():
    rng = np.random.default_rng(0)
    labels, patients = ["a", "b"] * 5, np.repeat(np.arange(5), 2).tolist()
    counts, sizes = rng.multinomial(5000, [0.1, 0.2, 0.7], 10), np.full(10, 5000)
    pairs = compare(counts, sizes, design_of(labels, block=patients), rng=0)
    alone = np.vstack([counts, [[4000, 500, 500], [500, 4000, 500]]])
    more = compare(alone, np.full(12, 5000), design_of([*labels, "a", "b"], block=[*patients, 8, 9]), rng=0)
    assert more.labellings == pairs.labellings == 32
    # the far ones change the mean shares that weights are taken at, and no more
    np.testing.assert_allclose(more.effects, pairs.effects, rtol=0.05, atol=0.01)
