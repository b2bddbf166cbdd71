"""Scales of markers: what is asked for, what is estimated, and that noise around zero keeps one peak."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reduset.cytometry.reading import asked_scales, put_on_scales, range_notes
from reduset.io.channels import linear_decades, noise_reach, pooled, scale_of
from reduset.io.transforms import parse_transform

MARKERS = ("CD3", "CD4", "HLA-DR")


def test_a_dict_counts_more_than_the_panel_and_that_more_than_one_text():
    assert asked_scales(MARKERS, "asinh:150", {}) == dict.fromkeys(MARKERS, "asinh:150")
    asked = asked_scales(MARKERS, {"CD3": "asinh:5", "hla dr": None}, {"CD3": "logicle", "CD4": "none", "HLA-DR": "logicle"})
    assert asked == {"CD3": "asinh:5", "CD4": "none", "HLA-DR": "auto"}
    assert asked_scales(MARKERS, "asinh:150", {"CD4": "logicle"})["CD4"] == "logicle"
    assert asked_scales(MARKERS, None, {}) == asked_scales(MARKERS, "auto", {}) == dict.fromkeys(MARKERS, "auto")
    assert asked_scales(MARKERS, "linear", {})["CD3"] == "none"


def test_scales_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"transform names 'CD5', which is no marker .did you mean 'CD"):
        asked_scales(MARKERS, {"CD5": "log"}, {})
    for wrong in ("squash", 5, "asinh:-1", "logicle:Q=2"):
        with pytest.raises((TypeError, ValueError), match="transform"):
            asked_scales(MARKERS, wrong, {})


def normal(scale=100.0, count=20000, shift=0.0):
    return np.random.default_rng(0).normal(shift, scale, count)


def test_w_is_by_the_fifth_percentile_of_what_is_below_zero():
    values = normal()
    r = -np.quantile(values[values < 0], 0.05)
    assert noise_reach(values) == pytest.approx(r)
    assert linear_decades(r, 262144.0) == pytest.approx((4.5 - np.log10(262144 / r)) / 2)
    assert (
        scale_of("auto", "logicle", values, 262144.0).name
        == f"logicle:T=262144,W={np.floor(100 * linear_decades(r, 262144)) / 100:g}"
    )


@pytest.mark.parametrize("shift", [0.0, 60.0, 120.0, 200.0])
def test_noise_that_was_cut_off_at_zero_reaches_as_far_as_before(shift):
    values = normal(shift=shift)
    assert noise_reach(np.maximum(values, 0)) == pytest.approx(noise_reach(values), rel=0.12)


def test_few_values_far_below_zero_say_nothing_of_noise():
    values = np.random.default_rng(0).lognormal(7, 0.5, 20000)
    thrown = np.append(values, np.full(50, -1e5))
    assert noise_reach(thrown) < 2 * noise_reach(values)


def peaks(values, bins=60):
    """Modes of a histogram that stand out from the valleys beside them by a tenth."""
    height = np.convolve(np.histogram(values, bins)[0], [0.25, 0.5, 0.25], "same")
    found, valley, top = 0, 0.0, 0.0
    for each in [*height.tolist(), 0.0]:
        top = max(top, each) if top else (each if each > 1.1 * valley + 0.02 * height.max() else 0.0)
        if top and each < 0.9 * top:
            found, valley, top = found + 1, each, 0.0
        elif not top:
            valley = min(valley, each)
    return found


@settings(deadline=None, max_examples=30)
@given(scale=st.floats(3, 3000), shift=st.floats(0, 1.0), top=st.sampled_from([1024 * 16.0, 262144.0, 4194304.0, np.inf]))
def test_noise_around_zero_has_one_peak_on_its_scale(scale, shift, top):
    values = normal(scale, shift=shift * scale)
    assert peaks(values) == 1
    assert peaks(scale_of("auto", "logicle", values, top).scale(values)) == 1


def test_tops_are_those_of_channels_unless_they_cannot_be_meant():
    values = np.append(normal(), [5e4])
    assert "T=262144," in scale_of("logicle", "none", values, 262144.0).name
    bright = np.append(normal(), np.full(200, 3e5))
    assert "T=300000," in scale_of("logicle", "none", bright, 1024.0).name  # a range that the values do not know
    assert "T=300000," in scale_of("logicle", "none", bright, 2.0**32).name  # the width of a number
    assert "T=300000," in scale_of("logicle", "none", bright, np.inf).name
    thrown = np.append(normal(), [1e9])
    assert "T=262144," in scale_of("logicle", "none", thrown, 262144.0).name
    small = normal(1.0)
    lowered = scale_of("logicle", "none", small, 2.0**24)
    assert float(lowered.name.split("T=")[1].split(",")[0]) == pytest.approx(noise_reach(small) * 10**4.5, rel=1e-3)


def test_what_is_given_is_taken_and_the_rest_estimated():
    values = normal()
    assert scale_of("logicle:T=10000,W=0.7", "none", values, 262144.0).name == "logicle:T=10000,W=0.7"
    assert scale_of("logicle:W=1", "none", values, 262144.0).name == "logicle:T=262144,W=1"
    name = scale_of("logicle:T=1000,M=4,A=0.5", "none", values, 262144.0).name
    assert name.startswith("logicle:T=1000,W=")
    assert name.endswith(",M=4,A=0.5")
    assert scale_of("asinh:7", "logicle", values, 1.0).name == "asinh:7"
    assert scale_of("none", "logicle", values, 1.0) is None
    assert scale_of("auto", "none", values, 1.0) is None
    assert scale_of("auto", "asinh:5", values, 1.0).name == "asinh:5"


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.floats(-1e7, 1e7, width=32), min_size=1, max_size=40),
    st.sampled_from([1.0, 1024.0, 262144.0, 1e9, np.inf]),
)
def test_every_column_has_a_scale_that_is_finite_and_ascending(values, top):
    values = np.array(values)
    scale = scale_of("auto", "logicle", values, top)
    there = scale.scale(np.sort(values))
    assert np.isfinite(there).all()
    assert (np.diff(there) >= -1e-9).all()
    assert parse_transform(scale.name).name == scale.name


def test_the_scale_is_applied_in_place_and_a_value_without_place_is_named():
    cells = np.abs(np.column_stack([normal(count=40000)] * 3)).astype(np.float32) + 1
    expected = np.arcsinh(cells[:, 0].astype(float) / 5)
    before = cells[:, 1].copy()
    put_on_scales(cells, [parse_transform("asinh:5"), None, parse_transform("log")], "a.fcs", MARKERS, np.arange(1, 40001))
    np.testing.assert_allclose(cells[:, 0], expected, rtol=1e-6)
    np.testing.assert_array_equal(cells[:, 1], before)
    cells[39000, 2] = -1
    with pytest.raises(ValueError, match=r"a\.fcs: transform 'log' needs values above 0, column 'HLA-DR' has .* in row 39001"):
        put_on_scales(cells, [None, None, parse_transform("log")], "a.fcs", MARKERS, np.arange(1, 40001))


def test_every_sample_has_a_say_in_the_scale():
    parts = [np.zeros((100, 1)), np.ones((100_000, 1))]
    some = pooled(parts)
    assert (some == 0).sum() == 100
    assert 2000 < (some == 1).sum() <= 4096


def test_ranges_that_differ_between_files_are_told():
    tops = np.array([[1024.0, 5.0], [262144.0, 5.0]])
    assert (
        "1 of 2 markers have different ranges in different files (x 1,024 in a, 262,144 in b)"
        in range_notes(["x", "y"], tops, ["a", "b"])[0]
    )
    assert range_notes(["y"], tops[:, 1:], ["a", "b"]) == []
    assert range_notes(["y"], np.full((2, 1), np.inf), ["a", "b"]) == []
