"""`reduset drift`: a reference of any kind, new rows read like it, and a code that scripts can act on."""

from __future__ import annotations

import json

import numpy as np
import pytest

from drift_cases import changed, rows
from reduset import io
from reduset.cli.app import DRIFT
from reduset.cli.entry import run
from report_cases import HOSTILE

NAMES = ["height", HOSTILE, "few", "c3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A reference, rows like it in another order of columns with one more, rows that changed, and rows without names."""
    folder = tmp_path_factory.mktemp("drift")
    old, same, new = rows(), rows(seed=5), changed()
    io.write_rows(folder / "before.csv", NAMES, old)
    io.write_rows(folder / "same.csv", ["more", *NAMES[::-1]], np.column_stack([np.arange(600) % 7, same[:, ::-1]]))
    io.write_rows(folder / "today.parquet", NAMES, new)
    io.write_rows(folder / "other.csv", ["height", "width"], old[:, :2])
    np.save(folder / "before.npy", old)
    np.save(folder / "today.npy", new)
    return folder


def found(capsys, *words):
    assert run(["drift", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_columns_are_found_by_name_and_others_are_left_out(folder, capsys):
    told = found(capsys, folder / "before.csv", folder / "same.csv")
    assert told["drift"] is False
    assert told["p_value"] > told["alpha"] == 0.05
    assert {each["name"] for each in told["columns"]} == set(NAMES)
    assert told["detectable"]["share"] > 0


def test_drift_is_told_with_its_columns_and_places(folder, capsys):
    told = found(capsys, folder / "before.csv", folder / "today.parquet", "--alpha", "0.01")
    assert told["drift"] is True
    assert told["alpha"] == 0.01
    assert told["distance"] > told["null_quantile"]
    assert told["interval"][0] <= told["distance"] <= told["interval"][1]
    assert {each["name"] for each in told["columns"] if each["p_value"] < 0.01} == {"height", HOSTILE, "few"}
    region = told["regions"][0]
    assert abs(region["centre"]["height"] - 1e5 - 3) < 0.3
    assert region["change"] == pytest.approx(region["after"] - region["before"])
    assert run(["drift", str(folder / "before.csv"), str(folder / "today.parquet")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Drift detected (p ≤ 0.001): 600 new rows")
    assert "written" not in out


@pytest.mark.slow
@pytest.mark.parametrize(("today", "code"), [("today.parquet", DRIFT), ("same.csv", 0)])
def test_drift_ends_with_its_own_code_where_that_is_asked_for(today, code, folder, capsys):
    assert run(["drift", str(folder / "before.csv"), str(folder / today), "--fail", "-q"]) == code
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_rows_without_names_are_compared_by_place(folder, capsys):
    both = found(capsys, folder / "before.npy", folder / "today.npy")
    assert found(capsys, folder / "before.csv", folder / "today.npy")["p_value"] == both["p_value"]
    assert found(capsys, folder / "before.npy", folder / "today.parquet")["drift"]
    assert [each["name"] for each in both["columns"]][-1] == "x4"


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer(folder, capsys):
    first, second = (found(capsys, folder / "before.csv", folder / "same.csv", "--seed", "3") for _ in range(2))
    assert first == second


@pytest.mark.slow
def test_columns_and_transforms_are_those_of_both_sides(folder, capsys):
    words = [folder / "before.csv", folder / "today.parquet", "--columns", "few,height", "--transform", "height=asinh:1"]
    told = found(capsys, *words)
    assert {each["name"] for each in told["columns"]} == {"few", "height"}
    height = next(each for each in told["columns"] if each["name"] == "height")
    assert height["median"][0] == pytest.approx(np.arcsinh(1e5), rel=1e-3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["before.csv", "other.csv"], "no column"),
        (["before.npy", "other.csv"], "must have the 4 columns of the reference, got 2"),
        (["before.csv", "today.parquet", "--alpha", "5"], "--alpha must lie between 0 and 1, got 5"),
        (["before.csv", "today.parquet", "--scales", "1,2,3,4"], "--scales must be robust, standard or none"),
        (["before.csv", "nowhere.csv"], "no such file"),
        (["before.csv", "today.parquet", "--report", "page.pdf"], "must end in .htm, .html"),
        (["before.csv", "today.parquet", "-o", "reference.csv"], "must end in .npz"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(words, message, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert run(["drift", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_file_of_ours_that_is_no_reference_names_the_way_out(folder, tmp_path, capsys):
    from reduset import Gaussian, KernelMean

    KernelMean.from_samples(rows(), Gaussian(1.0)).save(tmp_path / "mean.npz")
    assert run(["drift", str(tmp_path / "mean.npz"), str(folder / "today.parquet")]) == 2
    error = capsys.readouterr().err
    assert "holds reduset.KernelMean, which is not a reference; give rows, a model of `reduset compress`" in error


@pytest.mark.slow
def test_columns_of_text_that_are_left_out_are_told(tmp_path, capsys):
    for name, letters in (("one", "uv"), ("two", "uw")):
        lines = "".join(f"{letters[k % 2]},{np.sin(k)}\n" for k in range(200))
        (tmp_path / f"{name}.csv").write_text("a,b\n" + lines)
    notes = found(capsys, tmp_path / "one.csv", tmp_path / "two.csv")["notes"]
    assert any("without numbers are omitted: a" in text for text in notes)


@pytest.mark.slow
def test_a_report_is_written_beside_the_answer(folder, tmp_path, capsys):
    page = tmp_path / "drift.html"
    assert run(["drift", str(folder / "before.csv"), str(folder / "today.parquet"), "--report", str(page)]) == 0
    assert f"written     {page}" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert "today.parquet" in text
    assert HOSTILE not in text


@pytest.mark.slow
def test_a_reference_is_kept_and_gives_the_answer_of_its_rows(folder, tmp_path, capsys):
    kept = tmp_path / "reference.npz"
    words = ["--columns", "height,few", "--transform", "height=asinh:2", "--alpha", "0.02"]
    first = found(capsys, folder / "before.csv", folder / "today.parquet", "-o", kept, *words)
    assert first["written"] == [str(kept)]
    again = found(capsys, kept, folder / "today.parquet")  # read by the columns and the transform that it was made with
    assert again | {"written": first["written"]} == first
    assert found(capsys, kept, folder / "today.parquet", "--alpha", "0.3")["alpha"] == 0.3
    for words, message in (
        (["--columns", "height"], "--columns is determined by"),
        (["--transform", "log"], "--transform is determined by"),
        (["--scales", "none"], "--scales is determined by"),
        (["--no-rows"], "--no-rows is determined by"),
        (["-o", str(tmp_path / "again.npz")], "is a reference that was kept already"),
    ):
        assert run(["drift", str(kept), str(folder / "today.parquet"), *words]) == 2
        assert message in capsys.readouterr().err
    assert run(["drift", str(kept), str(folder / "other.csv")]) == 2
    assert "no column 'few'; it has height, width" in capsys.readouterr().err


def test_a_reference_without_rows_has_no_sample_of_them(folder, tmp_path, capsys):
    kept = tmp_path / "reference.npz"
    told = found(capsys, folder / "before.csv", folder / "today.parquet", "-o", kept, "--no-rows")
    assert told["drift"]
    with np.load(kept) as arrays:
        assert len(arrays["sample"]) == 0
        assert "rows" not in arrays


@pytest.mark.slow
def test_a_reference_that_was_kept_in_python_is_read_as_asked(folder, tmp_path, capsys):
    from reduset.drift import DriftTest

    kept = tmp_path / "python.npz"
    DriftTest(random_state=0).fit(np.arcsinh(rows()[:, [0, 2]])).save(kept)
    told = found(capsys, kept, folder / "same.csv", "--columns", "height,few", "--transform", "asinh:1")
    assert not told["drift"]
    assert {each["name"] for each in told["columns"]} == {"x1", "x2"}


@pytest.mark.slow
@pytest.mark.parametrize("pieces", ["atoms", "components"])
def test_a_model_is_a_reference(pieces, folder, tmp_path, capsys):
    model = tmp_path / "small.npz"
    words = ["--pieces", pieces, "--columns", "height,c3", "--weights", "simplex", "-q"]
    size = ["--size", "40" if pieces == "components" else "150"]
    assert run(["compress", str(folder / "before.csv"), *words, *size, "-o", str(model)]) == 0
    told = found(capsys, model, folder / "today.parquet")
    assert {each["name"] for each in told["columns"]} == {"height", "c3"}
    assert not found(capsys, model, folder / "same.csv")["drift"]
    assert run(["drift", str(model), str(folder / "same.csv"), "--scales", "none"]) == 2
    assert "--scales is determined by" in capsys.readouterr().err
