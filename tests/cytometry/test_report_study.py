"""The report of a cohort study: its numbers are the study's, its words a laboratory's, and what a study has not is left out."""

import re
import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

from reduset.cytometry import CohortStudy, DifferencesDisplay, PopulationDisplay, SampleSet, write_report
from reduset.cytometry.figures import separating_markers
from report_cases import BREAKERS, HOSTILE, QUOTED, Page, cohort, embedded, sample_set, study, unpacked

mpl.use("Agg")
from matplotlib import pyplot as plt

SECTIONS = ["differ", "map", "heat", "where", "batches", "cleaning", "shares", "origin"]


@pytest.fixture(scope="module")
def fitted():
    return study()


def written(folder, shown, **options):
    write_report(folder / "r.html", shown, **options)
    return Page(folder / "r.html")


def sections(page):
    """Those after the head."""
    return [tells.get("aria-labelledby", "").removesuffix("-title") for tag, tells in page.elements if tag == "section"][1:]


def boxes(page):
    return [tells["id"] for tag, tells in page.elements if tag == "select"]


def test_a_whole_study_has_every_section_in_order(fitted, tmp_path):
    page = written(tmp_path, fitted, about={"command": "reduset study folder --test condition"})
    assert sections(page) == SECTIONS
    assert boxes(page) == ["population", "colours", "order", "across", "up"]
    text = page.text()
    for wanted in (
        "6,000 cells on 4 markers, 1 of them of class state",
        "2 of 2",
        "Samples are compared, not cells: 5 of healthy and 5 of ill, within patient, with run held fixed.",
        "At a false discovery rate of 5 %",
        "6,000 of 6,360 events were kept by cleaning",
        "The distance of the same control between two runs is",
        "Grey rings are controls, which are not compared.",
        "asinh:150",
        "120 (1.89 %)",
        "Compensated by its spillover matrix.",
    ):
        assert wanted in text, wanted
    assert "reduset study folder --test condition" in " ".join(text.split())


def test_no_word_is_that_of_a_computer(fitted, tmp_path):
    assert not re.search(r"\b(bags?|rows?|atoms?)\b", written(tmp_path, fitted).text(), re.IGNORECASE)


