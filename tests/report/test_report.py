"""Reports as files: their numbers are the model's, every text is escaped, nothing is fetched, and they stay small."""

import base64
import hashlib
import html
import importlib.util
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import squareform

import drift_cases
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, compress, report
from reduset._messages import printable
from reduset.certificate import Certificate
from reduset.cohort import CohortMap
from reduset.model import Model
from reduset.report import words as told
from reduset.report import write_audit, write_cohort, write_compression, write_drift, write_segmentation, write_sketch, write_watch
from reduset.report.cohort import alike_beside
from reduset.report.figures import path_figure, profile_figure, wide_columns
from reduset.report.page import as_json, as_script, plotly_script
from reduset.report.segmentation import as_bytes, borders, coded, data_uri, shrunk
from report_cases import (
    BREAKERS,
    GROUPS,
    HOSTILE,
    Page,
    audited,
    cohort,
    embedded,
    image,
    laws,
    model,
    resolved,
    segmentation,
    sketched,
    unpacked,
)

KINDS = ["audit", "compression", "cohort", "drift", "segmentation", "sketch", "watch"]


def written(kind, folder):
    path = folder / f"{kind}.html"
    if kind == "audit":
        write_audit(path, *audited(), about={"command": HOSTILE})
    elif kind == "compression":
        write_compression(path, model())
    elif kind == "cohort":
        write_cohort(path, cohort(), groups=GROUPS, about={"command": HOSTILE})
    elif kind == "drift":
        write_drift(path, drift_cases.result(), about={"sources": ["today.csv"]})
    elif kind == "watch":
        write_watch(path, drift_cases.monitor(), drift_cases.WATCHED)
    elif kind == "sketch":
        write_sketch(path, *sketched(), about={"command": HOSTILE})
    else:
        write_segmentation(path, image(), segmentation(image()), about={HOSTILE: HOSTILE})
    return path


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return {kind: written(kind, folder) for kind in KINDS}


