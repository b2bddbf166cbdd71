"""The public surface is what was recorded, and what differs from the last release is in the changelog."""

from __future__ import annotations

import dataclasses

import pytest

import surface
from surface import ROOT, members, mentions, sections, signature, untold

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_record_is_the_surface():
    recorded, there = surface.RECORD.read_text(encoding="utf-8").splitlines(), surface.surface()
    came, went = sorted(set(there) - set(recorded)), sorted(set(recorded) - set(there))
    advice = "the public surface changed: run `make surface`, and write a line in CHANGELOG.md"
    assert (came, went) == ([], []), advice
    assert recorded == sorted(recorded)


def test_the_changelog_tells_what_came_changed_and_went_since_the_last_release():
    version, before = surface.released()
    first, texts = sections(CHANGELOG)
    now = surface.RECORD.read_text(encoding="utf-8").splitlines()
    if first == version:  # nothing may change until a new section is opened
        texts = {}
    assert untold(before, now, texts) == [], f"name these in CHANGELOG.md, in the section after {version or 'none'}"


BEFORE = ["reduset.A(x)", "reduset.A.go(self)", "reduset.f(x)", "reduset.room.A = reduset.A"]


@pytest.mark.parametrize(
    ("now", "texts", "faults"),
    [
        (BEFORE, {}, []),
        ([*BEFORE, "reduset.g(x)"], {}, ["reduset.g came: reduset.g(x)"]),
        ([*BEFORE, "reduset.g(x)"], {"Added": "a word on g"}, ["reduset.g came: reduset.g(x)"]),
        ([*BEFORE, "reduset.g(x)"], {"Added": "`g(x)`"}, []),
        ([*BEFORE, "reduset.A.stop(self)"], {"Added": "`A`"}, ["reduset.A.stop came: reduset.A.stop(self)"]),
        ([*BEFORE, "reduset.A.stop(self)"], {"Changed": "`A.stop`"}, []),
        ([*BEFORE, "reduset.B()", "reduset.B.go(self)"], {"Added": "`B`"}, []),
        ([*BEFORE[:2], "reduset.f(x, y=1)", BEFORE[3]], {}, ["reduset.f changed: reduset.f(x, y=1)"]),
        ([*BEFORE[:2], "reduset.f(x, y=1)", BEFORE[3]], {"Changed": "`f` takes `y`"}, []),
        (BEFORE[:2] + BEFORE[3:], {"Added": "`f`"}, ["reduset.f went: say so under Removed or Moved"]),
        (BEFORE[:2] + BEFORE[3:], {"Removed": "`reduset.f`"}, []),
        (BEFORE[2:3], {"Removed": "`A`"}, []),
    ],
)
def test_what_is_not_told_is_found(now, texts, faults):
    assert untold(BEFORE, now, texts) == faults


def test_the_first_section_is_read_by_its_headings():
    newer = "## [2.0] - unreleased\n\nx\n\n### Added\n\n- `a`\n\n### Fixed\n\n- b\n\n"
    version, texts = sections(f"# Changes\n\n{newer}## [1.0] - day\n\n### Added\n\n- `c`\n")
    assert version == "2.0"
    assert {name: text.strip() for name, text in texts.items()} == {"Added": "- `a`", "Fixed": "- b"}
    with pytest.raises(ValueError, match="needs a section"):
        sections("# Changes\n")


def test_names_are_mentioned_as_words_in_code():
    assert mentions("see `compress(X, size=3)`", "reduset.compress")
    assert not mentions("compress", "reduset.compress")
    assert not mentions("`compressed`", "reduset.compress")


def test_signatures_have_names_kinds_and_defaults_but_no_types():
    def plain(a: int, b: float = 0.5, *rest: str, c: bool, d: str = "x", **others: int) -> None: ...
    def bare(a, *, b=None): ...

    assert signature(plain) == "(a, b=0.5, *rest, c, d='x', **others)"
    assert signature(bare) == "(a, *, b=None)"
    assert signature(3) == ""


def test_members_are_those_that_reduset_defines():
    class Base:
        def theirs(self): ...

    class Ours(Base):
        x: int
        y = 2

        def go(self, n=1): ...
        @property
        def much(self): ...
        @classmethod
        def make(cls, n): ...
        def set_fit_request(self): ...
        def _hidden(self): ...

    Ours.__module__ = "reduset.mean"
    dataclasses.dataclass(Ours)
    assert list(members(Ours)) == ["go(self, n=1)", "make(n)", "much", "x", "y"]
