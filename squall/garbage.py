"""How often Python looks for garbage that is part of a cycle."""

from __future__ import annotations

import gc


def calm_collector() -> None:
    """Statements and rows are many small objects without cycles: the collector looks for these less often, in this
    process. (It made reading take 1.7 times as long, joins a fifth longer.)"""
    gc.set_threshold(100_000, 50, 100)
