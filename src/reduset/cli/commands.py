"""All commands, each in its own file; importing this registers them with the app, in the order of the help."""

from reduset.cli import (  # noqa: F401, I001 (the order is that of the help)
    sketch,
    compress,
    cover,
    cohort,
    study,
    segment,
    info,
    evaluate,
    distance,
    drift,
    watch,
    report,
    demo,
)
