"""Results as rows of (label, value, explanation) for printed text, ``--json`` and the tables of reports.

A result has a method ``describe``, which returns a `Description`. Its ``__str__`` returns the text of that description.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reduset._messages import printable

WIDTH = 12  # characters of the column of labels


@dataclass(frozen=True)
class Row:
    """One quantity of a result.

    Attributes
    ----------
    label : name of the quantity, such as "error"; "" continues the row above
    value : the number with its unit, interval and scale, as one line or several. Rows without a value are not printed.
    explanation : one sentence on what the quantity is, for reports
    facts : plain values by name, for JSON
    """

    label: str
    value: str | Sequence[str] = ()
    explanation: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lines(self) -> Sequence[str]:
        """The lines of the value; none if it is empty."""
        return [self.value] * bool(self.value) if isinstance(self.value, str) else self.value


@dataclass(frozen=True)
class Description:
    """A result as text, as plain values and as a table.

    Attributes
    ----------
    title : the kind of the result and its sizes
    rows : the quantities
    """

    title: str
    rows: tuple[Row, ...]

    def lines(self) -> Iterator[str]:
        """The printed lines: the title, then the labels in one column and the values in another."""
        yield printable(self.title)
        for row in self.rows:
            for position, line in enumerate(row.lines):
                label = "" if position else row.label
                yield printable(f"  {label:<{WIDTH}}{line}")

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def facts(self) -> dict[str, Any]:
        """All values by name, for JSON."""
        return {name: value for row in self.rows for name, value in row.facts.items()}

    def table(self) -> list[tuple[str, str, str]]:
        """(label, value, explanation) of every row that is printed."""
        return [(row.label, "\n".join(row.lines), row.explanation) for row in self.rows if row.lines]


def counted(number: float, thing: str) -> str:
    """A number with its noun: 1 row, 2,000 rows."""
    return f"{round(number):,} {thing}{'' if round(number) == 1 else 's'}"


def percent(proportion: float) -> str:
    """A proportion with three digits: 4.57 %."""
    return f"{100 * proportion:.3g} %"


def significant(number: float, digits: int = 3) -> str:
    """A number with three digits, or with ``digits``: 24,600."""
    return f"{float(f'{number:.{digits}g}'):,.12g}"


def shortened(text: str, longest: int = 32) -> str:
    """A long name without its middle, because names with the same beginning often differ at the end."""
    if len(text) <= longest:
        return text
    last = (longest - 1) // 2
    return text[: longest - 1 - last] + "…" + text[len(text) - last :]
