"""Certificates: the measured error of a compression, and bounds that hold before measuring."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from reduset._describe import Description, Row, percent, significant
from reduset.kernels import Kernel, RadialKernel, exponential
from reduset.mean import KernelMean
from reduset.mixture import SmallMean

DENSITY_ROWS = 256
ROUNDING = 1e-3  # the relative width above which the interval of an exact error is shown
NO_THEOREM = "does not apply, since ν is negative"  # possible for kernels with negative inner products
METHODS = {  # the methods that a certificate can name, and their descriptions
    "exact": "computed exactly, from every pair of rows",
    "frequencies": "measured at random frequencies, each over all rows",
    "rows": "measured on a sample of rows",
    "sample": "measured on a random sample of the rows of the stream",
    "components": "measured on a sample of the components",
}


@dataclass(frozen=True)
class Certificate:
    """The error of a compression.

    Attributes
    ----------
    relative_error : float
        ‖f − f_m‖ / ‖f‖, measured (not squared).
    interval : (float, float)
        Confidence interval of the relative error, at level ``confidence``.
    confidence : float
    method : str
        How the error was measured: a name in `METHODS`.
    norm : float
        Estimate of ‖f‖ from the same measurement.
    energy : float
        C = ‖φ(·, x)‖², the unit of the incoherence. In many dimensions a density's C may leave the range of floating point. Norm,
        bounds and incoherence then do so too, and the relative error does not.
    bound : float or None
        Upper bound on ‖f − f_m‖ that holds before measuring.
    theorem_bound : float or None
        Bound of Theorem 1 of the 2017 paper, never below ``bound``. None if it is unknown, or if ``incoherence`` is negative,
        because the theorem then does not hold.
    sup_bound : float or None
        Upper bound on the largest |f(x) − f_m(x)|. None in "l2", because that norm bounds no single value.
    incoherence : float or None
        ν, the smallest value over all points of the largest inner product with an atom. It is negative if some point has a negative
        inner product with every atom. ``bound`` still holds then.
    log_density_change : float or None
        For densities, the largest |log f_m − log f| on a sample of the data.
    negative_mass : float
        Proportion of Σ|w| of the small mean that is negative. If it is not 0, the weights of the atoms in a region do not add up to
        the proportion of the data in this region.
    radius : float or None
        Covering radius: the largest distance of any point to its nearest atom, in units of the data, or of the kernel's scales or
        covariance if it has them. None if it is unknown.
    bandwidth : float or None
        Bandwidth at which the error was measured. None for a kernel without a bandwidth.
    """

    relative_error: float
    interval: tuple[float, float]
    confidence: float
    method: str
    norm: float
    energy: float
    bound: float | None
    theorem_bound: float | None
    sup_bound: float | None
    incoherence: float | None
    log_density_change: float | None = None
    negative_mass: float = 0.0
    radius: float | None = None
    bandwidth: float | None = None

    @classmethod
    def without_error(cls, mean: KernelMean) -> Certificate:
        """The certificate of a mean that represents itself. ‖f‖ is not computed, because this would cost n²."""
        energy = exponential(mean.kernel.log_energy(mean.dimension))
        width = bandwidth_of(mean.kernel)
        return cls(0.0, (0.0, 0.0), 1.0, "exact", float("nan"), energy, 0.0, 0.0, 0.0, energy, None, radius=0.0, bandwidth=width)

    def describe(self) -> Description:
        """The measured error and the bounds as rows of (label, value, explanation)."""
        low, high = self.interval
        if self.method != "exact":
            how = f"({self.confidence:.0%} interval {percent(low)} to {percent(high)}, by {self.method})"
        elif high - low > ROUNDING * high:
            how = f"(exact up to the rounding of coordinates: {percent(low)} to {percent(high)})"
        else:
            how = "(exact)"
        lines = [f"{percent(self.relative_error)} of ‖f‖{at_bandwidth(self.bandwidth)} {how}"]
        if self.relative_error > 1:
            lines.append("WORSE THAN THE ZERO FUNCTION, whose error is 100 %")
        rows = [Row("error", lines, "The measured distance ‖f − f_m‖ relative to ‖f‖.", asdict(self))]
        if self.bound is not None and 0 < self.norm < np.inf:
            limit = percent(self.bound / self.norm)
            lines = [f"{limit} of ‖f‖ at most, before measuring" if self.bound < self.norm else f"above 100 %: {limit} of ‖f‖"]
            if self.incoherence is not None and 0 < self.energy < np.inf:
                lines[0] += f" (incoherence ν/C {self.incoherence / self.energy:.3g})"
                if self.incoherence < 0:
                    lines.append(f"Theorem 1 {NO_THEOREM}; this bound holds for any ν")
            rows.append(Row("bound", lines, "An upper bound on the error, from the distances of all rows to their nearest atoms."))
        if self.radius:  # 0 if every row is an atom
            rows.append(Row("covering", f"every point is within {self.radius:.3g} of an atom", "The covering radius."))
        if self.log_density_change is not None:
            change = self.log_density_change
            amount = percent(np.expm1(change)) if change < 1 else f"a factor of {exponential(change):.3g}"
            text = f"changed by {amount} at most on {DENSITY_ROWS} sampled points"
            rows.append(Row("density", text, "The largest change of the density."))
        if self.negative_mass > 0:
            text = f"{percent(self.negative_mass)} of the weights, so their sums are not proportions of the data"
            rows.append(Row("negative", text, "The proportion of Σ|w| with a negative sign."))
        return Description("Certificate", tuple(rows))

    def __str__(self) -> str:
        return "\n".join(line.removeprefix("  ") for line in list(self.describe().lines())[1:])


def bandwidth_of(kernel: Kernel) -> float | None:
    """The bandwidth of a kernel; None for a function kernel."""
    return kernel.width if isinstance(kernel, RadialKernel) else None


def at_bandwidth(bandwidth: float | None) -> str:
    """A bandwidth as the end of a phrase, " at bandwidth 0.5"; empty for None."""
    return "" if bandwidth is None else f" at bandwidth {significant(bandwidth)}"


def log_density_change(full: KernelMean, small: SmallMean, rng: np.random.Generator) -> float | None:
    """The largest |log f_m − log f| on a sample of the data; None if f is not a density."""
    if not getattr(full.kernel, "normalized", False) or full.stored_weights.min() < 0:
        return None
    queries = full.atoms[np.unique(full.draw_rows(min(DENSITY_ROWS, full.size), rng))]
    approximated = small.log_density(queries, "double") if isinstance(small, type(full)) else small.log_density(queries)
    change = np.abs(approximated - full.log_density(queries, "double"))
    return float(np.nan_to_num(change, nan=np.inf).max())
