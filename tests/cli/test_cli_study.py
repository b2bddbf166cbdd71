"""`reduset study`: a lab's folder and tables in, populations that differ out; and what is refused before any work."""

from __future__ import annotations

import json
import shutil
import warnings

import numpy as np
import pytest

from reduset import io
from reduset.cli.entry import run
from reduset.cytometry.cleaning import STEPS

MARKERS = ("CD3", "CD4", "CD8")
PLACES = np.array([[4.0, 4.0, 0.3], [4.0, 0.3, 4.0], [0.3, 0.3, 0.3]])


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Twelve samples of six patients, in which one of three populations doubles."""
    folder, rng = tmp_path_factory.mktemp("lab"), np.random.default_rng(0)
    (folder / "files").mkdir()
    rows = ["file_name,sample_id,condition,patient_id,run,control,age"]
    for patient in range(6):
        for condition, share in (("ill", 0.2), ("well", 0.1)):
            kind = rng.choice(3, 600, p=[0.6, share, 0.4 - share])
            cells = np.sinh(PLACES[kind] + rng.normal(0, 0.3, (600, 3))) * 150
            io.write_fcs(folder / "files" / f"p{patient}{condition}.fcs", cells, ["FL1-A", "FL2-A", "FL3-A"], MARKERS)
            rows.append(f"p{patient}{condition}.fcs,p{patient} {condition},{condition},p{patient},r{patient % 2},no,{30 + patient}")
    (folder / "samples.csv").write_text("\n".join(rows))
    (folder / "panel.csv").write_text("fcs_colname,antigen,marker_class\nFL1-A,CD3,type\nFL2-A,CD4,type\nFL3-A,CD8,type\n")
    return folder


@pytest.fixture
def lab(made, tmp_path):
    """The same, to be spoiled."""
    return shutil.copytree(made, tmp_path / "lab")


def study(lab, *more):
    tables = ["--panel", str(lab / "panel.csv"), "--samples", str(lab / "samples.csv")]
    return ["study", str(lab / "files"), *tables, "--atoms", "60", *map(str, more)]


def told(capsys):
    return json.loads(capsys.readouterr().out)


def test_what_differs_is_found_and_written_in_every_way(made, tmp_path, capsys):
    out = {name: tmp_path / name for name in ("cohort.html", "cohort.h5ad", "cells.h5ad", "tables", "cells.fcs")}
    arguments = ["--test", "condition", "--block", "patient_id", "--batch", "run", "--covariate", "age", "--reference", "well"]
    outputs = ["--report", out["cohort.html"], "-o", out["cohort.h5ad"], "--cells", out["cells.h5ad"]]
    assert run(study(made, *arguments, *outputs, "--tables", out["tables"], "--fcs", out["cells.fcs"])) == 0
    words = capsys.readouterr().out
    assert "12 samples" in words
    assert "populations differ, at a false discovery rate of 5%" in words
    assert "6 well against 6 ill, within blocks" in words
    assert "CD8+" in words
    assert "-fold" in words
    assert all(path.exists() for path in out.values())
    assert {"differences.csv", "shares.csv", "cleaning.csv"} <= {path.name for path in out["tables"].iterdir()}
    page = out["cohort.html"].read_text(encoding="utf-8")
    assert "p0 ill" in page


def test_machines_get_one_object(made, capsys):
    assert run(study(made, "--test", "condition", "--json")) == 0
    found = told(capsys)
    assert found["samples"][0] == "p0 ill"
    assert np.array(found["shares"]).sum(axis=1) == pytest.approx(1)
    surest = found["differences"][0]
    assert surest["found"]
    assert surest["log2 fold change well"] == pytest.approx(-1, abs=0.25)
    assert set(found["cleaning"]) == {"events", *STEPS}


@pytest.mark.parametrize(
    ("command", "option"),
    [("cohort", "--panel"), ("cohort", "--test"), ("cohort", "--block"), ("study", "--distance"), ("study", "--groups")],
)
def test_a_map_of_samples_and_a_comparison_of_groups_are_two_commands(command, option, made, capsys):
    assert run([command, str(made / "files"), option, "x"]) == 2
    assert f"No such option: {option}" in capsys.readouterr().err


def test_the_files_of_a_study_can_also_be_mapped(made, tmp_path):
    files = sorted(map(str, (made / "files").iterdir()))[:4]
    assert run(["cohort", *files, "--size", "9", "-o", str(tmp_path / "distances.csv"), "-q"]) == 0
    assert (tmp_path / "distances.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--test", "nothing"], "has no column 'nothing'; it has"),
        (["--test", "sample_id"], "has a single sample in"),
        (["--test", "condition", "--block", "sample_id"], "no block has samples of two groups of condition"),
        (["--gate-name", "Cells"], "--gate-name Cells needs --gate"),
        (["--clean", "soap"], "clean must be one of"),
        (["--test", "condition", "--fdr", "7"], "fdr must"),
        (["--test", "condition", "--reference", "healthy"], "the reference must be a group of condition, got 'healthy'"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(made, arguments, words, capsys):
    assert run(study(made, *arguments, "--json")) == 2
    said = capsys.readouterr().err.strip()
    assert words in said
    assert len(said.splitlines()) == 1


def test_a_study_that_would_be_lost_is_refused(made, capsys):
    assert run(study(made, "--test", "condition")) == 2
    assert "no output is set: give --report" in capsys.readouterr().err


def test_tables_are_not_written_among_the_files(made, capsys):
    assert run(study(made, "--tables", made / "files")) == 2
    assert "which is an input" in capsys.readouterr().err


def test_a_file_cut_short_is_refused_or_left_out_and_named(lab, tmp_path, capsys):
    broken = lab / "files" / "p0ill.fcs"
    broken.write_bytes(broken.read_bytes()[:3000])
    assert run(study(lab, "--test", "condition", "--json")) == 2
    assert "p0ill.fcs: cut short" in capsys.readouterr().err
    page = tmp_path / "cohort.html"
    assert run(study(lab, "--test", "condition", "--keep-going", "--report", page, "--json")) == 0
    assert "cut short" in told(capsys)["left_out"]["p0 ill"]
    assert "p0 ill" in page.read_text(encoding="utf-8")


def test_a_sample_of_the_table_without_a_file_is_refused_or_left_out(lab, capsys):
    (lab / "files" / "p0ill.fcs").unlink()
    assert run(study(lab, "--test", "condition", "--json")) == 2
    assert "omit the sample (--keep-going)" in capsys.readouterr().err
    assert run(study(lab, "--test", "condition", "--keep-going", "--json")) == 0
    assert "p0 ill" in told(capsys)["left_out"]


def test_a_file_that_the_table_does_not_name_is_left_out_with_a_note(lab, capsys):
    shutil.copy(lab / "files" / "p0ill.fcs", lab / "files" / "other.fcs")
    assert run(study(lab, "--json")) == 0
    found = told(capsys)
    assert len(found["samples"]) == 12
    assert any("other.fcs" in note for note in found["notes"])


def test_condition_that_is_batch_is_warned_of(lab, capsys):
    lines = (lab / "samples.csv").read_text().splitlines()[1:]
    rows = [",".join([*line.split(",")[:4], "first" if ",ill," in line else "second"]) for line in lines]
    (lab / "samples.csv").write_text("\n".join(["file_name,sample_id,condition,patient_id,run", *rows]))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run(study(lab, "--test", "condition", "--batch", "run", "--json")) == 0
    out = capsys.readouterr()
    assert "condition and run are confounded" in out.err
    assert json.loads(out.out)["batches"]["confounded"] is True


def test_duplicate_sample_ids_are_refused(lab, capsys):
    text = (lab / "samples.csv").read_text().replace("p1 ill", "p0 ill")
    (lab / "samples.csv").write_text(text)
    assert run(study(lab, "--json")) == 2
    assert "p0 ill" in capsys.readouterr().err
