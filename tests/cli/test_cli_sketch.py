"""`reduset sketch`: cells of .h5ad files and rows of tables, whole, with their weights."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import anndata
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from annotated_cases import N, cells
from cli_files import TABLES, write_all
from reduset import Gaussian
from reduset import sketch as sketch_rows
from reduset._archive import archive
from reduset.anndata import sketch, sketching
from reduset.cli import sketch as command
from reduset.cli.entry import run

RNG = np.random.default_rng(0)


def told(capsys, *words):
    assert run([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *words):
    assert run(list(map(str, words))) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return text


@pytest.fixture
def stored(tmp_path):
    adata = cells()
    adata.layers["more"] = adata.X * 2
    adata.raw = adata[:, :30].copy()
    adata.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


@pytest.fixture
def table(tmp_path):
    frame = pd.DataFrame(
        {
            "name": [f"row {i}" for i in range(400)],
            "x": RNG.normal(size=400),
            "y": RNG.normal(size=400) * 100,
            "count": np.arange(400),
            "batch": np.where(np.arange(400) % 4, "p", "q"),
        }
    )
    frame.to_csv(tmp_path / "rows.csv", index=False)
    pa.parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "rows.parquet")
    return tmp_path


def test_defaults_are_the_librarys():
    assert command.SIZE == sketching.SIZE


@pytest.mark.slow
def test_cells_come_with_all_that_belongs_to_them(stored, tmp_path, capsys):
    words = ["sketch", stored, "--size", "50", "--sample-key", "donor", "--seed", "4", "-o", tmp_path / "small.h5ad"]
    found = told(capsys, *words, "--assignments", tmp_path / "assignments.csv")
    adata = cells()
    sketch(adata, 50, sample_key="donor", rng=4)
    small = anndata.read_h5ad(tmp_path / "small.h5ad")
    assert found["size"] == small.n_obs == 50
    assert small.obs_names.tolist() == adata.obs_names[adata.obs["sketch"]].tolist()
    assert small.obs["sketch_weight"].sum() == pytest.approx(N)
    whole = anndata.read_h5ad(stored)[small.obs_names]
    assert (small.X != whole.X).nnz == (small.layers["more"] != whole.layers["more"]).nnz == 0
    np.testing.assert_array_equal(small.obsm["X_umap"], whole.obsm["X_umap"])
    assert small.raw.shape == (50, 30)
    assigned = pd.read_csv(tmp_path / "assignments.csv")
    assert assigned["cell"].tolist() == adata.obs_names.tolist()
    assert assigned["assignment"].tolist() == adata.obs["sketch_assignment"].astype(str).tolist()


def test_it_tells_people_too(stored, tmp_path, capsys):
    assert run(["sketch", str(stored), "--fraction", "0.02", "-o", str(tmp_path / "small.h5ad")]) == 0
    text = capsys.readouterr().out
    assert "1,500 cells × 5 columns -> 30 weighted cells (50x)" in text
    assert "small.h5ad" in text


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_keep_their_other_columns(suffix, table, capsys):
    words = ["sketch", table / f"rows.{suffix}", "-c", "x,y", "--transform", "x=asinh:2", "--size", "30"]
    found = told(capsys, *words, "-o", table / "few.csv", "--assignments", table / "assignments.parquet")
    few, rows = pd.read_csv(table / "few.csv"), pd.read_csv(table / "rows.csv")
    assert found["size"] == len(few) == 30
    assert few.columns.tolist() == [*rows.columns, "weight"]
    at = few["count"].to_numpy()
    pd.testing.assert_frame_equal(few.drop(columns="weight"), rows.iloc[at].reset_index(drop=True))
    assert few["weight"].sum() == pytest.approx(400)
    assigned = pa.parquet.read_table(table / "assignments.parquet")["assignment"].to_numpy()
    assert sorted(set(assigned.tolist())) == sorted(at.tolist())


def test_rows_are_those_of_the_library(table, capsys):
    plain = ("-c", "x,y", "--scales", "none", "--size", "30", "-o", table / "few.csv")
    facts = told(capsys, "sketch", table / "rows.csv", *plain)
    assert any("dominated by column" in note and "--scales robust" in note for note in facts["notes"])
    rows = pd.read_csv(table / "rows.csv")
    small = sketch_rows(rows[["x", "y"]].to_numpy(), 30, kernel=Gaussian(), rng=0)
    assert pd.read_csv(table / "few.csv")["count"].tolist() == small.indices.tolist()


def test_coverage_and_calibration_are_those_of_the_library(table, capsys):
    X = pd.read_csv(table / "rows.csv")[["x", "y"]].to_numpy()
    words = ("sketch", table / "rows.csv", "-c", "x,y", "--size", "30", "-o", table / "few.csv")
    for more, options in (
        (["--coverage", "0.5"], {"coverage": 0.5}),
        (["--no-calibrate"], {"calibrate": False}),
        (["--calibrate", "--coverage", "0"], {"coverage": 0.0}),
    ):
        found = told(capsys, *words, *more)
        small = sketch_rows(X, 30, scales="robust", rng=0, **options)
        few = pd.read_csv(table / "few.csv")
        assert few["count"].tolist() == small.indices.tolist()
        np.testing.assert_allclose(few["weight"], small.weights * 400)
        assert found["radius"] == pytest.approx(small.radius)
        assert found["exact"] == list(small.exact)
    assert run(list(map(str, [*words, "--no-calibrate"]))) == 0
    assert "equal those of all rows" not in capsys.readouterr().out


def test_coverage_of_cells_is_that_of_the_library(stored, tmp_path, capsys):
    found = told(capsys, "sketch", stored, "--size", "50", "--coverage", "0.4", "-o", tmp_path / "small.h5ad")
    adata = cells()
    sketch(adata, 50, coverage=0.4)
    assert found["radius"] == pytest.approx(adata.uns["sketch"]["radius"])


def test_json_has_the_columns_before_and_after(tmp_path, capsys):
    rng = np.random.default_rng(0)
    heavy = pd.DataFrame({"x": rng.normal(size=3000), "y": rng.standard_t(1.5, 3000), "city": rng.choice(["a", "b"], 3000)})
    heavy.to_csv(tmp_path / "rows.csv", index=False)
    found = told(capsys, "sketch", tmp_path / "rows.csv", "-m", "50", "-o", tmp_path / "few.csv")
    small = sketch_rows(heavy, 50, rng=0)
    changes = pd.DataFrame(found["changes"])
    expected = pd.DataFrame(small.columns.to_dict())
    pd.testing.assert_frame_equal(changes, expected, check_dtype=False, check_exact=False)
    assert set(changes["column"]) == set(found["columns"])
    assert found["exact"] == list(small.exact)
    assert found["exceptions"] == [list(each) for each in small.exceptions]
    assert changes.loc[changes["statistic"] == "minimum", "random_rows"].isna().all()


def test_batches_of_rows_and_two_files(table, capsys):
    first, second = table / "rows.csv", table / "rows.parquet"
    told(capsys, "sketch", first, second, "-c", "x,y", "--sample-key", "batch", "-m", "40", "-o", table / "few.parquet")
    few = pa.parquet.read_table(table / "few.parquet").to_pandas()
    assert len(few) == 40
    assert few.groupby("batch")["weight"].sum().round(6).to_dict() == {"p": 600.0, "q": 200.0}


def odd_rows():
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "id": 2**60 + np.arange(300),
            "zip": [f"{i:05d}" for i in range(300)],
            "flag": np.arange(300) % 3 == 0,
            "note": np.where(np.arange(300) % 2, "NA", 'a, "b"'),
            "x": rng.normal(size=300).round(3),
            "y": rng.normal(size=300),
            "gap": np.where(np.arange(300) % 2, np.nan, 1.50),
            "day": pd.date_range("2020-01-01", periods=300, freq="h", unit="us"),
        }
    )


def test_text_is_written_as_it_was(tmp_path, capsys):
    odd_rows().to_csv(tmp_path / "rows.csv", index=False, float_format="%.17f")
    told(capsys, "sketch", tmp_path / "rows.csv", "-c", "x,y", "--size", "40", "-o", tmp_path / "few.csv")
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    few = [line.rpartition(",") for line in (tmp_path / "few.csv").read_text().splitlines()]
    assert few[0] == (lines[0], ",", "weight")
    assert len(few) == 41
    assert {line for line, _, _ in few} <= set(lines)
    assert sum(float(weight) for _, _, weight in few[1:]) == pytest.approx(300)


def test_text_becomes_numbers_where_nothing_is_lost_by_it(tmp_path, capsys):
    odd_rows().to_csv(tmp_path / "rows.csv", index=False)
    told(capsys, "sketch", tmp_path / "rows.csv", "-c", "x,y", "--size", "40", "-o", tmp_path / "few.parquet")
    few = pa.parquet.read_table(tmp_path / "few.parquet")
    kinds = {field.name: str(field.type) for field in few.schema}
    assert kinds == {
        "id": "int64",
        "zip": "string",
        "flag": "bool",
        "note": "string",
        "x": "double",
        "y": "double",
        "gap": "double",
        "day": "string",
        "weight": "double",
    }
    few = few.to_pandas()
    rows = odd_rows().iloc[few["zip"].astype(int)].reset_index(drop=True)
    pd.testing.assert_frame_equal(few.drop(columns=["day", "weight"]), rows.drop(columns="day"), check_dtype=False)


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_columns_keep_their_types(suffix, tmp_path, capsys):
    frame = odd_rows().assign(kind=pd.Categorical(np.where(np.arange(300) % 5, "p", "q")), many=[[i, i] for i in range(300)])
    pa.parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "rows.parquet", row_group_size=70)
    whole = pa.parquet.read_table(tmp_path / "rows.parquet")  # a file does not keep which of two types of texts categories had
    told(capsys, "sketch", tmp_path / "rows.parquet", "-c", "x,y", "--size", "40", "-o", tmp_path / f"few.{suffix}")
    few = (
        pa.parquet.read_table(tmp_path / "few.parquet") if suffix == "parquet" else pa.feather.read_table(tmp_path / "few.feather")
    )
    at = few["zip"].cast(pa.int64())
    assert few.drop_columns("weight").schema.types == whole.schema.types
    assert few.drop_columns("weight").to_pylist() == whole.take(at).to_pylist()
    told(capsys, "sketch", tmp_path / "rows.parquet", "-c", "x,y", "--size", "40", "-o", tmp_path / "few.csv")
    text = pd.read_csv(tmp_path / "few.csv", dtype=str)
    assert text["id"].tolist() == [str(2**60 + each) for each in at.to_pylist()]
    assert set(text["flag"]) == {"true", "false"}
    assert text["many"][0] == str([at[0].as_py()] * 2)


def test_decimal_commas_and_given_weights(tmp_path, capsys):
    frame = odd_rows()[["zip", "x", "y"]].assign(mass=0.5)
    frame.to_csv(tmp_path / "rows.csv", index=False, sep=";", decimal=",")
    words = ["sketch", tmp_path / "rows.csv", "-c", "x,y", "--weight-column", "mass", "--size", "40"]
    told(capsys, *words, "-o", tmp_path / "few.csv")
    few = pd.read_csv(tmp_path / "few.csv", dtype={"zip": str})
    assert few["x"].tolist() == frame["x"][few["zip"].astype(int)].tolist()
    assert few["weight"].sum() == pytest.approx(150)


def test_rows_with_missing_values_are_left_out(table, capsys):
    rows = pd.read_csv(table / "rows.csv")
    rows.loc[5, "x"] = np.nan
    rows.to_csv(table / "holes.csv", index=False)
    words = ["sketch", table / "holes.csv", "-c", "x,y", "--size", "30", "-o", table / "few.csv"]
    assert "missing" in refused(capsys, *words)
    found = told(capsys, *words, "--missing", "drop")
    assert any("1 row with missing values left out" in note for note in found["notes"])
    few = pd.read_csv(table / "few.csv")  # the rows of the file, with all their columns
    pd.testing.assert_frame_equal(few.drop(columns="weight"), rows.iloc[few["count"]].reset_index(drop=True))
    assert few["weight"].sum() == pytest.approx(399)
    assert "--assignments must number" in refused(capsys, *words, "--missing", "drop", "--assignments", table / "assignments.csv")
    assert not (table / "assignments.csv").exists()


@pytest.mark.slow
def test_cells_as_rows_come_with_obs(stored, tmp_path, capsys):
    told(capsys, "sketch", stored, "--rep", "X_pca", "--size", "40", "-o", tmp_path / "few.csv")
    few = pd.read_csv(tmp_path / "few.csv")
    assert {"X_pca-0", "kind", "donor", "score", "weight"} <= set(few)
    adata = cells()
    sketch(adata, 40)
    assert few["score"].to_numpy() == pytest.approx(adata.obs["score"][adata.obs["sketch"]].to_numpy())


@pytest.mark.fast_cases(5)
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--rep", "X_pcaa"], "did you mean 'obsm/X_pca'|did you mean 'X_pca'"),
        (["--size", "9999"], "size must be"),
        (["--size", "9", "--fraction", "0.1"], "--size and --fraction both"),
        (["--fraction", "2"], "--fraction must lie between 0 and 1"),
        (["--quotas", "fair"], "--quotas must be"),
        (["--sample-key", "doner"], "did you mean 'donor'"),
        (["--columns", "gene1"], "--columns is for rows"),
        (["--rep", "X_pca", "--key", "X"], "--rep and --key both"),
        (["--tol", "2"], "--tol must lie"),
        (["--coverage", "1.5"], "--coverage must lie between 0 and 1, got 1.5"),
        (["--coverage", "-0.1"], "--coverage must lie between 0 and 1"),
        (["--no-calibrate"], "--no-calibrate is for rows"),
    ],
    ids=str,
)
def test_what_is_refused(words, text, stored, tmp_path, capsys):
    assert re.search(text, refused(capsys, "sketch", stored, "-o", tmp_path / "small.h5ad", *words))
    assert not (tmp_path / "small.h5ad").exists()


def test_never_over_the_input_and_no_cells_from_tables(stored, table, tmp_path, capsys):
    assert "would be overwritten" in refused(capsys, "sketch", stored, "-o", stored)
    assert "cells of one .h5ad" in refused(capsys, "sketch", table / "rows.csv", "-o", tmp_path / "small.h5ad")
    assert "--rep is for .h5ad" in refused(capsys, "sketch", table / "rows.csv", "--rep", "X", "-o", tmp_path / "few.csv")
    assert "no such file" in refused(capsys, "sketch", tmp_path / "none.h5ad", "-o", tmp_path / "small.h5ad")


def test_two_outputs_are_two_files(stored, table, tmp_path, capsys):
    words = ["sketch", table / "rows.csv", "-c", "x,y", "--size", "30", "-o", tmp_path / "few.csv", "--assignments"]
    (tmp_path / "link.csv").symlink_to(tmp_path / "few.csv")
    for same in (tmp_path / "few.csv", tmp_path / "." / "few.csv", tmp_path / "link.csv"):
        assert "outputs must be different files" in refused(capsys, *words, same)
    assert not (tmp_path / "few.csv").exists()
    told(capsys, *words, tmp_path / "assignments.csv")


def test_weights_find_a_name_that_is_free(table, capsys):
    rows = pd.read_csv(table / "rows.csv")
    taken = rows.assign(weight=1, sketch_weight=2, _weight=3, weight_2=4)
    taken.to_csv(table / "taken.csv", index=False)
    found = told(capsys, "sketch", table / "taken.csv", "-c", "x,y", "--size", "30", "-o", table / "few.csv")
    assert found["weight"] == "weight_3"
    assert pd.read_csv(table / "few.csv")["weight_3"].sum() == pytest.approx(400)


@pytest.mark.slow
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("odd"), KeyError("odd"), TypeError("odd")])
def test_what_cannot_be_written_is_told_of_the_output(error, stored, tmp_path, capsys, monkeypatch):
    places = []

    def full(adata, path):
        places.append(path)
        raise error

    monkeypatch.setattr(anndata.AnnData, "write_h5ad", full)
    (tmp_path / "to").mkdir()
    text = refused(capsys, "sketch", stored, "--size", "20", "-o", tmp_path / "to" / "small.h5ad")
    assert "small.h5ad: cannot be written" in text
    assert "damaged" not in text
    assert (tmp_path / "to") in places[0].parents
    assert not list((tmp_path / "to").iterdir())


@pytest.mark.slow
def test_what_cannot_be_put_in_its_place_is_no_damage_of_the_input(stored, tmp_path, capsys, monkeypatch):
    def refuse(temporary, target):
        raise PermissionError(13, "Permission denied", str(target))

    monkeypatch.setattr(archive, "_move", refuse)
    run(
        [
            "sketch",
            str(stored),
            "--size",
            "20",
            "-o",
            str(tmp_path / "small.h5ad"),
            "--assignments",
            str(tmp_path / "assignments.csv"),
        ]
    )
    text = capsys.readouterr().err
    assert "small.h5ad" in text
    assert "damaged" not in text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["cells.h5ad"]


@pytest.mark.slow
def test_rows_of_every_format(tmp_path, capsys):
    for name, words in TABLES.items():
        source = write_all(tmp_path) / name if not (tmp_path / name).exists() else tmp_path / name
        found = told(capsys, "sketch", source, *words, "--size", "20", "-o", tmp_path / "few.csv")
        few = pd.read_csv(tmp_path / "few.csv")
        assert len(few) == found["size"] == 20, name
        assert few[found["weight"]].sum() == pytest.approx(2000), name


def test_cells_as_rows_need_an_array(stored, tmp_path, capsys):
    assert "--rep X_pca" in refused(capsys, "sketch", stored, "-o", tmp_path / "few.csv")


@pytest.mark.slow
def test_a_file_that_is_being_written_and_one_that_is_none(stored, tmp_path, capsys):
    held = f"import h5py; file = h5py.File({str(stored)!r}, 'r+'); print('open', flush=True); input()"
    other = subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"open\n"
    assert "in another program" in refused(capsys, "sketch", stored, "-o", tmp_path / "small.h5ad", "--size", "20")
    other.communicate(b"\n")
    (tmp_path / "cut.h5ad").write_bytes(stored.read_bytes()[:3000])
    assert "cut.h5ad" in refused(capsys, "sketch", tmp_path / "cut.h5ad", "-o", tmp_path / "small.h5ad")


def test_files_of_anndata_before_0_7(tmp_path, capsys):
    places = np.random.default_rng(1).normal(size=(120, 3))
    with h5py.File(tmp_path / "old.h5ad", "w") as file:
        file["X"] = np.zeros((120, 2), np.float32)
        obs = np.zeros(120, [("index", "S8"), ("kind", "i1")])
        obs["index"] = [f"c{i}".encode() for i in range(120)]
        obs["kind"] = np.arange(120) % 2
        file["obs"] = obs
        file["var"] = np.array([(b"g0",), (b"g1",)], [("index", "S8")])
        file["obsm"] = np.array([(row,) for row in places], [("X_pca", "f8", 3)])
        file["uns/kind_categories"] = np.array([b"odd", b"even"])
    assert run(["sketch", str(tmp_path / "old.h5ad"), "--size", "20", "-o", str(tmp_path / "small.h5ad"), "--json"]) == 0
    small = anndata.read_h5ad(tmp_path / "small.h5ad")
    assert small.n_obs == 20
    assert set(small.obs["kind"]) <= {"odd", "even"}
