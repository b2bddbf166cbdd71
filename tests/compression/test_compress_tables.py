"""Tables of `reduset.io`: channels of FCS files are on estimated scales, and the printed result names them."""

import numpy as np
import pytest

from lab_files import lab_events, write_sample
from reduset import compress, io, sketch
from reduset.cli.entry import run
from reduset.model import Model

LOGICLE = "FCS: logicle transform, estimated from all events, of 3 fluorescence channels"


@pytest.fixture
def events(tmp_path):
    return write_sample(tmp_path / "events.fcs", lab_events(900))


def test_channels_of_a_table_are_transformed_as_by_the_command(events, tmp_path):
    table = io.read(events)
    before = table.values.copy()
    small = compress(table, size=20, rng=0)
    same = compress(io.read(events, transform="auto").values, size=20, rng=0)
    np.testing.assert_array_equal(small.mean.atoms, same.mean.atoms)
    np.testing.assert_array_equal(table.values, before)
    assert run(["compress", str(events), "-m", "20", "--weights", "simplex", "-o", str(tmp_path / "small.npz"), "-q"]) == 0
    np.testing.assert_allclose(Model.load(tmp_path / "small.npz").mean.atoms, small.mean.atoms)


def test_the_printed_result_names_the_transform(events):
    table = io.read(events)
    small = compress(table, size=20, rng=0)
    assert [note for note in small.notes if note.startswith(LOGICLE)]
    assert small.notes[:-1] == sketch(table, 20, rng=0).notes[:-1]
    assert "note        atoms, the bandwidth and the error are of the transformed values" in str(small)
    assert small.at(5).notes == small.notes


@pytest.mark.parametrize("transform", ["none", "asinh:150"])
def test_a_table_that_was_read_with_a_transform_is_unchanged(transform, events):
    table = io.read(events, transform=transform)
    small = compress(table, size=20, rng=0)
    np.testing.assert_array_equal(small.mean.atoms, compress(table.values, size=20, rng=0).mean.atoms)
    assert "logicle" not in str(small)
    assert small.notes == table.notes


def test_arrays_have_no_notes():
    small = compress(np.random.default_rng(0).normal(size=(200, 2)), size=10, rng=0)
    assert small.notes == ()
    assert "note" not in str(small)
