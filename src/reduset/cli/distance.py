"""`reduset distance`: the maximum mean discrepancy of two models or files of rows, and whether it is significant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reduset._describe import Description, Row
from reduset.cli import messages
from reduset.cli import options as o
from reduset.cli.app import command

if TYPE_CHECKING:
    from reduset.kernels import Kernel
    from reduset.mixture import SmallMean
    from reduset.model import Model

# A weighted sum of squared normal variables with mean 1 exceeds 1.96² with probability at most 0.05, for any weights (Székely and
# Bakirov 2003). Under the null hypothesis the squared distance of two large samples, divided by its mean, is such a sum.
QUANTILE_RATIO = 1.96


@command("before.npz after.npz")
class DistanceCommand(o.Reading, o.Threaded, o.Answering):
    """The distance of two kernel means (maximum mean discrepancy), compared with its distribution under the null hypothesis.

    A model has its own kernel, columns and transform. Two models, of atoms or of components, must have the same kernel. For two
    files of rows, options set these.

    Parameters
    ----------
    a, b : A model, or a file of rows.
    """

    a: Path
    b: Path
    kernel: str = "gaussian"
    bandwidth: str = "median"
    scales: str | None = None

    def run(self) -> None:
        """Run it."""
        loaded = [_model(path) for path in (self.a, self.b)]
        models = [model for model in loaded if model is not None]
        if models and self.scales is not None:
            raise ValueError(f"--scales needs two files of rows, since a model has its own units; omit it, got {self.scales}")
        if len(models) == 2:
            _check_comparable(self.a, self.b, *models)
        means, notes = self._means(loaded)
        uncertainty = sum(_error(model, mean) for mean, model in zip(means, loaded, strict=True) if model is not None)
        distance = _distance(*means)
        norms, kernel = [mean.norm() for mean in means], means[0].kernel
        rows = [_effective_rows(mean, model) for mean, model in zip(means, loaded, strict=True)]
        expected = _expected_distance(means, norms, rows)
        threshold = QUANTILE_RATIO * expected + uncertainty
        verdict = "significant at level 0.05" if distance > threshold else "not significant at level 0.05"
        added = f", of which {uncertainty:.2g} for the error of the models" if uncertainty else ""
        same = (
            f"two samples of one distribution, of {rows[0]:,.0f} and {rows[1]:,.0f} rows: {expected:.2g} on average, "
            f"95 % below {threshold:.2g}{added}"
        )
        result = Description(
            f"Distance: {distance:.6g}, {verdict}",
            (
                Row("", facts={"distance": distance, "uncertainty": uncertainty, "rows": rows}),
                Row("same", same, facts={"by_chance": expected, "by_chance_95": threshold}),
                Row("norms", f"{norms[0]:.4g} and {norms[1]:.4g}", facts={"norms": norms}),
                Row("kernel", repr(kernel), facts={"kernel": kernel.to_dict()}),
            ),
        )
        if models and distance <= uncertainty:
            notes.append("the distance is below the error of the models; compress with a smaller --tol")
        messages.answer(self, result, notes)

    def _means(self, loaded: list[Model | None]) -> tuple[list[SmallMean], list[str]]:
        """The means of both samples, rows with the kernel of a model if there is one, and notes on the rows."""
        from reduset import io
        from reduset.mean import KernelMean
        from reduset.mixture import ComponentMean, as_density

        model = next((one for one in loaded if one is not None), None)
        reading = self.reading() if model is None else self.reading() | o.reading_of(model)
        paths = [path for path, one in zip((self.a, self.b), loaded, strict=True) if one is None]
        bags = io.read_bags(paths, **reading) if paths else {}  # the same columns of both
        tables = iter(bags.values())
        kernel: Any = None if model is None else model.mean.kernel
        means: list[SmallMean] = []
        for one in loaded:
            if one is not None:
                means.append(one.mean)
                continue
            table = next(tables)
            if kernel is None:  # a bandwidth rule is applied to the first sample
                scales = o.scales_of(self.scales, False, o.are_images(paths))
                kernel = o.kernel_of(self.kernel, o.number_or_rule(self.bandwidth), None, scales)
            means.append(KernelMean.from_samples(table.values, kernel, table.weights))
            kernel = means[0].kernel
        if any(isinstance(mean, ComponentMean) for mean in means):
            means = [as_density(mean) if isinstance(mean, KernelMean) else mean for mean in means]
        return means, messages.notes_of(bags)


def _distance(first: SmallMean, second: SmallMean) -> float:
    """The distance of two means of one kernel; a mean of components has distances to both kinds."""
    from reduset.mean import KernelMean

    if isinstance(first, KernelMean):
        return first.distance(second) if isinstance(second, KernelMean) else second.distance(first)
    return first.distance(second)


def _error(model: Model, mean: SmallMean) -> float:
    """The largest error of a model, in the norm of the kernel of the comparison."""
    from reduset.kernels import exponential

    certificate, energy = model.certificate, exponential(mean.kernel.log_energy(mean.dimension))
    return float(certificate.interval[1] * certificate.norm * (energy / certificate.energy) ** 0.5)


def _effective_rows(mean: SmallMean, model: Model | None) -> float:
    """(Σw)²/Σw², the number of equally weighted rows with the same sampling error. For a model, its number of rows."""
    if model is not None:
        return float(model.n_samples)
    proportions = mean.magnitudes / mean.magnitudes.sum()
    return 1.0 / float(proportions @ proportions)


def _expected_distance(means: list[SmallMean], norms: list[float], rows: list[float]) -> float:
    """√E‖f − f'‖² for two samples of one distribution: E‖f − μ‖² = (C − ‖μ‖²)/n, and E‖f‖² = ‖μ‖² + E‖f − μ‖²."""
    from reduset.kernels import exponential

    square = 0.0
    for mean, norm, n in zip(means, norms, rows, strict=True):
        energy = exponential(mean.kernel.log_energy(mean.dimension)) * mean.mass**2
        square += max(energy - norm**2, 0.0) / max(n - 1.0, 1.0)
    return float(square**0.5)


