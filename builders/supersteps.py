"""One micro-batch on Spark: a chain of bounded jobs, from messages of the sources to outputs and new state.

Each *superstep* shuffles the rows on their way to a level together with what the level keeps, works them off in Python
workers, and writes what comes out as Parquet, which cuts the lineage and makes the batch repeatable (the bulk
synchronous model: Valiant 1990). A level inside which rows move takes supersteps until nothing moves any more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from squall.builders.cut import Level
from squall.builders.rows import remembers
from squall.builders.rows.entries import row_fact
from squall.builders.store import Store
from squall.builders.worker import (
    BUCKETS,
    COUNT,
    DELETE,
    DELIVER,
    LOST,
    PLAIN,
    REDERIVE,
    ROW,
    SCHEMA,
    STATE,
    TIME,
    TOGETHER,
    Lost,
    Owners,
    Program,
    delivery,
    superstep,
    unpack,
)
from squall.rdf import ALWAYS, FOREVER
from squall.stages import Output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMPACT = 16
"""After how many batches the files of the state are made few again."""
_COLUMNS = ["kind", "level", "bucket", "node", "port", "row", "start", "end", "weight"]


Folder = tuple[object, ...]
"""The parts of a path in the store."""


class Told(NamedTuple):
    """What workers tell: event times (integer ms, ascending); statements read, by number of the source; how many rows
    are on their way, and how many are kept."""

    times: tuple[int, ...] = ()
    counts: tuple[tuple[int, int], ...] = ()
    rows: int = 0
    kept: int = 0


def observed(messages: DataFrame) -> tuple[DataFrame, Callable[[], Told]]:
    """The messages, and what they tell once they have been written (Spark's observed metrics: no job of its own)."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation()
    times = f.collect_set(f.when(f.col("kind") == TIME, f.col("start")))
    counts = f.collect_list(f.when(f.col("kind") == COUNT, f.struct("node", "start")))
    rows, kept = (f.count_if(f.col("kind") == kind) for kind in (ROW, STATE))
    frame = messages.observe(
        observation, times.alias("times"), counts.alias("counts"), rows.alias("rows"), kept.alias("kept")
    )

    def told() -> Told:
        found = observation.get
        read = tuple((row["node"], row["start"]) for row in found["counts"])
        return Told(tuple(sorted(found["times"])), read, found["rows"], found["kept"])

    return frame, told


@dataclass
class Progress:
    """How far a job has come: what the commit of its last batch says.

    passed: the latest event time so far (integer ms). number: Spark's own number of the last micro-batch; -1 before the
    first. held: the folders in which rows wait for their instant to be whole; waiting: how many they are at most. rows:
    how many rows the state has at most.
    """

    passed: int = ALWAYS
    number: int = -1
    held: list[Folder] = field(default_factory=list)
    waiting: int = 0
    rows: int = 0


class Batches:
    """The batches of one job, one after the other; the state between them lies in the store.

    done: how many are committed. whole_instants: whether an instant is worked off only when all of it is there; then
    rows from the time `end` on wait. together: up to how many rows, those of the batch and of the state, a batch is
    worked off by a single task.
    """

    def __init__(self, spark: SparkSession, store: Store, program: Program, together: int) -> None:
        self.spark = spark
        self.store = store
        self.program = program
        self.together = together
        self.partitions = max(2, spark.sparkContext.defaultParallelism)
        self.owners = _owners(spark, self.partitions)
        _, deliver = program.plan.delivery
        self.every_time = deliver.output == "rstream"
        self.remembers = remembers(program.plan)
        self.whole_instants = bool(program.plan.retractable) or deliver.output != "istream"
        self.done = len(store.numbers("commits"))
        self.progress = Progress(**(store.read("commits", f"{self.done - 1}.json") or {}))
        self.base = max(self.store.numbers("base"), default=-1)
        self.state: list[Folder] = [("base", self.base)] if self.base >= 0 else []
        for batch in range(self.base + 1, self.done):
            self.state += [("runs", batch, step) for step in self.store.names("runs", batch)]
        self.steps: list[str] = []
        self.told = Told()
        self.kept = 0
        self.end = FOREVER

    @property
    def earliest(self) -> int:
        """The time (integer ms) before which an event is late."""
        passed = self.progress.passed
        return passed + 1 if self.whole_instants and not self.progress.held and passed > ALWAYS else passed

    # A batch

    def work(self, messages: DataFrame | None, last: bool = False) -> Iterator[Output]:
        """The outputs of a batch, in the order of time. Nothing of it counts before `commit`.

        messages: of the sources; None if there are none. last: no more events will come, so that every instant is
        whole.
        """
        self.store.delete("runs", self.done)
        self.steps, self.told, self.kept = [], Told(), 0
        if messages is not None:
            self.told = self._write(messages)[1]
        self.end = self._end(last)
        if self.progress.rows + self.progress.waiting + self.told.rows <= self.together:
            self._level(self.program.levels, (PLAIN,), 1, TOGETHER)
        else:
            for level in self.program.levels:
                phases = (DELETE, REDERIVE) if level.recursive and level.deletes else (PLAIN,)
                self._level([level], phases, self.partitions, self.owners)
        yield from self._deliver()

    def commit(self, number: int | None) -> None:
        """The outputs of the batch are where they belong: the batch counts. `number`: Spark's number of it."""
        before = self.progress
        held = [] if self.end == FOREVER else [*before.held, *self._of_batch(self.steps[:1])]
        self.progress = Progress(
            passed=max([before.passed, *self.told.times]),
            number=before.number if number is None else number,
            held=held,
            waiting=before.waiting + self.told.rows if held else 0,
            rows=before.rows + self.kept,
        )
        self.store.write(asdict(self.progress), "commits", f"{self.done}.json")
        self.state += self._of_batch(step for step in self.steps if self._has(step, STATE))
        for folder in (*before.held, *self._of_batch(self.steps)):
            for kind in (ROW, LOST, TIME, COUNT) if folder not in held else ():
                self.store.delete(*folder, f"kind={kind}")
        self.done += 1
        if self.done - 1 - self.base >= COMPACT:
            self._compact()

    def _end(self, last: bool) -> int:
        """The time (integer ms) from which on rows have to wait."""
        if last or not self.whole_instants or self.done == 0:
            return FOREVER
        return max([self.progress.passed, *self.told.times])

    # Steps: each a folder of messages, by kind and level

    def _write(self, messages: DataFrame) -> tuple[str, Told]:
        """Runs a job, its outcome a step of this batch. Answers with the step, and what the messages tell."""
        step = f"{len(self.steps):04d}"
        frame, told = observed(messages)
        frame.write.partitionBy("kind", "level").parquet(self.store.uri("runs", self.done, step))
        self.steps.append(step)
        found = told()
        self.kept += found.kept
        return step, found

    def _has(self, step: str, kind: str) -> bool:
        return self.store.exists("runs", self.done, step, f"kind={kind}")

    def _messages(self, kind: str, level: int, folders: Iterable[Folder]) -> DataFrame | None:
        """The messages of one kind and level in some folders; None if there are none."""
        from pyspark.sql import functions as f

        parts = [(*folder, *_part(kind, level)) for folder in folders]
        paths = [self.store.uri(*part) for part in parts if self.store.exists(*part)]
        if not paths:
            return None
        schema = ", ".join(column for column in SCHEMA.split(", ") if column.split()[0] not in ("kind", "level"))
        frame = self.spark.read.schema(schema).parquet(*paths)
        return frame.withColumns({"kind": f.lit(kind), "level": f.lit(level)}).select(_COLUMNS)

    def _of_batch(self, steps: Iterable[str]) -> list[Folder]:
        return [("runs", self.done, step) for step in steps]

    def _state(self, level: int) -> DataFrame | None:
        """What a level keeps: after the last compaction, after every batch since, and in this batch so far."""
        return self._messages(STATE, level, self.state + self._of_batch(self.steps))

    # The sources' messages

    def losses(self) -> Iterator[Lost]:
        """The statements of the batch that could not be used."""
        lost = self._messages(LOST, 0, self._of_batch(self.steps))
        for row in lost.select("row").toLocalIterator() if lost is not None else ():
            yield Lost(*json.loads(row[0]))

    def _due(self, levels: Sequence[Level]) -> DataFrame | None:
        """The rows on their way to some levels, new ones and those that have waited; not those that have to wait on."""
        from pyspark.sql import functions as f

        found = []
        for level in levels:
            waited = self._messages(ROW, level.number, self.progress.held)
            found.append(self._messages(ROW, level.number, self._of_batch(self.steps)))
            found.append(waited.where(f.col("start") >= self.progress.passed) if waited is not None else None)
        together = _union(found)
        return together if together is None or self.end == FOREVER else together.where(f.col("start") < self.end)

    # Levels

    def _level(self, levels: Sequence[Level], phases: Sequence[str], partitions: int, owners: Owners) -> None:
        """Works some levels off, in rounds."""
        rows = self._due(levels)
        if rows is None:
            return
        for phase in phases:
            while phase == REDERIVE or rows is not None:
                step = self._superstep(levels, phase, rows, partitions, owners)
                rows = _union(self._messages(ROW, level.number, self._of_batch([step])) for level in levels)
                if rows is None:
                    break

    def _superstep(
        self, levels: Sequence[Level], phase: str, rows: DataFrame | None, partitions: int, owners: Owners
    ) -> str:
        """One round of some levels, as one Spark job."""
        together = _union([*(self._state(level.number) for level in levels), rows])
        assert together is not None, "levels are worked only where they have rows or state"
        shuffled = together.repartition(partitions, "bucket")
        return self._write(shuffled.mapInArrow(superstep(self.program, levels, phase, owners), SCHEMA))[0]

    # The end

    def _deliver(self) -> Iterator[Output]:
        """The answer's facts by the R2S operator, in the order of time."""
        rows = self._messages(ROW, DELIVER, self._of_batch(self.steps))
        instants = self._instants()
        together = _union([rows, self._state(DELIVER)]) if rows is not None or instants else None
        if together is None:
            return
        shuffled = together.repartition(self.partitions, "bucket")
        found: DataFrame | None = shuffled.mapInArrow(delivery(self.program, instants), SCHEMA)
        if self.remembers and found is not None:
            found = self._messages(ROW, DELIVER, self._of_batch([self._write(found)[0]]))
        if found is None:
            return
        # One task puts them in order: they leave through the driver, one by one, anyhow.
        in_order = found.select("row", "start").repartition(1).sortWithinPartitions("start", "row")
        for row, time in in_order.toLocalIterator():
            *fact, rule = unpack(row)
            yield Output(row_fact(fact), time, str(rule))

    def _instants(self) -> tuple[int, ...]:
        """The evaluation instants of the batch, where the answer depends on them: those that are whole."""
        if not self.every_time:
            return ()
        if self.done == 0:
            return (ALWAYS,)
        times = {*self.told.times, *([self.progress.passed] if self.progress.held else [])}
        return tuple(sorted(time for time in times if time < self.end))

    def _compact(self) -> None:
        """Adds up the state of all batches so far into one folder. A crash at any point leaves all that is needed."""
        from pyspark.sql import functions as f

        number = self.done - 1
        levels = [*(level.number for level in self.program.levels), DELIVER]
        state = _union([self._messages(STATE, level, self.state) for level in levels])
        if state is None:
            return
        keys = [column for column in _COLUMNS if column != "weight"]
        summed = state.groupBy(keys).agg(f.sum("weight").cast("int").alias("weight")).where("weight != 0")
        packed = summed.select(_COLUMNS).repartition(self.partitions, "bucket")
        draft = ("base", f"_{number}")
        self.store.delete(*draft)
        packed.write.partitionBy("kind", "level").parquet(self.store.uri(*draft))
        self.store.rename(draft, ("base", number))
        for old in self.store.numbers("runs"):
            if old <= number and not any(folder[1] == old for folder in self.progress.held):
                self.store.delete("runs", old)
        for old in self.store.numbers("base"):
            if old < number:
                self.store.delete("base", old)
        self.base, self.state = number, [("base", number)]


def _owners(spark: SparkSession, partitions: int) -> Owners:
    """The partition in which each bucket's rows lie after ``repartition(partitions, bucket)``: Spark's own
    arithmetic."""
    where = f"cast(pmod(hash(cast(id as int)), {partitions}) as int)"
    return tuple(row[0] for row in spark.range(BUCKETS).selectExpr(where, "id").orderBy("id").collect())


def _part(kind: str, level: int) -> Folder:
    """Where the messages of a kind and level lie in the folder of a step."""
    return (f"kind={kind}", f"level={level}")


def _union(frames: Iterable[DataFrame | None]) -> DataFrame | None:
    whole = None
    for frame in frames:
        if frame is not None:
            whole = frame if whole is None else whole.unionByName(frame)
    return whole
