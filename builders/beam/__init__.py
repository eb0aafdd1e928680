"""The Beam builder runs a plan as a pipeline of Apache Beam's Python SDK (docs/beam.md; decision 0029)."""

from __future__ import annotations

from squall.builders.beam.job import BeamJob, build
from squall.builders.beam.sources import ReadEvents
from squall.builders.beam.transform import Squall

__all__ = ["BeamJob", "ReadEvents", "Squall", "build"]
