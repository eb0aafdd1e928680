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

from squall import errors
from squall.builders.spark import java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("squall")

LOG4J = Path(__file__).absolute().with_name("log4j2.properties")  # in a zip file, workers find this by a relative path
UI_RETENTION = (
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
    **dict.fromkeys(UI_RETENTION, "50"),
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG4J.as_uri()} {QUICK_START}",
    "spark.executor.extraJavaOptions": QUICK_START,
}
"""Our settings for a session of our own; a session that is there already is left as it is."""
DAEMON = ("spark.python.daemon.module", "squall.builders.spark_daemon")
"""The setting for workers that are ready sooner, where they import what this process does: on this machine."""
SOCKETS = "spark.python.unix.domain.socket.enabled"
"""The setting by which Java and its Python workers talk over Unix domain sockets, on this machine (from Spark 4.1 on).
Over TCP each task waits 40 ms: Java sends little after little, and waits for its acknowledgement (Nagle's algorithm,
RFC 896), which the other side's system puts off. (The workers of a cluster are left alone: a path of Hadoop's folders
is mostly longer than such a socket's name may be.)"""
SOCKET_FOLDER = "spark.python.unix.domain.socket.dir"
"""The setting that says where these sockets are: Spark leaves one behind for each session."""
_PATH = 57
"""So many bytes its name may have: Spark adds 43, and a socket's may have about 100, on all systems."""
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

    if (active := _known()) is not None:
        if conf:
            names = ", ".join(name for name, _ in conf)
            logger.warning("the Spark session is there already: settings for it are not taken up: %s", names)
        return active
    java.ensure()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _let_workers_import_squall()
    builder = SparkSession.builder.appName("squall")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    settings = {**({} if submitted else DEFAULTS), **dict(conf)}
    local = _is_local(settings.get("spark.master"))
    if local:
        settings = dict([DAEMON]) | _sockets() | settings
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
    handler = signal.getsignal(signal.SIGINT)
    yield
    is_custom = callable(handler) and handler is not signal.default_int_handler
    if is_custom and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


def _sockets() -> dict[str, str]:
    """See `SOCKETS`."""
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(folder := _socket_folder())) > _PATH:
        return {}
    return {SOCKETS: "true", SOCKET_FOLDER: folder}


@cache
def _socket_folder() -> str:
    return str(passing_folder())


def passing_folder() -> Path:
    """A new folder, for as long as this process lasts."""
    folder = tempfile.mkdtemp(prefix="squall-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _let_logs_be_renamed(spark: SparkSession) -> None:
    """See `LOG_FILES`."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    for name in _RENAMING:
        with suppress(Py4JJavaError):
            spark._jvm.java.lang.Class.forName(name)  # type: ignore[union-attr]
            spark.conf.set(LOG_FILES, name)
            return


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
    root = str(Path(errors.__file__).parent.parent)
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in entries:
        os.environ["PYTHONPATH"] = os.pathsep.join([root, *filter(None, entries)])
