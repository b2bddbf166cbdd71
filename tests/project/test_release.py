"""A release: files that other services read are in step with the project, and the wheel is looked at as it should be."""

from __future__ import annotations

import re
import tomllib
import zipfile

import pytest
import yaml

import reduset
import requirements
import tagged
import wheel
import wheel_doors
from long_description import for_an_index
from requirements import EXTRAS, PROJECT, ROOT

PYTHONS = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", each)]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
TARGETS = set(re.search(r"^\.PHONY:(.*)$", MAKEFILE, re.MULTILINE)[1].split())
RECIPE = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
CALLED = {"ray": "ray-data", "matplotlib": "matplotlib-base"}  # as conda calls it


def name(path):
    return path.name


def loaded(path):
    read = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read | {"on": read.pop(True)} if True in read else read  # YAML reads the word on as true


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


# versions


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    version, date = re.search(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE).groups()
    assert {citation["version"], version, RECIPE["context"]["version"], tagged.version()} == {reduset.__version__}
    state = "unreleased" if date == "unreleased" else "of " + date
    assert f"Version {version.rpartition('.')[0]}, {state}" in (ROOT / "README.md").read_text()


def test_the_pythons_are_the_same_everywhere():
    assert sorted(PYTHONS, key=lambda version: int(version.split(".")[1])) == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    test = loaded(ROOT / ".github" / "workflows" / "test.yml")
    assert test["jobs"]["packages"]["strategy"]["matrix"]["python-version"] == PYTHONS
    assert test["jobs"]["oldest"]["steps"][1]["with"]["python-version"] == PYTHONS[0]
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}." in (ROOT / "README.md").read_text()
    matrix = (ROOT / "docs" / "releasing.md").read_text().split("## Tested versions")[1].split("\n## ")[0]
    assert all(re.search(rf"^\| {re.escape(version)}\.\d+ \|", matrix, re.MULTILINE) for version in PYTHONS)


def test_a_tag_is_refused_that_other_files_do_not_know():
    changelog = "## [1.0.0] - 2030-01-31\n"
    assert tagged.faults("v1.0.0", "1.0.0", "version: 1.0.0\n", changelog) == []
    assert tagged.faults("v1.0.1", "1.0.0", "version: 1.0.0\n", changelog) == ["the tag says 1.0.1, the source 1.0.0"]
    assert tagged.faults("v1.0.0", "1.0.0", "version: 0.9\n", changelog) == ["CITATION.cff says 0.9, the source 1.0.0"]
    assert len(tagged.faults("v1.0.0", "1.0.0", "version: 1.0.0\n", "## [1.0.0] - unreleased\n")) == 1
    assert len(tagged.faults("v1.0.0", "1.0.0", "", "")) == 3


# workflows, forms and the site's builder


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_workflows_call_what_exists_and_pin_what_they_use(path):
    workflow = loaded(path)
    assert {"name", "on", "permissions", "jobs"} <= set(workflow)
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in path.read_text()  # nothing here needs one
    for step in steps(workflow):
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step["uses"])
            continue
        called = step["run"]
        assert set(re.findall(r"\bmake ([\w-]+)", called)) <= TARGETS, called
        assert all((ROOT / each).exists() for each in re.findall(r"\b(?:scripts|tests)/[\w./-]+", called)), called
        assert set(re.findall(r"\.\[(\w+)\]", called)) <= set(EXTRAS), called


def test_only_publishing_may_ask_for_an_identity():
    release = loaded(ROOT / ".github" / "workflows" / "release.yml")
    assert release["on"] == {"push": {"tags": ["v*"]}}
    assert {job: each.get("permissions") for job, each in release["jobs"].items()} == {
        "build": None,
        "publish": {"id-token": "write"},
    }
    assert release["jobs"]["publish"]["needs"] == "build"
    assert not [
        step for step in release["jobs"]["publish"]["steps"] if "run" in step
    ]  # code of ours never runs beside the identity


def test_the_site_is_built_elsewhere_as_make_builds_it():
    settings = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())
    assert settings["version"] == 2
    assert settings["build"]["tools"]["python"] in PYTHONS
    (ours,) = re.findall(r"\$\(BIN\)/(sphinx-build .*)build/site\n", (ROOT / "Makefile").read_text())
    assert settings["build"]["commands"][-1] == f".venv/bin/{ours}$READTHEDOCS_OUTPUT/html"
    assert "docs" in EXTRAS


@pytest.mark.parametrize("path", FORMS, ids=name)
def test_forms_ask_with_names_of_their_own(path):
    form = loaded(path)
    assert {"name", "description", "body"} <= set(form)
    ids = [each["id"] for each in form["body"]]
    assert len(set(ids)) == len(ids)
    assert all(each["attributes"]["label"] for each in form["body"])
    assert any(each.get("validations", {}).get("required") for each in form["body"])


