"""What a test of drift says in words: the verdict first, and nothing that its figures do not say."""

import numpy as np
import pytest

from drift_cases import as_told, changed, result, rows
from reduset._messages import printable
from reduset.drift import words


def test_drift_is_told_first_then_how_sure_the_columns_and_the_places():
    found = result()
    head, *lines = str(found).split("\n  ")
    assert head == "DRIFT: 600 new rows are not like the reference, compared with 600 rows of it"
    told = {line[:11].strip(): line[11:] for line in lines}
    assert told["how sure"] == "chance alone shows as much in 5 of 1,000 such samples at most (p = 0.005)"
    changes = {each.name: each for each in found.columns()}
    assert f"few: {words.direction(changes['few'])}" in told["columns"]
    assert "c3" not in told["columns"]
    region, places = found.where()[0], [line[11:] for line in lines if line.startswith("where")]
    assert len(places) == len(found.where())
    assert places[0].startswith(f"gained {100 * region.change:.3g} % of all rows ({100 * region.before:.3g} % before")
    assert f"height {region.centre[0]:,.2f} ± {region.extent[0]:.2g}" in places[0]
    assert f"{100 * found.detectable_share:.3g} % of the rows gone elsewhere" in told["seen"]
    assert f"shifted by {found.detectable_shift:.2g} standard deviations" in told["seen"]


def test_no_drift_is_told_with_what_could_have_been_seen_and_no_places():
    found = result(rows(seed=7))
    lines = words.of_result(found)
    assert not found.drift
    assert lines[0].startswith("no drift found: 600 new rows may well be of the law of the reference")
    assert not any(line.startswith("where") for line in lines)
    assert lines[-1].endswith("would have been found 8 times in 10")


@pytest.mark.parametrize(
    ("p_value", "told"),
    [
        (1.0, "100 of 100"),
        (0.762, "76 of 100"),
        (0.05, "5 of 100"),
        (0.047, "47 of 1,000"),
        (0.001, "1 of 1,000"),
        (0.00032, "32 of 100,000"),
        (2e-6, "2 of 1,000,000"),
        (1e-40, "fewer than 1 of 1,000,000"),
    ],
)
def test_a_p_value_is_told_as_cases(p_value, told):
    assert words.often(p_value) == told


def test_a_p_value_that_no_draw_was_beyond_is_told_as_a_bound():
    found = result()
    assert found.p_value == 1 / 200
    assert words.certainty(found).endswith("such samples at most")
    assert words.certainty(as_told(found, p_value=0.01)).endswith("1 of 100 such samples")
    assert words.certainty(as_told(found, p_value=1e-9)).endswith("fewer than 1 of 1,000,000 such samples")


@pytest.mark.parametrize(
    ("centre", "extent", "told"),
    [(100003.0456, 0.213, "100,003.05 ± 0.21"), (3.04, 12.0, "3 ± 12"), (0.5, 0.0, "0.5"), (1e-9, 2e-10, "1e-09 ± 2e-10")],
)
def test_a_place_has_the_digits_that_its_reach_bears(centre, extent, told):
    assert words.between(centre, extent) == told


def test_the_distance_is_compared_with_chance_as_it_was_seen():
    found = result()
    drawn = words.distances_by_chance(found)
    assert np.quantile(np.square(drawn), 0.95) == pytest.approx(found.chance**2)
    assert found.distance >= found.without_noise
    assert f"{found.distance:.2g}, from 0 (alike)" in words.apart(found)
    assert "without noise" in words.apart(found)
    assert words.apart(as_told(found, chance=2.0)).endswith("it is not the bulk of the rows that moved")


def test_names_of_others_cannot_fake_a_line_or_fill_the_screen():
    names = ("height\n  how sure   not at all", "\x1b[2J" + "long" * 40, "few", "c3")
    found = result(names=names)
    text = str(found)
    assert "\x1b" not in text
    assert "\n  how sure   not" not in text
    assert printable(names[0]) in text
    assert max(map(len, text.splitlines())) < 400
    assert "long" * 20 not in text


def test_at_most_five_columns_and_places_are_told():
    found = result()
    column = found.columns()[0]
    told = words.columns_told([column] * 7, 0.05, True)
    assert told.count(words.direction(column)) == 5
    assert told.endswith("and 2 more")
    assert words.columns_told([], 0.05, False) == "none changed alone"
    assert "how they go together" in words.columns_told([], 0.05, True)
    assert words.columns_told([column], 0.05, False).startswith("taken alone, ")


def test_what_cannot_be_seen_is_said():
    found = result(changed(n=4), alpha=0.05)
    told = words.seen(found)
    assert "would have been found" in told or "so few rows" in told
    vars(found)["detectable_share"] = float("inf")  # as it is kept once it was computed
    vars(found)["detectable_shift"] = None
    assert words.seen(found) == "so few rows would hardly show any change; test more of them"
