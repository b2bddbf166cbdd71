"""matplotlib, imported for the first plot, because the rest of the library does not need it."""

from __future__ import annotations

from typing import Any


def pyplot() -> Any:
    """matplotlib.pyplot. Raises ImportError with the command for installation if matplotlib is missing."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib, which is not installed: pip install 'reduset[plots]'") from error
    return pyplot


def ellipses() -> tuple[Any, Any]:
    """matplotlib's ``EllipseCollection`` and ``to_rgba``."""
    pyplot()
    from matplotlib.collections import EllipseCollection
    from matplotlib.colors import to_rgba

    return EllipseCollection, to_rgba


def axes(ax: Any) -> Any:
    """``ax``, or new axes if it is None."""
    return pyplot().subplots()[1] if ax is None else ax
