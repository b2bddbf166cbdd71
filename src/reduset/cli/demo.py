"""`reduset demo`: sketch and compress the pixels of a photograph, cut it into segments, and write reports."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from reduset.cli import messages
from reduset.cli import options as o
from reduset.cli.app import command

SIZE = 1000
COLUMNS = ("across", "red", "green", "blue", "down")  # the report begins with the first two
SPATIAL = 0.5  # length of the longer side, in units in which colours are from 0 to 1
TOL = 0.05
LIBRARIES = ("PIL", "pyarrow", "plotly")
VERBS = (
    ("you want", "verb", "you get"),
    ("a smaller table: real rows with weights", "sketch", "row numbers, weights, a before/after table of every column"),
    ("a small function: density, distance, modes, drift", "compress", "weighted atoms, with the measured error"),
    ("coverage of embeddings, without weights", "cover", "row numbers, and the exact covering radius"),
)
FILES = ("photograph.jpg", "pixels.parquet", "small.npz", "small.html", "segments.png", "segments.html")


@command("--folder out")
class DemoCommand(o.Writing):
    """Sketch and compress the 273,280 pixels of a photograph, cut it into segments, and write the reports.

    Parameters
    ----------
    folder : The folder of the files. It is created if necessary.
    crop : Use a part of the photograph, which is faster.
    """

    folder: Path = Path("out")
    crop: bool = False

    def run(self) -> None:
        """Run it."""
        from sklearn.datasets import load_sample_image

        from reduset import _archive, io
        from reduset.compression import compress
        from reduset.mean import KernelMean
        from reduset.model import Model
        from reduset.modes import features, segment
        from reduset.report import write_compression, write_segmentation
        from reduset.sketching import sketch

        missing = [library for library in LIBRARIES if find_spec(library) is None]
        if missing:
            raise ImportError(f"the demo needs {', '.join(missing)}, not installed: pip install 'reduset[demo]'")
        if not self.silent:
            widths = [max(map(len, column)) for column in zip(*VERBS, strict=True)]
            for row in VERBS:
                print("   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
            print(flush=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        image = load_sample_image("china.jpg")
        if self.crop:
            image = image[20:110, 150:285]
        X = features(image, SPATIAL)[:, [1, 2, 3, 4, 0]]
        about = messages.origin(["the photograph china.jpg of scikit-learn"], [])
        photograph, pixels, model, page, segments_image, segments_page = written = [self.folder / name for name in FILES]
        size = min(SIZE, len(X) // 20)
        rows = sketch(io.Table(X, COLUMNS, in_one_unit=True), size, rng=0, progress=self.shows_progress)
        compress(X[::20], size=32, tol=0.5, rng=0)  # so that the time printed below has no compilation
        small = compress(X, size=size, tol=TOL, rng=0, progress=self.shows_progress)
        segments = segment(image, 0.1, random_state=0, min_size=50, progress=self.shows_progress)
        made = Model.of(KernelMean.from_samples(X, small.mean.kernel), small, COLUMNS, about)
        with _archive.together():
            io.write_image(photograph, image)
            io.write_rows(pixels, COLUMNS, X)
            made.save(model)
            write_compression(page, made)
            io.write_image(segments_image, segments.image)
            write_segmentation(segments_page, image, segments, about=about)
        text = f"{rows}\n\n{small}\n\n{segments}\n\nOpen {page} and {segments_page} in a browser."
        facts = {"sketch": rows.describe().facts(), "compression": small.describe().facts()}
        messages.answer(self, text, [], written, **facts, segments=segments.count)
