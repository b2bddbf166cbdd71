"""Reports as one HTML file that opens offline, and displays for matplotlib, of the same numbers.

Each name is imported when it is first asked for: whoever reports on a compression need not wait for scikit-learn.

May import: model, the uses that it reports on, and what is below them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reduset.report.cohort import write_cohort
    from reduset.report.compression import oversmoothing_note, write_compression
    from reduset.report.displays import AtomsDisplay, DensityDisplay, PathDisplay, ProfileDisplay
    from reduset.report.drift import write_drift
    from reduset.report.drift_figure import DriftDisplay
    from reduset.report.maps import CohortDisplay, EmbeddingDisplay
    from reduset.report.segmentation import write_segmentation
    from reduset.report.sketch import write_sketch
    from reduset.report.watch import Alarm, WatchedFile, write_watch

__all__ = [
    "AtomsDisplay",
    "CohortDisplay",
    "DensityDisplay",
    "DriftDisplay",
    "EmbeddingDisplay",
    "PathDisplay",
    "ProfileDisplay",
    "write_cohort",
    "write_compression",
    "write_drift",
    "write_segmentation",
    "write_sketch",
    "write_watch",
]

_HOMES = {
    "Alarm": "watch",
    "AtomsDisplay": "displays",
    "CohortDisplay": "maps",
    "DensityDisplay": "displays",
    "DriftDisplay": "drift_figure",
    "EmbeddingDisplay": "maps",
    "PathDisplay": "displays",
    "ProfileDisplay": "displays",
    "WatchedFile": "watch",
    "oversmoothing_note": "compression",
    "write_cohort": "cohort",
    "write_compression": "compression",
    "write_drift": "drift",
    "write_segmentation": "segmentation",
    "write_sketch": "sketch",
    "write_watch": "watch",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
