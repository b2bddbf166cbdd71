"""Odd rows and lists: an error that names the row, or the documented answer, for each kind of call."""

import numpy as np
import pytest

from reduset import cover
from reduset.covers import audit

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 5))
COPIES = np.ones((40, 3), np.float16)
NAN = np.where(np.arange(60)[:, None] == 17, np.nan, ROWS)
ZEROS = np.where(np.arange(60)[:, None] == 17, 0.0, ROWS)
OVERFLOW = (ROWS * 1e5).astype(np.float32).clip(-9e4, 9e4)  # beyond half precision
with np.errstate(over="ignore"):
    INFINITE = OVERFLOW.astype(np.float16)
LARGE_HALVES = (ROWS * 1e4).astype(np.float16)  # their squares are beyond half precision
FIRST_INFINITE = int(np.argwhere(np.isinf(INFINITE))[0, 0])

CALLS = {
    "size": lambda data, **options: cover(data, 10, **options),
    "net": lambda data, **options: cover(data, radius=0.1, keep="first", **options),
    "audit": lambda data, **options: audit(data, np.arange(10), 0.1, **options),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (ZEROS, {"metric": "cosine"}, "rows of zeros with metric='cosine'.*the first is row 17"),
        (NAN, {}, "data must be finite, got nan in row 17, column 0"),
        (NAN.astype(np.float16), {}, "data must be finite, got nan in row 17, column 0"),
        (INFINITE, {}, f"data must be finite, got -?inf in row {FIRST_INFINITE}"),
    ],
    ids=["zeros", "NaN", "NaN in half precision", "float16 overflow"],
)
def test_rows_without_a_distance_are_named(call, data, options, message):
    with pytest.raises(ValueError, match=message):
        CALLS[call](data, **options)


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (lambda: cover(ROWS, radius=0.0), range(60)),
        (lambda: cover(np.repeat(ROWS, 2, axis=0), radius=0.0), range(0, 120, 2)),
        (lambda: cover(ROWS, radius=1e3), [0]),
        (lambda: cover(ROWS, radius=1e3, keep="last"), [59]),
        (lambda: cover(ROWS, radius=2.5, metric="cosine"), [0]),
        (lambda: cover(COPIES, radius=0.0), [0]),
        (lambda: cover(COPIES, radius=0.0, metric="cosine"), [0]),
        (lambda: cover(COPIES, 10), [0]),
        (lambda: cover(COPIES, radius=0.1, keep="medoid"), [0]),
        (lambda: cover(COPIES, radius=0.1, keep=np.zeros(40)), [0]),
        (lambda: cover(COPIES, radius=0.1, keep=np.r_[np.zeros(20), np.ones(20)]), [20]),
        (lambda: cover(np.zeros((9, 2)), radius=0.0), [0]),
        (lambda: cover(LARGE_HALVES, radius=10.0), range(60)),
    ],
    ids=[
        *("radius 0", "radius 0 with copies", "radius above the diameter", "the last one", "cosine radius above 2"),
        *("only copies", "copies, cosine", "copies, size", "copies, medoid", "equal priorities", "two priorities", "origin"),
        "large halves",
    ],
)
def test_extreme_radii_copies_and_ties_have_the_documented_answer(found, kept):
    chosen = found()
    assert chosen.indices.tolist() == list(kept)
    assert np.isfinite(chosen.radius)
    assert chosen.counts.sum() == len(chosen.assignments)


def test_large_halves_have_the_answer_of_double_precision():
    for options in ({"size": 20}, {"radius": 2e4, "keep": "first"}):
        one, other = cover(LARGE_HALVES, **options), cover(LARGE_HALVES.astype(float), **options)
        assert one.indices.tolist() == other.indices.tolist()
        assert one.radius == other.radius


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (np.where(np.arange(60) == 5, np.nan, 1.0), "keep must not hold NaN, got one in row 5"),
        (np.ones(59), "one number for each of the 60 rows"),
        ("middle", "keep must be one of"),
    ],
)
def test_wrong_priorities_are_named(keep, message):
    with pytest.raises(ValueError, match=message):
        cover(ROWS, radius=0.1, keep=keep)


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ([1, 2, 1], "keep must hold each row once, got row 1 2 times"),
        ([1, 60], "keep must hold row numbers from 0 to 59, got 60"),
        ([-2, 1], "keep must hold row numbers from 0 to 59, got -2"),
        (np.zeros(60, bool), "keep must hold row numbers"),
    ],
)
def test_wrong_lists_are_named(keep, message):
    with pytest.raises(ValueError, match=message):
        audit(ROWS, keep)
