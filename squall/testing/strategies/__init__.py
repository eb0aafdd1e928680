"""Hypothesis strategies: random programs and streams over a small vocabulary, so that most facts and
patterns interact."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any

from hypothesis import strategies as st

from squall.errors import SquallError
from squall.model import (
    AtomPattern,
    Bind,
    Consequence,
    Construct,
    FactPattern,
    Negation,
    Pattern,
    Source,
    System,
    is_update,
    variables,
    visible,
)
from squall.model.stratification import stratify
from squall.rdf import QUAD, Term
from squall.testing.strategies.rules import rules
from squall.testing.strategies.streams import event_streams, facts, graphs_of, one_in, reports, sources_of, static_data
from squall.testing.strategies.texts import jena_text
from squall.testing.strategies.vocabulary import (
    ALL,
    BASE,
    CORE,
    DERIVED,
    DERIVED_STREAMS,
    FEATURES,
    GRAPHS,
    LEVELS,
    LITERALS,
    MADE,
    MEASURE,
    NAMES,
    NODES,
    NUMBERS,
    STREAMS,
    TOP,
    WHOLE,
    Shape,
)

__all__ = [
    "ALL",
    "CORE",
    "DERIVED_STREAMS",
    "FEATURES",
    "GRAPHS",
    "LEVELS",
    "LITERALS",
    "MEASURE",
    "NODES",
    "NUMBERS",
    "STREAMS",
    "event_streams",
    "facts",
    "jena_text",
    "jena_texts",
    "static_data",
    "systems",
]


@st.composite
def systems(draw: st.DrawFn, output: str | None = None, features: frozenset[str] = CORE) -> System:
    """Draws a program of one to four rules and queries that can be stratified and planned, and that ends.

    Recursion creates no new terms, and no nullable variable is joined on. Programs have joins, repeated variables,
    constants (also literals with equal values), several heads, filters, binds, and each of the `features`. In half of
    the programs nothing needs a whole stratum (negation, aggregates and so on).

    Args:
        draw: Hypothesis.
        output: The R2S operator. None draws one.
        features: The features. Events for the program are those of `event_streams` with the same features.
    """
    # In one piece: draws, one after another, whose order decides what an example shrinks to.
    drawn_features = features if draw(st.booleans()) else features - WHOLE
    if drawn_features >= {"delete", "insert"}:
        drawn_features -= draw(st.sampled_from((frozenset(), frozenset({"delete"}), frozenset({"insert"}))))
    default = draw(sources_of("", drawn_features))
    sources: list[tuple[Source, ...]] = [(default,)]
    if "streams" in features:
        left, right = (draw(sources_of(stream, drawn_features)) for stream in STREAMS[1:])
        sources = [*5 * [(default,)], (left,), (left, right), (default, left)]
    if "output specs" in features:
        first_stream, second_stream = (draw(sources_of(stream, drawn_features)) for stream in DERIVED_STREAMS)
        sources += [(first_stream,), (first_stream, second_stream), (default, first_stream)]
    if "named" in features:
        sources += [(draw(graphs_of(drawn_features)),), (default, draw(graphs_of(drawn_features)))]
    top = TOP if features & {"select", "delete", "insert", "ask"} else TOP - 1
    levels = draw(st.lists(st.integers(0, top), min_size=2, max_size=4))
    program = [
        draw(rules(f"r{number}", Shape(level, drawn_features, tuple(sources)))) for number, level in enumerate(levels)
    ]
    if "exact" in features:
        program = [_exactly(rule) if draw(one_in(3)) else rule for rule in program]
    if "transitive" in features and draw(one_in(4)):
        program.append(_transitive(draw(st.sampled_from((*BASE, *DERIVED))), draw(st.sampled_from(sources))))
    if "alike" in features and draw(one_in(4)):
        like = draw(st.sampled_from(program))
        program += [replace(_turned(like), name="alike"), replace(_turned(_turned(like)), name="alike too")]
    report = draw(reports()) if "reports" in features and draw(one_in(3)) else None
    system = System(subsystems=tuple(program), output=output or draw(_outputs(drawn_features)), report=report)
    return draw(_with_output_specs(system, drawn_features)) if "output specs" in features else system


def _outputs(features: frozenset[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(
        ("istream", "istream", "rstream", *(["dstream", "changes"] if features & _RETRACTING_FEATURES else []))
    )


@st.composite
def _with_output_specs(draw: st.DrawFn, system: System, features: frozenset[str]) -> System:
    """Draws output specifications for some rules of the program, some of them as derived streams without a cycle.

    If there are updates, streams only output changes. Each effect of an update is an instant, at which a snapshot
    stream would be output again. Windows with steps and of triples would make rules act on that again.
    """
    has_updates = any(map(is_update, system.subsystems))
    for place, rule in enumerate(system.subsystems):
        if is_update(rule) or not draw(one_in(3)):
            continue
        report = draw(reports()) if "reports" in features and draw(one_in(3)) else None
        own = System(subsystems=(rule,), output=draw(_outputs(features)), report=report)
        writer = draw(_quads(rule)) if "named" in features else rule
        stream = replace(
            own,
            stream=draw(st.sampled_from(DERIVED_STREAMS)),
            output="dstream" if own.output == "changes" else own.output,
            subsystems=(replace(writer, reentrant=False),),
        )
        system = _put(system, place, own)
        emits_snapshots = own.output == "rstream" and (report is None or not report.only_changes)
        if not (has_updates and emits_snapshots) and draw(st.booleans()):
            with suppress(SquallError):
                stratify(_put(system, place, stream))
                system = _put(system, place, stream)
    return system


@st.composite
def _quads(draw: st.DrawFn, rule: System) -> System:
    """Draws named graphs for some of the triples that the rule derives."""
    graphs = st.sampled_from((None, *map(Term, GRAPHS[2:4]), *visible(rule)[:1]))

    def template(pattern: FactPattern) -> FactPattern:
        graph = draw(graphs)
        return AtomPattern(QUAD, (graph, *pattern.slots)) if isinstance(pattern, Pattern) and graph else pattern

    def with_quads(consequence: Consequence) -> Consequence:
        return (
            replace(consequence, template=tuple(map(template, consequence.template)))
            if isinstance(consequence, Construct)
            else consequence
        )

    return replace(rule, consequences=tuple(map(with_quads, rule.consequences)))


def _put(system: System, place: int, rule: System) -> System:
    return replace(system, subsystems=(*system.subsystems[:place], rule, *system.subsystems[place + 1 :]))


def _transitive(predicate: Term, sources: tuple[Source, ...]) -> System:
    x, y, z = NAMES
    head = Construct((Pattern(x, predicate, z),))
    return System("transitive", sources, (Pattern(x, predicate, y), Pattern(y, predicate, z)), consequences=(head,))


def _turned(part: Any) -> Any:
    """Returns the part with each node replaced by the next one."""
    if isinstance(part, str):
        return NODES[(NODES.index(part) + 1) % len(NODES)] if part in NODES else part
    return _changed(part, _turned)


def _exactly(part: Any) -> Any:
    """Returns the part with patterns whose literals match by term."""
    copy = _changed(part, _exactly)
    return replace(copy, exact=True) if isinstance(copy, Pattern) else copy


def _changed(part: Any, change: Callable[[Any], Any]) -> Any:
    """Returns the part with each of its children changed."""
    if isinstance(part, tuple):
        return tuple(map(change, part))
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: change(getattr(part, field.name)) for field in fields(part)})
    return part


_RETRACTING_FEATURES = WHOLE | {"windows", "count", "sessions", "open sessions", "removals", "delete", "insert"}
"""The features by which outputs may end."""


def jena_texts() -> st.SearchStrategy[tuple[str, System]]:
    """Draws a program as Jena rules, with the system that its translation has to equal."""
    sayable = systems(output="istream").filter(lambda system: all(map(_is_jena, system.subsystems)))
    return sayable.map(lambda system: (jena_text(system), system))


def _is_jena(rule: System) -> bool:
    """Returns whether Jena rules can express a rule.

    They compute only from bound variables, and a wildcard of ``noValue`` has no name.
    """
    bound = {name for pattern in rule.joinables for name in variables(pattern)} | {MADE}
    for part in rule.predicates:
        if isinstance(part, Bind) and not bound.issuperset(variables(part.expression)):
            return False
        if isinstance(part, Negation):
            wild = [name for pattern in part.joinables for name in variables(pattern) if name not in bound]
            if len(set(wild)) < len(wild):
                return False
    return True
