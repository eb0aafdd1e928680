"""The scripts of docs/gallery that need a broker. Everything else on these pages is run by tests/test_docs.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests import brokers
from tests.kafka_broker import KafkaBroker
from tests.live import example
from tests.test_docs import ROOT, blocks


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[brokers.Broker]:
    """Starts a mosquitto on a port of its own, and skips the test if there is none."""
    pytest.importorskip("paho.mqtt.client")
    yield from brokers.mosquitto(tmp_path).running()


def run_script(page: str, script: str, folder: Path, environment: Mapping[str, str], **replaced: str) -> None:
    """Run a script of a page, beside all files of that page, and compare its output with the page.

    Args:
        page: the page's path in docs/.
        script: the name of the script on its fence.
        replaced: what stands for the usual addresses of servers, by these.
    """
    files = {block.rest: block.text for block in blocks((ROOT / "docs" / page).read_text()) if "." in block.rest}
    for name, text in files.items():
        (folder / name).write_text(text)
    program = next(name for name in files if name.endswith(".jena"))
    example(script, folder, environment, page, program, **replaced)


@pytest.mark.more
def test_the_iot_alarm_runs_over_mqtt(broker: brokers.Broker, tmp_path: Path) -> None:
    brokers.program("mosquitto_pub")
    port = str(broker.port)
    replaced = {"localhost": f"127.0.0.1:{port}", "_sub ": f"_sub -p {port} ", "_pub ": f"_pub -p {port} "}
    (tmp_path / "alarm").mkdir()
    run_script("gallery/iot-alarm.md", "mqtt.sh", tmp_path / "alarm", brokers.environment(), **replaced)


@pytest.mark.more
def test_the_access_log_runs_over_kafka(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    with KafkaBroker().running() as broker:
        replaced = {"localhost:9092": f"127.0.0.1:{broker.port}"}
        run_script("gallery/access-log.md", "kafka.sh", tmp_path, {}, **replaced)
