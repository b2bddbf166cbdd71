"""Properties that are computed once, without a lock.

Up to Python 3.11, `functools.cached_property` holds one lock for all objects of a class while it computes. If another thread forks
the process meanwhile, the child inherits the locked lock and waits forever. Here two threads may compute a value twice; both
receive the same one.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

T = TypeVar("T")
_ABSENT = object()


class cached_property(functools.cached_property[T]):
    """A property that is computed on first access and then stored."""

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        """The value; the property itself if accessed on the class."""
        if instance is None or self.attrname is None:
            return self
        value = instance.__dict__.get(self.attrname, _ABSENT)
        return instance.__dict__.setdefault(self.attrname, self.func(instance)) if value is _ABSENT else value
