"""CohortStudy: a map of many samples, the populations of their cells, and tests for differences between groups of samples.

samples → populations → map (`reduset.cohort`) → differences of groups and their witness (`comparing`) → batches. The estimator
validates, calls and stores. Designs that cannot be compared raise an error before any computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reduset import _validate, bandwidth
from reduset._messages import warn
from reduset._types import Array, KernelLike, ProgressLike, SeedLike
from reduset._validate import seeded
from reduset.cohort import CohortMap
from reduset.cytometry.clusters import ClusterDifferences, compare_clusters
from reduset.cytometry.comparing import NULLS, Differences, Witness, compare, witness_of
from reduset.cytometry.design import Design, design_of
from reduset.cytometry.distance_tests import BatchCheck, WholeTest, check_batches, compare_whole
from reduset.cytometry.populations import DIP, find_populations, units_of
from reduset.cytometry.samples import SampleSet
from reduset.io import listed
from reduset.kernels import Gaussian

MAX_SIZE_RATIO = 10  # of the median sample sizes of two groups; a larger ratio causes a note
SMALL_SAMPLE = 500  # cells
MAX_NAMES = 5  # samples in a note
SCALE_CELLS = 100_000  # from which scales are estimated
YES = ("yes", "y", "true", "t", "1", "1.0", "control")


@seeded
@dataclass(eq=False, repr=False)
class CohortStudy(BaseEstimator):
    """Compare samples: find populations, compute a map of the samples, and test which populations differ between groups.

    Samples are the units of every test, not cells.

    Parameters
    ----------
    test : str, optional
        The column of the sample table with the groups to compare. Without it the result is a map and populations.
    block : str, optional
        The column of patients, or other units with several samples. Groups are compared within blocks, like pairs.
    batch : str, optional
        The column of runs. Their contribution is measured. They are held fixed in all tests unless groups and runs are confounded.
    covariates : sequence of str
        Names of further columns that are held fixed: numbers, or texts as categories.
    control : str, optional
        The column that marks control samples (yes, true or 1), such as the same blood in every run. They are on the map, but not
        compared. ``block`` separates controls of several kinds.
    reference : str, optional
        The reference group; by default the first in alphabetical order.
    n_atoms, n_populations, dip : as in `reduset.cytometry.find_populations`
    fdr : float
        The false discovery rate over populations.
    confidence : float
        The confidence of intervals.
    null : "auto", "permutation" or "normal", as in `reduset.cytometry.compare`
    scales : "robust", "standard" or (d,) numbers, optional
        Divisors that give all markers one unit. By default, markers are assumed to have one unit, as after the transforms of
        `reduset.cytometry.read_cohort`. A warning is given if their spreads differ greatly.
    kernel : Kernel, optional
        The kernel of the distances between samples; by default ``Gaussian("median")`` with these scales.
    layout : "mds" or "isomap"
    random_state : None, seed, Generator or RandomState
    progress : bool, or a function of (stage, done, total)

    Attributes
    ----------
    samples_ : SampleSet
    controls_ : Kind of control of each sample, (N,), None for others.
    map_ : CohortMap of the samples, with certified distances.
    populations_ : Populations
    differences_ : Differences of the populations between groups; None without ``test``.
    whole_ : WholeTest, the test whether groups differ at all; None without ``test``.
    clusters_ : ClusterDifferences, the clusters of cells of any size that differ; None without ``test``.
    witness_ : Witness, the differences of the groups' densities at every atom; None without ``test``.
    batches_ : BatchCheck; None without ``batch``.
    notes_ : Remarks.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.cytometry import CohortStudy
    >>> rng = np.random.default_rng(0)
    >>> def sample(share):
    ...     return np.where(rng.random((1000, 1)) < share, rng.normal(5, 1, (1000, 3)), rng.normal(0, 1, (1000, 3)))
    >>> bags = {f"p{k}": sample(0.05 if k < 6 else 0.15) for k in range(12)}
    >>> table = {"sample_id": list(bags), "condition": ["healthy"] * 6 + ["ill"] * 6}
    >>> study = CohortStudy(test="condition", random_state=0).fit(bags, table)
    >>> study.differences_.found.tolist()
    [True, True]
    """

    test: str | None = None
    block: str | None = None
    batch: str | None = None
    covariates: Sequence[str] = ()
    control: str | None = None
    reference: str | None = None
    _: KW_ONLY
    n_atoms: int | None = None
    n_populations: int | None = None
    dip: float = DIP
    fdr: float = 0.05
    confidence: float = 0.95
    null: str = "auto"
    scales: Any = None
    kernel: KernelLike = None
    layout: str = "mds"
    random_state: SeedLike = None
    progress: ProgressLike = False

    def fit(self, samples: Any, table: Any = None) -> Self:
        """Compare the samples.

        Parameters
        ----------
        samples : SampleSet, or list or mapping of (n, d) arrays or frames
            One array or frame per sample, as in `SampleSet.of`. At most 2,000 markers may define populations.
        table : Table of samples, a dict of columns or a frame, with a column "sample_id". A `SampleSet` already has a table.
        """
        if isinstance(samples, SampleSet) and table is not None:
            raise ValueError("a SampleSet already has a table of samples; omit table")
        samples = samples if isinstance(samples, SampleSet) else SampleSet.of(samples, table)
        if len(samples.names) < 2:
            raise ValueError(f"a study needs at least 2 samples, got {', '.join(samples.names) or 'none'}; add samples")
        _validate.one_of(self.null, "null", NULLS)
        _validate.confidence(self.fdr, "fdr")
        _validate.confidence(self.confidence)
        defining = [j for j, marker in enumerate(samples.markers) if marker not in samples.state]
        if not defining:
            raise ValueError("no marker defines populations: all are of class state; give some class type in the panel")
        patients, runs = (None if name is None else samples.column(name) for name in (self.block, self.batch))
        controls = self._controls(samples, patients)
        design = self._design(samples, controls, patients, runs)
        units = self._units(samples, defining)
        map_rng, populations_rng, test_rng, whole_rng, clusters_rng, batch_rng = _validate.generator(
            self.random_state, "random_state"
        ).spawn(6)
        self.samples_, self.controls_ = samples, controls
        self.populations_ = found = find_populations(
            samples.cells,
            samples.markers,
            defining=defining,
            scales=units,
            n_atoms=self.n_atoms,
            n_populations=self.n_populations,
            dip=self.dip,
            rng=populations_rng,
            progress=self.progress,
        )
        self.map_ = self._map(samples, defining, units, map_rng)
        distances, errors = self.map_.distances_, self.map_.errors_
        self.differences_: Differences | None = None
        self.whole_: WholeTest | None = None
        self.clusters_: ClusterDifferences | None = None
        self.witness_: Witness | None = None
        self.batches_: BatchCheck | None = None
        if design is not None:
            options: dict[str, Any] = {"fdr": self.fdr, "confidence": self.confidence, "null": self.null, "rng": test_rng}
            self.differences_ = compare(found.counts, found.sizes, design, found.names, **options)
            self.whole_ = compare_whole(distances, errors, design, whole_rng)
            self.clusters_ = compare_clusters(found, design, self.fdr, self.confidence, self.null, clusters_rng)
            self.witness_ = witness_of(found, design)
        if runs is not None:
            named = samples.names, runs, str(self.batch)
            self.batches_ = check_batches(distances, errors, *named, design, controls, patients, batch_rng)
            if self.batches_.confounded:
                warn(self.batches_.notes[0])
        self.notes_ = self._notes(design)
        return self

    def _map(self, samples: SampleSet, defining: list[int], units: Array | None, rng: np.random.Generator) -> CohortMap:
        """The samples on a map, by the markers that define populations."""
        every = len(defining) == len(samples.markers)
        kernel = Gaussian("median", scales=None if units is None else units[defining]) if self.kernel is None else self.kernel
        return CohortMap(
            layout=self.layout,
            n_components=min(2, len(samples.names) - 1),
            kernel=kernel,
            random_state=rng,
            progress=self.progress,
        ).fit({name: cells if every else cells[:, defining] for name, cells in zip(samples.names, samples.cells, strict=True)})

    def _units(self, samples: SampleSet, defining: list[int]) -> Array | None:
        """(d,) the divisors of markers; None for none."""
        if self.scales is not None and not isinstance(self.scales, str):
            return units_of(self.scales, len(samples.markers))
        step = max(1, int(samples.sizes.sum()) // SCALE_CELLS)
        cells = np.concatenate([sample[:: min(step, len(sample))] for sample in samples.cells])
        if self.scales is not None:
            return bandwidth.column_scales(cells, rule=_validate.one_of(self.scales, "scales", bandwidth.SCALES))
        drowned = bandwidth.dominated_column(cells[:, defining]) if self.kernel is None else None
        if drowned is not None:
            wide, narrow = (samples.markers[defining[position]] for position in drowned[:2])
            warn(
                f"the spread of marker {wide} is {drowned[2]:,.0f} times the spread of {narrow}, which contributes little to "
                "distances: populations may be missed. scales='robust' gives all markers one unit"
            )
        return None

    def _controls(self, samples: SampleSet, patients: Sequence[Any] | None) -> list[str | None]:
        """The kind of control that each sample is."""
        if self.control is None:
            return [None] * len(samples.names)
        kinds = ["control" if kind is None else str(kind) for kind in patients or ("control",) * len(samples.names)]
        is_control = [entry is not None and str(entry).strip().lower() in YES for entry in samples.column(self.control)]
        return [kind if yes else None for yes, kind in zip(is_control, kinds, strict=True)]

    def _design(
        self, samples: SampleSet, controls: list[str | None], patients: Sequence[Any] | None, runs: Sequence[Any] | None
    ) -> Design | None:
        if self.test is None:
            return None
        labels = zip(samples.column(self.test), controls, strict=True)
        return design_of(
            [None if control is not None else label for label, control in labels],
            self.test,
            block=patients,
            covariates={name: samples.column(name) for name in self.covariates},
            batch=runs,
            first=self.reference,
        )

    def _notes(self, design: Design | None) -> tuple[str, ...]:
        samples = self.samples_
        notes = [*samples.notes, *(f"{name} is omitted: {why}" for name, why in samples.left_out.items())]
        notes += [] if design is None else design.notes
        small = [name for name, size in zip(samples.names, samples.sizes, strict=True) if size < SMALL_SAMPLE]
        if small:
            notes.append(
                f"samples of fewer than {SMALL_SAMPLE} cells ({listed(small, MAX_NAMES)}) have uncertain proportions: tests give "
                "them less weight, and on the map sampling error moves them away from others"
            )
        if design is not None:
            sizes = [float(np.median(samples.sizes[design.rows[design.codes == g]])) for g in range(len(design.levels))]
            largest, smallest = max(sizes), min(sizes)
            if largest > MAX_SIZE_RATIO * smallest:
                notes.append(
                    f"samples of {design.levels[sizes.index(largest)]} have {largest / smallest:.0f} times as many cells as "
                    f"samples of {design.levels[sizes.index(smallest)]}: differences of rare populations may be due to that"
                )
        for cluster in self.populations_.sample_specific:
            names = listed((samples.names[k] for k in cluster.samples), MAX_NAMES)
            population = self.populations_.names[cluster.population]
            notes.append(
                f"{cluster.share:.2%} of the cells of {names} form a cluster next to {population}, a population with few cells of "
                "these samples. They are counted with this population, because the samples may have been stained differently"
            )
        return tuple(notes)

    def __str__(self) -> str:
        if not hasattr(self, "populations_"):
            return repr(self)
        lines = [
            f"{len(self.samples_.names)} samples, {int(self.samples_.sizes.sum()):,} cells, {len(self.samples_.markers)} markers"
        ]
        lines.append(f"{len(self.populations_)} populations on {len(self.populations_.atoms):,} atoms")
        for part in (self.differences_, self.clusters_, self.whole_, self.batches_):
            lines += [] if part is None else str(part).splitlines()
        return "\n  ".join(lines)

    def facts(self) -> dict[str, Any]:
        """The results as plain values, for JSON."""
        check_is_fitted(self, "map_")
        facts: dict[str, Any] = {
            "samples": list(self.samples_.names),
            "cells": self.samples_.sizes,
            "markers": list(self.samples_.markers),
            "scales": dict(self.samples_.scales),
            "cleaning": dict(self.samples_.counted),
            "left_out": dict(self.samples_.left_out),
            "distances": self.map_.distances_,
            "errors": self.map_.errors_,
            "map": self.map_.embedding_,
            "populations": list(self.populations_.names),
            "shares": self.populations_.shares,
            "notes": list(self.notes_),
        }
        if self.differences_ is not None and self.clusters_ is not None and self.whole_ is not None:
            facts["differences"] = self.differences_.rows()
            facts["clusters"] = [] if self.clusters_.differences is None else self.clusters_.differences.rows()
            facts["whole"] = {"share": self.whole_.share, "interval": self.whole_.interval, "p": self.whole_.p_value}
        if self.batches_ is not None:
            whole = self.batches_.whole
            facts["batches"] = {
                "share": None if whole is None else whole.share,
                "p": None if whole is None else whole.p_value,
                "confounded": self.batches_.confounded,
                "control_share": self.batches_.control_share,
            }
        return facts

    def plot(self, ax: Any = None) -> Any:
        """Draw the map of the samples with their names, coloured by group, with matplotlib."""
        check_is_fitted(self, "map_")
        groups = None if self.test is None else list(self.samples_.table[self.test])
        return self.map_.plot(ax, labels=True, groups=groups)


def check_study(study: Any) -> CohortStudy:
    """The study; an error if it is not a fitted `CohortStudy`."""
    if not isinstance(study, CohortStudy):
        raise TypeError(f"study must be a fitted CohortStudy, got {type(study).__name__}; a CohortMap has write_cohort")
    check_is_fitted(study, "map_")
    return study
