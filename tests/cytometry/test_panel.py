"""Panels as labs write them, and what is wrong with some."""

import pytest

from reduset.cytometry import PanelMarker, read_panel
from reduset.io import FileError


def test_the_panel_of_catalyst_is_read_as_it_is(tmp_path):
    path = tmp_path / "panel.csv"
    path.write_text("fcs_colname,antigen,marker_class\nCD3(110:114)Dd,CD3,type\nTime,Time,none\npS6(Yb172)Dd,pS6,state\n")
    panel = read_panel(path)
    assert panel.source == str(path)
    assert panel.markers == (PanelMarker("CD3", "CD3(110:114)Dd", "type"), PanelMarker("pS6", "pS6(Yb172)Dd", "state"))


@pytest.mark.covering_cases
@pytest.mark.parametrize("channel", ["fcs_colname", "Channel", "FCS name", "name"])
@pytest.mark.parametrize("marker", ["antigen", "Marker", "desc", "target"])
def test_usual_spellings_of_columns_are_known(channel, marker):
    panel = read_panel({channel: ["FITC-A", "PE-A"], marker: ["CD3", None], "Class": ["Lineage", "functional"]})
    assert panel.markers == (PanelMarker("CD3", "FITC-A", "type"), PanelMarker("PE-A", "PE-A", "state"))


def test_without_classes_all_markers_are_type_and_an_empty_class_is_none():
    assert [marker.kind for marker in read_panel({"channel": ["a", "b"]}).markers] == ["type", "type"]
    assert [marker.name for marker in read_panel({"channel": ["a", "b"], "class": ["type", None]}).markers] == ["a"]


def test_scales_of_channels_are_taken_from_their_columns():
    rows = {
        "fcs_colname": list("abcdef"),
        "transform": [None, "asinh", "logicle", "none", "logicle:W=1", "auto"],
        "cofactor": ["5", "150", None, None, None, None],
    }
    scales = [marker.transform for marker in read_panel(rows).markers]
    assert scales == ["asinh:5", "asinh:150", "logicle", "none", "logicle:W=1", None]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"antigen": ["CD3"]}, r"panel: needs a column 'fcs_colname' \(or channel, .*\); it has antigen"),
        ({"channel": ["a"], "class": ["tpye"]}, r"got 'tpye' in row 1 \(did you mean 'type'\?\)"),
        ({"channel": ["a", "b"], "class": ["none", "none"]}, "no channel is used"),
        ({"channel": ["FITC-A", "fitc a"]}, "each channel .*got 'FITC-A' and 'fitc a'"),
        ({"channel": ["a", "b"], "antigen": ["CD3", "CD3"]}, "each marker .*got 'CD3' twice"),
        ({"channel": ["a"], "cofactor": ["big"]}, "row 1: transform 'asinh:big' needs numbers"),
        ({"channel": ["a"], "transform": ["squash"]}, "row 1: transform must be"),
        ({"channel": ["a", None], "antigen": ["b", None], "class": ["type", "type"]}, "row 2 names neither a channel nor a marker"),
    ],
)
def test_panels_that_contradict_themselves_are_refused_with_the_row(columns, message):
    with pytest.raises(FileError, match=message):
        read_panel(columns)
