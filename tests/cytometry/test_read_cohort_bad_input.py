"""What is wrong with a study's files is said in one line; with keep_going the other samples go on."""

import numpy as np
import pytest

from lab_files import CHANNELS, PANEL, lab_events, write_folder, write_sample, write_samples
from reduset.cytometry import read_cohort
from reduset.io import FileError, write_fcs


def damage(folder, kind):
    """Make the second file of a folder wrong, and say how that is told."""
    path = folder / "a1.fcs"
    whole = path.read_bytes()
    if kind == "cut short":
        path.write_bytes(whole[:-100])
        return "cut short"
    if kind == "empty":
        path.write_bytes(b"")
        return "is empty"
    if kind == "something else":
        path.write_bytes(b"no cytometer wrote this" * 10)
        return "begins with"
    if kind == "cut in its head":
        path.write_bytes(whole[:300])
        return "cut short"
    if kind == "spillover":
        write_sample(path, lab_events(50), extra={"$SPILLOVER": "2,FITC-A,GONE-A,1,0.5,0,1"})
        return "its spillover matrix"
    events = lab_events(50)
    events[::2, 3], events[1::2, 4] = np.nan, np.inf
    write_sample(path, events)
    return "none of its 50 events are left: non-finite removed 50"


KINDS = ["cut short", "empty", "something else", "cut in its head", "spillover", "no finite event"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_cannot_be_read_is_refused_or_left_out_with_the_reason(tmp_path, kind):
    folder = write_folder(tmp_path / "in", 3)
    told = damage(folder, kind)
    samples = write_samples(tmp_path / "samples.csv", 3)
    with pytest.raises(FileError, match=told) as refused:
        read_cohort(folder, samples=samples)
    assert str(folder / "a1.fcs") in str(refused.value)
    cohort = read_cohort(folder, samples=samples, keep_going=True)
    assert cohort.names == ("s0", "s2")
    assert cohort.table["sample_id"] == ("s0", "s2")
    assert list(cohort.left_out) == ["s1"]
    assert told in cohort.left_out["s1"]
    assert len(cohort.counted["events"]) == len(cohort.events) == len(cohort.sources) == 2


def test_a_file_that_the_table_names_and_the_folder_lacks(tmp_path):
    folder = write_folder(tmp_path / "in", 2)
    samples = write_samples(tmp_path / "samples.csv", 3)
    with pytest.raises(FileError, match=r"'s2'.*'a2\.fcs'.*samples\.csv.*names.*keep_going=True"):
        read_cohort(folder, samples=samples)
    cohort = read_cohort(folder, samples=samples, keep_going=True)
    assert cohort.names == ("s0", "s1")
    assert "no file 'a2.fcs'" in cohort.left_out["s2"]


def test_a_file_of_another_panel_is_refused_or_left_out_with_the_reason(tmp_path):
    folder = write_folder(tmp_path / "in", 3)
    write_fcs(folder / "a1.fcs", np.random.default_rng(0).normal(size=(60, 3)), ["FSC-A", "PerCP-A", "BV605-A"])
    with pytest.raises(FileError, match=r"a1\.fcs: no marker is in all files"):
        read_cohort(folder)
    cohort = read_cohort(folder, keep_going=True)
    assert cohort.names == ("a0", "a2")
    assert cohort.markers == read_cohort([folder / "a0.fcs", folder / "a2.fcs"]).markers
    assert "do all files have one panel?" in cohort.left_out["a1"]


def test_at_least_one_sample_must_be_left(tmp_path):
    folder = write_folder(tmp_path / "in", 2)
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(FileError, match=r"all 2 samples were omitted; a0: .*cut short"):
        read_cohort(folder, keep_going=True)


class Nothing:
    def inside(self, events):
        return np.zeros(len(events.values), bool)


def test_an_empty_gate_is_told(tmp_path):
    folder = write_folder(tmp_path / "in", 2)
    with pytest.raises(FileError, match=r"a0\.fcs: none of its 120 events are left: gate removed 120"):
        read_cohort(folder, gate=Nothing(), clean=())
    with pytest.raises(FileError, match="all 2 samples were omitted"):
        read_cohort(folder, gate=Nothing(), clean=(), keep_going=True)


def test_a_single_event_is_no_sample(tmp_path):
    with pytest.raises(FileError, match="1 of its 1 events is left"):
        read_cohort([write_sample(tmp_path / "a.fcs", lab_events(1))])


def test_duplicate_samples_and_files_are_refused(tmp_path):
    folder = write_folder(tmp_path / "in", 2)
    with pytest.raises(FileError, match=r"sample_id .*got 's0' in rows 1 and 3"):
        read_cohort(folder, samples=write_samples(tmp_path / "samples.csv", 2, "b.fcs,s0,x,y,1\n"))
    with pytest.raises(FileError, match="file_name must name each file once"):
        read_cohort(folder, samples=write_samples(tmp_path / "samples.csv", 2, "a0.fcs,s9,x,y,1\n"))
    with pytest.raises(FileError, match=r"a0\.fcs: is named twice"):
        read_cohort([folder / "a0.fcs", folder / "a0.fcs"])


def test_panels_that_differ_are_noted_or_refused(tmp_path):
    folder = write_folder(tmp_path / "in", 2)
    few = [*CHANNELS[:4], "APC-A"]
    write_sample(folder / "a2.fcs", lab_events(100, channels=few), few, ("", "", "", "CD3", "Ki67"))
    cohort = read_cohort(folder)
    assert cohort.markers == ("CD3", "Ki67")
    assert cohort.notes[0] == "omitted, not in all files: CD4 (not in a2.fcs)"
    with pytest.raises(FileError, match=r"a2\.fcs: has no channel of 'CD4', unlike .*a0\.fcs"):
        read_cohort(folder, channels="same")
    (tmp_path / "panel.csv").write_text(PANEL)
    assert read_cohort(folder, panel=tmp_path / "panel.csv").markers == ("CD3", "Ki67")


def test_a_name_that_clashes_is_told_with_both_channels(tmp_path):
    path = write_sample(tmp_path / "a.fcs", labels=("", "", "", "CD3", "FITC-A", "Ki67"))
    panel = {"fcs_colname": ["FITC-A"], "antigen": ["CD3"]}
    with pytest.raises(
        FileError, match=r"'FITC-A' fits channel 4, FITC-A \(labelled CD3\) and channel 5, PE-A \(labelled FITC-A\)"
    ):
        read_cohort([path], panel=panel)
    assert read_cohort([path], panel=panel | {"fcs_colname": ["$P4"]}).markers == ("CD3",)


def test_events_without_a_number_are_refused_where_nothing_leaves_them_out(tmp_path):
    events = lab_events(60)
    events[3, 4] = np.nan
    path = write_sample(tmp_path / "a.fcs", events)
    with pytest.raises(FileError, match=r"a\.fcs: 'CD4' has no number in row 4, got nan; omit such events"):
        read_cohort([path], clean=())


def test_a_marker_without_any_number_is_named(tmp_path):
    events = lab_events(60)
    events[:, 4] = np.nan
    with pytest.raises(FileError, match="'CD4' has no number in any event"):
        read_cohort([write_sample(tmp_path / "a.fcs", events)], clean=())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": "all"}, "channels must be one of 'common', 'same'"),
        ({"clean": ("bleach",)}, "clean must be one of"),
        ({"missing": "ignore"}, "missing must be one of"),
        ({"keep_going": 1}, "keep_going must be True or False"),
        ({"compensate": "yes"}, "compensate must be True or False"),
        ({"transform": "squash"}, "transform must be"),
        ({"transform": {"CD99": "log"}}, "transform names 'CD99', which is no marker"),
        ({"progress": 3}, "progress must be"),
    ],
)
def test_options_are_checked_before_files_are_read(tmp_path, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        read_cohort(write_folder(tmp_path / "in", 1), **options)


def test_folders_without_samples_are_refused(tmp_path):
    with pytest.raises(FileError, match="is a folder without FCS files"):
        read_cohort(tmp_path)
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    np.save(tmp_path / "b.npy", np.ones((3, 2)))
    with pytest.raises(FileError, match=r"holds files of several formats, .* and no FCS files"):
        read_cohort(tmp_path)
    with pytest.raises(FileError, match="no such file"):
        read_cohort(tmp_path / "c.fcs")
    with pytest.raises(FileError, match="no files were named"):
        read_cohort([])


def test_a_file_of_scatter_alone_says_what_it_has(tmp_path):
    path = write_sample(tmp_path / "a.fcs", lab_events(channels=("Time", "FSC-A")), ("Time", "FSC-A"), ("", ""))
    with pytest.raises(FileError, match=r"holds no channel of a dye; .* it has Time, FSC-A"):
        read_cohort([path])
    assert read_cohort([path], panel={"channel": ["FSC-A"]}).markers == ("FSC-A",)


def test_ranges_that_differ_between_files_are_noted(tmp_path):
    paths = [write_sample(tmp_path / "a.fcs", lab_events()), write_sample(tmp_path / "b.fcs", lab_events(), top=1024)]
    assert any("have different ranges in different files" in note for note in read_cohort(paths, clean=()).notes)
