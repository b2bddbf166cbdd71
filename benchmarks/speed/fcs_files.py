"""Are real FCS files read, and to the same numbers as flowio and FlowCal read?

The files are in the folders that the variable REDUSET_FCS lists (such as the test files of a library) and in fcs/ in the folder of
real data. A file counts if it begins with FCS or ends in .fcs or .lmd; equal files are listed once. Goal: every file is read, or an
error gives the reason; where the readers agree on the meaning, the numbers are equal bit for bit.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import data_folder, table
from reduset import io
from reduset.io.fcs_text import FcsHead, read_head

TITLE = "FCS files"
SOURCES = ("io/fcs.py", "io/fcs_text.py", "io/channels.py")
FEW = 3  # files of the quick version
ORDINARY = ("labels: ", "left out unless named")  # notes on most files
KINDS = {"F": "single", "D": "double", "A": "text"}


def folders() -> list[Path]:
    named = [Path(folder) for folder in os.environ.get("REDUSET_FCS", "").split(os.pathsep) if folder]
    return [folder for folder in (*named, data_folder() / "fcs") if folder.is_dir()]


def files() -> dict[Path, list[str]]:
    """The distinct files, and the folders that hold each."""
    found: dict[str, tuple[Path, list[str]]] = {}
    for folder in folders():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and (path.suffix.lower() in (".fcs", ".lmd") or _first_bytes(path, 3) == b"FCS"):
                found.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), (path, []))[1].append(folder.name)
    return dict(found.values())


def _first_bytes(path: Path, count: int) -> bytes:
    with open(path, "rb") as stream:
        return stream.read(count)


def kind_of(head: FcsHead) -> str:
    bits = sorted({channel.bits for channel in head.channels if channel.kind == "I"})
    kinds = [f"{'/'.join(map(str, bits))} bits"] if bits else []
    kinds += [KINDS[kind] for kind in dict.fromkeys(channel.kind for channel in head.channels) if kind in KINDS]
    logarithmic = sum(channel.decades > 0 for channel in head.channels if channel.kind == "I")
    return ", ".join(kinds) + (f", {logarithmic} logarithmic" if logarithmic else "")


def by_flowio(path: Path) -> Any:
    flowio = importlib.import_module("flowio")
    how = {"ignore_offset_error": True, "ignore_offset_discrepancy": True}
    try:
        return flowio.FlowData(str(path), **how)
    except importlib.import_module("flowio.exceptions").MultipleDataSetsError:
        return flowio.read_multiple_data_sets(str(path), **how)[0]


def flowio_stored(path: Path) -> np.ndarray:
    return by_flowio(path).as_array(preprocess=False)


def flowio_linear(path: Path) -> np.ndarray:
    return by_flowio(path).as_array()


def flowcal_stored(path: Path) -> np.ndarray:
    return np.asarray(importlib.import_module("FlowCal.io").FCSData(str(path)))


READERS: dict[str, Callable[[Path], np.ndarray]] = {
    "flowio, as stored": flowio_stored,
    "flowio, linear": flowio_linear,
    "FlowCal, as stored": flowcal_stored,
}
Failures = dict[tuple[str, str], int]  # the number of failures, by reader and message


def difference(mine: np.ndarray, title: str, path: Path, failures: Failures) -> str:
    """The largest relative difference of two readings; "–" if the other reader fails, nothing if it is not installed."""
    try:
        theirs = np.asarray(READERS[title](path), np.float64)
    except ImportError:
        return ""
    except Exception as error:  # readers raise errors of many kinds
        why = " ".join(str(error).replace(str(path), path.name).split())[:60]
        failures[title, why] = failures.get((title, why), 0) + 1
        return "–"
    if theirs.shape != mine.shape:
        return f"{theirs.shape[0]:,}×{theirs.shape[1]}"
    apart = np.abs(mine - theirs)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(apart == 0, 0.0, apart / np.maximum(np.abs(mine), np.abs(theirs)))
    return f"{np.nanmax(share):.1e}" if share.any() else "0"


def reading_of(path: Path, names: list[str]) -> str:
    notes = [note for note in io.read(path, columns=names).notes if not note.startswith(ORDINARY)]
    return "read" + (f": {'; '.join(notes)}" if notes else "")


def line(path: Path, sets: list[str], failures: Failures) -> list[str]:
    """One row of the table."""
    place = f"{path.name} ({', '.join(dict.fromkeys(sets))})"
    opening = _first_bytes(path, 6).decode("latin-1")
    version_said = opening[3:] if opening.startswith("FCS") else "none"
    try:
        io.batches(path)
        head = read_head(str(path))
        names = [channel.name for channel in head.channels]
        stored, linear = (io.read(path, columns=names, compensate=False, key=key).values.astype(float) for key in ("events", None))
        outcome = reading_of(path, names).replace("|", "¦")
    except io.FileError as error:
        return [place, version_said, "", "", "", "not read: " + str(error).replace(f"{path}: ", ""), "", "", ""]
    cytometer = " ".join(head.text.get("cyt", "").split())[:28].strip()
    shape = f"{len(stored):,}×{len(names)}"
    apart = [difference(linear if "linear" in title else stored, title, path, failures) for title in READERS]
    return [place, version_said, cytometer, shape, kind_of(head), outcome, *apart]


def _versions() -> str:
    said = []
    for name in ("flowio", "FlowCal"):
        try:
            importlib.import_module(f"{name}.io" if name == "FlowCal" else name)
            said.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            said.append(f"{name} from its source")
        except ImportError:
            said.append(f"{name} not installed")
    return ", ".join(said)


NOTE = """The last columns are the largest relative differences, before compensation, with {versions}; "–" if that reader fails.
On a linear scale differences up to 6e-08 come from single precision. Where channels of floating-point numbers have a $PnE, flowio
applies it and the standard does not, so they differ."""


def measure(quick: bool) -> dict[str, Any]:
    found, failures = files(), Failures()
    if quick:
        found = dict(list(found.items())[:FEW])
    if not found:
        return {"summary": [], "details": "No FCS file was found: set REDUSET_FCS to a list of folders with some."}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [line(path, folders, failures) for path, folders in found.items()]
    outcomes = [row[5] for row in lines]
    read = sum(outcome.startswith("read") for outcome in outcomes)
    noted = sum(bool(re.match(r"read: (?!compensated by)", outcome)) for outcome in outcomes)
    same = sum("0" in (row[6], row[8]) for row in lines)
    names = [name for each in found.values() for name in each]
    counts = ", ".join(f"{name} {names.count(name)}" for name in dict.fromkeys(names))
    head = ["file", "version", "cytometer", "events", "numbers", "outcome", *READERS]
    why = "; ".join(f"{title}: {count}× {message}" for (title, message), count in failures.items())
    return {
        "summary": [
            ["Distinct files read", f"{read} of {len(found)}", "all that are whole", ""],
            ["Files not read, with a reason", f"{len(found) - read}", "", ""],
            ["Equal to flowio or FlowCal, bit for bit", f"{same} of {read}", "", ""],
        ],
        "details": f"{len(names)} files ({counts}), {len(found)} of them distinct: {read} read, {noted} of these with a note other "
        f"than a compensation, {len(found) - read} not read. The numbers of {same} are bit for bit those of flowio or FlowCal.\n\n"
        f"{table(head, lines)}\n\n{' '.join(NOTE.format(versions=_versions()).splitlines())}"
        + (f"\n\nFailures of the other readers: {why}." if why else ""),
    }
