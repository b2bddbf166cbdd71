"""`reduset cohort` as a study: a folder of files, a panel and a table of samples in; populations and what differs out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import DONE
from reduset.cli.request import origin

if TYPE_CHECKING:
    from reduset.cli.cohort import CohortCommand
    from reduset.cytometry import CohortStudy, SampleSet

H5AD, FCS = frozenset({".h5ad"}), frozenset({".fcs"})
# of a map alone, with the value that says nothing
MAP_ALONE = {
    "group_column": ("--group-column", None),
    "groups": ("--groups", None),
    "tol": ("--tol", None),
    "size": ("--size", None),
    "distance": ("--distance", "mmd"),
    "pieces": ("--pieces", None),
    "whiten": ("--whiten", False),
    "columns": ("--columns", None),
    "key": ("--key", None),
    "encode": ("--encode", None),
}


def run_study(request: CohortCommand) -> int:
    """Read, compare, write; the exit code."""
    written = _check(request)
    from reduset._messages import printable
    from reduset.cytometry import CohortStudy, read_cohort
    from reduset.kernels import Gaussian

    gate = None if request.gate is None else (request.gate, request.population)
    with messages.progress(request.silent) as shown:
        samples = read_cohort(
            request.data[0] if len(request.data) == 1 else request.data,
            panel=request.panel,
            samples=request.samples,
            transform=o.transform_of(request.transform),
            compensate=request.compensate,
            channels=request.channels,
            clean=request.steps(),
            gate=gate,
            keep_going=request.keep_going,
            missing=request.missing,
            progress=shown,
        )
        study = CohortStudy(
            test=request.test,
            block=request.block,
            batch=request.batch,
            covariates=tuple(request.covariates or ()),
            control=request.control,
            reference=request.reference,
            n_atoms=request.n_atoms,
            n_populations=request.n_populations,
            fdr=request.fdr,
            scales=_scales(request, samples),
            kernel=None if request.bandwidth is None else Gaussian(o.number_or_rule(request.bandwidth)),
            layout=request.layout or "mds",
            random_state=request.seed,
            progress=shown,
        ).fit(samples)
    written += _write(request, study)
    facts = {**study.facts(), "written": written}
    lines = [printable(line) for line in str(study).splitlines()]
    messages.answer(request, facts, *lines, *messages.ending(study.notes_, written))
    return DONE


def _scales(request: CohortCommand, samples: SampleSet) -> Any:
    """What markers are divided by: nothing where transforms have brought them to one unit."""
    if request.scales is None:
        return None if samples.scales else "robust"
    return o.scales_of(request.scales, False, False)


def _check(request: CohortCommand) -> list[Path]:
    """Refuse what cannot be done before any work is; the files that will be written."""
    o.scales_of(request.scales, False, False)
    given = [f"--{name.replace('_', '-')}" for name in request.study_given()]
    for name, (option, nothing) in MAP_ALONE.items():
        if getattr(request, name) not in (nothing, []):
            raise ValueError(
                f"{option} is for a map alone, and {given[0] if given else '-o .h5ad'} asks for a study; leave one out"
            )
    if request.test is not None and request.samples is None:
        raise ValueError(f"--test {request.test} needs --samples, the table that has this column")
    if request.population is not None and request.gate is None:
        raise ValueError(f"--gate-name {request.population} needs --gate, the file that has it")
    tables = [Path(each.partition("#")[0]) for each in (request.panel, request.samples, request.gate) if each is not None]
    inputs = [*request.data, *tables]
    beside = [each for each in inputs if not each.is_dir()]  # no page and no .h5ad is taken for a sample next time
    one = request.fcs if request.fcs is not None and request.fcs.suffix.lower() in FCS else None
    written = targets.check_all(
        (request.output, H5AD, beside), (request.report, targets.HTML, beside), (request.cells, H5AD, beside), (one, FCS, inputs)
    )
    for folder in (request.tables, None if one is not None else request.fcs):
        if folder is not None:
            targets.check_folder(folder, inputs)
    if not written and request.tables is None and request.fcs is None and not request.json:
        raise ValueError("nothing would be kept: give --report for a page to look at, -o for an .h5ad, --tables, or --json")
    return written


def _write(request: CohortCommand, study: CohortStudy) -> list[Path]:
    """Write what was asked for, and say which files are in folders."""
    from reduset import _archive

    more: list[Any] = []
    with _archive.together():
        if request.output is not None or request.cells is not None:
            from reduset.anndata import write_annotated
            from reduset.cytometry import cells_to_anndata, to_anndata

            if request.output is not None:
                write_annotated(request.output, to_anndata(study))
            if request.cells is not None:
                write_annotated(request.cells, cells_to_anndata(study))
        if request.tables is not None:
            from reduset.cytometry import write_tables

            more += write_tables(request.tables, study)
        if request.fcs is not None:
            from reduset.cytometry import write_sketch_fcs

            made = write_sketch_fcs(request.fcs, study)
            more += [each for each in made if each != request.fcs]
        if request.report is not None:
            from reduset.cytometry import write_report

            about = origin(study.samples_.sources, study.notes_)
            write_report(request.report, study, about=about)
    return [Path(each) for each in more]
