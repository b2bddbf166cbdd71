"""A study as AnnData: its samples and atoms (`to_anndata`), so that scanpy plots the map; or its cells (`cells_to_anndata`).

Cells have the columns that `reduset.anndata.sketch` writes, so that `reduset.anndata.project` carries labels of the sketched cells
to all cells. All n cells with d markers take 4·n·d bytes for X, and about 30 bytes a cell for the other columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array, Floats, Indices
from reduset._validate import flag
from reduset.anndata import ASSIGNMENT, NAME, WEIGHT, Representation, library, sketch_facts
from reduset.cytometry.annotated_columns import KeyNames, are_measured, categories, column_of_entries, frame, pandas, study_facts
from reduset.cytometry.lab_tables import SAMPLE_ID
from reduset.cytometry.study import CohortStudy, check_study

CELLS, POPULATION, MASS, Q, FOUND, FOLD = "n_cells", "population", "mass", "q", "found", "log2_fold_change"
SKETCH, SAMPLE, EVENT, SOURCE = "sketch", "sample", "event", "source"
TYPE, STATE = "type", "state"


def to_anndata(study: CohortStudy) -> Any:
    """A cohort study as AnnData: a row a sample, a column an atom.

    Parameters
    ----------
    study : CohortStudy, fitted

    Returns
    -------
    AnnData with

    X : (N, m) the share of each atom in each sample, each row summing to 1; ``layers["counts"]`` how many cells that are
    obs : the table of samples (texts as categories, but plain numbers as numbers), and ``n_cells``
    var : the ``population`` of each atom, its place on every marker, ``n_cells`` that it stands for, its ``mass`` (the mean of its
        shares), and where groups were compared ``log2_fold_change_[group]``, ``q`` and ``found`` of the witness
    obsm : ``X_map``, which ``scanpy.pl.embedding(adata, basis="map", color="condition")`` draws; ``population_share``, a frame with
        a column a population; ``cleaning``, how many events each step took, where samples came from files
    obsp : ``distances`` and ``errors``, by how much each can be too small
    uns : ``populations``, ``differences``, ``batches``, and ``reduset`` with version, parameters and notes, all plain arrays

    Names with "/", which no file of AnnData can have as keys, have "_" in its place; ``uns["reduset"]["renamed"]`` tells which.

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
    samples, found = study.samples_, study.populations_
    shares = found.atom_counts / found.sizes[:, None]
    obs, obs_names = sample_frame(study, (CELLS,))
    obs[CELLS] = samples.sizes
    var, var_names = _atoms(study, shares)
    population_names, steps = KeyNames(), KeyNames()
    obsm = {
        "X_map": _two_columns(study.map_.embedding_),
        "population_share": frame(dict(zip(population_names.keys(found.names), found.shares.T, strict=True)), samples.names),
    }
    if samples.counted:
        obsm["cleaning"] = frame({steps.key(step): counts for step, counts in samples.counted.items()}, samples.names)
    uns = study_facts(study, "reduset.cytometry.to_anndata")
    renamed = {"obs": obs_names.record(), "var": var_names.record(), "population_share": population_names.record()}
    uns["reduset"] |= {"renamed": {place: record for place, record in renamed.items() if record}}
    return library().AnnData(
        shares,
        obs=obs,
        var=var,
        obsm=obsm,
        obsp={"distances": np.array(study.map_.distances_), "errors": np.array(study.map_.errors_)},
        layers={"counts": found.atom_counts.copy()},
        uns=uns,
    )


def sample_frame(study: CohortStudy, taken: tuple[str, ...]) -> tuple[Any, KeyNames]:
    """The table of samples as a frame; what was measured is a number there, groups and patients are categories."""
    names = KeyNames(taken)
    groups = (SAMPLE_ID, study.test, study.block, study.batch, study.control)
    columns = {
        names.key(name): column_of_entries(entries, name in study.covariates or (name not in groups and are_measured(entries)))
        for name, entries in study.samples_.table.items()
    }
    return frame(columns, study.samples_.names), names


def _two_columns(places: Array) -> Array:
    """Two coordinates also of two samples, which lie on a line: plots want a plane."""
    found = np.asarray(places, np.float64)
    return np.hstack([found, np.zeros((len(found), 2 - found.shape[1]))]) if found.shape[1] < 2 else found.copy()


def _atoms(study: CohortStudy, shares: Array) -> tuple[Any, KeyNames]:
    """A row an atom: what it is, and how much of it groups have."""
    found, witness = study.populations_, study.witness_
    own: dict[str, Any] = {
        POPULATION: categories(found.of_atom, found.names),
        CELLS: found.atom_counts.sum(axis=0),
        MASS: shares.mean(axis=0),
    }
    names = KeyNames((*own, Q, FOUND))
    if witness is not None and study.differences_ is not None:
        levels = study.differences_.design.levels[1:]
        changes = zip(names.keys(f"{FOLD}_{level}" for level in levels), witness.fold_changes, strict=True)
        own |= dict(changes) | {Q: witness.q_values, FOUND: witness.found}
    own |= dict(zip(names.keys(found.markers), found.atoms.T, strict=True))
    return frame(own, [f"atom{number}" for number in range(1, len(found.atoms) + 1)]), names


