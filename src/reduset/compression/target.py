"""The target of an approximation: a kernel mean at one bandwidth, and what measures errors against it.

The probe and the scales take a pass over the data each. They are made when they are first needed, and once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reduset._engine import cached_property
from reduset._progress import Clock, Progress
from reduset.certificate.by_scale import Scales
from reduset.certificate.probe import Probe
from reduset.certificate.rule import probe_for
from reduset.mean import KernelMean


@dataclass(frozen=True)
class Run:
    """What all stages of one call share.

    Attributes
    ----------
    rng : each target takes streams of its own from it
    confidence : level of all intervals
    """

    rng: np.random.Generator
    confidence: float
    progress: Progress = field(default_factory=Progress)
    clock: Clock = field(default_factory=Clock)

    def target(self, full: KernelMean, probe: Probe | None = None) -> Target:
        """A mean as a target, with new random streams; ``probe`` measures errors in place of the usual one."""
        select_rng, probe_rng, move_rng, scale_rng = self.rng.spawn(4)
        return Target(full, self, select_rng, probe_rng, move_rng, scale_rng, probe)


@dataclass(frozen=True)
class Target:
    """The mean f that is approximated.

    Attributes
    ----------
    full : f
    run : the call that it belongs to
    select_rng, probe_rng, move_rng, scale_rng : a random stream for each use
    own_probe : measures errors, if the data are elsewhere
    """

    full: KernelMean
    run: Run
    select_rng: np.random.Generator
    probe_rng: np.random.Generator
    move_rng: np.random.Generator
    scale_rng: np.random.Generator
    own_probe: Probe | None = None
    _scales: list[Scales | None] = field(default_factory=list, init=False, repr=False)

    @cached_property
    def probe(self) -> Probe:
        """Measures errors at this bandwidth."""
        return self.own_probe or probe_for(self.full, self.run.confidence, self.probe_rng)

    def scales(self, size: int) -> Scales | None:
        """Measures errors at every scale, for approximations by ``size`` atoms; kept from the first call. None if none do."""
        if not self._scales:
            with self.run.clock.stage("certify"):
                self._scales.append(self.probe.scales(size, self.scale_rng))
        return self._scales[0]
