"""Cleaning: what each step takes, what it leaves, and that every event is counted once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cleaning_cases import RANGE, cells, events_of, read_events, shifted, timed
from io_cases import write_fcs
from reduset.cytometry.cleaning import STEPS, clean
from reduset.cytometry.events import (
    AREA,
    FORWARD,
    HEIGHT,
    SIDE,
    WIDTH,
    FileEvents,
    clock_of,
    is_width,
    lights,
    scatter_parts,
)


def test_events_with_a_number_that_is_none_are_taken():
    columns = cells(300, np.random.default_rng(0))
    columns["PE-A"][[3, 7]] = np.nan, np.inf
    columns["FSC-A"][9] = -np.inf
    found = clean(events_of(columns), ["non-finite"])
    assert np.flatnonzero(~found.keep).tolist() == [3, 7, 9]
    assert found.counted == {"non-finite": 3}


def test_a_channel_without_any_number_is_no_reason_to_take_all_events():
    columns = {**cells(300, np.random.default_rng(0)), "spare-A": np.full(300, np.nan)}
    found = clean(events_of(columns), ["non-finite"])
    assert found.keep.all()
    assert "spare-A" in found.notes[0]


def test_events_at_the_top_are_taken_and_those_at_the_floor_are_not():
    columns = timed(cells(1000, np.random.default_rng(0)), np.random.default_rng(1))
    columns["PE-A"][:5] = RANGE - 1
    columns["FSC-A"][5:9] = RANGE
    columns["FITC-A"][20:400] = 0.0
    columns["APC-A"][400:700] = -5000.0
    columns["Time"][700:] = RANGE
    found = clean(events_of(columns), ["margin"])
    assert np.flatnonzero(~found.keep).tolist() == list(range(9))
    assert not found.notes


def test_the_top_of_whole_numbers_is_one_below_their_range(tmp_path):
    rng = np.random.default_rng(0)
    stored = rng.integers(0, 900, (400, 2))
    stored[:3, 0] = 1023
    stored[3:6, 1] = 1022
    path = write_fcs(tmp_path / "old.fcs", stored, ["FSC-H", "FL1-H"], kind="I", ranges=[1024, 1024])
    found = clean(read_events(path), ["margin"])
    assert np.flatnonzero(~found.keep).tolist() == [0, 1, 2]


def test_many_events_at_the_top_are_a_population_and_stay():
    columns = cells(1000, np.random.default_rng(0))
    columns["PE-A"][:60] = RANGE - 1
    columns["APC-A"][50:60] = columns["APC-A"][500:520] = RANGE - 1
    found = clean(events_of(columns), ["margin"])
    assert found.counted["margin"] == 20
    assert found.keep[:60].all()
    assert "PE-A (6.0%)" in found.notes[0]
    assert "APC-A" not in found.notes[0]


def test_values_beyond_the_range_say_that_it_is_not_the_top():
    columns = cells(1000, np.random.default_rng(0))
    found = clean(events_of(columns, tops=np.array([np.inf] * 4 + [1024.0] * 4)), ["margin"])
    assert found.keep.all()
    assert "FITC-A" in found.notes[0]


def test_where_spillover_was_taken_out_the_values_before_it_tell_the_top():
    columns = cells(1000, np.random.default_rng(0))
    plain = events_of(columns)
    measured = plain.values.copy()
    measured[:7, 5] = RANGE - 1
    assert clean(plain, ["margin"]).keep.all()
    assert np.flatnonzero(~clean(events_of(columns, measured=measured), ["margin"]).keep).tolist() == list(range(7))


def test_planted_doublets_are_found_and_single_cells_left():
    events = events_of(cells(10_000, np.random.default_rng(0), doublets=500))
    found = clean(events, ["doublets"])
    assert (~found.keep[10_000:]).mean() > 0.9
    assert (~found.keep[:10_000]).mean() < 0.005
    assert not found.notes


@pytest.mark.parametrize(
    ("area", "height"),
    [("FSC-Area", "FSC-Height"), ("FSC A", "FSC H"), ("FS Area", "FS Height"), ("FS INT LIN", "FS PEAK LIN"), ("FSCA", "FSC")],
)
def test_doublets_are_found_by_whatever_area_and_height_are_called(area, height):
    columns = cells(3000, np.random.default_rng(0), doublets=150)
    renamed = {area: columns["FSC-A"], height: columns["FSC-H"], "PE-A": columns["PE-A"]}
    found = clean(events_of(renamed), ["doublets"])
    assert (~found.keep[3000:]).mean() > 0.8


@pytest.mark.parametrize("beside", [("FSC-A",), ("FSC-H",), ()])
def test_width_stands_for_area_over_height(beside):
    columns = cells(3000, np.random.default_rng(0), doublets=150)
    renamed = {name: columns[name] for name in beside} | {"FSC-W": 65536 * columns["FSC-A"] / columns["FSC-H"]}
    found = clean(events_of(renamed), ["doublets"])
    assert (~found.keep[3000:]).mean() > 0.8
    assert (~found.keep[:3000]).mean() < 0.02


def test_side_scatter_is_asked_where_forward_scatter_cannot_tell():
    rng = np.random.default_rng(0)
    columns = cells(5000, rng, doublets=250)
    columns["FSC-A"] = columns["FSC-H"] * np.exp(rng.normal(0, 0.6, 5250))
    found = clean(events_of(columns), ["doublets"])
    assert (~found.keep[5000:]).mean() > 0.6
    assert (~found.keep[:5000]).mean() < 0.02


def test_a_file_of_heights_alone_has_no_doublets_and_says_so():
    columns = cells(1000, np.random.default_rng(0))
    found = clean(events_of({name: columns[name] for name in ("FSC-H", "SSC-H", "PE-A")}), ["doublets"])
    assert found.keep.all()
    assert found.notes == ["doublets not searched for: forward scatter has no area; side scatter has no area"]


def test_more_doublets_than_can_be_stay_and_are_told():
    columns = cells(6000, np.random.default_rng(0), doublets=2500)
    found = clean(events_of(columns), ["doublets"])
    assert found.keep.all()
    assert "doublets kept" in found.notes[0]


def test_events_without_height_or_area_are_not_two_cells():
    columns = cells(3000, np.random.default_rng(0))
    columns["FSC-H"][:40] = 0.0
    columns["FSC-A"][40:80] = -100.0
    assert clean(events_of(columns), ["doublets"]).keep[:80].all()


def test_shuffled_events_have_no_drift():
    taken = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        taken.append(clean(events_of(timed(cells((6000, 12_000)[seed % 2], rng), rng)), ["time"]).counted["time"])
    assert np.mean(np.array(taken) > 0) <= 0.05


@pytest.mark.parametrize("dye", ["FITC-A", "PE-A", "APC-A", "PerCP-A"])
def test_a_dye_shifted_by_half_its_spread_in_a_tenth_of_the_run_is_found(dye):
    rng = np.random.default_rng(1)
    columns = timed(cells(20_000, rng), rng)
    rows = slice(8000, 10_000)
    columns[dye] = shifted(columns[dye], rows, 0.5)
    found = clean(events_of(columns), ["time"])
    assert (~found.keep[rows]).all()
    assert found.counted["time"] == 2000


def test_drift_that_does_not_matter_stays_however_many_events_show_it():
    rng = np.random.default_rng(1)
    columns = timed(cells(200_000, rng), rng)
    columns["PE-A"] = shifted(columns["PE-A"], slice(80_000, 100_000), 0.12)
    assert clean(events_of(columns), ["time"]).keep.all()


def test_a_signal_that_drifts_throughout_is_kept_and_told():
    rng = np.random.default_rng(1)
    columns = timed(cells(20_000, rng), rng)
    columns["PE-A"] = shifted(columns["PE-A"], slice(None), np.linspace(0, 3, 20_000))
    found = clean(events_of(columns), ["time"])
    assert found.keep.all()
    assert "drifts throughout (PE-A)" in found.notes[0]


def test_events_are_in_the_order_of_the_clock_not_of_the_file():
    rng = np.random.default_rng(1)
    columns = timed(cells(20_000, rng), rng)
    columns["PE-A"] = shifted(columns["PE-A"], slice(8000, 10_000), 1.0)
    order = rng.permutation(20_000)
    found = clean(events_of({name: column[order] for name, column in columns.items()}), ["time"])
    assert np.array_equal(np.sort(order[~found.keep]), np.arange(8000, 10_000))


def test_files_without_a_clock_say_so_and_short_ones_need_not():
    rng = np.random.default_rng(0)
    columns = cells(6000, rng)
    assert "no channel of time" in clean(events_of(columns), ["time"]).notes[0]
    assert "Time is constant" in clean(events_of({**columns, "Time": np.zeros(6000)}), ["time"]).notes[0]
    assert not clean(events_of(timed(cells(600, rng), rng)), ["time"]).notes


def test_the_same_events_are_cleaned_the_same_way():
    rng = np.random.default_rng(3)
    columns = timed(cells(8000, rng, doublets=300), rng)
    columns["PE-A"] = shifted(columns["PE-A"], slice(2000, 3000), 0.6)
    first, second = (clean(events_of(columns)) for _ in range(2))
    assert np.array_equal(first.keep, second.keep)
    assert first.counted == second.counted


def test_cleaning_what_is_clean_changes_next_to_nothing():
    rng = np.random.default_rng(3)
    columns = cells(20_000, rng, doublets=800)
    order = rng.permutation(20_800)
    columns = timed({name: column[order] for name, column in columns.items()}, rng)
    columns["APC-A"] = shifted(columns["APC-A"], slice(4000, 6000), 0.7)
    columns["PE-A"][100:200] = RANGE
    columns["PE-A"][300] = np.nan
    once = clean(events_of(columns))
    assert all(once.counted[step] for step in STEPS)
    again = clean(events_of({name: column[once.keep] for name, column in columns.items()}))
    assert again.keep.mean() > 0.995


VALUES = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([np.nan, np.inf, -np.inf, 0.0, RANGE, RANGE - 1]))


@settings(max_examples=60, deadline=None)
@given(
    arrays.arrays(np.float64, st.tuples(st.integers(0, 60), st.just(6)), elements=VALUES),
    st.lists(st.sampled_from(STEPS), max_size=6),
    st.integers(1, 20),
)
def test_every_event_is_kept_or_counted_once(values, steps, copies):
    values = np.tile(values, (copies, 1))
    names = ("FSC-A", "FSC-H", "SSC-W", "PE-A", "CD3", "Time")
    before = values.copy()
    found = clean(FileEvents("any.fcs", names, ("",) * 6, values, np.array([RANGE] * 4 + [np.inf, RANGE])), steps)
    assert int(found.keep.sum()) + sum(found.counted.values()) == len(values)
    assert list(found.counted) == list(dict.fromkeys(steps))
    assert np.array_equal(values, before, equal_nan=True)


def test_an_event_counts_at_the_first_step_that_takes_it():
    columns = cells(1000, np.random.default_rng(0))
    columns["PE-A"][0], columns["FSC-A"][0] = RANGE, np.nan
    assert clean(events_of(columns), ["margin", "non-finite"]).counted == {"margin": 1, "non-finite": 0}
    assert clean(events_of(columns), ["non-finite", "margin"]).counted == {"non-finite": 1, "margin": 0}


def test_steps_that_are_none_are_refused():
    events = events_of(cells(10, np.random.default_rng(0)))
    with pytest.raises(ValueError, match="steps must be one of 'doublets'"):
        clean(events, ["debris"])
    with pytest.raises(TypeError, match="a list of names"):
        clean(events, "time")


def test_channels_are_known_by_their_names():
    names = ("Time", "FSC PMT-A", "FSC-A", "FSC-H", "FSC-W", "SSC-B-A", "SSC-B-H", "FITC-A", "Yellow", "Event #", "HDR-T", "VL1-W")
    assert scatter_parts(names, FORWARD) == {AREA: 2, HEIGHT: 3, WIDTH: 4}
    assert scatter_parts(names, SIDE) == {AREA: 5, HEIGHT: 6}
    assert lights(names) == [1, 2, 3, 4, 5, 6, 7, 8, 11]
    assert [place for place, name in enumerate(names) if is_width(name)] == [4, 11]
    assert clock_of(("P1", "P2"), ("", "TIME")) == 1
    assert clock_of(("timer", "CD3"), ("", "")) is None


def test_events_whose_log_ratio_is_normal_are_kept_up_to_four_standard_deviations():
    """1.4826 · median |r| is the standard deviation of normal ratios: 0.003 % are above four of them, 0.35 % above four MADs."""
    rng = np.random.default_rng(0)
    height = np.exp(rng.normal(10.0, 0.3, 20_000))
    columns = {"FSC-H": height, "FSC-A": height * np.exp(rng.normal(0.5, 0.1, 20_000))}
    found = clean(events_of(columns), ["doublets"])
    assert int((~found.keep).sum()) <= 5
