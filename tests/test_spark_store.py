"""The store of a job on Spark replaces small files atomically."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark


def test_a_small_file_is_there_at_any_moment_while_it_is_written_anew(tmp_path: Path) -> None:
    """A kill may come at any moment."""
    from squall.builders.spark.store import Store

    store = Store(tmp_path)
    path = tmp_path / "marks" / "0.json"
    store.write(list(range(100)), "marks", "0.json")
    written = threading.Event()
    history: list[object] = []

    def look() -> None:
        while not written.is_set():
            try:
                history.append(len(json.loads(path.read_bytes())))
            except (OSError, ValueError) as error:
                history.append(error)

    watcher = threading.Thread(target=look)
    watcher.start()
    for _ in range(200):
        store.write(list(range(100)), "marks", "0.json")
    written.set()
    watcher.join()
    assert history
    assert set(history) == {100}
    assert store.read("marks", "0.json") == list(range(100))
    assert store.names("marks") == ["0.json"]
    assert store.read("marks", "1.json") is None
