"""Options that several commands share, each said once; and what they mean to the library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from reduset._messages import did_you_mean
from reduset.kernels import FAMILIES, listed

FORMATS = "{formats}"  # in a help: the suffixes of all formats

Data = Annotated[list[Path], typer.Argument(help=f"Files of rows ({FORMATS}), or folders of them; read one after the other.")]
ModelFile = Annotated[Path, typer.Argument(help="A model, as `reduset compress` writes it.")]
Columns = Annotated[
    list[str] | None, typer.Option("--columns", "-c", help="Columns to use, separated by commas; all numeric ones if not given.")
]
Weight = Annotated[str | None, typer.Option("--weight-column", help="The column that says how much each row counts.")]
Transform = Annotated[
    list[str] | None,
    typer.Option("--transform", help="asinh:150 (arcsinh of x/150), logicle, log or none, for all columns; NAME=asinh:5 for one."),
]
AutoTransform = Annotated[
    list[str] | None,
    typer.Option(
        "--transform",
        help="asinh:150 (arcsinh of x/150), logicle, log or none, for all columns; NAME=asinh:5 for one. If not given, channels of "
        "FCS files are transformed: logicle for fluorescence, asinh:5 for mass cytometry.",
    ),
]
Compensate = Annotated[bool, typer.Option("--compensate/--no-compensate", help="Apply the spillover matrix of FCS files.")]
Missing = Annotated[str, typer.Option("--missing", help="Rows with missing values: refuse them, or drop (and count) them.")]
Key = Annotated[str | None, typer.Option("--key", help="Which array of an .npz; X, obs or obsm/NAME of an .h5ad.")]
Encode = Annotated[
    list[str] | None,
    typer.Option(
        "--encode",
        help="Categories and dates as numbers: auto, or NAME=onehot (0/1 columns), NAME=ordinal (NAME=ordinal:low:mid:high), "
        "NAME=days (since 1970), separated by commas.",
    ),
]
KernelName = Annotated[str, typer.Option("--kernel", help=f"{listed(FAMILIES)}.")]
RULES = "a rule: scott, silverman, median, iqr, jaakkola, neighbour, mode_clustering, isj"
Bandwidth = Annotated[str, typer.Option("--bandwidth", "-b", help=f"A number in the columns' units (--scales), or {RULES}.")]
OpenBandwidth = Annotated[
    str | None,
    typer.Option(
        "--bandwidth",
        "-b",
        help=f"A number in the columns' units (--scales), or {RULES}. If not given the resolution: the finest at which --size "
        "atoms (1,000) lose at most --tol (0.05), there and at every coarser scale.",
    ),
]
Scales = Annotated[
    str | None,
    typer.Option(
        "--scales",
        help="What columns are divided by, so that all count alike: robust (interquartile ranges), standard (standard deviations), "
        "none, or numbers separated by commas. If not given robust; none for pictures, for transformed channels of FCS "
        "files, and with --whiten.",
    ),
]
Whiten = Annotated[bool, typer.Option("--whiten", help="Measure distances in units of the data's covariance.")]
Size = Annotated[int | None, typer.Option("--size", "-m", help="That many atoms.")]
Report = Annotated[Path | None, typer.Option("--report", help="Write a report to look at, one HTML file.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same result.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on the output, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Tell all: bounds, what was tried, and where the time went.")]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Threads to use; all cores if not given. Changes the time, not the result.")
]


@dataclass(kw_only=True)
class Answering:
    """The option of a command whose answer is a few lines, or one JSON object."""

    json: Json = False
    quiet = False

    @property
    def silent(self) -> bool:
        """Whether nothing is said on the way."""
        return self.json or self.quiet


@dataclass(kw_only=True)
class Telling(Answering):
    """Options of a command that tells what it did."""

    json: Json = False
    quiet: Quiet = False


@dataclass(kw_only=True)
class Threaded:
    """The option of a command that computes."""

    threads: Threads = None


@dataclass(kw_only=True)
class Seeded(Threaded):
    """Options of a command that computes by chance."""

    seed: Seed = 0


@dataclass(kw_only=True)
class Reading:
    """Options of a command that reads files of rows."""

    columns: Columns = None
    transform: Transform = None
    compensate: Compensate = True
    missing: Missing = "refuse"
    key: Key = None
    encode: Encode = None
    scales_channels = False  # whether channels of FCS files that --transform does not name are transformed, too

    def reading(self) -> dict[str, Any]:
        """What is read of the files, as `reduset.io` takes it."""
        transform = transform_of(self.transform)
        automatic = {"automatic": True} if self.scales_channels and not isinstance(transform, str) else {}
        return automatic | {
            "columns": names_of(self.columns),
            "weight_column": getattr(self, "weight_column", None),
            "transform": transform,
            "compensate": self.compensate,
            "missing": self.missing,
            "key": self.key,
            "encode": ",".join(self.encode) if self.encode else None,
        }


def given(**options: Any) -> dict[str, Any]:
    """Those options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def names_of(columns: list[str] | None) -> list[str] | None:
    """Names given one by one or separated by commas."""
    if not columns:
        return None
    return [name for given in columns for name in given.split(",") if name]


def transform_of(given: list[str] | None) -> Any:
    """None, one transform for all columns, or one for some by name."""
    if not given:
        return None
    by_name = dict(text.split("=", 1) for text in given if _names_a_column(text))
    plain = [text for text in given if not _names_a_column(text)]
    if by_name and plain:
        raise ValueError(f"--transform must be one for all columns or NAME=… for each, got both: {', '.join(given)}")
    if len(plain) > 1:
        raise ValueError(f"--transform must be one for all columns, got {', '.join(plain)}; use NAME={plain[0]} for one column")
    return by_name or plain[0]


def _names_a_column(text: str) -> bool:
    """Whether NAME=… is meant; logicle has equals signs of its own, logicle:T=262144,W=0.5."""
    return "=" in text and not text.startswith("logicle:")


def number_or_rule(text: str | None) -> float | str | None:
    """A bandwidth as the library takes it; None leaves it open."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def scales_of(given: str | None, whiten: bool, in_one_unit: bool) -> Any:
    """Units of columns as the library takes them: a rule, numbers, or None for none."""
    from reduset.bandwidth import SCALES

    if given is None:
        return None if whiten or in_one_unit else "robust"
    if whiten:
        raise ValueError(f"--whiten and --scales both say in what units distances are; leave one of them out, got --scales {given}")
    if given in ("none", *SCALES):
        return None if given == "none" else given
    try:
        return [float(number) for number in given.split(",")]
    except ValueError:
        words, hint = ", ".join(SCALES), did_you_mean(given, ("none", *SCALES))
        raise ValueError(
            f"--scales must be {words}, none, or a number for each column, as in 31000,16; got {given}{hint}"
        ) from None


def check_tol(tol: float | None) -> None:
    """Refuse a tolerance that says nothing: nothing at all loses a share of 1."""
    if tol is not None and not 0 < tol < 1:
        raise ValueError(f"--tol must lie between 0 and 1, got {tol:g}; it is a share of what there is, 0.01 for one percent")


def use_threads(threads: int | None) -> None:
    """Set the number of threads, where one is given."""
    if threads is not None:
        from reduset._engine import set_threads

        set_threads(threads)
