"""Runs programs and holds what comes out against what should."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import squall
from squall.contracts import Builder, Options, Output, Planner
from squall.model import Select, System, output_specs, rules
from squall.plan import Plan
from squall.rdf import Event, Solution
from squall.testing import oracle
from squall.testing.compare import difference
from squall.testing.streams import Timed, show, static, stream, timed

Events = str | Sequence[Event]
"""Events, or a text in the form of `squall.testing.streams.stream` (of static facts: of `static`)."""


@dataclass
class Losses:
    """A ledger (`squall.contracts.Ledger`) that keeps what it is told: the cause and the text."""

    found: list[tuple[str, str]] = field(default_factory=list)

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        self.found.append((cause, text))


def run(
    program: System | Path | str,
    events: Events,
    static_facts: Events = (),
    *,
    lexer: str = "jena",
    planner: str | Planner = "rete",
    builder: str | Builder = "iterator",
    output: str | None = None,
) -> list[Output]:
    """The outputs of a program: a system, a path, or a text in the language of `lexer`. `output`: the R2S operator."""
    system = program if isinstance(program, System) else squall.compile(program, lexer=lexer)
    if output is not None:
        system = replace(system, output=output)
    facts = static(static_facts) if isinstance(static_facts, str) else static_facts
    arriving = stream(events) if isinstance(events, str) else events
    return outputs(squall.plan(system, planner), [arriving], facts, builder)


def assert_outputs(
    program: System | Path | str,
    events: Events,
    expected: str | Iterable[Timed],
    static_facts: Events = (),
    *,
    lexer: str = "jena",
    planner: str | Planner = "rete",
    builder: str | Builder = "iterator",
    output: str | None = None,
) -> None:
    """Fails, with a difference line by line, unless just the expected facts come out, each once at its time.

    `expected` is a text of timed facts (`squall.testing.streams.timed`) or pairs of time and fact. Blank nodes are
    compared up to a renaming. The other arguments are those of `run`.
    """
    came = run(program, events, static_facts, lexer=lexer, planner=planner, builder=builder, output=output)
    due = timed(expected) if isinstance(expected, str) else expected
    differs = difference(((out.time, out.fact) for out in came), due)
    assert not differs, f"missing (-) and surplus (+):\n{differs}"


def outputs(
    plan: Plan,
    batches: Iterable[Sequence[Event]],
    static_facts: Iterable[Event],
    builder: str | Builder,
    losses: Losses | None = None,
) -> list[Output]:
    """The outputs of a plan whose events come cut into these batches; `losses` hears of what is late. What always holds
    does so since 1970-01-01, for functions of time."""
    options = Options(ledger=Losses() if losses is None else losses, now=0)
    return list(squall.build(plan, builder, options).run(batches, static_facts))


def assert_as_oracle(
    system: System, came: Sequence[Output], events: Iterable[Event], static_facts: Iterable[Event] = ()
) -> None:
    """Fails unless the outputs are those of the oracle, each made by a rule that does make it, in the order of time."""
    due = oracle.outputs(system, events, static_facts)
    differs = difference(((out.time, out.fact) for out in came), ((time, fact) for time, fact, _ in due))
    assert not differs, f"the oracle misses (-) and does not expect (+):\n{differs}"
    makers: dict[Timed, frozenset[str]] = {}
    for time, fact, names in due:
        makers[time, fact] = makers.get((time, fact), frozenset()) | names
    for out in came:
        names = makers.get((out.time, out.fact), frozenset((out.rule,)))
        assert out.rule in names, f"{show(out.time, out.fact)}: made by {sorted(names)}, not by `{out.rule}`"
    assert [out.time for out in came] == sorted(out.time for out in came), "outputs have to come in the order of time"
    if _is_ordered(system):
        assert _solutions((out.time, out.fact) for out in came) == _solutions((time, item) for time, item, _ in due), (
            "the solutions of an instant have to come in the order of the query"
        )


def _is_ordered(system: System) -> bool:
    """Whether whole answers come out, of one query, which puts them in order."""
    queries = [rule for rule in rules(system) if any(isinstance(one, Select) for one in rule.consequences)]
    order = queries[0].slice.order if len(queries) == 1 and queries[0].slice else ()
    return all(telling.output == "rstream" for telling in output_specs(system) if telling.rules) and bool(order)


def _solutions(items: Iterable[Timed]) -> list[Timed]:
    return [(time, item) for time, item in items if isinstance(item, Solution)]
