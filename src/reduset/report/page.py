"""One HTML file that needs nothing else: text escaped, numbers in base64, scripts named by their digests.

Every text is escaped when it is put into the page. Numbers and names for scripts are JSON in which no character could end the
element they stand in. A Content-Security-Policy lets only the scripts run that were written here (by SHA-256), and forbids every
request: a name that slipped through would still be shown, not run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.util
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata, resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _archive
from reduset._messages import printable
from reduset.report.words import Card, plain, shortened

LONG, LONG_TITLE = 40, 24  # letters of a name or of a text in a cell, and of a name over a column
VERSIONED = ("reduset", "numpy", "scipy", "scikit-learn", "numba", "plotly")
POLICY = "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
KNOWN = {"command": "Command", "sources": "Sources", "notes": "Notes", "versions": "Versions"}
LABELS = {"selection": "Atoms chosen by", "weighting": "Weights", "reached": "Goal reached", "timings": "Seconds"}


class Markup(str):
    """Text that is HTML already; any other is escaped when it is put into a page."""


def markup(template: str, **parts: Any) -> Markup:
    """A template with its ``$parts`` put in, escaped unless they are markup."""
    return Markup(Template(template).substitute({name: _escaped(part) for name, part in parts.items()}))


def _escaped(part: Any) -> str:
    return part if isinstance(part, Markup) else html.escape(printable(part, lines=True))


def joined(parts: Iterable[Markup]) -> Markup:
    """One after the other."""
    return Markup("".join(parts))


def file(name: str) -> str:
    """A file that lies beside this one."""
    return resources.files("reduset.report").joinpath(name).read_text(encoding="utf-8")


def packed(array: NDArray[Any], kind: str = "f4") -> dict[str, Any]:
    """Numbers as base64, little-endian: "f4", "f8", "u2" or "i4"."""
    data = np.ascontiguousarray(array, np.dtype(f"<{kind}"))
    return {"kind": kind, "shape": list(data.shape), "base64": base64.b64encode(data.tobytes()).decode("ascii")}


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


def plotly_script() -> str:
    """plotly.js, from the plotly package, which itself is not imported."""
    found = importlib.util.find_spec("plotly")
    folders = found.submodule_search_locations if found is not None else None
    script = Path(next(iter(folders))) / "package_data" / "plotly.min.js" if folders else None
    if script is None or not script.is_file():
        raise ImportError("a report needs plotly, which is not installed: pip install 'reduset[report]'")
    return script.read_text(encoding="utf-8")


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


def named(name: Any, most: int = 32) -> Markup:
    """A name, without its middle if it is long: the full name is then shown on hover."""
    full = str(name)
    if isinstance(name, Markup) or len(full) <= most:
        return markup("$name", name=name)
    return markup('<span class="cut" title="$full">$short</span>', full=full, short=shortened(full, most))


def names(given: Sequence[Any], most: int = 8) -> Markup:
    """The first names of several, and how many more there are."""
    parts = [named(name) for name in given[:most]]
    return Markup(", ".join(parts) + (f" and {len(given) - most} more" if len(given) > most else ""))


def cards(shown: Iterable[Card]) -> Markup:
    """The figures at the head of a report."""
    card = '<div class="card"><dt>$title</dt><dd><strong>$figure</strong><p>$meaning</p></dd></div>'
    return markup('<dl class="cards">$cards</dl>', cards=joined(markup(card, **vars(each)) for each in shown))


def table(head: Iterable[Any], rows: Iterable[Iterable[Any]], caption: str, high: bool = False) -> Markup:
    """A table which may be wider than the screen: it then moves in a frame of its own; if ``high`` also up and down."""
    first = joined(markup('<th scope="col">$name</th>', name=named(name, LONG_TITLE)) for name in head)
    body = []
    for name, *cells in rows:
        rest = joined(_cell(cell) for cell in cells)
        body.append(markup('<tr><th scope="row">$name</th>$rest</tr>\n', name=named(name, LONG), rest=rest))
    return markup(
        '<div class="$kind" tabindex="0" role="region" aria-label="$caption"><table><caption>$caption</caption>'
        "<thead><tr>$first</tr></thead><tbody>$body</tbody></table></div>",
        kind="wide high" if high else "wide",
        caption=caption,
        first=first,
        body=joined(body),
    )


def _cell(cell: Any) -> Markup:
    """A cell of a table; a text that is cut off at the end of the cell is shown on hover."""
    title = markup(' title="$cell"', cell=cell) if not isinstance(cell, Markup) and len(str(cell)) > LONG else ""
    return markup("<td$title>$cell</td>", title=Markup(title), cell=cell)


def choice(name: str, title: str, options: Iterable[tuple[Any, str]], chosen: Any = None, most: int = 40) -> Markup:
    """A box to choose from, of (value, text); texts of more than ``most`` letters lack their middle, and are shown on hover."""
    shown = joined(
        markup(
            '<option value="$value" title="$full"$chosen>$text</option>',
            value=value,
            full=text,
            chosen=Markup(" selected" if value == chosen else ""),
            text=shortened(text, most),
        )
        for value, text in options
    )
    box = '<label class="choice"><span>$title</span><select id="$name">$options</select></label>'
    return markup(box, title=title, name=name, options=shown)


def controls(boxes: Iterable[Markup], about: str) -> Markup:
    """Boxes to choose from beside each other."""
    return markup('<div class="controls still" role="group" aria-label="$about">$boxes</div>', about=about, boxes=joined(boxes))


def pairs(told: Mapping[str, Any]) -> Markup:
    """Names and what they stand for."""
    row = "<div><dt>$name</dt><dd>$value</dd></div>"
    return markup(
        '<dl class="pairs">$rows</dl>', rows=joined(markup(row, name=name, value=plain(each)) for name, each in told.items())
    )


def origin(about: Mapping[str, Any] | None, more: Mapping[str, Any]) -> Markup:
    """How to make it again: the command, what it was made of, the versions, and all else that was told."""
    about = dict(about or {})
    parts = []
    if about.get("command"):
        parts.append(markup('<pre class="command" tabindex="0"><code>$command</code></pre>', command=about["command"]))
    told = {label: about[key] for key, label in KNOWN.items() if key != "command" and about.get(key)}
    told |= {
        LABELS.get(str(key), _capital(str(key))): value
        for key, value in about.items()
        if key not in KNOWN
        and value not in ("", None, {}, [])
        and (key, value) != ("compensate", True)  # a note says it, of FCS files
    }
    if "versions" not in about:
        told["Versions"] = versions()
    parts.append(pairs({_capital(name): value for name, value in more.items()} | told))
    return joined(parts)


def _capital(name: str) -> str:
    """A name of an option as a label."""
    return name[:1].upper() + name[1:].replace("_", " ")


def versions() -> dict[str, str]:
    """Of Python, and of what the figures depend on."""
    found = {name: _version(name) for name in VERSIONED}
    return {"python": platform.python_version()} | {name: version for name, version in found.items() if version}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
