"""The model file: an .npz of plain arrays and a JSON header, versioned, checked, never executed.

Members are stored uncompressed, so that a file can never unpack to more than its own size. The header carries a digest of the
arrays: a file that was cut or edited by chance is refused. A digest is no signature: who edits a file on purpose makes it anew, so
that whoever reads a header checks its fields by type and range. Writing goes to a temporary file beside the target, which then
replaces it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

HEADER = "header"
HEADER_MOST = 1 << 24
DEEPEST = 16  # lists and objects inside each other
LARGEST = 1 << 256  # seeds have 128 bits; every whole number up to here is a number of floating point too

Path_ = str | os.PathLike[str]


def _digest(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()


def write(path: Path_, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write header and arrays; the target appears whole or not at all."""
    _check_plain(header)
    complete = header | {"digest": _digest(header, arrays)}
    text = np.frombuffer(json.dumps(complete, sort_keys=True).encode(), np.uint8)
    write_whole(path, lambda stream: _fill(stream, {HEADER: text, **arrays}))


def _fill(stream: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """What ``np.savez(stream, allow_pickle=False, **arrays)`` writes, which NumPy 2.0 took for an array of that name."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, np.asanyarray(array), allow_pickle=False)


def write_whole(path: Path_, fill: Callable[[BinaryIO], Any]) -> None:
    """Write a file by ``fill``, beside the target and then in its place: it appears whole or not at all."""
    target = Path(os.path.realpath(path))  # a link stays, and what it leads to is written
    if target.exists() and not target.is_file():
        what = "a folder" if target.is_dir() else "a pipe or a device"
        raise OSError(
            errno.EINVAL, f"is {what}, and a file can only be written in place of a file; give another name", os.fspath(path)
        )
    # the name is known before the file exists, so that an interrupt at any moment finds what to remove
    temporary = os.fspath(target.parent / f".{target.name[:40]}.{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb", opener=_private) as stream:
            fill(stream)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # the temporary file is private; a saved file follows the user's own mask
        waiting = _WAITING.get()
        if waiting is None:
            _move(temporary, target)
        else:
            waiting.append((temporary, target))
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = os.fspath(path)  # a full disk is no news without the name
        raise


def _private(path: str, flags: int) -> int:
    """Open a file that other users cannot read while it is written."""
    return os.open(path, flags, 0o600)


def _move(temporary: str, target: Path) -> None:
    """Put a file in its place, for good: the folder is flushed too, or a power cut could bring back the old one."""
    os.replace(temporary, target)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        except OSError:  # some file systems have no such thing; the file itself is flushed
            pass
        finally:
            os.close(folder)


_WAITING: ContextVar[list[tuple[str, Path]] | None] = ContextVar("_WAITING", default=None)


@contextmanager
def together() -> Iterator[None]:
    """Files written inside appear when all of them are written, or none does; inside another of these, with all of that one."""
    if _WAITING.get() is not None:
        yield
        return
    waiting: list[tuple[str, Path]] = []
    token = _WAITING.set(waiting)
    try:
        yield
        while waiting:
            _move(*waiting[0])
            waiting.pop(0)
    finally:
        _WAITING.reset(token)
        for temporary, _ in waiting:
            os.unlink(temporary)


@dataclass(frozen=True)
class Kind:
    """What a file of one kind holds: arrays of these names, up to this version; some since a later one than the first."""

    version: int
    names: tuple[str, ...]
    since: tuple[tuple[str, int], ...] = ()

    def names_in(self, version: int) -> tuple[str, ...]:
        """Those of a file of that version."""
        return tuple(name for name in self.names if dict(self.since).get(name, version) <= version)


MEAN, MODEL, MIXTURE = "reduset.KernelMean", "reduset.Model", "reduset.Mixture"
COMPONENTS, COMPONENT_MODEL = "reduset.ComponentMean", "reduset.ComponentModel"
PICTURE = ("grids", "widths", "marginals", "pair_grids", "pair_widths", "pairs", "joint")
BARS = "bars"  # histograms of the rows
LAWS = ("weights", "means", "covariances")
MODEL_NAMES = ("path", "step_sizes", "step_weights", *PICTURE)
BY_SCALE = ("scales", "profile_sizes", "profiles")
KINDS = {
    MEAN: Kind(1, ("atoms", "weights")),
    MODEL: Kind(3, ("atoms", "weights", *MODEL_NAMES, *BY_SCALE, BARS), since=(*((name, 2) for name in BY_SCALE), (BARS, 3))),
    MIXTURE: Kind(1, LAWS),
    COMPONENTS: Kind(1, LAWS),
    COMPONENT_MODEL: Kind(2, (*LAWS, *MODEL_NAMES, *BY_SCALE, BARS), since=((BARS, 2),)),
}
READERS = {kind: f"{kind}.load" for kind in KINDS} | {COMPONENT_MODEL: f"{MODEL}.load"}


def holding(first: str, *names: str) -> dict[str, Kind]:
    """The kinds of file with arrays of these names, that of the name ``first`` before the others."""
    able = {name: kind for name, kind in KINDS.items() if set(names) <= set(kind.names)}
    return {first: able[first]} | able


def read(path: Path_, kinds: Mapping[str, Kind]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a file of one of these kinds, the first of which is the one expected; anything else is a ValueError that says what."""
    wanted = next(iter(kinds))
    if not Path(path).is_file():
        raise FileNotFoundError(f"no such file, or not a file: {os.fspath(path)}")
    try:
        with zipfile.ZipFile(path) as archive:
            found = {member.filename for member in archive.infolist()}
            if f"{HEADER}.npy" not in found:
                raise ValueError("it has no header")
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise ValueError("its members are compressed, which this format never is")
            header = _read_header(archive)
            kind = kinds.get(str(header.get("kind")))
            if kind is None:
                reader = READERS.get(str(header.get("kind")))
                raise ValueError(f"it holds {header.get('kind')!r}, not {wanted!r}" + (f"; use {reader}" if reader else ""))
            if not isinstance(header.get("version"), int) or header["version"] > kind.version:
                raise ValueError(
                    f"its version is {header.get('version')!r}, this library reads up to {kind.version}; upgrade reduset"
                )
            names = kind.names_in(header["version"])
            expected = {f"{name}.npy" for name in (HEADER, *names)}
            if found != expected:
                raise ValueError(f"it holds {sorted(found)} where {sorted(expected)} belong")
            arrays = {name: _read_array(archive, name) for name in names}
    except Exception as error:  # whatever a damaged file provokes in the readers, it is refused
        raise ValueError(f"{os.fspath(path)} is not a readable {wanted} file: {error}") from error
    digest = header.pop("digest", None)
    if digest != _digest(header, arrays):
        raise ValueError(f"{os.fspath(path)} was changed after it was written: its digest does not match; save it again")
    return header, arrays


def has_header(path: Path_) -> bool:
    """Whether a file is one of ours, of whatever kind, and not an .npz of somebody's arrays."""
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{HEADER}.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):  # for its reader to say what is wrong
        return False


