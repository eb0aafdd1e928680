"""Squall in pipelines of Apache Beam: a plan as a transform, and sources that brokers hold as collections.

    rows | squall.beam.Squall(plan, map=mapping)

It needs the extra `beam`.
"""

from __future__ import annotations

from squall import plugins

with plugins.dependencies(plugins.BUILDERS, "beam"):
    from squall.builders.beam.sources import ReadEvents
    from squall.builders.beam.transform import Squall

__all__ = ["ReadEvents", "Squall"]
