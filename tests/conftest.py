"""Settings and fixtures that all tests share."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from squall import cli
from tests import brokers
from tests.laws import examples_of

# gRPC, which Beam loads, handles forks of its process. Spark's JVM is started by one, and died of that at times.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")

# Every run draws the same examples, unless HYPOTHESIS_PROFILE=explore asks for new ones. None has to be fast: machines
# are shared.
settings.register_profile("ci", derandomize=True, database=None, deadline=None, max_examples=examples_of(100))
settings.register_profile("explore", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(tryfirst=True)  # before `-m` selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the combinations of sampled tests, and puts the tests of engines first: they take longest, and several
    workers share the rest.
    """
    counts: Counter[tuple[str, frozenset[str]]] = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None:
            test = (item.nodeid.partition("[")[0], frozenset(mark.name for mark in item.iter_markers()))
            if counts[test] % sampled.args[0]:
                item.add_marker("more")
            counts[test] += 1
    items.sort(key=lambda item: not any(item.get_closest_marker(engine) for engine in ("spark", "beam")))


Squall = Callable[..., tuple[int, str, str]]
Install = Callable[..., None]


@pytest.fixture
def squall(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Squall:
    """Runs the command line in this process; gives the exit code and what went to standard output and error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["squall", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main(exit_process=sys.exit)
        return (int(caught.value.code or 0), *capfd.readouterr())

    return run


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes an installed distribution with one module and some entry points."""

    def install(distribution: str, module: str, code: str, **entry_points: str) -> None:
        root = tmp_path / distribution
        info = root / f"{distribution}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        groups = (f"[squall.{group}]\n{line}\n" for group, line in entry_points.items())
        (info / "entry_points.txt").write_text("\n".join(groups))
        (root / f"{module}.py").write_text(code)
        monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(str(root))

    return install


@pytest.fixture
def empty_registry() -> Iterator[None]:
    """Gives a test a registry of functions of its own, and restores the functions of other tests."""
    from squall import functions

    registered = functions.own()
    functions._registry.cache_clear()
    yield
    functions._registry.cache_clear()
    functions.register(*registered)


@contextmanager
def spark_set(name: str, value: str) -> Iterator[None]:
    """Sets an option of the Spark session that all tests share, within a context."""
    from squall.builders.spark import session

    conf = session().conf
    conf.set(name, value)
    try:
        yield
    finally:
        conf.unset(name)


@pytest.fixture
def always_by_levels() -> Iterator[None]:
    """Lets no single task process a micro-batch on Spark for having few rows."""
    from squall.builders.spark import MAX_SINGLE_TASK_ROWS

    with spark_set(MAX_SINGLE_TASK_ROWS, "0"):
        yield


@pytest.fixture
def in_tasks() -> Iterator[None]:
    """Lets no single task process a micro-batch on Spark from its sources to its outputs, however small it is."""
    from squall.builders.spark import MAX_SINGLE_TASK_BYTES

    with spark_set(MAX_SINGLE_TASK_BYTES, "0"):
        yield


@pytest.fixture
def spark_jobs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records Spark's physical plans of the jobs that micro-batches run. For jobs of one task without a query plan, it
    records the step."""
    from squall.builders.spark.engine import SparkEngine

    texts: list[str] = []
    outputs, each = SparkEngine.run, SparkEngine.run_tasks

    def noted(self: SparkEngine, messages: Any) -> Any:
        texts.append(messages._jdf.queryExecution().executedPlan().toString())
        return outputs(self, messages)

    def noted_each(self: SparkEngine, steps: Any) -> Any:
        texts.append(f"MapInArrow {steps[0].__name__}()")
        return each(self, steps)

    monkeypatch.setattr(SparkEngine, "run", noted)
    monkeypatch.setattr(SparkEngine, "run_tasks", noted_each)
    return texts


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[brokers.Broker]:
    """Yields a Redis server. (Tests with another broker define a fixture of their own by this name.)"""
    yield from brokers.redis(tmp_path).running()


@pytest.fixture
def redis(broker: brokers.Broker) -> Iterator[Any]:
    """Yields a client of the Redis server."""
    from redis import Redis

    with Redis("127.0.0.1", broker.port) as client:
        yield client
