"""``python -m reduset`` is the command `reduset`."""

from reduset.cli import main

main()
