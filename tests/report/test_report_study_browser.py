"""The report of a cohort study in a real browser: every picture is there, and what is chosen is drawn."""

import numpy as np
import pytest

from reduset.cytometry import CohortStudy, write_report
from reduset.cytometry.figures import population_figure, separating_markers
from reduset.report.words import shortened
from report_cases import HOSTILE, QUOTED, sample_set, study
from report_visits import Visit, hovered

pytestmark = pytest.mark.slow

PICTURES = ["forest", "dots", "map", "heat", "where"]


@pytest.fixture(scope="module")
def fitted():
    return study()


@pytest.fixture(scope="module")
def seen(browser, fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.html"
    write_report(path, fitted)
    visit = Visit(browser, path)
    yield visit
    assert visit.complaints == []
    assert [url for url in visit.requests if not url.startswith("data:")] == [path.as_uri()]
    assert visit.dialogs == []
    visit.context.close()


def opened(browser, folder, shown):
    write_report(folder / "r.html", shown)
    return Visit(browser, folder / "r.html")


def pictures(visit):
    """Those that are drawn."""
    drawn = "() => [...document.querySelectorAll('.plot')].filter((each) => each.querySelector('.main-svg')).map((each) => each.id)"
    return visit.page.evaluate(drawn)


def test_every_picture_is_there(seen):
    assert pictures(seen) == PICTURES


def test_every_sample_has_its_name_beside_its_dot(seen, fitted):
    named = seen.page.locator("#map .annotation-text").all_text_contents()
    assert sorted(named) == sorted(shortened(name, 20) for name in fitted.samples_.names)
    assert seen.page.inner_text("#nameless") == ""
    assert hovered(seen, "map", 0).startswith(f"{HOSTILE}condition healthyrun run 0patient p0500 cells")


def test_names_do_not_lie_on_each_other(seen):
    found = """() => [...document.querySelectorAll('#map .annotation-text')].map((each) => each.getBoundingClientRect())
        .map(({ left, right, top, bottom }) => [left, right, top, bottom])"""
    boxes = seen.page.evaluate(found)
    for k, (left, right, top, bottom) in enumerate(boxes):
        for other in boxes[:k]:
            assert right <= other[0] or left >= other[1] or bottom <= other[2] + 3 or top >= other[3] - 3


def test_names_that_find_no_room_are_counted_and_come_back_when_one_comes_nearer(browser, tmp_path):
    given = sample_set(samples=82, cells=60)
    names = tuple(f"a rather long name {k}" for k in range(82))
    made = CohortStudy(n_atoms=20, random_state=0).fit(dict(zip(names, given.cells, strict=True)))
    visit = opened(browser, tmp_path, made)
    shown = visit.page.locator("#map .annotation-text").count()
    assert 20 < shown < 82
    assert visit.page.inner_text("#nameless").startswith(f"{82 - shown} names are not shown for lack of space: hover over a dot")
    place = made.map_.embedding_ - made.map_.embedding_.mean(axis=0)
    middle = "([x, y, r]) => Plotly.relayout('map', { 'xaxis.range': [x - r, x + r], 'yaxis.range': [y - r, y + r] })"
    visit.page.evaluate(middle, [*map(float, place[0]), 0.05 * float(np.ptp(place))])
    visit.settle()
    assert names[0] in visit.page.locator("#map .annotation-text").all_text_contents()
    assert visit.page.inner_text("#nameless") == ""
    assert visit.complaints == []
    visit.context.close()


def test_the_map_can_be_coloured_by_another_column(seen):
    legend = seen.page.locator("#map .legendtext")
    assert legend.all_text_contents() == ["healthy", "ill", "controls"]
    seen.page.select_option("#colours", label="run")
    seen.settle()
    assert legend.all_text_contents() == ["run 0", "run 1"]
    symbols = seen.page.evaluate("document.getElementById('map').data.flatMap(({ marker }) => marker.symbol)")
    assert sum(symbol.endswith("-open") for symbol in symbols) == 2  # the controls
    seen.page.select_option("#colours", label="condition")
    seen.settle()
    assert seen.page.locator("#map .annotation-text").count() == 12


def dots(seen):
    """The samples and shares that are drawn."""
    traces = seen.page.evaluate("document.getElementById('dots').data.slice(1).map(({ customdata, y }) => [customdata, y])")
    return {i: share for which, shares in traces for i, share in zip(which, shares, strict=True)}


def test_fold_changes_are_drawn_and_the_population_that_is_chosen_sample_by_sample(seen, fitted):
    told, order = fitted.differences_, fitted.differences_.order()
    np.testing.assert_allclose(seen.trace("forest", 1, "x"), told.effects[0, order])
    for k in order[::-1]:
        seen.page.select_option("#population", str(k))
        seen.settle()
        drawn = dots(seen)
        np.testing.assert_allclose([drawn[i] for i in range(12)], fitted.populations_.shares[:, k], rtol=1e-6)
    joined = seen.page.evaluate("document.getElementById('dots').data[0].x.filter((x) => x === null).length")
    assert joined == 5  # a line a patient


def test_a_click_on_a_fold_change_chooses_its_population(seen, fitted):
    order = fitted.differences_.order()
    seen.page.select_option("#population", str(order[0]))
    seen.settle()
    marker = seen.page.locator("#forest .scatterlayer .trace").nth(1).locator(".point").nth(1)
    marker.scroll_into_view_if_needed()
    box = marker.bounding_box()
    seen.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    seen.settle()
    assert seen.page.input_value("#population") == str(order[1])
    np.testing.assert_allclose(dots(seen)[0], fitted.populations_.shares[0, order[1]], rtol=1e-6)


def test_the_heatmap_has_the_medians_in_either_order(seen, fitted):
    shown = population_figure(fitted)
    for value, order in (("size", np.arange(len(shown.names))), ("alike", shown.order)):
        seen.page.select_option("#order", value)
        seen.settle()
        parts = [seen.trace("heat", k, "z") for k in (0, 1)]
        np.testing.assert_allclose(np.hstack(parts), shown.scaled[order], atol=1e-6)
        assert parts[1].shape[1] == 1  # of class state
    assert QUOTED in seen.page.text_content("#heat .xaxislayer-above")


def test_the_markers_that_are_chosen_are_across_and_up(seen, fitted):
    shown, points, found = fitted.witness_, fitted.populations_.atoms, fitted.clusters_.found
    assert [seen.page.input_value(f"#{name}") for name in ("across", "up")] == list(
        map(str, separating_markers(fitted.populations_, shown, found))
    )
    for pair in ((0, 3), (1, 2)):
        for name, k in zip(("across", "up"), pair, strict=True):
            seen.page.select_option(f"#{name}", str(k))
        seen.settle()
        order = seen.trace("where", 0, "customdata").astype(int)
        for axis, k in zip("xy", pair, strict=True):
            np.testing.assert_allclose(seen.trace("where", 0, axis), points[order, k], rtol=1e-6)
        colours = seen.page.evaluate("document.getElementById('where').data[0].marker.color")
        np.testing.assert_allclose(colours, shown.fold_changes[0, order], rtol=1e-5)
        rings = seen.page.evaluate("document.getElementById('where').data[0].marker.line.width")
        np.testing.assert_array_equal(np.array(rings) > 1, found[order])


def test_any_of_several_groups_can_be_looked_at(browser, tmp_path):
    made = study(sample_set(("a", "b", "c"), samples=14))
    visit = opened(browser, tmp_path, made)
    assert pictures(visit) == PICTURES
    assert visit.page.locator("#forest .legendtext").all_text_contents() == ["b", "c"]
    visit.page.select_option("#level", "1")
    visit.settle()
    order = visit.trace("where", 0, "customdata").astype(int)
    colours = visit.page.evaluate("document.getElementById('where').data[0].marker.color")
    np.testing.assert_allclose(colours, made.witness_.fold_changes[1, order], rtol=1e-5)
    assert visit.complaints == []
    visit.context.close()


@pytest.mark.parametrize("kind", ["no test", "two samples", "one marker"])
def test_a_small_study_opens_too(kind, browser, tmp_path):
    rng = np.random.default_rng(0)
    if kind == "no test":
        made, wanted = study(test=None, block=None, batch=None, control=None), ["map", "heat"]
    elif kind == "two samples":
        bags = {"a": rng.normal(size=(600, 2)), "b": rng.normal(1, 1, size=(600, 2))}
        made, wanted = CohortStudy(n_atoms=20, random_state=0).fit(bags), ["map", "heat"]
    else:
        made, wanted = study(sample_set(d=1)), PICTURES
    visit = opened(browser, tmp_path, made)
    assert pictures(visit) == wanted
    assert visit.page.locator("#map .annotation-text").count() == len(made.samples_.names)
    assert visit.complaints == []
    visit.context.close()