def test_the_schemas_are_checked_for_every_file_that_has_one():
    (recipe,) = re.findall(r"^schemas:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for path in FORMS:
        assert path.relative_to(ROOT).as_posix() in recipe
    assert {"config.yml", ".readthedocs.yaml", "CITATION.cff"} <= {word.rpartition("/")[2] for word in recipe.split()}


# the recipe


def conda(requirement):
    parts = requirements.parse(requirement)
    return f"{CALLED.get(parts['name'], parts['name'])} {parts['bounds']}"


def test_the_recipe_asks_for_what_the_project_asks_for():
    python, core, command = (
        f"python {PROJECT['requires-python']}",
        requirements.requirements(),
        requirements.requirements("command"),
    )
    assert RECIPE["requirements"]["run"] == [python, *map(conda, core + command)]
    others = [each for each in requirements.requirements("all") if each not in core + command]
    assert RECIPE["requirements"]["run_constraints"] == list(map(conda, others))
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    assert RECIPE["requirements"]["host"] == [python, "pip", *build["requires"]]


def test_the_recipe_says_what_the_project_says():
    assert RECIPE["package"] == {"name": PROJECT["name"], "version": "${{ version }}"}
    assert RECIPE["build"]["noarch"] == "python"
    assert RECIPE["build"]["python"]["entry_points"] == [f"{key} = {value}" for key, value in PROJECT["scripts"].items()]
    assert (RECIPE["about"]["summary"], RECIPE["about"]["license"]) == (PROJECT["description"], PROJECT["license"])
    assert (ROOT / RECIPE["about"]["license_file"]).exists()


# requirements, oldest and of extras


def test_the_oldest_versions_are_the_stated_bounds():
    oldest = requirements.oldest()
    assert {"numpy", "scipy", "scikit-learn", "numba", "pyarrow", "anndata", "pandas", "pytest"} <= set(oldest)
    for requirement in requirements.requirements("all"):
        parts = requirements.parse(requirement)
        assert parts["bounds"] == f">={oldest[parts['name']]}"


@pytest.mark.parametrize(
    ("core", "message"),
    [
        (["a"], "should name its oldest version"),
        (["a>=1", "a>=2"], "two oldest versions, 1 and 2"),
        (["a >= 1"], "a requirement is"),
    ],
)
def test_requirements_that_cannot_be_tested_are_refused(monkeypatch, core, message):
    monkeypatch.setitem(PROJECT, "dependencies", core)
    with pytest.raises(ValueError, match=message):
        requirements.oldest()


def test_every_extra_of_users_has_a_door():
    assert set(wheel_doors.DOORS) == set(requirements.users_extras()) - {"all", "demo"}
    for extra, inside in wheel.settings():
        assert set(inside) <= set(wheel_doors.DOORS)
        assert extra == "all" or inside == [extra]
    assert {extra for extra, _ in wheel.settings()} == set(requirements.users_extras()) - {"demo", "fcs", "gpu"}


def test_one_sentence_names_one_extra():
    assert wheel_doors.named("plots need matplotlib: pip install 'reduset[plots]'") == "plots"
    for wrong in ("no module named matplotlib", "two\nlines: pip install 'reduset[plots]'", "pip install matplotlib"):
        assert wheel_doors.named(wrong) is None


# the wheel


def test_every_kind_of_file_of_the_package_is_known():
    kinds = {path.suffix for path in wheel.PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert kinds == set(wheel.SUFFIXES)


def test_a_wheel_has_every_file_and_nothing_else(tmp_path):
    whole = sorted(wheel.expected("9.9"))
    assert {"reduset/py.typed", "reduset/report/page.css", "reduset/_engine/cuda/sums.cu"} <= set(whole)
    assert not [each for each in whole if "__pycache__" in each or "test" in each.split("/")[0]]

    def fault(names, file="reduset-9.9-py3-none-any.whl"):
        with zipfile.ZipFile(tmp_path / file, "w") as archive:
            for each in names:
                archive.writestr(each, "")
        return wheel.fault_of_contents(tmp_path / file)

    assert fault(whole) is None
    without = [each for each in whole if each != "reduset/py.typed"]
    assert fault([*without, "tests/x.py"]) == "reduset-9.9-py3-none-any.whl lacks reduset/py.typed and has beside tests/x.py"
    assert "for every machine" in fault(whole, "reduset-9.9-cp311-cp311-linux_x86_64.whl")


def test_the_readmes_example_is_found_and_compared_up_to_numbers():
    code, shown = wheel.readme_example((ROOT / "README.md").read_text(encoding="utf-8"))
    assert "sketch(X, 1000, rng=0)" in code
    assert wheel.alike(shown.replace("1,000", "1,001"), shown)
    assert not wheel.alike(shown.replace("radius", "width"), shown)
    with pytest.raises(ValueError, match="there is none"):
        wheel.readme_example("nothing")


def test_a_package_index_gets_no_link_that_leads_nowhere():
    page = for_an_index((ROOT / "README.md").read_text(encoding="utf-8"))
    assert "](docs/" not in page
    assert "![" not in page
    assert "how to cite" in page
    text = "![a](b.png)\n\n[c](docs/d.md#e), [f](https://g.h), [i](#j)\n"
    assert for_an_index(text) == "\n\nc, [f](https://g.h), [i](#j)\n"
    there = "![a](https://x.y/z/raw/HEAD/b.png)\n\n[c](https://x.y/z/blob/HEAD/docs/d.md#e), [f](https://g.h), [i](#j)\n"
    assert for_an_index(text, "https://x.y/z/") == there


def test_the_source_archive_has_what_the_tests_of_the_rooms_read():
    parts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert {"/src", "/tests", "/scripts", "/docs/*.md", "/Makefile"} <= set(parts["include"])
    assert parts["exclude"] == ["/tests/project"]
    for folder in ("tests/support", "tests/cli", "tests/io", "tests/certificate"):
        assert not re.findall(r"\"(benchmarks|examples|pictures)\"", "".join(p.read_text() for p in (ROOT / folder).glob("*.py")))
