"""One HTML file that needs nothing else: a head, sections of blocks, and the origin of the numbers.

Numbers and names for scripts are JSON in which no character could end the element they stand in. A Content-Security-Policy lets
only the scripts run that were written here (by SHA-256), and forbids every request: a name that slipped through would still be
shown, not run.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _archive
from reduset._messages import printable
from reduset.report.blocks import Markup, joined, markup, pairs, sentence

VERSIONED = ("reduset", "numpy", "scipy", "scikit-learn", "numba", "plotly")
POLICY = "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
KNOWN = {"command": "Command", "sources": "Sources", "notes": "Notes", "versions": "Versions"}
LABELS = {"selection": "Atoms chosen by", "weighting": "Weights", "reached": "Goal reached", "timings": "Seconds"}


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes
    ----------
    name : of the element
    title : shown above the blocks
    blocks : in their order; texts become sentences, empty ones are omitted
    data : what the scripts of the section read
    """

    name: str
    title: Any
    blocks: Sequence[Any]
    data: Mapping[str, Any] = field(default_factory=dict)

    def markup(self) -> Markup:
        """The section as an element of the page."""
        blocks = joined((each if isinstance(each, Markup) else sentence(each) for each in self.blocks if each), "\n")
        return markup(
            '<section aria-labelledby="$name-title">\n<h2 id="$name-title">$title</h2>\n$blocks\n</section>\n',
            name=self.name,
            title=self.title,
            blocks=blocks,
        )


def write_page(
    path: _archive.Path_,
    title: str,
    head: Markup,
    sections: Iterable[Section | Markup | None],
    scripts: Sequence[str],
    *,
    about: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
    plots: bool = True,
) -> None:
    """Write a report.

    Parameters
    ----------
    path : where to, usually with the ending .html
    title : of the window
    head : the first part, of `hero`
    sections : in their order; markup goes between sections as it is, None is omitted
    scripts : files of this package that follow ``common.js``
    about, settings : how to make the report again, the last section
    data : what the scripts read, in addition to the data of the sections
    plots : whether pictures need plotly
    """
    parts = [each for each in sections if each is not None]
    parts.append(Section("origin", "Where it came from", [origin(about, settings or {})]))
    known = dict(data or {})
    for each in parts:
        known |= each.data if isinstance(each, Section) else {}
    body = joined([head, *(each.markup() if isinstance(each, Section) else each for each in parts)], "\n")
    write(path, title, body, known, ["common.js", *scripts], plots)


def write(
    path: _archive.Path_, title: str, body: Markup, data: Mapping[str, Any], scripts: Iterable[str], plots: bool = True
) -> None:
    """Write a page: its body, the data its scripts read, and the scripts, files of this package, in their order."""
    theme = as_script(file("theme.js"))
    # in a function, so that nothing of a report gets in the way of plotly, or the other way round
    own = as_script('(() => {\n"use strict";\n' + "\n".join(map(file, scripts)) + "\n})();")
    running = [theme, *([as_script(plotly_script())] if plots else []), own]
    digests = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in running)
    whole = markup(
        file("page.html"),
        title=title,
        policy=POLICY.format(digests),
        style=Markup(file("page.css")),
        theme=Markup(theme),
        body=body,
        data=Markup(as_json(data)),
        scripts=joined(markup("<script>$text</script>\n", text=Markup(text)) for text in running[1:]),
        version=_version("reduset") or "",
    )
    _archive.write_whole(path, lambda stream: stream.write(whole.encode("utf-8")))


def file(name: str) -> str:
    """The text of a file of this package."""
    return resources.files("reduset.report").joinpath(name).read_text(encoding="utf-8")


def plotly_script() -> str:
    """plotly.js, from the plotly package, which itself is not imported."""
    found = importlib.util.find_spec("plotly")
    folders = found.submodule_search_locations if found is not None else None
    script = Path(next(iter(folders))) / "package_data" / "plotly.min.js" if folders else None
    if script is None or not script.is_file():
        raise ImportError("a report needs plotly, which is not installed: pip install 'reduset[report]'")
    return script.read_text(encoding="utf-8")


def packed(array: NDArray[Any], kind: str = "f4") -> dict[str, Any]:
    """Numbers as base64, little-endian: "f4", "f8", "u2" or "i4"."""
    data = np.ascontiguousarray(array, np.dtype(f"<{kind}"))
    return {"kind": kind, "shape": list(data.shape), "base64": base64.b64encode(data.tobytes()).decode("ascii")}


def finite(values: Any) -> Any:
    """Numbers as JSON has them: None for those that are not finite."""
    listed = np.asarray(values, np.float64)
    found = listed.astype(object)
    found[~np.isfinite(listed)] = None
    return found.tolist()


def as_json(value: Any) -> str:
    """JSON that may stand inside a script element: no character of it can end that, or begin a comment."""
    text = json.dumps(_shown(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _shown(value: Any) -> Any:
    """The same with every text as it may be shown."""
    if isinstance(value, Mapping):
        return {printable(name): each if name == "base64" else _shown(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(each) for each in value]
    return printable(value, lines=True) if isinstance(value, str) else value


def as_script(text: str) -> str:
    """A script that may stand inside a script element, its meaning kept: these only occur in texts and comments."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script").replace("<!--", "\\x3c!--")


def origin(about: Mapping[str, Any] | None, settings: Mapping[str, Any]) -> Markup:
    """How to make the report again: the command, the sources, the versions, and everything else that is known."""
    about = dict(about or {})
    parts = []
    if about.get("command"):
        parts.append(markup('<pre class="command" tabindex="0"><code>$command</code></pre>', command=about["command"]))
    shown = {label: about[key] for key, label in KNOWN.items() if key != "command" and about.get(key)}
    shown |= {
        LABELS.get(str(key), _capital(str(key))): value
        for key, value in about.items()
        if key not in KNOWN
        and value not in ("", None, {}, [])
        and (key, value) != ("compensate", True)  # of FCS files, a note states it
    }
    if "versions" not in about:
        shown["Versions"] = versions()
    parts.append(pairs({_capital(name): value for name, value in settings.items()} | shown))
    return joined(parts)


def _capital(name: str) -> str:
    """A name of an option as a label."""
    return name[:1].upper() + name[1:].replace("_", " ")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the figures depend on."""
    found = {name: _version(name) for name in VERSIONED}
    return {"python": platform.python_version()} | {name: version for name, version in found.items() if version}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
