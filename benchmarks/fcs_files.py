"""Real FCS files, one line each: what they hold, whether they are read, and whether flowio and FlowCal see the same numbers.

Folders are those of REDUSET_FCS (a path list, each folder one set named as it is, such as the test files of a library) and fcs/ in
the folder of real data. Any file that begins as FCS or ends in .fcs or .lmd counts; equal files are listed once.
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

from harness import data_folder, table
from reduset import io
from reduset.io.fcs_text import FcsHead, read_head

TITLE = "FCS files"
ORDINARY = ("labels: ", "left out unless named")  # said of most files
KINDS = {"F": "single", "D": "double", "A": "text"}


def folders() -> list[Path]:
    named = [Path(folder) for folder in os.environ.get("REDUSET_FCS", "").split(os.pathsep) if folder]
    return [folder for folder in (*named, data_folder() / "fcs") if folder.is_dir()]


def files() -> dict[Path, list[str]]:
    """The different files, with the sets that hold each."""
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
Failures = dict[tuple[str, str], int]  # how often a reader fails in what words


def difference(mine: np.ndarray, title: str, path: Path, failures: Failures) -> str:
    """The largest relative difference of two readings; "–" where the other fails, nothing where it is not there."""
    try:
        theirs = np.asarray(READERS[title](path), np.float64)
    except ImportError:
        return ""
    except Exception as error:  # whatever another reader makes of the file
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
        return [place, version_said, "", "", "", "refused: " + str(error).replace(f"{path}: ", ""), "", "", ""]
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


def _summary(found: dict[Path, list[str]], lines: list[list[str]]) -> str:
    outcomes = [row[5] for row in lines]
    refused = sum(said.startswith("refused") for said in outcomes)
    noted = sum(bool(re.match(r"read: (?!compensated by)", said)) for said in outcomes)
    same = sum("0" in (row[6], row[8]) for row in lines)
    sets = [name for each in found.values() for name in each]
    counts = ", ".join(f"{name} {sets.count(name)}" for name in dict.fromkeys(sets))
    return (
        f"{len(sets)} files ({counts}), {len(found)} of them different: {len(found) - refused} read, {noted} of these with a note "
        f"beyond a compensation, {refused} refused. Of {same} the numbers are bit for bit those that flowio or FlowCal finds."
    )


NOTE = """The last columns are the largest relative differences, before compensation, with {versions}; "–" where that reader fails.
On a linear scale up to 6e-08 is single precision against double. Where channels of floating-point numbers carry a $PnE, flowio
applies it and the standard does not: those differ."""


def run() -> str:
    found, failures = files(), Failures()
    if not found:
        return "No FCS file was there: set REDUSET_FCS to a list of folders with some."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [line(path, sets, failures) for path, sets in found.items()]
    head = ["file", "version", "cytometer", "events", "numbers", "outcome", *READERS]
    why = "; ".join(f"{title}: {count}× {words}" for (title, words), count in failures.items())
    return f"{_summary(found, lines)}\n\n{table(head, lines)}\n\n{NOTE.format(versions=_versions())}" + (
        f"\n\nFailures of the other readers: {why}." if why else ""
    )
