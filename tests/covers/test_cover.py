"""Covers against the definition, their words, radii, owners and groups; rows from arrays, files and tensors; what is refused."""

import re

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import feather, parquet

from reduset import _validate, cover
from reduset.io import FileError


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(600, 6)).astype(np.float32)


def farthest_first(rows, first, size):
    chosen = [first]
    while len(chosen) < size:
        chosen.append(int(np.linalg.norm(rows[:, None] - rows[chosen], axis=2).min(axis=1).argmax()))
    return chosen


def test_rows_are_chosen_farthest_first_from_the_one_nearest_to_the_mean(rows):
    found = cover(rows, 30)
    exact = rows.astype(float)
    first = int(np.linalg.norm(exact - exact.mean(axis=0), axis=1).argmin())
    assert found.indices.tolist() == farthest_first(exact, first, 30)
    gaps = np.linalg.norm(exact[:, None] - exact[found.indices], axis=2)
    assert found.radius == pytest.approx(gaps.min(axis=1).max())
    np.testing.assert_array_equal(found.assignments, gaps.argmin(axis=1))
    np.testing.assert_allclose(found.assignment_distances, gaps.min(axis=1), rtol=1e-5, atol=1e-6)
    assert np.isinf(found.distances[0])
    assert (np.diff(found.distances[1:]) <= 0).all()
    assert found.distances[-1] >= found.radius
    assert found.counts.sum() == 600


def test_a_radius_ends_the_selection(rows):
    found = cover(rows, 600, radius=2.0)
    assert found.radius <= 2.0
    assert cover(rows, found.size - 1).radius > 2.0
    assert cover(rows, 5, radius=2.0).size == 5
    assert cover(rows, radius=0.0).size == 600


def test_cosine_distances_are_one_less_the_cosine(rows):
    found = cover(rows * np.linspace(0.1, 30, 600)[:, None].astype(np.float32), 20, metric="cosine")
    unit = rows / np.linalg.norm(rows, axis=1)[:, None]
    distances = 1 - unit @ unit[found.indices].T
    assert found.radius == pytest.approx(distances.min(axis=1).max(), rel=1e-4)
    np.testing.assert_allclose(found.assignment_distances, distances.min(axis=1), atol=1e-5)
    wide = cover(rows, radius=0.3, metric="cosine")
    assert wide.radius <= 0.3


def test_going_on_from_rows_or_places_chooses_beside_them(rows):
    whole = cover(rows, 40)
    more = cover(rows, 15, start=whole.indices[:25])
    assert more.indices.tolist() == whole.indices[25:].tolist()
    np.testing.assert_allclose(more.distances, whole.distances[25:])
    assert more.radius == whole.radius
    np.testing.assert_array_equal(more.assignments, whole.assignments)
    assert more.start.tolist() == whole.indices[:25].tolist()
    places = cover(rows, 15, start=rows[whole.indices[:25]])
    assert places.indices.tolist() == more.indices.tolist()
    assert set(places.start.tolist()) == {-1}
    assert cover(rows, 1, start=np.zeros((1, 6))).size == 1


