"""What `pyproject.toml` asks for, read: the requirements of every extra, and their oldest versions as constraints for pip.

`python scripts/requirements.py > build/oldest.txt` writes the constraints of `make test-oldest`, so that they are the lower bounds
that the project states, and cannot be others.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAME = PROJECT["name"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
FOR_THE_PROJECT = ("bench", "docs", "test", "dev")  # extras that its makers need, and no user
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[(?P<extras>[\w,-]+)\])?(?P<bounds>[^;\s]*)$")


def parse(requirement: str) -> re.Match[str]:
    """A requirement in its parts: name, extras and bounds."""
    found = REQUIREMENT.match(requirement)
    if found is None:
        raise ValueError(f"pyproject.toml: a requirement is name[extras]>=version; this one is {requirement!r}")
    return found


def requirements(extra: str | None = None) -> list[str]:
    """What an extra brings beside the core, those of other extras that it names among them; of the core itself without one."""
    brought = []
    for requirement in PROJECT["dependencies"] if extra is None else EXTRAS[extra]:
        parts = parse(requirement)
        if parts["name"] == NAME:
            brought += [each for other in parts["extras"].split(",") for each in requirements(other)]
        else:
            brought.append(requirement)
    return list(dict.fromkeys(brought))


def users_extras() -> list[str]:
    """The extras that are made for users."""
    return [extra for extra in EXTRAS if extra not in FOR_THE_PROJECT]


def oldest() -> dict[str, str]:
    """The oldest version that is allowed of each requirement of the core, of `all` and of what the tests compare with."""
    versions = {}
    for requirement in requirements() + requirements("test"):
        parts = parse(requirement)
        bound = re.fullmatch(r">=([\d.]+)(?:,<[\d.]+)?", parts["bounds"])
        if bound is None:
            raise ValueError(f"pyproject.toml: {requirement!r} should name its oldest version by >=, so that it can be tested")
        if versions.setdefault(parts["name"], bound[1]) != bound[1]:
            raise ValueError(
                f"pyproject.toml: {parts['name']} is asked for with two oldest versions, {versions[parts['name']]} and {bound[1]}"
            )
    return versions


if __name__ == "__main__":
    sys.stdout.write("".join(f"{name}=={version}\n" for name, version in oldest().items()))
