"""A run of ``squall build``, and what is counted and measured in it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from squall.cli.shared import FAILED, INTERRUPTED
from squall.errors import SquallError, UsageError

if TYPE_CHECKING:
    from squall.contracts import Job
    from squall.observe.progress import Tally
    from squall.plan import Plan
    from squall.rdf import Event
    from squall.streams import LedgerFile, Sink, Sources


def leave_quietly() -> None:
    """Whoever read our output has enough of it: nothing more may be flushed to it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_sampled(builder: str, file: Path | None) -> None:
    """Data are counted in this process, and the counts written at the end: not for nothing."""
    from squall.streams.sinks import check_writable

    if file is None:
        return
    if builder != "iterator":
        raise UsageError(f"`--collect-statistics` goes with the builder `iterator`, not with `{builder}`")
    check_writable(file)


def watched(streams: Sources, static: Iterable[Event], sample: list[Event] | None) -> tuple[Sources, Iterable[Event]]:
    """The same, with the first events going into a sample as well. What is there when streams begin, static data and
    the plan, is kept from the collector: it stays until the end."""
    from squall.streams import Watched

    if sample is None:
        return Watched(streams, gc.freeze), static

    def see(events: Sequence[Event]) -> None:
        sample.extend(events[: _SAMPLE - len(sample)])

    return Watched(streams, gc.freeze, see), _seen(static, see)


_SAMPLE = 100_000  # events that statistics are made of, at most


def _seen(events: Iterable[Event], see: Callable[[Sequence[Event]], None]) -> Iterator[Event]:
    for event in events:
        see((event,))
        yield event


def warn_of_risks(streams: Sources) -> None:
    """Says what may become of what sources bring, if the run is killed."""
    from squall.streams.sources.files import risk_of

    for source in streams.sources:
        if risk := risk_of(source):
            click.echo(f"source warning: `{source.uri}`: {risk}", err=True)


def write_measures(job: Job, plan: Plan, sample: Sequence[Event], counted: Path | None, profiled: Path | None) -> None:
    """Writes what was asked for."""
    from squall.plan import node_metrics
    from squall.plan.cardinality import Statistics

    if counted:
        Statistics.of(sample).save(counted)
    if profiled:
        node_metrics.save(cast(Any, job).node_metrics(), profiled, plan)


@contextmanager
def asked_at(place: str | None, job: Job, sources: Sources, ledger: LedgerFile, tally: Tally) -> Iterator[None]:
    """Answers with the run's metrics at a place, meanwhile; None: nowhere. Raises UsageError where that cannot be."""
    if place is None:
        yield
        return
    try:
        from squall.observe import metrics
    except ModuleNotFoundError as error:
        if error.name != "prometheus_client":
            raise
        hint = "pip install 'squall[metrics]'"
        raise UsageError("`--metrics` needs `prometheus_client`, which is not installed", hint=hint) from error
    with metrics.served(metrics.place_of(place), job, sources, ledger, tally) as address:
        click.echo(f"metrics at {address}", err=True)
        yield


def run(
    job: Job,
    sources: Sources,
    static: Iterable[Event],
    sink: Sink,
    ledger: LedgerFile,
    resume: bool,
    progress: bool | None,
    columns: Collection[str],
    tally: Tally,
) -> int:
    """The exit code. From here on something has been started: what fails is the run. columns: the queries whose
    solutions are all that the sink holds; none: it holds whatever comes."""
    from squall.contracts import Folder
    from squall.observe.progress import shown, summary
    from squall.process.signals import endable
    from squall.rdf import Evaluated
    from squall.streams.sinks import Flushable

    visible = bool(sources.size) and (sys.stderr.isatty() if progress is None else progress)
    code, begun = 0, False
    try:
        with closing(sink), shown(sources, tally) if visible else nullcontext(), endable(sources):
            sink.start(resume, prompt=sources.live)
            begun = True
            sources.settle = sink.flush if isinstance(sink, Flushable) else None
            for output in job.run(sources, static):
                if columns and output.rule not in columns:
                    tally.left_out += not isinstance(output.fact, Evaluated)
                    continue
                sink.write(output)
                tally.outputs += 1
            tally.outputs += sink.written if isinstance(sink, Folder) else 0
    except BrokenPipeError:
        leave_quietly()
        return 0
    except KeyboardInterrupt:
        code = INTERRUPTED if begun or not sources.live else 0  # before, there is nothing to be worked off
    except SquallError as error:
        click.echo(str(error), err=True)
        code = FAILED
    finally:
        ledger.close()
    click.echo(summary(sources, ledger, tally), err=True)
    return code or (FAILED if ledger.failed else 0)
