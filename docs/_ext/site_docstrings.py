"""Docstrings as they are written here: |w| is an absolute value, f_m a symbol and labels_ a name, none of them markup."""

import re
from typing import Any

from sphinx.application import Sphinx

LITERAL = re.compile(r"(``.*?``|`[^`]+`)")
MARKUP = re.compile(r"(?<!\\)[|*]|(?<=[\w)])_(?![\w])")
DOCTEST = re.compile(r"\s*(>>>|\.\.\.)")
NAMES = re.compile(r"[\w, *]+ : ?")  # of parameters and attributes: numpydoc's to read


def _escape(line: str) -> str:
    if DOCTEST.match(line):
        return line
    names = NAMES.match(line)
    start = names.end() if names else 0
    parts = LITERAL.split(line[start:])
    return line[:start] + "".join(part if LITERAL.fullmatch(part) else MARKUP.sub(r"\\\g<0>", part) for part in parts)


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = map(_escape, lines)


def _skip(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn gives to every estimator: its own pages describe it."""
    of_sklearn = (getattr(obj, "__module__", None) or "").startswith("sklearn")
    return True if of_sklearn or re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _process, priority=400)  # before numpydoc makes lists of the sections
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
