"""Tools for tests of programs and of plug-ins: hand-written streams, the oracle, cases, suites, strategies.

They need pytest and hypothesis (the extra ``dev``). Nothing else in squall imports them.
"""

from __future__ import annotations

import pytest

# The suites' bare asserts explain themselves like those of a test module only if pytest hears of them first.
pytest.register_assert_rewrite("squall.testing.check", "squall.testing.suites")

from squall.testing import cases, oracle, strategies  # noqa: E402
from squall.testing.check import assert_as_oracle, assert_outputs, run  # noqa: E402
from squall.testing.compare import difference, isomorphic  # noqa: E402
from squall.testing.streams import PREFIXES, Timed, static, stream, term, timed  # noqa: E402
from squall.testing.suites import BuilderSuite, LexerSuite, PlannerSuite  # noqa: E402

__all__ = [
    "PREFIXES", "BuilderSuite", "LexerSuite", "PlannerSuite", "Timed", "assert_as_oracle", "assert_outputs", "cases",
    "difference", "isomorphic", "oracle", "run", "static", "strategies", "stream", "term", "timed",
]  # fmt: skip
