"""Tables from files and frames: every format gives the same numbers, and what is written is read back."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from reduset import io

COUNT = 300


def frame(count=COUNT, seed=0):
    """Columns a and b, weights, and groups as text."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.normal(size=count),
            "site": rng.choice(["north", "süd"], count),
            "b": rng.normal(size=count) * 1e6,
            "mass": rng.random(count),
        }
    )


def arrow(table):
    return pa.Table.from_pandas(table, preserve_index=False)


def write_structured(table, path):
    np.save(path, table.astype({"site": "U8"}).to_records(index=False, column_dtypes={"site": "U8"}).view(np.ndarray))


def write_stream(table, path):
    with pa.ipc.new_stream(path, arrow(table).schema) as writer:
        writer.write_table(arrow(table), max_chunksize=70)


WRITERS = {
    "table.csv": lambda table, path: table.to_csv(path, index=False),
    "table.txt": lambda table, path: table.to_csv(path, index=False, sep=";"),
    "table.tsv": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    "table.csv.gz": lambda table, path: table.to_csv(path, index=False),
    "table.parquet": lambda table, path: pq.write_table(arrow(table), path, row_group_size=90),
    "table.feather": lambda table, path: pa.feather.write_feather(arrow(table), str(path), chunksize=70),
    "plain.feather": lambda table, path: pa.feather.write_feather(arrow(table), str(path), compression="uncompressed"),
    "table.arrow": write_stream,
    "table.orc": lambda table, path: pa.orc.write_table(arrow(table), str(path), batch_size=70, stripe_size=1),
    "table.npy": write_structured,
}


@pytest.fixture(params=WRITERS)
def file(request, tmp_path):
    path = tmp_path / request.param
    WRITERS[request.param](frame(), path)
    return path


def test_every_format_gives_the_same_table(file):
    table, expected = io.read(file, weight_column="mass", group_column="site"), frame()
    assert table.columns == ("a", "b")
    np.testing.assert_array_equal(table.values, expected[["a", "b"]])
    np.testing.assert_array_equal(table.weights, expected["mass"])
    np.testing.assert_array_equal(table.groups, expected["site"].astype(str))
    assert table.values.dtype == np.float64
    assert table.values.flags.c_contiguous
    assert table.sources == (str(file),)


def test_columns_come_in_the_order_asked_for(file):
    table = io.read(file, columns=["mass", "a"])
    assert table.columns == ("mass", "a")
    np.testing.assert_array_equal(table.values, frame()[["mass", "a"]])
    assert (table.weights, table.groups) == (None, None)


def test_without_names_all_columns_of_numbers_are_taken_and_the_others_noted(file):
    table = io.read(file)
    assert table.columns == ("a", "b", "mass")
    assert table.notes == ("columns without numbers are omitted: site",)


