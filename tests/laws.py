"""Runs laws (properties) on random examples: a few in `make test`, more in `make test-more`, many in the slow tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squall.model import System
from squall.plan import Plan
from squall.planners import rete
from squall.planners.passes.share_constants import share_constants

PLANNERS = ("greedy", "rete")
SLOW_FACTOR = int(os.environ.get("SQUALL_AT_LENGTH", "12"))
"""The factor by which a law gets more examples in the slow tests."""
DIVISORS = {"few": 20, "some": 4, "all": 1}
"""By how much the number of examples of each property is divided: in `make test`, in `make test-more`, and else."""
DIVISOR = DIVISORS[os.environ.get("SQUALL_EXAMPLES", "all")]
FEW_EXAMPLES = os.environ.get("SQUALL_EXAMPLES") == "few"
"""Whether there are too few examples to say how many of them have to show something."""
MIN_EXAMPLES = 3


def plan_with_shared_constants(system: System) -> Plan:
    """Plans a system as `rete` does, where rules share a join however few of them differ in a constant."""
    shared = partial(share_constants, max_separate_joins=0)
    return rete.plan(system, passes=[shared if step is share_constants else step for step in rete.PASSES])


def examples_of(number: int) -> int:
    """Returns how many examples a property gets in this run: `number`, or a part of it (`SQUALL_EXAMPLES`)."""
    return number if DIVISOR == 1 else max(MIN_EXAMPLES, number // DIVISOR)


def examples(number: int) -> pytest.MarkDecorator:
    """Parametrizes a test with `many` examples: `number`, and `SLOW_FACTOR` times as many in the slow tests."""
    return pytest.mark.parametrize("many", [number, pytest.param(SLOW_FACTOR * number, marks=pytest.mark.slow)])


on_engines = pytest.mark.parametrize(
    ("builder", "number"),
    [
        ("in memory", 60),
        pytest.param("beam", 3, marks=[pytest.mark.beam, pytest.mark.more]),
        pytest.param("spark", 3, marks=[pytest.mark.spark, pytest.mark.more]),
        pytest.param("beam", 30, marks=[pytest.mark.beam, pytest.mark.slow]),
        pytest.param("spark", 30, marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
"""Parametrizes a law with a builder, or micro-batches in memory, and the number of examples there."""


def hold(law: Callable[..., None], many: int, **strategies: st.SearchStrategy[Any]) -> None:
    """Runs a law on examples that hypothesis draws from the strategies."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    settings(max_examples=examples_of(many), deadline=None, suppress_health_check=checks)(given(**strategies)(law))()


def hold_with_outputs(
    law: Callable[..., Sequence[object]], many: int, min_share: float = 0.3, **strategies: st.SearchStrategy[Any]
) -> None:
    """Runs a law on examples that hypothesis draws from the strategies, and fails if few of them show something.

    Args:
        law: returns the outputs of the example. It rejects (`assume`) what it says nothing of.
        many: the number of examples.
        min_share: the smallest share of the examples that have to be accepted and have outputs.
        strategies: the strategies, by the names of the law's arguments.
    """
    count = 0

    def counted(**example: Any) -> None:
        nonlocal count
        count += bool(law(**example))

    hold(counted, many, **strategies)
    assert count >= int(min_share * examples_of(many)), f"of {examples_of(many)} examples, {count} have outputs"
