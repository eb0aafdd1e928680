"""Squall at work on a workload, by planner and builder."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import squall
from squall.contracts import Job
from squall.rdf import ALWAYS, Columns, Event, Term, Triple
from squall.streams import Sources, open_sink, open_source, open_static
from tests.bench import spark
from tests.bench.works import OBSERVATION, ON_SPARK, Answer, Evaluate, Statement, Task, Work, statement, written

EVENTS = "events"
"""The suffix of a run (behind planner and builder) that gets a stream in memory as events, and not as columns."""
RULES = "rules"
"""The suffix of a run in which a rule set derives what is entailed, where the workload has an entailment."""
OURS = "rete:iterator"
GIVEN_EVENTS = f"{OURS}:{EVENTS}"
NAMES = {OURS: "squall", ON_SPARK: "squall", GIVEN_EVENTS: "squall, given events"}
"""The names of these runs in the tables."""


def prepare(task: Task, planner: str, builder: str, form: str = "") -> Evaluate:
    """Builds the job and loads its data. `form` is `EVENTS`, `RULES` or empty."""
    system = squall.compile(task.files.program, window=window(task.work), **entailment(task, form))
    job = squall.build(squall.plan(system, planner), builder)
    if builder == "spark":
        spark.start(task.work)
    match task.work.fed:
        case "files" | "folder":
            return lambda: from_file_to_file(job, task)
        case "events":
            events = list(timed(task.files.stream))
            static = [Event(ALWAYS, tuple(map(triple, task.static())))]
            return lambda: event_by_event(job, events, static)
        case _:
            batches = list(batched(task, columns=builder == "iterator" and form != EVENTS))
            static = [Event(ALWAYS, tuple(map(triple, task.static())))]
            return lambda: in_memory(job, batches, static)


def entailment(task: Task, form: str) -> dict[str, Any]:
    """Returns the arguments of `squall.compile` for the entailment of a workload."""
    if task.work.kind != "entailment":
        return {}
    return {"rules": ("rhodf",)} if form == RULES else {"entailment": "rhodf", "schema": [task.files.static]}


def window(work: Work) -> str:
    """Returns the window of a workload, as the command line accepts it."""
    if not work.window:
        return "LANDMARK"
    length = f"{work.milliseconds}ms"
    return f"RANGE {length} STEP {length}" if work.kind == "stepped" else f"RANGE {length}"


def triple(statement: Statement) -> Triple:
    subject, predicate, object = statement
    return Triple(Term(subject), Term(predicate), Term(object))


def timed(path: Path) -> Iterator[Event]:
    """Returns the events of a timed stream: all facts of one time are one event."""
    lines = (line.split(" ", 1) for line in path.read_text().splitlines())
    for time_, group in groupby(lines, key=lambda line: line[0]):
        yield Event(int(time_), tuple(triple(statement(remainder)) for _, remainder in group))


def batched(task: Task, columns: bool = False) -> Iterator[Sequence[Event]]:
    """Yields the stream in memory: as slides of a window, or all at once where there is none.

    Args:
        columns: Whether slides have the form that the iterator builder reads fastest.
    """
    if not task.work.timed:
        yield [Event(0, tuple(map(triple, task.triples())))]
        return
    events = timed(task.files.stream)
    while batch := list(islice(events, task.slide // OBSERVATION)):
        yield Columns.of(batch) if columns else batch


def in_memory(job: Job, batches: Sequence[Sequence[Event]], static: Sequence[Event]) -> Answer:
    outputs = list(job.run(batches, static))
    return Answer(str(output.fact) for output in outputs)


def from_file_to_file(job: Job, task: Task) -> Answer:
    source, static = Sources([open_source(str(task.files.stream))]), open_static(str(task.files.static))
    sink = open_sink(str(task.files.out))
    with closing(sink):
        sink.start()
        for output in job.run(source, static):
            sink.write(output)
    return Answer(written(task.files.out))


def event_by_event(job: Job, events: Sequence[Event], static: Sequence[Event]) -> Answer:
    """Runs a job over one event at a time, and measures how long each event waits for its outputs."""
    clock = time.perf_counter
    began = 0.0

    def source() -> Iterator[Sequence[Event]]:
        nonlocal began
        for event in events:
            batch = [event]
            began = clock()
            yield batch

    outputs, latencies = [], []
    for output in job.run(source(), static):
        latencies.append(clock() - began)
        outputs.append(output)
    return Answer((str(output.fact) for output in outputs), latencies=tuple(latencies))
