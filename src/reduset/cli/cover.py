"""`reduset cover`: choose rows of embeddings that cover all others, and write the nearest chosen row of every row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import command

ROW = "row"
DATA = "Rows: .npy or .safetensors (memory-mapped), a table, a folder, or a quoted pattern such as 'embeddings-*.npy'."


@command("embeddings.npy --size 10000 --metric cosine -o keep.parquet", "reduset.covers:cover")
class CoverCommand(o.Clustered, o.Threaded, o.Writing):
    """Choose rows so that every other row is near one of them: exact k-centre, or a cover of a given radius."""

    data: Annotated[Path, typer.Argument(help=DATA)]
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Table of the chosen rows (.parquet, .feather, .csv, .tsv): row number, distance, count."
        ),
    ]
    size: o.Size = None
    radius: float | None = None
    metric: str = "euclidean"
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep",
            help="With --radius alone, which of several near rows is kept: first, last, medoid (the one with most rows within the "
            "radius), or a file with one priority for each row.",
        ),
    ] = None
    start: Annotated[
        Path | None,
        typer.Option("--start", help="A file of this command: rows are added to its rows, which are not written again."),
    ] = None
    assignments: Annotated[
        Path | None, typer.Option("--assignments", help="Table of the nearest chosen row of every row, and its distance.")
    ] = None
    column: str | None = None
    max_memory: str | None = None
    checkpoint: Path | None = None

    def run(self) -> None:
        """Run it."""
        import numpy as np

        from reduset import _archive, _validate
        from reduset.covers import METRICS, cover

        if self.size is None and self.radius is None:
            raise ValueError("--size (the number of rows) or --radius (the largest distance to a chosen row) must be given")
        _validate.one_of(self.metric, "--metric", METRICS)
        inputs = [self.data, *([] if self.start is None else [self.start])]
        written = targets.check_all((self.output, targets.rows(), inputs), (self.assignments, targets.rows(), inputs))
        if self.checkpoint is not None:
            targets.check_location(self.checkpoint, [*inputs, *written])
        start = None if self.start is None else rows_of(self.start, "--start")
        self.check_engine(column=self.column)
        with self.on_engine():
            chosen = cover(
                self.rows(self.data),
                self.size,
                radius=self.radius,
                metric=self.metric,
                keep=self._priorities(),
                start=start,
                column=self.column,
                max_memory=self.max_memory,
                checkpoint=self.checkpoint,
                progress=self.shows_progress,
            )
        kept, counts = np.concatenate([chosen.start, chosen.indices]), chosen.counts[len(chosen.start) :]
        distances = np.where(np.isinf(chosen.distances), np.nan, chosen.distances)  # the first row has no distance
        with _archive.together():
            targets.write_columns(self.output, {ROW: chosen.indices, "distance": distances, "count": counts})
            if self.assignments is not None:
                rows, nearest = np.arange(len(chosen.assignments)), kept[chosen.assignments]
                targets.write_columns(self.assignments, {ROW: rows, "assignment": nearest, "distance": chosen.assignment_distances})
        messages.answer(self, chosen.describe(), written=written, groups=len(chosen.groups()))

    def _priorities(self) -> Any:
        """An order by name, or the numbers of a file."""
        from reduset.covers import ORDERS
        from reduset.io import read

        if self.keep is None or self.keep in ORDERS or not Path(self.keep).exists():
            return self.keep
        return read(self.keep).values[:, -1]


def rows_of(path: Path, option: str) -> Any:
    """The row numbers in a file of `reduset cover`."""
    from reduset.io import read

    rows = read(str(path), columns=[ROW]).values[:, 0]
    if (rows % 1 != 0).any():
        raise ValueError(f"{option} must hold whole row numbers, got {rows[rows % 1 != 0][0]:g} in {path}")
    return rows.astype("int64")
