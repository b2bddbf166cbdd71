"""FCS files that are written: read back by our own reader and by flowio they hold what was given."""

import flowio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reduset import io
from reduset.io.fcs_text import read_head

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ODD = st.sampled_from(["CD3/CD28", "/CD3", "CD3/", "//", "a|b\\c", "CD3ε", "免疫", "", " ", "$PAR", "|/\\\f", "2,3"])


def events(count=50, columns=3, seed=0):
    return np.random.default_rng(seed).normal(scale=1e4, size=(count, columns)).astype(np.float32)


def every(path, **options):
    return io.read(path, columns=[channel.name for channel in read_head(str(path)).channels], **options)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), count=st.integers(1, 20), columns=st.integers(1, 6), seed=st.integers(0, 99))
def test_what_is_read_back_is_what_was_written(tmp_path_factory, data, count, columns, seed):
    path, values = tmp_path_factory.mktemp("fcs") / "t.fcs", events(count, columns, seed)
    name = (TEXTS | ODD).map(lambda text: text.replace(",", ";").strip()).filter(lambda text: text.strip("$ "))  # flowio drops "$"
    names = data.draw(st.lists(name, min_size=columns, max_size=columns, unique=True))
    labels = data.draw(st.lists(TEXTS | ODD, min_size=columns, max_size=columns))
    source = data.draw(TEXTS | ODD)
    io.write_fcs(path, values, names, labels, {"SOURCE": source, "$CYT": "A/B"})
    head = read_head(str(path))
    assert [channel.name for channel in head.channels] == names
    assert [channel.label for channel in head.channels] == [label.strip() for label in labels]
    assert (head.text.get("source", ""), head.text["cyt"]) == (source.strip(), "A/B")
    assert head.notes == []
    np.testing.assert_array_equal(every(path, key="events").values, values)
    other = flowio.FlowData(str(path))
    np.testing.assert_array_equal(other.as_array(preprocess=False), values)
    assert other.pnn_labels == [name.replace("$", "") for name in names]
    assert other.pns_labels == [label.strip().replace("$", "") for label in labels]
    assert all(channel.range > column.max() for channel, column in zip(head.channels, values.T, strict=True))


def test_more_rows_than_a_block_are_written_in_their_order(tmp_path):
    values = events(200_001, 2)
    io.write_fcs(tmp_path / "t.fcs", values.astype(np.float64), ["a", "b"])
    np.testing.assert_array_equal(io.read(tmp_path / "t.fcs").values, values)


def test_weights_are_a_channel_of_their_own(tmp_path):
    weights = np.linspace(-0.5, 1, 50)
    io.write_fcs(tmp_path / "t.fcs", events(), ["a", "b", "weight"], ["CD4", "", "x"], weights=weights)
    table = io.read(tmp_path / "t.fcs", columns=["CD4", "b", "weight"], weight_column="sample_weight")
    np.testing.assert_array_equal(table.values, events())
    np.testing.assert_allclose(table.weights, weights, rtol=1e-7)


def test_a_matrix_among_the_keywords_compensates_what_is_read(tmp_path):
    pure, spill = events(), np.array([[1, 0.2], [0.05, 1]])
    mixed = np.column_stack([pure[:, 0], pure[:, 1:] @ spill])
    io.write_fcs(tmp_path / "t.fcs", mixed, ["a", "b", "c"], keywords={"$SPILLOVER": "2,b,c,1,0.2,0.05,1"})
    np.testing.assert_allclose(io.read(tmp_path / "t.fcs").values, pure, rtol=1e-4, atol=0.1)


def test_ranges_are_those_that_are_given(tmp_path):
    io.write_fcs(tmp_path / "t.fcs", [[1.5, -2.0], [3.0, -1.0]], ["a", "b"], keywords={"$p1r": 262144, "GONE": "", "NOT": None})
    head = read_head(str(tmp_path / "t.fcs"))
    assert [channel.range for channel in head.channels] == [262144, 2]
    assert not {"gone", "not"} & head.text.keys()
    assert flowio.FlowData(str(tmp_path / "t.fcs")).pnr_values == [262144.0, 2.0]


def test_files_beyond_the_digits_of_the_header_are_right(tmp_path):
    row = np.arange(500, dtype=np.float32)
    values = np.broadcast_to(row, (50_001, 500))
    path = tmp_path / "t.fcs"
    io.write_fcs(path, values, [f"c{n}" for n in range(500)])
    with open(path, "rb") as stream:
        assert stream.read(58)[26:42] == b"       0       0"
    assert path.stat().st_size > 99_999_999
    for batch in io.batches(path, columns=["c0", "c499"], rows=20_000):
        np.testing.assert_array_equal(batch.values, np.broadcast_to([0, 499], (len(batch), 2)))
    other = flowio.FlowData(str(path), only_text=True)
    assert (other.event_count, other.channel_count) == (50_001, 500)
    assert int(other.text["enddata"]) == path.stat().st_size - 9


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"values": np.ones(3)}, r"values .*got float64 of shape \(3,\)"),
        ({"values": np.ones((0, 2))}, r"values .*got float64 of shape \(0, 2\)"),
        ({"values": [["a", "b"]]}, r"values must be a 2-D array of numbers"),
        ({"values": [[1, np.nan]]}, "values .*got nan in channel 'b'"),
        ({"values": [[1e39, 1]]}, "values .*got inf in channel 'a'"),
        ({"channels": ["a"]}, r"channels .*got \['a'\]"),
        ({"channels": "ab"}, r"channels must be 2 texts"),
        ({"channels": ["a", " a"]}, "channels .*got 'a' twice"),
        ({"channels": ["a", "b,c"]}, "channels .*got 'b,c'"),
        ({"channels": ["a", ""]}, "channels .*got ''"),
        ({"channels": ["a", "\ud800"]}, r"must be text that can be written as UTF-8"),
        ({"labels": ["a"]}, r"labels must be 2 texts"),
        ({"labels": ["/|\\", "x\f\x1ey!#~`"]}, r"must leave one of .* unused"),
        ({"keywords": {"$P1N": "c"}}, r"keywords must .*'\$P1N'"),
        ({"keywords": {"begindata": "7"}}, r"keywords must not have 'begindata'"),
        ({"keywords": {"$P3R": "7"}}, r"keywords: '\$P3R' .*got '7'"),
        ({"keywords": {"$P1R": "0"}}, r"keywords: '\$P1R' must be a number above 0"),
        ({"keywords": {"a": 1, "$A": 2}}, r"keywords .*got '\$A' twice"),
        ({"keywords": {"ä": 1}}, "keywords .*got 'ä'"),
        ({"keywords": {"": 1}}, "keywords .*got ''"),
        ({"weights": [1.0, 2.0]}, r"weights must have shape \(1,\)"),
    ],
    ids=str,
)
def test_what_cannot_be_written_is_refused_and_nothing_is_left(tmp_path, changed, message):
    given = {"values": np.ones((1, 2)), "channels": ["a", "b"]} | changed
    with pytest.raises(ValueError, match=message) as caught:
        io.write_fcs(tmp_path / "t.fcs", **given)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(io.FileError, match=r"t\.fcs: cannot be written, for there is no folder"):
        io.write_fcs(tmp_path / "no" / "t.fcs", events(), ["a", "b", "c"])