@pytest.mark.covering_cases
@pytest.mark.fast_cases(33)
@pytest.mark.parametrize("rows", [1, 64, 300, 1000])
def test_batches_are_the_table_cut_in_pieces(file, rows):
    parts = list(io.batches(file, rows=rows, weight_column="mass", group_column="site"))
    assert {len(part) for part in parts[:-1]} <= {rows}
    assert len(parts) == -(-COUNT // rows)
    whole = io.read(file, weight_column="mass", group_column="site")
    np.testing.assert_array_equal(np.concatenate([part.values for part in parts]), whole.values)
    np.testing.assert_array_equal(np.concatenate([part.weights for part in parts]), whole.weights)
    np.testing.assert_array_equal(np.concatenate([part.groups for part in parts]), whole.groups)


def test_several_files_are_read_one_after_the_other(tmp_path):
    paths = []
    for seed, name in enumerate(["one.csv", "two.parquet", "three.feather"]):
        paths.append(tmp_path / name)
        WRITERS[f"table{paths[-1].suffix}"](frame(50 + seed, seed), paths[-1])
    table = io.read(paths, columns=["b", "a"], group_column="site")
    everything = pd.concat([frame(50 + seed, seed) for seed in range(3)])
    np.testing.assert_array_equal(table.values, everything[["b", "a"]])
    np.testing.assert_array_equal(table.groups, everything["site"].astype(str))
    assert table.sources == tuple(map(str, paths))


def test_columns_in_another_order_are_found_by_name(tmp_path):
    frame().to_csv(tmp_path / "one.csv", index=False)
    frame()[["mass", "b", "site", "a"]].to_csv(tmp_path / "two.csv", index=False)
    table = io.read([tmp_path / "one.csv", tmp_path / "two.csv"])
    np.testing.assert_array_equal(table.values[:COUNT], table.values[COUNT:])


def test_single_precision_stays_single(tmp_path):
    numbers = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    pq.write_table(pa.table({"a": numbers[:, 0], "b": numbers[:, 1], "c": np.arange(20)}), tmp_path / "t.parquet")
    np.save(tmp_path / "t.npy", numbers)
    pa.orc.write_table(pq.read_table(tmp_path / "t.parquet"), str(tmp_path / "t.orc"))
    for path in (tmp_path / "t.npy", tmp_path / "t.parquet", tmp_path / "t.orc"):
        table = io.read(path, columns=None if path.suffix == ".npy" else ["a", "b"])
        assert table.values.dtype == np.float32
        np.testing.assert_array_equal(table.values, numbers)
    assert io.read(tmp_path / "t.parquet").values.dtype == np.float64


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, 3], pa.int8()),
        pa.array([1, 2, 3], pa.uint64()),
        pa.array(np.array([1, 2, 3], np.float16)),
        pa.array([1, 2, 3]).cast(pa.decimal128(30, 2)),
        pa.array([1, 2, 3]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
def test_all_arrow_types_of_numbers_are_read(tmp_path, column):
    pa.feather.write_feather(pa.table({"a": column}), str(tmp_path / "t.feather"))
    np.testing.assert_array_equal(io.read(tmp_path / "t.feather").values, [[1], [2], [3]])


def test_orc_types_of_numbers_are_read_and_others_are_named(tmp_path):
    columns = {
        "byte": pa.array([1, None, 3], pa.int8()),
        "price": pa.array([1, 2, 3]).cast(pa.decimal128(30, 2)),
        "a.b": pa.array([1.0, 2.0, 3.0]),  # a name, not the field b of a
        "on": pa.array([True, False, None]),
        "day": pa.array([1, 2, 3], pa.int32()).cast(pa.date32()),
        "pair": pa.array([{"x": 1.0}] * 3),
        "tags": pa.array([["a"], [], None]),
    }
    pa.orc.write_table(pa.table(columns), str(tmp_path / "t.orc"))
    table = io.read(tmp_path / "t.orc", missing="drop")
    assert table.columns == ("byte", "price", "a.b", "on")
    np.testing.assert_array_equal(table.values, [[1, 1, 1, 1]])
    assert "columns without numbers are omitted: day, pair, tags" in table.notes
    np.testing.assert_array_equal(io.read(tmp_path / "t.orc", columns=["a.b", "on"], missing="drop").values, [[1, 1], [2, 0]])
    with pytest.raises(io.FileError, match=r"column 'day' .*got '1970-01-02' in row 1"):
        io.read(tmp_path / "t.orc", columns=["day"])


def test_two_orc_columns_of_one_name_are_refused(tmp_path):
    pa.orc.write_table(pa.table([[1], [2]], names=["a", "a"]), str(tmp_path / "t.orc"))
    with pytest.raises(io.FileError, match=r"t\.orc: two columns are named 'a'"):
        io.read(tmp_path / "t.orc")


@pytest.mark.parametrize("name", ["t.csv", "t.txt"])
def test_text_may_begin_with_the_letters_of_a_format(tmp_path, name):
    (tmp_path / name).write_text("ORCID,BMI\n1,20\n2,30\n")
    assert io.read(tmp_path / name).columns == ("ORCID", "BMI")


def test_flags_are_numbers_whether_they_are_named_or_not(tmp_path):
    flags = pd.DataFrame({"a": [1.5, 2.0], "on": [True, False]})
    flags.to_csv(tmp_path / "t.csv", index=False)
    flags.to_parquet(tmp_path / "t.parquet", index=False)
    np.save(tmp_path / "t.npy", flags.to_records(index=False).view(np.ndarray))
    for name in ("t.csv", "t.parquet", "t.npy"):
        table = io.read(tmp_path / name)
        assert table.columns == ("a", "on")
        np.testing.assert_array_equal(table.values, [[1.5, 1], [2, 0]])
        np.testing.assert_array_equal(io.read(tmp_path / name, columns=["on"]).values, [[1], [0]])
        assert io.read(tmp_path / name, group_column="on").columns == ("a",)
    np.testing.assert_array_equal(io.as_table(flags).values, [[1.5, 1], [2, 0]])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([3, 1, 3], [3, 1, 3]),
        (["007", "7", "7"], ["007", "7", "7"]),
        (["b", "a", "b"], ["b", "a", "b"]),
        ([1.5, 2.0, 1.5], ["1.5", "2.0", "1.5"]),
    ],
    ids=["whole numbers", "names of digits", "text", "fractions"],
)
def test_groups_are_whole_numbers_or_text(tmp_path, suffix, labels, expected):
    path = tmp_path / f"t{suffix}"
    WRITERS[f"table{suffix}"](pd.DataFrame({"x": [1.0, 2.0, 3.0], "g": labels}), path)
    groups = io.read(path, group_column="g").groups
    assert groups.tolist() == expected


