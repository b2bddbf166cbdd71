"""`reduset study`: from files, a panel and a table of samples to populations and their differences between groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reduset.cli import messages, targets
from reduset.cli import options as o
from reduset.cli.app import command

if TYPE_CHECKING:
    from reduset.cytometry import CohortStudy

ALL, NONE = "all", "none"
H5AD, FCS = frozenset({".h5ad"}), frozenset({".fcs"})


@command(
    "folder/ --panel panel.csv --samples samples.csv --test condition --block patient_id --report study.html -o study.h5ad",
    "reduset.cytometry:read_cohort",
    "reduset.cytometry:find_populations",
    "reduset.cytometry:CohortStudy",
)
class StudyCommand(o.Seeded, o.Writing):
    """Compare the populations of cells between groups of patients.

    Files of cells, one for each sample, are cleaned and put on common scales. Samples are the units of every test, never cells. For
    distances between samples and a map alone, use reduset cohort.

    Parameters
    ----------
    output : An .h5ad with one row for each sample: proportions, map, populations, differences.
    panel : The markers of the channels: a table of fcs_colname, antigen and marker_class (type, state or none), as CSV or Excel
        (panel.xlsx#Sheet).
    samples : The samples: a table of file_name, sample_id, condition, patient_id, …, as CSV or Excel.
    test : The column whose groups are compared; by default none are.
    block : The column of patients: groups are compared within patients, as in paired tests.
    batch : The column of runs: examined, and held fixed in the comparison.
    covariate : A further column that is held fixed: age, sex. May be repeated.
    control : The column that marks (yes) the control samples, the same in every run.
    clean : Steps of cleaning: {cleaning}, separated by commas, all or none.
    gate : Only cells within a gate: a FlowJo workspace (.wsp), GatingML (.xml), or a membership table.
    gate_name : The gate of that file, by name or path, such as Cells/Singlets.
    keep_going : Omit samples that cannot be read or have no cells; the report names them.
    transform : asinh:150 (arcsinh of x/150), logicle, log or none, for all columns; NAME=asinh:5 for one. By default channels of
        FCS files are transformed: logicle for fluorescence, asinh:5 for mass cytometry.
    bandwidth : Of the distances between samples: a number, or a rule; by default median.
    tables : A folder for CSV tables: populations, proportions, differences, cleaning, …
    cells : An .h5ad of the cells that represent all others, with weights and populations.
    fcs : These cells as one .fcs file, or a folder of one per sample.
    """

    data: o.Data
    output: Path | None = None
    report: o.Report = None
    panel: str | None = None
    samples: str | None = None
    test: str | None = None
    block: str | None = None
    batch: str | None = None
    covariate: list[str] | None = None
    control: str | None = None
    reference: str | None = None
    fdr: float | None = None
    atoms: int | None = None
    populations: int | None = None
    clean: str = ALL
    gate: str | None = None
    gate_name: str | None = None
    channels: str = "common"
    keep_going: bool = False
    transform: list[str] | None = None
    compensate: bool = True
    missing: str = "refuse"
    layout: str = "mds"
    bandwidth: str | None = None
    scales: str | None = None
    tables: Path | None = None
    cells: Path | None = None
    fcs: Path | None = None

    def run(self) -> None:
        """Run it."""
        written = self._check()
        study = self._study()
        written += self._write(study)
        facts = study.facts()
        messages.answer(self, str(study), facts.pop("notes"), written, **facts)

    def _check(self) -> list[Path]:
        """Raise an error for invalid options before any work; the files that will be written."""
        o.scales_of(self.scales, False, False)
        if self.test is not None and self.samples is None:
            raise ValueError(f"--test {self.test} needs --samples, the table that has this column")
        if self.gate_name is not None and self.gate is None:
            raise ValueError(f"--gate-name {self.gate_name} needs --gate, the file that has it")
        tables = [Path(name.partition("#")[0]) for name in (self.panel, self.samples, self.gate) if name is not None]
        inputs = [*self.data, *tables]
        files = [path for path in inputs if not path.is_dir()]  # a report is allowed in a folder of samples
        one = self.fcs if self.fcs is not None and self.fcs.suffix.lower() in FCS else None
        written = targets.check_all(
            (self.output, H5AD, files), (self.report, targets.HTML, files), (self.cells, H5AD, files), (one, FCS, inputs)
        )
        for folder in (self.tables, None if one is not None else self.fcs):
            if folder is not None:
                targets.check_location(folder, inputs, is_folder=True)
        if not written and self.tables is None and self.fcs is None and not self.json:
            raise ValueError("no output is set: give --report for a report, -o for an .h5ad, --tables, or --json")
        return written

    def _study(self) -> CohortStudy:
        from reduset.cytometry import CohortStudy, read_cohort
        from reduset.kernels import Gaussian

        steps = tuple(step.strip() for step in self.clean.split(",") if step.strip() and self.clean != NONE)
        cleaning: dict[str, Any] = {} if self.clean == ALL else {"clean": steps}
        samples = read_cohort(
            self.data[0] if len(self.data) == 1 else self.data,
            **self.given("panel", "samples", "compensate", "channels", "keep_going", "missing"),
            **cleaning,
            transform=o.transform_of(self.transform),
            gate=None if self.gate is None else (self.gate, self.gate_name),
            progress=self.shows_progress,
        )
        units: Any = None if samples.scales else "robust"  # transformed markers have one unit
        return CohortStudy(
            **self.given("test", "block", "batch", "control", "reference", "layout", "fdr"),
            covariates=tuple(self.covariate or ()),
            n_atoms=self.atoms,
            n_populations=self.populations,
            scales=units if self.scales is None else o.scales_of(self.scales, False, False),
            kernel=None if self.bandwidth is None else Gaussian(o.number_or_rule(self.bandwidth)),
            random_state=self.seed,
            progress=self.shows_progress,
        ).fit(samples)

    def _write(self, study: CohortStudy) -> list[Path]:
        """Write all outputs, or none; the files in folders."""
        from reduset import _archive, cytometry
        from reduset.anndata import write_annotated

        more: list[Any] = []
        with _archive.together():
            if self.output is not None:
                write_annotated(self.output, cytometry.to_anndata(study))
            if self.cells is not None:
                write_annotated(self.cells, cytometry.cells_to_anndata(study))
            if self.tables is not None:
                more += cytometry.write_tables(self.tables, study)
            if self.fcs is not None:
                more += [path for path in cytometry.write_sketch_fcs(self.fcs, study) if path != self.fcs]
            if self.report is not None:
                cytometry.write_report(self.report, study, about=messages.origin(study.samples_.sources, study.notes_))
        return [Path(path) for path in more]
