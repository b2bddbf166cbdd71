"""Gates: those drawn in FlowJo or written as GatingML, and tables of membership; which events are inside, and what is refused."""

from dataclasses import replace

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import csv, feather, parquet

from cleaning_cases import read_events
from gate_cases import dimension, gating_ml, population, quadrants, rectangle, workspace
from io_cases import write_fcs
from lab_files import CHANNELS as LAB_CHANNELS
from lab_files import lab_events, write_folder
from reduset.cytometry import read_cohort
from reduset.cytometry.gates import open_gates
from reduset.io import FileError

CHANNELS = ("FSC-A", "PE-A", "APC-A")


@pytest.fixture
def events(tmp_path):
    values = np.random.default_rng(0).uniform(0, 1000, (200, 3)).astype(np.float32)
    return read_events(write_fcs(tmp_path / "patient 1.fcs", values, CHANNELS))


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# GatingML


def test_a_gate_of_gating_ml_keeps_what_is_inside_it_and_its_parents(tmp_path, events):
    outer = rectangle("Cells", dimension("FSC-A", 200))
    inner = rectangle("CD3", dimension("PE-A", 300, 900), dimension("APC-A", None, 500), parent="Cells")
    found = open_gates(written(tmp_path / "gates.xml", gating_ml(outer, inner)))
    fsc, pe, apc = events.values.T
    expected = (fsc >= 200) & (pe >= 300) & (pe < 900) & (apc < 500)
    assert found.populations == ["Cells", "Cells/CD3"]
    assert 0 < expected.sum() < 200
    assert np.array_equal(found.inside(events), expected)
    assert np.array_equal(open_gates(tmp_path / "gates.xml", "Cells").inside(events), fsc >= 200)


def test_quadrants_are_populations_and_their_gate_is_none(tmp_path, events):
    path = written(tmp_path / "gates.gml", gating_ml(quadrants("Q", "PE-A", 400, "dim", "bright")))
    assert np.array_equal(open_gates(path, "bright").inside(events), events.values[:, 1] >= 400)
    with pytest.raises(FileError, match=r"\(population=\)"):
        open_gates(path)


def test_an_empty_gate_keeps_nothing(tmp_path, events):
    path = written(tmp_path / "gates.xml", gating_ml(rectangle("none", dimension("PE-A", 5000))))
    found = open_gates(path).inside(events)
    assert found.dtype == bool
    assert found.shape == (200,)
    assert not found.any()


def test_a_channel_that_the_file_lacks_is_named(tmp_path, events):
    path = written(tmp_path / "gates.xml", gating_ml(rectangle("far", dimension("BV421-A", 1))))
    with pytest.raises(
        FileError, match=r"gates\.xml: FlowKit does not accept it as gates for patient 1\.fcs \(BV421-A is not found"
    ):
        open_gates(path).inside(events)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_type_is_refused_before_anything_is_made_of_it(tmp_path, encoding):
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
    text = gating_ml(rectangle("&b;", dimension("PE-A", 1)), before=bomb).replace("UTF-8", encoding.upper())
    path = tmp_path / "gates.xml"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(FileError, match="declares a document type"):
        open_gates(path)


@pytest.mark.parametrize("text", ["", "name,PE-A", "<gating", "<page><p/></page>"])
def test_what_is_no_document_of_gates_is_refused(tmp_path, text):
    for suffix in (".xml", ".wsp"):
        with pytest.raises(FileError, match=f"gates{suffix}: "):
            open_gates(written(tmp_path / f"gates{suffix}", text))


def test_flowkit_is_asked_for_by_the_extra_that_brings_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "flowkit", None)
    path = written(tmp_path / "gates.xml", gating_ml(rectangle("R", dimension("PE-A", 1))))
    with pytest.raises(FileError, match=r"needs flowkit, which is not installed: pip install 'reduset\[gates\]'"):
        open_gates(path)


# workspaces


def drawn(low=200):
    return population("Cells", "FSC-A", low, 2000, population("CD3+", "PE-A", 300, 2000))


