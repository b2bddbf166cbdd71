"""`reduset info`: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reduset.cli import options as o
from reduset.cli.app import DONE, app

ModelFile = Annotated[Path, typer.Argument(help="A model, as `reduset compress` writes it.")]


@app.command(epilog="Example: reduset info small.npz")
def info(model: ModelFile, json: o.Json = False) -> int:
    """Say what a model holds, what it lost, and where it came from."""
    from dataclasses import asdict

    from reduset.cli import messages
    from reduset.model.model import Model

    found = Model.load(model)
    about = found.about
    if json:
        facts = {
            "n": found.n_samples,
            "size": found.size,
            "columns": found.columns,
            "kernel": found.mean.kernel.to_dict(),
            "certificate": asdict(found.certificate),
            "about": about,
        }
        print(messages.as_json(facts))
        return DONE
    print(found)
    for name in ("sources", "notes"):
        for text in about.get(name, ()):
            print(f"  {name.rstrip('s'):<11}{text}")
    if about.get("transform"):
        print(f"  transform  {about['transform']}")
    if about.get("command"):
        print(f"  made by    {about['command']}")
    if about.get("versions"):
        print("  versions   " + ", ".join(f"{name} {number}" for name, number in about["versions"].items()))
    return DONE
