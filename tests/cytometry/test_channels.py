"""Which channel a name means, and which markers files have in common."""

import numpy as np
import pytest

from reduset.cytometry.events import FileChannels, find_channel
from reduset.cytometry.markers import read_panel, study_markers
from reduset.io import FileError


def made(names, labels=None, path="x/a.fcs", is_fcs=True):
    labels = tuple(labels or [""] * len(names))
    dyes = tuple(k for k, name in enumerate(names) if not name.startswith(("Time", "FSC", "SSC", "Event")))
    return FileChannels(path, tuple(names), labels, np.full(len(names), 1024.0), dyes, 10, is_fcs)


FILE = made(["Time", "FITC-A", "FITC-H", "PE-A", "(Ce140)Dd"], ["", "CD3", "", "HLA-DR", "CD8a"])


@pytest.mark.parametrize(
    ("name", "place"),
    [
        *(("FITC-A", 1), ("fitc_a", 1), ("CD3", 1), ("cd 3", 1), ("HLADR", 3), ("hla.dr", 3), ("PE", 3), ("Ce140Dd", 4)),
        *(("$P3N", 2), ("$p3", 2), ("X", None), ("$P9", None)),
    ],
)
def test_a_channel_is_found_by_name_or_label_in_either_spelling(name, place):
    assert find_channel(FILE, name) == place


def test_an_exact_spelling_counts_more_than_a_loose_one():
    file = made(["cd4", "CD4", "CD-4"])
    assert [find_channel(file, name) for name in file.names] == [0, 1, 2]
    with pytest.raises(FileError, match=r"'Cd4' fits channel 1, cd4 and channel 2, CD4; name its .PnN or its number"):
        find_channel(file, "Cd4")


@pytest.mark.parametrize(
    ("names", "labels", "asked", "message"),
    [
        (["CD4", "PE-A"], ["", "CD4"], "CD4", r"x/a\.fcs: 'CD4' fits channel 1, CD4 and channel 2, PE-A \(labelled CD4\)"),
        (["FL1-A", "FL1-H"], None, "FL1", "'FL1' fits channel 1, FL1-A and channel 2, FL1-H"),
        (["FL1-A", "FL1-H"], ["CD4", "CD4"], "CD4", "'CD4' fits channel 1, FL1-A .labelled CD4. and channel 2"),
    ],
)
def test_a_name_that_fits_two_channels_is_a_clash_with_a_way_out(names, labels, asked, message):
    file = made(names, labels)
    with pytest.raises(FileError, match=message):
        find_channel(file, asked)
    assert find_channel(file, "$P2") == 1


def test_without_a_panel_markers_are_dyes_called_by_their_labels():
    found = study_markers([made(["Time", "FSC-A", "FITC-A", "PE-A", "APC-A"], ["", "", "CD3", "PE-A", ""])], None, "same")
    assert found.names == ("CD3", "PE-A", "APC-A")
    assert found.positions == {"x/a.fcs": [2, 3, 4]}
    assert not found.state


def test_labels_that_say_the_same_of_two_channels_say_nothing():
    assert study_markers([made(["A1", "A2", "A3"], ["CD3", "CD3", "A1"])], None, "same").names == ("A1", "A2", "A3")


@pytest.mark.parametrize(
    ("names", "taken"),
    [(["V-A", "V-H", "V-W", "B-A", "B-H"], ("V-A", "B-A")), (["FL1-H", "FL2-H", "FL3-H", "FL1-A"], ("FL1-H", "FL2-H", "FL3-H"))],
)
def test_a_pulse_is_measured_once(names, taken):
    found = study_markers([made(names)], None, "common")
    assert found.names == taken
    assert "omitted unless a panel names them" in found.notes[0]


def test_markers_that_not_all_files_have_are_left_out_with_a_note_or_refused():
    one = made(["FITC-A", "PE-A", "APC-A"], ["CD3", "CD4", "CD8"], "x/a.fcs")
    other = made(["APC-A", "FITC-A"], ["CD8", "CD3"], "x/b.fcs")
    found = study_markers([one, other], None, "common")
    assert found.names == ("CD3", "CD8")
    assert found.positions == {"x/a.fcs": [0, 2], "x/b.fcs": [1, 0]}
    assert found.notes == ("omitted, not in all files: CD4 (not in b.fcs)",)
    with pytest.raises(FileError, match=r"x/b\.fcs.*'CD4'.*x/a\.fcs.*channels='common'"):
        study_markers([one, other], None, "same")


