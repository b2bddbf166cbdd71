"""cells_to_anndata: the cells of a cohort study as AnnData, those that stand for all others, or all cells with their assignments.

Columns and facts are those that `reduset.anndata.sketch` writes, so that `project` carries labels of the sketch to every cell. Of n
cells with d markers 4·n·d bytes of X are held, and some 30 bytes a cell beside their names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Floats, Indices
from reduset._validate import flag
from reduset.anndata.annotated import library
from reduset.anndata.representation import Representation
from reduset.anndata.sketching import ASSIGNMENT, NAME, WEIGHT, facts
from reduset.cytometry.annotated_columns import categories, frame, pandas
from reduset.cytometry.annotated_facts import study_facts
from reduset.cytometry.annotated_samples import POPULATION, sample_frame
from reduset.cytometry.study import CohortStudy, check_study

OURS = "reduset.cytometry.cells_to_anndata"
SKETCH, SAMPLE, EVENT, SOURCE = "sketch", "sample", "event", "source"
TYPE, STATE = "type", "state"


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
    uns = study_facts(study, OURS) | {SKETCH: _sketch_facts(study, X)}
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
    return facts(study.populations_.sketch, asked, Representation(X, "X", note), None) | {"assignments": NAME, "projected": {}}
