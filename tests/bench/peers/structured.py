"""PySpark: a Structured Streaming job written by hand, from a folder to a folder. Patterns are joined stream with
stream within the window of their time; what is static is broadcast. The watermark lets Spark forget windows that have
ended."""

from __future__ import annotations

from pyspark.sql import functions as f

from tests.bench import spark
from tests.bench.peers.frames import emptied, joined, lines, parsed, wanted, written
from tests.bench.works import Answer, Evaluate, Task


def prepare(task: Task) -> Evaluate:
    session = spark.start(task.work)
    (rule,) = task.work.rules
    length = f"{task.work.milliseconds} milliseconds"

    def evaluate() -> Answer:
        texts = session.readStream.option("maxFilesPerTrigger", 1).text(str(task.files.stream))
        triples = wanted(rule, parsed(texts, timed=True)).withColumn("at", f.timestamp_millis("time"))
        placed = triples.withWatermark("at", "0 seconds").withColumn("window", f.window("at", length))
        static = parsed(session.read.text(str(task.files.static)), timed=False)
        out = emptied(task.files)
        writer = lines(rule, joined(rule, placed, static, "window")).writeStream.format("text")
        writer = writer.option("path", str(out)).option("checkpointLocation", str(out.with_name("state")))
        writer.trigger(availableNow=True).start().awaitTermination()
        return Answer(written(task.files))

    return evaluate
