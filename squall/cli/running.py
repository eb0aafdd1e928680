"""A run of ``squall run``, and what is counted and measured in it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from squall.cli import messages
from squall.cli.options import FAILED, INTERRUPTED
from squall.errors import SquallError, UsageError, install_hint

if TYPE_CHECKING:
    from squall.contracts import Job, Output
    from squall.observe.progress import Tally
    from squall.plan import Plan
    from squall.rdf import Event
    from squall.streams import DeadLetterFile, Sink, Sources

SAMPLE_EVENTS = 100_000
"""Statistics are made of at most this many events."""


def leave_quietly() -> None:
    """Makes sure that nothing more is flushed to standard output, whose reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def watched(streams: Sources, static: Iterable[Event], sample: list[Event] | None) -> tuple[Sources, Iterable[Event]]:
    """Returns the input so that the first events are also appended to the sample, if there is one.

    What exists when streams begin (static data and the plan) is kept from the garbage collector: it stays until the
    end.
    """
    from squall.streams import ObservedSources

    if sample is None:
        return ObservedSources(streams, gc.freeze), static

    def add(events: Sequence[Event]) -> None:
        sample.extend(events[: SAMPLE_EVENTS - len(sample)])

    return ObservedSources(streams, gc.freeze, add), _observed(static, add)


def _observed(events: Iterable[Event], observe: Callable[[Sequence[Event]], None]) -> Iterator[Event]:
    for event in events:
        observe((event,))
        yield event


def warn_of_risks(streams: Sources) -> None:
    """Warns of sources from which events may be lost or repeated if the run is killed."""
    from squall.streams.sources.files import risk_of

    for source in streams.sources:
        if risk := risk_of(source):
            messages.warning(f"`{source.uri}`: {risk}", "source")


def write_measures(job: Job, plan: Plan, sample: Sequence[Event], counted: Path | None, profiled: Path | None) -> None:
    """Writes the statistics and the node metrics, if files for them are given."""
    from squall.plan import node_metrics
    from squall.plan.cardinality import Statistics

    if counted:
        Statistics.of(sample).save(counted)
    if profiled:
        node_metrics.save(cast(Any, job).node_metrics(), profiled, plan)


@contextmanager
def serving_metrics(
    place: str | None, job: Job, sources: Sources, ledger: DeadLetterFile, tally: Tally
) -> Iterator[None]:
    """Serves the metrics of the run at a place within the context; nowhere if the place is None.

    Raises:
        UsageError: The place cannot be used, or the library is not installed.
    """
    if place is None:
        yield
        return
    try:
        from squall.observe import metrics
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        hint = install_hint("squall[metrics]")
        raise UsageError("`--metrics` needs `prometheus_client`, which is not installed", hint=hint) from error
    with metrics.serve_metrics(metrics.metrics_address(place), job, sources, ledger, tally) as address:
        messages.note(f"metrics at {address}")
        yield


def _report_interruption(checkpoint: Path | None) -> None:
    if checkpoint is None:
        messages.loss("interrupted: what was in progress is abandoned, and the outputs are incomplete")
    else:
        messages.loss(
            "interrupted: what was in progress is abandoned; "
            f"the same command resumes from the checkpoint `{checkpoint}`, and repeats it"
        )


def _end_process(checkpoint: Path | None) -> NoReturn:
    """Ends the process from any thread, without what the interrupted main thread still does."""
    _report_interruption(checkpoint)
    os._exit(INTERRUPTED)


class End(NamedTuple):
    """The end of a run.

    Attributes:
        code: The exit code.
        by_signal: Whether a signal has ended the run.
        interruption: The exception by which it was interrupted, or None. While it lives, so does what the run was in
            the middle of: to free that may take seconds.
    """

    code: int
    by_signal: bool = False
    interruption: KeyboardInterrupt | None = None

    def exit(self) -> NoReturn:
        """Ends the command: at once after a signal."""
        raise ExitAtOnce(self) if self.by_signal else SystemExit(self.code)


