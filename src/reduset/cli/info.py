"""`reduset info`: what a model file holds."""

from __future__ import annotations

from dataclasses import asdict

from reduset._messages import printable
from reduset.cli import messages
from reduset.cli import options as o
from reduset.cli.app import DONE, command
from reduset.cli.request import units_by_name, units_told


@command("small.npz")
class InfoCommand(o.Answering):
    """Say what a model holds, what it lost, and where it came from."""

    model: o.ModelFile

    def run(self) -> int:
        """Run it; the exit code."""
        from reduset.model import Model

        found = Model.load(self.model)
        about = found.about
        facts = {
            "n": found.n_samples,
            "size": found.size,
            "pieces": f"{found.piece}s",
            "columns": found.columns,
            "kernel": found.mean.kernel.to_dict(),
            "scales": units_by_name(found.mean.kernel, found.columns),
            "certificate": asdict(found.certificate),
            "resolution": None if found.resolved is None else asdict(found.resolved),
            "near_median": None if found.near_median is None else asdict(found.near_median),
            "about": about,
        }
        lines = [f"  {name.rstrip('s'):<11}{printable(text)}" for name in ("sources", "notes") for text in about.get(name, ())]
        lines += [
            f"  {title:<11}{printable(about[name])}"
            for name, title in (("transform", "transform"), ("command", "made by"))
            if about.get(name)
        ]
        if about.get("versions"):
            lines.append("  versions   " + ", ".join(printable(f"{name} {number}") for name, number in about["versions"].items()))
        messages.answer(self, facts, str(found), *units_told(found.mean.kernel, found.columns), *lines)
        return DONE
