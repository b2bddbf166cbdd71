"""Images, by pillow: an array of bytes, or a table with one row per pixel. Formats that can run code are not opened."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset.io.guard import head_of, need, path_text, write_file
from reduset.io.reader import NUMBER, Block, FileReader, Format, ReadOptions, block_of
from reduset.io.table import FileError, refusing

PILLOW_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM")
MAX_PIXELS = 200_000_000


def read_image(path: Any) -> NDArray[np.uint8]:
    """The pixels of an image, (h, w, 3) or (h, w) if grey, from 0 to 255, rotated by its EXIF tag, without transparency."""
    name = path_text(path)
    head_of(name)
    pillow, turning = (need("reading images", module, "images") for module in ("PIL.Image", "PIL.ImageOps"))
    with refusing(name, "an image"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its warnings are checked here, or harmless
        with pillow.open(name, formats=PILLOW_FORMATS) as picture:
            width, height = picture.size
            if width * height > MAX_PIXELS:
                raise FileError(f"{name}: has {width:,} × {height:,} pixels, more than {MAX_PIXELS:,}; make it smaller")
            turned = turning.exif_transpose(picture)
            if turned.mode.startswith(("I", "F")):
                return _from_deep(name, np.asarray(turned))
            grey = turned.mode in ("1", "L", "LA", "La")
            return np.asarray(turned.convert("L" if grey else "RGB"))


def write_image(path: Any, pixels: NDArray[np.uint8]) -> None:
    """Write (h, w), (h, w, 3) or (h, w, 4) bytes as an image in the format of the suffix, atomically."""
    name = path_text(path)
    pillow = need("writing images", "PIL.Image", "images")
    kind = pillow.registered_extensions().get(os.path.splitext(name.lower())[1])
    if kind not in PILLOW_FORMATS:
        raise FileError(f"{name}: images cannot be written with this suffix; use .png, .jpg, .tif, .bmp or .webp")
    picture = pillow.fromarray(np.ascontiguousarray(pixels))
    if kind == "JPEG" and picture.mode == "RGBA":
        picture = picture.convert("RGB")
    write_file(name, lambda stream: picture.save(stream, kind))


def _from_deep(name: str, levels: NDArray[Any]) -> NDArray[np.uint8]:
    """The upper 8 bits of grey levels of 16 bits. Other types are no image."""
    if levels.dtype.kind == "f" or levels.min() < 0 or levels.max() > 65535:
        raise FileError(f"{name}: holds measurements ({levels.dtype}), not shades; save it as .npy, or as 8 or 16 bits")
    return (levels >> 8).astype(np.uint8)


class ImageReader(FileReader):
    """The pixels of an image as rows, line by line."""

    in_one_unit = True

    def __init__(self, path: str, _: ReadOptions) -> None:
        pixels = read_image(path)
        names = ["grey"] if pixels.ndim == 2 else ["red", "green", "blue"]
        self._pixels = pixels.reshape(-1, len(names))
        super().__init__(path, dict.fromkeys(names, NUMBER), len(self._pixels))
        self.notes.append(f"{pixels.shape[0]:,} × {pixels.shape[1]:,} pixels")

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        for first in range(0, len(self._pixels), rows):
            columns = dict(zip(self.kinds, self._pixels[first : first + rows].T, strict=True))
            yield block_of(first, columns.__getitem__, names, labels)


FORMATS = (
    Format(
        "an image",
        (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".ppm", ".pgm"),
        ImageReader,
        magic=(b"\x89PNG", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*", b"GIF8", b"BM", b"RIFF", b"P5", b"P6"),
        sure=False,
        needs=("PIL", "images"),
    ),
)
