"""What new rows are compared with: a test that was kept, a model, or rows; and how the new ones are read to be like it.

A reference that was made by the command knows its columns, transforms and categories, and new rows are read by these. One of Python
knows its columns at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from reduset.cli import options as o
from reduset.cli.request import are_pictures, origin
from reduset.cli.results import applied

if TYPE_CHECKING:
    from reduset.drift import DriftTest
    from reduset.io import Table

KEPT = "reduset.DriftTest"  # what the kinds of its files begin with
KNOWN = ("columns", "transform", "encode")  # options that a reference of the command answers
ARRAYS = (".npy", ".npz")
WAY_OUT = "give rows, a model of `reduset compress`, or a reference that `reduset drift … -o reference.npz` kept"


class Asking(Protocol):
    """The options that a reference is made by."""

    reference: Path
    scales: str | None
    seed: int
    columns: list[str] | None
    transform: list[str] | None
    encode: list[str] | None

    def reading(self) -> dict[str, Any]:
        """What is read of files."""
        ...


@dataclass(frozen=True)
class Reference:
    """A fitted test, and how new rows are read.

    Attributes
    ----------
    test : what new rows are compared by
    reading : as `reduset.io` takes it
    about : where it came from
    kept : whether it was made before
    notes : what was done in reading its rows
    """

    test: DriftTest
    reading: dict[str, Any]
    about: dict[str, Any]
    kept: bool
    notes: tuple[str, ...] = ()

    def rows(self, table: Table) -> Any:
        """New rows as the test takes them: by name where both sides have names, else by their places."""
        return table if self.test.reference_.named and not _nameless(table) else table.values

    def reading_of(self, paths: Sequence[Path]) -> dict[str, Any]:
        """What is read of new files: the columns of the reference by name, unless the files have none."""
        known = self.test.reference_
        by_place = not known.named or _are_arrays(paths)
        return self.reading if by_place else self.reading | {"columns": list(known.names)}


def reference_of(asked: Asking, alpha: float | None = None, no_rows: bool = False) -> Reference:
    """The reference that was asked for: loaded, or made of a model or of rows."""
    from reduset import _archive

    if alpha is not None and not 0 < alpha < 1:
        raise ValueError(f"--alpha must lie between 0 and 1, got {alpha:g}; 0.05 calls 1 of 20 samples drift by chance")
    path = asked.reference
    if path.suffix.lower() != ".npz" or not _archive.has_header(path):
        return _of_rows(asked, alpha, no_rows)
    kind = _archive.kind_of(path)
    if kind is not None and kind.startswith(KEPT):
        return _loaded(asked, alpha, no_rows)
    if kind == "reduset.Model":
        return _of_model(asked, alpha, no_rows)
    raise ValueError(f"{path} holds {kind or 'something that cannot be read'}, which new rows cannot be compared with; {WAY_OUT}")


def _of_rows(asked: Asking, alpha: float | None, no_rows: bool) -> Reference:
    from reduset import io

    table = io.read(asked.reference, **asked.reading())
    test = _test(asked, o.scales_of(asked.scales, False, are_pictures(table.sources)), alpha, no_rows)
    test.fit(table.values if _nameless(table) else table, sample_weight=table.weights)
    reading = asked.reading()
    reading |= {"encode": table.encoding or None, "transform": applied(reading["transform"], table.columns, table.scales)}
    about = origin(table.sources, table.notes) | _settled(reading)
    return Reference(test, reading, about, False, tuple(table.notes))


def _of_model(asked: Asking, alpha: float | None, no_rows: bool) -> Reference:
    from reduset.cli.request import reading_of
    from reduset.model import Model

    model = Model.load(asked.reference)
    _refuse_known(asked, ("scales",) if asked.scales else ())
    reading = asked.reading() | reading_of(model)
    about = origin([str(asked.reference)], []) | _settled(reading)
    return Reference(_test(asked, "robust", alpha, no_rows).fit(model), reading, about, False)


def _loaded(asked: Asking, alpha: float | None, no_rows: bool) -> Reference:
    from reduset.drift import DriftTest

    test = DriftTest.load(asked.reference)
    if alpha is not None:
        test.set_params(alpha=alpha)
    about = dict(test.about_)
    made = {"scales": asked.scales is not None, "no-rows": no_rows}
    _refuse_known(asked, [name for name, given in made.items() if given], bool(about))
    reading = asked.reading()
    reading |= {name: about[name] for name in _settled(reading) if name in about}
    return Reference(test, reading, about, True)


def _test(asked: Asking, scales: Any, alpha: float | None, no_rows: bool) -> DriftTest:
    from reduset.drift import DriftTest

    if isinstance(scales, list):
        raise ValueError(f"--scales must be robust, standard or none, got {asked.scales}; divide the columns before")
    return DriftTest(scales=scales, keep_rows=not no_rows, random_state=asked.seed, **o.given(alpha=alpha))


def _refuse_known(asked: Asking, made: Sequence[str] = (), known: bool = True) -> None:
    """Refuse options that the reference has settled: rows read in another way would be drift by themselves."""
    given = [*made, *(name for name in KNOWN if known and getattr(asked, name))]
    for name in given:
        raise ValueError(f"--{name} goes with rows, and {asked.reference} was made with its own; leave it out, or give its rows")


def _settled(reading: dict[str, Any]) -> dict[str, Any]:
    """What of the reading a reference keeps, in plain values."""
    return {name: reading[name] for name in ("transform", "compensate", "encode")}


def _nameless(table: Table) -> bool:
    """Whether the names of columns are but their places, as those of plain arrays are."""
    return _are_arrays(table.sources) and list(table.columns) == [f"x{k}" for k in range(len(table.columns))]


def _are_arrays(paths: Sequence[Any]) -> bool:
    return all(Path(path).suffix.lower() in ARRAYS for path in paths)
