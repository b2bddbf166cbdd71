"""The options of experts: how `DensityFeatures` turns integrals over the cube into sums, and bags into points of it.

They stand in one object, `Quadrature`. Each is taken by keyword and read as an attribute of the estimator too, so that
``DensityFeatures(n_nodes=32)`` is ``DensityFeatures(quadrature=Quadrature(n_nodes=32))``, and a search may set it by its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar

from reduset import _validate
from reduset.features.embedding import OUTSIDE
from reduset.features.projection import BASES, INTEGRATION

FREQUENCIES = ("placed", "random")


@dataclass(frozen=True)
class Quadrature:
    """How densities on the cube are integrated; the defaults do for most bags.

    Parameters
    ----------
    frequencies : "placed" or "random"
        Where they approximate the distance best; or drawn, as in the paper.
    basis : "cosine", "fourier" or "values"
        Of the functions on the cube; "values" has none, and takes the values at all nodes: longer vectors, nothing cut off.
    integration : "auto", "grid", "sobol" or "uniform"
        "auto" takes a tensor Gauss–Legendre grid up to three columns and Sobol points above; "uniform" draws, as in the paper.
    n_nodes : int, optional
        Nodes an axis of a grid, of all elsewhere; by the bandwidth, or 8192, if not given.
    tol : float or None
        What a bag of 10,000 points or more in over three columns may lose where its points are merged into cells first: the error
        of its density, relative and measured at some points. None never merges.
    orthogonal : bool
        Whether the random Fourier features are orthogonal.
    margin : float
        How much wider than the training points the cube is, on every side, as a share of their range.
    outside : "clip" or "refuse"
        What to do with later points that lie outside of the cube.
    """

    frequencies: str = "placed"
    basis: str = "cosine"
    integration: str = "auto"
    n_nodes: int | None = None
    tol: float | None = 0.05
    orthogonal: bool = True
    margin: float = 0.05
    outside: str = "clip"

    def check(self) -> None:
        """Name the option that is none."""
        _validate.one_of(self.frequencies, "frequencies", FREQUENCIES)
        _validate.one_of(self.basis, "basis", BASES)
        _validate.one_of(self.integration, "integration", INTEGRATION)
        _validate.one_of(self.outside, "outside", OUTSIDE)
        _validate.at_least(self.margin, "margin", 0.0)
        _validate.flag(self.orthogonal, "orthogonal")
        if self.n_nodes is not None:
            _validate.whole(self.n_nodes, "n_nodes", 2)
        if self.tol is not None:
            _validate.positive(self.tol, "tol", "None never merges points")


OPTIONS = tuple(each.name for each in fields(Quadrature))

Constructor = TypeVar("Constructor", bound=Callable[..., None])


def options_unlisted(init: Constructor) -> Constructor:
    """The constructor without ``**options`` in its signature: scikit-learn takes all that a signature names for a parameter."""
    listed = inspect.signature(init)
    named = [each for each in listed.parameters.values() if each.kind != each.VAR_KEYWORD]
    vars(init)["__signature__"] = listed.replace(parameters=named)
    return init


class Option:
    """A descriptor: one option of the quadrature, as an attribute of the estimator that has it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, estimator: TakesQuadrature, owner: type | None = None) -> Any:
        return self if estimator is None else getattr(estimator.quadrature or Quadrature(), self._name)

    def __set__(self, estimator: TakesQuadrature, value: Any) -> None:
        estimator.quadrature = replace(estimator.quadrature or Quadrature(), **{self._name: value})


class TakesQuadrature:
    """A mixin: the options of ``quadrature`` as attributes, by keyword and in ``set_params``."""

    quadrature: Quadrature | None
    frequencies: Any = Option()
    basis: Any = Option()
    integration: Any = Option()
    n_nodes: Any = Option()
    tol: Any = Option()
    orthogonal: Any = Option()
    margin: Any = Option()
    outside: Any = Option()

    def _take(self, options: dict[str, Any]) -> None:
        for name, value in options.items():
            if name not in OPTIONS:
                raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {name!r}")
            setattr(self, name, value)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, and options of the quadrature by their own names."""
        options = {name: params.pop(name) for name in OPTIONS if name in params}
        super().set_params(**params)  # type: ignore[misc]  # of the estimator that this is mixed into
        self._take(options)
        return self

    def _check_quadrature(self) -> None:
        if not isinstance(self.quadrature, Quadrature | None):
            raise TypeError(f"quadrature must be a Quadrature, got {self.quadrature!r}; use Quadrature(n_nodes=32)")
        (self.quadrature or Quadrature()).check()