def test_files_with_nothing_in_common_are_refused():
    files = [made(["A1", "A2"], path="a"), made(["B1"], path="b")]
    with pytest.raises(FileError, match="b: no marker is in all files, and it shares the fewest of A1, A2, B1"):
        study_markers(files, None, "common")
    stranger = made(["C1", "C2", "C3"], path="c")  # has most, and shares none
    with pytest.raises(FileError, match="c: no marker is in all files"):
        study_markers([files[0], stranger, made(["A1", "A2"], path="d")], None, "common")


@pytest.mark.parametrize("order", [1, -1])
def test_files_without_labels_are_matched_by_the_names_of_channels(order):
    files = [made(["FITC-A", "PE-A"], ["CD3", ""], "a"), made(["PE-A", "FITC-A"], None, "b")][::order]
    found = study_markers(files, None, "same")
    assert sorted(found.names) == ["CD3", "PE-A"]
    place = found.names.index("CD3")
    assert (found.positions["a"][place], found.positions["b"][place]) == (0, 1)


def test_a_channel_that_is_another_marker_in_another_file_is_no_marker_of_both():
    one, other = made(["FITC-A", "PE-A"], ["CD3", "CD4"], "a"), made(["FITC-A", "PE-A"], ["CD3", "CD8"], "b")
    assert study_markers([one, other], None, "common").names == ("CD3",)
    bare = made(["FITC-A", "PE-A"], None, "c")
    found = study_markers([bare, one, other], None, "common")
    assert found.names == ("CD3",)
    assert any("omitted, because PE-A is CD4 in a and CD8 in b" in note for note in found.notes)
    with pytest.raises(FileError, match="a marker must be the same in all files, and PE-A is CD4 in a and CD8 in b"):
        study_markers([bare, one, other], None, "same")


PANEL = {"fcs_colname": ["fitc-a", "HLA DR"], "antigen": ["CD3e", "DR"], "marker_class": ["type", "state"], "cofactor": ["5", None]}


def test_a_panel_says_which_markers_there_are_and_how_they_are_called():
    found = study_markers([FILE], read_panel(PANEL), "same")
    assert (found.names, found.positions["x/a.fcs"]) == (("CD3e", "DR"), [1, 3])
    assert found.state == {"DR"}
    assert found.transforms == {"CD3e": "asinh:5"}


def test_a_marker_of_the_panel_is_found_by_its_name_where_the_channel_is_another():
    other = made(["BV421-A", "PE-A"], ["CD3e", "DR"], "b")
    assert study_markers([FILE, other], read_panel(PANEL), "same").positions["b"] == [0, 1]


def test_a_channel_of_the_panel_that_no_file_has_is_refused_with_the_nearest():
    with pytest.raises(
        FileError, match=r"panel: the channel 'PE-B' is in none of the files \(did you mean 'PE-A'\?\); set its marker_class"
    ):
        study_markers([FILE], read_panel({"channel": ["PE-B"]}), "common")


def test_two_markers_of_a_panel_that_are_one_channel_are_refused():
    with pytest.raises(FileError, match=r"'CD3' and 'x' are both channel 2, FITC-A"):
        study_markers([FILE], read_panel({"channel": ["CD3", "FITC-A"], "antigen": ["CD3", "x"]}), "common")


def test_a_panel_that_contradicts_the_labels_is_followed_with_a_note():
    panel = read_panel({"channel": ["A1", "A2"], "antigen": ["CD4", "CD8"]})
    found = study_markers([made(["A1", "A2"], ["CD8", "CD4"])], panel, "same")
    assert found.positions["x/a.fcs"] == [0, 1]
    assert found.notes[0] == "A1 is CD4 by the panel and CD8 by its label in a.fcs; the panel was followed"


MASS = ["Time", "Event_length", "Ce140Di", "(Nd142)Dd", "Ir191Di", "Center"]


def test_mass_cytometry_is_known_by_isotopes_without_scatter():
    assert made(MASS).is_mass
    assert made(["Time", "1", "2", "3"], ["", "140Ce_CD3", "142Nd", "Sm152Di_CD4"]).is_mass
    assert not made([*MASS, "FSC-A"]).is_mass
    assert not made(["Time", "CD111", "Cd3-A", "PE-A", "IR700-A"]).is_mass
    assert not made(MASS, is_fcs=False).is_mass


def test_of_mass_cytometry_isotopes_are_the_markers():
    assert study_markers([made(MASS)], None, "common").names == ("Ce140Di", "(Nd142)Dd", "Ir191Di")
