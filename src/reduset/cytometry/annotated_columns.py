"""The parts of a study as AnnData's files hold them: columns of frames, names as keys, and results as plain arrays.

Texts become categories and numbers stay numbers. Keys of HDF5 cannot contain "/", or be "" or ".", and AnnData reserves "_index".
Such names are changed, and a record lists the changes. Older files cannot hold None, so it is omitted. Integers beyond the range of
files become floating point.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from importlib import metadata
from typing import Any

import numpy as np

from reduset._types import Indices
from reduset.anndata import MADE_BY
from reduset.cytometry.lab_tables import as_text
from reduset.cytometry.study import CohortStudy
from reduset.io import need

WHOLE = 1 << 53  # up to which doubles are exact
PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)?(\.[0-9]+)?(?<=[0-9])")
LARGEST = 1 << 62
UNTOLD = ("progress",)
IN_VAR = ("atoms", "of_atom", "atom_counts", "group_of_atom")
PLAIN = (bool, int, float, str, np.number, np.bool_)


def pandas() -> Any:
    """The library of frames that comes with anndata."""
    return need("reduset.anndata", "pandas", "anndata")


class KeyNames:
    """Names as keys of a file, each once; ``record`` has what was changed."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._changed: dict[str, str] = {}

    def key(self, name: str) -> str:
        """The key of a name, one that no other has."""
        plain = name.replace("/", "_").replace("\x00", "")
        plain = "" if plain in (".", "_index") else plain
        key, number = plain or "column " + name.replace("/", "_").replace("\x00", ""), 2
        while key in self._taken:
            key, number = f"{plain} ({number})", number + 1
        self._taken.add(key)
        if key != name:
            self._changed[key] = name
        return key

    def keys(self, names: Iterable[str]) -> list[str]:
        """The keys of several names."""
        return [self.key(name) for name in names]

    def record(self) -> dict[str, Any]:
        """What was changed: keys, and the names that they had."""
        return {"key": texts(self._changed), "name": texts(self._changed.values())} if self._changed else {}


def texts(values: Iterable[str]) -> Any:
    """Texts as an array that files of AnnData hold."""
    return np.array(list(values), object)


def frame(columns: Mapping[str, Any], names: Sequence[str]) -> Any:
    """A frame of columns, its rows called by names."""
    return pandas().DataFrame(dict(columns), index=pandas().Index(list(names), dtype=object))


def categories(codes: Indices, names: Sequence[str]) -> Any:
    """A column of categories by their numbers; those without a row are kept, so that colours stay theirs."""
    return pandas().Categorical.from_codes(codes, texts(names))


def column_of_entries(entries: Sequence[Any], as_numbers: bool = False) -> Any:
    """A column of the table of samples: flags, numbers (nan where one is missing), or categories of texts.

    ``as_numbers`` also takes texts as numbers where all of them are.
    """
    there = [entry for entry in entries if entry is not None]
    if there and all(isinstance(entry, bool | np.bool_) for entry in there) and len(there) == len(entries):
        return np.array(entries, bool)
    numbers = _numbers(entries, as_numbers)
    if numbers is not None:
        whole = len(there) == len(entries) and all(_is_whole(entry) for entry in there)
        return numbers.astype(np.int64) if whole and np.abs(numbers).max(initial=0) < WHOLE else numbers
    return pandas().Categorical([None if entry is None else as_text(entry) for entry in entries])


def _is_whole(entry: Any) -> bool:
    return isinstance(entry, int | np.integer) or (isinstance(entry, str) and entry.lstrip("-").isdigit())


def are_measured(entries: Sequence[Any]) -> bool:
    """Whether entries are texts of plain numbers, those of ages and counts; "007" is a name."""
    there = [entry for entry in entries if entry is not None]
    return bool(there) and all(isinstance(entry, str) and PLAIN_NUMBER.fullmatch(entry) for entry in there)


def _numbers(entries: Sequence[Any], as_numbers: bool) -> Any:
    """Entries as numbers, where all that are there are some."""
    if any(isinstance(entry, bool | np.bool_) for entry in entries):
        return None
    kinds = (int, float, np.integer, np.floating, *((str,) if as_numbers else ()))
    if not all(entry is None or isinstance(entry, kinds) for entry in entries):
        return None
    try:
        return np.array([math.nan if entry is None else float(entry) for entry in entries])
    except (ValueError, OverflowError):
        return None


def study_facts(study: CohortStudy, made_by: str) -> dict[str, Any]:
    """Everything of a study that is no table of samples, cells or atoms."""
    populations = study.populations_
    marked = [" ".join(populations.marked(k)) for k in range(len(populations))]
    found: dict[str, Any] = {
        "populations": _fields(populations) | {"mean_shares": populations.mean_shares, "marked": texts(marked)},
        "reduset": _made(study, made_by),
    }
    if study.differences_ is not None:
        design = study.differences_.design
        told = {"test": design.name, "levels": texts(design.levels), "samples": design.counts, "adjusted": texts(design.adjusted)}
        found["differences"] = _fields(study.differences_) | told | {"whole": _fields(study.whole_)}
    if study.batches_ is not None:
        whole = {} if study.batches_.whole is None else {"whole": _fields(study.batches_.whole)}
        share = {"control_share": study.batches_.control_share}
        found["batches"] = _fields(study.batches_) | share | whole | _controls(study)
    return plain(found)


def _made(study: CohortStudy, made_by: str) -> dict[str, Any]:
    samples = study.samples_
    params = {name: _told(value) for name, value in study.get_params(deep=False).items() if name not in UNTOLD}
    version = {}
    with suppress(metadata.PackageNotFoundError):  # of a checkout that is not installed
        version = {"version": metadata.version("reduset")}
    left_out = {"name": texts(samples.left_out), "reason": texts(samples.left_out.values())} if samples.left_out else None
    scales = [samples.scales.get(marker, "none") for marker in samples.markers]
    return {
        MADE_BY: made_by,
        **version,
        "params": params,
        "notes": texts(study.notes_),
        "left_out": left_out,
        "scales": texts(scales),
    }


def _told(value: Any) -> Any:
    """A parameter as files can hold it: what is an object is told by its name."""
    if value is None or isinstance(value, (np.ndarray, *PLAIN)):
        return value
    if isinstance(value, list | tuple):
        return texts(map(str, value)) if any(isinstance(each, str) for each in value) else np.asarray(value)
    return repr(value)


def _fields(found: Any) -> dict[str, Any]:
    """The fields of a result that are numbers, texts, or arrays of these."""
    values = {each.name: getattr(found, each.name) for each in fields(found) if each.name not in IN_VAR}
    return {name: _told(value) for name, value in values.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(each, PLAIN) for each in value)
    return isinstance(value, (np.ndarray, *PLAIN))


def _controls(study: CohortStudy) -> dict[str, Any]:
    pairs = () if study.batches_ is None else study.batches_.controls
    if not pairs:
        return {}
    told = {
        "kind": texts(pair.kind for pair in pairs),
        "first": texts(pair.samples[0] for pair in pairs),
        "second": texts(pair.samples[1] for pair in pairs),
        "distance": np.array([pair.distance for pair in pairs]),
    }
    return {"controls": told}


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is None or holds nothing."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found[name] = plain(value)
        elif isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST:
            found[name] = float(value)
        elif value is not None and not (isinstance(value, np.ndarray) and not value.size):
            found[name] = value
    return found
