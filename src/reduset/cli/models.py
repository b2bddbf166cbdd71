"""`reduset info`, `evaluate` and `report`: the contents of a model, its values at new rows, and its report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reduset._messages import printable
from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, command


@command("small.npz")
class InfoCommand(o.Answering):
    """Print the size, the error and the origin of a model."""

    model: o.ModelFile

    def run(self) -> int:
        """Run it; the exit code."""
        from reduset.model import Model

        model = Model.load(self.model)
        kernel, about = model.mean.kernel, model.about
        lines = [f"  {name.rstrip('s'):<12}{printable(text)}" for name in ("sources", "notes") for text in about.get(name, ())]
        for label, name in (("transform", "transform"), ("command", "command")):
            if about.get(name):
                lines.append(f"  {label:<12}{printable(about[name])}")
        if about.get("versions"):
            lines.append("  versions    " + ", ".join(printable(f"{name} {number}") for name, number in about["versions"].items()))
        facts = model.describe().facts() | {"scales": messages.scales_by_column(kernel, model.columns)}
        messages.answer(self, facts, str(model), *messages.scales_line(kernel, model.columns), *lines)
        return DONE


@command("small.npz new.parquet -o scores.parquet")
class EvaluateCommand(o.Threaded, o.Writing):
    """Evaluate a model at every row, with the columns and the transform that it was made with.

    The column `value` is f. If f is a multiple of a density, the column `log_density` is the logarithm of this density.
    """

    model: o.ModelFile
    data: o.Data
    output: Annotated[Path, typer.Option("--output", "-o", help="Table of the values: .parquet, .feather, .csv or .tsv.")]
    compensate: Annotated[
        bool | None, typer.Option("--compensate/--no-compensate", help="Spillover of FCS files; by default as for the model.")
    ] = None
    missing: o.Missing = "refuse"
    key: o.Key = None

    def run(self) -> int:
        """Run it; the exit code."""
        import numpy as np

        from reduset import io
        from reduset.kernels import RadialKernel
        from reduset.model import Model

        targets.check(self.output, targets.rows(), self.data)
        model = Model.load(self.model)
        mean, reading = model.mean, o.reading_of(model) | o.given(compensate=self.compensate)
        parts, dropped = [], 0
        for path in self.data:
            for batch in io.batches(path, missing=self.missing, key=self.key, **reading):
                dropped += batch.dropped
                columns = [mean(batch.values)]
                if isinstance(mean.kernel, RadialKernel):
                    columns.append(mean.log_density(batch.values))
                parts.append(np.column_stack(columns))
        values = np.concatenate(parts)
        names = ("value", "log_density")[: values.shape[1]]
        io.write_rows(self.output, names, values)
        facts = {"rows": len(values), "dropped": dropped, "columns": names, "written": self.output}
        line = f"{len(values):,} rows evaluated by {model.size:,} {model.piece}s, written to {self.output}"
        messages.answer(self, facts, line)
        if dropped:
            messages.note(f"note: {dropped:,} rows with missing values have no value in {self.output}", self.quiet)
        return DONE


@command("small.npz -o small.html")
class ReportCommand(o.Writing):
    """Write the report of a model: one HTML file that opens offline."""

    model: o.ModelFile
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The HTML file, by default next to the model with its name.")
    ] = None

    def run(self) -> int:
        """Run it; the exit code."""
        from reduset.model import Model
        from reduset.report import write_compression

        target = self.model.with_suffix(".html") if self.output is None else self.output
        targets.check(target, targets.HTML)
        write_compression(target, Model.load(self.model))
        messages.answer(self, {"written": [target]}, *messages.ending([], [target]))
        return DONE
