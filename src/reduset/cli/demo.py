"""`reduset demo`: the three verbs, and a photograph's pixels sketched, compressed and cut into segments, with reports."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from reduset.cli import messages
from reduset.cli import options as o
from reduset.cli.app import DONE, command
from reduset.cli.request import origin

SIZE = 1000
COLUMNS = ("across", "red", "green", "blue", "down")  # the first two are what the report opens with
SPATIAL = 0.5  # the longer side, where colours go from 0 to 1: colour decides, position tells apart what looks alike
TOL = 0.05  # what may be lost at the finest shades and places that so many atoms tell apart
NEEDED = ("PIL", "pyarrow", "plotly")  # for its pictures, table and reports
VERBS = (
    ("you want", "verb", "you get"),
    ("a smaller table: real rows with weights", "sketch", "row numbers, weights, a before/after table of every column"),
    ("a small function: density, distance, modes, drift", "compress", "weighted atoms, with the measured error"),
    ("coverage of embeddings, without weights", "cover", "row numbers, and the exact covering radius"),
)
FILES = ("photograph.jpg", "pixels.parquet", "small.npz", "small.html", "segments.png", "segments.html")


def verbs() -> str:
    """What to call for what, as a table."""
    widths = [max(map(len, column)) for column in zip(*VERBS, strict=True)]
    return "\n".join("   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in VERBS)


@command("--folder out")
class DemoCommand(o.Telling):
    """Sketch and compress the 273,280 pixels of a photograph, cut it into segments, and write the reports."""

    folder: Annotated[Path, typer.Option("--folder", help="Where the files go; it is made if it is not there.")] = Path("out")
    crop: Annotated[bool, typer.Option("--crop", help="Only a part of the photograph, for a quick look.")] = False

    def run(self) -> int:
        """Run it; the exit code."""
        from sklearn.datasets import load_sample_image

        from reduset import _archive, io
        from reduset.compression import compress
        from reduset.mean import KernelMean
        from reduset.model import Model
        from reduset.modes import estimator
        from reduset.modes.segmentation import features
        from reduset.report import write_compression, write_segmentation
        from reduset.sketching import sketch

        missing = [library for library in NEEDED if find_spec(library) is None]
        if missing:  # said at once, and all together: the photograph takes a minute
            raise ImportError(f"the demo needs {', '.join(missing)}, not installed: pip install 'reduset[demo]'")
        if not self.silent:
            print(f"{verbs()}\n", flush=True)
        folder = self.folder
        folder.mkdir(parents=True, exist_ok=True)
        image = load_sample_image("china.jpg")
        if self.crop:
            image = image[20:110, 150:285]
        X = features(image, SPATIAL)[:, [1, 2, 3, 4, 0]]
        about = origin(["the photograph china.jpg of scikit-learn"], [])
        photograph, pixels, model, page, segments, segments_page = (folder / name for name in FILES)
        table = io.Table(X, COLUMNS, in_one_unit=True)
        with messages.progress(self.silent) as shown:
            rows = sketch(table, min(SIZE, len(X) // 20), rng=0, progress=shown)
            # compiles, so that the time told below is that of every later run
            compress(X[::20], size=32, tol=0.5, rng=0)
            small = compress(X, size=min(SIZE, len(X) // 20), tol=TOL, rng=0, progress=shown)
            found = estimator.segment(image, 0.1, random_state=0, min_size=50, progress=shown)
        made = Model.of(KernelMean.from_samples(X, small.mean.kernel), small, COLUMNS, about)
        with _archive.together():
            io.write_image(photograph, image)
            io.write_rows(pixels, COLUMNS, X)
            made.save(model)
            write_compression(page, made)
            io.write_image(segments, found.image)
            write_segmentation(segments_page, image, found, about=about)
        facts = {
            "n": small.n_samples,
            "size": small.size,
            "sketch": {"size": rows.size, "radius": rows.radius, "relative_error": rows.error},
            "relative_error": small.certificate.relative_error,
            "resolution": small.resolution,
            "segments": found.count,
            "written": [folder / name for name in FILES],
        }
        told = f"{rows}\n\n{small}\n\n{found}\n\nWritten to {folder}: {', '.join(FILES)}"
        messages.answer(self, facts, told, f"Open {page} and {segments_page} in a browser.")
        return DONE
