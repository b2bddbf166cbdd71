"""Bags for tests, as arrays and as nested lists and dicts."""

import numpy as np

PAIR = [[1.0, 2.0], [3.0, 4.0]]
FIELDS = [{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}]
WITHOUT = {
    "a bag": ([PAIR, PAIR, None, PAIR], r"bags\[2\] must not be missing \(null\)"),
    "a point": ([PAIR, [], [PAIR[0], None], PAIR], r"bags\[2\] must not hold missing points"),
    "a number": ([PAIR, [], [PAIR[0], [1.0, None]], PAIR], r"bags\[2\] must not hold missing numbers"),
}
WITHOUT_FIELDS = {
    "a point": ([FIELDS, [FIELDS[0], None]], r"bags\[1\] must not hold missing points"),
    "a number": ([FIELDS, [FIELDS[0], {"x": 1.0, "y": None}]], r"bags\[1\] must not hold missing numbers"),
}
ODD = {
    "empty": ([PAIR, [], PAIR], r"bags\[1\] must hold at least one row"),
    "ragged": (
        [PAIR, [*PAIR, [1.0, 2.0, 3.0]], PAIR],
        r"bags\[1\] must hold points of one length, got 2 numbers in row 0 and 3 in row 2",
    ),
    "narrow": ([PAIR, PAIR, [[1.0], [2.0]]], r"bags\[2\] must have 2 columns like bags\[0\], got shape \(2, 1\)"),
    "NaN": ([PAIR, [[1.0, 2.0], [float("nan"), 2.0]]], r"bags\[1\] must be finite, got nan in row 1, column 0"),
    "one point": ([PAIR[:1], PAIR], r"bags\[0\] must hold at least 2 points, got 1"),
}


def ragged():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, 2)) for n in (5, 3, 7, 2, 40)]


def nested():
    return [bag.tolist() for bag in ragged()]


def dicts():
    return [[{"x": x, "y": y} for x, y in bag] for bag in nested()]


def check_column(found, names):
    """What _validate.bags returned is those bags, numbered, with these names of columns."""
    numbers, parts, columns = found
    assert numbers == list(range(5))
    assert columns == names
    for one, other in zip(parts, ragged(), strict=True):
        assert one.dtype == np.float64
        np.testing.assert_array_equal(one, other)
