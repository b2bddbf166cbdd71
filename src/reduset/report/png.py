"""PNG images as text for a page: each line less the line above or the pixel before, whichever leaves least, then zlib."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

KINDS = {1: 0, 3: 2, 4: 6}  # channels: how PNG calls them


def data_uri(image: NDArray[np.uint8]) -> str:
    """A (h, w), (h, w, 3) or (h, w, 4) image as a data URI."""
    return "data:image/png;base64," + base64.b64encode(encoded(image)).decode("ascii")


def encoded(image: NDArray[np.uint8]) -> bytes:
    """The bytes of a PNG file."""
    array = np.ascontiguousarray(image if image.ndim == 3 else image[:, :, None], np.uint8)
    height, width, channels = array.shape
    header = struct.pack(">IIBBBBB", width, height, 8, KINDS[channels], 0, 0, 0)
    parts = [_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(_filtered(array), 9)), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _filtered(array: NDArray[np.uint8]) -> bytes:
    """Each line behind the number of its filter: 0 as it is, 1 less the pixel before, 2 less the line above."""
    height, width, channels = array.shape
    before, above = np.zeros_like(array), np.zeros_like(array)
    before[:, 1:], above[1:] = array[:, :-1], array[:-1]
    tried = np.stack([each.reshape(height, width * channels) for each in (array, array - before, array - above)])
    cost = np.abs(tried.view(np.int8).astype(np.int16)).sum(axis=2)
    best = cost.argmin(axis=0)
    lines = tried[best, np.arange(height)]
    return np.column_stack([best.astype(np.uint8), lines]).tobytes()


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
