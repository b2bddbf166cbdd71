"""The app that commands register with, and the codes they end with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, dataclass_transform, get_type_hints

import typer
from typer.core import TyperCommand

from reduset.cli.options import FORMATS, use_threads

Request = TypeVar("Request")

Usage: Any = typer.BadParameter.__bases__[0]  # what all complaints about options are; click's own, or the copy typer carries
DONE, REFUSED, NOT_REACHED, DRIFT, INTERRUPTED = 0, 2, 3, 4, 130  # 1 is that of an uncaught exception, a fault of ours

app = typer.Typer(
    name="reduset",
    help="Make data small, and say how much was lost.",
    rich_markup_mode=None,  # plain help: frames leave a narrow terminal 17 columns for what an option means
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as version_of

        typer.echo(f"reduset {version_of('reduset')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Make data small, and say how much was lost."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(REFUSED)


class _Command(TyperCommand):
    """A command whose help names the formats that are read. Readers take a while to import: for this help alone they are."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for each in vars(self)["params"]:
            if FORMATS in (getattr(each, "help", None) or ""):
                from reduset.io import usual_suffixes

                each.help = each.help.replace(FORMATS, usual_suffixes())
        super().format_help(ctx, formatter)


@dataclass_transform(kw_only_default=True)
def command(example: str) -> Callable[[type[Request]], type[Request]]:
    """Make a class a command: its docstring is the help, its fields the arguments and options, own ones before those of bases."""

    def register(kind: type[Request]) -> type[Request]:
        request: Any = dataclass(kw_only=True)(kind)
        name = kind.__name__.removesuffix("Command").lower()
        hints, known = get_type_hints(kind, include_extras=True), inspect.signature(request).parameters
        ordered = dict.fromkeys(each for base in kind.__mro__ for each in vars(base).get("__annotations__", ()) if each in known)

        def call(**given: Any) -> int:
            use_threads(given.get("threads"))
            code: int = request(**given).run()
            return code

        call.__signature__ = inspect.Signature([known[each].replace(annotation=hints[each]) for each in ordered])  # type: ignore[attr-defined]
        app.command(name, cls=_Command, help=kind.__doc__, epilog=f"Example: reduset {name} {example}")(call)
        return kind

    return register
