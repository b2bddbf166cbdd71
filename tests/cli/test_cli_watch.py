"""`reduset watch`: files in the order in which people count, an alarm with since when, and a checkpoint to go on by."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest

from reduset import io
from reduset.cli.app import DRIFT
from reduset.cli.entry import run
from report_cases import HOSTILE

pytestmark = pytest.mark.slow

NAMES = ["x", HOSTILE]
ROWS = 600
BEGAN = ROWS + 120  # in the second of four files


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A reference that was kept, and four files of which the second changes at its row 120; part-10 is the last of them."""
    folder = tmp_path_factory.mktemp("watch")
    rng = np.random.default_rng(0)
    io.write_rows(folder / "before.csv", NAMES, rng.normal(size=(3000, 2)))
    (folder / "in").mkdir()
    (folder / "quiet").mkdir()
    for k, name in enumerate(("part-1", "part-2", "part-3", "part-10")):
        rows = rng.normal(size=(ROWS, 2))
        io.write_rows(folder / "quiet" / f"{name}.csv", NAMES, rows)
        rows[(120 if k == 1 else 0) if k else ROWS :] += 2.0
        io.write_rows(folder / "in" / f"{name}.csv", NAMES[::-1], rows[:, ::-1])
    return folder


def watch(*words, ert=4000):
    return run(["watch", *map(str, words), "--ert", str(ert)])


def told(capsys):
    return json.loads(capsys.readouterr().out)


def test_the_first_alarm_is_the_end_and_says_since_when(folder, capsys):
    assert watch(folder / "before.csv", folder / "in") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["part-1.csv", "part-2.csv"]
    assert "ALARM at row" in lines[1]
    assert lines[2].startswith("Drift detected since row")
    assert "of " + str(folder / "in" / "part-2.csv") in lines[2]
    assert watch(folder / "before.csv", folder / "in", "--json", "--fail") == DRIFT
    found = told(capsys)
    row, low, high = found["alarms"][0]["since"]
    assert low <= BEGAN <= high
    assert abs(row - BEGAN) < 20
    assert found["alarms"][0]["where"] == {"file": str(folder / "in" / "part-2.csv"), "row": row - ROWS}
    assert [each["rows"] for each in found["files"]] == [ROWS, ROWS]


def test_a_watch_may_go_on_and_goes_through_names_as_people_count(folder, capsys):
    files = [folder / "in" / f"part-{k}.csv" for k in (10, 3, 1, 2)]
    assert watch(folder / "before.csv", *files, "--json", "--go-on") == 0
    found = told(capsys)
    assert [os.path.basename(each["name"]) for each in found["files"]] == ["part-1.csv", "part-2.csv", "part-3.csv", "part-10.csv"]
    assert [each["first"] for each in found["files"]] == [0, ROWS, 2 * ROWS, 3 * ROWS]
    assert [each["row"] // ROWS for each in found["alarms"]] == [1, 2, 3]  # each file after an alarm begins anew
    assert found["rows"] == 4 * ROWS


def test_rows_may_be_thinned(folder, capsys):
    assert watch(folder / "before.csv", folder / "in", "--json", "--thin", "5") == 0
    found = told(capsys)
    assert found["alarms"][0]["row"] % 5 == 0
    assert BEGAN < found["alarms"][0]["row"] < BEGAN + 150


def test_no_drift_is_no_alarm(folder, tmp_path, capsys):
    page = tmp_path / "watch.html"
    assert watch(folder / "before.csv", folder / "quiet", "--fail", "--report", page, ert=10_000) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[4] == "No drift detected in 2,400 rows (one false alarm in 10,000 rows on average)"
    assert "No drift" in page.read_text(encoding="utf-8")


def test_the_checkpoint_goes_on_with_the_files_that_came_since(folder, tmp_path, capsys):
    state, days = tmp_path / "state.npz", tmp_path / "days"
    days.mkdir()
    words = [folder / "before.csv", days, "--checkpoint", state, "--json"]
    shutil.copy2(folder / "in" / "part-1.csv", days)
    assert watch(*words) == 0
    assert [os.path.basename(each["name"]) for each in told(capsys)["files"]] == ["part-1.csv"]
    assert watch(*words) == 0  # nothing new
    assert told(capsys)["rows"] == ROWS
    shutil.copy2(folder / "in" / "part-2.csv", days)
    assert watch(*words) == 0
    after = told(capsys)
    assert watch(folder / "before.csv", folder / "in", "--json") == 0
    whole = told(capsys)
    assert after["alarms"][0]["since"] == whole["alarms"][0]["since"]
    assert [each["highest"] for each in after["files"]] == pytest.approx([each["highest"] for each in whole["files"]])
    shutil.copy2(folder / "in" / "part-3.csv", days)
    assert watch(*words, "--fail") == DRIFT  # it was noticed before
    assert told(capsys)["rows"] == after["rows"]
    assert watch(*words, "--go-on") == 0
    assert [each["row"] // ROWS for each in told(capsys)["alarms"]] == [1, 2]


def test_a_checkpoint_of_another_run_or_of_files_that_changed_is_refused(folder, tmp_path, capsys):
    state, days = tmp_path / "state.npz", tmp_path / "days"
    days.mkdir()
    shutil.copy2(folder / "quiet" / "part-1.csv", days)
    words = [folder / "before.csv", days, "--checkpoint", state, "-q"]
    assert watch(*words) == 0
    assert watch(*words, "--seed", "4") == 2
    assert "is the checkpoint of another run: --seed was 0, and is now 4" in capsys.readouterr().err
    shutil.copy2(folder / "quiet" / "part-2.csv", days / "part-1.csv")
    assert watch(*words) == 2
    assert "was changed after it was watched" in capsys.readouterr().err
    assert run(["drift", str(folder / "before.csv"), str(folder / "before.csv"), "-o", str(state), "-q"]) == 0
    assert watch(*words) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert watch(folder / "before.csv", days, "--checkpoint", days / "state.npz") == 2
    assert "which is an input" in capsys.readouterr().err


def test_a_reference_that_was_kept_watches_by_its_own_transform(folder, tmp_path, capsys):
    kept = tmp_path / "kept.npz"
    words = ["--transform", "asinh:1", "--no-rows", "-o", str(kept), "-q"]
    assert run(["drift", str(folder / "before.csv"), str(folder / "quiet" / "part-1.csv"), *words]) == 0
    assert watch(kept, folder / "quiet", "--json") == 0
    assert not told(capsys)["alarm"]
    assert watch(kept, folder / "quiet", "--transform", "log") == 2
    assert "--transform is determined by" in capsys.readouterr().err
