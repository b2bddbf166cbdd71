"""`reduset evaluate`: the compressed mean at the rows of files, in bounded memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, command
from reduset.cli.request import reading_of


@command("small.npz new.parquet -o scores.parquet")
class EvaluateCommand(o.Threaded, o.Telling):
    """Write the value of a model's mean at every row, in the columns and the transform that it was made with.

    `value` is f; `log_density` the logarithm of the density that f is a multiple of, where it is one.
    """

    model: o.ModelFile
    data: o.Data
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the values go: .parquet, .feather, .csv or .tsv.")]
    compensate: Annotated[
        bool | None, typer.Option("--compensate/--no-compensate", help="Spillover of FCS files; as for the model if not given.")
    ] = None
    missing: o.Missing = "refuse"
    key: o.Key = None

    def run(self) -> int:
        """Run it; the exit code."""
        import numpy as np

        from reduset import io
        from reduset.kernels import RadialKernel
        from reduset.model import Model

        output = self.output
        targets.check(output, targets.rows(), self.data)
        found = Model.load(self.model)
        mean, reading = found.mean, reading_of(found) | o.given(compensate=self.compensate)
        parts, dropped = [], 0
        for path in self.data:
            for batch in io.batches(path, missing=self.missing, key=self.key, **reading):
                dropped += batch.dropped
                columns = [mean(batch.values)]
                if isinstance(mean.kernel, RadialKernel):
                    columns.append(mean.log_density(batch.values))
                parts.append(np.column_stack(columns))
        scores = np.concatenate(parts)
        names = ("value", "log_density")[: scores.shape[1]]
        io.write_rows(output, names, scores)
        facts = {"rows": len(scores), "dropped": dropped, "columns": names, "written": output}
        messages.answer(self, facts, f"{len(scores):,} rows evaluated by {found.size:,} {found.piece}s, written to {output}")
        if dropped:
            messages.note(f"note: {dropped:,} rows with missing values have no value in {output}", self.quiet)
        return DONE
