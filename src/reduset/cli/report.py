"""`reduset report`: a model as a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, command


@command("small.npz -o small.html")
class ReportCommand(o.Telling):
    """Write the report of a model: one HTML file that opens offline."""

    model: o.ModelFile
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The HTML file; beside the model if not given.")] = None

    def run(self) -> int:
        """Run it; the exit code."""
        from reduset.model import Model
        from reduset.report import write_compression

        target = self.model.with_suffix(".html") if self.output is None else self.output
        targets.check(target, targets.HTML)
        write_compression(target, Model.load(self.model))
        messages.answer(self, {"written": [target]}, f"written    {target}")
        return DONE
