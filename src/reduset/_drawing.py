"""matplotlib, imported when the first plot is asked for: nothing else of the library needs it."""

from __future__ import annotations

from typing import Any


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that says how to get it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plots need matplotlib, which is not installed: pip install 'reduset[plots]'") from error
    return pyplot


def ellipses() -> tuple[Any, Any]:
    """matplotlib's collection of ellipses, and its reading of colours."""
    pyplot()
    from matplotlib.collections import EllipseCollection
    from matplotlib.colors import to_rgba

    return EllipseCollection, to_rgba


def axes(ax: Any) -> Any:
    """The axes given, or new ones."""
    return pyplot().subplots()[1] if ax is None else ax
