"""Options of several commands, and their values as arguments of the library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reduset._messages import did_you_mean
from reduset.cli import targets

if TYPE_CHECKING:
    from reduset.io import Table, Work
    from reduset.kernels import RadialKernel
    from reduset.model import Model

Data = list[Path]
Report = Path | None
Size = int | None
Seed = int


class Common:
    """Options with one meaning in several commands.

    Parameters
    ----------
    data : Files of rows ({formats}), or folders of them, read one after the other.
    model : A model of `reduset compress`.
    compensate : Apply the spillover matrix of FCS files.
    missing : Rows with missing values: refuse raises an error, drop omits the rows.
    report : The report to write, one HTML file.
    weight_column : The column of the weights of rows.
    kernel : {kernels}.
    bandwidth : A number in the columns' units (--scales), or a rule: {rules}.
    scales : Scales by which columns are divided: robust (interquartile ranges), standard (standard deviations), none, or numbers
        separated by commas. By default robust; none for images, for transformed channels of FCS files, and with --whiten.
    whiten : Measure Mahalanobis distances, by the covariance of the rows.
    """


def option_of(name: str, default: Any = None) -> str:
    """A field as an option is written."""
    return f"--{'no-' if default is True else ''}{name.replace('_', '-')}"


@dataclass(kw_only=True)
class Answering:
    """A command that prints a few lines or one JSON object.

    Parameters
    ----------
    json : Print one JSON object.
    """

    json: bool = False
    quiet = False

    @property
    def silent(self) -> bool:
        """Whether nothing is printed before the end."""
        return self.json or self.quiet

    @property
    def shows_progress(self) -> bool:
        """Whether the library shows its progress on the terminal."""
        return not self.silent and sys.stderr.isatty()

    def given(self, *names: str) -> dict[str, Any]:
        """Those of some options that have a value, by name."""
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def changed(self, *names: str) -> list[str]:
        """Those of some options that differ from their defaults, as they are written."""
        defaults = {field.name: field.default for field in fields(self)}
        return [option_of(name, defaults[name]) for name in names if getattr(self, name) != defaults[name]]


@dataclass(kw_only=True)
class Writing(Answering):
    """A command that writes files.

    Parameters
    ----------
    quiet : Print errors only.
    """

    json: bool = False
    quiet: bool = False


@dataclass(kw_only=True)
class Threaded:
    """A command that computes.

    Parameters
    ----------
    threads : Number of threads, by default all cores. Results are the same.
    """

    threads: Annotated[int | None, typer.Option("--threads", min=1)] = None


@dataclass(kw_only=True)
class Seeded(Threaded):
    """A command with random numbers.

    Parameters
    ----------
    seed : Seed of the random numbers; the same seed gives the same result.
    """

    seed: Seed = 0


@dataclass(kw_only=True)
class Clustered:
    """Options of a command that can leave rows on the workers of an engine."""

    engine: Annotated[
        str | None,
        typer.Option("--engine", help="For files larger than memory: dask or ray. Its tasks read the files in each pass."),
    ] = None
    address: Annotated[
        str | None,
        typer.Option("--address", help="The cluster of --engine, such as tcp://10.0.0.1:8786. By default workers on this machine."),
    ] = None

    def check_engine(self, **options: Any) -> None:
        """Raise an error for options, by name, that need all rows in this process."""
        from reduset import _validate
        from reduset.data import ENGINES

        if self.engine is None:
            if self.address is not None:
                raise ValueError(f"--address {self.address} needs --engine dask or ray; add it")
            return
        _validate.one_of(self.engine, "--engine", ENGINES)
        for name in (name for name, value in options.items() if value):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"{option} needs all rows in this process, and --engine {self.engine} does not load them; omit {option}"
            )

    def on_engine(self) -> AbstractContextManager[Any]:
        """A context with the connection to the engine."""
        from reduset.data import engine_named

        return nullcontext() if self.engine is None else engine_named(self.engine).connected(self.address)

    def rows(self, data: Any) -> Any:
        """The files, or their rows on the engine."""
        from reduset.data import partitions

        return data if self.engine is None else partitions(data, self.engine)

    def table(self, work: Work, data: Any, **reading: Any) -> Table:
        """The table of the files. With an engine, its values are rows in partitions."""
        from reduset.data import partitions
        from reduset.io import Table, open_files, read_for

        if self.engine is None:
            return read_for(work, data, **reading)
        files = open_files(data, **reading)
        rows = partitions(files, self.engine)
        about = {"scales": files.scales, "encoding": files.encoding, "in_one_unit": files.in_one_unit}
        return Table(rows, files.columns, rows.weights, None, files.sources, rows.notes, **about)  # type: ignore[arg-type]


@dataclass(kw_only=True)
class Reading:
    """A command that reads files of rows.

    Parameters
    ----------
    columns : Columns to use, separated by commas; by default all numeric ones.
    transform : asinh:150 (arcsinh of x/150), logicle, log or none, for all columns; NAME=asinh:5 for one.
    key : The array of an .npz; X, obs or obsm/NAME of an .h5ad.
    encode : Text, categories and dates as numbers: auto, or NAME=onehot (0/1 columns), NAME=ordinal:low:mid:high, NAME=days (since
        1970), separated by commas.
    """

    columns: list[str] | None = None
    transform: list[str] | None = None
    compensate: bool = True
    missing: str = "refuse"
    key: str | None = None
    encode: list[str] | None = None
    scales_channels = False  # whether channels of FCS files are transformed by default

    def reading(self) -> dict[str, Any]:
        """The arguments of `reduset.io.read`."""
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


@dataclass(kw_only=True)
class ChannelReading(Reading):
    """A command that reads files of rows, and transforms channels of FCS files.

    Parameters
    ----------
    transform : asinh:150 (arcsinh of x/150), logicle, log or none, for all columns; NAME=asinh:5 for one. By default channels of
        FCS files are transformed: logicle for fluorescence, asinh:5 for mass cytometry.
    """

    scales_channels = True


def reading_of(model: Model) -> dict[str, Any]:
    """How files are read for a model: by its columns, transforms and categories."""
    about = model.about
    compensate = bool(about.get("compensate", True))
    encode, transform = about.get("encode"), about.get("transform")
    return {"columns": list(model.columns), "transform": transform, "compensate": compensate, "encode": encode}


def names_of(columns: list[str] | None) -> list[str] | None:
    """Names that were given one by one or separated by commas."""
    return [name for text in columns for name in text.split(",") if name] if columns else None


def transform_of(texts: list[str] | None) -> Any:
    """None, one transform for all columns, or a dict of transforms by column."""
    if not texts:
        return None
    by_name = dict(text.split("=", 1) for text in texts if "=" in text and not text.startswith("logicle:"))
    plain = [text for text in texts if "=" not in text or text.startswith("logicle:")]
    if by_name and plain:
        raise ValueError(f"--transform must be one for all columns or NAME=… for each, got both: {', '.join(texts)}")
    if len(plain) > 1:
        raise ValueError(f"--transform must be one for all columns, got {', '.join(plain)}; use NAME={plain[0]} for one column")
    return by_name or plain[0]


def number_or_rule(text: str | None) -> float | str | None:
    """A bandwidth as an argument of the library."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def scales_of(text: str | None, whiten: bool, in_one_unit: bool) -> Any:
    """Scales of columns as an argument of the library: a rule, numbers, or None for none."""
    from reduset.bandwidth import SCALES

    if text is None:
        return None if whiten or in_one_unit else "robust"
    if whiten:
        raise ValueError(f"--whiten and --scales both set the units of distances; omit one of them, got --scales {text}")
    if text in ("none", *SCALES):
        return None if text == "none" else text
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        hint = did_you_mean(text, ("none", *SCALES))
        raise ValueError(
            f"--scales must be {', '.join(SCALES)}, none, or a number for each column, as in 31000,16; got {text}{hint}"
        ) from None


