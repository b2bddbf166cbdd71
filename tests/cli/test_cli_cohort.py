"""`reduset cohort` with the files people have: numbered names, missing values, a sample called sample."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv
import pytest

from reduset import io
from reduset.cli.entry import run


@pytest.fixture
def bags(tmp_path):
    """Three files, one of them with two rows that lack a value."""
    rng, paths = np.random.default_rng(0), []
    for name in ("001", "002", "sample"):
        paths.append(str(tmp_path / f"{name}.csv"))
        io.write_rows(paths[-1], ["x", "y"], rng.normal(size=(60, 2)))
    with open(paths[-1], "a") as file:
        file.write("1,\n,2\n")
    return paths


def test_rows_left_out_are_counted_and_samples_may_have_any_name(bags, tmp_path, capsys):
    out = str(tmp_path / "distances.csv")
    assert run(["cohort", *bags, "--missing", "drop", "--size", "9", "-o", out, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["notes"] == ["sample: 2 rows with missing values left out"]
    assert pyarrow.csv.read_csv(out).column_names == ["sample name", "001", "002", "sample"]


def test_the_way_out_is_an_option_of_the_command(bags, capsys):
    assert run(["cohort", *bags, "--size", "9", "--json"]) == 2
    assert "leave such rows out (--missing drop)" in capsys.readouterr().err


def test_numbered_samples_are_found_in_the_table_of_groups_and_those_that_are_not_are_named(bags, tmp_path, capsys):
    (tmp_path / "groups.csv").write_text("sample,group\n001,ill\n")
    assert run(["cohort", *bags[:2], "--size", "9", "--groups", str(tmp_path / "groups.csv"), "--json"]) == 0
    assert "has no group for 002" in capsys.readouterr().err


def test_one_sample_is_no_cohort(bags, capsys):
    assert run(["cohort", bags[0], "--json"]) == 2
    assert "a cohort needs at least 2 samples, got 001" in capsys.readouterr().err


def test_rows_without_a_value_are_counted_by_other_commands_too(bags, tmp_path, capsys):
    model, out = str(tmp_path / "small.npz"), str(tmp_path / "scores.csv")
    assert run(["compress", bags[0], "--size", "5", "-q", "-o", model]) == 0
    assert run(["evaluate", model, bags[2], "--missing", "drop", "-o", out]) == 0
    assert "2 rows with missing values have no value in" in capsys.readouterr().out
    assert run(["distance", model, bags[2], "--missing", "drop"]) == 0
    assert "2 rows with missing values left out" in capsys.readouterr().out


@pytest.mark.slow
def test_samples_are_compared_by_divergence_on_components_or_atoms(bags, tmp_path, capsys):
    page = tmp_path / "r.html"
    found = {}
    for pieces in ("components", "atoms"):
        words = ["--distance", "kl", "--pieces", pieces, "--size", "9", "--layout", "mds", "--report", str(page)]
        assert run(["cohort", *bags[:2], *words]) == 0
        told = capsys.readouterr().out
        assert f"; 9 {pieces} per sample, error at most " in told
        assert f"9 {pieces} each" in page.read_text()
        assert run(["cohort", *bags[:2], *words[:-2], "--json"]) == 0
        found[pieces] = json.loads(capsys.readouterr().out)["distances"][0][1]
    assert found["components"] > 0
    assert found["components"] != found["atoms"]
    assert run(["cohort", *bags[:2], *words[:4], "--size", "9", "--json", "--bandwidth", "iqr", "--layout", "mds"]) == 0
    assert json.loads(capsys.readouterr().out)["distances"][0][1] == found["atoms"]  # the rule that is taken if none is given


def test_pieces_that_do_not_go_with_the_distance_are_refused(bags, capsys):
    assert run(["cohort", *bags[:2], "--pieces", "components", "--json"]) == 2
    assert "--pieces components are for distance='kl', got 'mmd'" in capsys.readouterr().err
    assert run(["cohort", *bags[:2], "--distance", "l3", "--json"]) == 2
    assert "distance must be" in capsys.readouterr().err
