"""`reduset segment`: cut an image into segments of one colour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import command


@command("photograph.jpg -o segments.png --bandwidth 0.1 --report segments.html", "reduset.modes:segment")
class SegmentCommand(o.Seeded, o.Writing):
    """Cut an image into segments, by mean shift on a compressed density of its pixels.

    Parameters
    ----------
    image : PNG, JPEG, TIFF, BMP or WebP.
    output : The image with every segment in its mean colour.
    bandwidth : In units where colours and the longer side go from 0 to 1; by default chosen from the image.
    size : Number of atoms of the density of the pixels.
    tol : The largest relative error of the density of the pixels.
    """

    image: Path
    output: Path
    bandwidth: str | None = None
    spatial: float = 1.0
    min_size: int = 1
    size: o.Size = None
    tol: float | None = None
    report: o.Report = None

    def run(self) -> None:
        """Run it."""
        import numpy as np

        from reduset import _archive, io, report
        from reduset.modes import segment

        written = targets.check_all((self.output, targets.IMAGE, [self.image]), (self.report, targets.HTML, []))
        image = io.read_image(self.image)
        options = self.given("spatial", "min_size", "size", "tol")
        segments = segment(image, o.number_or_rule(self.bandwidth), random_state=self.seed, progress=self.shows_progress, **options)
        with _archive.together():
            io.write_image(self.output, segments.image)
            if self.report is not None:
                report.write_segmentation(self.report, image, segments, about=messages.origin([str(self.image)], []))
        facts: dict[str, Any] = {
            "segments": segments.count,
            "pixels": np.bincount(segments.labels.ravel()),
            "bandwidth": segments.bandwidth,
            "relative_error": segments.certificate.relative_error,
        }
        messages.answer(self, str(segments), written=written, **facts)
