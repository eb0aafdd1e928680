"""What a run shows on standard error: progress while it reads long finite input, and a summary at its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from squall.streams import DeadLetterFile, Sources
from squall.wording import counted

_PATIENCE = 1.0  # seconds before progress is shown at all
_INTERVAL = 0.25  # seconds between two looks at the counters


@dataclass
class Tally:
    """How many outputs there were so far, how many facts were left out of a table, since when (seconds, monotonic)."""

    outputs: int = 0
    left_out: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


def statements(sources: Sources) -> int:
    """The statements read of all sources so far."""
    return sum(source.reading.statements for source in sources.sources)


@contextmanager
def shown(sources: Sources, tally: Tally) -> Iterator[None]:
    """Shows a bar of the bytes read, with rates and counts, from the first second on. The size must be known."""
    finished = threading.Event()
    watcher = threading.Thread(target=_watch, args=(sources, tally, finished), name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()


def _watch(sources: Sources, tally: Tally, finished: threading.Event) -> None:
    if finished.wait(_PATIENCE):
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
        while not finished.wait(_INTERVAL):
            read = statements(sources)
            counts = f"{counted(read, 'statement')}, {read / tally.seconds:,.0f}/s, {counted(tally.outputs, 'output')}"
            progress.update(task, completed=sum(source.reading.bytes for source in sources.sources), counts=counts)


def summary(sources: Sources, tally: Tally) -> str:
    """Returns what was read and output, and how fast; by source if there are several."""
    read = statements(sources)
    seconds = tally.seconds
    rate = read / max(seconds, 1e-9)
    outputs = counted(tally.outputs, "output")
    lines = [f"{counted(read, 'statement')} read, {outputs}, {seconds:.2f} s, {rate:,.0f} statements/s"]
    if tally.left_out:
        left_out = counted(tally.left_out, "fact")
        lines.append(f"  {left_out} left out: the table has solutions; --format ndjson holds both")
    if len(sources.sources) > 1:
        lines += [f"  {source.uri}: {counted(source.reading.statements, 'statement')}" for source in sources.sources]
    return "\n".join(lines)


def losses(ledger: DeadLetterFile) -> list[str]:
    """Returns the lines that say which statements were dead letters, and where they are kept."""
    lines = [f"  {count:,} {cause} in {source}" for (cause, source), count in sorted(ledger.counts.items())]
    if ledger.counts:
        destination = f"kept in {ledger.path}" if ledger.path else "dropped; --dead-letters FILE keeps them"
        lines.append(f"  what was lost is {destination}")
    return lines
