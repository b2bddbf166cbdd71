"""The `reduset` command: reads files, calls the library, writes files, and prints the result.

A command is a class in a file of its subject (`compress`, `drift`, …); `entry` imports them all. Nothing heavy is imported before a
command runs.

Exit codes: 0 done. 1 an internal error. 2 an invalid request, explained in one line. 3 the tolerance was not reached. 4 drift was
detected, with --fail. 130 interrupted.

May import: every package; none imports this one.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit."""
    try:
        from reduset.cli import entry
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        print("reduset: error: the command needs typer, which is not installed: pip install 'reduset[command]'", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    entry.main(arguments)
