"""How long a micro-batch takes on Spark, beside one in which nothing is done:

    python -m tests.bench.microbatches --triples 10000 --triples 110000 --live 50000 --live 500000

All in one session, the first micro-batches of each being left out: the Java machine is warm. It shows what the Python
workers hold in memory then, and the files of the checkpoint.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import squall
from squall.contracts import Options
from squall.rdf import ALWAYS, Event
from squall.streams import Sources, open_source
from tests.bench import data
from tests.bench.ours import triple
from tests.bench.watch import resident
from tests.bench.works import OBSERVATION, PART, Q3, Q9, Rule, parted, statement, write_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RULES = {"q3": Q3, "q9": Q9}
FIRST = 3
"""The number of micro-batches at the beginning that are not measured."""


def triggers(spark: SparkSession, run: Callable[[], None], look: Callable[[], None] | None = None) -> list[float]:
    """Runs micro-batches, and returns the seconds that Spark reports for each one that had input.

    Args:
        look: A function that is called after each micro-batch.
    """
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryListener,
    )

    results: list[float] = []

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: QueryStartedEvent) -> None:
            pass

        def onQueryProgress(self, event: QueryProgressEvent) -> None:
            if "addBatch" in event.progress.durationMs:
                results.append(event.progress.durationMs["triggerExecution"] / 1000)
                if look is not None:
                    look()

        def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
            pass

    listener = Listener()
    spark.streams.addListener(listener)
    run()
    jvm: Any = spark.sparkContext._jsc
    jvm.sc().listenerBus().waitUntilEmpty()
    spark.streams.removeListener(listener)
    return results


def nothing(spark: SparkSession, shuffles: int, folder: Path, state: Path) -> None:
    """Runs a job whose micro-batches only shuffle their lines, through Python workers, and write them."""

    def batch(frame: DataFrame, number: int) -> None:
        for _ in range(shuffles):
            frame = frame.repartition(spark.sparkContext.defaultParallelism, "value").mapInArrow(same, "value string")
        frame.write.parquet(str(state / f"out{number}"))

    def same(batches: Iterator[Any]) -> Iterator[Any]:
        return batches

    texts = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))
    writer = texts.writeStream.foreachBatch(batch).option("checkpointLocation", str(state / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def ours(rule: Rule, window: str, folder: Path, state: Path) -> None:
    """Runs the rule over a window, without writing its outputs."""
    plan = squall.plan(squall.compile(rule.jena(), lexer="jena", window=window))
    job = squall.build(plan, "spark", Options(checkpoint=state / "checkpoint"))
    static = [Event(ALWAYS, tuple(triple(statement(line)) for line in data.platforms()))]
    for _ in job.run(Sources([open_source(str(folder))]), static):
        pass


def in_workers() -> int:
    """Returns the bytes of memory of the session's Python workers."""
    return sum(map(_of_worker, Path("/proc").glob("[0-9]*")))


def _of_worker(process: Path) -> int:
    try:
        is_one = (
            os.getsid(int(process.name)) == os.getsid(0)
            and b"-m\0squall.builders.spark_daemon" in (process / "cmdline").read_bytes()
        )
        return resident(process) if is_one else 0
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has ended in the meantime


def in_files(folder: Path) -> int:
    """Returns the bytes of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def length(facts: int) -> str:
    """Returns the length of a window that holds so many triples, which come one after the other."""
    return f"{facts // OBSERVATION * data.STEP}ms"


def main(given: Iterable[str] | None = None) -> int:
    from squall.builders.spark import MAX_FILES_PER_TRIGGER, session

    parser = argparse.ArgumentParser("python -m tests.bench.microbatches", description="Seconds per micro-batch.")
    parser.add_argument("--rule", choices=RULES, default="q3")
    parser.add_argument("--triples", type=int, action="append", help="of a micro-batch (10,000)")
    parser.add_argument("--batches", type=int, default=8, help=f"that are measured, behind the first {FIRST} (8)")
    parser.add_argument("--live", type=int, action="append", help="live facts of a continuous window (50,000)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write an SVG there")
    arguments = parser.parse_args(None if given is None else list(given))
    spark = session([(MAX_FILES_PER_TRIGGER, "1")])
    rule = RULES[arguments.rule]
    panels: list[tuple[str, dict[str, float]]] = []
    with tempfile.TemporaryDirectory() as place:

        def measured(name: str, run: Callable[[Path, Path], None], triples: int, before: int = 0) -> None:
            state = Path(tempfile.mkdtemp(dir=place))
            folder = state / "in"
            lines = list(data.sensors(before + triples * (FIRST + arguments.batches)))
            write_parts(folder, [*parted(lines[:before], PART), *parted(lines[before:], triples)])
            seconds = median(triggers(spark, lambda: run(folder, state))[-arguments.batches :])
            memory, files = in_workers() / 1e6, in_files(state / "checkpoint") / 1e6
            print(f"{name:35} {seconds:6.2f} s {memory:7.1f} MB {files:6.1f} MB", flush=True)
            panels[-1][1][name] = seconds

        for triples in arguments.triples or [10_000]:
            title, step = f"{arguments.rule}, micro-batches of {triples:,} triples", length(triples)
            panels.append((title, {}))
            print(f"{title:35} a micro-batch  in workers  in files")
            measured("nothing, 3 shuffles", partial(nothing, spark, 3), triples)
            measured("squall, stepped", partial(ours, rule, f"RANGE {step} STEP {step}"), triples)
            for live in arguments.live or [50_000]:
                run = partial(ours, rule, f"RANGE {length(live)}")
                measured(f"squall, continuous, {live:,} live", run, triples, live)
    if arguments.plot:
        from tests.bench import plots  # matplotlib is an extra

        plots.seconds(panels, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
