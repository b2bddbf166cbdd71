"""A study as AnnData: its samples and atoms (`to_anndata`), so that scanpy plots the map; or its cells (`cells_to_anndata`).

Cells have the columns that `reduset.anndata.sketch` writes, so that `reduset.anndata.project` carries labels of the sketched cells
to all cells. All n cells with d markers take 4·n·d bytes for X, and about 30 bytes a cell for the other columns.

Texts become categories and numbers stay numbers. Keys of HDF5 cannot contain "/", or be "" or ".", and AnnData reserves "_index".
Such names are changed, and a record lists the changes. Older files cannot hold None, so it is omitted. Integers beyond the range of
files become floating point.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Floats, Indices
from reduset._validate import flag
from reduset.anndata import ASSIGNMENT, MADE_BY, NAME, WEIGHT, Representation, library, sketch_facts
from reduset.cytometry.lab_tables import SAMPLE_ID, as_text
from reduset.cytometry.markers import STATE, TYPE
from reduset.cytometry.study import CohortStudy, check_study
from reduset.io import unique_names

SKETCH, SAMPLE, POPULATION, SOURCE = "sketch", "sample", "population", "source"
MAX_EXACT = 1 << 53  # integers up to here are exact as doubles
MAX_STORED = 1 << 62  # largest integer in a file
PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)?(\.[0-9]+)?(?<=[0-9])")
IN_VAR = ("atoms", "of_atom", "atom_counts")
PLAIN = (bool, int, float, str, np.number, np.bool_)


def to_anndata(study: CohortStudy) -> Any:
    """A cohort study as AnnData with one row per sample and one column per atom.

    Parameters
    ----------
    study : CohortStudy, fitted

    Returns
    -------
    AnnData with

    X : (N, m) the proportion of each atom in each sample; rows sum to 1. ``layers["counts"]`` has the numbers of cells.
    obs : the table of samples (texts as categories, but plain numbers as numbers), and ``n_cells``.
    var : the ``population`` of each atom, its value of every marker, the ``n_cells`` that it represents, and its ``mass`` (mean
        proportion). With groups, also ``log2_fold_change_[group]``, of the witness, ``p`` and ``found`` of the clusters.
    obsm : ``X_map``, which ``scanpy.pl.embedding(adata, basis="map", color="condition")`` draws. ``population_share`` is a frame
        with one column per population. If samples came from files, ``cleaning`` has the number of events that each step removed.
    obsp : ``distances`` and ``errors``, by which the distances may be too small.
    uns : ``populations``, ``differences``, ``batches``, and ``reduset`` with version, parameters and notes, all plain arrays

    Files of AnnData cannot have "/" in names: it becomes "_", and ``uns["reduset"]["renamed"]`` lists these names.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.cytometry import CohortStudy, to_anndata
    >>> rng = np.random.default_rng(0)
    >>> bags = {name: rng.normal(size=(300, 2)) for name in ("p1", "p2", "p3")}
    >>> adata = to_anndata(CohortStudy(n_atoms=20, random_state=0).fit(bags))
    >>> adata.shape, adata.obs["n_cells"].tolist()
    ((3, 20), [300, 300, 300])
    """
    check_study(study)
    samples, populations, witness, clusters = study.samples_, study.populations_, study.witness_, study.clusters_
    renamed: dict[str, Any] = {}
    table, renamed["obs"] = keyed(*_table_columns(study), ("n_cells",))
    atoms: dict[str, Any] = {
        POPULATION: categories(populations.of_atom, populations.names),
        "n_cells": populations.atom_counts.sum(axis=0),
        "mass": populations.atom_shares.mean(axis=0),
    }
    titles, columns = list(populations.markers), [*populations.atoms.T]
    if witness is not None and clusters is not None and study.differences_ is not None:
        atoms |= {"p": clusters.p_values, "found": clusters.found}
        levels = study.differences_.design.levels[1:]
        titles, columns = [*(f"log2_fold_change_{level}" for level in levels), *titles], [*witness.fold_changes, *columns]
    markers, renamed["var"] = keyed(titles, columns, (*atoms, "p", "found"))
    embedding = np.array(study.map_.embedding_, np.float64)
    plane = np.pad(embedding, ((0, 0), (0, max(0, 2 - embedding.shape[1]))))  # two samples lie on a line, and plots need a plane
    shares, renamed["population_share"] = keyed(populations.names, populations.shares.T)
    obsm = {"X_map": plane, "population_share": frame(shares, samples.names)}
    if samples.counted:
        obsm["cleaning"] = frame(keyed(list(samples.counted), samples.counted.values())[0], samples.names)
    uns = study_facts(study, "reduset.cytometry.to_anndata")
    uns["reduset"]["renamed"] = {name: record for name, record in renamed.items() if record}
    return library().AnnData(
        populations.atom_shares,
        obs=frame(table | {"n_cells": samples.sizes}, samples.names),
        var=frame(atoms | markers, [f"atom{number}" for number in range(1, len(populations.atoms) + 1)]),
        obsm=obsm,
        obsp={"distances": np.array(study.map_.distances_), "errors": np.array(study.map_.errors_)},
        layers={"counts": populations.atom_counts.copy()},
        uns=uns,
    )


def cells_to_anndata(study: CohortStudy, *, every_cell: bool = False) -> Any:
    """The sketched cells of a cohort study as AnnData with one row per cell and one column per marker.

    Parameters
    ----------
    study : CohortStudy, fitted
    every_cell : whether to include all cells of all samples, each with the sketch cell that represents it

    Returns
    -------
    AnnData with

    X : (n, d) float32, on the scales of the study
    obs : ``sample``, ``population``, ``source`` (the file) and ``event`` (the number in the file or sample, from 0 on).
        ``sketch`` marks the sketched cells. ``sketch_weight`` is the number of cells that each represents, 0 outside the sketch.
        ``sketch_assignment`` is the name of the sketch cell that represents a cell. The columns of the table of samples follow,
        texts as categories. Cells are named by their number.
    var : ``marker_class`` ("type" or "state") and ``scale`` of each marker.
    uns : ``sketch`` as written by `reduset.anndata.sketch`, and the entries of `to_anndata`.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.cytometry import CohortStudy, cells_to_anndata
    >>> rng = np.random.default_rng(0)
    >>> bags = {name: rng.normal(size=(300, 2)) for name in ("p1", "p2", "p3")}
    >>> adata = cells_to_anndata(CohortStudy(n_atoms=20, random_state=0).fit(bags))
    >>> adata.shape, float(adata.obs["sketch_weight"].sum())
    ((20, 2), 900.0)
    """
    check_study(study)
    flag(every_cell, "every_cell")
    samples, populations = study.samples_, study.populations_
    small = populations.sketch
    rows = slice(None) if every_cell else small.indices
    X = _single(samples.cells if every_cell else (populations.atoms,))
    sample = np.repeat(np.arange(len(samples.names)), samples.sizes)[rows]
    chosen, weights = np.zeros(small.n_samples, bool), np.zeros(small.n_samples)
    chosen[small.indices], weights[small.indices] = True, small.counts
    events = samples.events or [np.arange(size) for size in samples.sizes]
    fits_int32 = max(int(numbers[-1]) for numbers in events) < np.iinfo(np.int32).max
    assignments = small.assignments[rows]
    obs: dict[str, Any] = {
        SAMPLE: categories(sample, samples.names),
        POPULATION: categories(populations.of_atom[assignments], populations.names),
        "event": np.concatenate(events, dtype=np.int32 if fits_int32 else np.int64, casting="same_kind")[rows],
        SKETCH: chosen[rows],
        SKETCH + WEIGHT: weights[rows],
        SKETCH + ASSIGNMENT: categories(assignments, _cell_names(small.indices)),
    }
    if samples.sources:
        files = list(dict.fromkeys(samples.sources))
        obs[SOURCE] = categories(np.array([files.index(source) for source in samples.sources])[sample], files)
    columns, record = keyed(*_table_columns(study), (*obs, SOURCE))
    table = frame(columns, samples.names)
    obs |= {key: table[key].array.take(sample) for key in table}
    state = sorted(samples.state)
    note = "every sample has the same mass" + (f"; chosen without the markers of class state: {', '.join(state)}" if state else "")
    facts = sketch_facts(small, {"sample_key": SAMPLE, "use_rep": "X"}, Representation(X, "X", note), None)
    uns = study_facts(study, "reduset.cytometry.cells_to_anndata")
    uns[SKETCH] = facts | {"assignments": NAME, "projected": {}}
    uns["reduset"]["renamed"] = {"obs": record} if record else {}
    pandas = library("pandas")
    classes = [STATE if marker in samples.state else TYPE for marker in samples.markers]
    scales = [samples.scales.get(marker, "none") for marker in samples.markers]
    var = {"marker_class": pandas.Categorical(classes, [TYPE, STATE]), "scale": pandas.Categorical(scales)}
    index = _cell_names(np.arange(small.n_samples)[rows])
    return library().AnnData(X, obs=pandas.DataFrame(obs, index=index), var=frame(var, samples.markers), uns=uns)


def _single(parts: Sequence[Floats]) -> NDArray[np.float32]:
    """All parts in one array in single precision, copied once."""
    try:
        with np.errstate(over="raise"):
            return np.concatenate(parts, dtype=np.float32, casting="same_kind")
    except FloatingPointError:
        raise ValueError(
            f"markers must fit in single precision, up to {np.finfo(np.float32).max:.2g}, and some cells have larger numbers; "
            "put them on a scale first, such as asinh"
        ) from None


def _cell_names(numbers: Indices) -> Any:
    return library("pandas").Index(numbers).astype(str).astype(object)


# -- columns ------------------------------------------------------------------------------------------------------------------


def keyed(names: Sequence[str], columns: Iterable[Any], taken: Sequence[str] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns by unique keys of a file that are not ``taken``, and a record of the names that changed, with their keys."""
    stems = [name.replace("/", "_").replace("\x00", "") for name in names]
    keys = unique_names([*taken, *("" if stem in (".", "_index") else stem for stem in stems)])[0][len(taken) :]
    changed = {key: name for key, name in zip(keys, names, strict=True) if key != name}
    record = {"key": texts(changed), "name": texts(changed.values())} if changed else {}
    return dict(zip(keys, columns, strict=True)), record


