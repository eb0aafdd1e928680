"""Metrics of runs, read while they are running."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import squall
from squall.contracts import BatchMetrics, Options
from squall.errors import UsageError
from squall.observe.latency import Latencies
from squall.observe.progress import Tally
from squall.plan.node_metrics import NodeMetric
from squall.rdf import Event, Triple, iri
from squall.streams import DeadLetterFile, Sources, open_source
from tests.conftest import Squall

pytest.importorskip("prometheus_client")

from prometheus_client.parser import text_string_to_metric_families

from squall.observe import metrics
from squall.observe.metrics import MetricsAddress, metrics_address

PROGRAM = "@prefix : <http://example.org/> .\n[calm: (?a :p ?b) noValue(?a :q ?b) -> (?b :r ?a)]"
LINES = """1000 <http://example.org/a> <http://example.org/p> <http://example.org/b> .
nonsense
2000 <http://example.org/b> <http://example.org/p> <http://example.org/c> .
9000 <http://example.org/c> <http://example.org/p> <http://example.org/d> .
"""
Found = dict[str, dict[tuple[str, ...], float]]


def asked(address: str) -> Found:
    """Returns the values of each metric, by its labels in the order of their names."""
    with urlopen(address) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    result: Found = {}
    for sample in (sample for family in families for sample in family.samples):
        labels = tuple(value for _, value in sorted(sample.labels.items()))
        result.setdefault(sample.name, {})[labels] = sample.value
    return result


@contextmanager
def running(folder: Path, job: Any, ledger: DeadLetterFile) -> Iterator[tuple[str, Sources, Tally]]:
    (folder / "a.ntt").write_text(LINES)
    sources, tally = Sources([open_source(f"{folder}/a.ntt", ledger)]), Tally()
    with metrics.serve_metrics(MetricsAddress("127.0.0.1", 0), job, sources, ledger, tally) as address:
        yield address, sources, tally


@pytest.mark.parametrize("measure", [False, True])
def test_metrics_are_served_during_the_run(tmp_path: Path, measure: bool) -> None:
    ledger = DeadLetterFile()
    plan = squall.plan(squall.compile(PROGRAM, lexer="jena"))
    job = squall.build(plan, options=Options(measure=measure, ledger=ledger))
    with running(tmp_path, job, ledger) as (address, sources, tally):
        assert asked(address).keys() >= {"squall_outputs_total", "squall_run_seconds"}
        assert "squall_watermark_seconds" not in asked(address)
        outputs = job.run(sources)
        next(outputs)
        tally.outputs += 1
        result = asked(address)
        uri = f"{tmp_path}/a.ntt"
        assert result["squall_statements_total"] == {(uri,): 3}
        assert result["squall_bytes_total"] == {(uri,): len(LINES)}
        assert result["squall_outputs_total"] == {(): 1}
        assert result["squall_dead_letters_total"] == {("malformed", uri): 1}
        assert result["squall_watermark_seconds"] == {(): 2}
        assert result["squall_lag_seconds"][()] > 1_000_000_000
        assert sum(result["squall_node_state"].values()) > 0
        assert {id for (id,) in result["squall_node_state"]} <= {node.id for node in plan.nodes}
        assert ("squall_node_rows_total" in result) == ("squall_node_seconds_total" in result) == measure
        assert len(list(outputs)) == 2
        assert "squall_watermark_seconds" not in asked(address)
    with pytest.raises(OSError, match="refused"):
        asked(address)


def test_latencies_are_histograms(tmp_path: Path) -> None:
    ledger = DeadLetterFile()
    text = "SELECT ?a FROM STREAM <urn:s> [RANGE 5s STEP 5s] WHERE { ?a <http://example.org/p> ?b }"
    plan = squall.plan(squall.compile(text, lexer="csparql"))
    latencies = Latencies(plan)
    with running(tmp_path, squall.build(plan, options=Options(ledger=ledger)), ledger) as (address, _, tally):
        assert "squall_batch_statements_count" not in asked(address)
        tally.latencies = latencies
        triples = tuple(Triple(iri("urn:a"), iri("urn:p"), iri(f"urn:{number}")) for number in range(5))
        latencies(BatchMetrics(10, 11, 12, 5, 7000, [Event(1000, triples, "urn:s")]))
        result = asked(address)
        for name, labels in (("batch", ()), ("window", ("urn:s", "RANGE 5s TUMBLING"))):
            assert result[f"squall_{name}_latency_seconds_sum"] == {labels: 2}
            assert result[f"squall_{name}_processing_seconds_sum"] == {labels: 1}
            assert result[f"squall_{name}_statements_sum"] == {labels: 5}
            assert result[f"squall_{name}_statements_per_second_count"] == {labels: 1}
            buckets = result[f"squall_{name}_latency_seconds_bucket"]
            (below, above) = (next(key for key in buckets if bound in key) for bound in ("1.0", "2.5"))
            assert (buckets[below], buckets[above]) == (0, 1)


def test_a_builder_need_not_give_figures(tmp_path: Path) -> None:
    ledger = DeadLetterFile()
    with running(tmp_path, object(), ledger) as (address, _, _):
        assert asked(address).keys() == {
            "squall_outputs_total", "squall_run_seconds", "squall_statements_total", "squall_bytes_total"
        }  # fmt: skip


@pytest.mark.parametrize("times", [3, 1000])
def test_what_changes_while_it_is_counted_is_counted_again(tmp_path: Path, times: int) -> None:
    class Changing:
        left = times

        def node_metrics(self) -> dict[str, NodeMetric]:
            self.left -= 1
            if self.left > 0:
                raise RuntimeError("dictionary changed size during iteration")
            return {"n": NodeMetric(state=7)}

    with running(tmp_path, Changing(), DeadLetterFile()) as (address, _, _):
        assert asked(address).get("squall_node_state") == ({("n",): 7} if times == 3 else None)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("9090", MetricsAddress("127.0.0.1", 9090)),
        (":9090", MetricsAddress("127.0.0.1", 9090)),
        ("0.0.0.0:9090", MetricsAddress("0.0.0.0", 9090)),
        ("[::1]:0", MetricsAddress("::1", 0)),
    ],
)
def test_places(text: str, place: MetricsAddress) -> None:
    assert metrics_address(text) == place


@pytest.mark.parametrize("text", ["", "host", "host:", "1:99999", "-1"])
def test_invalid_addresses_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="neither PORT nor HOST:PORT"):
        metrics_address(text)


@pytest.fixture
def _program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.jena").write_text(PROGRAM)
    Path("a.ntt").write_text(LINES)


@pytest.mark.usefixtures("_program")
def test_a_port_in_use_is_reported_before_anything_starts(squall: Squall) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        code, _, err = squall("build", "p.jena", "--source", "a.ntt", "--sink", "out.nt", "--metrics", port)
    assert code == 2
    assert err.startswith(f"usage error: metrics cannot be served at `127.0.0.1:{port}`: Address already in use")
    assert not Path("out.nt").exists()


@pytest.mark.usefixtures("_program")
def test_without_the_library_the_error_names_the_extra(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "squall.observe.metrics")
    monkeypatch.delattr("squall.observe.metrics")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    code, _, err = squall("build", "p.jena", "--source", "a.ntt", "--metrics", "0")
    assert code == 2
    assert "hint: pip install 'squall[metrics]'" in err


@pytest.mark.more
@pytest.mark.usefixtures("_program")
def test_the_command_line_serves_metrics() -> None:
    """The run waits for more input."""
    os.mkfifo("pipe")
    command = [sys.executable, "-m", "squall", "build", "p.jena", "--source", "pipe?format=ntt", "--metrics", "0"]
    environment = {**os.environ, "PYTHONPATH": str(Path(squall.__file__).parent.parent)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        with open("pipe", "wb", buffering=0) as pipe:
            pipe.write(LINES.encode())
            (address,) = re.findall(rb"metrics at (\S+)", process.stderr.readline())
            assert process.stdout.readline().startswith(b"<http://example.org/b>")
            assert process.stdout.readline().startswith(b"<http://example.org/c>")
            assert asked(address.decode())["squall_statements_total"] == {("pipe?format=ntt",): 3}
        assert process.wait(20) == 0
