"""CohortStudy: from the cells of many samples to a map of them, their populations, and which of these differ between groups.

samples → populations (`finding`) → map (`reduset.cohort`) → differences (`comparing`), where (`witness`), batches.
Validates, calls, stores. What cannot be compared is refused before anything is computed.
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
from reduset.cohort.estimator import CohortMap
from reduset.cytometry.comparing import NULLS, Differences, Witness, compare, witness_of
from reduset.cytometry.design import Design, design_of
from reduset.cytometry.distance_tests import BatchCheck, WholeTest, check_batches, compare_whole
from reduset.cytometry.finding import DIP, check_markers, find_populations
from reduset.cytometry.samples import SampleSet
from reduset.kernels import Gaussian

UNLIKE = 10  # times as many cells in the samples of one group as in those of another
FEW_CELLS = 500
LOOKED_AT = 100_000  # cells, for scales
YES = ("yes", "y", "true", "t", "1", "1.0", "control")


@seeded
@dataclass(eq=False, repr=False)
class CohortStudy(BaseEstimator):
    """Samples compared: a map of them, their populations, and which populations differ between groups of samples.

    Samples are the units of every test, never cells.

    Parameters
    ----------
    test : str, optional
        The column of the sample table whose groups are compared; without it there is a map and there are populations.
    block : str, optional
        The column of patients, or of whatever gave several samples: groups are compared within it, as pairs are.
    batch : str, optional
        The column of runs. They are looked at themselves, and held fixed in all tests where they can be told from what is compared.
    covariates : names of further columns that are held fixed: numbers, or texts as categories
    control : str, optional
        The column that says (yes, true or 1) which samples are controls: the same blood in every run. They are on the map, and not
        compared. Controls of several kinds are told apart by ``block``.
    reference : str, optional
        The group that others are compared with; by default the first in the order of the alphabet.
    n_atoms, n_populations, dip : as in `reduset.cytometry.find_populations`
    fdr : float, the false discovery rate over populations
    confidence : float, of intervals
    null : "auto", "permutation" or "normal", as in `reduset.cytometry.compare`
    scales : "robust", "standard" or (d,) numbers, optional
        What markers are divided by, so that all count alike. By default they are in one unit, as after the transforms of
        `reduset.cytometry.read_cohort`; a warning says where that looks wrong.
    kernel : Kernel, of the distances between samples; by default ``Gaussian("median")`` with these scales
    layout : "mds" or "isomap", of the map
    random_state : None, seed, Generator or RandomState
    progress : bool, or a function of (stage, done, total)

    Attributes
    ----------
    samples_ : SampleSet
    controls_ : (N,) the kind of control that a sample is, None for others
    map_ : CohortMap of the samples, with certified distances
    populations_ : Populations
    differences_ : Differences of the populations between groups; None without ``test``
    whole_ : WholeTest of all at once; None without ``test``
    witness_ : Witness, where among the markers groups differ; None without ``test``
    batches_ : BatchCheck; None without ``batch``
    notes_ : what there is to say

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
        samples : SampleSet, or what `SampleSet.of` takes: a list or mapping of (n, d) arrays or frames, one a sample
            At most 2,000 markers may define populations.
        table : the table of samples, a dict of columns or a frame, with a column "sample_id"; a `SampleSet` has its own
        """
        if isinstance(samples, SampleSet) and table is not None:
            raise ValueError("a SampleSet has its own table of samples; leave table out")
        known = samples if isinstance(samples, SampleSet) else SampleSet.of(samples, table)
        if len(known.names) < 2:
            raise ValueError(f"a study needs at least 2 samples, got {', '.join(known.names) or 'none'}; name more of them")
        _validate.one_of(self.null, "null", NULLS)
        _validate.confidence(self.fdr, "fdr")
        _validate.confidence(self.confidence)
        defining = [j for j, marker in enumerate(known.markers) if marker not in known.state]
        if not defining:
            raise ValueError("no marker defines populations: all are of class state; say which are of class type in the panel")
        check_markers(len(defining))
        controls = self._controls(known)
        design = self._design(known, controls)
        runs = None if self.batch is None else known.column(self.batch)
        units = self._units(known, defining)
        map_rng, populations_rng, *rngs = _validate.generator(self.random_state, "random_state").spawn(6)
        self.samples_, self.controls_ = known, controls
        self.populations_ = find_populations(
            known.cells,
            known.markers,
            defining=defining,
            scales=units,
            n_atoms=self.n_atoms,
            n_populations=self.n_populations,
            dip=self.dip,
            rng=populations_rng,
            progress=self.progress,
        )
        self.map_ = self._map(known, defining, units, map_rng)
        self._compare(design, runs, rngs)
        self.notes_ = self._told(known, design)
        return self

    def _map(self, samples: SampleSet, defining: list[int], units: Array | None, rng: np.random.Generator) -> CohortMap:
        """The samples on a map, by the markers that define populations."""
        every = len(defining) == len(samples.markers)
        usual = Gaussian("median", scales=None if units is None else units[defining])
        return CohortMap(
            layout=self.layout,
            n_components=min(2, len(samples.names) - 1),
            kernel=usual if self.kernel is None else self.kernel,
            random_state=rng,
            progress=self.progress,
        ).fit({name: each if every else each[:, defining] for name, each in zip(samples.names, samples.cells, strict=True)})

    def _compare(self, design: Design | None, runs: Sequence[Any] | None, rngs: list[np.random.Generator]) -> None:
        """Groups and runs, where they were asked for."""
        found, distances, errors = self.populations_, self.map_.distances_, self.map_.errors_
        test_rng, whole_rng, witness_rng, batch_rng = rngs
        self.differences_: Differences | None = None
        self.whole_: WholeTest | None = None
        self.witness_: Witness | None = None
        self.batches_: BatchCheck | None = None
        if design is not None:
            options: dict[str, Any] = {"fdr": self.fdr, "confidence": self.confidence, "null": self.null}
            self.differences_ = compare(found.counts, found.sizes, design, found.names, **options, rng=test_rng)
            self.whole_ = compare_whole(distances, errors, design, whole_rng)
            self.witness_ = witness_of(found, design, self.fdr, witness_rng)
        if runs is not None and self.batch is not None:
            names, title = self.samples_.names, self.batch
            patients = None if self.block is None else self.samples_.column(self.block)
            self.batches_ = check_batches(distances, errors, names, runs, title, design, self.controls_, patients, batch_rng)

    def _units(self, samples: SampleSet, defining: list[int]) -> Array | None:
        """(d,) what markers are divided by; None for nothing."""
        most = max(1, int(samples.sizes.sum()) // LOOKED_AT)
        some = np.concatenate([each[:: min(most, len(each))] for each in samples.cells])
        if self.scales is None:
            drowned = bandwidth.drowned_column(some[:, defining]) if self.kernel is None else None
            if drowned is not None:
                wide, narrow = (samples.markers[defining[place]] for place in drowned[:2])
                warn(
                    f"marker {wide} spreads {drowned[2]:,.0f} times as far as {narrow}, "
                    "which hardly counts beside it: populations may be missed. scales='robust' counts markers alike"
                )
            return None
        if isinstance(self.scales, str):
            return bandwidth.column_scales(some, rule=_validate.one_of(self.scales, "scales", bandwidth.SCALES))
        units = np.asarray(self.scales, np.float64)
        if units.shape != (len(samples.markers),) or not (np.isfinite(units) & (units > 0)).all():
            raise ValueError(f"scales must be {len(samples.markers)} numbers above 0, one a marker, got {self.scales!r}")
        return units

    def _controls(self, samples: SampleSet) -> list[str | None]:
        """The kind of control that each sample is."""
        if self.control is None:
            return [None] * len(samples.names)
        told = samples.column(self.control)
        kinds = ("control",) * len(told) if self.block is None else samples.column(self.block)
        return [
            str(kind) if each is not None and str(each).strip().lower() in YES else None
            for each, kind in zip(told, kinds, strict=True)
        ]

    def _design(self, samples: SampleSet, controls: list[str | None]) -> Design | None:
        if self.test is None:
            return None
        labels = samples.column(self.test)
        return design_of(
            [None if control is not None else label for label, control in zip(labels, controls, strict=True)],
            self.test,
            block=None if self.block is None else samples.column(self.block),
            covariates={name: samples.column(name) for name in self.covariates},
            batch=None if self.batch is None else samples.column(self.batch),
            first=self.reference,
        )

    def _told(self, samples: SampleSet, design: Design | None) -> tuple[str, ...]:
        notes = [*samples.notes, *(f"{name} is left out: {why}" for name, why in samples.left_out.items())]
        notes += [] if design is None else design.notes
        few = [name for name, size in zip(samples.names, samples.sizes, strict=True) if size < FEW_CELLS]
        if few:
            listed = ", ".join(few[:5]) + (", …" if len(few) > 5 else "")
            notes.append(
                f"samples of fewer than {FEW_CELLS} cells ({listed}) know their shares badly: tests weigh them by that, and on the "
                "map chance alone moves them away from others"
            )
        if design is not None:
            usual = [float(np.median(samples.sizes[design.rows[design.codes == g]])) for g in range(len(design.levels))]
            if max(usual) > UNLIKE * min(usual):
                many, fewest = (design.levels[usual.index(pick(usual))] for pick in (max, min))
                notes.append(
                    f"samples of {many} have {max(usual) / min(usual):.0f} times as many cells as those of {fewest}: of rare "
                    "populations the small ones know little, and what is found of these may be that"
                )
        for stray in self.populations_.strays:
            whose = ", ".join(samples.names[k] for k in stray.samples[:5]) + (", …" if len(stray.samples) > 5 else "")
            notes.append(
                f"{stray.share:.2%} of the cells of {whose} lie beside the {self.populations_.names[stray.population]} of other "
                "samples, of which these have few: counted with them, as if stained otherwise"
            )
        if self.batches_ is not None and self.batches_.confounded:
            warn(self.batches_.notes[0])
        return tuple(notes)

    def __str__(self) -> str:
        if not hasattr(self, "populations_"):
            return repr(self)
        lines = [
            f"{len(self.samples_.names)} samples, {int(self.samples_.sizes.sum()):,} cells, {len(self.samples_.markers)} markers"
        ]
        lines.append(f"{len(self.populations_)} populations on {len(self.populations_.atoms):,} atoms")
        for part in (self.differences_, self.whole_, self.batches_):
            lines += [] if part is None else str(part).splitlines()
        return "\n  ".join(lines)

    def facts(self) -> dict[str, Any]:
        """What was found in plain values, for machines."""
        check_is_fitted(self, "map_")
        found: dict[str, Any] = {
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
        if self.differences_ is not None and self.whole_ is not None:
            found["differences"] = self.differences_.rows()
            found["whole"] = {"share": self.whole_.share, "interval": self.whole_.interval, "p": self.whole_.p_value}
        if self.batches_ is not None:
            whole = self.batches_.whole
            found["batches"] = {
                "share": None if whole is None else whole.share,
                "p": None if whole is None else whole.p_value,
                "confounded": self.batches_.confounded,
                "control_share": self.batches_.control_share,
            }
        return found

    def plot(self, ax: Any = None) -> Any:
        """Draw the map of the samples with their names, coloured by group, with matplotlib."""
        check_is_fitted(self, "map_")
        groups = None if self.test is None else list(self.samples_.table[self.test])
        return self.map_.plot(ax, labels=True, groups=groups)


def check_study(study: Any) -> None:
    """Refuse what is no study, or one that was not fitted."""
    if not isinstance(study, CohortStudy):
        raise TypeError(f"study must be a fitted CohortStudy, got {type(study).__name__}")
    check_is_fitted(study, "map_")
