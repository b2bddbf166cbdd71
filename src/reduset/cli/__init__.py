"""The `reduset` command: reads files, calls the library, writes files, and says in a few lines what happened.

Nothing heavy is imported before a command runs, so that help and completion answer at once. Exit codes: 0 done; 1 a fault of this
program; 2 something about the request, said in one line; 3 done, but the tolerance asked for was not reached; 4 drift was
found, where --fail asks for that; 130 interrupted.

A command is a file with a class (`compress.py`, …), named in `commands.py`. May import: every package; none imports this one.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit."""
    try:
        from reduset.cli import entry
    except ModuleNotFoundError as error:  # only now, so that those who look around in the library need no typer
        if error.name not in ("typer", "rich"):
            raise
        print("reduset: error: the command needs typer and rich: pip install 'reduset[command]'", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    entry.main(arguments)