def test_a_sample_of_a_workspace_is_found_by_its_file(tmp_path, events):
    path = written(tmp_path / "lab.wsp", workspace({"patient 1.fcs": [drawn()], "patient 2.fcs": [drawn(999)]}, CHANNELS))
    expected = (events.values[:, 0] >= 200) & (events.values[:, 1] >= 300)
    found = open_gates(path)
    assert found.populations == ["Cells", "Cells/CD3+"]
    assert np.array_equal(found.inside(events), expected)
    assert np.array_equal(open_gates(path, "CD3+").inside(events), expected)
    assert np.array_equal(open_gates(path, "/root/Cells").inside(events), events.values[:, 0] >= 200)


def test_a_renamed_sample_is_found_by_what_its_file_was_called(tmp_path, events):
    text = workspace({"Jane": [drawn()], "Joe": [drawn()]}, CHANNELS, {"Jane": "patient 1.fcs", "Joe": "patient 2.fcs"})
    assert open_gates(written(tmp_path / "lab.wsp", text)).inside(events).any()


def test_a_file_that_a_workspace_lacks_or_has_twice_is_refused(tmp_path, events):
    path = written(tmp_path / "lab.wsp", workspace({"other.fcs": [drawn()]}, CHANNELS))
    with pytest.raises(FileError, match=r"has no sample of the file patient 1\.fcs; its samples are other\.fcs"):
        open_gates(path).inside(events)
    twice = workspace({"a": [drawn()], "b": [drawn()]}, CHANNELS, dict.fromkeys("ab", "patient 1.fcs"))
    with pytest.raises(FileError, match=r"a, b are all samples of the file patient 1\.fcs"):
        open_gates(written(path, twice)).inside(events)


def test_a_sample_on_which_a_gate_was_not_drawn_is_refused(tmp_path, events):
    path = written(tmp_path / "lab.wsp", workspace({"patient 1.fcs": [], "patient 2.fcs": [drawn()]}, CHANNELS))
    with pytest.raises(FileError, match=r"its sample 'patient 1\.fcs' has no population 'Cells/CD3\+'; no gate was drawn on it"):
        open_gates(path).inside(events)


def test_populations_are_named_where_one_has_to_be_chosen(tmp_path):
    both = [drawn(), population("Debris", "FSC-A", 0, 200, population("CD3+", "PE-A", 0, 300))]
    path = written(tmp_path / "lab.wsp", workspace({"a.fcs": both}, CHANNELS))
    with pytest.raises(FileError, match=r"several populations, choose one .*: Cells, Cells/CD3\+, Debris, Debris/CD3\+"):
        open_gates(path)
    with pytest.raises(FileError, match=r"is the end of several, choose one: Cells/CD3\+, Debris/CD3\+"):
        open_gates(path, "CD3+")
    with pytest.raises(FileError, match=r"has no population 'Debri' \(did you mean 'Debris'\?\)"):
        open_gates(path, "Debri")
    with pytest.raises(TypeError, match="population must be the name"):
        open_gates(path, 3)
    assert open_gates(path, "Debris/CD3+").population == "Debris/CD3+"


def test_gates_of_another_number_of_events_are_refused(tmp_path, events):
    path = written(tmp_path / "gates.xml", gating_ml(rectangle("R", dimension("PE-A", 1))))
    with pytest.raises(FileError, match=r"gates 200 events of .*patient 1\.fcs, which was read with 150"):
        open_gates(path).inside(replace(events, values=events.values[:150]))


# tables

WRITERS = {".csv": csv.write_csv, ".feather": feather.write_feather, ".parquet": parquet.write_table}


def member(events):
    return events.values[:, 1] > 600


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("label", ["patient 1", "patient 1.fcs"])
def test_a_long_table_names_the_file_of_each_row(tmp_path, events, suffix, label):
    inside = member(events)
    columns = {
        "file_name": [label] * 200 + ["patient 2.fcs"] * 50,
        "Cells": np.ones(250, bool),
        "Cells/CD3+": np.append(inside, np.ones(50, bool)),
    }
    WRITERS[suffix](arrow.table(columns), tmp_path / f"all{suffix}")
    found = open_gates(tmp_path / f"all{suffix}")
    assert found.populations == ["Cells", "Cells/CD3+"]
    assert np.array_equal(found.inside(events), inside)
    assert found.inside(replace(events, path="patient 2.fcs", values=events.values[:50])).all()
    with pytest.raises(FileError, match=r"column 'file_name' has no rows of patient 3\.fcs"):
        found.inside(replace(events, path="patient 3.fcs"))


