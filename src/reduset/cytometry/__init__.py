"""Cytometry studies: files of many samples, their populations, and which populations differ between groups of patients.

From files to samples: `read_cohort` (`reading`) reads, cleans and gates the files, with a panel and a table of samples.
From samples to results: `CohortStudy` (`study`) finds populations (`populations`), computes a map of the samples (`reduset.cohort`)
and compares groups (`comparing`). From results to files: tables, FCS files, AnnData and a report.

May import: the public names of all packages but `cli`.
"""

from reduset.cytometry.annotated import cells_to_anndata, to_anndata
from reduset.cytometry.cleaning import STEPS
from reduset.cytometry.clusters import ClusterDifferences
from reduset.cytometry.comparing import Differences, compare
from reduset.cytometry.design import Design, DesignError, design_of
from reduset.cytometry.distance_tests import WholeTest, compare_whole
from reduset.cytometry.figures import DifferencesDisplay, PopulationDisplay
from reduset.cytometry.markers import Panel, PanelMarker, read_panel
from reduset.cytometry.populations import Populations, find_populations
from reduset.cytometry.reading import read_cohort
from reduset.cytometry.report import write_report
from reduset.cytometry.samples import SampleSet
from reduset.cytometry.study import CohortStudy
from reduset.cytometry.writing import write_sketch_fcs, write_tables

__all__ = [
    "ClusterDifferences",
    "CohortStudy",
    "Design",
    "DesignError",
    "Differences",
    "DifferencesDisplay",
    "Panel",
    "PanelMarker",
    "PopulationDisplay",
    "Populations",
    "SampleSet",
    "WholeTest",
    "cells_to_anndata",
    "compare",
    "compare_whole",
    "design_of",
    "find_populations",
    "read_cohort",
    "read_panel",
    "to_anndata",
    "write_report",
    "write_sketch_fcs",
    "write_tables",
]
