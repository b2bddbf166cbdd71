"""The documentation stays short and in the field's words: words per page, one index, and no word that the glossary replaces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.glob("*.md")])
LIMITS = {"README.md": 700, "docs/design.md": 3000, "CONTRIBUTING.md": 1500, "benchmarks/RESULTS.md": 6000}
ALL_PAGES, ONE_PAGE = 40_000, 2000
LONGER = {
    "docs/mathematics.md": 6500,
    "docs/design.md": 3000,
}  # derivations with tables of the papers, and the page for contributors
REPLACED = re.compile(r"^\| ([\w, ]+) \| [^|]+ \|$", flags=re.MULTILINE)


def words(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").split())


def replaced_words() -> list[str]:
    """The left column of the glossary's table of replaced words."""
    table = (DOCS / "glossary.md").read_text(encoding="utf-8").split("## Replaced words")[1]
    return [word for row in REPLACED.findall(table) if row != "replaced" for word in row.split(", ")]


def uses(text: str, word: str) -> list[str]:
    """The lines of a page that use a word, without code and formulas."""
    prose = re.sub(r"^```.*?^```|^\$\$.*?^\$\$|`[^`]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for line in prose.splitlines() if re.search(rf"\b{word}\b", line, flags=re.IGNORECASE)]


@pytest.mark.parametrize(("name", "limit"), LIMITS.items())
def test_long_pages_stay_within_their_limit(name, limit):
    assert words(ROOT / name) <= limit


def test_all_pages_together_stay_within_the_limit():
    counts = {page.relative_to(ROOT).as_posix(): words(page) for page in PAGES}
    assert sum(counts.values()) <= ALL_PAGES
    assert {name: count for name, count in counts.items() if count > LONGER.get(name, ONE_PAGE)} == {}


def test_every_page_is_in_the_one_index():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS.glob("*.md") if page.name != "index.md" and f"({page.name})" not in index] == []


def test_the_table_of_replaced_words_is_read():
    assert {"told", "owners", "beside"} <= set(replaced_words())
    assert uses("A `told` name.\nIt told us.\n```\ntold\n```\n", "told") == ["It told us."]


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"], ids=lambda page: page.name
)
def test_pages_use_no_replaced_word(page):
    text = page.read_text(encoding="utf-8").split("## Replaced words")[0]
    found = {word: uses(text, word) for word in replaced_words()}
    assert {word: lines for word, lines in found.items() if lines} == {}