def _model(path: Path) -> Model | None:
    """The model in a file; None for files of rows, including .npz files of arrays."""
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


def _have_same_kernel(first: SmallMean, second: SmallMean) -> bool:
    """Whether two means have the same kernel, up to normalisation if one of them is a density."""
    from reduset.kernels import Gaussian
    from reduset.mixture import ComponentMean

    kernels = [mean.kernel for mean in (first, second)]
    if any(isinstance(mean, ComponentMean) for mean in (first, second)):
        kernels = [replace(kernel, normalized=True) if isinstance(kernel, Gaussian) else kernel for kernel in kernels]
    return kernels[0] == kernels[1]


def _check_comparable(a: Path, b: Path, first: Model, second: Model) -> None:
    """Raise an error for models of other columns, transforms or kernels."""
    if first.columns != second.columns:
        both = f"{', '.join(first.columns[:6])} and {', '.join(second.columns[:6])}"
        raise ValueError(f"{a} and {b} must have the same columns in the same order, got {both}; compress one again with --columns")
    for name in ("transform", "compensate", "encode"):
        values = [model.about.get(name) for model in (first, second)]
        if name in first.about and name in second.about and values[0] != values[1]:
            raise ValueError(
                f"{a} and {b} must have the same --{name}, got {values[0]} and {values[1]}; compress one of them again"
            )
    if not _have_same_kernel(first.mean, second.mean):
        raise ValueError(
            f"{a} and {b} must have the same kernel, got {first.mean.kernel!r} and {second.mean.kernel!r}; compare {a} with the "
            f"rows of the other, or compress those with {_options_of(first.mean.kernel)}"
        )
