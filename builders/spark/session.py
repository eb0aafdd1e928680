"""The Spark session of a job, and its settings."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import squall
from squall.builders.spark import java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("squall")

FILES_PER_BATCH = "spark.squall.maxFilesPerTrigger"
"""The setting that says how many new files of a folder go into one micro-batch at most; without it, all do."""
ROWS_TOGETHER = "spark.squall.singleTaskRows"
"""The setting that says up to how many rows, the batch's and the state's, a micro-batch is worked off by one task:
where there is so little, moving it about in rounds takes longer than doing it. 0: never; 50,000 if it is not set."""
ROWS_IN_WORKER = "spark.squall.workerRows"
"""The setting that says how many rows of state a Python worker holds in memory from one micro-batch to the next, at
most: what it does not hold it reads. 1,000,000 if it is not set; 0: none."""
LOG4J = Path(__file__).absolute().with_name("log4j2.properties")  # in a zip file, workers find this by a relative path
KEPT_FOR_UI = (
    "spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.ui.retainedTasks", "spark.sql.ui.retainedExecutions",
)  # fmt: skip
"""What Spark keeps of the past for its web interface: 1000 jobs, stages and queries, and 100,000 tasks, if it is not
told otherwise, also where nobody looks."""
QUICK_START = "-XX:TieredStopAtLevel=1"
"""Java code is compiled by the first, quick compiler alone: Java only hands on what workers do, and to compile it well
takes more time than it saves (docs/decisions/0040-cold-spark.md)."""
DEFAULTS = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    **dict.fromkeys(KEPT_FOR_UI, "50"),
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG4J.as_uri()} {QUICK_START}",
}
"""Our settings for a session of our own; a session that is there already is left as it is."""
DAEMON = ("spark.python.daemon.module", "squall.builders.spark_daemon")
"""The setting for workers that are ready sooner, where they import what this process does: on this machine."""


def session(conf: Sequence[tuple[str, str]] = ()) -> SparkSession:
    """The session that is there, or a new one: on a master of ``local[*]`` with `DEFAULTS`, over which `conf` wins;
    started by ``spark-submit``, which says all that itself, with `conf` alone."""
    from pyspark.sql import SparkSession

    if (known := _known()) is not None:
        if conf:
            logger.warning("the Spark session is there already: settings for it are not taken up")
        return known
    java.ensure()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _let_workers_import_squall()
    builder = SparkSession.builder.appName("squall")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    settings = {**({} if submitted else DEFAULTS), **dict(conf)}
    if settings.get("spark.master", "").partition("[")[0] == "local":
        settings = dict([DAEMON]) | settings
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _signals_kept():
        return builder.getOrCreate()


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Spark makes of Ctrl-C what it likes: not where somebody else has said what it means."""
    before = signal.getsignal(signal.SIGINT)
    yield
    told = callable(before) and before is not signal.default_int_handler
    if told and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def rows_together(spark: SparkSession) -> int:
    """What `ROWS_TOGETHER` says."""
    return int(spark.conf.get(ROWS_TOGETHER, "50000") or 0)


def _known() -> SparkSession | None:
    """This thread's session, or else the one that another thread has started."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _let_workers_import_squall() -> None:
    """Python workers find this package where this process found it, also in a checkout that is not installed."""
    root = str(Path(squall.__file__).parent.parent)
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *filter(None, known)])
