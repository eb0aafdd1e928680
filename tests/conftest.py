"""Settings that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from squall import cli

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
