"""Reports: self-contained HTML files, made of blocks (titles, sentences, cards, figures, choices, tables).

A block is a function that returns markup. It escapes every text. Each kind of block is one function here.

Numbers and names for scripts are JSON, with escaped characters so that they cannot end the element around them. A
Content-Security-Policy allows only the scripts of the report (by SHA-256) and forbids every request.
"""

from __future__ import annotations

import base64
import hashlib
import html
import importlib.util
import json
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import metadata, resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _archive
from reduset._describe import Description, shortened
from reduset._messages import printable
from reduset.report.words import SPACE, Card, count, plain

LONG, LONG_TITLE = 40, 24  # shown characters of a cell, and of a column title
MAX_ROWS = 24  # longer tables scroll
DRAWN_AT_ONCE = 12  # figures of columns; further ones are drawn when they are unfolded
VERSIONED = ("reduset", "numpy", "scipy", "scikit-learn", "numba", "plotly")
POLICY = "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
ORIGIN = {"command": "Command", "sources": "Sources", "notes": "Notes", "versions": "Versions"}
LABELS = {
    "selection": "Atoms selected by",
    "weighting": "Weights",
    "remark": "Details of the selection",
    "reached": "Tolerance reached",
    "timings": "Time (s)",
}


class Markup(str):
    """HTML text. Other text is escaped when it is inserted."""


def markup(template: str, **parts: Any) -> Markup:
    """A template with its ``$parts`` replaced. Parts are escaped unless they are markup."""
    escaped = {name: part if isinstance(part, Markup) else html.escape(printable(part, lines=True)) for name, part in parts.items()}
    return Markup(Template(template).substitute(escaped))


def joined(parts: Iterable[Markup], between: str = "") -> Markup:
    """The parts in sequence."""
    return Markup(between.join(parts))


def _attribute(name: str, value: str) -> Markup:
    return markup(f' {name}="$value"', value=value) if value else Markup("")


# Titles


def hero(title: Markup, data: Sequence[Any], shown: Iterable[Card], *blocks: Any, lead: str = "") -> Markup:
    """The head of a report: its title, a line on the data, a sentence, the cards, and further blocks."""
    return markup(
        '<section class="hero">\n<h1>$title</h1>\n<p class="from">$data</p>\n$lead$cards\n$blocks\n</section>\n',
        title=title,
        data=joined((markup("<span>$text</span>", text=text) for text in data if text), " "),
        lead=sentence(lead, "lead") if lead else Markup(""),
        cards=cards(shown),
        blocks=joined((block for block in blocks if block), "\n"),
    )


def reduced(before: int, noun: str, after: int, piece: str) -> Markup:
    """A title that compares sizes: 1,200 rows → 40 atoms."""
    return markup(
        '<span>$n <small>$nouns</small></span> <span><span class="arrow" role="img" aria-label="to">→</span> '
        '<span class="accent">$m <small>$pieces</small></span></span>',
        n=count(before),
        nouns=noun if before == 1 else f"{noun}s",
        m=count(after),
        pieces=piece if after == 1 else f"{piece}s",
    )


def verdict(text: str, alarm: bool, about: str) -> Markup:
    """A title that states a verdict, in red if it is an alarm."""
    kind = Markup(' class="accent"') if alarm else ""
    return markup("<span$kind>$text</span> <small>$about</small>", kind=kind, text=text, about=about)


def cards(shown: Iterable[Card]) -> Markup:
    """The main figures."""
    card = '<div class="card"><dt>$title</dt><dd><strong>$figure</strong><p>$meaning</p></dd></div>'
    return markup('<dl class="cards">$cards</dl>', cards=joined(markup(card, **vars(each)) for each in shown))


# Sentences and names


def sentence(text: Any, kind: str = "", name: str = "") -> Markup:
    """A paragraph. With a name, it may be empty, and a script writes its text."""
    return markup("<p$kind$name>$text</p>", kind=_attribute("class", kind), name=_attribute("id", name), text=text)