def test_arrays_of_an_archive_are_chosen_by_key_and_flat_ones_are_weights_and_groups(tmp_path):
    X, Z = np.random.default_rng(0).normal(size=(2, 40, 3))
    y, w = np.arange(40) % 3, np.arange(1.0, 41)
    np.savez_compressed(tmp_path / "t.npz", X=X, Z=np.asfortranarray(Z), y=y, w=w, text=np.array("why"))
    table = io.read(tmp_path / "t.npz", weight_column="w", group_column="y")
    np.testing.assert_array_equal(table.values, X)
    np.testing.assert_array_equal(table.weights, w)
    np.testing.assert_array_equal(table.groups, y)
    assert table.columns == ("x0", "x1", "x2")
    np.testing.assert_array_equal(io.read(tmp_path / "t.npz", key="Z", columns=["x2", "x0"]).values, Z[:, [2, 0]])
    np.testing.assert_array_equal(io.read(tmp_path / "t.npz", key="w").values[:, 0], w)


def test_a_saved_mean_is_read_as_its_atoms(tmp_path):
    from reduset import Gaussian, KernelMean

    atoms = np.random.default_rng(0).normal(size=(9, 2))
    KernelMean(atoms, np.full(9, 1 / 9), Gaussian(1.0)).save(tmp_path / "m.npz")
    table = io.read(tmp_path / "m.npz", weight_column="weights")
    np.testing.assert_array_equal(table.values, atoms)
    np.testing.assert_allclose(table.weights, 1 / 9)


@pytest.mark.parametrize("order", ["C", "F"])
def test_plain_arrays_are_read_in_either_order(tmp_path, order):
    X = np.asarray(np.arange(30).reshape(10, 3), order=order)
    np.save(tmp_path / "t.npy", X)
    np.testing.assert_array_equal(io.read(tmp_path / "t.npy").values, X)
    assert [len(part) for part in io.batches(tmp_path / "t.npy", rows=4)] == [4, 4, 2]


