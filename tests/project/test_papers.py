"""The last section of docs/mathematics.md: it lists every item of the five papers, and everything that it names exists."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII")


def numbered(name, count, numerals=None):
    return {f"{name} {numerals[k] if numerals else k + 1}" for k in range(count)}


# number of equations, and the other items by name
ITEMS = {
    "2017": (
        5,
        numbered("Definition", 3)
        | {"Lemma 1", "Theorem 1"}
        | numbered("Corollary", 2)
        | numbered("Figure", 6)
        | numbered("Table", 6, ROMAN),
    ),
    "2014": (8, {"Theorem 1", "Algorithm 1", "Table 1", "Figure 1"}),
    "2010": (43, {"Proposition 1", "Algorithm 1"} | numbered("Lemma", 2) | numbered("Figure", 3) | numbered("Table", 8, ROMAN)),
    "2013": (24, numbered("Algorithm", 2) | {f"Theorem 5.{k}" for k in range(1, 5)} | numbered("Figure", 8) | numbered("Table", 2)),
    "2016": (10, {"Table 1", "Theory"} | numbered("Figure", 6)),
}


def rows_of(paper):
    """The rows of the table of one paper, as lists of cells."""
    page = (ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    section = page.split("## Every item of the papers")[1].split(f"### {paper}\n")[1].split("\n### ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def items_of(cell):
    """The items that a cell names: "(3)–(5), Table I" is the equations 3, 4 and 5, and a table."""
    found = []
    for part in cell.split(", "):
        equations = re.fullmatch(r"\((\d+)\)(?:–\((\d+)\))?", part)
        if equations:
            found += [f"({k})" for k in range(int(equations[1]), int(equations[2] or equations[1]) + 1)]
        else:
            found.append(part)
    return found


@functools.cache
def names_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize("paper", ITEMS)
def test_every_item_of_a_paper_is_listed_once(paper):
    equations, others = ITEMS[paper]
    listed = [item for row in rows_of(paper) for item in items_of(row[0])]
    assert sorted(listed) == sorted({f"({k + 1})" for k in range(equations)} | others)


@pytest.mark.parametrize("paper", ITEMS)
def test_everything_that_a_row_names_exists(paper):
    for row in rows_of(paper):
        item, library, evidence, _ = row  # the last cell states the differences
        references = re.findall(r"`([^`]+)`", library)
        assert references or "not in the library" in library or library == "notation", item
        for reference in references:
            path, _, names = reference.partition(": ")
            assert names, (item, reference)
            assert set(names.split(", ")) <= names_in(f"src/reduset/{path}"), (item, reference)
        references = re.findall(r"`([^`]+)`", evidence)
        assert references or library == "notation" or "not available" in evidence, item
        for reference in references:
            path, _, names = reference.partition(": ")
            if path.startswith("tests/"):
                assert names, (item, reference)
                assert set(names.split(", ")) <= names_in(path), (item, reference)
            else:
                folder, name = path.split("/")
                assert (ROOT / "benchmarks" / f"{path}.py").exists(), (item, reference)
                assert (ROOT / "benchmarks" / folder / "results" / f"{name}.json").exists(), (item, reference)
