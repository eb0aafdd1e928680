"""A run in this process with checkpoints: another process resumes it from the last one.

A checkpoint is taken between batches. Operator state, source offsets, and the positions of sink and dead-letter ledger
are of one moment. A run that is killed resumes as if it had never come further than its last checkpoint. Files are
truncated to their length then. Sinks that cannot be truncated receive outputs only after the checkpoint
(`squall.streams.sinks.outbox.Outbox`). Sources are acknowledged when the checkpoint is on disk.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from squall.builders.local.adaptation import Adaptation
from squall.builders.local.batch_metrics import measured_batches
from squall.builders.local.checkpoint import Checkpoint, Owner, Progress
from squall.builders.local.event_loop import EventLoop, Outputs
from squall.builders.local.identity import (
    MAPPINGS,
    STATIC_DATA,
    mapping_digests,
    planning_data,
    rule_digests,
    schema_of,
)
from squall.builders.local.migration import state_kinds, without_removed_rules
from squall.builders.local.replay import ReplayedBatches
from squall.contracts import CheckpointedSink, Interval, Output, TwoPhaseCommitSink
from squall.rdf import Event, statement_count
from squall.streams import Sources
from squall.streams.clock import EventClock, WallClock

MAX_WAIT_MS = 200
"""The time in ms without input after which it is checked whether a checkpoint is due."""
CLOCKS: dict[type, str] = {EventClock: "event-time", WallClock: "processing-time"}
"""The names of clocks in checkpoints."""


class DurableRun:
    """A run of a plan with checkpoints in a folder.

    Args:
        event_loop: The run.
        folder: The folder of the checkpoint file.
        batches: The input.
        digests: The digests of the static data by address (`squall.builders.local.identity.static_digests`).
        adaptation: What looks for better plans of the run.

    Raises:
        BuilderError: The folder cannot be used.
    """

    def __init__(
        self,
        event_loop: EventLoop,
        folder: Path,
        batches: Iterable[Sequence[Event]],
        digests: Mapping[str, str],
        adaptation: Adaptation,
    ) -> None:
        self.event_loop = event_loop
        self.adaptation = adaptation
        self.inputs = batches if isinstance(batches, Sources) else ReplayedBatches(batches)
        self.sink = event_loop.options.sink
        self.ledger = event_loop.options.ledger
        self.interval = event_loop.options.checkpoint_interval
        self.begin = 0
        migrate = without_removed_rules if event_loop.options.allow_removed_rules else None
        self._owner_of = partial(_owner, event_loop, batches, digests)
        self.checkpoint = Checkpoint(folder, self._owner_of(), migrate, event_loop.tuning.min_log_growth)
        self._saved_at = time.monotonic()
        self._statement_count = 0
        """The number of statements processed since the last checkpoint."""
        self._is_saved = True
        """Whether nothing has happened since the last checkpoint."""

    def outputs(self, static: Iterable[Event], begin: int) -> Iterator[Output]:
        """Yields the outputs of the run since the last checkpoint.

        Args:
            static: The static data (`EventLoop.start`). A run that resumes does not read them.
            begin: The value of functions of time for what always holds (integer ms), if the run is new.
        """
        with closing(self.checkpoint), closing(self.inputs):
            if not self._resume(begin):
                event_loop = self.event_loop
                leading = self.inputs.static_events() if event_loop.buffer.needs_complete_instants else ()
                yield from self._unsaved(event_loop.start([*static, *leading], self.begin))
                self._save()
            for batch in measured_batches(self.event_loop, self.inputs):
                yield from self._unsaved(self.event_loop.process(batch))
                self._count(batch)
                if batch and self.adaptation.is_near_memory_limit:  # a run that resumes gets further each time
                    self._note_plan(self.adaptation.save_memory())
                    self._save()
                    if self.adaptation.is_near_memory_limit:
                        raise self.adaptation.memory_error()
            if not self.inputs.stopped:
                yield from self._unsaved(self.event_loop.drain())
            self._save(last=not self.inputs.stopped)
            if not self._is_saved:
                self._save(last=not self.inputs.stopped)

    def _resume(self, begin: int) -> bool:
        """Restores the last checkpoint, if there is one. Returns whether static data have been processed before."""
        state, event_loop = self.checkpoint.load(), self.event_loop
        progress = self.checkpoint.last
        self.begin = progress.begin if progress is not None else begin
        if progress is not None and progress.started:
            event_loop.restore(progress.watermark, progress.begin, state)
        self.inputs.track_offsets(progress.offsets if progress is not None else (), MAX_WAIT_MS)
        for sink, saved_state in (
            (self.ledger, progress and progress.dead_letters),
            (self.sink, progress and progress.sink),
        ):
            if isinstance(sink, CheckpointedSink) and saved_state is not None:
                sink.restore(saved_state)
        event_loop.states.enable_changelog()
        if progress is None:
            self._save(started=False)
        elif self._note_plan(self.adaptation.move_to_wanted()):
            self._save(progress.started)
        return progress is not None and progress.started

    def _unsaved(self, outputs_by_time: Iterable[Outputs]) -> Iterator[Output]:
        for outputs in outputs_by_time:
            self._is_saved = False
            yield from outputs

    def _count(self, batch: Sequence[Event]) -> None:
        """Counts the statements of a batch, and takes a checkpoint if one is due."""
        statements = statement_count(batch)
        self._statement_count += statements
        self._is_saved = self._is_saved and not batch
        has_moved = self._note_plan(self.adaptation.count(statements))
        if has_moved or (not self._is_saved and self._is_due(self.interval)):
            self._save()

    def _note_plan(self, old_keys: Mapping[str, str] | None) -> bool:
        """Notes that the run has another plan, if it has: with the key that each state had before. Returns that."""
        if old_keys is not None:
            self.checkpoint.replan(self._owner_of(), old_keys)
        return old_keys is not None

    def _is_due(self, interval: Interval) -> bool:
        elapsed_ms = (time.monotonic() - self._saved_at) * 1000
        return (interval.statements is not None and self._statement_count >= interval.statements) or (
            interval.milliseconds is not None and elapsed_ms >= interval.milliseconds
        )

    def _save(self, started: bool = True, last: bool = False) -> None:
        """Takes a checkpoint. The sink has received all outputs that were yielded before.

        Args:
            started: Whether static data have been processed.
            last: Whether the input has ended.
        """
        event_loop = self.event_loop
        sink, dead_letters = (
            part.snapshot(last) if isinstance(part, CheckpointedSink) else None for part in (self.sink, self.ledger)
        )
        offsets = self.inputs.current_offsets()
        progress = Progress(event_loop.watermark, self.begin, started, offsets, sink, dead_letters)
        self.checkpoint.save(progress, event_loop.states.drain_changelog(), event_loop.states)
        committed = isinstance(self.sink, TwoPhaseCommitSink) and self.sink.commit()
        self.inputs.acknowledge()
        self._saved_at, self._statement_count = time.monotonic(), 0
        self._is_saved = not committed  # the file does not say yet that the outputs are committed


def _owner(event_loop: EventLoop, batches: Iterable[Sequence[Event]], digests: Mapping[str, str]) -> Owner:
    """Returns what a checkpoint of a run belongs to."""
    plan, identity = event_loop.plan, _identity(event_loop, batches) | {STATIC_DATA: digests}
    return Owner(identity, state_kinds(event_loop), planning_data(plan), event_loop.seed, schema_of(plan))


def _identity(event_loop: EventLoop, batches: Iterable[Sequence[Event]]) -> dict[str, Mapping[str, str]]:
    """Returns the identity of a run (`squall.builders.local.checkpoint.Owner`), but for its static data."""
    options = {"measure": str(event_loop.options.measure)}
    identity: dict[str, Mapping[str, str]] = {"rules": rule_digests(event_loop.plan), "options": options}
    if isinstance(batches, Sources):
        clock = type(batches.clock)
        options["clock"] = CLOCKS.get(clock, clock.__name__)
        identity["sources"] = dict.fromkeys(_numbered(source.uri for source in batches.sources), "")
        identity |= {MAPPINGS: digests} if (digests := mapping_digests(batches)) else {}
    return identity | {"sinks": {getattr(event_loop.options.sink, "uri", ""): ""}}


def _numbered(uris: Iterable[str]) -> Iterator[str]:
    """Yields the addresses of sources in their order. Repeated ones have a number."""
    counts: Counter[str] = Counter()
    for uri in uris:
        counts[uri] += 1
        yield uri if counts[uri] == 1 else f"{uri} #{counts[uri]}"