def kind_of(path: Path_) -> str | None:
    """What a file of ours says that it holds; None of any other, and of one whose header cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            kind = _read_header(archive).get("kind")
    except Exception:  # for its reader to say what is wrong
        return None
    return kind if isinstance(kind, str) else None


def _read_header(archive: zipfile.ZipFile) -> dict[str, Any]:
    if archive.getinfo(f"{HEADER}.npy").file_size > HEADER_MOST:
        raise ValueError("its header is too large")
    header = json.loads(_read_array(archive, HEADER, "u").tobytes().decode())
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    _check_plain(header)
    return header


def _check_plain(value: Any, field: str = "the header", depth: int = 0) -> None:
    """Refuse what no header needs, and what reads or prints it would stumble over: deep nests and boundless numbers."""
    if depth > DEEPEST:
        raise ValueError(f"{field} is nested more than {DEEPEST} deep")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError(f"{field} is a whole number of {value.bit_length():,} bits; {LARGEST.bit_length() - 1} are the most")
    if isinstance(value, dict):
        for name, each in value.items():
            _check_plain(each, f"{field}.{str(name)[:40]}" if depth else str(name)[:40], depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            _check_plain(each, field, depth + 1)


def _read_array(archive: zipfile.ZipFile, name: str, kinds: str = "f") -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as stream:
        version = npy.read_magic(stream)
        reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if reader is None:
            raise ValueError(f"its member {name!r} is written in an unknown way")
        shape, _, dtype = reader(stream)
        # checked before anything is allocated: a header may promise more than the file holds
        if dtype.kind not in kinds or dtype.hasobject or int(np.prod(shape, dtype=object)) * dtype.itemsize > info.file_size:
            raise ValueError(f"its member {name!r} is not a plain array of numbers that fits in the file")
    with archive.open(info) as stream:
        return npy.read_array(stream, allow_pickle=False)