def test_the_numbers_in_a_report_are_those_of_its_model(tmp_path):
    shown = model()
    write_compression(tmp_path / "r.html", shown)
    data = embedded(tmp_path / "r.html")
    assert data["steps"]["sizes"] == shown.step_sizes.tolist()
    weights = unpacked(data["steps"]["weights"])
    parts = np.split(weights, np.cumsum(shown.step_sizes)[:-1])
    for step, part in enumerate(parts):
        np.testing.assert_array_equal(part, shown.at(step).weights)
        assert data["steps"]["errors"][step] == shown.error_at(step)
    middles = np.array(data["middles"])
    np.testing.assert_allclose(unpacked(data["atoms"]).T + middles, shown.mean.atoms, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(unpacked(data["joint"]), shown.portrait.joint.astype(np.float32))
    np.testing.assert_array_equal(unpacked(data["marginals"]), shown.portrait.marginals.astype(np.float32))
    for k, (low, high, count, width) in enumerate(data["axes"]):
        np.testing.assert_allclose(np.linspace(low, high, count) + middles[k], shown.portrait.grids[k], rtol=1e-12)
        assert width == shown.portrait.widths[k]
    assert data["path"]["sizes"] == shown.path.sizes.tolist()
    assert data["path"]["errors"] == shown.path.relative_errors.tolist()
    assert data["path"]["interval"] == list(shown.certificate.interval)
    sizes = np.array(data["path"]["random_sizes"])
    np.testing.assert_allclose(data["path"]["random_errors"], shown.subsample_errors(sizes), rtol=1e-12)
    assert data["columns"] == list(shown.columns)


@pytest.mark.parametrize("made", [model, resolved])
def test_the_error_at_every_scale_is_that_of_the_models_profiles(made, tmp_path):
    shown = made()
    write_compression(tmp_path / "r.html", shown)
    data = embedded(tmp_path / "r.html")["profile"]
    assert [each["size"] for each in data["sizes"]] == shown.profiles.sizes.tolist()
    assert data["bandwidths"] == shown.profile().bandwidths.tolist()
    assert data["noise"] == shown.profile().noise.tolist()
    assert data["tol"] == (0.05 if shown.resolved is None else shown.resolved.tol)
    for step, which in enumerate(data["steps"]):
        profile, drawn = shown.profile(step), data["sizes"][which]
        assert drawn["errors"] == profile.relative_errors.tolist()
        assert drawn["low"] == profile.intervals[:, 0].tolist()
        assert drawn["high"] == profile.intervals[:, 1].tolist()
        assert drawn["random_rows"] == profile.random_rows.tolist()
        last = which == len(data["sizes"]) - 1
        assert drawn["finest"] == (shown.resolution if last and shown.resolved else profile.finest(data["tol"]))
    texts = " ".join(Page(tmp_path / "r.html").text().split())
    assert data["sizes"][-1]["told"].replace("\N{NO-BREAK SPACE}", " ") in texts
    assert "Error by bandwidth" in texts
    assert ("Resolution" in texts) == (shown.resolved is not None)  # in place of a bound that says nothing


@pytest.mark.parametrize("d", [1, 3])
def test_the_report_of_components_has_their_covariances_and_no_atoms(d, tmp_path):
    shown = laws(d=d, kernel=Gaussian(0.5, scales="robust"))
    write_compression(tmp_path / "r.html", shown)
    data = embedded(tmp_path / "r.html")
    widths, (first, second) = shown.portrait.widths, shown.portrait.pairs.T
    variances = (unpacked(data["laws"]["variances"]).T + data["laws"]["bump"]) * np.square(widths)
    np.testing.assert_allclose(variances, shown.mean.covariances.diagonal(axis1=1, axis2=2))
    crossed = (unpacked(data["laws"]["crossed"]).T + data["laws"]["bumpCrossed"]) * widths[first] * widths[second]
    np.testing.assert_allclose(crossed, shown.mean.covariances[:, first, second])
    text = Page(tmp_path / "r.html").text()
    assert f"{shown.size} weighted components represent 1,200 rows" in text
    assert f"{shown.mean.means[0, 0]:.5g} ± {np.sqrt(shown.mean.covariances[0, 0, 0]):.2g}" in text
    assert not re.search(r"\batoms?\b", text, re.IGNORECASE)


def test_how_fine_a_result_sees_is_said_in_words():
    shown = resolved()
    figure, space = profile_figure(shown), "\N{NO-BREAK SPACE}"
    start = f"The error of 40 atoms is at most 20{space}% at bandwidth {shown.resolution:.3g} and all larger ones"
    start += f", with 95{space}% confidence"
    rows = f"The error of 40 random rows is at most 20{space}% only from bandwidth {shown.resolved.random_rows:.3g} on"
    assert told.fine(figure) == f"{start}. {rows}."
    assert (
        told.fine(replace(figure, random_finest=None))
        == f"{start}. The error of 40 random rows is above 20{space}% at every bandwidth."
    )
    assert told.fine(replace(figure, random_rows=figure.errors * np.nan)).endswith("confidence.")
    assert told.fine(replace(figure, size=1, finest=None)).startswith(
        f"The error of 1 atom is not certified to be at most 20{space}% at any bandwidth"
    )
    card = told.finest(shown.resolved, shown.size)
    assert card.figure == f"{shown.resolution:.3g}"
    assert f"there and at all larger ones: {card.figure} = median distance / " in card.meaning
    between = replace(figure, noise_finest=0.7)
    assert f"above 20{space}% below bandwidth 0.7" in told.noise(between, 1200)
    assert "at every bandwidth" in told.noise(replace(figure, noise_finest=None), 1200)
    assert told.noise(replace(figure, noise_finest=figure.bandwidths[-1]), 1200).endswith("at the smallest bandwidth shown.")
    assert told.noise(replace(figure, noise=figure.noise * np.nan), 1200) == ""


def test_a_result_that_knows_one_scale_has_a_report_without_the_others(tmp_path):
    full = KernelMean.from_samples(np.random.default_rng(0).normal(size=(200, 2)), FunctionKernel("rbf", gamma=0.5))
    write_compression(tmp_path / "r.html", Model.of(full, compress(full, size=8, rng=0)))
    assert embedded(tmp_path / "r.html")["profile"] is None
    assert "Error by bandwidth" not in Page(tmp_path / "r.html").text()


def test_the_numbers_in_a_report_of_a_cohort_are_the_estimators(reports):
    data, fitted = embedded(reports["cohort"]), cohort()
    np.testing.assert_allclose(squareform(unpacked(data["distances"])), fitted.distances_, atol=1e-6)
    np.testing.assert_allclose(squareform(unpacked(data["errors"])), fitted.errors_, atol=1e-6)
    np.testing.assert_allclose(unpacked(data["places"]), fitted.embedding_ - fitted.embedding_.mean(axis=0), atol=1e-6)
    assert data["groups"] == GROUPS
    assert sorted(data["order"]) == list(range(6))
    texts = Page(reports["cohort"]).text()
    for name, made in zip(fitted.names_, fitted.compressions_, strict=True):
        assert name in texts
        assert f"{100 * made.certificate.relative_error:.3g} %" in texts


def test_a_certificate_is_said_in_words(tmp_path):
    rng = np.random.default_rng(0)
    full = KernelMean.from_samples(rng.normal(size=(20_000, 2)), Gaussian(0.8))
    shown = Model.of(full, compress(full, size=25, rng=0))
    write_compression(tmp_path / "r.html", shown)
    texts, certificate = Page(tmp_path / "r.html").text(), shown.certificate
    low, high = certificate.interval
    for wanted in (
        "20,000",
        "1 in 800",
        f"95 % confidence interval {100 * low:.3g} % to {100 * high:.3g} %",
        f"≤ {100 * certificate.bound / certificate.norm:.3g} %",
        f"{100 * shown.subsample_errors(np.array([25]))[0]:.3g} %",
        f"{told.roughly(path_figure(shown).alike)} random rows",
    ):
        assert wanted in texts, wanted


def certificate(**changes):
    usual = {"relative_error": 0.01, "interval": (0.009, 0.011), "confidence": 0.9, "method": "rows", "norm": 2.0, "energy": 1.0}
    return Certificate(**usual | {"bound": 1.0, "theorem_bound": 1.0, "sup_bound": None, "incoherence": None} | changes)


def test_words_fit_what_was_found():
    assert "Larger than the error of the zero function" in told.lost(certificate(relative_error=1.2, interval=(1.1, 1.3))).meaning
    assert told.lost(certificate(method="exact")).meaning == "Computed exactly, from every pair of rows."
    assert "sample of pixels" in told.lost(certificate(), "pixel").meaning
    assert "the densities differ by at most 10.5\N{NO-BREAK SPACE}%" in told.error(certificate(log_density_change=0.1))
    assert told.kept(10, 10).figure == "all"
    assert told.kept(1000, 40, zeros=1).meaning.endswith(" 1 of the 40 has weight 0 at this size.")
    assert told.kept(20_000, 16).figure == "1 in 1,250"
    assert told.kept(1000, 1).meaning.startswith("1 weighted atom represents 1,000 rows")
    assert [told.roughly(number) for number in (3.14159, 42.4, 57_123, 1_234_567)] == ["3.1", "42", "57,000", "1,200,000"]
    space = "\N{NO-BREAK SPACE}"
    spelt = {0.0: "0", 0.0123: "1.23", 16.94: "1,690", 9.996: "1,000", 2.5e-9: f"2.5{space}×{space}10⁻⁷"}
    assert [told.percent(share) for share in spelt] == [f"{text}{space}%" for text in spelt.values()]
    assert told.percent(np.nan) == "—"
    assert told.shortened("a long name, visit 1", 11) == "a lon…sit 1"
    assert told.lost(certificate(relative_error=1e-14)).meaning == "Zero up to rounding errors."
    assert told.plain({"a": [1, 2.0], "b": True}) == "a 1, 2, b yes"
    assert told.plain(["load, mean", "load, peak"]) == "load, mean; load, peak"


@pytest.mark.parametrize(
    ("bound", "norm", "figure"),
    [(1.0, 2.0, "≤ 50\N{NO-BREAK SPACE}%"), (3.0, 2.0, None), (None, 2.0, None), (1.0, np.nan, None)],
)
def test_a_bound_is_told_only_where_it_says_something(bound, norm, figure):
    shown = model(size=5)
    changed = Model(**vars(shown) | {"certificate": certificate(bound=bound, norm=norm)})
    card = told.promised(path_figure(changed))
    assert (card and card.figure) == figure


def test_a_bandwidth_that_hides_a_column_is_told():
    rng = np.random.default_rng(0)
    two_heaps = np.where(rng.random(300) < 0.5, 0.0, 1.0)  # as far apart as rows of the range can be
    full = KernelMean.from_samples(np.stack([two_heaps, 2.1 * two_heaps, np.ones(300)], axis=1), Gaussian(0.52))
    shown = Model.of(full, compress(full, size=2, select="kcenter", rng=0), ["narrow", "broad", "constant"])
    assert wide_columns(shown) == ["narrow"]
    humps = [(np.diff(np.sign(np.diff(each))) < 0).sum() for each in shown.portrait.marginals]
    assert humps[:2] == [1, 2]
    assert told.wide(["narrow"], 3).startswith("Along narrow the bandwidth is more than half of the whole range")
    assert told.wide(["a", "b"], 2).startswith("Along every column")
    assert "--whiten" in told.wide(["narrow"], 3)
    assert "--whiten" not in told.wide(["narrow"], 3, whitened=True)  # it was done
    assert told.wide([str(k) for k in range(9)], 20).startswith("Along 0, 1, 2, 3 and 5 more the")
    assert told.wide([], 3) == ""
    other = Model(**vars(shown) | {"mean": KernelMean(shown.mean.atoms, shown.mean.weights, Laplacian(0.52))})
    assert wide_columns(other) == []


def test_signed_weights_and_one_column_have_reports_too(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 1))
    full = KernelMean(X, np.where(np.arange(300) % 3, 1.0, -0.4), Laplacian(0.5))
    write_compression(tmp_path / "r.html", Model.of(full, compress(full, size=8, rng=0), ["only"]))
    data = embedded(tmp_path / "r.html")
    assert data["pairs"] == []
    assert data["path"]["random_sizes"] is None
    assert "no comparison with random rows" in Page(tmp_path / "r.html").text()
    assert not any(data["profile"]["noise"])
    assert not any(any(each["random_rows"]) for each in data["profile"]["sizes"])


