"""to_anndata: a cohort study as AnnData, samples as obs and atoms as var, so that scanpy plots the map of the samples.

X is the share of each atom in each sample: the finest populations, whose sums over the atoms of a population are its shares.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset._types import Array
from reduset.anndata.annotated import library
from reduset.cytometry.annotated_columns import KeyNames, are_measured, categories, column_of_entries, frame
from reduset.cytometry.annotated_facts import study_facts
from reduset.cytometry.sample_columns import SAMPLE_ID
from reduset.cytometry.study import CohortStudy, check_study

OURS = "reduset.cytometry.to_anndata"
CELLS, POPULATION, MASS, Q, FOUND, FOLD = "n_cells", "population", "mass", "q", "found", "log2_fold_change"


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
    uns = study_facts(study, OURS)
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
