"""Metrics of a run for Prometheus (https://prometheus.io/docs/practices/naming/)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from squall.contracts import CountsDroppedFacts, Job, ReplacesPlans
from squall.errors import UsageError
from squall.observe.latency import Figures, Latencies
from squall.observe.progress import Tally
from squall.plan.node_metrics import NodeMetric
from squall.rdf import ALWAYS, FOREVER
from squall.streams import DeadLetterFile, Sources

_MAX_ATTEMPTS = 20
"""How often node metrics are read if they change meanwhile."""


class MetricsAddress(NamedTuple):
    """The host and port at which metrics are served."""

    host: str
    port: int


def metrics_address(text: str) -> MetricsAddress:
    """Parses ``PORT``, which is on the loopback, or ``HOST:PORT``. Raises UsageError if it is neither."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise UsageError(f"`--metrics {text}` is neither PORT nor HOST:PORT")
    return MetricsAddress(host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port))


@contextmanager
def serve_metrics(
    place: MetricsAddress, job: Job, sources: Sources, ledger: DeadLetterFile, tally: Tally
) -> Iterator[str]:
    """Serves the metrics of a run within a context, whose value is their URL.

    Args:
        place: The address at which to listen.
        job: The job.
        sources: Its sources.
        ledger: Its dead letters.
        tally: The counts of its outputs.

    Raises:
        UsageError: It cannot listen at that address.
    """
    registry = CollectorRegistry()
    registry.register(Metrics(job, sources, ledger, tally))
    try:
        server, thread = start_http_server(place.port, place.host, registry)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"metrics cannot be served at `{place.host}:{place.port}`: {reason}") from error
    host = f"[{place.host}]" if ":" in place.host else place.host
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Metrics:
    """A collector of the metrics of a run (`prometheus_client.registry.Collector`). A thread of its own calls it."""

    def __init__(self, job: Job, sources: Sources, ledger: DeadLetterFile, tally: Tally) -> None:
        self._job: Any = job
        self._sources = sources
        self._ledger = ledger
        self._tally = tally

    def describe(self) -> Iterator[Metric]:
        """Describes no metrics in advance."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yields all metrics, with their current values."""
        yield CounterMetricFamily("squall_outputs", "Outputs written", self._tally.outputs)
        yield GaugeMetricFamily("squall_run_seconds", "Duration of the run", self._tally.seconds)
        yield from self._read()
        labels = "cause", "source"
        yield _counter("squall_dead_letters", "Statements that could not be used", labels, self._ledger.counts)
        if isinstance(self._job, CountsDroppedFacts):
            about = "Statements that left a window because of its number before their time"
            yield CounterMetricFamily("squall_dropped_statements", about, self._job.dropped_facts)
        yield from self._time()
        if isinstance(self._job, ReplacesPlans):
            yield CounterMetricFamily("squall_replans", "Changes of the plan", len(self._job.plan_changes))
        if self._tally.latencies is not None:
            yield from _latencies(self._tally.latencies)
        yield from self._nodes()

    def _read(self) -> Iterator[Metric]:
        statements: Counter[tuple[str, ...]] = Counter()
        bytes_: Counter[tuple[str, ...]] = Counter()
        for source in self._sources.sources:
            statements[source.uri,] += source.reading.statements
            bytes_[source.uri,] += source.reading.bytes
        yield _counter("squall_statements", "Statements read", ("source",), statements)
        yield _counter("squall_bytes", "Bytes read, as they are stored or received", ("source",), bytes_)

    def _time(self) -> Iterator[Metric]:
        """Yields the watermark, and its lag behind the clock, if the job has processed any event."""
        watermark: int = getattr(self._job, "watermark", ALWAYS)
        if ALWAYS < watermark < FOREVER - 1:
            yield GaugeMetricFamily("squall_watermark_seconds", "Event time of the watermark", watermark / 1000)
            lag = time.time() - watermark / 1000
            yield GaugeMetricFamily("squall_lag_seconds", "Lag of the watermark behind the clock", lag)

    def _nodes(self) -> Iterator[Metric]:
        metrics_by_node = self._node_metrics()
        for name, text, field in (
            ("squall_node_state", "Rows in the state of a node", "state"),
            ("squall_node_rows", "Rows that a node has output", "rows"),
            ("squall_node_seconds", "Time spent in a node itself", "seconds"),
        ):
            values = {
                (id,): value
                for id, node_metrics in metrics_by_node.items()
                if (value := getattr(node_metrics, field)) is not None
            }
            if values:
                family = _gauge if field == "state" else _counter
                yield family(name, text, ("node",), values)

    def _node_metrics(self) -> Mapping[str, NodeMetric]:
        """Returns the node metrics of the job, if it has any. If they change meanwhile, they are read again."""
        for _ in range(_MAX_ATTEMPTS if hasattr(self._job, "node_metrics") else 0):
            try:
                metrics: Mapping[str, NodeMetric] = self._job.node_metrics()
            except RuntimeError:  # a collection has changed its size
                continue
            return metrics
        return {}


def _latencies(latencies: Latencies) -> Iterator[Metric]:
    """Yields the histograms of batches, and of the steps of windows."""
    yield from _histograms("batch", "of a batch", (), {(): latencies.batches})
    if latencies.windows:
        yield from _histograms("window", "of a step of a window", ("stream", "window"), latencies.windows)


def _histograms(
    prefix: str, of: str, labels: tuple[str, ...], figures_by_label: Mapping[Any, Figures]
) -> Iterator[Metric]:
    for field, name, text in (
        ("latency", "latency_seconds", "Time from arrival until the outputs were taken"),
        ("seconds", "processing_seconds", "Time of processing"),
        ("statements", "statements", "Statements"),
        ("rate", "statements_per_second", "Statements per second of processing"),
    ):
        family = HistogramMetricFamily(f"squall_{prefix}_{name}", f"{text}, {of}", labels=labels)
        for values, figures in figures_by_label.items():
            distribution = getattr(figures, field)
            family.add_metric(values, list(distribution.cumulative()), distribution.total)
        yield family


def _counter(name: str, text: str, labels: tuple[str, ...], counts: Mapping[Any, float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for key, count in list(counts.items()):
        family.add_metric(key, count)
    return family


def _gauge(name: str, text: str, labels: tuple[str, ...], values: Mapping[Any, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family