def test_nothing_lost_is_no_error(tmp_path):
    full = KernelMean.from_samples(np.random.default_rng(0).normal(size=(20, 2)), Gaussian(0.5))
    write_compression(tmp_path / "r.html", Model.of(full, compress(full, size=20, select="kcenter", rng=0)))
    texts = Page(tmp_path / "r.html").text()
    assert "Every one of the 20 rows is an atom" in texts
    assert "Zero up to rounding" in texts
    assert "every row is an atom, or equal to one" in texts
    assert "times as much" not in texts


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_texts_are_shown_and_never_markup(kind, reports):
    page = Page(reports[kind])
    assert HOSTILE in " ".join(page.texts) + " ".join(
        str(value) for _, attributes in page.elements for value in attributes.values()
    )
    assert not [script for script in page.scripts if "alert(1)" in script and not script.lstrip().startswith("{")]
    assert not [tag for tag, attributes in page.elements if any(name.startswith("on") for name in attributes)]


@pytest.mark.parametrize("text", BREAKERS)
def test_any_name_survives_the_way_into_the_page(text, tmp_path):
    shown = model(
        n=200, size=3, columns=[text, text + "2", "c"], about={"command": text, "sources": [text], text: text, "notes": [text]}
    )
    write_compression(tmp_path / "r.html", shown)
    assert embedded(tmp_path / "r.html")["columns"] == [printable(name) for name in shown.columns]
    page = Page(tmp_path / "r.html")
    assert [tag for tag, _ in page.elements].count("script") == 4  # theme, data, plotly, report
    assert not {"b", "img"} & {tag for tag, _ in page.elements}
    assert " ".join(printable(text, lines=True).split()) in " ".join(" ".join(page.texts).split())


