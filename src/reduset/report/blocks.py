"""The blocks of reports: functions that return markup for titles, sentences, figures, boxes of choices and tables.

Every text is escaped when it is put into a block. A new block is one function here.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from string import Template
from typing import Any

from reduset._messages import printable
from reduset.report.words import Card, count, plain, shortened

LONG, LONG_TITLE = 40, 24  # letters of a name or of a text in a cell, and of a name over a column
DRAWN_AT_ONCE = 12  # pictures of columns; the others are drawn when they are unfolded


class Markup(str):
    """Text that is HTML already; any other is escaped when it is put into a page."""


def markup(template: str, **parts: Any) -> Markup:
    """A template with its ``$parts`` put in, escaped unless they are markup."""
    return Markup(Template(template).substitute({name: _escaped(part) for name, part in parts.items()}))


def _escaped(part: Any) -> str:
    return part if isinstance(part, Markup) else html.escape(printable(part, lines=True))


def joined(parts: Iterable[Markup], between: str = "") -> Markup:
    """One after the other."""
    return Markup(between.join(parts))


def hero(title: Markup, data: Sequence[Any], shown: Iterable[Card], *blocks: Any, lead: str = "") -> Markup:
    """The head of a report: its title, a line on the data, a sentence, the main figures, and further blocks."""
    return markup(
        '<section class="hero">\n<h1>$title</h1>\n<p class="from">$data</p>\n$lead$cards\n$blocks\n</section>\n',
        title=title,
        data=joined((markup("<span>$text</span>", text=each) for each in data), " "),
        lead=sentence(lead, "lead") if lead else Markup(""),
        cards=cards(shown),
        blocks=joined((each for each in blocks if each), "\n"),
    )


def reduced(before: int, thing: str, after: int, piece: str) -> Markup:
    """A title that compares sizes: 1,200 rows → 40 atoms."""
    return markup(
        '<span>$n <small>$things</small></span> <span><span class="arrow" role="img" aria-label="to">→</span> '
        '<span class="accent">$m <small>$pieces</small></span></span>',
        n=count(before),
        things=thing if before == 1 else f"{thing}s",
        m=count(after),
        pieces=piece if after == 1 else f"{piece}s",
    )


def verdict(text: str, alarm: bool, about: str) -> Markup:
    """A title that states a verdict, in red if it is an alarm."""
    kind = Markup(' class="accent"') if alarm else ""
    return markup("<span$kind>$text</span> <small>$about</small>", kind=kind, text=text, about=about)


def cards(shown: Iterable[Card]) -> Markup:
    """The figures at the head of a report."""
    card = '<div class="card"><dt>$title</dt><dd><strong>$figure</strong><p>$meaning</p></dd></div>'
    return markup('<dl class="cards">$cards</dl>', cards=joined(markup(card, **vars(each)) for each in shown))


def sentence(text: Any, kind: str = "", name: str = "") -> Markup:
    """A paragraph; one with a name may be empty, for a script to fill."""
    return markup("<p$kind$name>$text</p>", kind=_attribute("class", kind), name=_attribute("id", name), text=text)


def _attribute(name: str, value: str) -> Markup:
    return markup(f' {name}="$value"', value=value) if value else Markup("")


def aside(text: Any = "", name: str = "") -> Markup:
    """A paragraph in small letters; nothing if it has neither text nor a name."""
    return sentence(text, "aside", name) if text or name else Markup("")


def notice(text: str) -> Markup:
    """A paragraph that must not be overlooked; nothing for no text."""
    return sentence(text, "notice") if text else Markup("")


def listed(texts: Sequence[str]) -> Markup:
    """Notes as a list; nothing for none."""
    rows = joined(markup("<li>$text</li>", text=text) for text in texts)
    return markup('<ul class="notes">$rows</ul>', rows=rows) if texts else Markup("")


def folded(title: str, content: Markup, name: str = "") -> Markup:
    """A block that is shown when its title is clicked."""
    block = "<details$name><summary>$title</summary>$content</details>"
    return markup(block, name=_attribute("id", name), title=title, content=content)


def named(name: Any, most: int = 32) -> Markup:
    """A name, without its middle if it is long: the full name is then shown on hover."""
    full = str(name)
    if isinstance(name, Markup) or len(full) <= most:
        return markup("$name", name=name)
    return cut(shortened(full, most), full)


def cut(short: str, full: str) -> Markup:
    """A short text, with the full one on hover if they differ."""
    if short == full:
        return markup("$short", short=short)
    return markup('<span class="cut" title="$full">$short</span>', full=full, short=short)


def names(given: Sequence[Any], most: int = 8) -> Markup:
    """The first names of several, and how many more there are."""
    parts = [named(name) for name in given[:most]]
    return Markup(", ".join(parts) + (f" and {len(given) - most} more" if len(given) > most else ""))


def columns_of(given: Sequence[Any]) -> Markup:
    """The number of columns and the first names."""
    many = f"{len(given)} columns" if len(given) > 1 else "One column"
    return markup("$many: $names", many=many, names=names(given))


def plot(name: str, label: str, size: str = "", caption: Any = "", more: Any = "", controls: Any = "") -> Markup:
    """A frame that a script draws a picture in.

    Parameters
    ----------
    name : of the element
    label : the content of the picture, for readers who do not see it
    size : "", "small", "medium", "tall", "square" or "heat"
    caption, more : above the picture, on the left and on the right; ``more`` in small letters
    controls : boxes below the caption
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