def aside(text: Any = "", name: str = "") -> Markup:
    """A paragraph in small letters; empty without text and name."""
    return sentence(text, "aside", name) if text or name else Markup("")


def small(text: Any = "", name: str = "") -> Markup:
    """Text in small letters, in a caption. A script writes text with a name."""
    return markup('<span class="aside"$name>$text</span>', name=_attribute("id", name), text=text)


def listed(texts: Sequence[str]) -> Markup:
    """Notes as a list; empty without notes."""
    rows = joined(markup("<li>$text</li>", text=text) for text in texts)
    return markup('<ul class="notes">$rows</ul>', rows=rows) if texts else Markup("")


def folded(title: str, content: Markup, name: str = "") -> Markup:
    """A block that is shown when its title is clicked."""
    block = "<details$name><summary>$title</summary>$content</details>"
    return markup(block, name=_attribute("id", name), title=title, content=content)


def named(name: Any, longest: int = 32) -> Markup:
    """A name, without its middle if it is long. The full name is then shown on hover."""
    if isinstance(name, Markup):
        return name
    return cut(shortened(str(name), longest), str(name))


def cut(short: str, full: str) -> Markup:
    """A short text, with the full text on hover if they differ."""
    if short == full:
        return markup("$short", short=short)
    return markup('<span class="cut" title="$full">$short</span>', full=full, short=short)


def columns_of(names: Sequence[Any], shown: int = 8) -> Markup:
    """The number of columns and the first names."""
    shown = len(names) if len(names) == shown + 1 else shown  # "and 1 more" is no shorter than a name
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    many = f"{len(names)} columns" if len(names) > 1 else "One column"
    return markup("$many: $names$more", many=many, names=joined((named(name) for name in names[:shown]), ", "), more=more)


def pairs(values: Mapping[str, Any]) -> Markup:
    """Names with their values."""
    row = "<div><dt>$name</dt><dd>$value</dd></div>"
    rows = joined(markup(row, name=name, value=plain(value)) for name, value in values.items())
    return markup('<dl class="pairs">$rows</dl>', rows=rows)


def described(result: Description) -> Markup:
    """The rows of a result: names with their values and explanations."""
    return pairs(
        {_label(name): f"{value[:1].upper()}{value[1:].replace(chr(10), '; ')}. {text}" for name, value, text in result.table()}
    )


# Figures and choices


def plot(name: str, label: str, size: str = "", caption: Any = "", more: Any = "", controls: Any = "") -> Markup:
    """A frame in which a script draws a figure.

    Parameters
    ----------
    name : Name of the element.
    label : Content of the figure, for screen readers.
    size : "", "small", "medium", "tall", "square" or "heat"
    caption, more : Texts above the figure, on the left and, in small letters, on the right.
    controls : Boxes below the caption.
    """
    head = markup("<figcaption>$caption $more</figcaption>", caption=caption, more=more) if caption else ""
    return markup(
        '<figure>$head$controls<div class="$kind" id="$name" role="img" aria-label="$label"></div></figure>',
        head=head,
        controls=controls,
        kind=f"plot {size}".strip(),
        name=name,
        label=label,
    )


def grid(figures: Iterable[Markup], columns: str = "two") -> Markup:
    """Figures next to each other, "two" or "three" in a row."""
    return markup('<div class="grid $columns">$figures</div>', columns=columns, figures=joined(figures, "\n"))


def pictures(shown: Sequence[Markup], rest: str = "") -> Markup:
    """A small figure for each column, most of them folded, and a sentence about columns without one."""
    parts = [grid(shown[:DRAWN_AT_ONCE], "three")]
    if len(shown) > DRAWN_AT_ONCE:
        parts.append(folded(f"{len(shown) - DRAWN_AT_ONCE} more columns", grid(shown[DRAWN_AT_ONCE:], "three"), "more"))
    return joined([*parts, aside(rest)])


