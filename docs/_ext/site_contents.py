"""The sidebar, from `chapters` in conf.py; and links to gallery scripts, which lead to their pages.

The pages are read in a checkout as well, where a table of contents in Sphinx's language would only be in the way. So the first page
gets it here, when it is read.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

GALLERY_SCRIPT = re.compile(r"\]\((?:\.\./)?examples/gallery/(plot_\w+)\.py\)")


def chapters_that_exist(chapters: dict[str, list[str]], docs: Path) -> dict[str, list[str]]:
    """The chapters without the pages that do not exist, and with the pages of docs/ that are in none."""
    listed = {page for pages in chapters.values() for page in pages}
    there = {page.stem for pattern in ("*.md", "*.rst") for page in docs.glob(pattern)} - {"index"}
    pages = {name: [page for page in pages if _exists(docs, page)] for name, pages in chapters.items()}
    pages["More"] = sorted(there - listed)
    return {name: found for name, found in pages.items() if found}


def _exists(docs: Path, page: str) -> bool:
    return any((docs / f"{page}{suffix}").exists() for suffix in (".md", ".rst"))


def _toctree(name: str, pages: list[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", ":maxdepth: 1", f":caption: {name}", "", *pages, "```", ""])


def _complete(app: Sphinx, docname: str, source: list[str]) -> None:
    up = "" if "/" in docname else "docs/"
    source[0] = GALLERY_SCRIPT.sub(rf"]({up}gallery/\1.rst)", source[0])
    if docname == app.config.root_doc:
        chapters = chapters_that_exist(app.config.chapters, Path(app.confdir))
        source[0] += "\n" + "\n".join(_toctree(name, pages) for name, pages in chapters.items())


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_config_value("chapters", {}, "env")
    app.connect("source-read", _complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
