"""`reduset demo`: a photograph's pixels compressed and cut into segments, with reports to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reduset.cli import options as o
from reduset.cli.app import DONE, app

SIZE = 1000
LONGER_SIDE = 128.0  # of the picture, in units of a colour's 256 levels: colour decides, position tells apart what looks alike
BANDWIDTH = 64.0  # a quarter of a colour's range


@app.command(epilog="Example: reduset demo --folder out")
def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where the files go; it is made if it is not there.")] = Path("out"),
    crop: Annotated[bool, typer.Option("--crop", help="Only a part of the photograph, for a quick look.")] = False,
    quiet: o.Quiet = False,
) -> int:
    """Compress the 273,280 pixels of a photograph, cut it into segments, and write the reports."""
    from sklearn.datasets import load_sample_image

    from reduset import Gaussian, KernelMean, compress, io, modes
    from reduset.cli import request, telling
    from reduset.model import Model
    from reduset.report import write_compression, write_segmentation

    folder.mkdir(parents=True, exist_ok=True)
    image = load_sample_image("china.jpg")
    if crop:
        image = image[20:110, 150:285]
    names = ("red", "green", "blue", "across", "down")
    X = pixels(image)
    about = request.origin(["the photograph china.jpg of scikit-learn"], [])
    paths = {
        name: folder / name
        for name in ("photograph.jpg", "pixels.parquet", "small.npz", "small.html", "segments.png", "segments.html")
    }
    io.write_image(paths["photograph.jpg"], image)
    io.write_rows(paths["pixels.parquet"], names, X)
    telling.say("The inner loops are compiled on first use, some 15 seconds; later runs start at once.", quiet)
    with telling.progress(quiet) as shown:
        full = KernelMean.from_samples(X, Gaussian(BANDWIDTH))
        small = compress(full, size=min(SIZE, len(X) // 20), select="kcenter", rng=0, progress=shown)
        model = Model.of(full, small, names, about)
        found = modes.segment(image, 0.1, random_state=0, min_size=50, progress=shown)
    model.save(paths["small.npz"])
    write_compression(paths["small.html"], model)
    io.write_image(paths["segments.png"], found.image)
    write_segmentation(paths["segments.html"], image, found, about=about)
    telling.say(f"{small}\n\n{found}\n", quiet)
    telling.say("Written:\n" + "\n".join(f"  {path}" for path in paths.values()), quiet)
    telling.say(f"Open {paths['small.html']} and {paths['segments.html']} in a browser.", quiet)
    return DONE


def pixels(image):  # type: ignore[no-untyped-def]
    """(n, 5): the colour and the scaled position of every pixel."""
    import numpy as np

    height, width, _ = image.shape
    down, across = np.mgrid[:height, :width] * (LONGER_SIDE / max(height, width))
    return np.column_stack([image.reshape(-1, 3), across.ravel(), down.ravel()])
