"""A lab's files as the samples of a study: panel and sample tables, channels by name, cleaning, gates and scales.

`read_cohort` does it all; each step is a file of its own.

May import: `io`, the uses, and what is below them.
"""

__all__: list[str] = []
