"""The archive format: an .npz of plain arrays and one JSON header. Checked field by field, never executed, written atomically.

A `Kind` declares what a file holds: its fields, each with a type, bounds and, for arrays, a shape. Members are stored uncompressed,
so a file never unpacks to more than its own size. A digest of header and arrays detects damage. It is no signature, because an
edited file can get a new digest. Every field is therefore checked as untrusted input. Errors name the file and the field.

Files of any kind are written atomically: a temporary file in the same folder replaces the target as a whole.
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
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from reduset._archive.fields import Fields, Numbers, Sizes

HEADER = "header"
MAX_HEADER_BYTES = 1 << 24
MAX_DEPTH = 16  # lists and objects inside each other
LARGEST_INTEGER = 1 << 256  # seeds have 128 bits; floating point can represent the magnitude of all smaller integers
OPENERS = {  # how to open a file of each kind
    "reduset.KernelMean": "reduset.KernelMean.load",
    "reduset.ComponentMean": "reduset.ComponentMean.load",
    "reduset.Mixture": "reduset.Mixture.load",
    "reduset.Model": "reduset.Model.load",
    "reduset.DriftTest": "reduset.drift.DriftTest.load",
    "reduset.DriftMonitor": "reduset.drift.DriftMonitor.resume",
    "reduset.StreamCompressor": "reduset.stream.StreamCompressor.resume",
    "reduset.CompressedSVC": "reduset.svm.CompressedSVC.load",
    "reduset.CompressedSVR": "reduset.svm.CompressedSVR.load",
    "reduset.CompressedOneClassSVM": "reduset.svm.CompressedOneClassSVM.load",
}

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")
Path_ = str | os.PathLike[str]

_WAITING: ContextVar[list[tuple[str, Path]] | None] = ContextVar("_WAITING", default=None)


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of file."""

    name: str  # "reduset.Model"; a variant adds a third part, "reduset.Model.components"
    noun: str  # of the object in a file, for messages
    fields: Fields  # by name: `Numbers` become members of the archive, other fields entries of the header
    holds: tuple[Kind, ...] = ()  # other kinds with fields among these; their readers open this file too
    version: int = 1  # of the format

    @property
    def described(self) -> dict[str, Any]:
        """The entries of a header that identify the kind."""
        return {"kind": self.name, "version": self.version, "holds": {held.name: held.version for held in self.holds}}

    def checked(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """The values of all fields, converted to their types; the first that is missing or breaks its rule raises an error."""
        unknown = set(header) - set(self.fields) - set(self.described) if header["kind"] == self.name else ()
        if unknown:
            raise ValueError(f"{min(unknown)[:40]} is not known")
        sizes: Sizes = {}
        values = {}
        for name, field in self.fields.items():
            parts: Mapping[str, Any] = arrays if isinstance(field, Numbers) else header
            if name not in parts and not (isinstance(field, Numbers) and field.optional):
                raise ValueError(f"{name} is missing")
            values[name] = field(parts[name], name, sizes) if name in parts else None
        return values


def write(path: Path_, kind: Kind, values: Mapping[str, Any]) -> None:
    """Write the values of all fields of a kind, atomically. Optional arrays may be None.

    The values are checked as they will be when the file is read, so every file that is written can be read again.
    """
    arrays = {
        name: np.ascontiguousarray(values[name], field.dtype)
        for name, field in kind.fields.items()
        if isinstance(field, Numbers) and values[name] is not None
    }
    entries = {name: values[name] for name, field in kind.fields.items() if not isinstance(field, Numbers)}
    header = json.loads(json.dumps(kind.described | entries, default=_plain))
    _check_plain(header)
    kind.checked(header, arrays)
    write_parts(path, header, arrays)


def write_parts(path: Path_, header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a header and arrays with their digest, unchecked."""
    complete = header | {"digest": _digest(header, arrays)}
    text = np.frombuffer(json.dumps(complete, sort_keys=True).encode(), np.uint8)
    write_whole(path, lambda stream: _fill(stream, {HEADER: text, **arrays}))


def read(path: Path_, builders: Mapping[Kind, Callable[[dict[str, Any]], T]]) -> T:
    """The object in a file, made by the builder of its kind.

    Parameters
    ----------
    path : file
    builders : accepted kinds, the expected one first, each with a function of the values of its fields
    """
    expected = next(iter(builders))
    if not Path(path).is_file():
        raise FileNotFoundError(f"no such file, or not a file: {os.fspath(path)}")
    try:
        with zipfile.ZipFile(path) as archive:
            header = _read_header(archive)
            kind = _kind_among(header, builders)
            members = {member.filename for member in archive.infolist()}
            _check_members(kind, members, kind.name == header["kind"])
            names = sorted(member.removesuffix(".npy") for member in members)
            arrays = {name: _read_array(archive, name) for name in names if name != HEADER}
    except Exception as error:  # a damaged file can raise anything in the libraries that read it
        raise ValueError(f"{os.fspath(path)} is not a readable {expected.name} file: {error}") from error
    if header.pop("digest", None) != _digest(header, arrays):
        raise ValueError(f"{os.fspath(path)} was changed after it was written: its digest does not match; save it again")
    try:
        return builders[kind](kind.checked(header, arrays))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{os.fspath(path)} describes no {kind.noun}: {error}") from error


def has_header(path: Path_) -> bool:
    """Whether a file is in this format, and not an .npz of other arrays."""
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{HEADER}.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):  # its reader reports the fault
        return False


def kind_of(path: Path_) -> str | None:
    """The name of a file's kind without its variant; None for other files and unreadable headers."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _without_variant(_read_header(archive).get("kind"))
    except Exception:  # its reader reports the fault
        return None


def _without_variant(name: Any) -> str | None:
    return ".".join(name.split(".")[:2]) if isinstance(name, str) else None


def _kind_among(header: Mapping[str, Any], kinds: Mapping[Kind, Any]) -> Kind:
    """The accepted kind of a file, or the first accepted one that it holds."""
    name, holds = header.get("kind"), header.get("holds")
    versions = (dict(holds) if isinstance(holds, dict) else {}) | ({name: header.get("version")} if isinstance(name, str) else {})
    accepted = sorted((kind for kind in kinds if kind.name in versions), key=lambda kind: kind.name != name)
    if not accepted:
        opener = OPENERS.get(_without_variant(name) or "")
        raise ValueError(f"it holds {name!r}, not {next(iter(kinds)).name!r}" + (f"; use {opener}" if opener else ""))
    version = versions[accepted[0].name]
    if not isinstance(version, int) or version > accepted[0].version:
        raise ValueError(f"its version is {version!r}, this library reads up to {accepted[0].version}; upgrade reduset")
    return accepted[0]


def _check_members(kind: Kind, members: set[str], alone: bool) -> None:
    """Raise an error if arrays are missing or, in a file of this kind alone, unknown."""
    declared = {f"{name}.npy": field for name, field in kind.fields.items() if isinstance(field, Numbers)}
    needed = {f"{HEADER}.npy", *(name for name, field in declared.items() if not field.optional)}
    if not needed <= members or (alone and not members <= needed | set(declared)):
        raise ValueError(f"it holds {sorted(members)} where {sorted(needed)} belong")


def _read_header(archive: zipfile.ZipFile) -> dict[str, Any]:
    members = archive.infolist()
    if f"{HEADER}.npy" not in {member.filename for member in members}:
        raise ValueError("it has no header")
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("its members are compressed, which this format never is")
    if archive.getinfo(f"{HEADER}.npy").file_size > MAX_HEADER_BYTES:
        raise ValueError("its header is too large")
    header = json.loads(_read_array(archive, HEADER, "u").tobytes().decode())
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    _check_plain(header)
    return header


def _check_plain(value: Any, field: str = "the header", depth: int = 0) -> None:
    """Raise an error for deep nests and huge integers, on which other code would fail."""
    if depth > MAX_DEPTH:
        raise ValueError(f"{field} is nested more than {MAX_DEPTH} deep")
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        limit = LARGEST_INTEGER.bit_length() - 1
        raise ValueError(f"{field} is a whole number of {value.bit_length():,} bits; at most {limit} are allowed")
    if isinstance(value, dict):
        for name, item in value.items():
            _check_plain(item, f"{field}.{str(name)[:40]}" if depth else str(name)[:40], depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_plain(item, field, depth + 1)


def _plain(value: Any) -> Any:
    """A kernel, a dataclass or a number of NumPy as JSON."""
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "__dataclass_fields__"):
        return vars(value)
    raise TypeError(f"a file keeps plain values only, got {type(value).__name__}")


def _digest(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()


def _fill(stream: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """The bytes of ``np.savez(stream, allow_pickle=False, **arrays)``; NumPy 2.0 takes ``allow_pickle`` for an array's name."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, np.asanyarray(array), allow_pickle=False)


def npy_header(stream: Any, title: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, Fortran order and type of a stored array. No value is read yet."""
    version = npy.read_magic(stream)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read_header is None:
        raise ValueError(f"{title} is written in version {version} of NumPy's format, which is unknown")
    return read_header(stream)


def _read_array(archive: zipfile.ZipFile, name: str, kinds: str = "f") -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as stream:
        shape, _, dtype = npy_header(stream, f"its member {name!r}")
        # checked before anything is allocated: a header may promise more than the file holds
        if dtype.kind not in kinds or dtype.hasobject or int(np.prod(shape, dtype=object)) * dtype.itemsize > info.file_size:
            raise ValueError(f"its member {name!r} is not a plain array of numbers that fits in the file")
    with archive.open(info) as stream:
        return npy.read_array(stream, allow_pickle=False)


def write_whole(path: Path_, fill: Callable[[BinaryIO], Any]) -> None:
    """Write a file with ``fill(stream)``, atomically."""
    target = Path(os.path.realpath(path))  # a link stays, and its target is replaced
    if target.exists() and not target.is_file():
        kind = "a folder" if target.is_dir() else "a pipe or a device"
        raise OSError(errno.EINVAL, f"is {kind}, and only a regular file can be replaced; give another name", os.fspath(path))
    # the name is known before the file exists, so that it can be removed after an interrupt at any moment
    temporary = os.fspath(target.parent / f".{target.name[:40]}.{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as stream:
            fill(stream)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # private while it is written, then as the user's mask allows
        waiting = _WAITING.get()
        if waiting is None:
            _move(temporary, target)
        else:
            waiting.append((temporary, target))
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = os.fspath(path)  # "no space left" helps only with the file's name
        raise


@contextmanager
def together() -> Iterator[None]:
    """Files written inside appear when all of them are written, or none does. Nested blocks belong to the outermost one."""
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


def _move(temporary: str, target: Path) -> None:
    """Replace the target, and flush the folder: otherwise a power cut could bring back the old file."""
    os.replace(temporary, target)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(OSError):  # some file systems cannot flush folders
                os.fsync(folder)
        finally:
            os.close(folder)
