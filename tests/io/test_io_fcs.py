"""Flow cytometry files: events of every kind and order, scales, compensation, labels, and files that break the standard."""

import os
import warnings
from pathlib import Path

import flowio
import numpy as np
import pytest

from io_cases import write_fcs
from reduset import io
from reduset.io.reader import ReadOptions
from reduset.io.registry import open_file

FOLDER = Path(os.environ.get("REDUSET_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "fcs"
REAL = sorted(FOLDER.iterdir()) if FOLDER.is_dir() else []
NAMES = ["FL0-A", "FL1-A", "FL2-A"]


def events(count=50, seed=0):
    return np.random.default_rng(seed).integers(0, 1000, (count, 3))


def every(path, **options):
    """All channels, time and scatter too."""
    return io.read(path, columns=list(open_file(str(path), ReadOptions()).kinds), **options)


def stored(path):
    return every(path, key="events").values


def by_flowio(path):
    """Events as flowio has them; it warns of, and gives none for, widths other than 8, 16 and 32 bits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        data = flowio.FlowData(str(path))
    return data if data.events is not None else None


@pytest.mark.covering_cases
@pytest.mark.parametrize("version", ["FCS2.0", "FCS3.0", "FCS3.1"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", ["I", "F", "D"])
def test_events_of_every_version_order_and_kind_are_those_of_flowio(tmp_path, version, order, kind):
    values = events() if kind == "I" else events() / 7
    path = write_fcs(tmp_path / "t.fcs", values, NAMES, kind=kind, order=order, version=version)
    table = io.read(path)
    assert table.columns == tuple(NAMES)
    assert table.values.dtype == (np.float32 if kind == "F" else np.float64)
    np.testing.assert_array_equal(table.values, values.astype(table.values.dtype))
    np.testing.assert_array_equal(table.values, by_flowio(path).as_array())


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("bits", [[8, 16, 32], [24, 24, 24], [16, 40, 64], [32, 8, 24]], ids=str)
def test_whole_numbers_may_have_any_number_of_bytes(tmp_path, order, bits):
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.integers(0, 1 << min(width, 50), 40) for width in bits])
    path = write_fcs(tmp_path / "t.fcs", values, NAMES, kind="I", order=order, bits=bits, ranges=[1 << width for width in bits])
    np.testing.assert_array_equal(stored(path), values)
    reference = by_flowio(path) if set(bits) <= {8, 16, 32} else None
    if reference is not None:
        np.testing.assert_array_equal(stored(path), reference.as_array(preprocess=False))


@pytest.mark.parametrize(("top", "mask"), [(1024, 1023), (1000, 1023), (1 << 16, 65535), (0, 65535)])
def test_bits_above_the_range_are_ignored(tmp_path, top, mask):
    values = np.full((3, 1), 0xFC07)
    path = write_fcs(tmp_path / "t.fcs", values, ["a"], kind="I", ranges=[top])
    np.testing.assert_array_equal(stored(path), values & mask)


def test_amplified_whole_numbers_gains_and_clocks_are_put_on_a_linear_scale_as_flowio_does(tmp_path):
    extra = {"$P2E": "4,0", "$P3E": "4,1", "$P1G": "4.0", "$P3G": "2", "$P4G": "0.01", "$TIMESTEP": "0.1"}
    values = np.column_stack([events(), np.arange(50)])
    path = write_fcs(tmp_path / "t.fcs", values, [*NAMES, "Time"], kind="I", ranges=[1024] * 4, extra=extra)
    table = every(path).values
    np.testing.assert_allclose(table, by_flowio(path).as_array(), rtol=1e-14)
    np.testing.assert_allclose(table[:, 0], values[:, 0] / 4)
    np.testing.assert_allclose(table[:, 1], 10 ** (4 * values[:, 1] / 1024))
    np.testing.assert_allclose(table[:, 3], np.arange(50) * 0.1)
    np.testing.assert_array_equal(stored(path), values)


def test_tops_are_the_largest_values_that_channels_can_hold_on_the_scale_of_what_is_read(tmp_path):
    extra = {"$P2E": "4,1", "$P3G": "2", "$P1S": "CD3"}
    path = write_fcs(tmp_path / "t.fcs", np.full((2, 3), 1023), NAMES, kind="I", ranges=[1024] * 3, extra=extra)
    source = open_file(str(path), ReadOptions())
    np.testing.assert_allclose(source.tops, every(path).values[0])
    np.testing.assert_allclose(open_file(str(path), ReadOptions(key="events")).tops, 1023)
    assert source.labels == ("CD3", "", "")
    assert not source.compensated
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES, ranges=[262144, 0, "1e39"])
    np.testing.assert_array_equal(open_file(str(path), ReadOptions()).tops, [262144, np.inf, 1e39])


def test_floating_point_events_are_linear_whatever_is_said_of_their_amplification(tmp_path):
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES, extra={"$P2E": "4,0"})
    table = io.read(path)
    np.testing.assert_array_equal(table.values, events())
    assert table.notes == ("$PnE of floating-point channels has no meaning and was not applied: FL1-A",)


SPILL = np.array([[1.0, 0.2], [0.05, 1.0]])


@pytest.mark.parametrize("key", ["$SPILLOVER", "SPILL"])
@pytest.mark.parametrize("columns", [None, ["FL2-A"], ["FL0-A"], ["FL2-A", "FL0-A", "FL1-A"]])
def test_compensation_solves_the_linear_system_of_the_matrix(tmp_path, key, columns):
    extra = {key: "2,FL1-A,FL2-A," + ",".join(map(str, SPILL.ravel()))}
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES, kind="D", extra=extra)
    expected = events().astype(float)
    expected[:, 1:] = np.linalg.solve(SPILL.T, expected[:, 1:].T).T
    places = [NAMES.index(name) for name in columns or NAMES]
    table = io.read(path, columns=columns)
    np.testing.assert_allclose(table.values, expected[:, places], rtol=1e-12)
    assert "compensated by its spillover matrix (2 channels)" in table.notes
    np.testing.assert_array_equal(io.read(path, columns=columns, compensate=False).values, events()[:, places])


def test_an_old_matrix_without_names_is_one_of_all_channels(tmp_path):
    whole = np.eye(3)
    whole[1, 2] = 0.25
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES, kind="D", extra={"$COMP": "3," + ",".join(map(str, whole.ravel()))})
    np.testing.assert_allclose(io.read(path).values @ whole, events(), rtol=1e-12)


@pytest.mark.parametrize(
    ("spill", "note"),
    [
        ("2,FL1-A,FL2-A,1,0,0,1", "is the identity"),
        ("2,Comp-A,Comp-B,1,0.5,0,1", "none of the channels"),
        ("x", "holds no numbers, got 'x': not compensated"),
        ("2,FL1-A,FL2-A", "holds no numbers"),
        ("2,FL1-A,FL2-A,,,,", "holds no numbers"),
    ],
)
def test_a_matrix_that_does_nothing_is_noted(tmp_path, spill, note):
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES, extra={"SPILL": spill})
    table = io.read(path)
    np.testing.assert_array_equal(table.values, events())
    assert note in table.notes[0]


@pytest.mark.parametrize(
    "spill", ["2,FL1-A,FL9-A,1,0.5,0,1", "2,FL1-A,FL2-A,1,1,1,1", "2,FL1-A,FL2-A,1,1", "x,1", "2,FL1-A,FL1-A,1,0.5,0,1"]
)
def test_a_matrix_that_cannot_be_applied_is_refused_with_the_way_out(tmp_path, spill):
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES, extra={"SPILL": spill})
    with pytest.raises(io.FileError, match=r"t\.fcs.*compensate=False"):
        io.read(path)
    np.testing.assert_array_equal(io.read(path, compensate=False).values, events())


@pytest.mark.parametrize("order", ["<", ">"])
def test_channels_of_one_file_may_hold_numbers_of_different_kinds(tmp_path, order):
    single, double, whole = events()[:, 0].astype(np.float32) / 7, events()[:, 1] / 7, events()[:, 2]
    bits = np.column_stack([single.view(np.uint32).astype(object), double.view(np.uint64).astype(object), whole])
    extra = {"$P1DATATYPE": "F", "$P2DATATYPE": "d", "$P3E": "4,1"}
    sizes = {"bits": [32, 64, 16], "ranges": [1000, 1000, 1024], "order": order}
    path = write_fcs(tmp_path / "t.fcs", bits, NAMES, kind="I", version="FCS3.2", extra=extra, **sizes)
    table = io.read(path)
    np.testing.assert_array_equal(table.values[:, :2], np.column_stack([single, double]))
    np.testing.assert_allclose(table.values[:, 2], 10 ** (4 * whole / 1024))
    assert io.read(path, columns=["FL0-A"]).values.dtype == np.float32
    assert table.notes == ()


@pytest.mark.parametrize("version", ["FCS3.1", "FCS3.2"])
def test_list_mode_goes_without_saying_from_the_version_that_has_no_other(tmp_path, version):
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES, version=version)
    path.write_bytes(path.read_bytes().replace(b"|$MODE|L|", b"|OTHER|L|", 1))
    if version == "FCS3.2":
        np.testing.assert_array_equal(io.read(path).values, events())
    else:
        with pytest.raises(io.FileError, match=r"t\.fcs: lacks the keyword \$MODE"):
            io.read(path)


@pytest.mark.parametrize(("channels", "how"), [("CD4,CD8", "labels"), ("2,3", "numbers")])
def test_a_matrix_may_name_its_channels_by_labels_or_numbers(tmp_path, channels, how):
    extra = {"$P2S": "CD4", "$P3S": "CD8", "$SPILLOVER": f"2,{channels}," + ",".join(map(str, SPILL.ravel()))}
    table = io.read(write_fcs(tmp_path / "t.fcs", events(), NAMES, kind="D", extra=extra))
    np.testing.assert_allclose(table.values[:, 1:] @ SPILL, events()[:, 1:], rtol=1e-12)
    assert table.notes[-1] == f"compensated by its spillover matrix (2 channels, named by {how})"


def test_a_matrix_that_names_labels_of_two_channels_is_not_applied(tmp_path):
    extra = {"$P2S": "CD4", "$P3S": "CD4", "$SPILLOVER": "2,CD4,CD8,1,0.5,0,1"}
    table = io.read(write_fcs(tmp_path / "t.fcs", events(), NAMES, extra=extra))
    np.testing.assert_array_equal(table.values, events())
    assert "none of the channels of its spillover matrix ($SPILLOVER) is there: not compensated" in table.notes


@pytest.mark.parametrize("share", ["28.40", "0.00", "?"])
def test_percentages_of_spillover_are_noted_and_not_applied(tmp_path, share):
    table = io.read(write_fcs(tmp_path / "t.fcs", events(), NAMES, version="FCS2.0", extra={"$DFC1TO2": share}))
    np.testing.assert_array_equal(table.values, events())
    said = "its percentages of spillover ($DFCiTOj) may have been applied by the instrument: not compensated"
    assert table.notes == ((said,) if share == "28.40" else ())


def test_scatter_and_counters_are_known_in_the_spelling_of_other_makers(tmp_path):
    names = ["FS INT LIN", "SS INT LIN", "HDR-T", "HDR-CE", "Width", "FL1 INT LOG", "FSP27", "Widthless"]
    path = write_fcs(tmp_path / "t.fcs", np.ones((5, 8)), names)
    table = io.read(path)
    assert table.columns == ("FL1 INT LOG", "FSP27", "Widthless")
    assert table.notes == (
        "omitted by default, time or scatter: FS INT LIN, SS INT LIN, HDR-T",
        "omitted by default, counted by the instrument: HDR-CE, Width",
    )


def test_channels_are_found_by_their_labels(tmp_path):
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES, extra={"$P2S": "CD4", "$P3S": "CD8"})
    table = io.read(path, columns=["CD8", "FL0-A"])
    assert table.columns == ("CD8", "FL0-A")
    np.testing.assert_array_equal(table.values, events()[:, [2, 0]])
    assert table.notes == ("labels: FL1-A is CD4, FL2-A is CD8",)
    with pytest.raises(io.FileError, match=r"no column 'cd4' .did you mean 'CD4'"):
        io.read(path, columns=["cd4"])
    with pytest.raises(io.FileError, match=r"'CD4' is another name of column 'FL1-A'|'FL1-A' is another name"):
        io.read(path, columns=["FL1-A", "CD4"])


def test_channels_named_twice_are_kept_apart(tmp_path):
    path = write_fcs(tmp_path / "t.fcs", events(), ["a", "b", "a"])
    table = io.read(path)
    assert table.columns == ("a", "b", "a (2)")
    np.testing.assert_array_equal(table.values, events())


def test_empty_values_do_not_swallow_the_keywords_after_them(tmp_path):
    path = write_fcs(tmp_path / "t.fcs", events(), ["FL0-A", "FL1-A", ""], extra={"$P1S": "", "$P4N": "-"})
    data = path.read_bytes().replace(b"|$P3N||", b"|$P2S||", 1).replace(b"|$P4N|-|", b"|$P3N|Z|", 1)
    path.write_bytes(data)
    assert flowio.FlowData(str(path), only_text=True).pnn_labels != ["FL0-A", "FL1-A", "Z"]
    assert io.read(path).columns == ("FL0-A", "FL1-A", "Z")


def test_of_several_data_sets_the_first_is_read(tmp_path):
    one = write_fcs(tmp_path / "one.fcs", events(), NAMES, extra={"$NEXTDATA": "12345"})
    size = one.stat().st_size
    write_fcs(one, events(), NAMES, extra={"$NEXTDATA": f"{size:05d}"})
    two = write_fcs(tmp_path / "two.fcs", events(seed=1), NAMES)
    one.write_bytes(one.read_bytes() + two.read_bytes())
    table = io.read(one)
    np.testing.assert_array_equal(table.values, events())
    assert table.notes == ("it holds several data sets; the first was read, key='2' reads the next",)
    second = io.read(one, key="2")
    np.testing.assert_array_equal(second.values, events(seed=1))
    assert second.notes == ()
    np.testing.assert_array_equal(io.read(one, key="2/events").values, events(seed=1))
    with pytest.raises(io.FileError, match=r"one\.fcs: has 2 data sets, and none of number 3"):
        io.read(one, key="3")
    with pytest.raises(io.FileError, match=r"key='0'.*'2'"):
        io.read(one, key="0")


@pytest.mark.parametrize("said", [40, 60])
def test_a_wrong_number_of_events_is_noted(tmp_path, said):
    table = io.read(write_fcs(tmp_path / "t.fcs", events(), NAMES, total=said))
    np.testing.assert_array_equal(table.values, events())
    assert table.notes == (f"it states {said} events ($TOT), and holds 50",)


def test_an_end_that_is_one_byte_late_is_forgiven(tmp_path):
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES, version="FCS2.0")
    data = bytearray(path.read_bytes())
    data[34:42] = b"%8d" % (int(data[34:42]) + 1)
    path.write_bytes(data)
    np.testing.assert_array_equal(io.read(path).values, events())


def test_transforms_of_all_columns_leave_scatter_and_time_alone(tmp_path):
    values = np.column_stack([events(), np.arange(50)])
    path = write_fcs(tmp_path / "t.fcs", values, ["FSC-A", "FL1-A", "FL2-A", "Time"], kind="D")
    table = every(path, transform="asinh:150")
    np.testing.assert_array_equal(table.values[:, [0, 3]], values[:, [0, 3]])
    np.testing.assert_allclose(table.values[:, 1:3], np.arcsinh(values[:, 1:3] / 150))
    assert table.notes == ("asinh:150 of 2 columns; left as they are: FSC-A, Time",)
    np.testing.assert_allclose(every(path, transform={"Time": "asinh:5"}).values[:, 3], np.arcsinh(values[:, 3] / 5))


def test_time_and_scatter_are_left_out_of_distances_unless_they_are_named(tmp_path):
    names = ["FSC-A", "SSC-H", "FL1-A", "CD4", "Time"]
    values = np.random.default_rng(0).integers(0, 1000, (50, 5)) * np.array([200, 200, 1, 1, 1000])
    path = write_fcs(tmp_path / "t.fcs", values, names, kind="D")
    table = io.read(path, transform="asinh:150")
    assert table.columns == ("FL1-A", "CD4")
    np.testing.assert_allclose(table.values, np.arcsinh(values[:, 2:4] / 150))
    omitted = "omitted by default, time or scatter: FSC-A, SSC-H, Time"
    assert table.notes == (omitted, "asinh:150 of 2 columns")
    named = io.read(path, columns=["FSC-A", "CD4"])
    np.testing.assert_array_equal(named.values, values[:, [0, 3]])
    assert named.notes == ()
    assert [batch.columns for batch in io.batches(path)] == [("FL1-A", "CD4")]


def test_a_file_of_time_and_scatter_alone_says_how_to_read_it(tmp_path):
    path = write_fcs(tmp_path / "t.fcs", events()[:, :2], ["FSC-A", "Time"])
    with pytest.raises(io.FileError, match=r"holds nothing but time or scatter; to read it name its columns .*: FSC-A, Time"):
        io.read(path)


@pytest.mark.parametrize("left", [-1, -7, -100, -599, -601, 300, 58, 57, 20, 4])
def test_a_file_cut_short_anywhere_is_refused(tmp_path, left):
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES)
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(io.FileError, match=r"t\.fcs: .*(cut short|greater than file size)"):
        io.read(path)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"$MODE": "C"}, "holds histograms"),
        ({"$DATATYPE": "A"}, "holds events as text"),
        ({"$BYTEORD": "3,4,1,2"}, "in the order 3,4,1,2"),
        ({"$PAR": "0"}, "states 0 channels"),
        ({"$PAR": "x"}, "states x channels"),
        ({"$P1E": "x"}, r"\$P1E .*got 'x'"),
        ({"$P1G": "x"}, r"\$P1G .*got 'x'"),
        ({"$P1R": "x"}, r"\$P1R .*got 'x'"),
        ({"$BYTEORD": ""}, r"lacks the keyword \$BYTEORD"),
    ],
    ids=str,
)
def test_what_the_standard_forbids_is_refused(tmp_path, extra, message):
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES, extra=extra)
    with pytest.raises(io.FileError, match=message) as caught:
        io.read(path)
    assert "\n" not in str(caught.value)


def test_odd_widths_are_refused(tmp_path):
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES, kind="I", extra={"$P2B": "10"})
    with pytest.raises(io.FileError, match=r"\$P2B .*got 10 bits"):
        io.read(path)


def test_files_written_by_flowio_are_read(tmp_path):
    values = events() / 3
    with open(tmp_path / "t.fcs", "wb") as stream:
        spill = "2,FL1-A,FL2-A," + ",".join(map(str, SPILL.ravel()))
        flowio.create_fcs(stream, values.ravel().tolist(), NAMES, ["", "CD4", "CD8"], {"spillover": spill})
    table = io.read(tmp_path / "t.fcs")
    np.testing.assert_allclose(table.values[:, 1:].astype(float) @ SPILL, values[:, 1:], rtol=1e-5)
    assert io.read(tmp_path / "t.fcs", columns=["CD8", "CD4"]).columns == ("CD8", "CD4")


def with_header(path, start, stop):
    """The file with other places of the events in its header."""
    data = bytearray(path.read_bytes())
    data[26:42] = f"{start:>8}{stop:>8}".encode()
    path.write_bytes(data)
    return path


def data_at(path):
    data = path.read_bytes()
    return int(data[26:34]), int(data[34:42])


@pytest.mark.parametrize("version", ["FCS3.0", "FCS3.1"])
@pytest.mark.parametrize("blank", ["", "0", "x"])
def test_places_of_the_events_may_lack_in_the_header(tmp_path, version, blank):
    path = with_header(write_fcs(tmp_path / "t.fcs", events(), NAMES, version=version), blank, blank)
    table = io.read(path)
    np.testing.assert_array_equal(table.values, events())
    assert table.notes == ()


@pytest.mark.parametrize("said", ["", "0", "x"])
def test_places_of_the_events_may_lack_in_the_text(tmp_path, said):
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES)
    places = {"$BEGINDATA": said.rjust(8), "$ENDDATA": said.rjust(8)}
    np.testing.assert_array_equal(io.read(write_fcs(path, events(), NAMES, extra=places)).values, events())


@pytest.mark.parametrize("version", ["FCS2.0", "FCS3.0"])
def test_places_that_are_said_nowhere_are_asked_for(tmp_path, version):
    extra = {} if version == "FCS2.0" else {"$BEGINDATA": "        ", "$ENDDATA": "        "}
    path = with_header(write_fcs(tmp_path / "t.fcs", events(), NAMES, version=version, extra=extra), "", "")
    with pytest.raises(io.FileError, match=r"t\.fcs: does not say where its events are \(in its header, or by \$BEGINDATA"):
        io.read(path)


def test_where_header_and_text_disagree_the_one_with_room_for_the_events_is_followed(tmp_path):
    path = write_fcs(tmp_path / "t.fcs", events(), NAMES)
    start, stop = data_at(path)
    table = io.read(with_header(path, start + 12, stop))
    np.testing.assert_array_equal(table.values, events())
    header, text = f"its header states events in bytes {start + 12:,} to {stop:,}", f"its text {start:,} to {stop:,}"
    assert table.notes == (f"{header}, {text}, which was used",)
    for wrong in ("00000009", "99999999"):
        path = write_fcs(tmp_path / "t.fcs", events(), NAMES, extra={"$ENDDATA": wrong})
        table = io.read(path)
        np.testing.assert_array_equal(table.values, events())
        assert table.notes[0].startswith("its text states events in bytes")
        assert table.notes[0].endswith("which was used")


@pytest.mark.parametrize("step", ["fast", "nan", "-1", "0", "inf"])
def test_a_time_step_that_cannot_be_read_is_noted(tmp_path, step):
    values = np.column_stack([events(), np.arange(50)])
    path = write_fcs(tmp_path / "t.fcs", values, [*NAMES, "Time"], extra={"$TIMESTEP": step})
    table = io.read(path, columns=["FL1-A", "Time"])
    np.testing.assert_array_equal(table.values, values[:, [1, 3]])
    assert table.notes == (f"its $TIMESTEP must be a number of seconds, got {step!r}: Time is in ticks of its clock",)
    assert io.read(write_fcs(path, events(), NAMES, extra={"$TIMESTEP": step})).notes == ()


@pytest.mark.parametrize("total", ["", "many"])
def test_a_number_of_events_that_cannot_be_read_is_counted(tmp_path, total):
    table = io.read(write_fcs(tmp_path / "t.fcs", events(), NAMES, total=total))
    np.testing.assert_array_equal(table.values, events())


def test_a_dollar_within_a_value_stays(tmp_path):
    path = write_fcs(tmp_path / "t.fcs", events(), ["a$b", "FL1-A", "x||y"])
    assert io.read(path).columns == ("a$b", "FL1-A", "x|y")


def test_one_empty_matrix_does_not_stop_a_cohort(tmp_path):
    matrix = "2,FL1-A,FL2-A," + ",".join(map(str, SPILL.ravel()))
    paths = [
        write_fcs(tmp_path / f"{k}.fcs", events(seed=k), NAMES, extra={"$SPILLOVER": "2,FL1-A,FL2-A" if k == 1 else matrix})
        for k in range(3)
    ]
    bags = io.read_bags(paths)
    assert [len(bag) for bag in bags.values()] == [50, 50, 50]
    assert "holds no numbers" in bags["1"].notes[0]
    assert any(note.startswith(f"{paths[1]}: its spillover matrix ($SPILLOVER) holds no numbers") for note in io.read(paths).notes)


@pytest.mark.skipif(not REAL, reason="the folder of real files is not there")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_files_agree_with_flowio(path):
    reference = by_flowio(path)
    raw, linear = stored(path), every(path, compensate=False)
    head = flowio.FlowData(str(path), only_text=True)
    assert raw.shape == (head.event_count, head.channel_count)
    channels = {number - 1: channel for number, channel in head.channels.items()}
    if reference is not None:
        np.testing.assert_array_equal(raw, reference.as_array(preprocess=False))
        if reference.data_type == "I":
            np.testing.assert_allclose(linear.values, reference.as_array(), rtol=1e-12)
    for place, channel in channels.items():
        column, (decades, least) = raw[:, place].astype(float), channel["pne"]
        assert head.data_type != "I" or column.max() < channel["pnr"]
        if decades > 0 and head.data_type == "I":
            column = 10 ** (decades * column / channel["pnr"]) * least
        if channel["pnn"].lower() == "time":
            column *= float(head.text.get("timestep", 1))
        np.testing.assert_allclose(linear.values[:, place], column / channel["png"], rtol=1e-6)
    spill = head.text.get("spill")
    if spill is not None:
        cells = spill.split(",")
        count = int(cells[0])
        places = [linear.columns.index(name) for name in cells[1 : count + 1]]
        matrix = np.array(cells[count + 1 :], float).reshape(count, count)
        expected = np.linalg.solve(matrix.T, linear.values[:, places].T.astype(float)).T
        np.testing.assert_allclose(every(path).values[:, places], expected, rtol=1e-5, atol=1e-3)
    else:
        np.testing.assert_array_equal(every(path).values, linear.values)


@pytest.mark.skipif(not REAL, reason="the folder of real files is not there")
def test_the_real_files_hold_what_they_are_kept_for():
    tables = {path.name: every(path) for path in REAL}
    assert len(tables) == 8
    assert tables["0877408774.B08"].columns[5] == "FL1-A"  # after two empty values
    assert "compensated by its spillover matrix (4 channels)" in tables["FCS_3.0_Fortessa_PBS_Specimen_001_A1_A01.fcs"].notes
    assert {table.values.dtype.name for table in tables.values()} == {"float32", "float64"}
