"""What a test of drift says in words: the verdict first, and nothing that its figures do not say."""

import numpy as np
import pytest

import reduset.drift.result as words
from drift_cases import as_told, changed, result, rows
from reduset._messages import printable


def test_the_verdict_comes_first_then_p_value_distance_columns_and_regions():
    found = result()
    assert str(found).splitlines()[0] == "Drift detected (p ≤ 0.005): 600 new rows differ from the 600 rows of the reference."
    told = {row.label: row.lines for row in found.describe().rows}
    assert told["p-value"][0].startswith("0.005 at most, level 0.05, from 199 ")
    changes = {each.name: each for each in found.columns()}
    assert f"few: {words.direction(changes['few'])}" in told["columns"][0]
    assert "c3" not in told["columns"][0]
    region, places = found.where()[0], told["regions"]
    assert len(places) == len(found.where())
    assert places[0].startswith(f"gained {100 * region.change:.3g} % of all rows ({100 * region.before:.3g} % before")
    assert f"height {region.centre[0]:,.2f} ± {region.extent[0]:.2g}" in places[0]
    assert f"{100 * found.detectable_share:.3g} % of the rows" in told["power"][0]
    assert f"{found.detectable_shift:.2g} standard deviations" in told["power"][0]


def test_without_drift_the_power_of_the_test_is_told_and_no_regions():
    found = result(rows(seed=7))
    lines = list(found.describe().lines())
    assert not found.drift
    assert lines[0].startswith(f"No drift detected (p = {found.p_value:.2g}): 600 new rows")
    assert not any(line.strip().startswith("regions") for line in lines)
    assert "80 % to detect" in lines[-1]


def test_the_facts_of_a_result_are_its_attributes():
    found = result()
    facts = found.describe().facts()
    assert facts["p_value"] == found.p_value
    assert facts["interval"] == found.interval
    assert facts["detectable"] == {"share": found.detectable_share, "shift": found.detectable_shift}
    assert [column["name"] for column in facts["columns"]] == [column.name for column in found.columns()]
    assert len(facts["regions"]) == len(found.where())


def test_a_p_value_that_no_resample_exceeds_is_a_bound():
    found = result()
    assert found.p_value == 1 / 200
    assert words.p_value(found, True) == "≤ 0.005"
    assert words.p_value(as_told(found, p_value=0.01), True) == "= 0.01"
    assert words.p_value(as_told(found, p_value=1e-9), True) == "< 1e-06"


@pytest.mark.parametrize(
    ("centre", "extent", "told"),
    [(100003.0456, 0.213, "100,003.05 ± 0.21"), (3.04, 12.0, "3 ± 12"), (0.5, 0.0, "0.5"), (1e-9, 2e-10, "1e-09 ± 2e-10")],
)
def test_a_place_has_the_digits_that_its_reach_bears(centre, extent, told):
    assert words.between(centre, extent) == told


def test_the_distance_is_compared_with_chance_as_it_was_seen():
    found = result()
    drawn = words.null_distances(found)
    assert np.quantile(np.square(drawn), 0.95) == pytest.approx(found.null_quantile**2)
    assert found.distance >= found.bias_corrected
    assert words.apart(found).startswith(f"{found.distance:.2g} (")
    assert f"bias-corrected {found.bias_corrected:.2g}" in words.apart(found)
    assert "not significant" in words.apart(as_told(found, null_quantile=2.0))


def test_names_of_others_cannot_fake_a_line_or_fill_the_screen():
    names = ("height\n  p-value    not at all", "\x1b[2J" + "long" * 40, "few", "c3")
    found = result(names=names)
    text = str(found)
    assert "\x1b" not in text
    assert "\n  p-value    not" not in text
    assert printable(names[0]) in text
    assert max(map(len, text.splitlines())) < 400
    assert "long" * 20 not in text


def test_at_most_five_columns_and_places_are_told():
    found = result()
    column = found.columns()[0]
    told = words.listed_columns([column] * 7, 0.05, True)
    assert told.count(words.direction(column)) == 5
    assert told.endswith("and 2 more")
    assert "no single column" in words.listed_columns([], 0.05, False)
    assert "dependence" in words.listed_columns([], 0.05, True)


def test_what_cannot_be_seen_is_said():
    found = result(changed(n=4), alpha=0.05)
    told = words.seen(found)
    assert "80 %" in told
    vars(found)["detectable_share"] = float("inf")  # as it is kept once it was computed
    vars(found)["detectable_shift"] = None
    assert words.seen(found).startswith("too few rows")