def test_numbers_of_events_put_rows_in_order(tmp_path, events):
    order = np.random.default_rng(1).permutation(200)
    table = {"sample": ["patient 1"] * 200, "event": order, "gate": member(events)[order]}
    feather.write_feather(arrow.table(table), tmp_path / "long.feather")
    assert np.array_equal(open_gates(tmp_path / "long.feather").inside(events), member(events))
    feather.write_feather(arrow.table(table | {"event": np.minimum(order, 150)}), tmp_path / "twice.feather")
    with pytest.raises(FileError, match=r"must number each of the 200 events of .* once, from 0 on; got 150 out of turn"):
        open_gates(tmp_path / "twice.feather").inside(events)


def test_rows_must_be_as_many_as_events(tmp_path, events):
    columns = {"file_name": ["patient 1"] * 199, "gate": member(events)[:-1].astype(np.int8)}
    feather.write_feather(arrow.table(columns), tmp_path / "patient 1.feather")
    with pytest.raises(FileError, match=r"has rows for 199 events of .*patient 1\.fcs, which was read with 200"):
        open_gates(tmp_path / "patient 1.feather").inside(events)


def test_a_table_of_no_file_in_particular_is_refused(tmp_path, events):
    feather.write_feather(arrow.table({"gate": member(events)}), tmp_path / "gates.feather")
    with pytest.raises(FileError, match="must have a column 'file_name' with the file of each row"):
        open_gates(tmp_path / "gates.feather")


@pytest.mark.parametrize(("value", "seen"), [(0.5, "0.5"), (2.0, "2"), (None, "nan")])
def test_membership_is_true_or_false(tmp_path, events, value, seen):
    values = [*member(events).astype(float).tolist()[:-1], value]
    feather.write_feather(arrow.table({"file_name": ["patient 1"] * 200, "gate": values}), tmp_path / "patient 1.feather")
    with pytest.raises(FileError, match=f"column 'gate' .*got {seen}"):
        open_gates(tmp_path / "patient 1.feather").inside(events)


def test_a_table_without_a_column_of_membership_is_refused(tmp_path):
    feather.write_feather(arrow.table({"file_name": ["a", "b"]}), tmp_path / "names.feather")
    with pytest.raises(FileError, match="holds no gate"):
        open_gates(tmp_path / "names.feather")
    with pytest.raises(FileError, match="no such file"):
        open_gates(tmp_path / "absent.wsp")


@pytest.mark.parametrize("kind", ["GatingML", "FlowJo"])
def test_a_cohort_is_read_within_a_gate_and_the_rest_is_counted(tmp_path, kind):
    folder = write_folder(tmp_path / "in", 3)
    if kind == "GatingML":
        gates = gating_ml(
            rectangle("Large", dimension("FSC-A", 40_000)), rectangle("CD3", dimension("FITC-A", 500), parent="Large")
        )
        path = written(tmp_path / "gates.xml", gates)
    else:
        tree = population("Large", "FSC-A", 40_000, 300_000, population("CD3", "FITC-A", 500, 300_000))
        path = written(tmp_path / "gates.wsp", workspace({f"a{k}.fcs": [tree] for k in range(3)}, LAB_CHANNELS))
    cohort = read_cohort(folder, gate=(path, "CD3"), clean=(), transform="none")
    for k in range(3):
        values = lab_events(120 + 10 * k, seed=k).astype(np.float32)
        inside = (values[:, 1] >= 40_000) & (values[:, 3] >= 500)
        assert 0 < inside.sum() < len(values)
        np.testing.assert_array_equal(cohort.events[k], np.flatnonzero(inside))
        assert cohort.counted["gate"][k] == (~inside).sum()
        np.testing.assert_allclose(cohort.cells[k], values[inside][:, 3:], rtol=1e-5)
