"""Laws of languages with named events: a query has the matches that enumeration over the whole stream gives.

The enumeration is that of `tests/test_sequences.py`. Each predicate has a stream of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall.errors import SquallError
from squall.plan import Plan
from squall.rdf import Event, Triple
from squall.translators.sparql.time_patterns import Occurrence
from tests import in_memory
from tests.laws import hold_with_outputs
from tests.test_ctsparql_laws import matches
from tests.test_sequences import E, events_strategy, expected

STREAMS = {"a": f"{E}s", "b": f"{E}t"}
"""The stream of the facts of each predicate."""


class Drawn(NamedTuple):
    """A query, and the pattern that it means."""

    text: str
    pattern: Occurrence


def plan_of(text: str, lexer: str, planner: str) -> Plan:
    """Returns the plan of a query. An example with a query that can have no match is rejected."""
    try:
        return squall.plan(squall.compile(text, lexer=lexer), planner)
    except SquallError as error:
        if "this never occurs" not in str(error):
            raise
        assume(False)
        raise


def hold_by_enumeration(lexer: str, queries: st.SearchStrategy[Drawn], planner: str, many: int) -> None:
    """Runs the law in process."""

    def law(query: Drawn, events: list[Event]) -> Sequence[object]:
        outputs = list(squall.run(plan_of(query.text, lexer, planner), in_streams(events)))
        assert matches([(out.time, out.fact) for out in outputs]) == expected(query.pattern, events)
        return outputs

    hold_with_outputs(law, many, 0.1, query=queries, events=events_strategy())


def hold_on_engine(lexer: str, queries: st.SearchStrategy[Drawn], builder: str, number: int) -> None:
    """Runs the law with micro-batches in memory, or on an engine, where few examples need not have a match."""

    def law(query: Drawn, events: list[Event], seed: int) -> Sequence[object]:
        outputs = in_memory.outputs_on(builder, plan_of(query.text, lexer, "rete"), in_streams(events), seed, ())
        assert matches([(out.time, out.fact) for out in outputs]) == expected(query.pattern, events)
        return list(outputs) if builder == "in memory" else [law]

    hold_with_outputs(law, number, 0.1, query=queries, events=events_strategy(), seed=st.integers(0, 1000))


def in_streams(events: list[Event]) -> list[Event]:
    """Returns the events with the facts of each predicate in a stream of their own."""
    return [
        Event(event.time, facts, stream)
        for event in events
        for predicate, stream in STREAMS.items()
        if (facts := tuple(fact for fact in event.facts if _predicate(fact) == predicate))
    ]


def _predicate(fact: object) -> str:
    assert isinstance(fact, Triple)
    return fact.predicate.rpartition("/")[2].rstrip(">")
