"""Trials: generated programs with generated input, which laws run in micro-batches (tests/in_memory.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from squall.contracts import Output
from squall.model import System
from squall.plan import Plan
from squall.rdf import Event
from squall.testing import assert_as_oracle
from squall.testing.strategies import ALL, event_streams, static_data, systems
from tests import in_memory

APART = ALL - {"delete", "insert"}
"""Features of programs that run distributed, unless they derive streams with snapshot output."""


@dataclass(frozen=True)
class Trial:
    """A generated program with its input, which a law runs in micro-batches.

    Attributes:
        system: the program.
        events: the events of its streams.
        facts: its static data.
        cuts: where the events are cut into batches.
        compaction_interval: the number of batches between two compactions of the state.
        seed: the seed of all further choices of a law.
    """

    system: System
    events: list[Event]
    facts: list[Event]
    cuts: list[int]
    compaction_interval: int
    seed: int

    @property
    def all_events(self) -> list[Event]:
        """The events and the static data."""
        return [*self.events, *self.facts]

    def outputs_as_oracle(self, plan: Plan, **options: Any) -> list[Output]:
        """Runs a plan of the program with options of `tests.in_memory.run`, and compares it with the oracle. Returns
        the outputs."""
        batches = in_memory.cut(self.events, self.cuts)
        outputs = in_memory.run(plan, batches, self.facts, compaction_interval=self.compaction_interval, **options)
        assert_as_oracle(self.system, outputs, self.events, self.facts)
        return outputs


def trials(features: frozenset[str], programs: st.SearchStrategy[System] | None = None) -> st.SearchStrategy[Trial]:
    """Draws trials of programs, which are those with the features if none are given."""
    return st.builds(
        Trial,
        system=systems(features=features) if programs is None else programs,
        events=event_streams(features=features),
        facts=static_data(features=features),
        cuts=st.lists(st.integers(0, 12), max_size=5),
        compaction_interval=st.sampled_from([1, 2, 100]),
        seed=st.integers(0, 1 << 32),
    )
