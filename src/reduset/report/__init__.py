"""Reports as one HTML file that opens offline, and displays for matplotlib with the same numbers.

`page` has the blocks of reports and the template, `words` their sentences, and `figures` the numbers of figures. Each name is
imported when it is first used, so the report of a compression does not need scikit-learn.

May import: model, the packages that it reports on, and their imports.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reduset.report.audit import write_audit
    from reduset.report.cohort import CohortDisplay, EmbeddingDisplay, alike_beside, write_cohort
    from reduset.report.compression import oversmoothing_note, write_compression
    from reduset.report.displays import QUIET, AtomsDisplay, DensityDisplay, MatplotlibDisplay, PathDisplay, ProfileDisplay
    from reduset.report.drift import Alarm, WatchedFile, write_drift, write_watch
    from reduset.report.drift_figure import DriftDisplay
    from reduset.report.page import (
        LONG,
        Markup,
        Section,
        aside,
        choice,
        controls,
        cut,
        folded,
        grid,
        hero,
        listed,
        markup,
        named,
        packed,
        plot,
        small,
        table,
        write_page,
    )
    from reduset.report.segmentation import write_segmentation
    from reduset.report.sketch import write_sketch
    from reduset.report.words import Card, count, p_told, percent, plain, shortened

__all__ = [
    "AtomsDisplay",
    "CohortDisplay",
    "DensityDisplay",
    "DriftDisplay",
    "EmbeddingDisplay",
    "PathDisplay",
    "ProfileDisplay",
    "write_audit",
    "write_cohort",
    "write_compression",
    "write_drift",
    "write_segmentation",
    "write_sketch",
    "write_watch",
]

_HOMES = {
    "page": "LONG Markup Section aside choice controls cut folded grid hero listed markup named packed plot small table write_page",
    "words": "Card count p_told percent plain shortened",
    "audit": "write_audit",
    "cohort": "CohortDisplay EmbeddingDisplay alike_beside write_cohort",
    "compression": "oversmoothing_note write_compression",
    "displays": "AtomsDisplay DensityDisplay MatplotlibDisplay PathDisplay ProfileDisplay QUIET",
    "drift": "Alarm WatchedFile write_drift write_watch",
    "drift_figure": "DriftDisplay",
    "segmentation": "write_segmentation",
    "sketch": "write_sketch",
}


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
