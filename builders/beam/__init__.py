"""The Beam builder runs a plan as a pipeline of Apache Beam's Python SDK (docs/beam.md; decision 0029)."""

from __future__ import annotations

from squall.builders.beam.job import BeamJob, build

__all__ = ["BeamJob", "build"]
