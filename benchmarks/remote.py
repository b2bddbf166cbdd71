"""A worker in another process, and a watchdog: a run that takes too long is ended, and the next one finds a fresh worker."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
START_UP = 120.0  # seconds for imports, and for loading a cloud


class TooLong(Exception):
    """A run took longer than it was allowed to."""


class Failed(Exception):
    """A run raised; the message is the library's own."""


def peers_python() -> str:
    """The interpreter of the peers' environment."""
    python = os.environ.get("REDUSET_PEERS_PYTHON", str(HERE.parent / ".venv-peers" / "bin" / "python"))
    if not Path(python).exists():
        raise SystemExit(f"no peers' environment at {python}: run `make peers`, or set REDUSET_PEERS_PYTHON")
    return python


def pins() -> dict[str, str]:
    """The versions the comparison is made with."""
    lines = (HERE / "peers-requirements.txt").read_text(encoding="utf-8").split()
    return dict(line.split("==") for line in lines)


class Worker:
    """One process that runs methods on a cloud. Started when first needed, and again after it was ended."""

    def __init__(self, python: str, script: str) -> None:
        self._command = [python, str(HERE / script)]
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory()
        self._cloud: Path | None = None
        self.versions: dict[str, str] = {}

    @classmethod
    def ours(cls) -> Worker:
        return cls(sys.executable, "own_worker.py")

    @classmethod
    def peers(cls) -> Worker:
        """The peers, in exactly the versions that are pinned and with the kernel that is meant."""
        worker = cls(peers_python(), "peer_worker.py")
        subprocess.run([*worker._command, "--check"], check=True, stderr=subprocess.DEVNULL)
        worker._start()
        if worker.versions != pins():
            raise SystemExit(f"the peers' environment has {worker.versions}, peers-requirements.txt wants {pins()}")
        return worker

    def load(self, X: np.ndarray) -> None:
        """Use this cloud from now on, in a fresh process: what libraries keep of the last one must not fill the memory."""
        self.stop()
        self._cloud = Path(self._folder.name) / "cloud.npy"
        np.save(self._cloud, X)

    def run(self, method: str, size: int, bandwidth: float, limit: float) -> tuple[np.ndarray, np.ndarray | None, float]:
        """Atoms, weights (None where the method has none of its own) and seconds of one run."""
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
        if self._cloud is not None:
            self._ask({"load": str(self._cloud)}, START_UP)

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
