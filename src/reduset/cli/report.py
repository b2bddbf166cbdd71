"""`reduset report`: a model as a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reduset.cli import options as o
from reduset.cli.app import DONE, app
from reduset.cli.info import ModelFile


@app.command(epilog="Example: reduset report small.npz -o small.html")
def report(
    model: ModelFile,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The HTML file; beside the model if not given.")] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> int:
    """Write the report of a model: one HTML file that opens offline."""
    from reduset.cli import messages, targets
    from reduset.model.model import Model
    from reduset.report import write_compression

    target = model.with_suffix(".html") if output is None else output
    targets.check(target, targets.HTML)
    write_compression(target, Model.load(model))
    if json:
        print(messages.as_json({"written": [target]}))
    else:
        messages.say(f"written    {target}", quiet)
    return DONE
