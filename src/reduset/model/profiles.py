"""The error at every scale of a result and of some smaller sizes of it, as a file keeps them.

A profile costs about a hundredth of a second beside what its atoms do, and the slider of a report goes through two dozen sizes:
every third of them has one, the largest among them, which is a few percent of a compression to 1,000 atoms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array
from reduset.certificate.by_scale import ErrorProfile
from reduset.compression import Compression

EVERY = 3  # of the sizes that weights are kept of
CURVES = 5  # of a profile: errors, lower and upper ends, random rows, noise


@dataclass(frozen=True)
class SizeProfiles:
    """Profiles of nested sizes, at the same bandwidths.

    Attributes
    ----------
    sizes : (p,) in increasing order, the last that of the result itself; none where no profile is known
    profiles : one of each
    """

    sizes: NDArray[np.int64]
    profiles: tuple[ErrorProfile, ...]

    @classmethod
    def unknown(cls) -> SizeProfiles:
        """Of a result that knows the error at its own scale only."""
        return cls(np.empty(0, np.int64), ())

    @classmethod
    def of(cls, small: Compression, sizes: NDArray[np.int64]) -> SizeProfiles:
        """Of some of these sizes of a compression, the last one among them; of none where it has no profile."""
        if not small.has_profile:
            return cls.unknown()
        some = sizes[::-1][::EVERY][::-1]
        return cls(some, tuple(small.at(int(size)).profile() for size in some))

    def nearest(self, size: int) -> int:
        """Which of the sizes is nearest to this one, as a ratio."""
        return int(np.abs(np.log(self.sizes / size)).argmin())

    def arrays(self) -> dict[str, Array]:
        """What a file keeps."""
        curves = [np.stack([p.relative_errors, *p.intervals.T, p.random_rows, p.noise]) for p in self.profiles]
        return {
            "scales": self.profiles[0].bandwidths if self.profiles else np.empty(0),
            "profile_sizes": self.sizes.astype(np.float64),
            "profile_errors": np.stack(curves) if curves else np.empty((0, CURVES, 0)),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], confidence: float, largest: int) -> SizeProfiles:
        """What `arrays` returned, from a file: of a result of so many atoms and intervals of this confidence."""
        scales, sizes, curves = arrays["scales"], arrays["profile_sizes"], arrays["profile_errors"]
        if (len(sizes) > 0) != (len(scales) > 0):
            raise ValueError(f"profiles must have sizes and scales, got {len(sizes)} sizes and {len(scales)} scales")
        if not (np.diff(scales) < 0).all():
            raise ValueError("scales must be positive numbers from coarse to fine")
        if len(sizes) and not ((np.diff(sizes) > 0).all() and sizes[-1] == largest):
            raise ValueError(f"profile_sizes must go up to the {largest:,} atoms of the model")
        profiles = [
            ErrorProfile(scales, errors, np.stack([low, high], axis=1), drawn, noise, confidence)
            for errors, low, high, drawn, noise in curves
        ]
        return cls(sizes, tuple(profiles))
