"""`reduset evaluate`: the compressed mean at the rows of files, in bounded memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from reduset.cli import options as o
from reduset.cli.app import DONE, app
from reduset.cli.info import ModelFile


@app.command(epilog="Example: reduset evaluate small.npz new.parquet -o scores.parquet")
def evaluate(
    model: ModelFile,
    data: o.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the values go: .parquet, .feather, .csv or .tsv.")],
    compensate: Annotated[
        bool | None, typer.Option("--compensate/--no-compensate", help="Spillover of FCS files; as for the model if not given.")
    ] = None,
    missing: o.Missing = "refuse",
    key: o.Key = None,
    threads: o.Threads = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> int:
    """Write the value of a model's mean at every row, in the columns and the transform that it was made with.

    `value` is f; `log_density` the logarithm of the density that f is a multiple of, where it is one.
    """
    import numpy as np

    from reduset import io
    from reduset.cli import messages, targets
    from reduset.kernels.base import RadialKernel
    from reduset.model.model import Model

    o.use_threads(threads)
    targets.check(output, targets.ROWS, data)
    found = Model.load(model)
    mean, about = found.mean, found.about
    as_made = bool(about.get("compensate", True)) if compensate is None else compensate
    parts, dropped = [], 0
    for path in data:
        options: dict[str, Any] = {"columns": list(found.columns), "transform": about.get("transform"), "compensate": as_made}
        for batch in io.batches(path, missing=missing, key=key, **options):
            dropped += batch.dropped
            columns = [mean(batch.values)]
            if isinstance(mean.kernel, RadialKernel):
                columns.append(mean.log_density(batch.values))
            parts.append(np.column_stack(columns))
    scores = np.concatenate(parts)
    names = ("value", "log_density")[: scores.shape[1]]
    io.write_rows(output, names, scores)
    if json:
        print(messages.as_json({"rows": len(scores), "dropped": dropped, "columns": names, "written": output}))
    else:
        messages.say(f"{len(scores):,} rows evaluated by {found.size:,} atoms, written to {output}", quiet)
    if dropped:
        messages.note(f"note: {dropped:,} rows with missing values have no value in {output}", quiet)
    return DONE