def texts(values: Iterable[Any]) -> Any:
    """Texts as an array that files of AnnData hold."""
    return np.array(list(map(str, values)), object)


def frame(columns: Mapping[str, Any], names: Sequence[str]) -> Any:
    """A frame of columns with the names of its rows."""
    pandas = library("pandas")
    return pandas.DataFrame(dict(columns), index=pandas.Index(list(names), dtype=object))


def categories(codes: Indices, names: Iterable[str]) -> Any:
    """A column of categories from codes. Categories without a row are kept, so that colours do not change."""
    return library("pandas").Categorical.from_codes(codes, texts(names))


def _table_columns(study: CohortStudy) -> tuple[list[str], list[Any]]:
    """Names and columns of the table of samples: measurements as numbers, groups and patients as categories."""
    table, groups = study.samples_.table, (SAMPLE_ID, study.test, study.block, study.batch, study.control)
    measured = {name for name, entries in table.items() if name not in groups and are_measured(entries)} | {*study.covariates}
    return list(table), [column_of_entries(entries, name in measured) for name, entries in table.items()]


def column_of_entries(entries: Sequence[Any], as_numbers: bool = False) -> Any:
    """A column of the table of samples: booleans, numbers (nan for missing ones), or categories of texts.

    ``as_numbers`` also converts texts to numbers if every non-missing entry is a number.
    """
    present = [entry for entry in entries if entry is not None]
    flags = [isinstance(entry, bool | np.bool_) for entry in entries]
    if all(flags):
        return np.array(entries, bool)
    kinds = (int, float, np.integer, np.floating, *((str,) if as_numbers else ()))
    if not any(flags) and all(isinstance(entry, kinds) for entry in present):
        with suppress(ValueError, OverflowError):
            numbers = np.array([math.nan if entry is None else float(entry) for entry in entries])
            integral = [isinstance(e, int | np.integer) or (isinstance(e, str) and e.lstrip("-").isdigit()) for e in entries]
            return numbers.astype(np.int64) if all(integral) and np.abs(numbers).max() < MAX_EXACT else numbers
    return library("pandas").Categorical([None if entry is None else as_text(entry) for entry in entries])


