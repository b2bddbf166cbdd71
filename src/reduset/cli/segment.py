"""`reduset segment`: cut an image into segments of one colour."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE, command


@command("photograph.jpg -o segments.png --bandwidth 0.1 --report segments.html", "reduset.modes:segment")
class SegmentCommand(o.Seeded, o.Writing):
    """Cut an image into segments, by mean shift on a compressed density of its pixels."""

    image: Annotated[Path, typer.Argument(help="PNG, JPEG, TIFF, BMP or WebP.")]
    output: Annotated[Path, typer.Option("--output", "-o", help="The image with every segment in its mean colour.")]
    bandwidth: Annotated[
        str | None,
        typer.Option(
            "--bandwidth", "-b", help="In units where colours and the longer side go from 0 to 1; by default chosen from the image."
        ),
    ] = None
    spatial: float = 1.0
    min_size: int = 1
    size: Annotated[int | None, typer.Option("--size", "-m", help="Number of atoms of the density of the pixels.")] = None
    tol: Annotated[float | None, typer.Option("--tol", help="The largest relative error of the density of the pixels.")] = None
    report: o.Report = None

    def run(self) -> int:
        """Run it; the exit code."""
        import numpy as np

        from reduset import _archive, io
        from reduset.modes import segment

        written = targets.check_all((self.output, targets.IMAGE, [self.image]), (self.report, targets.HTML, []))
        image = io.read_image(self.image)
        goals = o.given(size=self.size, tol=self.tol)
        with messages.progress(self.silent) as shown:
            width = o.number_or_rule(self.bandwidth)
            segments = segment(image, width, self.spatial, self.min_size, random_state=self.seed, progress=shown, **goals)
        with _archive.together():
            io.write_image(self.output, segments.image)
            if self.report is not None:
                from reduset.report import write_segmentation

                write_segmentation(self.report, image, segments, about=messages.origin([str(self.image)], []))
        facts = {
            "segments": segments.count,
            "pixels": np.bincount(segments.labels.ravel()),
            "bandwidth": segments.bandwidth,
            "written": written,
            "relative_error": segments.certificate.relative_error,
        }
        messages.answer(self, facts, str(segments), *messages.ending([], written))
        return DONE
