"""`reduset audit`: measure how well a list of kept rows covers the data, and write the rows that are not covered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import command
from reduset.cli.cover import DATA, ROW, rows_of


@command("embeddings.npy keep.parquet --radius 0.02 --metric cosine --report audit.html", "reduset.covers:audit")
class AuditCommand(o.Clustered, o.Threaded, o.Writing):
    """Measure how well some kept rows cover the data: the exact covering radius, and comparisons with other choices."""

    data: Annotated[Path, typer.Argument(help=DATA)]
    keep: Annotated[Path, typer.Argument(help="A table with the kept rows in a column `row`, as written by `reduset cover`.")]
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Table of all rows: nearest kept row, distance (.parquet, .feather, .csv, .tsv)."),
    ] = None
    radius: float | None = None
    compare: Annotated[bool | None, typer.Option("--compare/--no-compare")] = None
    metric: str = "euclidean"
    column: str | None = None
    max_memory: str | None = None
    report: o.Report = None
    seed: o.Seed = 0

    def run(self) -> None:
        """Run it."""
        import numpy as np

        from reduset import _archive, _validate
        from reduset.covers import METRICS, audit

        _validate.one_of(self.metric, "--metric", METRICS)
        written = targets.check_all(
            (self.output, targets.rows(), [self.data, self.keep]), (self.report, targets.HTML, [self.data, self.keep])
        )
        self.check_engine(column=self.column)
        with self.on_engine():
            found = audit(
                self.rows(self.data),
                rows_of(self.keep, "KEEP"),
                self.radius,
                metric=self.metric,
                compare=self.compare,
                column=self.column,
                max_memory=self.max_memory,
                rng=self.seed,
                progress=self.shows_progress,
            )
        with _archive.together():
            nearest = found.kept[found.assignments]
            targets.write_columns(self.output, {ROW: np.arange(len(nearest)), "assignment": nearest, "distance": found.distances})
            if self.report is not None:
                from reduset.report import write_audit

                write_audit(self.report, found, str(self.data), about=messages.origin([str(self.data), str(self.keep)], []))
        messages.answer(self, found.describe(), written=written)
