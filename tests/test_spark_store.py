"""The store of a job on Spark: small files are there and whole at any moment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark


class Watched:
    """Something of Java's. Behind each of its calls, where a kill may come, `look` tells what there is."""

    def __init__(self, java: Any, look: Callable[[], object]) -> None:
        self.java = java
        self.look = look
        self.seen: list[object] = []

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> Any:
            found = getattr(self.java, name)(*given)
            self.seen.append(self.look())
            return found

        return call


def test_a_small_file_is_there_at_any_moment_while_it_is_written_anew(tmp_path: Path) -> None:
    from squall.builders.spark import session
    from squall.builders.spark.store import Store, uri_of

    spark = session()
    store, other = (Store(spark._jvm, spark._jsc.hadoopConfiguration(), uri_of(tmp_path)) for _ in range(2))
    store.write(["first"], "marks", "0.json")
    look = partial(other.read, "marks", "0.json")
    assert look() == ["first"]
    store.files, store.context = Watched(store.files, look), Watched(store.context, look)
    store.write(["second", 2], "marks", "0.json")
    seen = [*store.files.seen, *store.context.seen]
    assert ["second", 2] in seen
    assert None not in seen
    assert other.names("marks") == ["0.json"]
