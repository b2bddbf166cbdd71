"""What the pages say is run: every Python block, what it prints, and every link between files."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NUMBER = re.compile(r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _without_numbers(text: str) -> str:
    return " ".join(NUMBER.sub("#", text).split())


def _headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ +(.*)$", prose, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))], ids=_name)
def test_python_blocks_run_and_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "page"}
    for block in BLOCK.finditer(text):
        # blank lines in front, so that a traceback names the line of the page
        line = text[: block.start()].count("\n") + 1
        code = compile("\n" * line + block.group(1), str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if block.group(2) is not None:
            assert _without_numbers(printed.getvalue()) == _without_numbers(block.group(2)), f"{_name(page)}, line {line}"


def test_the_pages_with_code_are_found():
    with_code = {_name(page) for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))}
    assert {"README.md", "docs/compress.md", "docs/sketch.md"} <= with_code


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_relative_links_lead_to_files_and_headings(page):
    broken = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in _headings(file)):
            broken.append(target)
    assert not broken, f"{_name(page)} links to {broken}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=_name)
def test_files_that_a_page_names_are_there(page):
    """A path in backquotes is one of the source, or of the project."""
    named = re.findall(r"`((?:[\w-]+/)*[\w-]+\.py)`", page.read_text(encoding="utf-8"))
    places = (ROOT / "src" / "reduset", ROOT / "src", ROOT)
    examples = {"examples/gallery/plot_name.py", "estimator.py", "cases.py"}  # of files that are to be written, or were just named
    missing = [name for name in named if name not in examples and not any((place / name).exists() for place in places)]
    assert not missing
