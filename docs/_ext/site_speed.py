"""What building the site would do again and again is done once: the same pages, sooner."""

import gc
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import furo
from docutils import nodes
from jinja2 import BaseLoader
from jinja2.sandbox import SandboxedEnvironment
from numpydoc import docscrape_sphinx
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

_environments: list[SandboxedEnvironment] = []


def _one_environment(loader: BaseLoader) -> SandboxedEnvironment:
    """For numpydoc, which else compiles its template anew for every docstring."""
    if not _environments:
        _environments.append(SandboxedEnvironment(loader=loader))
    return _environments[0]


class _RememberedEnglish(SearchEnglish):
    """Words come on many pages, and their stems take long to find."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.stem = cache(super().stem)  # type: ignore[method-assign]


def _titles(toc: nodes.bullet_list) -> nodes.bullet_list:
    """The contents of a page without its sections: what Sphinx leaves of them in a sidebar of titles."""
    kept = toc.deepcopy()
    for entry in kept.children:
        if isinstance(entry, nodes.Element) and len(entry) > 1:
            below = list(entry.findall(addnodes.toctree))
            if below:
                entry[1][:] = below
            else:
                entry.pop(1)
    return kept


def _quick_sidebar(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """The sections of all pages are cut off once, not copied and then cut off for the sidebar of each page."""
    whole: Callable[..., str] | None = context.get("toctree")
    if whole is None:
        return

    def toctree(**options: Any) -> str:
        env = app.env
        if not options.get("titles_only"):
            return whole(**options)
        if not hasattr(app, "site_titles"):
            app.site_titles = {name: _titles(toc) for name, toc in env.tocs.items()}  # type: ignore[attr-defined]
        tocs, env.tocs = env.tocs, app.site_titles  # type: ignore[attr-defined]
        try:
            return whole(**options)
        finally:
            env.tocs = tocs

    context["toctree"] = toctree


def _moved(sidebar: str, here: str, there: str) -> str | None:
    """A page's sidebar made that of another one of its folder, where they stand side by side and have no pages below them."""
    level = r'<li class="toctree-l(\d)'
    mine = re.search(level + r' current current-page"><a class="current reference internal" href="#">(.*?)</a></li>', sidebar)
    other = re.search(level + rf'"><a class="reference internal" href="{re.escape(there)}\.html">(.*?)</a></li>', sidebar)
    if mine is None or other is None or mine[1] != other[1]:
        return None
    first, second = sorted((mine, other), key=lambda entry: entry.start())
    between = sidebar[first.end() : second.start()]
    if "ul>" in between or "<ul" in between:
        return None
    left = f'<li class="toctree-l{mine[1]}"><a class="reference internal" href="{here}.html">{mine[2]}</a></li>'
    entered = (
        f'<li class="toctree-l{mine[1]} current current-page"><a class="current reference internal" href="#">{other[2]}</a></li>'
    )
    new = {mine: left, other: entered}
    return sidebar[: first.start()] + new[first] + between + new[second] + sidebar[second.end() :]


def _quick_navigation(compute: Callable[[dict[str, Any]], str]) -> Callable[[dict[str, Any]], str]:
    """Parsing all pages' titles for each page takes the theme half the time of the build; neighbours differ by a mark."""
    known: dict[str, list[tuple[str, str]]] = defaultdict(list)

    def navigation(context: dict[str, Any]) -> str:
        folder, _, name = context["pagename"].rpartition("/")
        for other, sidebar in known[folder]:
            moved = _moved(sidebar, other, name)
            if moved is not None:
                return moved
        known[folder].append((name, compute(context)))
        return known[folder][-1][1]

    return navigation


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    gc.set_threshold(100_000)  # pages are trees that live to the end: there is little to collect, and much to look through
    docscrape_sphinx.SandboxedEnvironment = _one_environment
    furo._compute_navigation_tree = _quick_navigation(furo._compute_navigation_tree)
    app.add_search_language(_RememberedEnglish)
    app.connect("html-page-context", _quick_sidebar, priority=400)  # before the theme asks for it
    return {"parallel_read_safe": True, "parallel_write_safe": True}
