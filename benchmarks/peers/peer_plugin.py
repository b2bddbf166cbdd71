"""A plugin of pytest that replaces classes by stand-ins before a peer's tests import them, and records the results (`peer_suites`).

The environment variable ``PEER_SUITE`` is a JSON object: ``replaces`` maps a dotted name of the peer to ``module:name`` of the
stand-in, and ``out`` is the file for the results. Tests that do not use a replaced name are omitted.
"""

from __future__ import annotations

import importlib
import json
import os
import types
from pathlib import Path

ASKED = json.loads(os.environ["PEER_SUITE"])
NAMES = {dotted.rpartition(".")[2] for dotted in ASKED["replaces"]}
SEEN: dict[str, dict[str, str]] = {}


def pytest_configure(config) -> None:
    for dotted, stand_in in ASKED["replaces"].items():
        place, _, name = dotted.rpartition(".")
        module, _, ours = stand_in.partition(":")
        setattr(importlib.import_module(place), name, getattr(importlib.import_module(module), ours))


def names_in(code: types.CodeType) -> set[str]:
    """All names that a function uses, including those of its inner functions."""
    inner = [names_in(each) for each in code.co_consts if isinstance(each, types.CodeType)]
    return set(code.co_names).union(*inner)


def pytest_collection_modifyitems(config, items) -> None:
    def asks(item) -> bool:
        given = getattr(getattr(item, "callspec", None), "params", {})
        mentions = names_in(item.function.__code__)
        # also the names that helpers of the module use
        for name in list(mentions):
            helper = getattr(item.module, name, None)
            if isinstance(helper, types.FunctionType) and helper.__module__ == item.module.__name__:
                mentions |= names_in(helper.__code__)
        shown = {getattr(value, "__name__", type(value).__name__) for value in given.values()}
        return bool(NAMES & (mentions | shown))

    items[:] = [item for item in items if asks(item)]


def pytest_runtest_logreport(report) -> None:
    worse = {"passed": 0, "skipped": 1, "failed": 2}
    before = SEEN.get(report.nodeid, {"outcome": "passed"})
    if worse[report.outcome] >= worse[before["outcome"]]:
        crash = getattr(report.longrepr, "reprcrash", None)
        message = crash.message if crash is not None else str(report.longrepr or "")
        SEEN[report.nodeid] = {"outcome": report.outcome, "message": message[:600]}


def pytest_sessionfinish(session) -> None:
    Path(ASKED["out"]).write_text(json.dumps(SEEN), encoding="utf-8")
