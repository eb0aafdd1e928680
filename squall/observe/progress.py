"""The progress of a run that reads long bounded input, and the summary at its end, on standard error."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from squall.contracts import PlanChange
from squall.observe.latency import Latencies
from squall.rdf import ALWAYS
from squall.streams import DeadLetterFile, Source, Sources, StaticData
from squall.wording import counted

START_DELAY_S = 1.0
"""The seconds before progress is shown by default: many runs are over by then."""
_REFRESH_INTERVAL_S = 0.25
_MAX_SHOWN_CHANGES = 5
"""The number of changes of the plan that are shown."""


@dataclass
class Tally:
    """The counts of a run.

    Attributes:
        outputs: The number of outputs so far.
        left_out: The number of facts that a table leaves out.
        dropped: The number of facts that left a window because of its number before their time had passed.
        static: The static data of the run.
        plan_changes: The changes of its plan.
        latencies: The latencies of its batches and windows, if they are measured.
        refused_plan: Why the last better plan could not replace the present one, or ``""``.
        began: When the run began, in seconds of the monotonic clock.
    """

    outputs: int = 0
    left_out: int = 0
    dropped: int = 0
    static: list[StaticData] = field(default_factory=list)
    plan_changes: Sequence[PlanChange] = ()
    refused_plan: str = ""
    latencies: Latencies | None = None
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """The duration of the run so far."""
        return time.monotonic() - self.began


def statements(sources: Sources) -> int:
    """Returns the number of statements that have been read of all sources."""
    return sum(source.reading.statements for source in sources.sources)


@contextmanager
def progress_bar(sources: Sources, tally: Tally, start_delay: float = START_DELAY_S) -> Iterator[None]:
    """Shows a progress bar of the bytes read, with rates and counts, within a context.

    It appears after so many seconds. The size of the sources must be known.
    """
    finished = threading.Event()
    watcher = threading.Thread(
        target=_watch, args=(sources, tally, finished, start_delay), name="progress", daemon=True
    )
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()


def _watch(sources: Sources, tally: Tally, finished: threading.Event, start_delay: float) -> None:
    if finished.wait(start_delay):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[counts]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=sources.size, counts="")
        while not finished.wait(_REFRESH_INTERVAL_S):
            count = statements(sources)
            outputs = counted(tally.outputs, "output")
            counts = f"{counted(count, 'statement')}, {count / tally.seconds:,.0f}/s, {outputs}"
            progress.update(task, completed=sum(source.reading.bytes for source in sources.sources), counts=counts)


def summary(sources: Sources, tally: Tally) -> str:
    """Returns what was read and output, and how fast; by source if there are several."""
    count = statements(sources)
    seconds = tally.seconds
    rate = count / max(seconds, 1e-9)
    outputs = counted(tally.outputs, "output")
    lines = [f"{counted(count, 'statement')} read, {outputs}, {seconds:.2f} s, {rate:,.0f} statements/s"]
    if tally.left_out:
        left_out = counted(tally.left_out, "fact")
        lines.append(f"  {left_out} left out: the table has solutions; --format ndjson holds both")
    if tally.latencies is not None:
        lines += tally.latencies.lines()
    if tally.plan_changes:
        lines.append(_plan_changes(tally.plan_changes))
    if tally.refused_plan:
        lines.append(f"  the plan stays, though another one may be better: {tally.refused_plan}")
    if len(sources.sources) > 1:
        lines += [f"  {source.uri}: {counted(source.reading.statements, 'statement')}" for source in sources.sources]
    return "\n".join(lines)


def dropped_line(count: int) -> str:
    """Returns the line that says how many facts windows have dropped because of their number."""
    return f"  {counted(count, 'statement')} left a window early: more came within its time than it may hold (TRIPLES)"


def _plan_changes(changes: Sequence[PlanChange]) -> str:
    """Returns the line that says when the plan changed, and why."""
    shown = [_plan_change(change) for change in changes[:_MAX_SHOWN_CHANGES]]
    more = [f"and {len(changes) - len(shown)} more"] if len(changes) > len(shown) else []
    return f"  {counted(len(changes), 'change')} of the plan: {', '.join(shown + more)}"


def _plan_change(change: PlanChange) -> str:
    instant = "before the first event" if change.watermark == ALWAYS else f"at {change.watermark}"
    if change.gain is None:
        return f"{instant} from the plan of the checkpoint"
    return f"{instant} from one that was estimated to cost {change.gain:.1f} times as much"


def dead_letter_lines(ledger: DeadLetterFile) -> list[str]:
    """Returns the lines that say which statements were dead letters, why the first was one, and where they are kept."""
    lines = [_dead_letters(cause, source, ledger) for cause, source in sorted(ledger.counts)]
    if ledger.counts:
        destination = f"kept in {ledger.path}" if ledger.path else "dropped; --dead-letters FILE keeps them"
        lines.append(f"  dead letters are {destination}")
    return lines


def _dead_letters(cause: str, source: str, ledger: DeadLetterFile) -> str:
    """Returns the number of dead letters with one cause, and the first and the last reason, unless the cause says it
    all. The last dead letter of a document may have cost the rest of it."""
    count = ledger.counts[cause, source]
    first, last = (reasons.get((cause, source)) for reasons in (ledger.first, ledger.last))
    text = f"  {count:,} {cause} in {source}"
    if cause == "late" or first is None:
        return text
    text += f"; {'the first: ' if count > 1 else ''}{_place(*first)}"
    return text if last is None or last == first else f"{text}; the last: {_place(*last)}"


def _place(line: int | None, reason: str) -> str:
    return reason if line is None else f"line {line}: {reason}"


def unreadable(sources: Sources, tally: Tally) -> list[str]:
    """Returns the addresses of the input of which nothing could be read, though something was there."""
    inputs: list[Source | StaticData] = [*sources.sources, *tally.static]
    return [input.uri for input in inputs if input.reading.is_unreadable]
