"""The witness: where among the markers groups of samples differ, at every atom.

f_i(c) = Σ_a share_ia φ(c, c_a) is what sample i has near an atom c, on the bandwidth of the finest detail that the atoms keep. The
witness is the difference of the groups' means of f, the direction in which the kernel tells the groups apart (Gretton et al. 2012,
Section 2.3). Each atom is tested on log f as populations are, with samples as the units (of the same weight), and q-values are over
all atoms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from reduset._engine import single_threaded_blas
from reduset._types import Array
from reduset.cytometry.comparing import ENOUGH, chances, log_shares
from reduset.cytometry.design import Design
from reduset.cytometry.discovery import found_at, q_values
from reduset.cytometry.fitting import fit
from reduset.cytometry.populations import Populations
from reduset.cytometry.relabelling import relabellings
from reduset.kernels import RadialKernel
from reduset.mean import with_bandwidth


@dataclass(frozen=True)
class Witness:
    """Where groups differ.

    Attributes
    ----------
    values : (G − 1, m) how much more of a group lies at each atom than of the first, as a share of the most that lies at any
    fold_changes : (G − 1, m) logarithms to base 2 of how many times more lies there
    q_values : (m,) the false discovery rate at which an atom is found
    found : (m,) bool
    bandwidth : of what counts as near
    """

    values: Array = field(repr=False)
    fold_changes: Array = field(repr=False)
    q_values: Array = field(repr=False)
    found: NDArray[np.bool_] = field(repr=False)
    bandwidth: float


def witness_of(populations: Populations, design: Design, fdr: float, rng: np.random.Generator) -> Witness:
    """The witness of the groups of a design, at every atom."""
    mean = populations.sketch.mean
    narrow = with_bandwidth(mean, populations.sketch.resolution or cast(RadialKernel, mean.kernel).width)
    near = narrow.kernel.product_gram(narrow.atoms, narrow.atoms)
    shares = populations.atom_counts / populations.sizes[:, None]
    labelled = relabellings(design, rng)
    with single_threaded_blas():
        sizes, heights = populations.sizes[design.rows], (shares @ near)[design.rows]
        seen = log_shares(sizes[:, None] * heights, sizes, design)
        fits = fit(seen.values, None, design, labelled, seen.known)
    null = "permutation" if labelled.count >= ENOUGH else "normal"
    q = q_values(chances(fits, labelled, null, fdr, len(design.levels) - 1))
    groups = np.stack([heights[design.codes == g].mean(axis=0) for g in range(len(design.levels))])
    most = float(groups.max())
    return Witness(
        values=(groups[1:] - groups[0]) / most,
        fold_changes=fits.effects / np.log(2),
        q_values=q,
        found=found_at(q, fdr),
        bandwidth=cast(RadialKernel, narrow.kernel).width,
    )
