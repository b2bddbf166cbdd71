"""`reduset drift`: whether new rows have the distribution of a reference, and where and in which columns they differ.

A reference is a stored test, a model, or rows. A reference of the command stores columns, transforms and categories, and new rows
are read with these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, DRIFT, command
from reduset.cli.compress import applied_transform

if TYPE_CHECKING:
    from reduset.drift import DriftTest
    from reduset.io import Table

KEPT = "reduset.DriftTest"  # the start of the kinds of its files
FIXED = ("columns", "transform", "encode")  # options that a reference of the command has determined
SETTINGS = ("transform", "compensate", "encode")  # of reading, that a reference keeps
ARRAYS = (".npy", ".npz")
WAY_OUT = "give rows, a model of `reduset compress`, or a reference that `reduset drift … -o reference.npz` kept"


@dataclass(kw_only=True)
class Referring(o.Reading, o.Seeded, o.Writing):
    """A command with a reference.

    Parameters
    ----------
    reference : A file of rows, a model of `reduset compress`, or a reference that was kept with -o.
    fail : Exit with code 4 if drift is detected, for scripts.
    scales : Scales of columns: robust (interquartile ranges, the default), standard (standard deviations) or none.
    """

    reference: Path
    fail: bool = False
    scales: str | None = None


@command("before.parquet today.parquet --report drift.html --fail", "reduset.drift:DriftTest")
class DriftCommand(Referring, o.Clustered):
    """Test whether new rows have the distribution of a reference, with regions and columns that changed.

    Columns are matched by name. To test against a reference often, keep it once with -o and use the file instead of its rows.

    Parameters
    ----------
    today : Files of rows ({formats}), or folders of them, read one after the other.
    alpha : The significance level, by default 0.05 or that of the reference.
    output : The reference to keep: reference.npz, a few MB at most.
    no_rows : Write no row of the reference with -o, only statistics of at least ten rows each. It is not anonymous.
    statistic : A statistic of the test: {statistics}; by default all. May be repeated.
    """

    reference: Path
    today: o.Data
    alpha: float | None = None
    output: Path | None = None
    report: o.Report = None
    no_rows: bool = False
    statistic: list[str] | None = None
    weight_column: str | None = None

    def run(self) -> int:
        """Run it; the exit code."""
        from reduset import _archive, _validate, io, report
        from reduset.drift import STATISTICS

        for name in self.statistic or ():
            _validate.one_of(name, "--statistic", STATISTICS)
        inputs = [self.reference, *self.today]
        written = targets.check_all((self.output, targets.MODEL, inputs), (self.report, targets.HTML, inputs))
        self.check_engine(report=self.report)
        with self.on_engine():
            read = partial(self.table, io.Work())
            known = reference_of(self, self.alpha, self.no_rows, read)
            if known.kept and self.output is not None:
                raise ValueError(f"{self.reference} is a reference that was kept already; omit -o {self.output}")
            table = read(self.today, **known.reading_of(self.today))
            if self.statistic:
                known.test.set_params(statistics=list(self.statistic))
            result = known.test.test(known.rows(table), sample_weight=table.weights)
        notes = [*(f"{self.reference}: {text}" for text in known.notes if text not in table.notes), *table.notes]
        with _archive.together():
            if self.output is not None:
                known.test.save(self.output, known.about)
            if self.report is not None:
                report.write_drift(self.report, result, about=messages.origin([str(self.reference), *table.sources], notes))
        messages.answer(self, result.describe(), notes, written)
        return DRIFT if self.fail and result.drift else DONE


@dataclass(frozen=True)
class Reference:
    """A fitted test, and how new rows are read.

    Attributes
    ----------
    test : DriftTest
    reading : Arguments of `reduset.io.read`.
    about : Origin, and settings of reading.
    kept : Whether it was loaded from a file of a test.
    notes : Notes on reading its rows.
    """

    test: DriftTest
    reading: dict[str, Any]
    about: dict[str, Any]
    kept: bool
    notes: tuple[str, ...] = ()

    def rows(self, table: Table) -> Any:
        """New rows for the test. Columns have names if both tables have them, and positions otherwise."""
        return _with_names(table) if self.test.reference_.named else _without_names(table)

    def reading_of(self, paths: Sequence[Path]) -> dict[str, Any]:
        """How new files are read: the columns of the reference by name, unless the files have no names."""
        known = self.test.reference_
        return self.reading if not known.named or _are_arrays(paths) else self.reading | {"columns": list(known.names)}


def reference_of(
    options: Referring, alpha: float | None = None, no_rows: bool = False, read: Callable[..., Table] | None = None
) -> Reference:
    """The reference of the options: loaded, or made from a model or from rows, which ``read`` reads."""
    from reduset import _archive, io
    from reduset.drift import DriftTest
    from reduset.model import Model

    o.check_proportion(alpha, "--alpha")
    path, reading = options.reference, options.reading()
    has_header = path.suffix.lower() == ".npz" and _archive.has_header(path)
    kind = _archive.kind_of(path) if has_header else None
    if kind is not None and kind.startswith(KEPT):
        test = DriftTest.load(path)
        about = dict(test.about_)
        _check_free(options, "scales", *(["no_rows"] if no_rows else []), *(FIXED if about else []))
        reading |= {name: about[name] for name in SETTINGS if name in about}
        return Reference(test if alpha is None else test.set_params(alpha=alpha), reading, about, True)
    if kind == "reduset.Model":
        model = Model.load(path)
        _check_free(options, "scales", *FIXED)
        reading |= o.reading_of(model)
        test = _test(options, "robust", alpha, no_rows).fit(model)
        return Reference(test, reading, messages.origin([str(path)], []) | _settings(reading), False)
    if has_header:
        raise ValueError(f"{path} holds {kind or 'something that cannot be read'}, which is not a reference; {WAY_OUT}")
    table = (io.read if read is None else read)(path, **reading)
    test = _test(options, o.scales_of(options.scales, False, o.are_images(table.sources)), alpha, no_rows)
    test.fit(_with_names(table), sample_weight=table.weights)
    transform = applied_transform(reading["transform"], table.columns, table.scales)
    reading |= {"encode": table.encoding or None, "transform": transform}
    return Reference(test, reading, messages.origin(table.sources, table.notes) | _settings(reading), False, tuple(table.notes))


def _test(options: Referring, scales: Any, alpha: float | None, no_rows: bool) -> DriftTest:
    from reduset.drift import DriftTest

    if isinstance(scales, list):
        raise ValueError(f"--scales must be robust, standard or none, got {options.scales}; divide the columns before")
    level: dict[str, Any] = {} if alpha is None else {"alpha": alpha}
    return DriftTest(scales=scales, keep_rows=not no_rows, random_state=options.seed, **level)


def _check_free(options: Referring, *names: str) -> None:
    """Raise an error for options that the reference determines. Rows read in another way would appear as drift."""
    for option in options.changed(*names):
        raise ValueError(f"{option} is determined by {options.reference}; omit it, or give the rows of the reference")


def _settings(reading: dict[str, Any]) -> dict[str, Any]:
    return {name: reading[name] for name in SETTINGS}


def _with_names(table: Table) -> Any:
    """The rows for a test, with the names of columns if they have any."""
    if _is_nameless(table):
        return _without_names(table)
    return table.values if hasattr(table.values, "columns") else table  # rows on an engine have the names


def _without_names(table: Table) -> Any:
    rows: Any = table.values
    if hasattr(rows, "columns"):
        rows.columns = None
    return rows


def _is_nameless(table: Table) -> bool:
    """Whether the names of columns are their positions, as in plain arrays."""
    return _are_arrays(table.sources) and list(table.columns) == [f"x{k}" for k in range(len(table.columns))]


def _are_arrays(paths: Sequence[Any]) -> bool:
    return all(Path(path).suffix.lower() in ARRAYS for path in paths)
