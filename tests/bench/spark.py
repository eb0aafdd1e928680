"""The Spark session of a run, ours or a peer's: started before the clock is, alike for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.works import Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start(work: Work) -> SparkSession:
    """Returns the session. It makes a micro-batch of each file of a folder."""
    from squall.builders.spark import MAX_FILES_PER_TRIGGER, session

    return session([(MAX_FILES_PER_TRIGGER, "1")] if work.fed == "folder" else [])
