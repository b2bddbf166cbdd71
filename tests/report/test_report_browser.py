"""Reports opened in a real browser: nothing fetched, nothing complained about, and the pictures are those of the model.

`report_visits` says how.
"""

import numpy as np
import pytest

import drift_cases
from reduset import Gaussian, KernelMean, Laplacian, compress
from reduset._describe import significant as figures
from reduset.compression import Path
from reduset.cytometry import write_report
from reduset.model import Model
from reduset.report import write_audit, write_cohort, write_compression, write_drift, write_segmentation, write_sketch, write_watch
from reduset.report.cohort import alike_beside
from reduset.report.compression import NAMED
from reduset.report.drift_figure import drift_figure
from reduset.report.figures import ROUNDING, profile_figure
from reduset.report.words import fine, percent, shortened
from report_cases import GROUPS, HOSTILE, audited, cohort, image, laws, model, resolved, segmentation, sketched, study
from report_visits import SIZES, WIDER, Visit, hovered

pytestmark = pytest.mark.slow

WIDTHS = {"phone": (360, 390), "desktop": (700, 1280)}  # and turned to these: nothing moves sideways at any
KINDS = ["audit", "compression", "one column", "components", "cohort", "drift", "segmentation", "sketch", "study", "watch"]
MANY = 14  # columns, of which a dozen are drawn at once


# the toolbars of plots that can be seen, and the colour behind their buttons
TOOLBARS = """() => [...document.querySelectorAll(".modebar-group")].map((each) => getComputedStyle(each))
    .filter((style) => style.display !== "none" && Number(style.opacity) > 0).map((style) => style.backgroundColor)"""