def test_groups_are_rows_that_are_nearly_the_same():
    rng = np.random.default_rng(1)
    copies = np.repeat(rng.normal(size=(20, 8)), [5] * 10 + [1] * 10, axis=0)
    near = copies + rng.normal(0, 1e-3, copies.shape)
    found = cover(near, radius=0.05)
    assert found.size == 20
    groups = found.groups()
    assert [len(group.rows) for group in groups] == [4] * 10
    assert all(set(group.rows // 5) == {group.kept // 5} for group in groups)
    assert all((np.diff(group.distances) >= 0).all() and group.distances[-1] <= 0.05 for group in groups)
    assert found.groups(0.0) == []


def nearest_of(rows, centres):
    return np.linalg.norm(rows[:, None].astype(float) - centres.astype(float), axis=2)


def test_owners_are_the_nearest_where_centres_are_closer_than_single_precision_tells():
    rng = np.random.default_rng(2)
    base = rng.normal(size=(150, 96))
    base /= np.linalg.norm(base, axis=1)[:, None]
    rows = np.concatenate([base, base + 5e-6 * rng.normal(size=base.shape), base]).astype(np.float32)
    found = cover(rows, radius=1e-5)
    assert found.radius <= 1e-5
    assert found.assignment_distances.max() <= found.radius * (1 + 1e-6)
    assert len(found.groups()) == 150
    apart = np.concatenate([rng.normal(0, 0.1, (400, 4)) + 1e3, rng.normal(0, 0.1, (400, 4)) - 1e3]).astype(np.float32)
    found = cover(apart, 60)
    gaps = nearest_of(apart, apart[found.indices])
    np.testing.assert_array_equal(found.assignments, gaps.argmin(axis=1))
    every = cover(rng.normal(size=(500, 1)), 500)
    assert (every.radius, every.assignment_distances.max()) == (0.0, 0.0)
    parallel = (1 + 1e-3 * rng.normal(size=(500, 8))).astype(np.float32)
    found = cover(parallel, 40, metric="cosine")
    unit = parallel.astype(float) / np.linalg.norm(parallel.astype(float), axis=1)[:, None]
    gaps = nearest_of(unit, unit[found.indices])
    np.testing.assert_allclose(gaps[np.arange(500), found.assignments], gaps.min(axis=1), rtol=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_radius_of_a_choice_asks_for_that_choice(metric):
    for seed in range(12):
        rows = np.random.default_rng(seed).normal(size=(120, 5))
        found = cover(rows, 17, metric=metric)
        assert cover(rows, 120, radius=found.radius, metric=metric).size <= 17


def test_small_numbers_beside_a_large_one_are_told_apart():
    rows = np.random.default_rng(3).normal(size=(800, 4)) * 1e-22
    rows[0] = 1.0
    found = cover(rows, 100, start=[0])
    assert found.indices.tolist() == farthest_first(rows, 0, 101)[1:]


def test_places_to_go_on_from_keep_their_own_precision():
    rows = np.random.default_rng(4).normal(size=(400, 4)).astype(np.float16)
    places = np.random.default_rng(5).normal(size=(3, 4)) * 1.0001
    found = cover(rows, 20, start=places)
    exact = rows.astype(float)
    least = nearest_of(exact, places).min(axis=1)
    assert found.indices[0] == int(least.argmax())
    assert found.distances[0] == pytest.approx(least.max(), rel=1e-14)
    assert cover(rows, 5, start=np.full((1, 4), 1e5)).radius < 1e5


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64])
def test_types_are_kept_or_made_double(rows, dtype):
    given = (rows * 10).astype(dtype)
    assert cover(given, 10).indices.tolist() == cover(given.astype(float), 10).indices.tolist()


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_files_are_those_of_memory(tmp_path, rows, order):
    expected = cover(rows, 12)
    np.save(tmp_path / "e.npy", np.asarray(rows, order=order))
    lists = arrow.array(list(rows), arrow.list_(arrow.float32(), 6))
    parquet.write_table(arrow.table({"text": [str(k) for k in range(600)], "embedding": lists}), tmp_path / "e.parquet")
    feather.write_feather(
        arrow.table({"embedding": arrow.array(rows.tolist(), arrow.list_(arrow.float32()))}), tmp_path / "e.feather"
    )
    parquet.write_table(arrow.table({f"c{k}": rows[:, k] for k in range(6)}), tmp_path / "columns.parquet")
    for name in ("e.npy", "e.parquet", "e.feather", "columns.parquet"):
        found = cover(tmp_path / name, 12)
        assert found.indices.tolist() == expected.indices.tolist(), name
        assert found.radius == expected.radius
    large = arrow.array(rows.tolist(), arrow.large_list(arrow.float32()))
    parquet.write_table(arrow.table({"id": np.arange(600), "e": large}), tmp_path / "large.parquet")
    parquet.write_table(arrow.table({"id": np.arange(600)} | {f"c{k}": rows[:, k] for k in range(6)}), tmp_path / "id.parquet")
    for name in ("large.parquet", "id.parquet"):
        assert cover(tmp_path / name, 12).indices.tolist() == expected.indices.tolist(), name
    two = arrow.table({"a": lists, "b": lists})
    parquet.write_table(two, tmp_path / "two.parquet")
    with pytest.raises(FileError, match=r"several columns of lists \(a, b\); choose one with column="):
        cover(tmp_path / "two.parquet", 3)
    assert cover(str(tmp_path / "two.parquet"), 12, column="b").radius == expected.radius


def test_words_say_how_many_and_how_near(rows):
    found = cover(rows, 20)
    assert str(found).startswith("Cover: 20 of 600 rows\n")
    assert "cosine distance" in str(cover(rows, 3, metric="cosine"))
    assert "added to 4 existing centres" in str(cover(rows, 3, start=[1, 2, 3, 4]))


def test_owners_are_left_out_where_nobody_asks(rows):
    found = cover(rows, 20, assignments=False)
    assert set(found.assignments.tolist()) == {-1}
    assert found.counts.sum() == 0
    assert found.radius == cover(rows, 20).radius


def test_rows_that_are_all_the_same_are_one():
    found = cover(np.ones((50, 4)), 10)
    assert (found.size, found.radius) == (1, 0.0)
    assert len(found.groups()[0].rows) == 49


def test_progress_is_told(rows):
    told = []
    cover(rows, 20, progress=lambda *given: told.append(given[0]))
    assert {"choosing", "nearest"} <= set(told)


ONES = np.ones((5, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ONES,), "size or radius must be given"),
        ((ONES, 6), "size must"),
        ((ONES, 0), "size must"),
        ((ONES, 2, {"metric": "l1"}), "metric must be one of"),
        ((ONES, 2, {"radius": -1.0}), "radius must be a finite distance"),
        ((ONES, 2, {"radius": np.inf}), "radius must be a finite distance"),
        ((np.array([[1.0], [np.nan]]), 1), "data .*got nan in row 1"),
        ((np.array([[1.0], [np.inf]], np.float16), 1), "data .*got inf in row 1, column 0"),
        ((np.ones(4), 1), "data must have two dimensions"),
        ((np.ones(4, np.float16), 1), "data must have two dimensions"),
        (
            (np.array([[1.0, 1], [0, 0], [0, 0]]), 1, {"metric": "cosine"}),
            "rows of zeros.*2 rows do, the first is row 1",
        ),
        ((ONES, 1, {"metric": "cosine", "start": np.zeros((1, 2))}), "start must not contain a row of zeros"),
        ((ONES, 1, {"start": [7]}), "start must hold row numbers from 0 to 4"),
        ((ONES, 1, {"start": np.ones((1, 3))}), "start must have 2 columns"),
        ((ONES, 1, {"start": []}), "start must hold row numbers"),
        ((ONES, 1, {"start": np.full((1, 2), 1e60)}), "largest absolute value of start"),
        ((ONES, 2, {"radius": "far"}), "radius must be a finite distance"),
        ((np.array([[1.0, 0], [0, 1e-30]], np.float32), 1, {"metric": "cosine"}), "rows of zeros.*row 1"),
        ((ONES * 1e20, 1), "largest absolute value of data must be between 1e-15 and 1e"),
        ((ONES * 1e-20, 1), "rescale data"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    *given, options = arguments if isinstance(arguments[-1], dict) else (*arguments, {})
    with pytest.raises(ValueError, match=message):
        cover(*given, **options)


def test_wrong_files_are_named(tmp_path, rows):
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    (tmp_path / "cut.npy").write_bytes(b"\x93NUMPY\x01")
    (tmp_path / "rows.xyz").write_text("1")
    (tmp_path / "bad.parquet").write_text("no")
    parquet.write_table(arrow.table({"e": arrow.array([[1.0, 2.0], [1.0]])}), tmp_path / "ragged.parquet")
    parquet.write_table(arrow.table({"e": ["a"]}), tmp_path / "text.parquet")
    np.save(tmp_path / "short.npy", rows)
    short = (tmp_path / "short.npy").read_bytes()[:-100]
    (tmp_path / "short.npy").write_bytes(short)
    for name, message in {
        "objects.npy": "Python objects, which are never unpickled",
        "cut.npy": "expected 8 bytes got 7",
        "short.npy": "cut short or damaged",
        "none.npy": "cannot be read",
        "rows.xyz": "its format is not known",
        "bad.parquet": "cannot be read",
        "ragged.parquet": "must have equal lengths",
        "text.parquet": "neither a column of lists nor a numeric column",
    }.items():
        with pytest.raises(FileError, match=f"{name}: .*{message}"):
            cover(tmp_path / name, 1)
    parquet.write_table(arrow.table({"e": arrow.array([[1.0]])}), tmp_path / "one.parquet")
    with pytest.raises(FileError, match="has no column 'f'; its columns are e"):
        cover(tmp_path / "one.parquet", 1, column="f")


class OnDevice:
    """What says that it lies on a GPU."""

    def __dlpack_device__(self):
        return (2, 0)


def test_what_does_not_run_on_a_gpu_says_so():
    with pytest.raises(
        TypeError, match=r"X is an array on a GPU, which is not supported here; copy it to the processor \(X\.get\(\)"
    ):
        _validate.points(OnDevice(), "X")


def test_arrays_on_a_gpu_ask_for_the_library_that_they_need(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(ImportError, match=r"data is an array on a GPU, which needs cupy.* pip install 'reduset\[gpu\]'"):
        cover(OnDevice(), 3)


ODD_ARRAYS = {
    "1-D": (np.ones(5), r"must have two dimensions \(rows, columns\), got shape \(5,\)"),
    "3-D": (np.ones((2, 3, 4)), "must have two dimensions"),
    "half, 3-D": (np.ones((2, 3, 4), np.float16), "must have two dimensions"),
    "NaN": (np.array([[1.0, np.nan], [2.0, 3.0]]), "must be finite, got nan in row 0, column 1"),
    "half, NaN": (np.array([[1.0, np.nan]], np.float16), "must be finite, got nan in row 0, column 1"),
    "text": (np.array([["a", "b"]]), "must hold numbers, got dtype <U1"),
    "dates": (np.array([["2026-01-01"]], "M8[D]"), "must hold numbers, got dtype datetime64"),
    "structured": (np.zeros(3, [("a", float), ("b", float)]), "must hold numbers, got dtype"),
    "merged": (np.array([[2**63 - 1], [2**63 - 2]]), "must hold integers that are distinct in float64"),
    "large": (np.full((2, 2), 1e20), r"largest absolute value of data must be between 1e-15 and 1e\+15"),
    "zeros": (np.array([[1.0, 2.0], [0.0, 0.0]]), "must not contain rows of zeros with metric='cosine'"),
}


@pytest.mark.parametrize("kind", ODD_ARRAYS)
def test_arrays_of_files_that_are_no_rows_are_named(tmp_path, kind):
    array, message = ODD_ARRAYS[kind]
    path = tmp_path / "odd.npy"
    np.save(path, array)
    for given in (path, str(path)):
        with pytest.raises(FileError, match=rf"^{re.escape(str(path))}: .*{message}"):
            cover(given, 1, metric="cosine")
    with pytest.raises((TypeError, ValueError), match=r"^(data|the largest)"):
        cover(array, 1, metric="cosine")


def test_tables_with_missing_values_are_named(tmp_path):
    path = tmp_path / "missing.parquet"
    parquet.write_table(arrow.table({"a": [1.0, None], "b": [1.0, 2.0]}), path)
    with pytest.raises(FileError, match=r"missing\.parquet: data .*got nan in row 1, column 0"):
        cover(path, 1)
