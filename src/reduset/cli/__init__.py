"""The `reduset` command: reads files, calls the library, writes files, and says in a few lines what happened.

Nothing heavy is imported before a command runs, so that help and completion answer at once. Exit codes: 0 done; 1 a fault of this
program; 2 something about the request, said in one line; 3 done, but the tolerance asked for was not reached; 130 interrupted.
"""

from __future__ import annotations

from reduset.cli.entry import main

__all__ = ["main"]
