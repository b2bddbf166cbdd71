"""read_cohort: folders as samples on shared scales; cells, counts and events belong together."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lab_files import CHANNELS, PANEL, lab_events, write_folder, write_sample, write_samples
from reduset.cytometry import read_cohort
from reduset.io.transforms import parse_transform

PLAIN = {"clean": (), "transform": "none"}


def test_a_folder_without_tables_is_a_sample_a_file(tmp_path):
    folder = write_folder(tmp_path / "in", 12)
    cohort = read_cohort(folder)
    assert cohort.names == tuple(f"a{k}" for k in range(12))  # in the order in which people count
    assert cohort.markers == ("CD3", "CD4", "Ki67")
    assert cohort.sources == tuple(str(folder / f"a{k}.fcs") for k in range(12))
    assert cohort.table == {}
    assert next(iter(cohort.counted)) == "events"
    np.testing.assert_array_equal(cohort.counted["events"], [120 + 10 * k for k in range(12)])
    np.testing.assert_array_equal(cohort.counted["events"] - sum(list(cohort.counted.values())[1:]), cohort.sizes)
    assert set(cohort.scales) == set(cohort.markers)
    assert all(name.startswith("logicle:T=262144,W=") for name in cohort.scales.values())
    assert "no spillover matrix: not compensated" in cohort.notes


def test_cells_are_in_single_precision(tmp_path):
    cohort = read_cohort(write_folder(tmp_path / "in"))
    assert all(each.dtype == np.float32 for each in cohort.cells)


def test_cells_are_the_events_of_their_numbers_on_their_scales(tmp_path):
    folder = write_folder(tmp_path / "in")
    plain, scaled = read_cohort(folder, **PLAIN), read_cohort(folder)
    for k in range(4):
        events = lab_events(120 + 10 * k, seed=k).astype(np.float32)
        np.testing.assert_array_equal(plain.cells[k], events[:, 3:])
        for place, marker in enumerate(scaled.markers):
            column = events[scaled.events[k], 3 + place].astype(float)
            np.testing.assert_allclose(
                scaled.cells[k][:, place], parse_transform(scaled.scales[marker]).scale(column), rtol=1e-5, atol=1e-6
            )
    assert plain.scales == {}
    assert list(plain.counted) == ["events"]


def test_panel_and_samples_in_the_same_folder_are_no_samples(tmp_path):
    folder = write_folder(tmp_path)
    (folder / "panel.csv").write_text(PANEL)
    (folder / "notes.txt").write_text("x,y\n1,2\n")
    samples = write_samples(folder / "samples.csv")
    cohort = read_cohort(folder, panel=folder / "panel.csv", samples=samples)
    assert cohort.names == ("s0", "s1", "s2", "s3")
    assert cohort.markers == ("CD3", "CD4", "Ki67")
    assert cohort.state == {"Ki67"}
    assert cohort.table["condition"] == ("stim", "ref", "stim", "ref")
    assert cohort.column("patient_id") == ("p0", "p0", "p1", "p1")
    assert cohort.column("age") == ("40", "41", "42", "43")


def test_files_are_found_by_their_bytes_and_in_folders_inside(tmp_path):
    folder = write_folder(tmp_path / "in", 2)
    (folder / "a1.fcs").rename(folder / "a1.B08")
    assert read_cohort(folder).names == ("a0", "a1")
    assert read_cohort(tmp_path).names == ("a0", "a1")
    assert read_cohort([folder / "a1.B08"]).names == ("a1",)


def test_tables_may_be_frames(tmp_path):
    folder = write_folder(tmp_path / "in", 2)
    samples = pd.DataFrame({"file_name": ["a1", "a0"], "condition": ["x", "y"]}, index=["two", "one"])
    cohort = read_cohort(folder, samples=samples, panel={"channel": ["PE-A"], "antigen": ["CD4"]})
    assert (cohort.names, cohort.markers, cohort.table["condition"]) == (("two", "one"), ("CD4",), ("x", "y"))


def test_files_beside_the_table_are_left_out_with_a_note(tmp_path):
    folder = write_folder(tmp_path / "in", 4)
    cohort = read_cohort(folder, samples=write_samples(tmp_path / "samples.csv", 2))
    assert cohort.names == ("s0", "s1")
    assert cohort.notes[0] == "files omitted, not in the table of samples: a2.fcs, a3.fcs"


def test_spillover_is_taken_out_unless_that_is_not_wanted(tmp_path):
    spill = np.array([[1, 0.2, 0], [0.1, 1, 0], [0, 0, 1]])
    extra = {"$SPILLOVER": "3,FITC-A,PE-A,APC-A," + ",".join(map(str, spill.ravel()))}
    path = write_sample(tmp_path / "a.fcs", lab_events(), extra=extra)
    pure, mixed = (read_cohort([path], compensate=yes, **PLAIN) for yes in (True, False))
    np.testing.assert_allclose(pure.cells[0] @ spill, mixed.cells[0], rtol=1e-4, atol=0.1)
    assert pure.notes == ("compensated by its spillover matrix (3 channels)",)
    assert mixed.notes == ()


def test_a_marker_has_the_same_scale_in_all_samples_estimated_from_all(tmp_path):
    quiet, loud = lab_events(4000, 1), lab_events(4000, 2)
    quiet[:, 3:] *= 0.1
    paths = [write_sample(tmp_path / f"{k}.fcs", events) for k, events in enumerate((quiet, loud))]
    together, one, other = read_cohort(paths).scales, read_cohort(paths[:1]).scales, read_cohort(paths[1:]).scales
    widths = [float(scales["CD3"].split("W=")[1]) for scales in (one, together, other)]
    assert widths[0] < widths[1] <= widths[2]


def test_scales_may_be_given_by_marker_or_in_the_panel(tmp_path):
    folder = write_folder(tmp_path / "in", 2)
    panel = {"name": CHANNELS[3:], "antigen": ["CD3", "CD4", "Ki67"], "cofactor": [None, 5, 5]}
    scales = read_cohort(folder, panel=panel, transform={"CD3": "asinh:150", "CD4": "none"}).scales
    assert scales == {"CD3": "asinh:150", "Ki67": "asinh:5"}
    assert read_cohort(folder, panel=panel, transform="asinh:9").scales == {"CD3": "asinh:9", "CD4": "asinh:5", "Ki67": "asinh:5"}


def test_mass_cytometry_goes_on_asinh_of_a_fifth_and_is_not_compensated(tmp_path):
    names = ("Time", "Event_length", "Ce140Di", "Nd142Di", "Sm152Di", "Center")
    labels = ("", "", "140Ce_CD3", "142Nd_CD4", "152Sm_CD8", "")
    events = np.abs(lab_events(channels=names))
    cohort = read_cohort([write_sample(tmp_path / "a.fcs", events, names, labels)], clean=())
    assert cohort.scales == dict.fromkeys(("140Ce_CD3", "142Nd_CD4", "152Sm_CD8"), "asinh:5")
    np.testing.assert_allclose(cohort.cells[0], np.arcsinh(events[:, 2:5] / 5), rtol=1e-5)
    assert not any("spillover" in note for note in cohort.notes)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_other_formats_have_a_file_a_sample_and_stay_as_they_are(tmp_path, kind):
    folder = tmp_path / "in"
    folder.mkdir()
    parts = [np.random.default_rng(k).normal(size=(30 + k, 2)) for k in range(3)]
    for k, part in enumerate(parts):
        frame = pd.DataFrame(part, columns=["CD3", "CD4"]).assign(who="x")
        if kind == "csv":
            frame.to_csv(folder / f"b{k}.csv", index=False)
        else:
            pq.write_table(pa.Table.from_pandas(frame), folder / f"b{k}.parquet")
    samples = folder / "samples.csv"
    samples.write_text("file,condition\nb2,x\nb0,y\nb1,x\n")
    cohort = read_cohort(folder, samples=samples)
    assert (cohort.names, cohort.markers, cohort.scales) == (("b2", "b0", "b1"), ("CD3", "CD4"), {})
    for name, cells in zip(cohort.names, cohort.cells, strict=True):
        np.testing.assert_allclose(cells, parts[int(name[1])], rtol=1e-6)
    assert "omitted, without numbers: who" in cohort.notes
    assert set(read_cohort(folder, samples=samples, transform="asinh:1").scales.values()) == {"asinh:1"}


def test_a_million_events_lie_beside_fifty(tmp_path):
    large = np.tile(lab_events(1000), (40, 1))
    paths = [write_sample(tmp_path / "large.fcs", large), write_sample(tmp_path / "small.fcs", lab_events(50))]
    cohort = read_cohort(paths, clean=())
    np.testing.assert_array_equal(cohort.sizes, [40000, 50])
    np.testing.assert_array_equal(cohort.cells[0][:1000], cohort.cells[0][-1000:])  # wherever the blocks end


class Half:
    """A gate of every other event, with the bright half of a channel."""

    def inside(self, events):
        return events.values[:, events.channels.index("PE-A")] > 0


def test_a_gate_takes_what_is_outside_and_is_counted(tmp_path):
    folder = write_folder(tmp_path / "in", 2)
    cohort = read_cohort(folder, gate=Half(), **PLAIN)
    assert list(cohort.counted) == ["events", "gate"]
    assert all((cells[:, 1] > 0).all() for cells in cohort.cells)
    np.testing.assert_array_equal(cohort.sizes + cohort.counted["gate"], cohort.counted["events"])


def test_events_without_a_number_are_left_out_and_counted(tmp_path):
    events = lab_events(60)
    events[3, 4], events[7, 5] = np.nan, np.inf
    path = write_sample(tmp_path / "a.fcs", events)
    cleaned = read_cohort([path], clean="non-finite")
    assert cleaned.counted["non-finite"].tolist() == [2]
    assert not {3, 7} & set(cleaned.events[0].tolist())
    dropped = read_cohort([path], clean=(), missing="drop")
    assert dropped.counted["missing"].tolist() == [2]
    np.testing.assert_array_equal(dropped.cells[0], cleaned.cells[0])


def test_progress_counts_files(tmp_path):
    seen = []
    read_cohort(write_folder(tmp_path / "in", 3), progress=lambda *each: seen.append(each))
    assert seen == [("reading", k, 3) for k in (1, 2, 3)]
