"""The app that commands register with, and the codes they end with."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Usage: Any = typer.BadParameter.__bases__[0]  # what all complaints about options are; click's own, or the copy typer carries
DONE, REFUSED, NOT_REACHED, INTERRUPTED = 0, 2, 3, 130  # 1 is that of an uncaught exception, a fault of ours

app = typer.Typer(
    name="reduset",
    help="Make data small, and say how much was lost.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as version_of

        typer.echo(f"reduset {version_of('reduset')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Make data small, and say how much was lost."""
