"""`reduset cover`: choose rows of embeddings that cover all others, and write the nearest chosen row of every row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from reduset._messages import did_you_mean
from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, command

# repeated here, because importing them would load the compiler for --help; a test compares the two
METRICS = ("euclidean", "cosine")
ROW = "row"


@command("embeddings.npy --size 10000 --metric cosine -o keep.parquet")
class CoverCommand(o.Threaded, o.Telling):
    """Choose rows so that every other row is near one of them: exact k-centre, or a cover of a given radius."""

    data: Annotated[Path, typer.Argument(help="Rows: .npy (memory-mapped), .parquet or .feather with a column of lists.")]
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Table of the chosen rows (.parquet, .feather, .csv, .tsv): row number, distance, count."
        ),
    ]
    size: Annotated[int | None, typer.Option("--size", "-m", help="Number of rows to choose.")] = None
    radius: Annotated[
        float | None,
        typer.Option("--radius", help="Choose rows until every row is within this distance of one, or until there are --size."),
    ] = None
    metric: Annotated[str, typer.Option("--metric", help="euclidean, or cosine (1 − cos).")] = METRICS[0]
    start: Annotated[
        Path | None,
        typer.Option(
            "--start", help="Add to rows chosen earlier: a file that this command wrote. Those rows are not written again."
        ),
    ] = None
    assignments: Annotated[
        Path | None, typer.Option("--assignments", help="Table of the nearest chosen row of every row, and its distance.")
    ] = None
    column: Annotated[str | None, typer.Option("--column", help="The column of lists in a table.")] = None

    def check(self) -> None:
        """Raise an error for invalid options before any work."""
        if self.size is None and self.radius is None:
            raise ValueError(
                "--size or --radius must be given: the number of rows, or the largest distance of a row to a chosen one"
            )
        if self.metric not in METRICS:
            raise ValueError(f"--metric must be {' or '.join(METRICS)}, got {self.metric}{did_you_mean(self.metric, METRICS)}")
        read = [self.data, *([] if self.start is None else [self.start])]
        targets.check_all((self.output, targets.rows(), read), (self.assignments, targets.rows(), read))

    def run(self) -> int:
        """Run it; the exit code."""
        import numpy as np

        from reduset import _archive
        from reduset.covers import cover

        self.check()
        start = None if self.start is None else self._rows_before()
        with messages.progress(self.silent) as shown:
            found = cover(
                self.data,
                self.size,
                radius=self.radius,
                metric=self.metric,
                start=start,
                column=self.column,
                progress=shown,
            )
        kept, counts = np.concatenate([found.start, found.indices]), found.counts[len(found.start) :]
        first = np.where(np.isinf(found.distances), np.nan, found.distances)
        with _archive.together():
            _write(self.output, {ROW: found.indices, "distance": first, "count": counts})
            if self.assignments is not None:
                rows = np.arange(len(found.assignments))
                _write(self.assignments, {ROW: rows, "assignment": kept[found.assignments], "distance": found.assignment_distances})
        written = [self.output, *([] if self.assignments is None else [self.assignments])]
        facts = {
            "n": len(found.assignments),
            "size": found.size,
            "start": len(found.start),
            "metric": found.metric,
            "radius": found.radius,
            "groups": len(found.groups()),
            "written": written,
        }
        messages.answer(self, facts, str(found), *messages.ending([], written))
        return DONE

    def _rows_before(self) -> Any:
        """Row numbers in a file that this command wrote."""
        from reduset.io import read

        rows = read(str(self.start), columns=[ROW]).values[:, 0]
        if (rows % 1 != 0).any():
            raise ValueError(f"--start must hold whole row numbers, got {rows[rows % 1 != 0][0]:g} in {self.start}")
        return rows.astype("int64")


def _write(path: Path, columns: dict[str, Any]) -> None:
    from reduset.io import need, write_table

    arrow = need("writing rows", "pyarrow", "tables")
    write_table(str(path), arrow.table({name: arrow.array(each, from_pandas=True) for name, each in columns.items()}))