def cells_to_anndata(study: CohortStudy, *, every_cell: bool = False) -> Any:
    """The sketched cells of a cohort study as AnnData: a row a cell, a column a marker.

    Parameters
    ----------
    study : CohortStudy, fitted
    every_cell : whether to take all cells of all samples, each with the cell that stands for it

    Returns
    -------
    AnnData with

    X : (n, d) float32, on the scales of the study
    obs : ``sample``, ``population``, ``event`` (its number in its file, from 0 on, or in its sample) and ``source`` (that file);
        ``sketch``, ``sketch_weight`` (how many cells it represents, 0 outside the sketch) and ``sketch_assignment`` (the name of
        the sketch cell that represents it); and the table of samples, texts as categories. Cells are named by their number
    var : ``marker_class`` ("type" or "state") and ``scale`` of each marker
    uns : ``sketch`` as `reduset.anndata.sketch` has it, and what `to_anndata` has

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
    samples, found = study.samples_, study.populations_
    small = found.sketch
    rows = slice(None) if every_cell else small.indices
    X = _single(samples.cells) if every_cell else _single((found.atoms,))
    sample = np.repeat(np.arange(len(samples.names)), samples.sizes)[rows]
    names = _names(small.n_samples, rows)
    chosen = np.zeros(small.n_samples, bool)
    chosen[small.indices] = True
    weights = np.zeros(small.n_samples)
    weights[small.indices] = small.counts
    assignments = small.assignments[rows]
    obs: dict[str, Any] = {
        SAMPLE: categories(sample, samples.names),
        POPULATION: categories(found.of_atom[assignments], found.names),
        EVENT: _events(study)[rows],
        SKETCH: chosen[rows],
        SKETCH + WEIGHT: weights[rows],
        SKETCH + ASSIGNMENT: categories(assignments, _names(small.n_samples, small.indices)),
    }
    if samples.sources:
        files = list(dict.fromkeys(samples.sources))
        obs[SOURCE] = categories(np.array([files.index(each) for each in samples.sources])[sample], files)
    table, renamed = sample_frame(study, (*obs, SOURCE))
    obs |= {key: table[key].array.take(sample) for key in table}
    uns = study_facts(study, "reduset.cytometry.cells_to_anndata") | {SKETCH: _sketch_facts(study, X)}
    uns["reduset"] |= {"renamed": {"obs": record} if (record := renamed.record()) else {}}
    return library().AnnData(X, obs=pandas().DataFrame(obs, index=names), var=_markers(study), uns=uns)


def _single(parts: tuple[Floats, ...]) -> NDArray[np.float32]:
    """All of them in one array in single precision, copied once."""
    try:
        with np.errstate(over="raise"):
            return np.concatenate(parts, dtype=np.float32, casting="same_kind")
    except FloatingPointError:
        raise ValueError(
            f"markers must fit in single precision, up to {np.finfo(np.float32).max:.2g}, and some cells have larger numbers; "
            "put them on a scale first, asinh say"
        ) from None


def _names(count: int, rows: Any) -> Any:
    """Cells by their numbers among all, as texts."""
    numbers = np.arange(count) if isinstance(rows, slice) else rows
    return pandas().Index(numbers).astype(str).astype(object)


def _events(study: CohortStudy) -> Indices:
    """The number of each cell among the events of its file, or of its sample."""
    samples = study.samples_
    known = samples.events or (None,) * len(samples.names)
    parts = [np.arange(size) if each is None else each for each, size in zip(known, samples.sizes, strict=True)]
    small = max(int(part[-1]) for part in parts) < np.iinfo(np.int32).max
    return np.concatenate(parts, dtype=np.int32 if small else np.int64, casting="same_kind")


def _markers(study: CohortStudy) -> Any:
    samples = study.samples_
    classes = np.array([STATE if marker in samples.state else TYPE for marker in samples.markers])
    scales = np.array([samples.scales.get(marker, "none") for marker in samples.markers])
    as_categories = pandas().Categorical
    return frame({"marker_class": as_categories(classes, [TYPE, STATE]), "scale": as_categories(scales)}, samples.markers)


def _sketch_facts(study: CohortStudy, X: Floats) -> dict[str, Any]:
    """What the sketch lost; its cells were chosen by the markers that define populations, every sample with the same mass."""
    state = sorted(study.samples_.state)
    note = "every sample has the same mass" + (f"; chosen without the markers of class state: {', '.join(state)}" if state else "")
    asked = {"sample_key": SAMPLE, "use_rep": "X"}
    return sketch_facts(study.populations_.sketch, asked, Representation(X, "X", note), None) | {
        "assignments": NAME,
        "projected": {},
    }