def test_json_and_scripts_cannot_end_their_element():
    assert not re.search(r"[<>&\u2028\u2029]", as_json({"a": BREAKERS}))
    assert as_script("a('</script>');\r\nb('<!--')") == "a('<\\/script>');\nb('\\x3c!--')"
    assert as_json([float("nan"), np.array([1.5, np.inf])]) == "[null,[1.5,null]]"


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_needs_nothing_but_itself(kind, reports):
    page = Page(reports[kind])
    for tag, attributes in page.elements:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            assert attributes.get(name, "#").startswith(("data:", "#")), (tag, name)
    assert "@import" not in reports[kind].read_text(encoding="utf-8").split("</style>")[0]
    policy = next(each["content"] for tag, each in page.elements if each.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in rules["script-src"]
    running = re.findall(r"<script>(.*?)</script>", reports[kind].read_text(encoding="utf-8"), re.DOTALL)
    digests = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in running]
    assert rules["script-src"].split() == digests
    assert "http" not in policy


@pytest.mark.parametrize("kind", KINDS)
def test_reports_say_where_they_came_from_and_have_headings_and_labels(kind, reports):
    page = Page(reports[kind])
    assert "numpy " + np.__version__ in page.text()
    tags = [tag for tag, _ in page.elements]
    assert tags.count("h1") == 1
    assert tags.count("h2") >= 4
    assert all("alt" in attributes for tag, attributes in page.elements if tag == "img")
    assert all(attributes.get("aria-label") for _, attributes in page.elements if attributes.get("role") in ("img", "region"))
    assert next(attributes for tag, attributes in page.elements if tag == "html")["lang"] == "en"