def test_pixels_are_rows_of_colours(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    table = io.read(tmp_path / "p.png")
    assert table.columns == ("red", "green", "blue")
    np.testing.assert_array_equal(table.values, pixels.reshape(-1, 3))
    np.testing.assert_array_equal(io.read_image(tmp_path / "p.png"), pixels)


@pytest.mark.parametrize(
    ("mode", "shape"), [("L", (5, 7)), ("1", (5, 7)), ("LA", (5, 7)), ("RGBA", (5, 7, 3)), ("P", (5, 7, 3)), ("I;16", (5, 7))]
)
def test_images_of_all_modes_are_bytes_of_grey_or_three_colours(tmp_path, mode, shape):
    levels = np.arange(35, dtype=np.uint16).reshape(5, 7) * 1000
    picture = Image.fromarray(levels) if mode == "I;16" else Image.fromarray((levels >> 8).astype(np.uint8)).convert(mode)
    picture.save(tmp_path / "p.png")
    image = io.read_image(tmp_path / "p.png")
    assert (image.dtype, image.shape) == (np.uint8, shape)
    if mode != "1":
        np.testing.assert_array_equal(image if image.ndim == 2 else image[..., 0], levels >> 8)


FRAMES = {
    "pandas": lambda table: table,
    "pandas with arrow": lambda table: table.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "lazy polars": lambda table: pl.from_pandas(table).lazy(),
    "arrow table": arrow,
    "arrow batch": lambda table: arrow(table).to_batches()[0],
    "arrow reader": lambda table: arrow(table).to_reader(),
}


@pytest.mark.parametrize("home", FRAMES)
def test_every_frame_gives_the_same_table(home):
    table = io.as_table(FRAMES[home](frame()), weight_column="mass", group_column="site", transform={"b": "asinh:2"})
    assert table.columns == ("a", "b")
    np.testing.assert_array_equal(table.values[:, 0], frame()["a"])
    np.testing.assert_allclose(table.values[:, 1], np.arcsinh(frame()["b"] / 2))
    np.testing.assert_array_equal(table.weights, frame()["mass"])
    np.testing.assert_array_equal(table.groups, frame()["site"].astype(str))
    assert io.as_table(FRAMES[home](frame()), columns=["b"], group_column="site").values.shape == (COUNT, 1)


def test_what_is_missing_is_refused_or_dropped_and_counted(file):
    holes = frame()
    holes.loc[4, "a"] = np.nan
    holes.loc[9, "site"] = None
    holes.loc[[9, 11], "mass"] = np.nan
    if file.suffix == ".npy":
        holes["site"] = holes["site"].fillna("none")  # NumPy's text has no mark for what is missing
    WRITERS[file.name](holes, file)
    with pytest.raises(io.FileError, match=r"'a'.*5.*missing='drop'"):
        io.read(file, weight_column="mass")
    table = io.read(file, weight_column="mass", group_column="site", missing="drop")
    kept = holes.dropna()
    np.testing.assert_array_equal(table.values, kept[["a", "b"]])
    np.testing.assert_array_equal(table.weights, kept["mass"])
    np.testing.assert_array_equal(table.groups, kept["site"].astype(str))
    assert "3 rows with missing values left out" in table.notes


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8).filter(
    lambda name: name != "weight"
)


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv", ".tsv", ".csv.gz"])
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_weighted_rows_come_back_as_they_were_written(tmp_path_factory, suffix, data):
    path = tmp_path_factory.mktemp("rows") / f"t{suffix}"
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=6))
    finite = st.floats(-1e100, 1e100, allow_subnormal=False)
    values = data.draw(hnp.arrays(np.float64, shape, elements=finite))
    weights = data.draw(hnp.arrays(np.float64, shape[0], elements=st.floats(0.001, 1e6)))
    columns = data.draw(st.lists(NAMES, min_size=shape[1], max_size=shape[1], unique=True))
    io.write_rows(path, columns, values, weights)
    back = io.read(path, columns=columns, weight_column="weight")
    np.testing.assert_array_equal(back.values, values)
    np.testing.assert_array_equal(back.weights, weights)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_rows_may_be_negative_in_weight_and_single_in_precision(tmp_path):
    table = io.Table(np.ones((2, 1), np.float32), ("weight",))
    io.write_rows(tmp_path / "t.parquet", table, table.values, [-1.0, 2.0])
    back = io.read(tmp_path / "t.parquet", columns=["weight"], weight_column="sample_weight")
    assert back.values.dtype == np.float32
    np.testing.assert_array_equal(back.weights, [-1, 2])


