"""The app: a class becomes a command, its fields become options, and docstrings and registries complete its help.

The help of an option is the description of the parameter with its name: in the docstring of the command or of its bases, in
`Common`, or in the functions that the command calls. ``{name}`` in a text is replaced by the names in a registry. Both imports
happen only when the help of a command is printed, because the library is large.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from reduset.cli.options import Common
from reduset.kernels import listed

Request = TypeVar("Request")

Usage: Any = typer.BadParameter.__bases__[0]  # the base class of usage errors, in click or in the copy in typer
DONE, INVALID, NOT_REACHED, DRIFT, INTERRUPTED = 0, 2, 3, 4, 130  # 1 is the code of an uncaught exception
PARAMETERS = "Parameters\n----------\n"
SHORT = {"bandwidth": ["-b"], "columns": ["-c"], "output": ["-o"], "quiet": ["-q"], "size": ["-m"], "verbose": ["-v"]}
REGISTRIES = {
    "formats": "reduset.io:usual_suffixes",
    "kernels": "reduset.kernels:FAMILIES",
    "rules": "reduset.bandwidth:RULES",
    "scales": "reduset.bandwidth:SCALES",
    "selectors": "reduset.select:BY_NAME",
    "weightings": "reduset.weights:KINDS",
    "statistics": "reduset.drift:STATISTICS",
    "cleaning": "reduset.cytometry:STEPS",
}

app = typer.Typer(
    name="reduset",
    help="Replace many rows by a few weighted ones, and measure the error.",
    rich_markup_mode=None,  # with frames, a narrow terminal has 17 columns for the help of an option
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(is_given: bool) -> None:
    if is_given:
        from importlib.metadata import version

        typer.echo(f"reduset {version('reduset')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Replace many rows by a few weighted ones, and measure the error."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(INVALID)


class _Command(TyperCommand):
    """A command with help from docstrings and registries."""

    request: type = object
    calls: tuple[str, ...] = ()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        texts = documentation(self.request, self.calls)
        for option in vars(self)["params"]:
            if option.name in texts or option.help:  # options of typer have their help already
                option.help = _with_registries(option.help or texts[option.name])
        super().format_help(ctx, formatter)


def _imported(name: str) -> Any:
    """The object of "module:name"."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def _with_registries(text: str) -> str:
    for name, home in REGISTRIES.items():
        if f"{{{name}}}" in text:
            registry = _imported(home)
            text = text.replace(f"{{{name}}}", registry() if callable(registry) else listed(registry))
    return text


def documentation(request: type, calls: Iterable[str]) -> dict[str, str]:
    """Options and their help: from a command, from the options of several commands, then from the library."""
    texts: dict[str, str] = {}
    for kind in (*request.__mro__, Common):
        for names, first, rest in _parameters(kind):
            texts |= {name: f"{first} {rest}".rstrip() for name in names if name not in texts}
    for call in calls:
        for names, first, rest in _parameters(_imported(call)):
            texts |= {name: _as_help(first, rest) for name in (name.removeprefix("n_") for name in names) if name not in texts}
    return texts


def _parameters(documented: Any) -> Iterator[tuple[list[str], str, str]]:
    """The parameters in a docstring: their names, the text on the same line, and the text below."""
    section = inspect.cleandoc(documented.__doc__ or "").partition(PARAMETERS)[2].partition("\n\n")[0]
    for entry in re.split(r"\n(?=\S)", section):
        head, _, body = entry.partition("\n")
        names, _, first = head.partition(" : ")
        yield names.split(", "), first, " ".join(body.split())


def _as_help(kind: str, text: str) -> str:
    """A parameter of the library, its type and description, as the help of an option: choices first, without Python objects."""
    if not text:
        text = kind[:1].upper() + kind[1:].rstrip(".") + "."
    elif kind.startswith('"'):
        text = f"{kind}. {text}"
    text = re.sub(r" \([^()]*`[^()]*\)", "", text)
    sentences = [part for part in re.split(r"(?<=\.) (?=\S)", text) if not re.search(r"(?<!`)`[A-Z]|\bNone\b|``\w+=", part)]
    text = re.sub(r"``(\w+)``", lambda match: f"--{match[1].replace('_', '-')}", " ".join(sentences))
    return re.sub(r"[`\"]", "", text)


@dataclass_transform(kw_only_default=True)
def command(example: str, *calls: str) -> Callable[[type[Request]], type[Request]]:
    """Make a class a command. Its docstring is the help. Its fields, then those of its bases, are the arguments and options.

    A field without a default is an argument, but ``output`` is always an option. A flag that is on or None by default also has a
    ``--no-`` form.

    Parameters
    ----------
    example : Arguments of an example, for the help.
    calls : Functions and classes, "module:name", that document further options.
    """

    def register(kind: type[Request]) -> type[Request]:
        request: Any = dataclass(kw_only=True)(kind)
        name = kind.__name__.removesuffix("Command").lower()
        hints, known = get_type_hints(kind, include_extras=True), inspect.signature(request).parameters
        ordered = dict.fromkeys(field for base in kind.__mro__ for field in vars(base).get("__annotations__", ()) if field in known)

        def call(**given: Any) -> int:
            if given.get("threads") is not None:
                from reduset._engine import set_threads

                set_threads(given["threads"])
            return request(**given).run() or DONE

        parameters = [known[field].replace(annotation=_option(known[field], hints[field])) for field in ordered]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        documented = type("DocumentedCommand", (_Command,), {"request": kind, "calls": calls})
        text = inspect.cleandoc(kind.__doc__ or "").partition(PARAMETERS)[0].strip()
        app.command(name, cls=documented, help=text, epilog=f"Example: reduset {name} {example}")(call)
        return kind

    return register


def _option(field: inspect.Parameter, hint: Any) -> Any:
    """The annotation of a field as typer reads it, unless its annotation is one already."""
    if get_origin(hint) is Annotated:
        return hint
    if field.default is field.empty and field.name != "output":
        return Annotated[hint, typer.Argument()]
    name = field.name.replace("_", "-")
    if bool in (hint, *get_args(hint)) and field.default is not False:
        return Annotated[hint, typer.Option(f"--{name}/--no-{name}")]
    return Annotated[hint, typer.Option(f"--{name}", *SHORT.get(field.name, ()))]
