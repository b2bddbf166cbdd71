"""`reduset subset`: embeddings in, the rows out that are near all others, and which of them is near each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, command

# written out, since importing them would make help wait for the compiler; a test compares
METRICS = ("euclidean", "cosine")
ROW = "row"


@command("embeddings.npy --size 10000 --metric cosine -o keep.parquet")
class SubsetCommand(o.Threaded, o.Telling):
    """Keep rows so chosen that every other row is near one of them: exact k-centre, or a cover of a given radius."""

    data: Annotated[
        Path, typer.Argument(help="Rows: .npy (mapped, not read at once), .parquet or .feather with a column of lists.")
    ]
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The rows kept, .parquet, .feather, .csv or .tsv: their numbers, distances and counts."
        ),
    ]
    size: Annotated[int | None, typer.Option("--size", "-m", help="How many rows to keep.")] = None
    radius: Annotated[
        float | None, typer.Option("--radius", help="Keep as few as bring every row this near to one of them; or --size of them.")
    ] = None
    metric: Annotated[str, typer.Option("--metric", help="euclidean, or cosine (1 − cos).")] = METRICS[0]
    start: Annotated[
        Path | None,
        typer.Option("--start", help="Go on from rows kept before: a file that this command wrote. They are not written again."),
    ] = None
    owners: Annotated[
        Path | None, typer.Option("--owners", help="Write which row kept is nearest to each, and how far: .parquet, .csv, ….")
    ] = None
    column: Annotated[str | None, typer.Option("--column", help="Of a table, the column of lists.")] = None

    def check(self) -> None:
        """Refuse what cannot be done before any work is."""
        if self.size is None and self.radius is None:
            raise ValueError("--size or --radius must be given: how many rows, or how near every row is to be to one of them")
        if self.metric not in METRICS:
            raise ValueError(f"--metric must be {' or '.join(METRICS)}, got {self.metric}")
        read = [self.data, *([] if self.start is None else [self.start])]
        targets.check_all((self.output, targets.rows(), read), (self.owners, targets.rows(), read))

    def run(self) -> int:
        """Run it; the exit code."""
        import numpy as np

        from reduset import _archive
        from reduset.subset import subset

        self.check()
        start = None if self.start is None else self._rows_before()
        with messages.progress(self.silent) as shown:
            found = subset(
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
            if self.owners is not None:
                rows = np.arange(len(found.owners))
                _write(self.owners, {ROW: rows, "owner": kept[found.owners], "distance": found.owner_distances})
        written = [self.output, *([] if self.owners is None else [self.owners])]
        facts = {
            "n": len(found.owners),
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
        """The numbers of rows in a file that was written before."""
        from reduset.io import read

        rows = read(str(self.start), columns=[ROW]).values[:, 0]
        if (rows % 1 != 0).any():
            raise ValueError(f"--start must hold whole numbers of rows, got {rows[rows % 1 != 0][0]:g} in {self.start}")
        return rows.astype("int64")


def _write(path: Path, columns: dict[str, Any]) -> None:
    from reduset.io.guard import need
    from reduset.io.writing import write_table

    arrow = need("writing rows", "pyarrow", "tables")
    write_table(str(path), arrow.table({name: arrow.array(each, from_pandas=True) for name, each in columns.items()}))
