"""One micro-batch on Spark: a chain of bounded jobs, from messages of the sources to outputs and new state.

Each *superstep* shuffles the rows on their way to a level together with what the level keeps, works them off in Python
workers, and writes what comes out as Parquet, which cuts the lineage and makes the batch repeatable (the bulk synchronous
model: Valiant 1990). A level inside which rows move takes supersteps until nothing moves any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from squall.builders.cut import Level
from squall.builders.rows import row_fact
from squall.builders.store import Store
from squall.builders.worker import (
    COUNT,
    DELETE,
    DELIVER,
    HELD,
    LOST,
    PLAIN,
    REDERIVE,
    ROW,
    SCHEMA,
    STATE,
    TIME,
    Lost,
    Program,
    delivery,
    superstep,
    unpack,
)
from squall.operators import Deliver
from squall.rdf import ALWAYS, FOREVER
from squall.stages import Output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMPACT = 16
"""After how many batches the files of the state are made few again."""
_COLUMNS = ["kind", "level", "bucket", "node", "port", "row", "start", "end", "weight"]


class Batches:
    """The batches of one job, one after the other; the state between them lies in the store.

    done: how many are committed. passed: the latest event time of those (integer ms); open: whether its instant waits for
    more events. number: Spark's own number of the last micro-batch that is committed; -1 before the first.
    """

    def __init__(self, spark: SparkSession, store: Store, program: Program, partitions: int) -> None:
        self.spark = spark
        self.store = store
        self.program = program
        self.partitions = partitions
        deliver = next(node.op for node in program.plan.nodes if isinstance(node.op, Deliver))
        self.every_time = deliver.output == "rstream"
        self.whole_instants = bool(program.plan.retractable) or deliver.output != "istream"
        self.done = len(store.numbers("commits"))
        start = {"passed": ALWAYS, "open": False, "number": -1, "held": None}
        last = store.read("commits", f"{self.done - 1}.json") or start
        self.passed: int = last["passed"]
        self.open: bool = last["open"]
        self.number: int = last["number"]
        self.held: int | None = last["held"]
        self.base = max(self.store.numbers("base"), default=-1)
        self.steps: list[str] = []
        self.state: list[Sequence[object]] = [("base", self.base)] if self.base >= 0 else []
        for batch in range(self.base + 1, self.done):
            self.state += [("runs", batch, step) for step in self.store.names("runs", batch)]

    @property
    def earliest(self) -> int:
        """The time (integer ms) before which an event is late."""
        return self.passed if self.open or not self.whole_instants else self.passed + 1

    # A batch

    def work(self, messages: DataFrame | None, last: bool = False) -> Iterator[Output]:
        """The outputs of a batch, in the order of time. Nothing of it counts before `commit`.

        messages: of the sources; None if there are none. last: no more events will come, so that every instant is whole.
        """
        self.store.delete("runs", self.done)
        self.steps = []
        if self.whole_instants:
            self._take_due(messages, last)
        elif messages is not None:
            self._first(messages)
        for level in self.program.levels:
            self._level(level)
        yield from self._deliver(last)

    def commit(self, number: int | None) -> None:
        """The outputs of the batch are where they belong: the batch counts. `number`: Spark's number of it."""
        self.number = self.number if number is None else number
        times = self._times()
        self.open = self.whole_instants and bool(times)
        self.passed = max(self.passed, *times) if times else self.passed
        held = self.done if any(self._has(step, HELD) for step in self.steps) else None
        done = {"passed": self.passed, "open": self.open, "number": self.number, "held": held}
        self.store.write(done, "commits", f"{self.done}.json")
        self.state += self._of_batch(step for step in self.steps if self._has(step, STATE))
        if self.held is not None and self.held != held:
            self._forget(self.held, HELD)
        self.held = held
        for kind in (ROW, LOST, TIME, COUNT):
            self._forget(self.done, kind)
        self.done += 1
        if self.done - 1 - self.base >= COMPACT:
            self._compact()

    def _forget(self, batch: int, kind: str) -> None:
        for step in self.store.names("runs", batch):
            self.store.delete("runs", batch, step, f"kind={kind}")

    # Steps: each a folder of messages, by kind and level

    def _write(self, messages: DataFrame) -> str:
        step = f"{len(self.steps):04d}"
        messages.write.partitionBy("kind", "level").parquet(self.store.uri("runs", self.done, step))
        self.steps.append(step)
        return step

    def _has(self, step: str, kind: str, level: int | None = None) -> bool:
        where = ("runs", self.done, step, f"kind={kind}")
        return self.store.exists(*where, *([] if level is None else [f"level={level}"]))

    def _messages(self, kind: str, level: int, folders: Iterable[Sequence[object]]) -> DataFrame | None:
        """The messages of one kind and level in some folders; None if there are none."""
        from pyspark.sql import functions as f

        parts = [(*folder, f"kind={kind}", f"level={level}") for folder in folders]
        paths = [self.store.uri(*part) for part in parts if self.store.exists(*part)]
        if not paths:
            return None
        schema = ", ".join(column for column in SCHEMA.split(", ") if column.split()[0] not in ("kind", "level"))
        frame = self.spark.read.schema(schema).parquet(*paths)
        return frame.withColumns({"kind": f.lit(kind), "level": f.lit(level)}).select(_COLUMNS)

    def _of_batch(self, steps: Iterable[str]) -> list[Sequence[object]]:
        return [("runs", self.done, step) for step in steps]

    def _state(self, level: int) -> DataFrame | None:
        """What a level keeps: after the last compaction, after every batch since, and in this batch so far."""
        return self._messages(STATE, level, self.state + self._of_batch(self.steps))

    # The sources' messages

    def _first(self, messages: DataFrame) -> None:
        """Sources and the first level in one job, where nothing has to be waited for in between."""
        first = self.program.levels[0] if self.program.levels else None
        if first is None or (first.recursive and first.deletes):
            self._write(messages)
        else:
            self._superstep(first, PLAIN, messages)

    def _take_due(self, messages: DataFrame | None, last: bool) -> None:
        """Takes the rows of instants that are whole, new ones and those held back before; holds back the others."""
        from pyspark.sql import functions as f

        if messages is not None:
            self._write(messages)
        end = FOREVER if last else max(self._times(), default=self.passed)
        known = [self._messages(HELD, level, self._held_folders()) for level in self._all_levels()]
        known += [self._messages(ROW, level, self._of_batch(self.steps)) for level in self._all_levels()]
        rows = _union(known)
        if rows is None:
            return
        raw = list(self.steps)
        kind = f.when((f.col("start") < end) | (f.col("start") == ALWAYS), ROW).otherwise(HELD)
        self._write(rows.withColumn("kind", kind))
        for step in raw:
            self.store.delete("runs", self.done, step, f"kind={ROW}")

    def _held_folders(self) -> list[Sequence[object]]:
        if self.held is None:
            return []
        return [("runs", self.held, step) for step in self.store.names("runs", self.held)]

    def _all_levels(self) -> list[int]:
        return [*(level.number for level in self.program.levels), DELIVER]

    def _times(self) -> list[int]:
        """Event times of the batch: all, where each of them is an evaluation instant, else the latest of each task."""
        times = self._messages(TIME, 0, self._of_batch(self.steps))
        return sorted(row[0] for row in times.select("start").distinct().collect()) if times is not None else []

    def losses(self) -> Iterator[Lost]:
        """The statements of the batch that could not be used."""
        lost = self._messages(LOST, 0, self._of_batch(self.steps))
        for row in lost.select("row").toLocalIterator() if lost is not None else ():
            yield Lost(*json.loads(row[0]))

    def counts(self) -> Iterator[tuple[int, int]]:
        """(number of the source, statements read of it) in the batch."""
        counts = self._messages(COUNT, 0, self._of_batch(self.steps))
        if counts is not None:
            yield from ((row[0], row[1]) for row in counts.groupBy("node").sum("start").collect())

    # Levels

    def _level(self, level: Level) -> None:
        """Works a level off."""
        steps = [step for step in self.steps if self._has(step, ROW, level.number)]
        if not steps:
            return
        if not (level.recursive and level.deletes):
            self._rounds(level, PLAIN, steps)
            return
        self._rounds(level, DELETE, steps)
        step = self._superstep(level, REDERIVE, None)
        self._rounds(level, REDERIVE, [step] if self._has(step, ROW, level.number) else [])

    def _rounds(self, level: Level, phase: str, steps: list[str]) -> None:
        while steps:
            step = self._superstep(level, phase, self._messages(ROW, level.number, self._of_batch(steps)))
            steps = [step] if self._has(step, ROW, level.number) else []

    def _superstep(self, level: Level, phase: str, rows: DataFrame | None) -> str:
        """One round of a level, as one Spark job."""
        together = _union([self._state(level.number), rows])
        assert together is not None, "a level is worked only where it has rows or state"
        shuffled = together.repartition(self.partitions, "bucket")
        return self._write(shuffled.mapInArrow(superstep(self.program, level, phase), SCHEMA))

    # The end

    def _deliver(self, last: bool) -> Iterator[Output]:
        """The answer's facts by the R2S operator, in the order of time."""
        rows = self._messages(ROW, DELIVER, self._of_batch(self.steps))
        instants = self._instants(last)
        if rows is None and not instants:
            return
        together = _union([rows, self._state(DELIVER)])
        if together is None:
            return
        shuffled = together.repartition(self.partitions, "bucket")
        step = self._write(shuffled.mapInArrow(delivery(self.program, instants), SCHEMA))
        found = self._messages(ROW, DELIVER, self._of_batch([step]))
        for row, time in found.select("row", "start").orderBy("start", "row").toLocalIterator() if found is not None else ():
            *fact, rule = unpack(row)
            yield Output(row_fact(tuple(fact)), time, rule)

    def _instants(self, last: bool) -> tuple[int, ...]:
        """The evaluation instants of the batch, where the answer depends on them: those that are whole."""
        if not self.every_time:
            return ()
        if self.done == 0:
            return (ALWAYS,)
        times = {*self._times(), *([self.passed] if self.open else [])}
        return tuple(sorted(time for time in times if last or time < max(times)))

    def _compact(self) -> None:
        """Adds up the state of all batches so far into one folder. A crash at any point leaves all that is needed."""
        from pyspark.sql import functions as f

        number = self.done - 1
        state = _union([self._messages(STATE, level, self.state) for level in self._all_levels()])
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
            if old <= number and old != self.held:
                self.store.delete("runs", old)
        for old in self.store.numbers("base"):
            if old < number:
                self.store.delete("base", old)
        self.base, self.state = number, [("base", number)]


def _union(frames: Iterable[DataFrame | None]) -> DataFrame | None:
    whole = None
    for frame in frames:
        if frame is not None:
            whole = frame if whole is None else whole.unionByName(frame)
    return whole
