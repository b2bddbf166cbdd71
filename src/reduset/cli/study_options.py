"""Options of `reduset cohort` that make it a study: tables of a lab, cleaning, groups to compare, and what is written of it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

# written out, since importing them would make help wait for the compiler; a test compares
STEPS = ("non-finite", "margin", "doublets", "time")
FDR = 0.05
ALL, NONE = "all", "none"


@dataclass(kw_only=True)
class Studying:
    """What a study is asked for; none of it for a map alone."""

    panel: Annotated[
        str | None,
        typer.Option(
            "--panel",
            help="Which channel is which marker: a table of fcs_colname, antigen and marker_class (type, state or none), as CSV or "
            "Excel (panel.xlsx#Sheet).",
        ),
    ] = None
    samples: Annotated[
        str | None,
        typer.Option("--samples", help="The samples: a table of file_name, sample_id, condition, patient_id and others, likewise."),
    ] = None
    test: Annotated[str | None, typer.Option("--test", help="Which populations differ between the groups of this column?")] = None
    block: Annotated[
        str | None, typer.Option("--block", help="Compare within the patients of this column, as pairs are compared.")
    ] = None
    batch: Annotated[
        str | None, typer.Option("--batch", help="The column of runs: looked at, and held fixed in the comparison.")
    ] = None
    covariates: Annotated[
        list[str] | None, typer.Option("--covariate", help="A further column that is held fixed: age, sex. May be repeated.")
    ] = None
    control: Annotated[
        str | None, typer.Option("--control", help="The column that says (yes) which samples are controls, the same in every run.")
    ] = None
    reference: Annotated[
        str | None,
        typer.Option("--reference", help="The group that others are compared with; if not given the first by alphabet."),
    ] = None
    fdr: Annotated[float, typer.Option("--fdr", help="The false discovery rate over populations.")] = FDR
    n_atoms: Annotated[int | None, typer.Option("--atoms", help="The finest populations (1,000).")] = None
    n_populations: Annotated[
        int | None, typer.Option("--populations", help="How many populations; as many as have valleys around them if not given.")
    ] = None
    clean: Annotated[
        str,
        typer.Option("--clean", help=f"Which events to take out: {', '.join(STEPS)}, separated by commas, {ALL} or {NONE}."),
    ] = ALL
    gate: Annotated[
        str | None,
        typer.Option("--gate", help="Only cells within a gate: a FlowJo workspace (.wsp), GatingML (.xml), or membership tables."),
    ] = None
    population: Annotated[
        str | None, typer.Option("--gate-name", help="Which gate of it, by name or path, such as Cells/Singlets.")
    ] = None
    channels: Annotated[
        str, typer.Option("--channels", help="Files whose panels differ: common takes the markers of all, same refuses them.")
    ] = "common"
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", help="Leave out samples that cannot be read or have no cells; the report names them."),
    ] = False
    tables: Annotated[
        Path | None, typer.Option("--tables", help="A folder for CSV tables: populations, shares, differences, cleaning, …")
    ] = None
    cells: Annotated[
        Path | None, typer.Option("--cells", help="An .h5ad of the cells that stand for all others, with weights and populations.")
    ] = None
    fcs: Annotated[Path | None, typer.Option("--fcs", help="These cells as one .fcs file, or a folder of them, one a sample.")] = (
        None
    )

    def study_given(self) -> list[str]:
        """The options of a study that were given."""
        usual = {each.name: each.default for each in fields(Studying)}
        return [name for name, default in usual.items() if getattr(self, name) not in (default, [])]

    def steps(self) -> tuple[str, ...]:
        """The steps of cleaning that were asked for."""
        if self.clean in (ALL, NONE):
            return STEPS if self.clean == ALL else ()
        return tuple(step.strip() for step in self.clean.split(",") if step.strip())
