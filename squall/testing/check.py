"""Runs programs and compares their outputs with the expected ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import squall
from squall.contracts import Builder, Options, Output, Planner
from squall.lexers.prefixes import Prefixes
from squall.model import Select, System, output_specs, rules
from squall.plan import Plan
from squall.plan.seeds import FIXED_SEED
from squall.rdf import Event, Solution
from squall.testing import oracle
from squall.testing.compare import difference
from squall.testing.streams import Timed, show, static, stream, timed

Events = str | Sequence[Event]
"""Events, or a text in the form of `squall.testing.streams.stream` (of static facts: of `static`)."""


@dataclass
class Losses:
    """A dead-letter ledger in memory: it keeps the cause and the text of each record."""

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
    prefixes: Prefixes = None,
) -> list[Output[Any]]:
    """Returns the outputs of a program: a system, a path, or a text in the language of `lexer`.

    Args:
        program: The program.
        events: The events, or their text.
        static_facts: Facts that always hold, or their text.
        lexer: The language of a program that is a text.
        planner: A planner or its name.
        builder: A builder or its name.
        output: The R2S operator (istream, dstream, rstream, changes); None leaves that of the program.
        prefixes: Prefixes of a program that is a text or a path, as for `squall.compile`.
    """
    system = program if isinstance(program, System) else squall.compile(program, lexer=lexer, prefixes=prefixes)
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
    prefixes: Prefixes = None,
) -> None:
    """Fails, with a difference line by line, unless just the expected facts come out, each once at its time.

    `expected` is a text of timed facts (`squall.testing.streams.timed`) or pairs of time and fact. Blank nodes are
    compared up to a renaming. The other arguments are those of `run`.
    """
    outputs = run(
        program, events, static_facts, lexer=lexer, planner=planner, builder=builder, output=output, prefixes=prefixes
    )
    expected_facts = timed(expected) if isinstance(expected, str) else expected
    differs = difference(((out.time, out.fact) for out in outputs), expected_facts)
    assert not differs, f"missing (-) and surplus (+):\n{differs}"


def outputs(
    plan: Plan,
    batches: Iterable[Sequence[Event]],
    static_facts: Iterable[Event],
    builder: str | Builder,
    losses: Losses | None = None,
) -> list[Output]:
    """Returns the outputs of a plan for events in these batches. `losses` records late events. For functions of time,
    static facts hold since 1970-01-01. The seed is that of the oracle."""
    options = Options(ledger=Losses() if losses is None else losses, now=0, seed=FIXED_SEED)
    return list(squall.build(plan, builder, options).run(batches, static_facts))


def assert_as_oracle(
    system: System, outputs: Sequence[Output], events: Iterable[Event], static_facts: Iterable[Event] = ()
) -> None:
    """Fails unless the outputs are those of the oracle, each made by a rule that does make it, in the order of time."""
    expected = oracle.outputs(system, events, static_facts)
    for kind in ("", "delete", "insert"):
        differs = difference(
            ((out.time, out.fact) for out in outputs if out.change == kind),
            ((time, fact) for time, fact, _, change in expected if change == kind),
        )
        assert not differs, f"the oracle misses (-) and does not expect (+) {kind or 'output'}:\n{differs}"
    makers: dict[Timed, frozenset[str]] = {}
    for time, fact, names, _ in expected:
        makers[time, fact] = makers.get((time, fact), frozenset()) | names
    for out in outputs:
        names = makers.get((out.time, out.fact), frozenset((out.rule,)))
        assert out.rule in names, f"{show(out.time, out.fact)}: made by {sorted(names)}, not by `{out.rule}`"
    assert [out.time for out in outputs] == sorted(out.time for out in outputs), (
        "outputs have to come in the order of time"
    )
    if _is_ordered(system):
        assert _solutions((out.time, out.fact) for out in outputs) == _solutions(
            (time, item) for time, item, *_ in expected
        ), "the solutions of an instant have to come in the order of the query"


def _is_ordered(system: System) -> bool:
    """Returns whether the program emits snapshots (rstream) of one ordered query."""
    queries = [
        rule for rule in rules(system) if any(isinstance(consequence, Select) for consequence in rule.consequences)
    ]
    order = queries[0].slice.order if len(queries) == 1 and queries[0].slice else ()
    return all(spec.output == "rstream" for spec in output_specs(system) if spec.rules) and bool(order)


def _solutions(items: Iterable[Timed]) -> list[Timed]:
    return [(time, item) for time, item in items if isinstance(item, Solution)]
