"""Scales: asinh, log, and logicle against the biexponential function that it inverts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from reduset import io
from reduset.io.transforms import Logicle, parse_transform

SCALES = [
    Logicle(),
    Logicle(10000, 1, 4.5, 0),
    Logicle(1000, 1, 4, 1),
    Logicle(1000, 0, 4, 0),
    Logicle(1000, 2, 4, 0),
    Logicle(1e5, 1, 5, -1),
]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_logicle_undoes_the_biexponential_and_the_other_way_round(scale):
    y = np.linspace(-0.5, 1.5, 4001)
    np.testing.assert_allclose(scale(scale.inverse(y)), y, atol=1e-11)
    x = np.concatenate([-np.geomspace(1e-9, 1e9, 500), [0.0], np.geomspace(1e-9, 1e9, 500)])
    np.testing.assert_allclose(scale.inverse(scale(x)), x, rtol=1e-9, atol=1e-9 * scale.top)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_logicle_agrees_with_a_root_found_one_by_one(scale):
    for x in (-300.0, -1.0, 0.0, 5.0, 400.0, scale.top, 20 * scale.top):
        root = brentq(lambda y, x=x: float(scale.inverse(np.array([y]))[0]) - x, -20, 5, xtol=1e-14)
        assert float(scale(np.array([x]))[0]) == pytest.approx(root, abs=1e-11)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_marks_of_the_logicle_scale_are_where_the_paper_has_them(scale):
    whole = scale.decades + scale.below
    zero = (scale.below + scale.linear) / whole
    np.testing.assert_allclose(scale(np.array([0.0, scale.top])), [zero, 1.0], atol=1e-12)
    step = 1e-4
    bend = np.diff(scale.inverse(zero + np.array([-step, 0, step])), 2)[0] / step**2
    slope = np.diff(scale.inverse(zero + np.array([-step, step])))[0] / (2 * step)
    assert abs(bend) < 1e-4 * slope  # no curvature at zero


@settings(deadline=None, max_examples=60)
@given(
    x=st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20),
    top=st.floats(10, 1e7),
    decades=st.floats(2, 8),
    share=st.floats(0, 1),
)
def test_logicle_is_monotone_and_inverted_for_all_parameters(x, top, decades, share):
    scale = Logicle(top, share * decades / 2, decades, 0.0)
    x = np.sort(np.array(x))
    y = scale(x)
    assert (np.diff(y) >= -1e-12).all()
    np.testing.assert_allclose(scale.inverse(y), x, rtol=1e-7, atol=1e-7 * top)


def test_transforms_are_parsed():
    x = np.array([0.5, 3.0])
    np.testing.assert_allclose(parse_transform("asinh:150").scale(x), np.arcsinh(x / 150))
    np.testing.assert_allclose(parse_transform("asinh").scale(x), np.arcsinh(x))
    np.testing.assert_allclose(parse_transform("log").scale(x), np.log(x))
    np.testing.assert_allclose(parse_transform("logicle").scale(x), Logicle()(x))
    np.testing.assert_allclose(parse_transform("logicle:T=1000,W=1").scale(x), Logicle(1000, 1)(x))


@pytest.mark.parametrize(
    "text",
    ["sqrt", "asinh:x", "asinh:0", "asinh:-1", "asinh:inf", "log:2", "logicle:Q=1", "logicle:W=x", "logicle:W=9", "logicle:T=0"],
)
def test_other_transforms_are_refused(text):
    with pytest.raises(ValueError, match=r"transform|logicle needs"):
        parse_transform(text)


@pytest.mark.parametrize("value", [3, ["log"], b"log"])
def test_a_transform_is_text_or_a_dict(tmp_path, value):
    np.save(tmp_path / "t.npy", np.ones((3, 2)))
    with pytest.raises(TypeError, match=r"transform must be None, 'asinh:150'"):
        io.read(tmp_path / "t.npy", transform=value)


def test_transforms_apply_to_the_columns_named(tmp_path):
    X = np.random.default_rng(0).random((70, 3)) + 1
    np.save(tmp_path / "t.npy", X)
    table = io.read(tmp_path / "t.npy", transform={"x0": "log", "x2": "logicle", "x1": None})
    np.testing.assert_allclose(table.values, np.column_stack([np.log(X[:, 0]), X[:, 1], Logicle()(X[:, 2])]))
    assert table.notes == ("x0 on the scale log", "x2 on the scale logicle")
    with pytest.raises(io.FileError, match="transform names 'x3', which was not read"):
        io.read(tmp_path / "t.npy", transform={"x3": "log"})


def test_log_of_what_has_none_names_the_row_of_the_file(tmp_path):
    X = np.ones((90, 2))
    X[[3, 40], 1] = np.nan, 0.0
    np.save(tmp_path / "t.npy", X)
    with pytest.raises(io.FileError, match="transform 'log' needs values above 0, column 'x1' has 0 in row 41; use asinh"):
        io.read(tmp_path / "t.npy", transform="log", missing="drop")
