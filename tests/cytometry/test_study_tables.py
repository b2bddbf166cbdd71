"""Tables of a study: what each holds, that numbers and texts survive, and that all appear or none."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from reduset.cytometry import CohortStudy, SampleSet, write_tables
from reduset.cytometry.writing import as_csv
from reduset.io import FileError
from study_cases import CELLS, SAMPLES, plain_study, sample_cells, study_in_memory, study_of_files, write_lab

ALWAYS = ["populations", "shares", "counts", "intervals", "map", "distances", "errors"]


ALL_DIGITS = {} if int(pd.__version__.split(".")[0]) >= 3 else {"float_precision": "round_trip"}  # from pandas 3 on it always is


def tables(folder, study):
    return {path.stem: pd.read_csv(path, **ALL_DIGITS) for path in write_tables(folder, study)}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return tables(tmp_path_factory.mktemp("out"), study_in_memory())


def test_there_is_a_table_for_what_there_is(found, tmp_path):
    assert list(found) == [*ALWAYS, "differences", "clusters", "whole", "batches", "left_out"]
    assert list(tables(tmp_path / "new", plain_study())) == ALWAYS
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(f"{name}.csv" for name in ALWAYS)


def test_shares_and_counts_have_all_digits_beside_the_table_of_samples(found):
    study = study_in_memory()
    names = list(study.populations_.names)
    np.testing.assert_array_equal(found["shares"][names], study.populations_.shares)
    np.testing.assert_array_equal(found["counts"][names], study.populations_.counts)
    np.testing.assert_array_equal(found["counts"][names].sum(axis=1), found["counts"]["cells"])
    assert list(found["shares"])[:3] == ["sample_id", "condition", "run"]
    assert found["shares"]["sample_id"].tolist() == list(study.samples_.names)
    assert found["shares"]["site"].isna().tolist() == [k == 4 for k in range(SAMPLES)]
    assert found["shares"]["ward"].isna().all()


def test_populations_have_medians_and_signs_of_every_marker(found):
    study = study_in_memory()
    table = found["populations"]
    assert table["population"].tolist() == list(study.populations_.names)
    np.testing.assert_array_equal(table[[f"median {each}" for each in study.populations_.markers]], study.populations_.medians)
    np.testing.assert_array_equal(table["mean_share"], study.populations_.mean_shares)
    assert table["sign CD3"].tolist() == ["+", "−"]
    assert table["marked"][0] == "CD3+ HLA/DR−"


def test_intervals_hold_their_shares_in_the_order_of_samples(found):
    study = study_in_memory()
    table = found["intervals"]
    assert len(table) == SAMPLES * len(study.populations_)
    assert ((table["low"] <= table["share"]) & (table["share"] <= table["high"])).all()
    np.testing.assert_array_equal(table["cells"].to_numpy().reshape(SAMPLES, -1), study.populations_.counts)


def test_differences_are_the_rows_of_the_study_with_the_chance_of_any(found):
    study = study_in_memory()
    table, rows = found["differences"], study.differences_.rows()
    assert table.drop(columns="any_p").to_dict("records") == rows
    any_p = dict(zip(study.differences_.names, study.differences_.any_p_values, strict=True))
    assert table["any_p"].tolist() == [any_p[row["population"]] for row in rows]
    assert found["whole"]["p"].tolist() == [study.whole_.p_value]


def test_distances_and_places_are_those_of_the_map(found):
    study = study_in_memory()
    for name, expected in (("distances", study.map_.distances_), ("errors", study.map_.errors_), ("map", study.map_.embedding_)):
        assert found[name]["sample_id"].tolist() == list(study.samples_.names)
        np.testing.assert_array_equal(found[name].drop(columns="sample_id"), expected)


def test_runs_and_samples_left_out_are_told(found):
    assert found["batches"]["batch"].tolist() == ["run"]
    assert found["batches"]["runs"].tolist() == [2]
    assert found["left_out"].to_dict("records") == [{"sample_id": "p99", "reason": "has no cells"}]


def test_controls_are_told_pair_by_pair(tmp_path):
    names = [f"p{k}" for k in range(8)]
    table = {"sample_id": names, "run": ["a"] * 4 + ["b"] * 4, "control": ["yes", "", "", ""] * 2}
    study = CohortStudy(batch="run", control="control", n_atoms=40, random_state=0)
    made = tables(tmp_path, study.fit({name: sample_cells(k) for k, name in enumerate(names)}, table))
    assert made["controls"][["first", "second", "first_run", "second_run"]].to_numpy().tolist() == [["p0", "p4", "a", "b"]]
    assert made["controls"]["distance"].tolist() == [study.map_.distances_[0, 4]]


def test_cleaning_adds_up(tmp_path):
    study = study_of_files(write_lab(tmp_path / "lab"))
    table = tables(tmp_path / "out", study)["cleaning"]
    assert list(table) == ["sample_id", "events", "margin", "kept"]
    np.testing.assert_array_equal(table["events"] - table["margin"], table["kept"])
    assert table["events"].tolist() == [CELLS] * SAMPLES


def test_texts_are_written_as_they_are_and_read_back_the_same(tmp_path):
    names = ["=cmd|' /C calc'!A0", '+"quoted", with commas', "two\nlines", "-1", "@x", "ü/−"]
    table = {"sample_id": names, "cells": ["taken"] * 6, "no,te": [*"abcde", None]}
    study = CohortStudy(n_atoms=30, random_state=0).fit({name: sample_cells(k, 200) for k, name in enumerate(names)}, table)
    made = tables(tmp_path, study)["shares"]
    assert made["sample_id"].tolist() == names
    assert made["cells"].tolist() == ["taken"] * 6
    assert made["cells (2)"].tolist() == [200] * 6
    assert made["no,te"].isna().tolist() == [False] * 5 + [True]


def test_cells_of_a_table_are_numbers_with_all_digits_texts_or_empty():
    row = [None, np.nan, 0.1 + 0.2, np.float32(0.5), np.int64(3), True, "", 10**30]
    assert as_csv(list("abcdefgh"), [row]) == (
        b"a,b,c,d,e,f,g,h\n,,0.30000000000000004,0.5,3,true,,1000000000000000000000000000000\n"
    )


def test_all_appear_or_none(tmp_path):
    study = CohortStudy(n_atoms=20, random_state=0).fit([sample_cells(k, 100) for k in (0, 7)])
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "map.csv").mkdir()  # which cannot be replaced
    with pytest.raises(FileError, match=r"map\.csv: is a folder"):
        write_tables(tmp_path / "old", study)
    assert [path.name for path in (tmp_path / "old").iterdir()] == ["map.csv"]
    study.samples_ = dataclasses.replace(study.samples_, names=("a\ud800", "b"))
    with pytest.raises(ValueError, match="names must be text that can be written as UTF-8"):
        write_tables(tmp_path / "new", study)
    assert not (tmp_path / "new").exists()


def test_places_that_cannot_be_are_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="is a file, but a folder is needed"):
        write_tables(tmp_path / "file", plain_study())
    with pytest.raises(FileError, match=r"cannot be created, because folder .* does not exist"):
        write_tables(tmp_path / "no" / "where", plain_study())
    with pytest.raises(TypeError, match=r"study .*got SampleSet"):
        write_tables(tmp_path / "out", SampleSet.of([np.eye(3)]))
    with pytest.raises(NotFittedError):
        write_tables(tmp_path / "out", CohortStudy())
    assert not (tmp_path / "out").exists()


def test_files_of_the_study_are_never_written_over(tmp_path):
    sources = (str(tmp_path / "shares.csv"), str(tmp_path / "b.csv"))
    study = CohortStudy(n_atoms=20, random_state=0).fit([sample_cells(k, 100) for k in (0, 7)])
    study.samples_ = dataclasses.replace(study.samples_, sources=sources)
    (tmp_path / "shares.csv").write_text("mine")
    with pytest.raises(FileError, match="is an input file of the study"):
        write_tables(tmp_path, study)
    assert (tmp_path / "shares.csv").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1
