"""`reduset info`, `evaluate` and `report`: the contents of a model, its values at new rows, and its report."""

from __future__ import annotations

from pathlib import Path

from reduset._describe import Row
from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import command


@command("small.npz")
class InfoCommand(o.Answering):
    """Print the size, the error and the origin of a model."""

    model: Path

    def run(self) -> None:
        """Run it."""
        from reduset.model import Model

        model = Model.load(self.model)
        about, versions = model.about, model.about.get("versions", {})
        texts = {
            **{name[:-1]: about.get(name, []) for name in ("sources", "notes")},
            **{name: str(about.get(name) or "") for name in ("transform", "command")},
            "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
        }
        rows = (Row(label, text) for label, text in texts.items())
        messages.answer(self, messages.with_scales(model.describe(), model.mean.kernel, model.columns, *rows))


@command("small.npz new.parquet -o scores.parquet")
class EvaluateCommand(o.Threaded, o.Writing):
    """Evaluate a model at every row, with the columns and the transform that it was made with.

    The column `value` is f. If f is a multiple of a density, the column `log_density` is the logarithm of this density.

    Parameters
    ----------
    output : Table of the values: .parquet, .feather, .csv or .tsv.
    compensate : Spillover of FCS files; by default as for the model.
    key : The array of an .npz; X, obs or obsm/NAME of an .h5ad.
    """

    model: Path
    data: o.Data
    output: Path
    compensate: bool | None = None
    missing: str = "refuse"
    key: str | None = None

    def run(self) -> None:
        """Run it."""
        import numpy as np

        from reduset import io
        from reduset.kernels import RadialKernel
        from reduset.model import Model

        targets.check(self.output, targets.rows(), self.data)
        model = Model.load(self.model)
        mean, reading = model.mean, o.reading_of(model) | self.given("compensate")
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
        notes = [f"{dropped:,} rows with missing values have no value in {self.output}"] if dropped else []
        facts = {"rows": len(values), "dropped": dropped, "columns": names}
        messages.answer(self, f"{len(values):,} rows evaluated by {model.size:,} {model.piece}s", notes, [self.output], **facts)


@command("small.npz -o small.html")
class ReportCommand(o.Writing):
    """Write the report of a model: one HTML file that opens offline.

    Parameters
    ----------
    output : The HTML file, by default next to the model with its name.
    """

    model: Path
    output: Path | None = None

    def run(self) -> None:
        """Run it."""
        from reduset.model import Model
        from reduset.report import write_compression

        target = self.model.with_suffix(".html") if self.output is None else self.output
        targets.check(target, targets.HTML)
        write_compression(target, Model.load(self.model))
        messages.answer(self, f"Report of {self.model}", written=[target])
