"""Programs in the peers' environments: a script that answers once, and a worker that runs methods with a time limit for each."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import BENCHMARKS, LIBRARY, pins, python_of

SCRIPTS = BENCHMARKS / "peers"
START_UP = 120.0  # seconds for imports, or for loading the rows


class TooLong(Exception):
    """A run exceeded its time limit."""


class Failed(Exception):
    """A run raised an exception; the message is that of the library."""


def is_installed(environment: str) -> bool:
    """Whether a peers' environment exists."""
    try:
        python_of(environment)
    except SystemExit:
        return False
    return True


def omitted(environment: str) -> str:
    """A sentence for the details of a quick run without the peers; "" if their environment exists."""
    return "" if is_installed(environment) else f"\n\nThe environment `.venv-{environment}` is missing: its peers are omitted."


def output(python: str, script: str, *arguments: str, path: Path = LIBRARY) -> str:
    """What a script of `benchmarks/peers` prints; it can import what is in the folder ``path``, this library by default."""
    paths = [str(path), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    process = subprocess.run(
        [python, str(SCRIPTS / script), *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if process.returncode:
        raise Failed(f"{script} ended with {process.returncode}: {process.stderr.strip()[-2000:]}")
    return process.stdout


def exchange(environment: str, script: str, arrays: Mapping[str, Any], *arguments: str) -> dict[str, Any]:
    """The arrays that a script returns for these arrays; its first two arguments are the .npz files to read and to write."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        np.savez(given, **arrays)
        output(python_of(environment), script, str(given), str(found), *arguments)
        with np.load(found) as file:
            return {key: file[key] if file[key].ndim else file[key].item() for key in file.files}


class Worker:
    """A process that runs methods on a set of rows. It starts when first needed, and again after it was stopped."""

    def __init__(self, python: str, script: str) -> None:
        self._command = [python, str(SCRIPTS / script)]
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory()
        self._rows: Path | None = None
        self.versions: dict[str, str] = {}

    @classmethod
    def ours(cls) -> Worker:
        return cls(sys.executable, "own_worker.py")

    @classmethod
    def peers(cls) -> Worker:
        """The peers, with the pinned versions and the right kernel."""
        worker = cls(python_of("peers"), "peer_worker.py")
        subprocess.run([*worker._command, "--check"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        worker._start()
        if worker.versions != pins("peers"):
            raise SystemExit(f"the peers' environment has {worker.versions}, peers-requirements.txt wants {pins('peers')}")
        return worker

    def load(self, X: np.ndarray) -> None:
        """Use these rows from now on, in a new process, so that memory of the previous rows is released."""
        self.stop()
        self._rows = Path(self._folder.name) / "rows.npy"
        np.save(self._rows, X)

    def run(self, method: str, size: int, bandwidth: float, limit: float) -> tuple[np.ndarray, np.ndarray | None, float]:
        """Atoms, weights (None if the method has none) and seconds of one run."""
        if self._process is None:
            self._start()
        out = Path(self._folder.name) / "found.npz"
        answer = self._ask({"method": method, "size": size, "bandwidth": bandwidth, "out": str(out)}, limit)
        with np.load(out) as found:
            return found["atoms"], found["weights"] if "weights" in found.files else None, float(answer["seconds"])

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                pipe.close()
            self._process = None

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        self.versions = self._answer(START_UP)["versions"]
        if self._rows is not None:
            self._ask({"load": str(self._rows)}, START_UP)

    def _ask(self, request: dict[str, Any], limit: float) -> dict[str, Any]:
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        answer = self._answer(limit)
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer

    def _answer(self, limit: float) -> dict[str, Any]:
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(timeout=limit):
                self.stop()
                raise TooLong(f"over {limit:g} s")
        line = self._process.stdout.readline()
        if not line:  # killed for memory, or crashed
            code = self._process.wait()
            self.stop()
            raise Failed(f"the process ended with code {code}")
        return json.loads(line)


@contextmanager
def peers_worker(quick: bool) -> Iterator[Worker | None]:
    """The worker of the peers; None in a quick run if their environment is missing."""
    if quick and not is_installed("peers"):
        yield None
        return
    worker = Worker.peers()
    try:
        yield worker
    finally:
        worker.stop()