def test_bags_are_files_by_name(tmp_path):
    paths = [tmp_path / "p" / "s1.csv", tmp_path / "q" / "s1.csv", tmp_path / "q" / "s2.csv.gz"]
    for seed, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        frame(30 + seed, seed).to_csv(path, index=False)
    bags = io.read_bags(paths, columns=["a", "b"])
    assert list(bags) == ["p/s1", "q/s1", "s2"]
    assert [len(bag) for bag in bags.values()] == [30, 31, 32]
    np.testing.assert_array_equal(bags["q/s1"].values, frame(31, 1)[["a", "b"]])


def test_bags_of_the_folder_at_hand_need_no_folder_in_their_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame().to_csv("s.csv", index=False)
    assert list(io.read_bags(["s.csv", "s.csv"])) == ["s", "s (2)"]


def test_batches_count_all_rows_that_were_left_out(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n,1\n1,1\n2,1\n,1\n3,1\n4,1\n,1\n,1\n")
    parts = list(io.batches(tmp_path / "t.csv", rows=2, missing="drop"))
    assert [len(part) for part in parts] == [2, 2]
    assert sum(part.dropped for part in parts) == io.read(tmp_path / "t.csv", missing="drop").dropped == 4


def test_bags_are_labels_in_the_order_in_which_they_appear(file):
    bags = io.read_bags(file, group_column="site", weight_column="mass")
    expected = frame()
    assert list(bags) == list(dict.fromkeys(expected["site"]))
    for name, bag in bags.items():
        mine = expected[expected["site"] == name]
        np.testing.assert_array_equal(bag.values, mine[["a", "b"]])
        np.testing.assert_array_equal(bag.weights, mine["mass"])
        assert bag.groups is None


def test_gzip_of_several_members_is_read_whole(tmp_path):
    text = b"a\n1\n2\n"
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text[:4]) + gzip.compress(text[4:]))
    np.testing.assert_array_equal(io.read(tmp_path / "t.csv.gz").values, [[1], [2]])


def test_labels_come_first_and_weights_are_left_out_where_there_are_none(tmp_path):
    io.write_rows(tmp_path / "d.csv", ["a", "b"], [[0.0, 1.5], [np.inf, 0.0]], labels={"sample": ["a", "b"]})
    assert (tmp_path / "d.csv").read_text().splitlines()[0] == '"sample","a","b"'
    with pytest.raises(ValueError, match="columns must be different names"):
        io.write_rows(tmp_path / "d.csv", ["a", "b"], np.eye(2), labels={"a": [1, 2]})
    with pytest.raises(ValueError, match="2-D array of numbers with 2 columns"):
        io.write_rows(tmp_path / "d.csv", ["a", "b"], np.eye(3))


def test_the_group_of_each_sample_is_read_by_name(tmp_path):
    (tmp_path / "groups.csv").write_text("sample,group,more\n7,ill,x\nb,well,y\n")
    assert io.read_labels(tmp_path / "groups.csv") == {"7": "ill", "b": "well"}
    (tmp_path / "numbered.csv").write_text("sample,group\n001,1\n002,2\n")
    assert io.read_labels(tmp_path / "numbered.csv") == {"001": "1", "002": "2"}
    (tmp_path / "one.csv").write_text("sample\na\n")
    with pytest.raises(io.FileError, match=r"one\.csv: must have two columns"):
        io.read_labels(tmp_path / "one.csv")


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (5, 7, 4)])
def test_a_picture_that_was_written_is_read_again(shape, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    io.write_image(tmp_path / "p.png", pixels)
    found = io.read_image(tmp_path / "p.png")
    np.testing.assert_array_equal(found, pixels[..., :3] if len(shape) == 3 else pixels)
    io.write_image(tmp_path / "p.jpg", pixels)
    assert io.read_image(tmp_path / "p.jpg").shape[:2] == (5, 7)
    with pytest.raises(io.FileError, match="cannot be written with this suffix"):
        io.write_image(tmp_path / "p.txt", pixels)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.jpg", "p.png"]


@pytest.mark.parametrize("column", [pd.Series([1.0]), pa.chunked_array([[1.0]])], ids=["pandas", "Arrow"])
def test_a_single_column_is_no_frame(column):
    with pytest.raises(TypeError, match="frame must be a pandas, polars or Arrow table, got"):
        io.as_table(column)
