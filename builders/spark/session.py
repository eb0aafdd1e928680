"""The Spark session of a job, and its settings."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from squall.builders.spark import java, worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("squall")

LOG4J = Path(__file__).absolute().with_name("log4j2.properties")  # in a zip file, workers find this by a relative path
UI_RETENTION = (
    "spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.ui.retainedTasks", "spark.sql.ui.retainedExecutions",
)  # fmt: skip
"""The settings for how much history Spark keeps for its web interface. By default it keeps 1000 jobs, stages and
queries, and 100,000 tasks, even if nobody looks."""
QUICK_START = "-XX:TieredStopAtLevel=1"
"""Makes Java compile with the first, quick compiler only. Java merely passes on what workers do, and compiling it well
takes more time than it saves (docs/decisions/0040-cold-spark.md)."""
RECORDS_PER_READ = ("spark.sql.parquet.columnarReaderBatchSize", "16")
"""The setting for how many records of a file Java holds at once. Each of ours is a batch of rows, of up to some MB: of
4,096, Spark's default, there may be more than its memory has."""
DEFAULTS = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    **dict.fromkeys(UI_RETENTION, "50"),
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.sql.session.timeZone": "UTC",
    RECORDS_PER_READ[0]: RECORDS_PER_READ[1],
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG4J.as_uri()} {QUICK_START}",
    "spark.executor.extraJavaOptions": QUICK_START,
}
"""Our settings for a session of our own; an existing session keeps its settings."""
DAEMON = ("spark.python.daemon.module", "squall.builders.spark_daemon")
"""The setting for a daemon whose workers start faster, where they import what this process does: on this machine."""
SOCKETS = "spark.python.unix.domain.socket.enabled"
"""The setting that lets Java and its Python workers talk over Unix domain sockets on this machine (from Spark 4.1 on).

Over TCP each task waits 40 ms: Java sends small writes and waits for each acknowledgement (Nagle's algorithm, RFC 896),
which the receiving system delays. (Workers of a cluster do without: the path of a Hadoop folder is mostly longer than
the name of such a socket may be.)
"""
SOCKET_FOLDER = "spark.python.unix.domain.socket.dir"
"""The setting for the folder of these sockets: Spark leaves one behind for each session."""
_PATH = 57
"""So many bytes its name may have: Spark adds 43, and a socket's may have about 100, on all systems."""
LOG_FILES = "spark.sql.streaming.checkpointFileManagerClass"
"""The setting for how a query's log is written.

By default Spark uses Hadoop's `FileContext`, which on a local disk starts a process for each possible symbolic link:
some 30 of them for the three files of a micro-batch. `FileSystem` starts six. Both write a temporary file and rename
it.
"""
_RENAMING = tuple(
    f"org.apache.spark.sql.execution.streaming.{package}FileSystemBasedCheckpointFileManager"
    for package in ("checkpointing.", "")  # Spark has moved it
)

_STARTS_JAVA = threading.Event()
"""Whether a process that is forked is Java."""


def session(conf: Sequence[tuple[str, str]] = ()) -> SparkSession:
    """Returns the active session, or starts a new one.

    A new session has a master of ``local[*]`` and `DEFAULTS`, which `conf` overrides. A session started by
    ``spark-submit``, which has settings of its own, gets `conf` only.

    Raises:
        BuilderError: There is no Java, or the Python of the workers cannot import squall.
    """
    from pyspark.sql import SparkSession

    if (active := _known()) is not None:
        if conf:
            names = ", ".join(name for name, _ in conf)
            logger.warning("the Spark session is there already: settings for it are not taken up: %s", names)
        worker_python.ensure(active.sparkContext)
        return active
    java.ensure()
    os.environ.setdefault(worker_python.VARIABLE, sys.executable)
    _let_workers_import_squall()
    builder = SparkSession.builder.appName("squall")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    settings = {**({} if submitted else DEFAULTS), **dict(conf)}
    local = _is_local(settings.get("spark.master"))
    if local:
        settings = dict([DAEMON]) | _sockets() | settings
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _preserved_signals(), _sparing_java():
        spark = builder.getOrCreate()
    worker_python.ensure(spark.sparkContext)
    if local and LOG_FILES not in settings:
        _let_logs_be_renamed(spark)
    return spark


@contextmanager
def _preserved_signals() -> Iterator[None]:
    """Restores a custom handler of Ctrl-C, which Spark would replace."""
    handler = signal.getsignal(signal.SIGINT)
    yield
    is_custom = callable(handler) and handler is not signal.default_int_handler
    if is_custom and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _sparing_java() -> Iterator[None]:
    """Lets the Java that is started within the context ignore SIGTERM.

    Service managers and `timeout` send the signal to all processes of a group. It is this process that ends the run,
    and Java ends with it, since its standard input is closed then.
    """
    _STARTS_JAVA.set()
    try:
        yield
    finally:
        _STARTS_JAVA.clear()


def _ignore_sigterm() -> None:
    if _STARTS_JAVA.is_set():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


os.register_at_fork(after_in_child=_ignore_sigterm)


def _sockets() -> dict[str, str]:
    """Returns the settings for Unix domain sockets; none where they cannot be used (see `SOCKETS`)."""
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(folder := _socket_folder())) > _PATH:
        return {}
    return {SOCKETS: "true", SOCKET_FOLDER: folder}


@cache
def _socket_folder() -> str:
    return str(passing_folder())


def passing_folder() -> Path:
    """Makes a folder that lasts as long as this process."""
    folder = tempfile.mkdtemp(prefix="squall-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _let_logs_be_renamed(spark: SparkSession) -> None:
    """Sets `LOG_FILES`."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    for name in _RENAMING:
        with suppress(Py4JJavaError):
            spark._jvm.java.lang.Class.forName(name)  # type: ignore[union-attr]
            spark.conf.set(LOG_FILES, name)
            return


def _is_local(master: str | None) -> bool:
    return (master or "").partition("[")[0] == "local"


def is_local(spark: SparkSession) -> bool:
    """Returns whether all tasks run in this process and in workers of its own."""
    return _is_local(spark.sparkContext.master)


def silence(spark: SparkSession) -> None:
    """Stops all logging of a session's Java."""
    log4j = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    log4j.core.config.Configurator.setAllLevels("", log4j.Level.OFF)


def _known() -> SparkSession | None:
    """Returns this thread's session, or else the one that another thread has started."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _let_workers_import_squall() -> None:
    """Lets Python workers import this package from where this process has found it, also in a checkout that is not
    installed."""
    root = worker_python.package_root()
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in entries:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *filter(None, entries)])
