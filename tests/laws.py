"""How laws are held: on so many examples as a rule, and on some times as many among the slow tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PLANNERS = ("greedy", "rete")
AT_LENGTH = int(os.environ.get("SQUALL_AT_LENGTH", "12"))
"""How many times as many examples there are among the slow tests."""


def examples(number: int) -> pytest.MarkDecorator:
    """The argument `many` of a test: the number as a rule, and `AT_LENGTH` times as much among the slow tests."""
    return pytest.mark.parametrize("many", [number, pytest.param(AT_LENGTH * number, marks=pytest.mark.slow)])


def hold(law: Callable[..., None], many: int, **strategies: st.SearchStrategy[Any]) -> None:
    """Runs a law on what hypothesis makes up."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    settings(max_examples=many, deadline=None, suppress_health_check=checks)(given(**strategies)(law))()
