"""`reduset sketch` and `reduset compress` transform channels of FCS files by default; rows are written as they are in the file."""

import json

import numpy as np
import pandas as pd
import pytest

from lab_files import CHANNELS, lab_events, write_sample
from reduset import io
from reduset import sketch as sketch_rows
from reduset.cli.entry import run
from reduset.model import Model


@pytest.fixture
def events(tmp_path):
    return write_sample(tmp_path / "events.fcs", lab_events(900))


def told(capsys, *words):
    assert run([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_distances_of_a_sketch_are_of_transformed_values_and_rows_are_raw(events, tmp_path, capsys):
    found = told(capsys, "sketch", events, "-m", "60", "-o", tmp_path / "few.csv")
    table = io.read(events, transform="auto")
    small = sketch_rows(table.values, 60, rng=0)
    few = pd.read_csv(tmp_path / "few.csv")
    assert few.columns.tolist() == [*CHANNELS, "weight"]
    np.testing.assert_allclose(few[list(CHANNELS)].to_numpy(), lab_events(900)[small.indices], rtol=1e-6)  # the same rows, raw
    np.testing.assert_allclose(few["weight"], small.weights * 900)
    assert found["columns"] == ["FITC-A", "PE-A", "APC-A"]
    assert found["scales"] is None  # one unit: none is divided by its spread
    assert found["transform"] == table.scales
    assert any(note.startswith("FCS: logicle transform") and "3 fluorescence channels" in note for note in found["notes"])
    assert any("omitted by default, time or scatter: Time, FSC-A, FSC-H" in note for note in found["notes"])
    assert any("rows are written with the values of the file" in note for note in found["notes"])


def test_none_switches_it_off(events, tmp_path, capsys):
    found = told(capsys, "sketch", events, "-m", "60", "--transform", "none", "-o", tmp_path / "few.csv")
    assert found["transform"] == {}
    assert not any("logicle" in note or "transformed" in note for note in found["notes"])
    assert found["scales"] is not None
    told(capsys, "compress", events, "-m", "20", "--transform", "none", "-o", tmp_path / "small.npz")
    assert Model.load(tmp_path / "small.npz").about["transform"] is None


def test_a_channel_that_is_named_has_its_own_and_the_others_theirs(events, tmp_path, capsys):
    found = told(capsys, "sketch", events, "-m", "60", "--transform", "PE-A=asinh:150", "-o", tmp_path / "few.csv")
    assert found["transform"] == io.read(events, transform="auto").scales | {"PE-A": "asinh:150"}


def test_a_model_keeps_the_scales_for_other_files(events, tmp_path, capsys):
    found = told(capsys, "compress", events, "-m", "20", "-o", tmp_path / "small.npz")
    model, scales = Model.load(tmp_path / "small.npz"), io.read(events, transform="auto").scales
    assert model.about["transform"] == scales
    assert any(note.startswith("FCS: logicle transform") for note in found["notes"])
    assert np.abs(model.mean.atoms).max() < 3
    write_sample(tmp_path / "other.fcs", 3 * lab_events(80, seed=5))  # by itself it would have other scales
    assert (
        run(["evaluate", str(tmp_path / "small.npz"), str(tmp_path / "other.fcs"), "-o", str(tmp_path / "values.csv"), "-q"]) == 0
    )
    expected = model.mean.log_density(io.read(tmp_path / "other.fcs", transform=scales).values)
    np.testing.assert_allclose(io.read(tmp_path / "values.csv").values[:, -1], expected, rtol=1e-6)


def test_a_stream_has_the_same_scales(events, tmp_path, capsys):
    told(capsys, "compress", events, "--stream", "-m", "20", "-o", tmp_path / "small.npz")
    assert Model.load(tmp_path / "small.npz").about["transform"] == io.read(events, transform="auto").scales


def test_people_read_it_too(events, tmp_path, capsys):
    assert run(["sketch", str(events), "-m", "60", "-o", str(tmp_path / "few.csv")]) == 0
    text = capsys.readouterr().out
    assert "FCS: logicle transform, estimated from all events, of 3 fluorescence channels; switched off by transform none" in text
