"""write_sketch_fcs: the sketched cells of a cohort study as FCS files, for FlowJo and its like.

Beside the channels, an event says how many cells it stands for, and by numbers which population and sample it is of; keywords have
the names of these numbers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from reduset._types import Array, Indices
from reduset.cytometry.results_folder import refuse_sources, results_folder
from reduset.cytometry.sketched_events import SketchedEvents, sample_of_atom, sketched_events
from reduset.cytometry.study import CohortStudy, check_study
from reduset.io.fcs_writing import write_fcs
from reduset.io.paths import named, suffix_of
from reduset.io.registry import said_format
from reduset.io.source import unique_names
from reduset.io.table import FileError

FCS = ".fcs"
WEIGHT, POPULATION, SAMPLE = "weight", "population", "sample"
LONGEST = 100  # letters of a name of a file


def write_sketch_fcs(path: Any, study: CohortStudy) -> list[Path]:
    """Write the sketched cells of a study as FCS files.

    Parameters
    ----------
    path : a name that ends in .fcs, for one file of all samples; or a folder, which is made where it is not there, for a file a
        sample. They appear all or none.
    study : CohortStudy, fitted. Where its samples came from files, these are read once more: channels are all that they share,
        linear, and compensated where the study was. Else channels are the markers, as they are.

    Returns
    -------
    the files written

    Notes
    -----
    Further channels are ``weight``, how many cells an event stands for; ``population`` and ``sample``, numbers from 1 on, whose
    names are keywords: POPULATION1, SAMPLE1 and so on. ``sample`` is that which the cell itself is of. In one file of all samples
    weights sum to the cells of all. In the file of a sample are those sketched cells, of whichever sample, that stand for some of
    its cells, and weights are how many of its own: they sum to the cells of that sample, and tell its shares. VALUES says on which
    scale the channels are, SCALE1 and so on the scale of channel 1 on which samples were compared.
    """
    check_study(study)
    name = named(path)
    found = study.populations_
    if suffix_of(name) == (FCS, False) and not Path(name).is_dir():
        refuse_sources([Path(name)], study.samples_.sources)
        _write(Path(name), study, sketched_events(study), found.atom_counts.sum(axis=0), {})
        return [Path(name)]
    if said_format(name) is not None and not Path(name).is_dir():
        raise FileError(f"{name}: must end in .fcs, for one file, or be a folder, for a file a sample")
    with results_folder(name) as folder:
        written = [folder / f"{stem}{FCS}" for stem in _stems(study.samples_.names)]
        refuse_sources(written, study.samples_.sources)
        events = sketched_events(study)
        for number, target in enumerate(written):
            _write(target, study, events, found.atom_counts[number], {"$SMNO": study.samples_.names[number]})
    return written


def _stems(names: tuple[str, ...]) -> list[str]:
    """Names of samples as names of files, no two the same in whatever letters."""
    plain = [re.sub(r"[^\w.+ -]", "_", name)[:LONGEST].strip(" .") or "sample" for name in names]
    seen: set[str] = set()
    made = []
    for stem in plain:
        new, number = stem, 2
        while new.casefold() in seen:
            new, number = f"{stem} ({number})", number + 1
        seen.add(new.casefold())
        made.append(new)
    return made


def _write(path: Path, study: CohortStudy, events: SketchedEvents, weights: Indices, more: dict[str, str]) -> None:
    """The cells of weight above 0."""
    rows = np.flatnonzero(weights)
    numbers = [weights, study.populations_.of_atom + 1, sample_of_atom(study) + 1]
    values = np.column_stack([events.values, *numbers])[rows]
    channels = unique_names([*events.channels, WEIGHT, POPULATION, SAMPLE])[0]
    keywords = _ranges(events, values) | _told(study, events) | more
    write_fcs(str(path), values, channels, [*events.labels, "", "", ""], keywords)


def _ranges(events: SketchedEvents, values: Array) -> dict[str, str]:
    """What channels can hold, as their files say, so that programs draw the axes that they drew."""
    tops = zip(events.tops.tolist(), values.max(axis=0).tolist(), strict=False)
    return {f"$P{n}R": str(int(np.ceil(top))) for n, (top, most) in enumerate(tops, 1) if most < top < np.inf}


def _told(study: CohortStudy, events: SketchedEvents) -> dict[str, str]:
    """What numbers and scales mean."""
    samples = study.samples_
    linear = f"linear, spillover {'taken out where a file has a matrix' if samples.compensated else 'not taken out'}"
    scales = zip(events.markers, samples.markers, strict=True)
    return {
        "CREATOR": "reduset",
        "VALUES": linear if events.linear else "markers as they were compared",
        **{f"SCALE{place + 1}": samples.scales[marker] for place, marker in scales if marker in samples.scales},
        **{f"POPULATION{n}": name for n, name in enumerate(study.populations_.names, 1)},
        **{f"SAMPLE{n}": name for n, name in enumerate(samples.names, 1)},
    }
