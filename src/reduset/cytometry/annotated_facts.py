"""What a study found, as plain arrays that survive a file: populations, differences, batches, and how it was made.

None has no place in older files, and is left out; so are whole numbers beyond what files hold, which become floating point.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from importlib import metadata
from typing import Any

import numpy as np

from reduset.anndata.annotated import MADE_BY
from reduset.cytometry.annotated_columns import texts
from reduset.cytometry.study import CohortStudy

LARGEST = 1 << 62
UNTOLD = ("progress",)
IN_VAR = ("atoms", "of_atom", "atom_counts", "group_of_atom")
PLAIN = (bool, int, float, str, np.number, np.bool_)


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