def test_the_numbers_are_those_of_the_study(fitted, tmp_path):
    page = written(tmp_path, fitted)
    data, told, found = embedded(tmp_path / "r.html"), fitted.differences_, fitted.populations_
    assert data["names"] == list(fitted.samples_.names)
    assert data["levels"] == ["healthy", "ill"]
    places = fitted.map_.embedding_
    np.testing.assert_allclose(unpacked(data["places"]), places - places.mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(unpacked(data["counts"]), found.counts)
    np.testing.assert_allclose(unpacked(data["limits"]), found.intervals(), rtol=1e-5)
    np.testing.assert_array_equal(data["differences"]["effects"], told.effects)
    np.testing.assert_array_equal(data["differences"]["intervals"], told.intervals)
    assert [found.names[k] for k in data["differences"]["order"]] == [row["population"] for row in told.rows()]
    np.testing.assert_allclose(unpacked(data["witness"]["places"]).T, found.atoms, rtol=1e-6)
    np.testing.assert_allclose(unpacked(data["witness"]["folds"]), fitted.witness_.fold_changes, rtol=1e-5)
    assert data["witness"]["found"] == np.flatnonzero(fitted.clusters_.found).tolist()
    assert data["columns"][0]["values"] == list(fitted.samples_.table["condition"])
    assert [each["title"] for each in data["columns"]] == ["condition", "run", "patient"]
    text = page.text()
    for k, name in enumerate(found.names):
        assert name in text
        fold, (low, high) = 2 ** told.effects[0, k], 2 ** told.intervals[0, k]
        assert f"{fold:.2f} ({low:.2f} to {high:.2f})" in text
        assert f"{100 * found.shares[0, k]:.3g} % (" in text


@pytest.mark.slow
def test_samples_that_belong_together_are_joined_and_controls_are_not(fitted, tmp_path):
    written(tmp_path, fitted)
    data = embedded(tmp_path / "r.html")
    blocks = data["differences"]["blocks"]
    assert len(blocks) == 10
    assert all(blocks[2 * k] == blocks[2 * k + 1] for k in range(5))
    assert data["controls"] == [False] * 10 + [True] * 2
    assert data["columns"][0]["values"][10:] == [None, None]
    written(tmp_path, study(block=None))
    assert set(embedded(tmp_path / "r.html")["differences"]["blocks"]) == {-1}


@pytest.mark.slow
def test_names_notes_and_markers_are_shown_and_never_run(tmp_path):
    given = sample_set(notes=tuple(BREAKERS), left_out=dict.fromkeys(BREAKERS, "</td><script>alert(2)</script>"))
    table = {**given.table, "condition": tuple(each and f"{each}{BREAKERS[4]}" for each in given.table["condition"])}
    page = written(tmp_path, study(replace(given, table=table)), about={"command": HOSTILE, "sources": [HOSTILE]})
    assert {tag for tag, _ in page.elements} & {"img", "b"} == set()
    assert len([tag for tag, _ in page.elements if tag == "script"]) == 4  # theme, data, plotly, the page's own
    text = page.text()
    assert HOSTILE in text
    assert QUOTED in text
    assert embedded(tmp_path / "r.html")["populations"]["markers"][0] == QUOTED


def test_without_a_test_there_are_no_differences_and_no_where(tmp_path):
    page = written(tmp_path, study(test=None, block=None, batch=None, control=None))
    assert sections(page) == ["map", "heat", "cleaning", "shares", "origin"]
    data = embedded(tmp_path / "r.html")
    assert data["differences"] is None
    assert data["witness"] is None
    assert "The largest is" in page.text()


@pytest.mark.slow
def test_what_is_not_known_of_files_is_left_out(tmp_path):
    given = sample_set()
    bare = SampleSet(given.names[:10], given.cells[:10], given.markers, {name: each[:10] for name, each in given.table.items()})
    page = written(tmp_path, CohortStudy("condition", "patient", n_atoms=40, random_state=0).fit(bare))
    assert sections(page) == ["differ", "map", "heat", "where", "shares", "origin"]
    assert "Cells kept" not in page.text()
    noted = replace(bare, notes=("no spillover",))
    page = written(tmp_path, CohortStudy("condition", "patient", n_atoms=40, random_state=0).fit(noted))
    assert "Cells were not cleaned." in page.text()
    assert "Cleaning" not in page.text()


def test_two_samples_are_on_a_line_and_have_no_table(tmp_path):
    rng = np.random.default_rng(0)
    page = written(
        tmp_path, CohortStudy(n_atoms=20, random_state=0).fit({"a": rng.normal(size=(600, 2)), "b": rng.normal(size=(600, 2))})
    )
    data = embedded(tmp_path / "r.html")
    np.testing.assert_array_equal(unpacked(data["places"])[:, 1], 0.0)
    assert data["columns"] == []
    assert "The table of samples" not in page.text()


def test_one_marker_is_drawn_against_the_fold_change(tmp_path):
    page = written(tmp_path, study(sample_set(d=1)))
    assert embedded(tmp_path / "r.html")["witness"]["pair"] == [0]
    assert boxes(page) == ["population", "colours", "order"]


@pytest.mark.slow
def test_each_of_several_groups_has_its_fold_changes_and_can_be_chosen(tmp_path):
    shown = study(sample_set(("a", "b", "c"), samples=14))
    page = written(tmp_path, shown)
    assert boxes(page) == ["population", "colours", "order", "level", "across", "up"]
    text = page.text()
    assert "4 of a, 4 of b and 4 of c" in text
    for level in ("b", "c"):
        assert f"fold change {level}" in text
    assert np.shape(embedded(tmp_path / "r.html")["differences"]["effects"]) == (2, len(shown.populations_))


def test_a_study_that_cannot_tell_groups_from_batches_says_so_first(tmp_path):
    given = sample_set()
    table = {**given.table, "run": tuple(each or "healthy" for each in given.table["condition"])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        shown = study(replace(given, table=table), block=None)
    page = written(tmp_path, shown)
    alerts = [tells for _, tells in page.elements if tells.get("role") == "alert"]
    assert len(alerts) == 2  # at the head and at the batches
    assert "Warning: condition and run are confounded" in re.sub(r"\s+", " ", page.text())


def test_a_study_that_finds_nothing_says_what_that_means(fitted, tmp_path):
    told = fitted.differences_
    none = np.zeros(2, bool)
    shown = study()
    shown.differences_ = replace(told, found=none)
    shown.clusters_ = replace(fitted.clusters_, differences=None, members=fitted.clusters_.members[:0])
    text = written(tmp_path, shown).text()
    assert "No population differs significantly at a false discovery rate of 5 %." in text
    assert "None differs significantly in its proportion" in text


def test_the_surest_markers_are_across_and_up(fitted):
    assert len(set(separating_markers(fitted.populations_, fitted.witness_, fitted.clusters_.found))) == 2
    given = sample_set()
    rng = np.random.default_rng(1)
    cells = tuple(np.column_stack([rng.normal(size=len(each)), 0 * each[:, 1], each[:, 2:]]) for each in given.cells)
    shown = study(replace(given, cells=cells, state=frozenset()))
    assert separating_markers(shown.populations_, shown.witness_, shown.clusters_.found) == [2, 3]


@pytest.mark.slow
def test_displays_draw_the_numbers_of_the_report(fitted, tmp_path):
    written(tmp_path, fitted)
    data = embedded(tmp_path / "r.html")
    heat = PopulationDisplay.from_study(fitted).plot(cmap="Greys")
    order = data["populations"]["order"]
    np.testing.assert_allclose(heat.ax_.images[0].get_array(), unpacked(data["populations"]["scaled"])[order], rtol=1e-6)
    assert heat.ax_.get_xticklabels()[-1].get_text() == "CD38"  # of class state: last
    forest = DifferencesDisplay.from_study(fitted).plot()
    drawn = np.concatenate([each.lines[0].get_xdata() for each in forest.ax_.containers])
    np.testing.assert_allclose(drawn, np.array(data["differences"]["effects"])[0, data["differences"]["order"]])
    many = DifferencesDisplay.from_study(study(sample_set(("a", "b", "c"), samples=14))).plot()
    assert [each.get_text() for each in many.ax_.get_legend().get_texts()] == ["b", "c"]
    for display in (heat, forest, many):
        display.figure_.canvas.draw()  # names with quotes and dollars
    plt.close("all")


def test_what_is_no_fitted_study_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"study .*got CohortMap"):
        write_report(tmp_path / "r.html", cohort())
    with pytest.raises(ValueError, match="not fitted"):
        write_report(tmp_path / "r.html", CohortStudy())
    with pytest.raises(ValueError, match="study compared no groups, so there are no differences to show"):
        DifferencesDisplay.from_study(study(test=None, block=None, batch=None, control=None))
    assert not (tmp_path / "r.html").exists()


def test_shares_too_many_for_a_page_are_said_to_be(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("reduset.cytometry.report.MAX_SHARES", 3)
    assert "The table has 24 entries, too many for a page" in written(tmp_path, fitted).text()
