"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# Every run draws the same examples, unless HYPOTHESIS_PROFILE=explore asks for new ones.
settings.register_profile("ci", derandomize=True, database=None)
settings.register_profile("explore", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