def kernel_of(name: str, bandwidth: float | str | None, covariance: Any = None, scales: Any = None) -> RadialKernel:
    """A kernel from its options."""
    from reduset import _validate
    from reduset.kernels import KERNELS

    return KERNELS[_validate.one_of(name, "--kernel", KERNELS)](bandwidth=bandwidth, covariance=covariance, scales=scales)


def covariance_of(values: Any, weights: Any = None) -> Any:
    """(d, d) covariance of rows, for --whiten."""
    import numpy as np

    if len(values) < 2:
        raise ValueError("--whiten needs at least two rows, got one; omit it")
    covariance = np.atleast_2d(np.cov(values, rowvar=False, aweights=weights))
    if not np.isfinite(covariance).all() or np.linalg.matrix_rank(covariance) < len(covariance):
        raise ValueError(
            "--whiten needs linearly independent columns, got a singular covariance; omit constant and repeated columns, and one "
            "of the 0/1 columns of each encoded one, with --columns"
        )
    return covariance


def are_images(files: Sequence[Any]) -> bool:
    """Whether rows are pixels, with columns in one unit."""
    return any(Path(name).suffix.lower() in targets.IMAGE for name in files)


def check_proportion(value: float | None, option: str) -> None:
    """Raise an error for a proportion that is not between 0 and 1."""
    if value is not None and not 0 < value < 1:
        raise ValueError(f"{option} must lie between 0 and 1, got {value:g}; 0.01 is one percent")
