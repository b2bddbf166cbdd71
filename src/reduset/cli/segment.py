"""`reduset segment`: a picture cut into segments of one colour."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, command
from reduset.cli.request import origin


@command("photograph.jpg -o segments.png --bandwidth 0.1 --report segments.html")
class SegmentCommand(o.Seeded, o.Telling):
    """Cut a picture into segments, by mean shift on a compressed density of its pixels."""

    image: Annotated[Path, typer.Argument(help="PNG, JPEG, TIFF, BMP or WebP.")]
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture with every segment in its mean colour.")]
    bandwidth: Annotated[
        str | None,
        typer.Option(
            "--bandwidth",
            "-b",
            help="Where colours go from 0 to 1, and so does the longer side; found from the picture if not given.",
        ),
    ] = None
    spatial: Annotated[float, typer.Option("--spatial", help="How much the position counts; 0 for colours alone.")] = 1.0
    min_size: Annotated[int, typer.Option("--min-size", help="Smaller segments go to their nearest.")] = 1
    size: Annotated[int | None, typer.Option("--size", "-m", help="Atoms of the density of the pixels.")] = None
    tol: Annotated[float | None, typer.Option("--tol", help="What that density may lose.")] = None
    report: o.Report = None

    def run(self) -> int:
        """Run it; the exit code."""
        import numpy as np

        from reduset import _archive, io
        from reduset.modes import estimator

        written = targets.check_all((self.output, targets.IMAGE, [self.image]), (self.report, targets.HTML, []))
        picture = io.read_image(self.image)
        goals = o.given(size=self.size, tol=self.tol)
        with messages.progress(self.silent) as shown:
            width = None if self.bandwidth is None else o.number_or_rule(self.bandwidth)
            found = estimator.segment(picture, width, self.spatial, self.min_size, random_state=self.seed, progress=shown, **goals)
        with _archive.together():
            io.write_image(self.output, found.image)
            if self.report is not None:
                from reduset.report import write_segmentation

                write_segmentation(self.report, picture, found, about=origin([str(self.image)], []))
        facts = {
            "segments": found.count,
            "pixels": np.bincount(found.labels.ravel()),
            "bandwidth": found.bandwidth,
            "written": written,
            "relative_error": found.certificate.relative_error,
        }
        messages.answer(self, facts, str(found), f"written    {', '.join(map(str, written))}")
        return DONE
