"""What building the site would do again and again is done once: the same pages, sooner."""

import gc
from collections.abc import Callable
from functools import cache
from typing import Any

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


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    gc.set_threshold(100_000)  # pages are trees that live to the end: there is little to collect, and much to look through
    docscrape_sphinx.SandboxedEnvironment = _one_environment
    app.add_search_language(_RememberedEnglish)
    app.connect("html-page-context", _quick_sidebar, priority=400)  # before the theme asks for it
    return {"parallel_read_safe": True, "parallel_write_safe": True}
