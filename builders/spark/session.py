"""The Spark session of a job, and its settings."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import squall
from squall.builders.spark import java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from squall.builders.distributed.cut import Level

logger = logging.getLogger("squall")

FILES_PER_BATCH = "spark.squall.maxFilesPerTrigger"
"""The setting that says how many new files of a folder go into one micro-batch at most; without it, all do."""
ROWS_TOGETHER = "spark.squall.singleTaskRows"
"""The setting that says up to how many rows, the batch's and the state's, a micro-batch is worked off by one task:
where there is so little, moving it about in rounds takes longer than doing it. 0: never; 50,000 if it is not set."""
BYTES_TOGETHER = "spark.squall.singleTaskBytes"
"""The setting that says up to how many bytes, all of files that workers read by themselves, a micro-batch is worked off
by one task, from lines to answers, where the state has no more rows than `ROWS_TOGETHER` says, or, on one machine, than
a worker may hold: then nothing is moved at all. What is compressed counts ten times. 0: never; 16,777,216 if it is not
set."""
ROUNDS = 16
"""So many times as many bytes one task works off on one machine where a plan has a recursion inside which rows move:
as long as that is less work than rounds, in which all that is derived is moved, and its joins' state stored."""
ROWS_IN_WORKER = "spark.squall.workerRows"
"""The setting that says how many rows of state a Python worker holds in memory from one micro-batch to the next, at
most: what it does not hold it reads. 1,000,000 if it is not set; 0: none."""
ROWS_TO_ALL = "spark.squall.broadcastRows"
"""The setting that says how many rows that static data make of one side of a join go to all tasks, at most, so that the
other side stays where it is. 10,000 if it is not set; 0: none."""
SKEW_SHARE = "spark.squall.skewShare"
"""The setting that says which share of the rows of one side of a join has to have the same key, so that these rows are
scattered over all tasks, and the other side's with this key go to all of them. Half of what is a task's share if it is
not set; 0: never."""
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
    "spark.executor.extraJavaOptions": QUICK_START,
}
"""Our settings for a session of our own; a session that is there already is left as it is."""
DAEMON = ("spark.python.daemon.module", "squall.builders.spark_daemon")
"""The setting for workers that are ready sooner, where they import what this process does: on this machine."""
LOG_FILES = "spark.sql.streaming.checkpointFileManagerClass"
"""The setting that says how a query's log is written. By default through Hadoop's `FileContext`, which on a local disk
starts a process for each link that there might be: some 30 of them for the three files of a micro-batch. `FileSystem`
starts six. Either writes a file beside the one it is to be, and renames it."""
_RENAMING = tuple(
    f"org.apache.spark.sql.execution.streaming.{package}FileSystemBasedCheckpointFileManager"
    for package in ("checkpointing.", "")  # Spark has moved it
)


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
    local = _is_local(settings.get("spark.master"))
    if local:
        settings = dict([DAEMON]) | settings
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _signals_kept():
        spark = builder.getOrCreate()
    if local and LOG_FILES not in settings:
        _let_logs_be_renamed(spark)
    return spark


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Spark makes of Ctrl-C what it likes: not where somebody else has said what it means."""
    before = signal.getsignal(signal.SIGINT)
    yield
    told = callable(before) and before is not signal.default_int_handler
    if told and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def _let_logs_be_renamed(spark: SparkSession) -> None:
    """See `LOG_FILES`."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    for name in _RENAMING:
        with suppress(Py4JJavaError):
            spark._jvm.java.lang.Class.forName(name)  # type: ignore[union-attr]
            spark.conf.set(LOG_FILES, name)
            return


def rows_together(spark: SparkSession) -> int:
    """What `ROWS_TOGETHER` says."""
    return int(spark.conf.get(ROWS_TOGETHER, "50000") or 0)


def bytes_together(spark: SparkSession, levels: Iterable[Level]) -> int:
    """What `BYTES_TOGETHER` says, of a plan with these levels; -1: never."""
    found = int(spark.conf.get(BYTES_TOGETHER, str(1 << 24)) or 0) or -1
    takes_rounds = is_local(spark) and any(level.recursive for level in levels)
    return found * ROUNDS if takes_rounds and found > 0 else found


def _is_local(master: str | None) -> bool:
    return (master or "").partition("[")[0] == "local"


def is_local(spark: SparkSession) -> bool:
    """Whether all its tasks run in this process and workers of its own."""
    return _is_local(spark.sparkContext.master)


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