def small(text: Any = "", name: str = "") -> Markup:
    """Words in small letters, in a caption; those with a name are written by a script."""
    return markup('<span class="aside"$name>$text</span>', name=_attribute("id", name), text=text)


def grid(figures: Iterable[Markup], columns: str = "two") -> Markup:
    """Figures next to each other, "two" or "three" in a row."""
    return markup('<div class="grid $columns">$figures</div>', columns=columns, figures=joined(figures, "\n"))


def pictures(shown: Sequence[Markup], rest: str = "") -> Markup:
    """A small picture for each column, most of them folded away, and a sentence about columns without one."""
    parts = [grid(shown[:DRAWN_AT_ONCE], "three")]
    if len(shown) > DRAWN_AT_ONCE:
        parts.append(folded(f"{len(shown) - DRAWN_AT_ONCE} more columns", grid(shown[DRAWN_AT_ONCE:], "three"), "more"))
    return joined([*parts, aside(rest)])


def choice(name: str, title: str, options: Iterable[tuple[Any, str]], chosen: Any = None, most: int = 40) -> Markup:
    """A box to choose from, of (value, text); texts of more than ``most`` letters lack their middle, and are shown on hover."""
    return selection(name, title, ((value, shortened(text, most), text) for value, text in options), chosen)


def selection(name: str, title: str, options: Iterable[tuple[Any, str, str]], chosen: Any = None) -> Markup:
    """A box to choose from, of (value, text, text on hover)."""
    shown = joined(
        markup(
            '<option value="$value" title="$full"$chosen>$text</option>',
            value=value,
            full=full,
            chosen=Markup(" selected" if value == chosen else ""),
            text=text,
        )
        for value, text, full in options
    )
    box = '<label class="choice"><span>$title</span><select id="$name">$options</select></label>'
    return markup(box, title=title, name=name, options=shown)


def controls(boxes: Iterable[Markup], about: str) -> Markup:
    """Boxes to choose from, next to each other."""
    return markup('<div class="controls still" role="group" aria-label="$about">$boxes</div>', about=about, boxes=joined(boxes))


def table(
    head: Iterable[Any],
    rows: Iterable[Sequence[Any]],
    caption: str,
    high: bool = False,
    name: str = "",
    data: Iterable[Mapping[str, Any]] | None = None,
) -> Markup:
    """A table which may be wider than the screen: it then scrolls inside its frame.

    Parameters
    ----------
    head : titles of columns
    rows : cells; the first is the title of its row
    caption : above the table
    high : whether it scrolls up and down, too
    name : of the frame
    data : values by name for each row, for a script
    """
    body = []
    given = [list(row) for row in rows]
    for (first, *cells), values in zip(given, [{}] * len(given) if data is None else data, strict=True):
        body.append(
            markup(
                '<tr$values><th scope="row">$first</th>$rest</tr>\n',
                values=joined(_attribute(f"data-{key}", str(value)) for key, value in values.items()),
                first=named(first, LONG),
                rest=joined(_cell(cell) for cell in cells),
            )
        )
    return markup(
        '<div class="$kind"$name tabindex="0" role="region" aria-label="$caption"><table><caption>$caption</caption>'
        "<thead><tr>$titles</tr></thead><tbody>$body</tbody></table></div>",
        kind="wide high" if high else "wide",
        name=_attribute("id", name),
        caption=caption,
        titles=joined(markup('<th scope="col">$title</th>', title=named(title, LONG_TITLE)) for title in head),
        body=joined(body),
    )


class Cell(Markup):
    """A whole cell of a table."""


def red(text: str) -> Cell:
    """A cell in red."""
    return Cell(markup('<td class="over">$text</td>', text=text))


def _cell(cell: Any) -> Markup:
    """A cell of a table; a text that is cut off at the end of the cell is shown on hover."""
    if isinstance(cell, Cell):
        return cell
    title = _attribute("title", str(cell)) if not isinstance(cell, Markup) and len(str(cell)) > LONG else ""
    return markup("<td$title>$cell</td>", title=title, cell=cell)


def pairs(values: Mapping[str, Any]) -> Markup:
    """Names with their values."""
    row = "<div><dt>$name</dt><dd>$value</dd></div>"
    rows = joined(markup(row, name=name, value=plain(each)) for name, each in values.items())
    return markup('<dl class="pairs">$rows</dl>', rows=rows)
