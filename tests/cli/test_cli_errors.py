"""The errors that `reduset compress` prints: at the bandwidth and at the median distance, in memory and as a stream."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from reduset import Model
from reduset.cli.entry import run

LINES = re.compile(
    r"^  error       (?P<error>[\d.e-]+) %  \(95 % CI .*\), at bandwidth (?P<bandwidth>[\d.]+) \(Gaussian.*\)\n"
    r"^              (?P<median>[\d.e-]+) % at the median distance, (?P<distance>[\d.]+)\n",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    csv.write_csv(pa.table({name: X[:, k] for k, name in enumerate("abc")}), path)
    return path


def printed(capsys, *arguments):
    assert run([*map(str, arguments)]) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_a_stream_and_memory_print_errors_at_the_same_two_scales(rows, tmp_path, capsys):
    same = ["compress", rows, "--size", 200, "--bandwidth", 0.9, "-o", tmp_path / "small.npz"]
    found = []
    for options in ([], ["--stream"]):
        text = printed(capsys, *same, *options)
        known = {name: float(value) for name, value in LINES.search(text).groupdict().items()}
        found.append(known)
        facts = json.loads(printed(capsys, *same, *options, "--json"))["near_median"]
        assert facts["bandwidth"] == facts["distance"] == pytest.approx(known["distance"], rel=0.01)
        assert 100 * facts["relative_error"] == pytest.approx(known["median"], rel=0.01)
    memory, stream = found
    assert memory["bandwidth"] == stream["bandwidth"] == 0.9
    assert stream["distance"] == pytest.approx(memory["distance"], rel=0.02)
    for scale in ("error", "median"):
        assert stream[scale] == pytest.approx(memory[scale], rel=0.6)


@pytest.mark.slow
def test_info_shows_the_same_errors_as_compress(rows, tmp_path, capsys):
    model = tmp_path / "small.npz"
    text = printed(capsys, "compress", rows, "--stream", "--size", 100, "--bandwidth", 0.9, "-o", model)
    known = LINES.search(text)
    shown = printed(capsys, "info", model)
    assert f"error       {known['error']} %" in shown
    assert f"              {known['median']} % at the median distance, {known['distance']}\n" in shown
    assert json.loads(printed(capsys, "info", model, "--json"))["near_median"]["distance"] == Model.load(model).near_median.distance


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("options", "better"),
    [
        (["--stream", "--weights", "clipped"], "omit --weights"),
        (["--select", "kmeans", "--weights", "simplex_projection"], "omit --select and --weights"),
    ],
    ids=["stream", "memory"],
)
def test_a_result_above_the_error_of_random_rows_has_a_note_with_a_better_call(rows, tmp_path, capsys, options, better):
    arguments = ["compress", rows, *options, "--size", 300, "--bandwidth", 1, "--scales", "none", "-o", tmp_path / "small.npz"]
    assert run([*map(str, arguments)]) == 0
    told = capsys.readouterr()
    note = next(line for line in told.out.splitlines() if "that of" in line and "random rows, " in line)
    assert re.match(r"  note        the error of .* % at bandwidth \d is above that of \d+ random rows, .* %; ", note)
    assert better in note
    assert "use reduset sketch --size" in note
    assert "above that of" not in told.err  # once
    assert any("random rows" in each for each in Model.load(tmp_path / "small.npz").about["notes"])
