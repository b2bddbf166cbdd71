"""Model files to damage, and the tools to do it with."""

import io
import json
import zipfile

import numpy as np

from reduset import KernelMean
from reduset._archive.archive import write_parts


def mean_of(kernel, count=5):
    rng = np.random.default_rng(0)
    return KernelMean(rng.normal(size=(count, 2)), rng.normal(size=count), kernel)


def members(path):
    """The arrays of a file, by name."""
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def header_of(path):
    return json.loads(members(path)["header"].tobytes())


def parts(path):
    """The header and the arrays of a file."""
    arrays = members(path)
    return json.loads(arrays.pop("header").tobytes()), arrays


def as_member(header):
    return np.frombuffer(json.dumps(header).encode(), np.uint8)


def same(f, g):
    return np.array_equal(f.atoms, g.atoms) and np.array_equal(f.weights, g.weights) and f.kernel == g.kernel


def rewrite(path, *, without=(), compressed=False, **changes):
    """The same file with some members changed, well-formed in every other respect."""
    content = {name: array for name, array in (members(path) | changes).items() if name not in without}
    with open(path, "wb") as stream:
        (np.savez_compressed if compressed else np.savez)(stream, **content)


def reseal(path, **changes):
    """The same file with fields of the header changed and the digest made anew, as somebody who knows the format could."""
    content = members(path)
    header = json.loads(content.pop("header").tobytes()) | changes
    store(path, header, content)


def store(path, header, arrays):
    """A file with this header and these arrays, its digest made anew."""
    write_parts(path, {name: value for name, value in header.items() if name != "digest"}, arrays)


def npy(array, allow_pickle=False):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


def replace_member(path, name, content):
    """Put raw bytes in place of a member, with a right checksum."""
    with zipfile.ZipFile(path) as file:
        old = {info.filename: file.read(info) for info in file.infolist()}
    with zipfile.ZipFile(path, "w") as file:
        for filename, data in (old | {f"{name}.npy": content}).items():
            file.writestr(filename, data)
