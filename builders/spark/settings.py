"""The settings `spark.squall.*` of a run on Spark: their names, defaults, and the check that none is misspelt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from squall.builders.runtime.tuning import Tuning
from squall.errors import UsageError, did_you_mean
from squall.process.memory import machine_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from squall.builders.distributed.plan.stages import Stage

PREFIX = "spark.squall."
MAX_FILES_PER_TRIGGER = "spark.squall.maxFilesPerTrigger"
"""The most new files of a folder that one micro-batch reads. Without it, or with 0, a micro-batch reads all of them."""
MAX_SINGLE_TASK_ROWS = "spark.squall.maxSingleTaskRows"
"""The most rows, of the micro-batch and of the state together, for which one task runs the whole micro-batch. Shuffling
so few rows would take longer. Default: 50,000. 0: a single task never runs it."""
MAX_SINGLE_TASK_BYTES = "spark.squall.maxSingleTaskBytes"
"""The most bytes of input for which one task runs the whole micro-batch, from lines to outputs, without any shuffle.

All input must be files that workers read directly, and the state must have no more rows than `MAX_SINGLE_TASK_ROWS`
(or, on one machine, than a worker caches). A compressed byte counts ten times. Default: 16,777,216. 0: never."""
RECURSION_FACTOR = 16
"""On one machine, one task takes this many times as many bytes if the plan has a recursion with a shuffle inside.

Iterations are more work than that: each shuffles all derived rows, and stores the state of its joins. Without
`MAX_SINGLE_TASK_BYTES` it takes a share of the memory, if that is more."""
_SHARE_OF_MEMORY = 12
"""One task of a recursion takes a twelfth of the machine's memory as input: about one half of it for its state, which
has been measured to take six to seven bytes for each byte of N-Triples (docs/decisions/0050-recursion-in-one-task.md).
Iterations take more."""
_DEFAULT_SINGLE_TASK_BYTES = 1 << 24
MAX_CACHED_STATE_ROWS = "spark.squall.maxCachedStateRows"
"""The most rows of state that a Python worker caches from one micro-batch to the next. It reads the rest from the
checkpoint. Default: 1,000,000. 0: none."""
MAX_BROADCAST_ROWS = "spark.squall.maxBroadcastRows"
"""The most rows that static data may give one side of a join for that side to be broadcast. The other side is then not
shuffled. Default: 10,000. 0: none."""
SKEW_THRESHOLD = "spark.squall.skewThreshold"
"""The share of the rows of one side of a join (0 to 1) from which on a key counts as skewed.

The rows of a skewed key are split over all tasks, and the other side's rows with this key are broadcast. Default: half
of one task's share. 0: never."""


@dataclass(frozen=True)
class SparkTuning(Tuning):
    """The tuning values of the builder. Unlike `Settings`, no user changes them.

    Attributes:
        spool_interval: the longest time in seconds for which the driver gathers the events of a live stream into one
            file.
        max_listed_splits: the most file splits of a micro-batch that the driver asks Spark for.
    """

    spool_interval: float = 0.2
    max_listed_splits: int = 1000


DEFAULT_TUNING = SparkTuning()


@dataclass(frozen=True)
class Settings:
    """The values of the settings, each named after its constant; `skew_threshold` and `max_single_task_bytes` are None
    where they are not set."""

    max_files_per_trigger: int = 0
    max_single_task_rows: int = 50_000
    max_single_task_bytes: int | None = None
    max_cached_state_rows: int = 1_000_000
    max_broadcast_rows: int = 10_000
    skew_threshold: float | None = None

    def single_task_bytes(self, stages: Iterable[Stage], local: bool) -> int:
        """Returns the most bytes of input that one task processes for a plan with these stages; -1: none.

        Args:
            stages: the stages of the plan.
            local: whether all tasks run on one machine, where the same worker runs them each time.
        """
        size = _DEFAULT_SINGLE_TASK_BYTES if self.max_single_task_bytes is None else self.max_single_task_bytes
        if local and any(stage.recursive for stage in stages):
            share = machine_memory() // _SHARE_OF_MEMORY if self.max_single_task_bytes is None else 0
            size = max(size * RECURSION_FACTOR, share)
        return size or -1

    def hot_key_share(self, tasks: int) -> float:
        """Returns the share of rows from which on a key counts as skewed; 0: no key does."""
        return 1 / (2 * tasks) if self.skew_threshold is None else self.skew_threshold


def settings(conf: Iterable[tuple[str, str]]) -> Settings:
    """Reads squall's settings from Spark's. The later of two values wins, and an empty value counts as not set.

    Raises:
        UsageError: squall has no such setting, or the value is not valid.
    """
    fields: dict[str, Any] = {}
    for name, value in conf:
        if not name.startswith(PREFIX):
            continue
        if name not in _SETTINGS:
            hint = did_you_mean(name, _SETTINGS) or f"it has {_listed()}"
            raise UsageError(f"squall has no setting `{name}`", hint=hint)
        field, read = _SETTINGS[name]
        if value.strip():
            fields[field] = read(name, value)
    return Settings(**fields)


def session_settings(spark: SparkSession, conf: Sequence[tuple[str, str]]) -> Settings:
    """Reads squall's settings from a session and from the `conf` of a run on it, which wins."""
    return settings([*spark.conf.getAll.items(), *conf])


def spark_settings(conf: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns the settings that are Spark's, not squall's."""
    return [(name, value) for name, value in conf if not name.startswith(PREFIX)]


def _count(name: str, value: str) -> int:
    try:
        count = int(value)
    except ValueError:
        count = -1
    if count < 0:
        raise UsageError(f"`{name}` cannot be `{value}`", hint="it is a whole number from 0 on, without a unit")
    return count


def _share(name: str, value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"`{name}` cannot be `{value}`", hint="it is a number from 0 to 1")
    return share


def _listed() -> str:
    return ", ".join(f"`{name}`" for name in sorted(_SETTINGS))


_SETTINGS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    MAX_FILES_PER_TRIGGER: ("max_files_per_trigger", _count),
    MAX_SINGLE_TASK_ROWS: ("max_single_task_rows", _count),
    MAX_SINGLE_TASK_BYTES: ("max_single_task_bytes", _count),
    MAX_CACHED_STATE_ROWS: ("max_cached_state_rows", _count),
    MAX_BROADCAST_ROWS: ("max_broadcast_rows", _count),
    SKEW_THRESHOLD: ("skew_threshold", _share),
}
"""The settings: the field of `Settings` for each name, and the function that reads its value."""