def are_measured(entries: Sequence[Any]) -> bool:
    """Whether entries are texts of plain numbers, such as ages and counts; "007" is a name."""
    present = [entry for entry in entries if entry is not None]
    return bool(present) and all(isinstance(entry, str) and PLAIN_NUMBER.fullmatch(entry) for entry in present)


# -- facts --------------------------------------------------------------------------------------------------------------------


def study_facts(study: CohortStudy, made_by: str) -> dict[str, Any]:
    """The results and parameters of a study, as plain arrays and values."""
    samples, populations, differences, batches = study.samples_, study.populations_, study.differences_, study.batches_
    marked = texts(" ".join(populations.marked(k)) for k in range(len(populations)))
    facts: dict[str, Any] = {
        "populations": _fields(populations) | {"mean_shares": populations.mean_shares, "marked": marked},
        "reduset": {
            MADE_BY: made_by,
            "params": {name: _plain(value) for name, value in study.get_params(deep=False).items() if name != "progress"},
            "notes": texts(study.notes_),
            "left_out": {"name": texts(samples.left_out), "reason": texts(samples.left_out.values())},
            "scales": texts(samples.scales.get(marker, "none") for marker in samples.markers),
        },
    }
    with suppress(metadata.PackageNotFoundError):  # of a checkout that is not installed
        facts["reduset"]["version"] = metadata.version("reduset")
    if differences is not None:
        design = differences.design
        compared = {"levels": texts(design.levels), "samples": design.counts, "adjusted": texts(design.adjusted)}
        facts["differences"] = _fields(differences) | compared | {"test": design.name, "whole": _fields(study.whole_)}
    if batches is not None:
        pairs = batches.controls
        controls = {"kind": texts(pair.kind for pair in pairs), "distance": np.array([pair.distance for pair in pairs])}
        controls |= {name: texts(pair.samples[k] for pair in pairs) for k, name in enumerate(("first", "second"))}
        whole = {} if batches.whole is None else _fields(batches.whole)
        facts["batches"] = _fields(batches) | {"control_share": batches.control_share, "whole": whole, "controls": controls}
    return _without_empty(facts)


def _plain(value: Any) -> Any:
    """A parameter or field as files can hold it; objects by their text."""
    if value is None or isinstance(value, (np.ndarray, *PLAIN)):
        return float(value) if type(value) is int and abs(value) > MAX_STORED else value
    if isinstance(value, list | tuple):
        return texts(value) if any(isinstance(entry, str) for entry in value) else np.asarray(value)
    return repr(value)


def _fields(result: Any) -> dict[str, Any]:
    """The fields of a result that are numbers, texts, or arrays of these."""
    values = {name: value for name, value in vars(result).items() if name not in IN_VAR and name in result.__dataclass_fields__}
    return {
        name: _plain(value)
        for name, value in values.items()
        if isinstance(value, (np.ndarray, *PLAIN)) or (isinstance(value, tuple) and all(isinstance(e, PLAIN) for e in value))
    }


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without None, empty arrays, and mappings of these only."""
    plain = {name: _without_empty(value) if isinstance(value, Mapping) else value for name, value in values.items()}
    empty = {name for name, value in plain.items() if value is None or (isinstance(value, dict | np.ndarray) and not len(value))}
    return {name: value for name, value in plain.items() if name not in empty}
