"""`reduset distance`: how far two samples are apart, each a model or a file of rows, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reduset.cli import messages
from reduset.cli import options as o
from reduset.cli.app import DONE, command
from reduset.cli.request import are_pictures, kernel_of, reading_of

if TYPE_CHECKING:
    from reduset.kernels import Kernel
    from reduset.mixture.component_mean import SmallMean
    from reduset.model import Model

# A sum of squares of normal variables, of mean 1, is above 1.96² in at most 5 of 100 cases, whatever their variances (Székely and
# Bakirov 2003): so is the squared distance of two samples of one law beside its mean, when they are large.
UNLIKELY = 1.96

Side = Annotated[Path, typer.Argument(help="A model, or a file of rows.")]


@command("before.npz after.npz")
class DistanceCommand(o.Reading, o.Threaded, o.Answering):
    """The distance of two kernel means (maximum mean discrepancy), beside what chance and compressing explain.

    A model brings its kernel, columns and transform; two models, of atoms or of components, must have the same kernel. Two files
    of rows take theirs from the options.
    """

    a: Side
    b: Side
    kernel: o.KernelName = "gaussian"
    bandwidth: o.Bandwidth = "median"
    scales: o.Scales = None

    def run(self) -> int:
        """Run it; the exit code."""
        found = [_model(path) for path in (self.a, self.b)]
        models = [model for model in found if model is not None]
        if models and self.scales is not None:
            raise ValueError(f"--scales goes with rows, and a model has its own units; leave it out, got {self.scales}")
        if len(models) == 2:
            _check_alike(self.a, self.b, *models)
        means, notes = _means(self, found)
        unsure = sum(_loss(model, mean) for mean, model in zip(means, found, strict=True) if model is not None)
        apart = _apart(*means)
        norms, kernel = [mean.norm() for mean in means], means[0].kernel
        rows = [_effective_rows(mean, model) for mean, model in zip(means, found, strict=True)]
        chance = _by_chance(means, norms, rows)
        most = UNLIKELY * chance + unsure
        lines = [
            f"{apart:.6g}, " + ("more than chance explains" if apart > most else "no more than chance explains"),
            f"  two samples of {rows[0]:,.0f} and {rows[1]:,.0f} rows of one law are {chance:.2g} apart on average, "
            f"{most:.2g} at most in 95 of 100 cases" + (f" (with {unsure:.2g} that the models may have lost)" if unsure else ""),
            f"  of norms {norms[0]:.4g} and {norms[1]:.4g}, {kernel!r}",
            *(f"  note: {text}" for text in notes),
        ]
        if models and apart <= unsure:
            lines.append("  the models are too coarse to tell them apart; compress with a smaller --tol")
        facts = {
            "distance": apart,
            "uncertainty": unsure,
            "by_chance": chance,
            "by_chance_95": most,
            "rows": rows,
            "norms": norms,
            "kernel": kernel.to_dict(),
            "notes": notes,
        }
        messages.answer(self, facts, *lines)
        return DONE


def _apart(first: SmallMean, second: SmallMean) -> float:
    """The distance of two means of one kernel, by the one of components where there is one: an atom mean knows nothing of them."""
    from reduset.mean import KernelMean

    if isinstance(first, KernelMean):
        return first.distance(second) if isinstance(second, KernelMean) else second.distance(first)
    return first.distance(second)


def _loss(model: Model, mean: SmallMean) -> float:
    """What the model may have lost, in the norm of the kernel that its mean is compared by."""
    from reduset.kernels.base import exponential

    certificate, energy = model.certificate, exponential(mean.kernel.log_energy(mean.dimension))
    return float(certificate.interval[1] * certificate.norm * (energy / certificate.energy) ** 0.5)


def _effective_rows(mean: SmallMean, model: Model | None) -> float:
    """How many rows of equal weight tell as much as these; of a model the rows that it was made of, which it does not weigh."""
    if model is not None:
        return float(model.n_samples)
    shares = mean.magnitudes / mean.magnitudes.sum()
    return 1.0 / float(shares @ shares)


def _by_chance(means: list[SmallMean], norms: list[float], rows: list[float]) -> float:
    """The root of E‖f − f'‖² for two samples of one law: of n rows, E‖f − μ‖² = (C − ‖μ‖²)/n and E‖f‖² = ‖μ‖² + that."""
    from reduset.kernels.base import exponential

    square = 0.0
    for mean, norm, n in zip(means, norms, rows, strict=True):
        energy = exponential(mean.kernel.log_energy(mean.dimension)) * mean.mass**2
        square += max(energy - norm**2, 0.0) / max(n - 1.0, 1.0)
    return float(square**0.5)


