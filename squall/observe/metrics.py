"""Metrics of a run, for Prometheus to ask for while it goes on (https://prometheus.io/docs/practices/naming/)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from squall.contracts import Job
from squall.errors import UsageError
from squall.observe.progress import Tally
from squall.plan.node_metrics import NodeMetric
from squall.rdf import ALWAYS, FOREVER
from squall.streams import DeadLetterFile, Sources

_ATTEMPTS = 20


class MetricsAddress(NamedTuple):
    """Where metrics are asked for."""

    host: str
    port: int


def metrics_address(text: str) -> MetricsAddress:
    """The place of ``PORT``, which is on the loopback, or ``HOST:PORT``. Raises UsageError."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise UsageError(f"`--metrics {text}` is neither PORT nor HOST:PORT")
    return MetricsAddress(host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port))


@contextmanager
def served(place: MetricsAddress, job: Job, sources: Sources, ledger: DeadLetterFile, tally: Tally) -> Iterator[str]:
    """Answers at a place with the metrics of a run, as long as this is open; with the address for people. Raises
    UsageError where nobody can be answered there."""
    registry = CollectorRegistry()
    registry.register(Metrics(job, sources, ledger, tally))
    try:
        server, thread = start_http_server(place.port, place.host, registry)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"metrics cannot be had at `{place.host}:{place.port}`: {reason}") from error
    host = f"[{place.host}]" if ":" in place.host else place.host
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Metrics:
    """What can be said of a run at any moment, by a thread of its own (`prometheus_client.registry.Collector`)."""

    def __init__(self, job: Job, sources: Sources, ledger: DeadLetterFile, tally: Tally) -> None:
        self._job: Any = job
        self._sources = sources
        self._ledger = ledger
        self._tally = tally

    def describe(self) -> Iterator[Metric]:
        """Nothing is known of them before they are asked for."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All metrics, as they are now."""
        yield CounterMetricFamily("squall_outputs", "Outputs handed on", self._tally.outputs)
        yield GaugeMetricFamily("squall_run_seconds", "How long the run has gone on", self._tally.seconds)
        yield from self._read()
        yield _counted("squall_lost", "Statements that could not be used", ("cause", "source"), self._ledger.counts)
        yield from self._time()
        yield from self._nodes()

    def _read(self) -> Iterator[Metric]:
        statements: Counter[tuple[str, ...]] = Counter()
        bytes_: Counter[tuple[str, ...]] = Counter()
        for source in self._sources.sources:
            statements[source.uri,] += source.reading.statements
            bytes_[source.uri,] += source.reading.bytes
        yield _counted("squall_statements", "Statements read", ("source",), statements)
        yield _counted("squall_bytes", "Bytes read, as they are stored or come", ("source",), bytes_)

    def _time(self) -> Iterator[Metric]:
        """How far time has come, if the job says so and it has come anywhere."""
        watermark: int = getattr(self._job, "passed", ALWAYS)
        if ALWAYS < watermark < FOREVER - 1:
            yield GaugeMetricFamily("squall_watermark_seconds", "The time that has been worked off", watermark / 1000)
            lag = time.time() - watermark / 1000
            yield GaugeMetricFamily("squall_lag_seconds", "How far that is behind the clock", lag)

    def _nodes(self) -> Iterator[Metric]:
        figures = self._figures()
        for name, text, field in (
            ("squall_node_state", "Entries that a node keeps", "state"),
            ("squall_node_rows", "Entries that a node has made", "rows"),
            ("squall_node_seconds", "Time that a node took by itself", "seconds"),
        ):
            values = {
                (id,): value
                for id, node_metrics in figures.items()
                if (value := getattr(node_metrics, field)) is not None
            }
            if values:
                family_of = _gauged if field == "state" else _counted
                yield family_of(name, text, ("node",), values)

    def _figures(self) -> Mapping[str, NodeMetric]:
        """Those of the job, if it has any. What is being counted may change meanwhile: then it is counted anew."""
        for _ in range(_ATTEMPTS if hasattr(self._job, "node_metrics") else 0):
            try:
                figures: Mapping[str, NodeMetric] = self._job.node_metrics()
            except RuntimeError:  # a container has changed its size
                continue
            return figures
        return {}


def _counted(name: str, text: str, labels: tuple[str, ...], counts: Mapping[Any, float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for key, count in list(counts.items()):
        family.add_metric(key, count)
    return family


def _gauged(name: str, text: str, labels: tuple[str, ...], values: Mapping[Any, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family