class ExitAtOnce(SystemExit):
    """Ends the process with an exit code, and does not free its memory before."""

    def __init__(self, end: End) -> None:
        super().__init__(end.code)
        self.end = end


def run(
    job: Job,
    sources: Sources,
    static: Iterable[Event],
    sink: Sink,
    ledger: DeadLetterFile,
    checkpoint: Path | None,
    resume: bool,
    progress: bool | None,
    columns: Collection[str],
    tally: Tally,
) -> End:
    """Runs a job and returns its end. An error from here on is a failure of the run.

    A run that is interrupted, and does not end within seconds, ends the process.

    Args:
        job: The job.
        sources: The streams.
        static: The static data.
        sink: The sink. It is closed at the end.
        ledger: The ledger of dead letters. It is closed at the end.
        checkpoint: The folder of the checkpoint, if the run has one.
        resume: Whether the run resumes from a checkpoint.
        progress: Whether to show progress. None: if standard error is a terminal.
        columns: The queries whose solutions are all that the sink holds. Empty: it holds all outputs.
        tally: The counts of the run.
    """
    # In one piece: each way in which a run ends, with the code for it.
    from squall.contracts import CountsDroppedFacts, ReplacesPlans
    from squall.observe.progress import progress_bar
    from squall.process.signals import stop_on_signal
    from squall.streams.sinks import Flushable

    visible = bool(sources.size) and (sys.stderr.isatty() if progress is None else progress)
    code, begun = 0, False
    interruption: KeyboardInterrupt | None = None
    shutdown = None
    try:
        with (
            stop_on_signal(sources, partial(_end_process, checkpoint)) as shutdown,
            closing(sink),
            progress_bar(sources, tally) if visible else nullcontext(),
        ):
            sink.start(resume, prompt=sources.live)
            begun = True
            sources.flush_sink = sink.flush if isinstance(sink, Flushable) else None
            _write(job.run(sources, static), sink, columns, tally)
    except BrokenPipeError:
        leave_quietly()
        return End(0)
    except KeyboardInterrupt as error:
        interruption = error
        code = INTERRUPTED if begun or not sources.live else 0  # before that there is nothing to drain
        if code:
            _report_interruption(checkpoint)
    except SquallError as error:
        messages.error(error)
        code = FAILED
    finally:
        ledger.close()
    if isinstance(job, ReplacesPlans):
        tally.plan_changes, tally.refused_plan = job.plan_changes, job.refused_plan
    if isinstance(job, CountsDroppedFacts):
        tally.dropped = job.dropped_facts
    has_unread = _report_losses(sources, ledger, tally)
    code = code or (FAILED if ledger.failed or has_unread else 0)
    return End(code, shutdown is not None and shutdown.has_stopped, interruption)


def _write(outputs: Iterable[Output], sink: Sink, columns: Collection[str], tally: Tally) -> None:
    """Writes outputs, or only those of the queries whose solutions are all that the sink holds, and counts them."""
    from squall.contracts import Folder
    from squall.rdf import Evaluated

    for output in outputs:
        if columns and output.rule not in columns:
            tally.left_out += not isinstance(output.fact, Evaluated)
            continue
        sink.write(output)
        tally.outputs += 1
    tally.outputs += sink.written if isinstance(sink, Folder) else 0


def _report_losses(sources: Sources, ledger: DeadLetterFile, tally: Tally) -> bool:
    """Prints the summary of a run, and what was lost. Returns whether nothing could be read of some source."""
    from squall.observe.progress import dead_letter_lines, dropped_line, summary, unreadable

    messages.note(summary(sources, tally))
    if tally.dropped:
        messages.loss(dropped_line(tally.dropped))
    for line in dead_letter_lines(ledger):
        messages.loss(line)
    nothing_read = unreadable(sources, tally)
    for uri in nothing_read:
        messages.loss(f"  nothing could be read of `{uri}`")
    return bool(nothing_read)
