"""A run in this process that outlives it: between batches it is saved, and another one goes on from there.

At a checkpoint what rules keep, where sources stand, and what the sink and the ledger have got are of one moment. So a
run that is killed goes on as if it had never come further than its last checkpoint: files are cut back to there, sinks
that cannot be are given nothing before (`squall.streams.sinks.outbox.Outbox`), and sources are told what need not come
again when the checkpoint is on disk."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from squall.builders.local.checkpoint import Checkpoint, Head, Step
from squall.builders.local.event_loop import Outputs, Running
from squall.builders.local.identity import rules
from squall.builders.local.migration import carried, kinds
from squall.builders.local.replay import Given
from squall.contracts import CheckpointedSink, Interval, Output, TwoPhaseCommitSink
from squall.rdf import Columns, Event
from squall.streams import Sources

PULSE = 200
"""For how long (ms) nothing may come before it is looked whether it is time for a checkpoint."""


class Durable:
    """A run of a plan that is saved in a folder. Raises BuilderError where that is not its own."""

    def __init__(self, running: Running, folder: Path, batches: Iterable[Sequence[Event]]) -> None:
        self.running = running
        self.inputs = batches if isinstance(batches, Sources) else Given(batches)
        self.sink = running.options.sink
        self.ledger = running.options.ledger
        self.every = running.options.checkpoint_interval
        self.begin = 0
        migrate = carried if running.options.allow_removed_rules else None
        head = Head(_belongs(running, batches), kinds(running))
        self.checkpoint = Checkpoint(folder, head, migrate, running.tuning.min_log_growth)
        self._saved = time.monotonic()
        self._statements = 0
        """How many have been worked off since then."""
        self._is_saved = True
        """Whether nothing has happened since then."""

    def outputs(self, static: Iterable[Event], begin: int) -> Iterator[Output]:
        """The outputs of the run, from where it was. static, begin: see `Running.start`; of no use to one that has
        begun."""
        with closing(self.checkpoint), closing(self.inputs):
            if not self._resumed(begin):
                yield from self._taken(self.running.start(list(static), self.begin))
                self._save()
            for batch in self.inputs:
                yield from self._taken(self.running.take(batch))
                self._count(batch)
            if not self.inputs.stopped:
                yield from self._taken(self.running.drain())
            self._save(last=not self.inputs.stopped)
            if not self._is_saved:
                self._save(last=not self.inputs.stopped)

    def _resumed(self, begin: int) -> bool:
        """Whether the run has worked off static data before."""
        state, running = self.checkpoint.load(), self.running
        last_step = self.checkpoint.last
        self.begin = last_step.begin if last_step is not None else begin
        if last_step is not None and last_step.begun:
            running.restore(last_step.passed, last_step.begin, state)
        self.inputs.track_offsets(last_step.sources if last_step is not None else (), PULSE)
        for part, saved_state in (
            (self.ledger, last_step and last_step.ledger),
            (self.sink, last_step and last_step.sink),
        ):
            if isinstance(part, CheckpointedSink) and saved_state is not None:
                part.restore(saved_state)
        running.enable_changelog()
        if last_step is None:
            self._save(begun=False)
        return last_step is not None and last_step.begun

    def _taken(self, parts: Iterable[Outputs]) -> Iterator[Output]:
        for outputs in parts:
            self._is_saved = False
            yield from outputs

    def _count(self, batch: Sequence[Event]) -> None:
        """Saves the run if it is time for that."""
        self._statements += _statements(batch)
        self._is_saved = self._is_saved and not batch
        if not self._is_saved and self._is_due(self.every):
            self._save()

    def _is_due(self, every: Interval) -> bool:
        elapsed_ms = (time.monotonic() - self._saved) * 1000
        return (every.statements is not None and self._statements >= every.statements) or (
            every.milliseconds is not None and elapsed_ms >= every.milliseconds
        )

    def _save(self, begun: bool = True, last: bool = False) -> None:
        """What was handed on before this is asked for has been taken."""
        running = self.running
        sink, ledger = (
            part.snapshot(last) if isinstance(part, CheckpointedSink) else None for part in (self.sink, self.ledger)
        )
        step = Step(running.passed, self.begin, begun, self.inputs.current_offsets(), sink, ledger)
        self.checkpoint.save(step, running.drain_changelog(), running.states)
        delivered = isinstance(self.sink, TwoPhaseCommitSink) and self.sink.commit()
        self.inputs.acknowledge()
        self._saved, self._statements = time.monotonic(), 0
        self._is_saved = not delivered  # that it was is not known there


def _statements(batch: Sequence[Event]) -> int:
    if isinstance(batch, Columns):
        return len(batch.subjects)
    return sum(len(event.facts) + len(event.removed) for event in batch)


def _belongs(running: Running, batches: Iterable[Sequence[Event]]) -> dict[str, dict[str, str]]:
    """What a checkpoint belongs to (`Head`)."""
    identity = {"rules": rules(running.plan), "options": {"measure": str(running.options.measure)}}
    if isinstance(batches, Sources):
        identity["options"]["clock"] = type(batches.clock).__name__
        identity["sources"] = _numbered((source.uri, type(source).__name__) for source in batches.sources)
    uri = getattr(running.options.sink, "uri", "")
    return identity | {"sinks": {uri: type(running.options.sink).__name__}}


def _numbered(kinds: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The kinds of sources by their addresses, in their order; an address that is there again has a number."""
    numbered: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for uri, kind in kinds:
        counts[uri] += 1
        numbered[uri if counts[uri] == 1 else f"{uri} #{counts[uri]}"] = kind
    return numbered