def test_a_report_of_seven_columns_and_a_thousand_atoms_is_under_six_megabytes(tmp_path):
    rng = np.random.default_rng(0)
    full = KernelMean.from_samples(rng.normal(size=(20_000, 7)), Gaussian(1.0))
    shown = Model.of(full, compress(full, size=1000, select="random", rng=0))
    million = Model(**vars(shown) | {"n_samples": 1_000_000})  # what is embedded does not depend on how many rows there were
    write_compression(tmp_path / "r.html", million)
    assert (tmp_path / "r.html").stat().st_size < 6e6
    assert (tmp_path / "r.html").stat().st_size - len(plotly_script()) < 5e5


def test_very_many_atoms_show_fewer_columns(tmp_path, monkeypatch):
    monkeypatch.setattr("reduset.report.compression.MAX_VALUES", 400)
    write_compression(tmp_path / "r.html", model(d=20))
    data = embedded(tmp_path / "r.html")
    assert len(data["columns"]) == len(data["axes"]) == 10
    assert unpacked(data["atoms"]).shape == (10, 40)
    page = Page(tmp_path / "r.html")
    assert "Figures of the first 10 columns of 20" in page.text()
    assert "marginal-9" in [attributes.get("id") for _, attributes in page.elements]
    assert "marginal-10" not in [attributes.get("id") for _, attributes in page.elements]


def test_plotly_is_in_a_report_once_and_its_absence_is_told(reports, monkeypatch, tmp_path):
    text = reports["compression"].read_text(encoding="utf-8")
    assert text.count("plotly.js v") >= 1
    assert text.count("window.Plotly = Plotly") == 1
    assert "window.Plotly" not in reports["segmentation"].read_text(encoding="utf-8")
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "plotly" else found(name))
    with pytest.raises(ImportError, match=r"pip install 'reduset\[report\]'"):
        write_compression(tmp_path / "r.html", model(n=200, size=3))
    assert not list(tmp_path.iterdir())


def test_a_report_appears_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "r.html"
    target.write_text("before")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_compression(target, model(n=200, size=3))
    assert [each.name for each in tmp_path.iterdir()] == ["r.html"]
    assert target.read_text() == "before"


def test_what_is_no_model_or_no_such_image_is_refused(tmp_path):
    full = KernelMean.from_samples(np.arange(10.0)[:, None], Gaussian(1.0))
    small = compress(full, size=2, rng=0)
    with pytest.raises(TypeError, match=r"model .*got Compression"):
        write_compression(tmp_path / "r.html", small)
    with pytest.raises(ValueError, match="image must be the one that was segmented, of 40 × 60 pixels"):
        write_segmentation(tmp_path / "r.html", image(20, 20), segmentation(image()))
    with pytest.raises(ValueError, match=r"groups .*got 2"):
        write_cohort(tmp_path / "r.html", cohort(), groups=["a", "b"])
    with pytest.raises(ValueError, match=r"groups .*got 'nobody'"):
        write_cohort(tmp_path / "r.html", cohort(), groups={"nobody": "a"})


def test_groups_may_come_by_name(tmp_path):
    write_cohort(tmp_path / "r.html", cohort(), groups={"first": "a", "third": float("nan")})
    assert embedded(tmp_path / "r.html")["groups"] == ["a", None, None, None, None, None]


