"""A job of the Beam builder: what the driver reads and hands to a pipeline, and what it hands on of its outcome."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from os.path import getsize
from pathlib import Path
from typing import Any

from squall import functions
from squall.builders.beam import files
from squall.builders.beam.graph import describe, graph, live_graph
from squall.builders.beam.live import Live
from squall.builders.beam.live_pipeline import lay_live
from squall.builders.beam.options import Runner
from squall.builders.beam.pipeline import Input, Layout, answers, evaluations, lay_whole, told
from squall.builders.beam.serialized_program import Shipped
from squall.builders.distributed.exec.output_stage import told_whole
from squall.builders.distributed.exec.sharded_plan import Progress, Task
from squall.builders.distributed.io.ingest import (
    check_bounded,
    check_clock,
    document_of,
    is_live,
    lose,
    readable,
    timely,
)
from squall.builders.distributed.io.parsing import Document, Lost, lines_parser
from squall.builders.distributed.io.records import COUNT, LOST, ROW, Failed, Record
from squall.builders.distributed.io.splits import Part, parts
from squall.builders.distributed.plan.stages import levels
from squall.builders.local.replay import Given
from squall.builders.runtime.operators.scan import needed
from squall.builders.runtime.serde import unpack_output
from squall.contracts import AcceptsDeadLetters, Folder, Options, Output, SupportsFilterPushDown
from squall.errors import BuilderError
from squall.plan import Plan
from squall.rdf import ALWAYS, Event
from squall.streams import FileSource, FolderSource, Source, Sources
from squall.streams.clock import beginning


def build(plan: Plan, options: Options) -> BeamJob:
    """The plan as a job on the runner that `options.conf` names, or on the local one.

    Raises BuilderError where options ask for what it does not have.
    """
    if options.checkpoint is not None:
        raise BuilderError(
            "the beam builder keeps no checkpoint",
            hint="use `--builder iterator` or `spark`, or leave `--checkpoint` out",
        )
    if isinstance(options.sink, Folder):
        raise BuilderError("the beam builder writes no folder", hint="name a file, or use `--builder spark`")
    return BeamJob(plan, options, Runner(options.conf))


class BeamJob:
    """A plan at work on Beam; `run` may be called once."""

    def __init__(self, plan: Plan, options: Options, runner: Runner) -> None:
        self.plan = plan
        self.options = options
        self.runner = runner

    def describe(self) -> str:
        """The steps of the pipeline as text."""
        return describe(self.plan)

    def run(self, batches: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
        """See `squall.contracts.Job.run`.

        A list of batches, and `Sources` none of which is live, are read to their end before anything is handed on. Of
        anything else outputs are handed on as it comes.
        """
        with Failed.retold():
            yield from self._outputs(batches, static)

    def _outputs(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        begin = beginning(batches) if self.options.now is None else self.options.now
        if self.options.batch:
            check_bounded(batches)
        if isinstance(batches, AcceptsDeadLetters):
            batches.adopt(self.options.ledger)
        program = Shipped(self.plan, levels(self.plan), functions.own(), begin)
        folder = files.made(self.runner.temporary or tempfile.gettempdir(), "squall")
        run = _Run(program, self.options, self.runner, folder)
        try:
            yield from run.turn_by_turn(batches, static) if is_live(batches) else run.at_once(batches, static)
        finally:
            files.delete([folder])


class _Run:
    """One run of a job: the driver's side. folder: where it reads and writes."""

    def __init__(self, program: Shipped, options: Options, runner: Runner, folder: str) -> None:
        self.program = program
        self.options = options
        self.runner = runner
        self.folder = folder

    # What ends: one pipeline

    def at_once(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        """The outputs of all there is."""
        given, sources = self._given(batches, static)
        program, steps = self.program, graph(self.program.plan)
        if steps.end.why:
            task = Task(program, Progress(), self.options.steps, first=True, last=True)
            self.runner.run(lambda pipeline: lay_whole(pipeline, steps, program, given, task))
        else:
            self.runner.run(lambda pipeline: Layout(pipeline, steps, program, given).lay())
        said = self._told(sources)
        yield from self._outputs_of_one() if steps.end.why else self._outputs(said)

    def _given(
        self, batches: Iterable[Sequence[Event]], static: Iterable[Event]
    ) -> tuple[Input, tuple[Source | None, ...]]:
        """What workers read, and the sources for which they count. What they cannot read is spooled for them."""
        sources = batches.sources if isinstance(batches, Sources) else ()
        own = [source for source in sources if readable(source)]
        check_clock(batches, own)
        others = [source for source in sources if not readable(source)]
        rest: Iterable[Sequence[Event]] = batches
        if isinstance(batches, Sources):
            rest = Sources(others, batches.clock, batches.heartbeat) if others else ()
        read = [part for number, source in enumerate(own) for part in _parts(number, source)]
        read += self._spooled(len(own), "static.json", ([_always(event)] for event in static))
        read += self._spooled(len(own) + 1, "events.json", timely(rest, self._lose))
        documents = (*map(document_of, own), *(Document(name, spooled=True) for name in ("static", "events")))
        return Input(read, lines_parser(documents), self.folder), (*own, None, None)

    def _spooled(self, number: int, name: str, batches: Iterable[Sequence[Event]]) -> list[Part]:
        size = files.spool(self.folder, name, batches)
        return parts(number, f"{self.folder}/{name}", size, files.BLOCK) if size else []

    def _outputs(self, said: Sequence[Record]) -> Iterator[Output]:
        numbers = self.program.addressing().numbers
        deliveries = {numbers[node.id]: op for node, op in self.program.plan.sinks}
        found = ((one.start, one.node, one.row) for one in answers(self.folder))
        yield from told_whole(found, deliveries, evaluations(self.program, said))

    def _told(self, sources: Sequence[Source | None]) -> list[Record]:
        """What the driver is told; what could not be used is noted, and what was read is counted."""
        said = told(self.folder)
        for one in said:
            if one.kind == LOST:
                lose(Lost(*json.loads(one.row)), self.options.ledger, sources)
            elif one.kind == COUNT and (source := sources[one.node]) is not None:
                source.reading.statements += one.start
        return said

    def _outputs_of_one(self) -> Iterator[Output]:
        return (unpack_output(one.row, one.start) for one in answers(self.folder) if one.kind == ROW)

    # What comes live: one pipeline, turn by turn

    def turn_by_turn(self, batches: Iterable[Sequence[Event]], static: Iterable[Event]) -> Iterator[Output]:
        """The outputs of what comes, as it comes."""
        self.runner.check_live()
        if isinstance(batches, SupportsFilterPushDown) and (wanted := needed(self.program.plan)) is not None:
            batches.want(wanted)
        inputs = batches if isinstance(batches, Sources) else Given(batches)
        steps = live_graph(self.program.plan)

        def lay(pipeline: Any) -> None:
            lay_live(pipeline, steps, self.program, self.options.steps, self.folder)

        live = Live(self.folder, inputs, self._lose)
        yield from live.outputs(lambda: self.runner.run(lay, live=True), map(_always, static))

    # What both do

    def _lose(self, lost: Lost) -> None:
        lose(lost, self.options.ledger)


def _always(event: Event) -> Event:
    return event._replace(time=ALWAYS)


def _parts(number: int, source: Source) -> list[Part]:
    assert isinstance(source, FileSource | FolderSource)
    paths = (str(Path(path).absolute()) for path in source.files())
    return [part for path in paths for part in parts(number, path, getsize(path), files.BLOCK)]
