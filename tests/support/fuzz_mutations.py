"""Files made wrong: bytes of any file, members of an archive with right checksums, headers of models with right digests."""

import gzip
import io
import json
import zipfile
from copy import deepcopy

import numpy as np

from reduset._archive import archive

EDGES = [0, 1, -1, 2, 127, 128, 255, 256, -128, 32767, 65535, 2**31 - 1, -(2**31), 2**32 - 1, 2**53, 2**63 - 1, -(2**63)]
TOKENS = [
    b"nan",
    b"inf",
    b"-1",
    b"1e999",
    b"\x00",
    b"\xff\xfe",
    b'"',
    b",,,,",
    b"\n",
    b"\r",
    b"9" * 400,
    b"\x1b[2J",
    "ü".encode(),
    b"{",
    b"[" * 200,
]
VALUES = [
    *(None, True, False, 0, 1, -1, -3, 5, 2**31, 2**64, 10**30, 10**400, 0.5, -5.0, 1e308, -1e308, 5e-324),
    *(float("nan"), float("inf"), float("-inf"), "", "x", "inf", "exact", "gaussian", "\x1b[2J", "x" * 2000),
    *([], [1], [[1]], ["a", "b"], [float("nan")] * 3, {}, {"a": 1}, {"name": "gaussian"}, {"n_jobs": 5000}),
]  # fmt: skip
SHAPES = [(), (0,), (1,), (0, 2), (2, 0), (1, 1), (5, 2), (2, 5), (3,), (1, 1, 1), (2, 3, 4)]


def pick(rng, choices):
    return choices[int(rng.integers(len(choices)))]


def mutated_bytes(data, rng):
    """The same bytes with a few faults."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        if not data:
            break
        at, span = int(rng.integers(len(data))), int(2 ** rng.integers(0, 7))
        way = int(rng.integers(8))
        if way == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif way == 1:
            data[at : at + span] = rng.bytes(min(span, len(data) - at))
        elif way in (2, 3):
            width = pick(rng, [1, 2, 4, 8])
            number = pick(rng, EDGES) % (1 << 8 * width)
            data[at : at + width] = number.to_bytes(width, pick(rng, ["little", "big"]))
        elif way == 4:
            del data[at : at + span]
        elif way == 5:
            data[at:at] = data[at : at + span] * int(rng.integers(1, 4))
        elif way == 6:
            data[at:at] = pick(rng, TOKENS)
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


def mutated_gzip(data, rng):
    """What is inside, or the packing, with faults."""
    return mutated_bytes(data, rng) if rng.random() < 0.3 else gzip.compress(mutated_bytes(gzip.decompress(data), rng), mtime=0)


def mutated_zip(data, rng):
    """A member with faults and a right checksum, or the whole archive with faults."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    chosen = pick(rng, sorted(members))
    members[chosen] = mutated_bytes(members[chosen], rng)
    return _packed(members)


def _packed(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def mutated_model(data, rng):
    """A file of ours whose header or arrays were changed by somebody who made the digest anew."""
    if rng.random() < 0.2:
        return mutated_zip(data, rng)
    with np.load(io.BytesIO(data)) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(arrays.pop("header").tobytes())
    header.pop("digest")
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.7:
            _change_header(header, rng)
        else:
            name = pick(rng, sorted(arrays))
            arrays[name] = _changed_array(arrays[name], rng)
    complete = header | {"digest": archive._digest(header, arrays)}
    arrays["header"] = np.frombuffer(json.dumps(complete, sort_keys=True).encode(), np.uint8)
    return _packed({f"{name}.npy": _npy(array) for name, array in arrays.items()})


def _npy(array):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, allow_pickle=False)
    return out.getvalue()


def _nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def _change_header(header, rng):
    """Put something else in one place of the header, add a field or take one away."""
    place = header
    while True:
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = pick(rng, keys)
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.7:
            place = place[key]
            continue
        way = rng.random()
        if way < 0.1:
            del place[key]
        elif way < 0.2 and isinstance(place, dict):
            place[pick(rng, ["extra", "n_jobs", "", "\x1b"])] = deepcopy(pick(rng, VALUES))
        elif way < 0.25:
            place[key] = _nested(int(rng.integers(2, 900)))
        elif way < 0.45 and isinstance(place[key], int | float):
            factor = pick(rng, [-1, 0, 2, 1e-300, 1e300, 0.1])
            whole = (
                isinstance(place[key], int) and abs(place[key]) > 2**1000
            )  # put there by another change, and no number of floating point
            place[key] = -place[key] if whole else place[key] * factor
        else:
            place[key] = deepcopy(pick(rng, VALUES))
        return


@np.errstate(over="ignore")  # of numbers of 32 bits, some become infinite
def _changed_array(array, rng):
    way = int(rng.integers(5))
    if way == 0:
        return np.full(pick(rng, SHAPES), pick(rng, [0.0, 1.0, -1.0, np.nan, 1e300]))
    if way == 1 and array.size:
        out = array.astype(np.float64) if array.dtype.kind in "iu" else array.copy()  # whole numbers hold no NaN
        out.flat[int(rng.integers(array.size))] = pick(rng, [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, 5e-324, 1e18])
        return out
    if way == 2:
        return array.astype(pick(rng, [np.float16, np.float32, np.float64, ">f8", np.int64, np.complex128]))
    if way == 3 and array.ndim:
        return array[: int(rng.integers(len(array) + 1))]
    return array * pick(rng, [0.0, -1.0, 1e200, 1e-200])
