"""transform="auto": channels of FCS files on the scales that a cohort has, other formats unchanged."""

import numpy as np
import pytest

from io_cases import write_fcs
from lab_files import write_sample
from reduset import io, sketch
from reduset.cytometry import read_cohort

DYES = ("FITC-A", "PE-A", "APC-A")
MASS = ("Time", "Event_length", "Ce140Di", "Nd142Di", "Ir191Di", "Viability")


def test_the_scales_are_those_of_a_cohort_of_the_same_files(tmp_path):
    paths = [write_sample(tmp_path / f"a{'b' * k}.fcs") for k in range(2)]
    cohort = read_cohort(paths, clean=())
    table = io.read(paths, transform="auto")
    assert table.columns == DYES
    assert list(table.scales.values()) == list(cohort.scales.values())
    assert all(scale.startswith("logicle:T=262144,W=") for scale in table.scales.values())
    np.testing.assert_allclose(table.values, np.concatenate(cohort.cells), atol=1e-6)
    assert (
        "FCS: logicle transform, estimated from all events, of 3 fluorescence channels; switched off by transform none"
        in table.notes
    )


def test_none_and_nothing_said_leave_values_as_they_are(tmp_path):
    path = write_sample(tmp_path / "a.fcs")
    plain = io.read(path)
    assert plain.scales == {}
    assert np.abs(plain.values).max() > 1000
    np.testing.assert_array_equal(io.read(path, transform="none").values, plain.values)
    np.testing.assert_array_equal(io.read(path, transform={"PE-A": "none"}).values, plain.values)


def test_other_formats_have_no_scale_by_default(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(80.0).reshape(40, 2))
    table = io.read(tmp_path / "rows.npy", transform="auto")
    assert table.scales == {}
    np.testing.assert_array_equal(table.values, np.load(tmp_path / "rows.npy"))
    both = [write_fcs(tmp_path / "a.fcs", np.arange(80.0).reshape(40, 2), ["x0", "x1"]), tmp_path / "rows.npy"]
    assert io.read(both, transform="auto").scales == {}


def test_mass_channels_have_asinh_and_others_are_not_read(tmp_path):
    rng = np.random.default_rng(0)
    path = write_fcs(tmp_path / "mass.fcs", rng.lognormal(2, 1, (60, len(MASS))), MASS)
    table = io.read(path, transform="auto")
    assert table.scales == dict.fromkeys(("Ce140Di", "Nd142Di", "Ir191Di"), "asinh:5")
    assert any("not named by an isotope: Viability" in note for note in table.notes)
    assert any("FCS: asinh:5 transform of 3 mass channels" in note for note in table.notes)


def test_time_and_scatter_that_are_named_are_unchanged(tmp_path):
    path = write_sample(tmp_path / "a.fcs")
    table = io.read(path, columns=["FSC-A", "Time", "CD3"], transform="auto")
    assert list(table.scales) == ["CD3"]
    np.testing.assert_array_equal(table.values[:, :2], io.read(path, columns=["FSC-A", "Time"]).values)
    assert any("unchanged: FSC-A, Time" in note for note in table.notes)


def test_a_pulse_is_read_once(tmp_path):
    names = ["FSC-A", "FITC-A", "FITC-H", "FITC-W", "PE-A"]
    path = write_fcs(tmp_path / "a.fcs", np.random.default_rng(0).normal(size=(40, 5)), names)
    table = io.read(path)
    assert table.columns == ("FITC-A", "PE-A")
    assert any("another measurement of the same pulse: FITC-H, FITC-W" in note for note in table.notes)
    named = io.read(path, columns=["FITC-H"], transform="asinh:5")
    assert named.scales == {"FITC-H": "asinh:5"}


def test_numbers_as_stored_have_no_scale(tmp_path):
    path = write_sample(tmp_path / "a.fcs")
    assert io.read(path, transform="auto", key="events").scales == {}


def test_bags_and_batches_have_the_scales_of_all_files(tmp_path):
    paths = [write_sample(tmp_path / f"{name}.fcs") for name in ("a", "bcd")]
    together = io.read(paths, transform="auto")
    bags = io.read_bags(paths, transform="auto")
    np.testing.assert_array_equal(np.concatenate([bag.values for bag in bags.values()]), together.values)
    parts = list(io.batches(paths, rows=150, transform="auto"))
    np.testing.assert_array_equal(np.concatenate([part.values for part in parts]), together.values)
    assert {scale for part in parts for scale in part.scales.items()} == set(together.scales.items())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_do_not_count(tmp_path, bad):
    path = write_sample(tmp_path / "a.fcs")
    events = io.read(path, columns=["FITC-A", "PE-A"], compensate=False).values.astype(float)
    other = events.copy()
    other[5, 0] = bad
    scales = [
        io.batches(write_fcs(tmp_path / "b.fcs", each, ["FITC-A", "PE-A"]), transform="auto").scales for each in (events, other)
    ]
    assert scales[0]["PE-A"] == scales[1]["PE-A"]
    assert scales[1]["FITC-A"].startswith("logicle:T=")


def test_a_sketch_of_a_table_has_transformed_distances_and_raw_rows(tmp_path):
    path = write_sample(tmp_path / "a.fcs")
    raw, scaled = io.read(path), io.read(path, transform="auto")
    small = sketch(raw, 40, rng=0)
    same = sketch(scaled, 40, rng=0)
    np.testing.assert_array_equal(small.indices, same.indices)
    np.testing.assert_array_equal(small.weights, same.weights)
    assert any(note.startswith("FCS: logicle transform") for note in small.notes)
    assert "FCS: logicle transform" in str(small)
    assert "are of the transformed values; kept rows have the values of the file" in str(small)
    np.testing.assert_array_equal(small.to_frame()[list(DYES)].to_numpy(), raw.values[small.indices])
    assert np.abs(raw.values).max() > 1000  # the table given stays as it was


def test_a_table_read_with_none_stays_linear(tmp_path):
    path = write_sample(tmp_path / "a.fcs")
    small = sketch(io.read(path, transform="none"), 40, rng=0)
    assert not any("FCS: logicle" in note for note in small.notes)
    np.testing.assert_array_equal(small.indices, sketch(io.read(path).values, 40, scales="robust", rng=0).indices)
