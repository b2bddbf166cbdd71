"""`reduset drift`: whether new rows are still like a reference, where and in which columns they are not, and how sure that is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, DRIFT, command
from reduset.cli.references import reference_of
from reduset.cli.request import origin

if TYPE_CHECKING:
    from reduset.drift.result import DriftResult

FIGURES = (
    "p_value",
    "alpha",
    "drift",
    "distance",
    "chance",
    "without_noise",
    "interval",
    "effect_size",
    "statistic",
    "n_reference",
    "n_samples",
)

ReferenceFile = Annotated[
    Path, typer.Argument(help="A file of rows, a model of `reduset compress`, or a reference that was kept with -o.")
]
Scales = Annotated[
    str | None,
    typer.Option(
        "--scales",
        help="What columns are divided by, so that all count alike: robust (interquartile ranges, if nothing is said), standard "
        "(standard deviations) or none.",
    ),
]
NoRows = Annotated[
    bool,
    typer.Option(
        "--no-rows",
        help="Keep no row of the reference in what -o writes: every number stands for ten rows or more. That does not make it "
        "anonymous.",
    ),
]
Statistics = Annotated[
    list[str] | None,
    typer.Option("--statistic", help="A statistic of the test, kernel or columns; all without it. May be given several times."),
]
Fail = Annotated[bool, typer.Option("--fail", help="End with code 4 where there is drift, for scripts.")]


@command("before.parquet today.parquet --report drift.html --fail")
class DriftCommand(o.Reading, o.Seeded, o.Telling):
    """Test whether new rows are still like a reference: how sure that is, where they are not, and in which columns.

    Columns are found by name. A reference that is tested against often is kept once, with -o, and then stands for its rows.
    """

    reference: ReferenceFile
    today: o.Data
    alpha: Annotated[
        float | None, typer.Option("--alpha", help="How often chance alone may be called drift; 0.05, or that of the reference.")
    ] = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Keep the reference for the next time: reference.npz, a few MB at most.")
    ] = None
    report: o.Report = None
    fail: Fail = False
    scales: Scales = None
    no_rows: NoRows = False
    statistic: Statistics = None
    weight_column: o.Weight = None

    def run(self) -> int:
        """Run it; the exit code."""
        from reduset import _archive, io
        from reduset.drift import STATISTICS

        for name in self.statistic or ():
            if name not in STATISTICS:
                raise ValueError(f"--statistic must be one of {', '.join(STATISTICS)}, got {name}")
        inputs = [self.reference, *self.today]
        written = targets.check_all((self.output, targets.MODEL, inputs), (self.report, targets.HTML, inputs))
        with messages.progress(self.silent) as shown:
            _stage(shown, "reference")
            known = reference_of(self, self.alpha, self.no_rows)
            if known.kept and self.output is not None:
                raise ValueError(f"{self.reference} is a reference that was kept already; leave out -o {self.output}")
            _stage(shown, "reading")
            table = io.read(self.today, **known.reading_of(self.today))
            _stage(shown, "testing")
            if self.statistic:
                known.test.set_params(statistics=list(self.statistic))
            found = known.test.test(known.rows(table), sample_weight=table.weights)
            facts = facts_of(found)
            lines = [str(found)]
        notes = [*(f"{self.reference}: {text}" for text in known.notes if text not in table.notes), *table.notes]
        with _archive.together():
            if self.output is not None:
                known.test.save(self.output, known.about)
            if self.report is not None:
                from reduset.report import write_drift

                about = origin([str(self.reference), *table.sources], notes)
                write_drift(self.report, found, about=about)
        facts |= {"notes": notes, "written": written}
        messages.answer(self, facts, *lines, *messages.ending(notes, written)[: None if written else -1])
        return DRIFT if self.fail and found.drift else DONE


def facts_of(found: DriftResult) -> dict[str, Any]:
    """All that was found, in plain values."""
    names = found.comparison.names
    regions = [
        asdict(each)
        | {
            "centre": dict(zip(names, each.centre.tolist(), strict=True)),
            "extent": dict(zip(names, each.extent.tolist(), strict=True)),
            "change": each.change,
        }
        for each in found.where()
    ]
    return {
        **{name: getattr(found, name) for name in (*FIGURES, "exact")},
        "detectable": {"share": found.detectable_share, "shift": found.detectable_shift},
        "columns": [asdict(each) for each in found.columns()],
        "regions": regions,
    }


def _stage(shown: messages.ShowProgress | bool, name: str) -> None:
    """What is being done, where somebody looks on."""
    if callable(shown):
        shown(name, 0, None)
