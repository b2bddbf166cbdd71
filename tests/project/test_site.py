"""The documentation site: it is built without a warning, has every page, and asks nothing of the network."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest

import reduset

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(page.stem for page in DOCS.glob("*.md"))
PUBLIC = (
    "",
    ".anndata",
    ".cohort",
    ".drift",
    ".features",
    ".io",
    ".report",
    ".select",
    ".spectral",
    ".stream",
    ".svm",
)
LOADED = {"link": "href", "object": "data"} | dict.fromkeys(("script", "img", "iframe", "source", "video", "audio"), "src")
ELSEWHERE = re.compile(r"(?:[a-z]+:)?//", re.IGNORECASE)


def _extension(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Page(HTMLParser):
    """What a page loads, where it leads, and what can be led to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors.update(values[name] for name in ("id", "name") if values.get(name))
        if tag in LOADED and values.get(LOADED[tag]):
            self.loads.append(values[LOADED[tag]])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built from a copy, so that nothing is written into the working tree; the gallery's scripts are run elsewhere."""
    source, target = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, source / "docs", ignore=shutil.ignore_patterns("__pycache__", "gallery", "reference"))
    for folder in ("examples", "benchmarks", "src"):
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "LICENSE", "CITATION.cff"):
        shutil.copy(ROOT / name, source)
    path = os.pathsep.join(entry for entry in sys.path if entry)
    result = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "plot_gallery=0", "-c", "docs", ".", str(target)],
        cwd=source,
        env=os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return {page: _Page(page.read_text(encoding="utf-8")) for page in target.rglob("*.html")}, target


def test_every_page_is_on_the_site_and_in_the_sidebar(site):
    pages, target = site
    listed = {(target / "docs" / link).resolve() for link in pages[target / "docs" / "index.html"].links}
    assert {target / "docs" / f"{name}.html" for name in PAGES if name != "index"} <= listed
    scripts = {path.stem for path in (ROOT / "examples" / "gallery").glob("plot_*.py")}
    assert {target / "docs" / "gallery" / f"{name}.html" for name in scripts} <= set(pages)
    assert (target / "index.html").exists()


def test_no_page_loads_anything_from_elsewhere(site):
    pages, target = site
    for page, found in pages.items():
        assert not [what for what in found.loads if ELSEWHERE.match(what)], page.relative_to(target)
    for sheet in target.rglob("*.css"):
        assert not re.search(r"(?:url\(\s*['\"]?|@import\s+['\"])(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def test_all_links_within_the_site_lead_somewhere(site):
    pages, target = site
    broken = []
    for page, found in pages.items():
        for link in found.links + found.loads:
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            place = (page.parent / path.partition("?")[0]).resolve() if path else page
            if not place.exists() or (anchor and place in pages and anchor not in pages[place].anchors):
                broken.append(f"{page.relative_to(target)}: {link}")
    assert not broken


def test_formulas_are_there_without_a_script(site):
    _, target = site
    page = (target / "docs" / "mathematics.html").read_text(encoding="utf-8")
    written = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    assert page.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') == written.count("\n$$\n") // 2
    assert "\\frac" not in page


def test_every_public_name_is_in_the_reference(site):
    _, target = site
    expected = {f"reduset{module}.{name}" for module in PUBLIC for name in importlib.import_module(f"reduset{module}").__all__}
    made = {page.stem for page in (target / "docs" / "reference").glob("*.html")}
    assert expected <= made
    assert reduset.__version__ in (target / "docs" / "index.html").read_text(encoding="utf-8")


def test_chapters_take_the_pages_that_exist_and_leave_out_the_others(tmp_path):
    for name in ("index.md", "start.md", "command.md", "table.rst"):
        (tmp_path / name).write_text("# A page\n")
    listed = {"Begin": ["start", "command", "files"], "Uses": ["density"]}
    chapters = _extension("site_contents").chapters_that_exist(listed, tmp_path)
    assert chapters == {"Begin": ["start", "command"], "More": ["table"]}


@pytest.mark.parametrize("page", [name for name in PAGES if name != "index"])
def test_the_first_page_leads_to_every_page(page):
    assert f"]({page}.md)" in (DOCS / "index.md").read_text(encoding="utf-8")


def test_docstrings_keep_their_bars_and_underscores():
    escape = _extension("site_docstrings")._escape
    assert escape("the Σ|w| of labels_ and ``mean_``") == r"the Σ\|w\| of labels\_ and ``mean_``"
    assert escape("atoms_ : of size |w|") == r"atoms_ : of size \|w\|"
    assert escape(">>> a_ | b_") == ">>> a_ | b_"
