"""The command in a process of its own, with or without a terminal; and, where none is needed, in this one."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import select
import signal
import subprocess
import sys
import time
import warnings
from types import SimpleNamespace

from reduset.cli.entry import run

# two threads, as on people's machines, however many the tests themselves use
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    "COLUMNS": "100",
    "REDUSET_NUM_THREADS": "2",
}


def reduset(*words, folder, code=0):
    """Run the command in its own process, in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "reduset", *map(str, words)],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stderr
    return done


def in_this_process(*words, folder, code=0):
    """Run the command in a folder without a process of its own, where that makes no difference; what it printed."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), warnings.catch_warnings():  # `run` has warnings shown as notes
        warnings.simplefilter("default")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            found = run([str(word) for word in words])
    assert found == code, errors.getvalue()
    return SimpleNamespace(stdout=out.getvalue(), stderr=errors.getvalue())


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def hear_signals():
    """Under nohup, or in the background, processes are started that ignore these, and the command then does too."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def on_a_terminal(words, folder, until=None):
    """Run the command with a pseudo-terminal as its error stream; what it showed there, and the process."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "reduset", *map(str, words)],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=theirs,
        preexec_fn=hear_signals,
    )
    os.close(theirs)
    shown, deadline = b"", time.monotonic() + 120
    while time.monotonic() < deadline:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                read = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not read:
                break
            shown += read
            if until is not None and until in shown:
                break
    return shown.decode(errors="replace"), process, ours


def rest_of(terminal):
    """What a process that has ended left on its terminal."""
    shown = b""
    while select.select([terminal], [], [], 0.1)[0]:
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
    return shown