def test_a_cohort_that_was_not_compressed_says_so(tmp_path):
    rng = np.random.default_rng(0)
    fitted = CohortMap(layout="mds", atoms="all", n_components=1, random_state=0).fit([rng.normal(size=(40, 2)) for _ in range(3)])
    write_cohort(tmp_path / "r.html", fitted)
    assert "nothing was compressed" in Page(tmp_path / "r.html").text()
    assert embedded(tmp_path / "r.html")["flat"] is True


def test_bags_that_are_alike_stand_beside_each_other():
    places = np.array([0.0, 10.0, 0.1, 10.1, 0.2, 10.2])
    order = alike_beside(np.abs(places[:, None] - places))
    assert (np.diff(places[order] > 5) != 0).sum() == 1
    far = np.abs(places[:, None] - places)
    far[0, 1] = far[1, 0] = np.inf
    assert sorted(alike_beside(far)) == list(range(6))


def _decoded(uri):
    kind, _, text = uri.partition(",")
    assert kind == "data:image/png;base64"
    return base64.b64decode(text)


def test_images_in_a_report_are_those_given():
    pillow = pytest.importorskip("PIL.Image")
    from io import BytesIO

    rng = np.random.default_rng(0)
    for shape in ((7, 5), (7, 5, 1), (7, 5, 3), (6, 9, 4)):
        picture = rng.integers(0, 256, shape).astype(np.uint8)
        read = np.asarray(pillow.open(BytesIO(_decoded(data_uri(picture)))))
        np.testing.assert_array_equal(read.reshape(shape), picture)
    labels = rng.integers(0, 70_000, (8, 9))
    code = np.asarray(pillow.open(BytesIO(_decoded(data_uri(coded(labels)))))).astype(np.int64)
    np.testing.assert_array_equal(code @ [1, 256, 65536], labels)


def test_images_of_any_kind_become_bytes():
    assert as_bytes(np.array([[0.0, 1.0]])).ravel().tolist() == [0, 255]
    assert as_bytes(np.array([[0.0, 255.0]])).ravel().tolist() == [0, 255]
    assert as_bytes(np.array([[0, 65535]], np.uint16)).ravel().tolist() == [0, 255]
    assert as_bytes(np.array([[False, True]])).ravel().tolist() == [0, 255]


def test_large_images_are_shown_smaller_by_their_means():
    picture = np.arange(35, dtype=np.uint8).reshape(5, 7, 1)
    small = shrunk(picture, 2)
    assert small.shape == (3, 4, 1)
    assert small[0, 0, 0] == np.rint(picture[:2, :2].mean())
    assert small[2, 3, 0] == picture[4, 6, 0]
    assert borders(np.array([[0, 0, 1], [0, 0, 1]])).tolist() == [[False, True, False], [False, True, False]]


def test_a_large_image_keeps_its_report_small(tmp_path):
    picture = np.random.default_rng(0).integers(0, 255, (1900, 2500), dtype=np.uint8)
    write_segmentation(tmp_path / "r.html", picture, segmentation(picture))
    assert (tmp_path / "r.html").stat().st_size < 6e6
    assert "shown at 1 : 3" in Page(tmp_path / "r.html").text()


def test_the_files_of_the_pages_are_in_the_package():
    folder = Path(importlib.util.find_spec("reduset.report").origin).parent
    assert {each.suffix for each in folder.iterdir() if each.is_file()} == {".py", ".js", ".css", ".html"}
    for each in folder.glob("*.js"):
        assert each.read_text(encoding="utf-8").startswith("//"), each.name
        assert html.escape(HOSTILE) not in each.read_text(encoding="utf-8")


@pytest.mark.slow
def test_writing_a_report_of_a_compression_imports_no_learning_or_plotting_library():
    heavy = "('sklearn', 'pandas', 'matplotlib', 'plotly')"
    code = f"import sys; from reduset.report import write_compression; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_exists_and_no_other_is_made_up():
    assert dir(report) == sorted(report.__all__) == report.__all__
    assert all(getattr(report, name).__name__ == name for name in report.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'write_novel'"):
        report.write_novel  # noqa: B018
