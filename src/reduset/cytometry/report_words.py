"""What a cohort study found, in the words of a laboratory: samples, cells, markers, populations."""

from __future__ import annotations

import numpy as np

from reduset.cytometry.comparing import Differences
from reduset.cytometry.figures import StudyFigure
from reduset.cytometry.relabelling import MOST
from reduset.cytometry.study import CohortStudy
from reduset.cytometry.whole import WholeTest
from reduset.report.words import Card, count, p_told, percent, shortened

FOUND = "◆"
SURE = 0.05  # of a single test
LISTED = 3  # populations in a card


def study_cards(shown: StudyFigure) -> list[Card]:
    """The figures at the head: what differs, the whole at once, batches, and what cleaning left."""
    study = shown.study
    told = [_populations(shown) if study.differences_ is None else _differing(study.differences_)]
    if study.whole_ is not None:
        told.append(Card("All at once", percent(study.whole_.share), _whole(study.whole_, "groups")))
    if study.batches_ is not None and study.batches_.whole is not None:
        told.append(Card("Batches", percent(study.batches_.whole.share), _whole(study.batches_.whole, "runs")))
    if "events" in study.samples_.counted:
        kept, events = int(study.samples_.sizes.sum()), int(study.samples_.counted["events"].sum())
        meaning = f"{count(kept)} of {count(events, 'event')} were kept by cleaning."
        told.append(Card("Cells kept", percent(kept / events) if events else "—", meaning))
    return told


def _populations(shown: StudyFigure) -> Card:
    names, shares = shown.populations.names, shown.populations.shares
    meaning = f"The largest is {names[0]}, {percent(float(shares[0]))} of the cells"
    meaning += f"; the smallest {names[-1]}, {percent(float(shares[-1]))}." if len(names) > 1 else "."
    return Card("Populations", count(len(names)), meaning)


def _differing(found: Differences) -> Card:
    many, rate = int(found.found.sum()), percent(found.fdr)
    figure = f"{many} of {len(found.names)}"
    if not many:
        return Card(
            "Populations that differ", figure, f"None is shown to, at a false discovery rate of {rate}; some may all the same."
        )
    surest = np.flatnonzero(found.found)[np.argsort(found.p_values[found.found], kind="stable")]
    listed = "; ".join(shortened(found.names[k], 40) for k in surest[:LISTED]) + ("; …" if many > LISTED else "")
    return Card("Populations that differ", figure, f"At a false discovery rate of {rate}: {listed}.")


def _whole(found: WholeTest, things: str) -> str:
    verdict = "differ" if found.p_value <= SURE else "are not shown to differ"
    return (
        f"of the squared distances of samples lie between {things} (column {found.name}), {percent(found.expected)} by chance: "
        f"they {verdict}, {p_told(found.p_value)}."
    )


def against(found: Differences) -> str:
    """What is compared with what."""
    levels = found.design.levels
    return f"{levels[1]} against {levels[0]}" if len(levels) == 2 else f"Against {levels[0]}"


def compared(study: CohortStudy, found: Differences) -> str:
    """How the groups were compared."""
    design = found.design
    groups = [f"{size} of {level}" for level, size in zip(design.levels, design.counts, strict=True)]
    listed = " and ".join([", ".join(groups[:-1]), groups[-1]])
    text = f"Samples are compared, not cells: {listed}"
    text += f", within {study.block}" if design.is_blocked else ""
    held = [str(study.batch) if name == "batch" and study.batch is not None else name for name in design.adjusted]
    text += f", with {' and '.join(held)} held fixed. " if held else ". "
    if found.null == "normal":
        text += f"There are only {count(found.labellings, 'way')} to label the samples, so chance is judged by the normal law."
    else:
        every = found.labellings <= MOST + 1
        ways = f"all {count(found.labellings)} ways to label them" if every else f"{count(MOST + 1)} random ways to label them"
        text += f"Chance is judged by {ways}."
    return text + " q is the false discovery rate at which a population is found."