def _means(request: DistanceCommand, found: list[Model | None]) -> tuple[list[SmallMean], list[str]]:
    """The means of both sides, rows by the kernel of a model where there is one, and notes of the rows."""
    from reduset import io
    from reduset.mean import KernelMean
    from reduset.mixture import ComponentMean
    from reduset.mixture.component_mean import as_density

    model = next((each for each in found if each is not None), None)
    reading = request.reading() if model is None else request.reading() | reading_of(model)
    rows = [path for path, each in zip((request.a, request.b), found, strict=True) if each is None]
    read_in = io.read_bags(rows, **reading) if rows else {}  # the same columns of both
    tables = iter(read_in.values())
    kernel = None if model is None else model.mean.kernel
    means: list[SmallMean] = []
    for each in found:
        if each is not None:
            means.append(each.mean)
        elif kernel is not None:
            means.append(KernelMean.from_samples(next(tables).values, kernel))
        else:
            table = next(tables)
            scales = o.scales_of(request.scales, False, are_pictures(rows))
            chosen = kernel_of(request.kernel, o.number_or_rule(request.bandwidth), None, scales)
            means.append(KernelMean.from_samples(table.values, chosen, table.weights))
            kernel = means[0].kernel
    if any(isinstance(mean, ComponentMean) for mean in means):  # which are densities
        means = [as_density(mean) if isinstance(mean, KernelMean) else mean for mean in means]
    return means, messages.notes_of(read_in)


def _model(path: Path) -> Model | None:
    """The model in a file; None for files of rows, .npz files of arrays among them."""
    from reduset import _archive
    from reduset.model import Model

    return Model.load(path) if path.suffix.lower() == ".npz" and _archive.has_header(path) else None


def _options_of(kernel: Kernel) -> str:
    """The options that give a compression this kernel."""
    from reduset.kernels import RadialKernel

    if not isinstance(kernel, RadialKernel) or kernel.covariance is not None:
        return "its kernel, by the library"
    scales = "none" if kernel.units is None else ",".join(map(repr, kernel.units.tolist()))
    return f"--kernel {kernel.name} --bandwidth {kernel.width!r} --scales {scales}"


def _same_kernel(first: SmallMean, second: SmallMean) -> bool:
    """Whether two means see alike; whether bumps are scaled to integrate to 1 is no matter where one side is a density anyway."""
    from reduset.kernels import Gaussian
    from reduset.mixture import ComponentMean

    kernels = [mean.kernel for mean in (first, second)]
    if any(isinstance(mean, ComponentMean) for mean in (first, second)):
        kernels = [replace(kernel, normalized=True) if isinstance(kernel, Gaussian) else kernel for kernel in kernels]
    return kernels[0] == kernels[1]


def _check_alike(a: Path, b: Path, first: Model, second: Model) -> None:
    """Refuse models of different things: as many columns do not make them the same ones."""
    if first.columns != second.columns:
        seen = f"{', '.join(first.columns[:6])} and {', '.join(second.columns[:6])}"
        raise ValueError(
            f"{a} and {b} must be of the same columns in the same order, got {seen}; compress one again with --columns"
        )
    for name in ("transform", "compensate", "encode"):
        mine, other = (model.about.get(name) for model in (first, second))
        if name in first.about and name in second.about and mine != other:
            raise ValueError(f"{a} and {b} must have the same --{name}, got {mine} and {other}; compress one of them again")
    if not _same_kernel(first.mean, second.mean):
        raise ValueError(
            f"{a} and {b} must have the same kernel, got {first.mean.kernel!r} and {second.mean.kernel!r}; compare {a} with the "
            f"rows of the other, or compress those with {_options_of(first.mean.kernel)}"
        )
