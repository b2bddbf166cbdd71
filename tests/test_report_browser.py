"""Reports opened in a real browser: nothing fetched, nothing complained about, and the pictures are those of the model.

Chromium is the system's own, driven by Playwright; REDUSET_BROWSER names another. Where there is none the tests are skipped, but
never in CI.
"""

import os
import shutil

import numpy as np
import pytest

from reduset.report import write_cohort, write_compression, write_segmentation
from report_cases import GROUPS, HOSTILE, cohort, image, model, segmentation

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZES = {"phone": (390, 844), "narrow": (360, 640), "desktop": (1280, 900)}
KINDS = ["compression", "one column", "cohort", "segmentation"]


# elements that reach beyond the screen, but for those that move in a frame of their own
WIDER = """() => [...document.querySelectorAll("main *:not(.wide *, svg *, option)")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.outerHTML.slice(0, 80))"""
# how many pixels are lit on the canvas
LIT = """() => { const canvas = document.getElementById("lit");
    return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.filter((v, i) => i % 4 === 3 && v > 0).length; }"""


def installed():
    given = os.environ.get("REDUSET_BROWSER")
    return given or next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="module")
def browser():
    path = installed()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium: in CI reports must be opened; run scripts/browser.sh as root, or set REDUSET_BROWSER")
        pytest.skip("no Chromium: run scripts/browser.sh as root, or set REDUSET_BROWSER")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    paths = {kind: folder / f"{kind}.html" for kind in KINDS}
    write_compression(paths["compression"], model())
    write_compression(paths["one column"], model(d=1))
    write_cohort(paths["cohort"], cohort(), groups=GROUPS)
    write_segmentation(paths["segmentation"], image(), segmentation(image()))
    return paths


