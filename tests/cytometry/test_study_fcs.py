"""The sketched cells of a study as FCS files: the values of their files, weights that add up, and names of all numbers."""

import dataclasses

import flowio
import numpy as np
import pytest

from io_cases import write_fcs
from reduset import io
from reduset.cytometry import CohortStudy, read_cohort, write_sketch_fcs
from reduset.io import FileError
from study_cases import CELLS, CHANNELS, MARKERS, SAMPLES, linear_events, sample_cells, study_in_memory, study_of_files, write_lab

NUMBERS = ["weight", "population", "sample"]
FEW = 4  # samples


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return study_of_files(write_lab(tmp_path_factory.mktemp("lab")))


def columns(path, names=(*CHANNELS, *NUMBERS)):
    return io.read(path, columns=list(names)).values


def test_one_file_has_the_events_of_the_files_linear_with_all_channels(tmp_path, lab):
    assert write_sketch_fcs(tmp_path / "all.fcs", lab) == [tmp_path / "all.fcs"]
    values, small = columns(tmp_path / "all.fcs"), lab.populations_.sketch
    every = np.concatenate([linear_events(k) for k in range(SAMPLES)])
    np.testing.assert_array_equal(values[:, :5], every[small.indices])
    np.testing.assert_array_equal(values[:, 5], small.counts)
    assert values[:, 5].sum() == SAMPLES * CELLS
    np.testing.assert_array_equal(values[:, 6], lab.populations_.of_atom + 1)
    np.testing.assert_array_equal(values[:, 7], small.indices // CELLS + 1)


def test_keywords_name_populations_samples_and_scales(tmp_path, lab):
    write_sketch_fcs(tmp_path / "all.fcs", lab)
    file = flowio.FlowData(tmp_path / "all.fcs")
    assert [file.text[f"population{n}"] for n in (1, 2)] == list(lab.populations_.names)
    assert [file.text[f"sample{n}"] for n in range(1, SAMPLES + 1)] == list(lab.samples_.names)
    assert file.pnn_labels == [*CHANNELS, *NUMBERS]
    assert file.pns_labels == ["", "", *MARKERS, "", "", ""]
    assert file.text["scale3"] == "asinh:150"
    assert file.text["values"].startswith("linear")
    assert file.text["p3r"] == "262144"  # as the files have it, so that axes are the same
    assert "spillover" not in file.text


def test_a_folder_has_a_file_a_sample_whose_weights_are_its_cells(tmp_path, lab):
    written = write_sketch_fcs(tmp_path / "out", lab)
    assert [path.name for path in written] == [f"s{k}.fcs" for k in range(SAMPLES)]
    for number, path in enumerate(written):
        values = columns(path)
        shares = np.bincount(values[:, 6].astype(int) - 1, values[:, 5])
        np.testing.assert_array_equal(shares, lab.populations_.counts[number])
        assert (values[:, 5] > 0).all()
        assert flowio.FlowData(path).text["smno"] == lab.samples_.names[number]


def test_a_study_from_memory_has_its_markers_as_they_are(tmp_path):
    study = study_in_memory()
    write_sketch_fcs(tmp_path / "all.fcs", study)
    values = columns(tmp_path / "all.fcs", (*MARKERS, *NUMBERS))
    np.testing.assert_array_equal(values[:, :3], study.populations_.atoms.astype(np.float32))
    assert values[:, 3].sum() == SAMPLES * CELLS
    assert flowio.FlowData(tmp_path / "all.fcs").text["values"] == "markers as they were compared"


def test_a_marker_is_found_in_whichever_channel_it_lies(tmp_path):
    swapped = ("Time", "FSC-A", "PE-A", "FITC-A", "APC-A")
    study = study_of_files(write_lab(tmp_path / "lab", FEW, {3: swapped}))
    write_sketch_fcs(tmp_path / "all.fcs", study)
    every = np.concatenate([linear_events(k) for k in range(FEW)])
    names = ("Time", "FSC-A", "CD3", "HLA/DR", "APC-A")  # no channel means one thing here and another there
    np.testing.assert_array_equal(columns(tmp_path / "all.fcs", names), every[study.populations_.sketch.indices])


def test_channels_that_not_all_files_have_are_left_out(tmp_path):
    study = study_of_files(write_lab(tmp_path / "lab", FEW, {2: ("Time", "SSC-A", *CHANNELS[2:])}))
    write_sketch_fcs(tmp_path / "all.fcs", study)
    assert flowio.FlowData(tmp_path / "all.fcs").pnn_labels == ["Time", *CHANNELS[2:], *NUMBERS]


@pytest.mark.parametrize("compensate", [True, False])
def test_values_are_compensated_where_the_study_was(tmp_path, compensate):
    folder = tmp_path / "lab"
    folder.mkdir()
    spill = np.array([[1, 0.2, 0], [0.1, 1, 0], [0, 0, 1]])
    spillover = {"$SPILLOVER": "3,FITC-A,PE-A,APC-A," + ",".join(map(str, spill.ravel()))}
    mixed = [linear_events(k).astype(float) for k in range(FEW)]
    for k, events in enumerate(mixed):
        events[:, 2:] = events[:, 2:] @ spill
        write_fcs(folder / f"s{k}.fcs", events, CHANNELS, ranges=[262144] * 5, extra=spillover)
    study = study_of_files(folder, compensate=compensate)
    assert study.samples_.compensated is compensate
    write_sketch_fcs(tmp_path / "all.fcs", study)
    expected = np.concatenate([linear_events(k) if compensate else mixed[k] for k in range(FEW)])
    found = columns(tmp_path / "all.fcs", CHANNELS)
    np.testing.assert_allclose(found, expected[study.populations_.sketch.indices], rtol=1e-4, atol=0.1)


@pytest.mark.parametrize("transform", ["logicle", "none", "asinh:5"])
def test_values_are_linear_whatever_the_scales_of_the_study(tmp_path, transform):
    study = study_of_files(write_lab(tmp_path / "lab", FEW), transform=transform)
    write_sketch_fcs(tmp_path / "all.fcs", study)
    every = np.concatenate([linear_events(k) for k in range(FEW)])
    np.testing.assert_array_equal(columns(tmp_path / "all.fcs", CHANNELS), every[study.populations_.sketch.indices])


def test_files_of_other_formats_are_read_once_more_too(tmp_path):
    (tmp_path / "lab").mkdir()
    for k in range(4):
        lines = [",".join(map(str, row)) for row in sample_cells(k).tolist()]
        (tmp_path / "lab" / f"s{k}.csv").write_text("\n".join([",".join(MARKERS), *lines]))
    study = CohortStudy(n_atoms=40, random_state=0).fit(read_cohort(tmp_path / "lab"))
    write_sketch_fcs(tmp_path / "all.fcs", study)
    np.testing.assert_array_equal(columns(tmp_path / "all.fcs", MARKERS), study.populations_.atoms)


def test_names_that_no_file_can_have_are_changed(tmp_path):
    names = ["a/b", "a:b", "A_B", "..", "", "x" * 300]
    markers = ["weight", "CD3,CD4", "CD3;CD4"]
    study = CohortStudy(n_atoms=30, random_state=0).fit([sample_cells(k, 200) for k in range(6)])
    study.samples_ = dataclasses.replace(study.samples_, names=tuple(names), markers=tuple(markers))
    written = write_sketch_fcs(tmp_path / "out", study)
    assert [path.stem for path in written] == ["a_b", "a_b (2)", "A_B (3)", "sample", "sample (2)", "x" * 100]
    assert flowio.FlowData(written[0]).pnn_labels == ["weight", "CD3;CD4", "CD3;CD4 (2)", "weight (2)", "population", "sample"]
    assert flowio.FlowData(written[0]).pns_labels[1] == "CD3,CD4"
    assert flowio.FlowData(written[0]).text["sample1"] == "a/b"


def test_files_of_the_study_are_never_written_over(tmp_path):
    folder = write_lab(tmp_path / "lab", FEW)
    study = study_of_files(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for target in (folder, folder / "s3.fcs"):
        with pytest.raises(FileError, match="is an input file of the study"):
            write_sketch_fcs(target, study)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_files_that_changed_since_are_refused_and_nothing_is_left(tmp_path):
    folder = write_lab(tmp_path / "lab", FEW)
    study = study_of_files(folder)

    def refused(why):
        with pytest.raises(FileError, match=rf"s3\.fcs: {why}"):
            write_sketch_fcs(tmp_path / "out", study)
        assert not (tmp_path / "out").exists()

    write_fcs(folder / "s3.fcs", linear_events(3)[::-1], CHANNELS)
    refused("has other values of 'CD3' than the study")
    write_fcs(folder / "s3.fcs", linear_events(3)[:5], CHANNELS)
    refused("has 5 events, but the study used number")
    write_fcs(folder / "s3.fcs", linear_events(3), ("Time", "FSC-A", "x", "y", "z"))
    refused("no longer has channel 'FITC-A'")
    (folder / "s3.fcs").unlink()
    refused("no such file")


def test_an_event_without_a_number_is_named(tmp_path):
    folder = tmp_path / "lab"
    folder.mkdir()
    for k in range(FEW):
        events = linear_events(k)
        events[:, 1] = np.nan if k == 2 else events[:, 1]
        labels = {f"$P{n}S": marker for n, marker in enumerate(MARKERS, 3)}
        write_fcs(folder / f"s{k}.fcs", events, CHANNELS, extra=labels)
    study = study_of_files(folder, clean=())
    with pytest.raises(FileError, match=r"s2\.fcs: 'FSC-A' has no number in row \d+"):
        write_sketch_fcs(tmp_path / "all.fcs", study)
    assert not (tmp_path / "all.fcs").exists()


def test_other_formats_and_studies_that_are_none_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"must end in \.fcs, for one file, or be a folder"):
        write_sketch_fcs(tmp_path / "cells.csv", study_in_memory())
    with pytest.raises(TypeError, match=r"study .*got int"):
        write_sketch_fcs(tmp_path / "cells.fcs", 3)
    assert list(tmp_path.iterdir()) == []
