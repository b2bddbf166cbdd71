"""Properties that are computed once, without a lock.

That of the standard library holds one for all objects of a class while it computes, up to Python 3.11: a process that is forked
meanwhile by another thread inherits it locked, and waits for ever. Two threads may compute a value twice, and see one of them.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

T = TypeVar("T")
_ABSENT = object()


class cached_property(functools.cached_property[T]):
    """A method as a value that is computed when it is first asked for, and kept."""

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        """The value; the property itself where it is asked for of a class."""
        if instance is None or self.attrname is None:
            return self
        value = instance.__dict__.get(self.attrname, _ABSENT)
        return instance.__dict__.setdefault(self.attrname, self.func(instance)) if value is _ABSENT else value