class Visit:
    """A page, what it asked for and what it complained about."""

    def __init__(self, browser, path, size="desktop", scheme="light"):
        width, height = SIZES[size]
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=width < 500)
        self.page = self.context.new_page()
        self.requests, self.complaints, self.dialogs = [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.goto(path.as_uri())
        self.settle()

    def settle(self):
        """Wait for what was asked for to be on the screen: two frames."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def slide(self, step):
        self.page.evaluate(
            "(step) => { const s = document.getElementById('step'); s.value = step; s.dispatchEvent(new Event('input')); }", step
        )
        self.settle()

    def trace(self, figure, number, name):
        """Numbers of a trace, as plotly has them."""
        read = """([id, k, name]) => Array.from(document.getElementById(id).data[k][name], (each) => each.length ? Array.from(each) : each)"""
        return np.array(self.page.evaluate(read, [figure, number, name]), dtype=float)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_a_report_opens_without_a_complaint_or_a_request_and_fits(kind, size, browser, reports, tmp_path):
    from matplotlib.image import imread

    with Visit(browser, reports[kind], size) as visit:
        shot = tmp_path / "shot.png"
        visit.page.screenshot(path=shot, full_page=True)
        assert visit.complaints == []
        assert [url for url in visit.requests if not url.startswith("data:")] == [reports[kind].as_uri()]
        width = visit.page.evaluate("document.documentElement.scrollWidth")
        assert width <= SIZES[size][0]
        wider = visit.page.evaluate(WIDER)
        assert wider == []
        drawn = (255 * imread(shot)[..., :3]).astype(np.int64)
        assert drawn.shape[1] == SIZES[size][0]
        assert len(np.unique(drawn[::2] @ [1, 256, 65536])) > 200
        plots = visit.page.locator(".plot").count()
        assert visit.page.locator(".plot .main-svg").count() >= plots


def test_the_slider_moves_the_atoms_and_the_densities_are_the_models(browser, reports):
    shown = model()
    portrait = shown.portrait
    with Visit(browser, reports["compression"]) as visit:
        last = len(shown.step_sizes) - 1
        for step in (last, 3, last // 2):
            visit.slide(step)
            small = shown.at(step)
            positive, negative = (visit.trace("atoms", k, "customdata").astype(int) for k in (1, 2))
            assert sorted([*positive, *negative]) == list(range(small.size))
            assert (small.weights[positive] >= 0).all()
            assert (small.weights[negative] < 0).all()
            np.testing.assert_allclose(visit.trace("atoms", 1, "x"), small.atoms[positive, 0], atol=1e-4)
            np.testing.assert_allclose(visit.trace("atoms", 1, "y"), small.atoms[positive, 1], atol=1e-4)
            joint = portrait.joint_of(small)[0]
            np.testing.assert_allclose(visit.trace("small", 0, "z").T, joint, atol=1e-4 * np.abs(joint).max())
            np.testing.assert_allclose(visit.trace("full", 0, "z").T, portrait.joint[0], rtol=1e-6)
            difference = joint - portrait.joint[0]
            np.testing.assert_allclose(visit.trace("difference", 0, "z").T, difference, atol=1e-4 * np.abs(joint).max())
            for k, wanted in enumerate(portrait.marginals_of(small)):
                np.testing.assert_allclose(visit.trace(f"marginal-{k}", 1, "y"), wanted, atol=1e-4 * wanted.max())
                np.testing.assert_allclose(visit.trace(f"marginal-{k}", 0, "y"), portrait.marginals[k], rtol=1e-6)
                np.testing.assert_allclose(visit.trace(f"marginal-{k}", 0, "x"), portrait.grids[k], rtol=1e-9)
            assert f"{small.size} atoms" in visit.page.inner_text("#told").replace("1 atom,", "1 atoms,")
            assert visit.page.evaluate("document.getElementById('path').data.at(-1).x[0]") == small.size
        assert visit.complaints == []


def test_another_pair_is_drawn_when_it_is_chosen(browser, reports):
    shown = model()
    with Visit(browser, reports["compression"]) as visit:
        visit.page.select_option("#pair", "2")
        visit.settle()
        assert shown.portrait.pairs[2].tolist() == [1, 2]
        joint = shown.portrait.joint_of(shown.mean)[2]
        np.testing.assert_allclose(visit.trace("small", 0, "z").T, joint, atol=1e-4 * np.abs(joint).max())
        np.testing.assert_allclose(visit.trace("small", 0, "x"), shown.portrait.pair_grids[1], rtol=1e-9)
        assert HOSTILE in visit.page.inner_text("#pair")
        assert visit.page.text_content("#small .xtitle") == HOSTILE


def test_the_play_button_goes_through_all_sizes(browser, reports):
    with Visit(browser, reports["compression"]) as visit:
        told = visit.page.inner_text("#told")
        visit.page.click("#play")
        visit.page.get_by_text("1 atom, error").wait_for(timeout=5000)
        visit.page.get_by_text("2 atoms, error").wait_for(timeout=5000)
        visit.page.get_by_label("Pause").click()
        assert visit.page.inner_text("#told") != told


def hovered(visit, figure, number):
    """Point at a marker of a trace; the label that appears."""
    marker = visit.page.locator(f"#{figure} .scatterlayer .trace").nth(number).locator(".point").first
    marker.scroll_into_view_if_needed()
    box = marker.bounding_box()
    visit.page.mouse.move(box["x"] + box["width"] / 2 + 1, box["y"] + box["height"] / 2)
    visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    label = visit.page.locator(f"#{figure} .hoverlayer .hovertext").first
    label.wait_for(timeout=5000)
    return label.text_content()


def test_pointing_at_an_atom_shows_names_values_and_weight(browser, reports):
    with Visit(browser, reports["compression"]) as visit:
        visit.slide(0)  # one atom alone
        label = hovered(visit, "atoms", 0)
        first = model().at(0)
        for wanted in ("atom 1", "height ", HOSTILE, "weight "):
            assert wanted in label
        assert f"{first.weights[0]:.4g}"[:5] in label.split("weight ")[1]


def test_pointing_at_a_bag_shows_its_name_and_group_and_the_order_can_be_changed(browser, reports):
    fitted = cohort()
    with Visit(browser, reports["cohort"]) as visit:
        assert hovered(visit, "map", 0) == "firstill"
        assert HOSTILE[:20] in "".join(visit.page.locator("#map .legendtext").all_text_contents())
        assert HOSTILE in visit.page.evaluate("document.getElementById('heat').data[0].text.flat().join()").replace(
            "&lt;", "<"
        ).replace("&gt;", ">")
        visit.page.select_option("#order", "given")
        visit.settle()
        np.testing.assert_allclose(visit.trace("heat", 0, "z"), fitted.distances_, atol=1e-6)
        assert visit.complaints == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_name_is_shown_and_not_run(kind, browser, reports):
    with Visit(browser, reports[kind]) as visit:
        assert visit.dialogs == []
        assert kind in ("one column", "segmentation") or HOSTILE in visit.page.inner_text("main")


def test_a_script_that_got_into_a_page_would_not_run(browser, reports, tmp_path):
    spoilt = tmp_path / "spoilt.html"
    text = reports["segmentation"].read_text(encoding="utf-8")
    spoilt.write_text(text.replace("<main", '<script>alert(1)</script><img src="x" onerror="alert(2)"><main', 1), encoding="utf-8")
    with Visit(browser, spoilt) as visit:
        assert visit.dialogs == []
        assert len(visit.complaints) >= 2  # the browser says what it refused


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_the_systems_and_can_be_turned(scheme, browser, reports):
    other = {"light": "dark", "dark": "light"}[scheme]
    paper = "getComputedStyle(document.body).backgroundColor"
    inside = "document.getElementById('path').layout.font.color"
    with Visit(browser, reports["compression"], scheme=scheme) as visit:
        assert visit.page.evaluate("document.documentElement.dataset.theme") == scheme
        before, text = visit.page.evaluate(paper), visit.page.evaluate(inside)
        visit.page.click("#theme")
        visit.settle()
        assert visit.page.evaluate("document.documentElement.dataset.theme") == other
        assert visit.page.evaluate(paper) != before
        assert visit.page.evaluate(inside) != text
        bright = sum(int(level) for level in before[4:-1].split(","))
        assert (bright > 600) == (scheme == "light")
        assert visit.complaints == []


def test_the_handle_and_the_segments_of_an_image_follow_the_pointer(browser, reports):
    with Visit(browser, reports["segmentation"]) as visit:
        visit.page.fill("#share", "20")
        assert visit.page.evaluate("document.getElementById('wipe').style.getPropertyValue('--share')") == "20%"
        visit.page.locator("#segments").scroll_into_view_if_needed()
        box = visit.page.locator("#lit").bounding_box()
        visit.page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.5 * box["height"])
        visit.settle()
        assert visit.page.inner_text("#pointed").replace("\N{NO-BREAK SPACE}", " ") == "Segment 2: 1,200 pixels, 50 % of all."
        assert visit.page.evaluate(LIT) == 1200
        assert visit.complaints == []