def choice(name: str, title: str, options: Iterable[tuple[Any, ...]], chosen: Any = None, longest: int = 40) -> Markup:
    """A selection box of (value, text) or (value, short text, text). The text is shown without its middle, and in full on hover."""
    shown = joined(
        markup(
            '<option value="$value" title="$full"$chosen>$text</option>',
            value=value,
            full=texts[-1],
            chosen=Markup(" selected" if value == chosen else ""),
            text=shortened(texts[0], longest),
        )
        for value, *texts in options
    )
    box = '<label class="choice"><span>$title</span><select id="$name">$options</select></label>'
    return markup(box, title=title, name=name, options=shown)


def controls(boxes: Iterable[Markup], about: str) -> Markup:
    """Selection boxes next to each other."""
    return markup('<div class="controls still" role="group" aria-label="$about">$boxes</div>', about=about, boxes=joined(boxes))


# Tables


def table(
    head: Iterable[Any],
    rows: Iterable[Sequence[Any]],
    caption: str,
    high: bool | None = None,
    name: str = "",
    data: Iterable[Mapping[str, Any]] | None = None,
) -> Markup:
    """A table. It scrolls inside its frame if it is wider than the screen.

    Parameters
    ----------
    head : Titles of the columns.
    rows : Cells. The first is the title of its row.
    caption : Text above the table.
    high : Whether it also scrolls vertically, by default if it has more than 24 rows.
    name : Name of the frame.
    data : Values by name for each row, for a script.
    """
    body = []
    cells = [list(row) for row in rows]
    for (first, *rest), values in zip(cells, [{}] * len(cells) if data is None else data, strict=True):
        body.append(
            markup(
                '<tr$values><th scope="row"><div>$first</div></th>$rest</tr>\n',
                values=joined(_attribute(f"data-{key}", str(value)) for key, value in values.items()),
                first=named(first, LONG),
                rest=joined(_cell(cell) for cell in rest),
            )
        )
    return markup(
        '<div class="$kind"$name tabindex="0" role="region" aria-label="$caption"><table><caption><span>$caption</span></caption>'
        "<thead><tr>$titles</tr></thead><tbody>$body</tbody></table></div>",
        kind="wide high" if (len(cells) > MAX_ROWS if high is None else high) else "wide",
        name=_attribute("id", name),
        caption=caption,
        titles=joined(markup('<th scope="col">$title</th>', title=named(title, LONG_TITLE)) for title in head),
        body=joined(body),
    )


class Cell(Markup):
    """A whole cell of a table."""


def _cell(cell: Any) -> Markup:
    """A cell of a table; a long text is shown on hover."""
    if isinstance(cell, Cell):
        return cell
    title = _attribute("title", str(cell)) if not isinstance(cell, Markup) and len(str(cell)) > LONG else ""
    return markup("<td$title>$cell</td>", title=title, cell=cell)


# The page


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes
    ----------
    name : Name of the element.
    title : Title above the blocks.
    blocks : Blocks in order. Texts become sentences, and empty blocks are omitted.
    data : Values for the scripts of the section.
    """

    name: str
    title: Any
    blocks: Sequence[Any]
    data: Mapping[str, Any] = field(default_factory=dict)

    def markup(self) -> Markup:
        """The section as an element of the page."""
        blocks = joined((block if isinstance(block, Markup) else sentence(block) for block in self.blocks if block), "\n")
        template = '<section aria-labelledby="$name-title">\n<h2 id="$name-title">$title</h2>\n$blocks\n</section>\n'
        return markup(template, name=self.name, title=self.title, blocks=blocks)


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
    path : The HTML file.
    title : Title of the window.
    head : First part, made by `hero`.
    sections : Sections in order. Markup is inserted unchanged between sections, and None is omitted.
    scripts : Files of this package that follow ``common.js``.
    about, settings : Content of the last section, how to make the report again.
    data : Values for scripts, in addition to the data of the sections.
    plots : Whether figures need plotly.
    """
    parts = [part for part in sections if part is not None]
    parts.append(Section("origin", "Reproduce this report", [origin(about, settings or {})]))
    known = dict(data or {})
    for part in parts:
        known |= part.data if isinstance(part, Section) else {}
    body = joined([head, *(part.markup() if isinstance(part, Section) else part for part in parts)], "\n")
    write(path, title, body, known, ["common.js", *scripts], plots)


