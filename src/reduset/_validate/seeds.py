"""Both names of a seed: `rng`, as in NumPy and SciPy, and `random_state`, as in scikit-learn.

Functions have the parameter `rng`, estimators `random_state`. The decorator `seeded` makes either accept the other name as a
keyword. The signature is unchanged, so scikit-learn finds one parameter of an estimator, and the reference shows one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

OTHER_NAME = {"rng": "random_state", "random_state": "rng"}

Seeded = TypeVar("Seeded", bound=Callable[..., Any])


def seeded(target: Seeded) -> Seeded:
    """A function, method or class that accepts `rng` and `random_state` for the one that it has; both raise a TypeError.

    A class accepts them in its constructor, and in `set_params` if it is an estimator.
    """
    if not inspect.isclass(target):
        return _renaming(target, target.__qualname__)
    kind: Any = target
    kind.__init__ = _renaming(kind.__init__, kind.__name__)
    if hasattr(kind, "set_params"):
        kind.set_params = _renaming(kind.set_params, f"{kind.__name__}.set_params", _seed_name(kind.__init__))
    return target


def _renaming(function: Callable[..., Any], title: str, own: str | None = None) -> Any:
    """The function with its seed under either name; ``own`` names the seed of a function that takes any keyword."""
    name = _seed_name(function) if own is None else own
    other, position = OTHER_NAME[name], _position(function, name)

    @wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        if other in kwargs:
            if name in kwargs or (position is not None and len(args) > position):
                raise TypeError(
                    f"{title} takes one of rng and random_state, which are two names of the seed; got both, leave one out"
                )
            kwargs[name] = kwargs.pop(other)
        return function(*args, **kwargs)

    return renamed


def _seed_name(function: Callable[..., Any]) -> str:
    (name,) = OTHER_NAME.keys() & inspect.signature(function).parameters.keys()
    return name


def _position(function: Callable[..., Any], name: str) -> int | None:
    """The place of a parameter that can be passed by position."""
    parameters = inspect.signature(function).parameters
    found = parameters.get(name)
    return list(parameters).index(name) if found is not None and found.kind is found.POSITIONAL_OR_KEYWORD else None
