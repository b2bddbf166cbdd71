"""Long names, toolbars and legends of reports in a browser: names whole on hover, nothing covered, words that can be read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from reduset import Gaussian, KernelMean, compress, sketch
from reduset.cytometry import CohortStudy, SampleSet, write_report
from reduset.drift import two_sample
from reduset.model import Model
from reduset.report import write_compression, write_drift, write_sketch
from report_visits import Visit

pytestmark = pytest.mark.slow

CHANNELS = (
    "PerCP-Cy5-5-A :: CD45RA (clone HI100, BioLegend 304122)",
    "PerCP-Cy5-5-A :: CD45RO (clone UCHL1, BioLegend 304222)",
    "Comp-BV786-A :: HLA-DR (clone L243, BD 307642)",
)
GROUPS = ("healthy volunteers, age-matched", "rheumatoid arthritis, untreated")
KINDS = ("compression", "drift", "study", "sketch")
GROUP = "diagnosis at the first visit, as coded by the clinic"
GROUPED = [("study", "map"), ("sketch", "column-3")]
PICTURES = [("compression", "full"), ("drift", "map"), ("study", "heat"), *GROUPED]
READABLE = 4.5  # the least contrast of a text (WCAG 2.2, level AA)

# the letters of a table that are cut off on the screen, and have no title
CUT = """() => [...document.querySelectorAll("th, td, figcaption, option")]
    .filter((each) => each.textContent.includes("…") && !each.title && !each.querySelector("[title]"))
    .map((each) => each.textContent)"""
# what a toolbar lies on: bars, words of a legend, ticks and titles
COVERED = """(id) => { const plot = document.getElementById(id), bar = plot.querySelector(".modebar").getBoundingClientRect();
    const parts = ".bars path, .legendtext, .xtick text, .ytick text, .g-xtitle text, .g-ytitle text, .bg, .annotation-text";
    return [...plot.querySelectorAll(parts)]
      .filter((each) => { const box = each.getBoundingClientRect();
        return box.width && box.left < bar.right && box.right > bar.left && box.top < bar.bottom && box.bottom > bar.top; })
      .map((each) => each.textContent || each.getAttribute("class") || "bar"); }"""
# the colour of each word of a legend with all that makes it paler, and the colour below it
WORDS = """(id) => { const below = (at) => { for (; at; at = at.parentElement) {
        const found = getComputedStyle(at).backgroundColor; if (!found.endsWith(", 0)")) return found; } };
    return [...document.querySelectorAll(`#${id} .legendtext`)].map((word) => { let opacity = 1;
        for (let at = word; at && at.id !== id; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
        return [getComputedStyle(word).fill, opacity, below(word.closest(".plot"))]; }); }"""


def _cells(k):
    rng = np.random.default_rng(k)
    rare = rng.random(300) < (0.1 if k < 4 else 0.3)
    return np.where(rare[:, None], [1.0, 6.0, 3.0], [6.0, 1.0, 3.0]) + rng.normal(0, 0.4, (300, 3))


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(900, 3)), rng.normal(size=(400, 3))
    Y[:, 0] += 1.0
    X[:, 2], Y[:, 2] = rng.integers(0, 3, 900), rng.choice(3, 400, p=[0.1, 0.2, 0.7])  # a column that is drawn as bars
    full = KernelMean.from_samples(X, Gaussian(1.0))
    write_compression(folder / "compression.html", Model.of(full, compress(full, size=30, rng=0), list(CHANNELS)))
    write_drift(folder / "drift.html", two_sample(*(pd.DataFrame(each, columns=CHANNELS) for each in (X, Y)), rng=0))
    names = tuple(f"s{k}" for k in range(8))
    table = {"sample_id": names, "condition": tuple(GROUPS[k // 4] for k in range(8))}
    samples = SampleSet(names, tuple(map(_cells, range(8))), CHANNELS, table)
    write_report(folder / "study.html", CohortStudy(test="condition", n_atoms=30, random_state=0).fit(samples))
    frame = pd.DataFrame(X, columns=CHANNELS).assign(**{GROUP: rng.choice(GROUPS, 900)})
    write_sketch(folder / "sketch.html", sketch(frame, 60, rng=0), frame)
    return {kind: folder / f"{kind}.html" for kind in KINDS}


@pytest.fixture(scope="module")
def visit(browser, paths):
    opened = {}

    def open_(kind, scheme="light"):
        if (kind, scheme) not in opened:
            opened[kind, scheme] = Visit(browser, paths[kind], scheme=scheme)
        return opened[kind, scheme]

    yield open_
    for each in opened.values():
        each.context.close()


@pytest.mark.parametrize("kind", KINDS)
def test_names_in_tables_boxes_and_captions_lack_their_middle_and_are_whole_on_hover(kind, visit):
    page = visit(kind).page
    assert page.evaluate(CUT) == []
    cut = page.evaluate(
        "() => [...document.querySelectorAll('.cut[title], option[title]')].map((each) => [each.textContent, each.title])"
    )
    assert any(channel in full for _, full in cut for channel in CHANNELS)
    for short, full in cut:
        start, _, end = short.strip().rpartition("…")
        assert full.strip().endswith(end)
        assert full.strip().startswith(start.split("…")[0])


@pytest.mark.parametrize(("kind", "figure"), PICTURES)
def test_names_in_pictures_are_whole_on_hover(kind, figure, visit):
    seen = visit(kind)
    read = "(id) => [...document.querySelectorAll(`#${id} title`)].map((each) => each.textContent)"
    expected = set(GROUPS) if (kind, figure) in GROUPED else set(CHANNELS)
    assert set(seen.page.evaluate(read, figure)) & expected
    seen.page.click("#theme")  # pictures are drawn anew
    seen.settle()
    assert set(seen.page.evaluate(read, figure)) & expected
    seen.page.click("#theme")
    long = """(id) => [...document.querySelectorAll(`#${id} text`)]
        .filter((each) => each.textContent.length > 60 && !each.querySelector("title")).length"""
    assert seen.page.evaluate(long, figure) == 0


def test_the_labels_of_cells_have_whole_names(visit):
    labels = visit("drift").page.evaluate("() => document.getElementById('map').data[0].text.join()")
    assert all(channel in labels for channel in CHANNELS)


@pytest.mark.parametrize("kind", KINDS)
def test_toolbars_cover_nothing(kind, visit):
    page = visit(kind).page
    plots = page.evaluate("() => [...document.querySelectorAll('.js-plotly-plot')].map((each) => each.id)")
    assert len(plots) >= 4
    for plot in plots:
        place = page.locator(f"#{plot}")
        place.scroll_into_view_if_needed()
        place.hover()
        assert page.evaluate(COVERED, plot) == [], plot
        bar, frame = (page.locator(each).bounding_box() for each in (f"#{plot} .modebar", f"figure:has(#{plot})"))
        assert bar["y"] + bar["height"] <= frame["y"] + frame["height"]  # inside of its frame


def test_toolbars_can_be_reached_and_used(visit):
    page = visit("drift").page
    page.locator("#column-0").scroll_into_view_if_needed()
    page.locator("#column-0").hover()
    button = page.locator("#column-0 .modebar-btn").last
    button.hover(timeout=3000)
    page.wait_for_timeout(400)
    assert float(page.locator("#column-0 .modebar").evaluate("(each) => getComputedStyle(each).opacity")) == 1.0


def _contrast(text, opacity, below):
    def levels(colour):
        return np.array([float(each) for each in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255

    def luminance(colour):
        return np.array([0.2126, 0.7152, 0.0722]) @ np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)

    paper = levels(below)
    ends = sorted([luminance(opacity * levels(text) + (1 - opacity) * paper), luminance(paper)])
    return (ends[1] + 0.05) / (ends[0] + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("kind", "figure"), [("compression", "path"), ("study", "map"), ("sketch", "weights")])
def test_the_words_of_a_legend_can_be_read_also_of_what_is_switched_off(kind, figure, scheme, visit):
    seen = visit(kind, scheme)
    toggle = seen.page.locator(f"#{figure} .legendtoggle").first
    toggle.scroll_into_view_if_needed()
    toggle.click()
    seen.page.wait_for_timeout(600)  # it waits for a second click
    words = seen.page.evaluate(WORDS, figure)
    assert len(words) >= 2
    assert min(_contrast(*each) for each in words) >= READABLE
    struck = "(id) => [...document.querySelectorAll(`#${id} .legendtext`)].map((each) => getComputedStyle(each).textDecorationLine)"
    assert seen.page.evaluate(struck, figure).count("line-through") == 1
    toggle.click()
    seen.page.wait_for_timeout(600)
    assert "line-through" not in seen.page.evaluate(struck, figure)


def test_the_statistics_of_drift_are_named_in_words(visit):
    page = visit("drift").page
    ticks = page.evaluate("() => document.getElementById('looks').layout.yaxis.ticktext")
    assert len(set(ticks)) == len(ticks) > 4
    assert not any("whitened" in each for each in ticks)
    assert any(each.endswith(", standardised (λ = 0.01)") for each in ticks)
    assert page.evaluate("() => document.getElementById('looks').layout.yaxis.title.text") == "bandwidth"
    assert "whitened" not in page.locator("main").inner_text()
    assert "divided by its variance plus λ times the largest variance" in page.locator("main").inner_text()
