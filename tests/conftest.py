"""Settings that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from squall import cli
from tests import brokers

# Every run draws the same examples, unless HYPOTHESIS_PROFILE=explore asks for new ones. None has to be fast: machines
# are shared.
settings.register_profile("ci", derandomize=True, database=None, deadline=None)
settings.register_profile("explore", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

Squall = Callable[..., tuple[int, str, str]]


@pytest.fixture
def squall(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Squall:
    """Runs the command line in this process; gives the exit code and what went to standard output and error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["squall", *arguments])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return (int(caught.value.code or 0), *capfd.readouterr())

    return run


@pytest.fixture
def always_by_levels() -> Iterator[None]:
    """No micro-batch on Spark is worked off by a single task for having few rows."""
    from squall.builders.spark import ROWS_TOGETHER, session

    conf = session().conf
    conf.set(ROWS_TOGETHER, "0")
    yield
    conf.unset(ROWS_TOGETHER)


@pytest.fixture
def in_tasks() -> Iterator[None]:
    """No micro-batch on Spark is worked off straight through by one task, however little there is to be read."""
    from squall.builders.spark import BYTES_TOGETHER, session

    conf = session().conf
    conf.set(BYTES_TOGETHER, "0")
    yield
    conf.unset(BYTES_TOGETHER)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[brokers.Broker]:
    """A Redis server. (Tests with another broker have one of their own by this name.)"""
    yield from brokers.redis(tmp_path).running()


@pytest.fixture
def redis(broker: brokers.Broker) -> Iterator[Any]:
    """A client of it."""
    from redis import Redis

    with Redis("127.0.0.1", broker.port) as client:
        yield client
