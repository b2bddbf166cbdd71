"""Where the run must be the same every time (CI), hypothesis draws the same examples; elsewhere it looks for new ones."""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("repeatable")
