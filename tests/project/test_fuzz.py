"""Files made wrong at random are read or refused, and nothing else; and the fuzzer sees what is neither."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fuzz
from file_kinds import SUFFIXES
from fuzz_kinds import KINDS
from reduset.io.registry import formats

pytestmark = pytest.mark.slow


def test_a_few_files_of_every_kind_are_read_or_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "KEPT", tmp_path)
    files, counts, failures = fuzz.run(600.0, 19, 0, 12 * len(KINDS), list(KINDS))
    assert not failures
    assert files == sum(counts.values()) == 12 * len(KINDS)
    for kind in KINDS:
        assert counts[f"{kind} refused"] + counts[f"{kind} read"] == 12
    assert sum(counts[f"{kind} read"] for kind in KINDS) > 10  # some faults hurt nobody
    assert sum(counts[f"{kind} refused"] for kind in KINDS) > 10


def test_every_format_is_among_the_kinds():
    missing = [each.title for each in formats() if not {suffix[1:] for suffix in each.suffixes} & set(SUFFIXES)]
    assert not missing


FAULTS = {
    "crash": "os.kill(os.getpid(), 11)",
    "wait": "time.sleep(60)",
    "exception": "{}['x']",
    "silence": "raise ValueError",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_crashes_waits_and_odd_exceptions_are_seen(tmp_path, fault):
    """A reader with a fault that shows at the second file."""
    script = f"""
import json, os, sys, time, types
sys.path[:0] = [{str(Path(fuzz.__file__).parent)!r}]
import fuzz
from pathlib import Path
seen = []
def use(path, rng):
    if rng is not None:
        seen.append(path)
        if len(seen) == 2:
            {FAULTS[fault]}
sys.modules["fuzz_kinds"] = kinds_ = types.ModuleType("fuzz_kinds")
kinds_.KINDS = {{"odd": ("csv", lambda path: path.write_text("a"), lambda data, rng: data, use)}}
fuzz.PATIENCE, fuzz.KEPT = 1.0, Path({str(tmp_path)!r})
if sys.argv[1:2] == ["--child"]:
    where, seed, first, count, kinds, until = sys.argv[2:]
    fuzz.child(Path(where), int(seed), int(first), int(count), kinds.split(","), float(until))
else:
    fuzz.__file__ = __file__
    print(json.dumps(fuzz.run(60.0, 1, 0, 3, ["odd"])))
"""
    (tmp_path / "faulty.py").write_text(script)
    ended = subprocess.run([sys.executable, str(tmp_path / "faulty.py")], capture_output=True, text=True, check=True)
    files, _, failures = json.loads(ended.stdout.splitlines()[-1])
    assert files == 3
    assert [Path(failure["failed"]).name for failure in failures][:1] == ["odd-1-1.csv"]
    words = {"crash": "code -11", "wait": "no end after 1 s", "exception": "KeyError: 'x'", "silence": "without a word"}
    assert words[fault] in failures[0]["what"]
