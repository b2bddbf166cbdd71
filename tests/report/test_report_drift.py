"""The report of a test of drift has the numbers of the result, in words and pictures, for any rows and names."""

import json

import numpy as np
import pytest

from drift_cases import WATCHED, Frame, as_told, changed, monitor, result, rows
from reduset.drift import two_sample
from reduset.drift.columns import ColumnBins
from reduset.report import write_drift, write_watch
from reduset.report.drift_figure import BARS, column_figure, drift_figure
from reduset.report.words import p_told
from report_cases import BREAKERS, Page, embedded, unpacked


def test_the_numbers_in_the_report_are_those_of_the_result(tmp_path):
    found = result()
    write_drift(tmp_path / "r.html", found)
    data, shown = embedded(tmp_path / "r.html"), drift_figure(found)
    assert data["drift"] is True
    assert data["null"]["usual"] == found.null_quantile
    assert data["null"]["seen"] == shown.seen > found.null_quantile
    assert sum(data["null"]["shares"]) == pytest.approx(1.0)
    cells = data["cells"]
    np.testing.assert_array_equal(cells["before"], found.comparison.cells[0].shares)
    np.testing.assert_array_equal(cells["after"], found.comparison.cells[1].shares)
    np.testing.assert_array_equal(unpacked(cells["places"]).T, shown.places)
    regions = found.where()
    assert [each["centre"] for each in data["regions"]] == [each.centre.tolist() for each in regions]
    assert data["pair"] == [0, 1]  # where the first region is
    text = " ".join(Page(tmp_path / "r.html").text().split())
    assert "Drift in 600 new rows" in text
    assert "p ≤ 0.005" in text  # no permutation reaches the statistic
    assert f"+{100 * regions[0].change:.3g} %" in text
    assert f"outlier group of {100 * found.detectable_share:.3g} %" in text
    assert "Every column, with p-values corrected for their number (Holm), medians and interquartile ranges (IQR)" in text


def test_no_drift_is_told_with_its_limits_and_strong_colours_are_kept_for_change(tmp_path):
    found = result(rows(seed=7))
    write_drift(tmp_path / "r.html", found)
    text = " ".join(Page(tmp_path / "r.html").text().split())
    assert "No drift in 600 new rows" in text
    assert "Small changes may not be detected" in text
    assert "No single region changed significantly" in text
    shown = drift_figure(found)
    assert np.abs(shown.change).max() < 0.7 * shown.most
    assert np.abs(drift_figure(result()).change).max() == drift_figure(result()).most


def test_a_column_keeps_its_shares_however_it_is_cut():
    rng = np.random.default_rng(0)
    old, new = rng.standard_cauchy((4000, 1)), rng.standard_cauchy((1000, 1)) + 3.0
    bins = ColumnBins.of(old)
    before, after = (bins.shares(each, np.full(len(each), 1 / len(each)))[0] for each in (old, new))
    shown = column_figure(None, 0, bins, before, after)
    assert len(shown.edges) == BARS + 1
    assert np.ptp(shown.edges) < 60.0  # the tails reach thousands
    for shares, sample in ((shown.before, old[:, 0]), (shown.after, new[:, 0])):
        assert shares.sum() == pytest.approx(1.0)
        assert (shares >= -1e-12).all()
        counted = np.histogram(sample, np.concatenate([[-np.inf], shown.edges, [np.inf]]))[0] / len(sample)
        np.testing.assert_allclose(shares, counted, atol=0.02)


def test_rows_far_outside_are_in_the_bar_at_the_end_and_their_cell_is_where_they_are():
    new = rows(seed=3)
    new[:200, 0] += 50.0
    shown = drift_figure(two_sample(rows(), new, rng=0))
    height = next(each for each in shown.columns if each.position == 0)
    assert height.after[-1] > 0.3 or height.edges[-1] > 1e5 + 40
    assert shown.places[:, 0].max() > 1e5 + 40


def test_a_column_of_few_values_has_a_bar_for_each_and_one_for_others():
    old, new = rows(), rows(seed=2)
    new[:60, 2] = 9.0
    found = result(new, keep_rows=False)
    few = next(each for each in drift_figure(found).columns if each.change.name == "few")
    assert few.values.tolist() == [0.0, 1.0, 2.0]
    assert few.after[-1] == pytest.approx(0.1)
    assert few.before[-1] == 0.0
    np.testing.assert_allclose(few.after[:3], [(new[:, 2] == value).mean() for value in range(3)])
    assert few.before.sum() == pytest.approx(1.0)
    assert len(old) == 600


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("text", BREAKERS)
def test_any_name_survives_the_way_into_the_page(text, tmp_path):
    found = result(names=(text, text + "2", "few", "c3"), n_resamples=99)
    write_drift(tmp_path / "r.html", found, about={"command": text, "sources": [text]})
    page = Page(tmp_path / "r.html")
    assert [tag for tag, _ in page.elements].count("script") == 4  # theme, data, plotly, report
    assert not {"b", "img"} & {tag for tag, _ in page.elements}


def test_columns_of_one_name_and_many_columns_have_reports(tmp_path):
    rng = np.random.default_rng(0)
    old, new = (rng.normal(size=(300, 70)) for _ in range(2))
    new[:, 69] += 1.0
    found = two_sample(Frame(old, ["same"] * 70), Frame(new, ["same"] * 70), rng=0, n_resamples=99, size=30)
    shown = drift_figure(found)
    assert sorted(each.position for each in shown.columns) == list(range(70))
    write_drift(tmp_path / "r.html", found)
    assert "Figures of 60 columns of 70" in Page(tmp_path / "r.html").text()
    assert len(json.dumps(embedded(tmp_path / "r.html"))) < 1e6


@pytest.mark.parametrize(("p_value", "told"), [(0.0123, "p = 0.012"), (1e-9, "p < 10⁻⁶"), (1.0, "p = 1")])
def test_p_values_are_told_to_two_digits(p_value, told):
    assert p_told(p_value).replace("\N{NO-BREAK SPACE}", " ") == told
    assert p_told(p_value, "").replace("\N{NO-BREAK SPACE}", " ") == told.removeprefix("p ").removeprefix("= ")


def test_few_rows_that_show_nothing_are_told(tmp_path):
    found = as_told(result(changed(n=6)))
    vars(found)["detectable_share"] = vars(found)["detectable_shift"] = float("inf")
    write_drift(tmp_path / "r.html", found)
    assert "Too few rows to detect any change with 80 % power; test more rows." in Page(tmp_path / "r.html").text()


def test_what_is_no_result_has_no_report(tmp_path):
    with pytest.raises(TypeError, match=r"result .*got ndarray"):
        write_drift(tmp_path / "r.html", rows())


def test_a_watch_is_told_file_by_file(tmp_path):
    write_watch(tmp_path / "r.html", monitor(), WATCHED)
    text = " ".join(Page(tmp_path / "r.html").text().split())
    assert "Drift in 200 rows" in text
    assert "Row 30 of a/<script>" in text  # row 150, of a file that begins at row 120
    assert "confidence interval 140 to 155" in text
    data = embedded(tmp_path / "r.html")
    assert data["alarms"] == [{"row": 160, "since": [150, 140, 155]}]
    assert data["rows"] == monitor().history_["row"].tolist()
    write_watch(tmp_path / "r.html", monitor(alarm=False))
    text = " ".join(Page(tmp_path / "r.html").text().split())
    assert "No drift in 200 rows" in text
    assert "1 in 1,000" in text
    assert "No alarm was raised" in text
