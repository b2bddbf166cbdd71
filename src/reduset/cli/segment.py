"""`reduset segment`: a picture cut into segments of one colour."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from reduset.cli import options as o
from reduset.cli.app import DONE, app


@app.command(epilog="Example: reduset segment photograph.jpg -o segments.png --bandwidth 0.1 --report segments.html")
def segment(
    image: Annotated[Path, typer.Argument(help="PNG, JPEG, TIFF, BMP or WebP.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture with every segment in its mean colour.")],
    bandwidth: Annotated[
        str | None,
        typer.Option(
            "--bandwidth",
            "-b",
            help="Where colours go from 0 to 1, and so does the longer side; found from the picture if not given.",
        ),
    ] = None,
    spatial: Annotated[float, typer.Option("--spatial", help="How much the position counts; 0 for colours alone.")] = 1.0,
    min_size: Annotated[int, typer.Option("--min-size", help="Smaller segments go to their nearest.")] = 1,
    size: Annotated[int | None, typer.Option("--size", "-m", help="Atoms of the density of the pixels.")] = None,
    tol: Annotated[float | None, typer.Option("--tol", help="What that density may lose.")] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write a report to look at, one HTML file.")] = None,
    seed: o.Seed = 0,
    threads: o.Threads = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> int:
    """Cut a picture into segments, by mean shift on a compressed density of its pixels."""
    import numpy as np

    from reduset import _archive, io
    from reduset.cli import messages, request, targets
    from reduset.modes import estimator

    o.use_threads(threads)
    targets.check(output, targets.IMAGE, [image])
    if report is not None:
        targets.check(report, targets.HTML)
    picture = io.read_image(image)
    options: dict[str, Any] = {name: value for name, value in (("size", size), ("tol", tol)) if value is not None}
    with messages.progress(quiet or json) as shown:
        width = None if bandwidth is None else o.number_or_rule(bandwidth)
        found = estimator.segment(picture, width, spatial, min_size, random_state=seed, progress=shown, **options)
    written = [output]
    with _archive.together():
        io.write_image(output, found.image)
        if report is not None:
            from reduset.report import write_segmentation

            write_segmentation(report, picture, found, about=request.origin([str(image)], []))
            written.append(report)
    if json:
        counts = np.bincount(found.labels.ravel())
        facts = {"segments": found.count, "pixels": counts, "bandwidth": found.bandwidth, "written": written}
        print(messages.as_json(facts | {"relative_error": found.certificate.relative_error}))
    else:
        messages.say(str(found), quiet)
        messages.say(f"written    {', '.join(map(str, written))}", quiet)
    return DONE
