"""squall's own settings of a run on Spark, `spark.squall.*`: what each means, and that none is misspelt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from squall.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from squall.builders.distributed.plan.stages import Stage

PREFIX = "spark.squall."
FILES_PER_BATCH = "spark.squall.maxFilesPerTrigger"
"""The setting that says how many new files of a folder go into one micro-batch at most; without it, or 0, all do."""
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


@dataclass(frozen=True)
class Settings:
    """What the settings say, each by the constant of its name; `skew_share` is None where it is not set."""

    files_per_batch: int = 0
    rows_together: int = 50_000
    bytes_together: int = 1 << 24
    rows_in_worker: int = 1_000_000
    rows_to_all: int = 10_000
    skew_share: float | None = None

    def straight(self, levels: Iterable[Stage], local: bool) -> int:
        """Up to how many bytes one task works off of a plan with these levels; -1: none. local: it is always the same
        one, on one machine."""
        rounds = ROUNDS if local and any(level.recursive for level in levels) else 1
        return self.bytes_together * rounds or -1

    def hot(self, tasks: int) -> float:
        """The share of rows with the same key from which on this key is hot; 0: none is."""
        return 1 / (2 * tasks) if self.skew_share is None else self.skew_share


def settings(conf: Iterable[tuple[str, str]]) -> Settings:
    """What settings of Spark say to squall; the later of two wins, and an empty one is as if it were not there. Raises
    UsageError where squall has no such setting, or it cannot have the value."""
    found: dict[str, Any] = {}
    for name, value in conf:
        if not name.startswith(PREFIX):
            continue
        if name not in _KNOWN:
            raise UsageError(f"squall has no setting `{name}`", hint=did_you_mean(name, _KNOWN) or f"it has {_listed()}")
        field, read = _KNOWN[name]
        if value.strip():
            found[field] = read(name, value)
    return Settings(**found)


def settings_of(spark: SparkSession, conf: Sequence[tuple[str, str]]) -> Settings:
    """The same of a session, and of a run on it, whose `conf` wins."""
    return settings([*spark.conf.getAll.items(), *conf])


def others(conf: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The settings that are not squall's own."""
    return [(name, value) for name, value in conf if not name.startswith(PREFIX)]


def _count(name: str, value: str) -> int:
    try:
        found = int(value)
    except ValueError:
        found = -1
    if found < 0:
        raise UsageError(f"`{name}` cannot be `{value}`", hint="it is a whole number from 0 on, without a unit")
    return found


def _share(name: str, value: str) -> float:
    try:
        found = float(value)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise UsageError(f"`{name}` cannot be `{value}`", hint="it is a number from 0 to 1")
    return found


def _listed() -> str:
    return ", ".join(f"`{name}`" for name in sorted(_KNOWN))


_KNOWN: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    FILES_PER_BATCH: ("files_per_batch", _count),
    ROWS_TOGETHER: ("rows_together", _count),
    BYTES_TOGETHER: ("bytes_together", _count),
    ROWS_IN_WORKER: ("rows_in_worker", _count),
    ROWS_TO_ALL: ("rows_to_all", _count),
    SKEW_SHARE: ("skew_share", _share),
}
"""The settings that there are: the field of each, and what reads its value."""