# how many pixels are lit on the canvas
LIT = """() => { const canvas = document.getElementById("lit");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((value, i) => i % 4 === 3 && value > 0).length; }"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    paths = {kind: folder / f"{kind}.html" for kind in KINDS}
    write_compression(paths["compression"], model())
    write_compression(paths["one column"], model(d=1))
    write_compression(paths["components"], laws())
    write_compression(folder / "many.html", model(d=MANY, n=400, size=9, kernel=Laplacian(9.0)))
    write_compression(folder / "resolved.html", resolved())
    write_audit(paths["audit"], *audited())
    write_cohort(paths["cohort"], cohort(), groups=GROUPS)
    write_drift(paths["drift"], drift_cases.result())
    write_drift(folder / "drift of one.html", drift_cases.result(d=1, names=[HOSTILE]))
    write_watch(paths["watch"], drift_cases.monitor(), drift_cases.WATCHED)
    write_report(paths["study"], study())
    write_sketch(paths["sketch"], *sketched())
    write_segmentation(paths["segmentation"], image(), segmentation(image()), about={"command": HOSTILE})
    return paths | {name: folder / f"{name}.html" for name in ("many", "resolved", "drift of one")}


@pytest.fixture(scope="module")
def visit(browser, reports):
    """A report, opened once for all tests of it."""
    opened = {}

    def open_(kind, size="desktop"):
        if (kind, size) not in opened:
            opened[kind, size] = Visit(browser, reports[kind], size)
        return opened[kind, size]

    yield open_
    for each in opened.values():
        each.context.close()


@pytest.mark.parametrize("kind", ["compression", "cohort"])
@pytest.mark.parametrize("size", SIZES)
def test_toolbars_are_seen_where_one_points_and_are_no_boxes(kind, size, visit):
    page = visit(kind, size).page
    page.mouse.move(0, 0)
    page.wait_for_timeout(400)  # they fade
    assert page.evaluate(TOOLBARS) == []
    page.locator(".js-plotly-plot").first.hover()
    page.wait_for_timeout(400)
    assert page.evaluate(TOOLBARS) == (["rgba(0, 0, 0, 0)"] if size == "desktop" else [])
    page.mouse.move(0, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_a_report_opens_without_a_complaint_or_a_request_fits_and_runs_no_name(kind, size, visit, reports, tmp_path):
    from matplotlib.image import imread

    seen = visit(kind, size)
    seen.page.screenshot(path=tmp_path / "shot.png", full_page=True)
    for width in WIDTHS[size]:
        seen.turn(width)
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert seen.page.evaluate(WIDER) == []
    assert seen.complaints == []
    assert seen.dialogs == []
    assert [url for url in seen.requests if not url.startswith("data:")] == [reports[kind].as_uri()]
    assert HOSTILE in seen.page.inner_text("main")
    drawn = (255 * imread(tmp_path / "shot.png")[..., :3]).astype(np.int64)
    assert drawn.shape[1] == SIZES[size][0]
    assert len(np.unique(drawn[::2] @ [1, 256, 65536])) > 200
    assert seen.page.locator(".plot .main-svg").count() >= seen.page.locator(".plot").count()


def test_the_slider_moves_the_atoms_and_the_densities_are_the_models(visit):
    shown = model()
    portrait = shown.portrait
    seen = visit("compression")
    seen.page.select_option("#pair", "0")
    last = len(shown.step_sizes) - 1
    for step in (0, last, last // 2):
        seen.slide(step)
        small = shown.at(step)
        positive, negative = (seen.trace("atoms", k, "customdata").astype(int) for k in (1, 2))
        assert sorted([*positive, *negative]) == list(range(small.size))
        assert (small.weights[positive] >= 0).all()
        assert (small.weights[negative] < 0).all()
        assert (len(negative) > 0) == (step == last)
        for k, mine in ((1, positive), (2, negative)):
            np.testing.assert_allclose(seen.trace("atoms", k, "x"), small.atoms[mine, 0], atol=1e-4)
            np.testing.assert_allclose(seen.trace("atoms", k, "y"), small.atoms[mine, 1], atol=1e-4)
        joint = portrait.joint_of(small)[0]
        most = np.abs(joint).max()
        np.testing.assert_allclose(seen.trace("small", 0, "z").T, joint, atol=1e-4 * most)
        np.testing.assert_allclose(seen.trace("full", 0, "z").T, portrait.joint[0], rtol=1e-6)
        np.testing.assert_allclose(seen.trace("difference", 0, "z").T, joint - portrait.joint[0], atol=1e-4 * most)
        for k, wanted in enumerate(portrait.marginals_of(small)):
            np.testing.assert_allclose(seen.trace(f"marginal-{k}", 1, "y"), wanted, atol=1e-4 * np.abs(wanted).max())
            np.testing.assert_allclose(seen.trace(f"marginal-{k}", 0, "y"), portrait.marginals[k], rtol=1e-6)
            np.testing.assert_allclose(seen.trace(f"marginal-{k}", 0, "x"), portrait.grids[k], rtol=1e-9)
        told = seen.page.inner_text("#told").replace("\N{NO-BREAK SPACE}", " ")
        error = f"error {float(f'{100 * shown.error_at(step):.3g}'):g} % at bandwidth 3"
        assert told == f"{small.size} atom{'s' if small.size > 1 else ''}, {error}"
        assert seen.page.evaluate("document.getElementById('path').data.at(-1).x[0]") == small.size
    assert seen.complaints == []


def test_components_are_drawn_with_shapes_of_their_own(visit):
    shown = laws()
    seen = visit("components")
    for pair, step in ((1, len(shown.step_sizes) - 1), (0, len(shown.step_sizes) // 2)):
        seen.page.select_option("#pair", str(pair))
        seen.slide(step)
        small, (k, j) = shown.at(step), shown.portrait.pairs[pair]
        joint = shown.portrait.joint_of(small)[pair]
        np.testing.assert_allclose(seen.trace("small", 0, "z").T, joint, atol=1e-4 * joint.max())
        for column, wanted in enumerate(shown.portrait.marginals_of(small)):
            np.testing.assert_allclose(seen.trace(f"marginal-{column}", 1, "y"), wanted, atol=1e-4 * wanted.max())
        drawn = seen.page.evaluate("""() => document.getElementById('atoms').data.filter(({ name }) => name === 'ellipses')
            .map(({ customdata, x, y }) => ({ which: customdata, x, y }))""")
        assert sorted(a for each in drawn for a in each["which"]) == list(range(small.size))
        for each in drawn:
            places = np.array([each["x"], each["y"]], float).T.reshape(len(each["which"]), -1, 2)[:, :-1]  # a gap ends each
            for a, line in zip(each["which"], places, strict=True):
                away = line - small.means[a, [k, j]]
                inverse = np.linalg.inv(small.covariances[a][np.ix_([k, j], [k, j])])
                np.testing.assert_allclose(np.einsum("ni,ij,nj->n", away, inverse, away), 1.0, atol=1e-3)
    assert "components, error" in seen.page.inner_text("#told")
    assert "one standard deviation" in seen.page.inner_text("#drawn")
    assert seen.complaints == []


def test_the_slider_moves_the_error_at_every_scale(visit):
    shown = resolved()
    seen = visit("resolved")
    names = "() => document.getElementById('fine').data.map((each) => each.name)"
    last = len(shown.step_sizes) - 1
    for step in (last // 3, last):
        seen.slide(step)
        profile, drawn = shown.profile(step), seen.page.evaluate(names)
        size = shown.profiles.sizes[shown.profiles.nearest(shown.step_sizes[step])]
        np.testing.assert_allclose(seen.trace("fine", drawn.index(f"{size} atoms"), "y"), profile.relative_errors)
        np.testing.assert_allclose(seen.trace("fine", drawn.index(f"{size} atoms"), "x"), profile.bandwidths)
        np.testing.assert_allclose(seen.trace("fine", drawn.index(f"{size} random rows"), "y"), profile.random_rows)
        np.testing.assert_allclose(seen.trace("fine", drawn.index("sampling error of all rows"), "y"), profile.noise)
        np.testing.assert_allclose(seen.trace("fine", drawn.index("95\N{NO-BREAK SPACE}% interval"), "y"), profile.intervals[:, 1])
        assert seen.page.inner_text("#fine-told") == fine(profile_figure(shown, step))
    within = next(k for k, name in enumerate(drawn) if name.startswith("at most 20"))
    np.testing.assert_allclose(seen.trace("fine", within, "x")[1:], shown.resolution)
    assert seen.complaints == []


def test_errors_of_any_size_are_told_as_the_cards_tell_them_and_rows_of_both_signs_have_both_colours(browser, tmp_path):
    rows = np.random.default_rng(0).normal(size=(16, 2))
    full = KernelMean(rows, np.where(rows[:, 0] > 0, 1.0, -1.0), Gaussian(0.8))
    shown = Model.of(full, compress(full, size=16, select="kcenter", rng=0))
    errors = np.geomspace(30.0, 3e-14, len(shown.step_sizes))
    write_compression(tmp_path / "r.html", Model(**vars(shown) | {"path": Path(shown.step_sizes, errors)}))
    seen = Visit(browser, tmp_path / "r.html")
    for step, error in enumerate(errors):
        seen.slide(step)
        assert seen.page.inner_text("#told").endswith(f"error {percent(error if error >= ROUNDING else 0.0)} at bandwidth 0.8")
    assert "signed weights" in seen.page.inner_text("#shades")
    assert seen.page.evaluate("document.getElementById('full').data[0].zmin") == -np.abs(seen.trace("full", 0, "z")).max()
    assert seen.page.inner_text("#largest").replace("\N{NO-BREAK SPACE}", " ") == "below 0.001 % of the peak"
    assert seen.complaints == []
    seen.context.close()


def test_a_report_is_printed_light_with_what_is_folded_away(visit):
    seen = visit("compression")
    seen.page.emulate_media(color_scheme="dark")
    seen.settle()
    look = "[document.documentElement.dataset.theme, document.querySelectorAll('details[open]').length]"
    seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert seen.page.evaluate(look) == ["light", 2]
    seen.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert seen.page.evaluate(look) == ["dark", 0]
    seen.page.emulate_media(color_scheme="light")
    seen.settle()


def test_another_pair_is_drawn_when_it_is_chosen(visit):
    shown = model()
    seen = visit("compression")
    seen.slide(len(shown.step_sizes) - 1)
    seen.page.select_option("#pair", "2")
    seen.settle()
    assert shown.portrait.pairs[2].tolist() == [1, 2]
    joint = shown.portrait.joint_of(shown.mean)[2]
    np.testing.assert_allclose(seen.trace("small", 0, "z").T, joint, atol=1e-4 * np.abs(joint).max())
    np.testing.assert_allclose(seen.trace("small", 0, "x"), shown.portrait.pair_grids[1], rtol=1e-9)
    assert shortened(HOSTILE, NAMED) in seen.page.inner_text("#pair")
    assert seen.page.text_content("#small .xtitle") == HOSTILE


def test_the_play_button_goes_through_the_sizes(visit):
    seen = visit("compression")
    seen.slide(len(model().step_sizes) - 1)
    seen.page.click("#play")
    seen.page.get_by_text("1 atom, error").wait_for(timeout=9000)
    seen.page.get_by_text("2 atoms, error").wait_for(timeout=9000)
    seen.page.get_by_label("Pause").click()
    assert seen.page.locator("#play").get_attribute("aria-label") == "Play through all sizes"
    assert seen.complaints == []


def test_columns_beyond_the_first_dozen_are_drawn_when_they_are_unfolded(visit):
    seen = visit("many")
    drawn = seen.page.locator(".plot.small .main-svg")
    before = drawn.count()
    seen.page.click("#more summary")
    seen.page.locator(f"#marginal-{MANY - 1} .main-svg").first.wait_for(timeout=9000)
    assert drawn.count() > before
    shown = model(d=MANY, n=400, size=9, kernel=Laplacian(9.0))
    wanted = shown.portrait.marginals_of(shown.mean)[MANY - 1]
    np.testing.assert_allclose(seen.trace(f"marginal-{MANY - 1}", 1, "y"), wanted, atol=1e-4 * wanted.max())
    assert seen.complaints == []


def test_pointing_at_an_atom_shows_names_values_and_weight(visit):
    seen = visit("compression")
    seen.page.select_option("#pair", "0")
    seen.slide(0)  # one atom alone
    label = hovered(seen, "atoms", 0)
    first = model().at(0)
    for wanted in ("atom 1", f"height {first.atoms[0, 0]:.5g}", HOSTILE, f"weight {first.weights[0]:.4g}"):
        assert wanted in label


def test_samples_have_names_beside_them_pointing_at_one_shows_its_name_and_group_and_the_order_can_be_changed(visit):
    fitted = cohort()
    seen = visit("cohort")
    assert hovered(seen, "map", 1) == "firstill"
    named = seen.page.locator("#map .annotation-text").all_text_contents()
    assert sorted(named) == sorted(shortened(name, 20) for name in fitted.names_)
    assert shortened(HOSTILE, 22) in "".join(seen.page.locator("#map .legendtext").all_text_contents())
    order = alike_beside(fitted.distances_)
    np.testing.assert_allclose(seen.trace("heat", 0, "z"), fitted.distances_[np.ix_(order, order)], atol=1e-6)
    seen.page.select_option("#order", "given")
    seen.settle()
    np.testing.assert_allclose(seen.trace("heat", 0, "z"), fitted.distances_, atol=1e-6)
    seen.page.locator("#heat").scroll_into_view_if_needed()
    box = seen.page.locator("#heat .nsewdrag").bounding_box()
    at = (box["x"] + box["width"] * 1.5 / 6, box["y"] + box["height"] * 0.5 / 6)  # second bag across, first down
    seen.page.mouse.move(*at)
    seen.page.mouse.move(at[0] + 2, at[1])
    label = seen.page.locator("#heat .hoverlayer .hovertext").first
    label.wait_for(timeout=9000)
    text = label.text_content()
    assert text.startswith(f"first{HOSTILE}distance {fitted.distances_[0, 1]:.3g}"[:-1])
    assert "error at most" in text
    assert seen.complaints == []


def test_a_script_that_got_into_a_page_would_not_run(browser, reports, tmp_path):
    spoilt = tmp_path / "spoilt.html"
    text = reports["segmentation"].read_text(encoding="utf-8")
    spoilt.write_text(text.replace("<main", '<script>alert(1)</script><img src="x" onerror="alert(2)"><main', 1), encoding="utf-8")
    seen = Visit(browser, spoilt)
    seen.context.close()
    assert seen.dialogs == []
    assert len(seen.complaints) >= 2  # the browser says what it refused


def test_the_theme_is_the_systems_and_can_be_turned(browser, reports):
    paper = "getComputedStyle(document.body).backgroundColor"
    inside = "document.getElementById('map').layout.font.color"
    seen = Visit(browser, reports["cohort"], scheme="dark")
    looks = {}

    def look():
        seen.settle()
        theme = seen.page.evaluate("document.documentElement.dataset.theme")
        found = seen.page.evaluate(paper), seen.page.evaluate(inside)
        assert looks.setdefault(theme, found) == found
        assert (sum(int(level) for level in found[0][4:-1].split(",")) > 600) == (theme == "light")
        return theme

    assert look() == "dark"
    seen.page.click("#theme")
    assert look() == "light"
    assert seen.page.inner_text("#theme") == "Dark"
    seen.page.click("#theme")
    assert look() == "dark"
    seen.page.emulate_media(color_scheme="light")
    assert look() == "light"
    assert len({each for found in looks.values() for each in found}) == 4
    assert seen.complaints == []
    seen.context.close()


def test_the_handle_and_the_segments_of_an_image_follow_the_pointer(visit):
    seen = visit("segmentation")
    seen.page.fill("#share", "20")
    assert seen.page.evaluate("document.getElementById('wipe').style.getPropertyValue('--share')") == "20%"
    seen.page.locator("#segments").scroll_into_view_if_needed()
    box = seen.page.locator("#lit").bounding_box()
    seen.page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.5 * box["height"])
    seen.settle()
    assert seen.page.inner_text("#pointed").replace("\N{NO-BREAK SPACE}", " ") == "Segment 2: 1,200 pixels, 50 % of all."
    assert seen.page.evaluate(LIT) == 1200
    assert seen.complaints == []


def test_the_map_of_drift_shows_the_two_columns_that_are_chosen(visit):
    shown = drift_figure(drift_cases.result())
    seen = visit("drift")
    for across, up in (("0", "1"), ("3", "2")):
        seen.page.select_option("#across", across)
        seen.page.select_option("#up", up)
        pair = [int(across), int(up)]
        order = seen.trace("map", 0, "customdata").astype(int)
        for axis, k in zip("xy", pair, strict=True):
            np.testing.assert_array_equal(seen.trace("map", 0, axis), shown.places[order, k])
        colours = seen.page.evaluate("document.getElementById('map').data[0].marker.color")
        np.testing.assert_allclose(colours, shown.change[order], atol=1e-12)
        for number, region in enumerate(shown.regions):
            line = np.array([seen.trace("map", 1 + 2 * number, axis) for axis in "xy"])
            middle = (line.max(axis=1) + line.min(axis=1)) / 2
            np.testing.assert_allclose(middle, region.centre[pair], rtol=1e-6)
            np.testing.assert_allclose((line.max(axis=1) - line.min(axis=1)) / 4, region.extent[pair], rtol=1e-3, atol=1e-6)
    seen.page.select_option("#across", "2")  # that of the other box: they change places
    assert seen.page.input_value("#up") == "3"
    assert seen.complaints == []


def test_the_columns_of_drift_are_drawn_before_and_now(visit):
    shown = drift_figure(drift_cases.result())
    seen = visit("drift")
    for place, each in enumerate(shown.columns):
        for trace, shares in enumerate((each.before, each.after)):
            drawn = seen.trace(f"column-{place}", trace, "y")
            np.testing.assert_allclose(drawn if each.edges is None else drawn[::2], shares[: len(drawn)])
    bars = seen.trace("null", 0, "y")
    assert bars.sum() == pytest.approx(1.0)
    assert "new rows: 0.13" in seen.page.text_content("#null")


def test_drift_along_one_column_is_drawn_by_how_much_cells_gained(visit):
    shown = drift_figure(drift_cases.result(d=1, names=[HOSTILE]))
    seen = visit("drift of one")
    order = seen.trace("map", 0, "customdata").astype(int)
    np.testing.assert_allclose(seen.trace("map", 0, "y"), shown.change[order], atol=1e-12)
    assert seen.page.locator("#across").count() == 0
    assert seen.complaints == []


def test_a_watch_marks_its_alarm_and_where_it_began(visit):
    seen = visit("watch")
    np.testing.assert_array_equal(seen.trace("time", 0, "x"), drift_cases.monitor().history_["row"])
    np.testing.assert_array_equal(seen.trace("time", 1, "x"), [160])
    began = "document.getElementById('time').layout.shapes.filter(({ type }) => type === 'rect').map(({ x0, x1 }) => [x0, x1])"
    assert seen.page.evaluate(began) == [[140, 155]]
    assert seen.complaints == []


def test_the_pictures_of_a_sketch_are_its_counts_and_its_table_can_be_sorted(visit):
    seen = visit("sketch")
    columns = seen.page.evaluate("() => JSON.parse(document.getElementById('data').textContent).columns")
    for k, column in enumerate(columns):
        drawn = seen.trace(f"column-{k}", 0, "y" if column["edges"] else "x")
        np.testing.assert_allclose(drawn[drawn > 0], [share for share in column["before"] if share > 0])
        if not column["edges"]:
            np.testing.assert_allclose(seen.trace(f"column-{k}", 1, "x"), column["after"])
    assert seen.page.evaluate("() => document.getElementById('column-5')._fullLayout.xaxis.type") == "date"
    changes = "() => [...document.querySelectorAll('#changes tbody tr')].map((row) => Number(row.dataset.change))"
    before = seen.page.evaluate(changes)
    seen.page.select_option("#order", "change")
    assert seen.page.evaluate(changes) == sorted(before, reverse=True)
    seen.page.select_option("#order", "column")
    assert seen.page.evaluate(changes) == before
    assert seen.complaints == []
    assert seen.dialogs == []


def test_a_compression_shows_the_rows_as_they_were_counted(visit):
    seen, shown = visit("compression"), model()
    names = "() => document.getElementById('marginal-0').data.map((each) => each.name)"
    place = seen.page.evaluate(names).index("histogram")
    bars = shown.portrait.bars[0]
    there = bars[1] > bars[0]
    np.testing.assert_allclose(seen.trace("marginal-0", place, "y"), bars[2, there])
    assert f"bandwidth {figures(shown.portrait.widths[0])}" in seen.page.inner_text("figure:has(#marginal-0)")
