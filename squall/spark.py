"""Squall in jobs of Spark: the outputs of a plan as a DataFrame.

    squall.spark.to_dataframe(plan, frame)

It needs the extra `spark`.
"""

from __future__ import annotations

from squall import plugins

with plugins.dependencies(plugins.BUILDERS, "spark"):
    from squall.builders.spark.dataframes import to_dataframe
    from squall.builders.spark.datasource import EventSource
    from squall.builders.spark.session import session
    from squall.builders.spark.sources import FrameSource

__all__ = ["EventSource", "FrameSource", "session", "to_dataframe"]
