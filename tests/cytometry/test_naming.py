"""Borders of markers, signs and names of populations."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reduset.cytometry.populations import border, short_names, signs

CODES = st.tuples(st.integers(1, 8), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.sampled_from([-1, 0, 1]))
)


def otsu(values, weights):
    """The border by trying all: the largest variance between the cells below and above."""
    best, where = -1.0, 0.0
    for edge in np.unique(values)[:-1]:
        low = values <= edge
        a, b = weights[low].sum(), weights[~low].sum()
        gap = np.average(values[low], weights=weights[low]) - np.average(values[~low], weights=weights[~low])
        if a * b * gap**2 > best:
            best, where = a * b * gap**2, (edge + values[~low].min()) / 2
    return where


def test_the_border_is_where_the_variance_between_both_sides_is_largest():
    rng = np.random.default_rng(0)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = np.concatenate([rng.normal(0, 1, 300), rng.normal(4, 1.5, 200)])
        weights = rng.exponential(size=500)
        assert abs(border(values, weights) - otsu(values, weights)) < 0.15  # bins are about 0.04 wide


def test_a_gap_has_its_border_in_the_middle_and_a_constant_marker_at_itself():
    assert border(np.repeat([0.0, 10.0], 50), np.ones(100)) == 5.0
    assert border(np.full(9, 2.5), np.ones(9)) == 2.5


def test_signs_need_three_quarters_of_the_cells():
    np.testing.assert_array_equal(signs(np.array([0.0, 0.25, 0.26, 0.5, 0.74, 0.75, 1.0])), [-1, -1, 0, 0, 0, 1, 1])


@settings(deadline=None)
@given(CODES)
def test_names_are_unique_and_true(codes):
    markers = [f"CD{m}" for m in range(codes.shape[1])]
    names = short_names(codes, codes.astype(float), markers)
    assert len(set(names)) == len(codes)
    for name, own in zip(names, codes, strict=True):
        words = [word for word in name.split() if word.startswith("CD")]
        assert all({"+": 1, "−": -1, "±": 0}[word[-1]] == own[markers.index(word[:-1])] for word in words)


@settings(deadline=None)
@given(CODES)
def test_names_tell_populations_of_different_signs_apart(codes):
    markers = [f"CD{m}" for m in range(codes.shape[1])]
    names = short_names(codes, codes.astype(float), markers)
    for k, name in enumerate(names):
        words = {word[:-1]: {"+": 1, "−": -1, "±": 0}[word[-1]] for word in name.split() if word.startswith("CD")}
        same = [j for j in range(len(codes)) if all(codes[j, markers.index(m)] == sign for m, sign in words.items())]
        assert k in same
        if len(words) < 5:  # more words are not used
            assert all((codes[j] == codes[k]).all() for j in same)
