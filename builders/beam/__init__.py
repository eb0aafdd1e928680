"""The Beam builder runs a plan as a pipeline of Apache Beam's Python SDK (docs/beam.md; decision 0029)."""

from __future__ import annotations

from squall.builders.beam.job import BeamJob, build
from squall.builders.beam.sources import ReadEvents

__all__ = ["BeamJob", "ReadEvents", "build"]