def write(
    path: _archive.Path_, title: str, body: Markup, data: Mapping[str, Any], scripts: Iterable[str], plots: bool = True
) -> None:
    """Write a page from its body, the data of its scripts, and the names of the scripts, files of this package."""
    theme = as_script(file("theme.js"))
    # a function as scope, so that names do not collide with plotly
    script = as_script('(() => {\n"use strict";\n' + "\n".join(map(file, scripts)) + "\n})();")
    running = [theme, *([as_script(plotly_script())] if plots else []), script]
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
    """plotly.js from the plotly package, which is not imported."""
    spec = importlib.util.find_spec("plotly")
    folders = spec.submodule_search_locations if spec is not None else None
    script = Path(next(iter(folders))) / "package_data" / "plotly.min.js" if folders else None
    if script is None or not script.is_file():
        raise ImportError("a report needs plotly, which is not installed: pip install 'reduset[report]'")
    return script.read_text(encoding="utf-8")


def packed(array: NDArray[Any], kind: str = "f4") -> dict[str, Any]:
    """Numbers as base64, little-endian: "f4", "f8", "u2" or "i4"."""
    data = np.ascontiguousarray(array, np.dtype(f"<{kind}"))
    return {"kind": kind, "shape": list(data.shape), "base64": base64.b64encode(data.tobytes()).decode("ascii")}


def as_json(value: Any) -> str:
    """JSON for a script element: no character can end the element or begin a comment."""
    text = json.dumps(_jsonable(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _jsonable(value: Any) -> Any:
    """Dataclasses by their fields, arrays as lists, printable texts, and None instead of NaN and infinity."""
    if isinstance(value, str):
        return printable(value, lines=True)
    if isinstance(value, Mapping):
        return {printable(name): part if name == "base64" else _jsonable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(part) for part in value]
    if is_dataclass(value):
        return {field.name: _jsonable(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return _jsonable(value.tolist())
    return None if isinstance(value, float) and not np.isfinite(value) else value


def as_script(text: str) -> str:
    """A script for a script element, with the same meaning. The replaced text occurs only in strings and comments."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script").replace("<!--", "\\x3c!--")


def origin(about: Mapping[str, Any] | None, settings: Mapping[str, Any]) -> Markup:
    """How to make the report again: the command, settings, sources, notes and versions."""
    about = dict(about or {})
    parts = []
    if about.get("command"):
        words = re.split(r"(\s+)", str(about["command"]))  # lines are broken between words, and not within an option
        command = joined(markup("<span>$word</span>" if k % 2 == 0 else "$word", word=word) for k, word in enumerate(words))
        parts.append(markup('<pre class="command" tabindex="0"><code>$command</code></pre>', command=command))
    shown = {_label(name): value for name, value in settings.items()}
    shown |= {label: about[key] for key, label in ORIGIN.items() if key != "command" and about.get(key)}
    if isinstance(shown.get("Notes"), (list, tuple)):
        shown["Notes"] = "; ".join(map(plain, shown["Notes"])).replace(" %", f"{SPACE}%")
    for key, value in about.items():  # `compensate` is stated by a note
        if key not in ORIGIN and value not in ("", None, {}, []) and (key, value) != ("compensate", True):
            shown[LABELS.get(str(key), _label(str(key)))] = value
    if "versions" not in about:
        versions = {name: _version(name) for name in VERSIONED}
        shown["Versions"] = {"python": platform.python_version()} | {name: version for name, version in versions.items() if version}
    parts.append(pairs(shown))
    return joined(parts)


def _label(name: str) -> str:
    """The name of an option as a label."""
    return name[:1].upper() + name[1:].replace("_", " ")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
