"""A plan as a transform of a user's own pipeline of Beam."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import squall
from squall.errors import ArgumentError, BuilderError
from squall.rdf import ALWAYS, Evaluated, Event, Triple, iri
from squall.testing import stream

pytestmark = [pytest.mark.beam, pytest.mark.skipif(find_spec("apache_beam") is None, reason="Beam is not installed")]

E = "http://example.org/"
PREFIX = f"PREFIX : <{E}> "
EVENTS = stream(
    "1000 :ann :parent :bob\n2000 :bob :parent :cat\n2000 :cat :is :Old\n5000 :cat :parent :dan\n9000 :dan :is :Old"
)
STATIC = stream("always :ann :is :Old")
PROGRAMS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "join": (PREFIX + "SELECT ?a ?c { ?a :parent ?b . ?b :parent ?c }", "sparql", {}),
    "negation": (PREFIX + "SELECT ?a { ?a :parent ?b FILTER NOT EXISTS { ?b :is :Old } }", "sparql", {}),
    "snapshot": (PREFIX + "SELECT (COUNT(*) AS ?n) { ?a :parent ?b }", "sparql",
                 {"window": "RANGE 3s", "output": "rstream", "report": "periodic:2s"}),
    "expiry": (PREFIX + "SELECT ?a ?b { ?a :parent ?b }", "sparql", {"window": "RANGE 2s", "output": "changes"}),
    "recursion": (f"@prefix : <{E}>.\n[a: (?a :parent ?b) -> (?a :anc ?b)]\n"
                  "[b: (?a :anc ?b) (?b :parent ?c) -> (?a :anc ?c)]", "jena", {}),
    "triples": (PREFIX + "SELECT ?a ?b { ?a :parent ?b }", "sparql", {"window": "TRIPLES 2", "output": "dstream"}),
    "static": (PREFIX + "SELECT ?a ?b { ?a :is :Old OPTIONAL { ?a :parent ?b } }", "sparql", {}),
}  # fmt: skip
MAPPING = f'PREFIX : <{E}> {{ "room": ?r, "degrees": ?d, "at": ?t }} => {{ :{{?r}} :degrees ?d }} AT ?t'
HOT = PREFIX + "SELECT ?r ?d { ?r :degrees ?d FILTER(?d > 20) }"


def plan_of(name: str) -> squall.Plan:
    text, lexer, settings = PROGRAMS[name]
    return squall.plan(squall.compile(text, lexer=lexer, **settings))


def collected(elements: Sequence[Any], transform: Any, times: Sequence[int] = ()) -> list[Any]:
    """Returns the outputs of a transform, with the timestamps that Beam has for them (integer ms)."""
    import apache_beam as beam

    SEEN.clear()
    with beam.Pipeline(runner="BundleBasedDirectRunner") as pipeline:
        if times:
            pairs = pipeline | beam.Create(list(zip(elements, times, strict=True)))
            collection = pairs | beam.Map(lambda pair: beam.window.TimestampedValue(pair[0], pair[1] / 1000))
        else:
            collection = pipeline | beam.Create(list(elements))
        _ = collection | transform | "seen" >> beam.FlatMap(lambda value, at=beam.DoFn.TimestampParam: _see(value, at))
    return SEEN.copy()


SEEN: list[Any] = []
"""What the last pipeline has made: Beam copies what functions refer to, but no modules."""


def _see(value: Any, at: Any = None) -> Iterator[Any]:
    SEEN.append((value, at.micros // 1000))
    return iter(())


def plain(outputs: Any) -> list[tuple[int, str, str]]:
    return sorted((out.time, str(out.fact), out.change) for out in outputs if not isinstance(out.fact, Evaluated))


@pytest.mark.parametrize(
    "name", [name if name in ("join", "triples") else pytest.param(name, marks=pytest.mark.more) for name in PROGRAMS]
)
def test_outputs_are_those_in_process(name: str) -> None:
    from squall.beam import Squall

    values = collected(EVENTS[::-1] if name != "triples" else EVENTS, Squall(plan_of(name), static=STATIC))
    expected = plain(squall.run(plan_of(name), EVENTS, static=STATIC))
    assert expected
    assert plain(output for output, _ in values) == expected
    assert all(at == output.time for output, at in values if output.time != ALWAYS)


@pytest.mark.more
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_outputs_of_any_events_are_those_in_process(data: st.DataObject) -> None:
    from squall.beam import Squall

    name = data.draw(st.sampled_from(sorted(set(PROGRAMS) - {"triples"})))
    nodes = st.sampled_from([iri(f"{E}{letter}") for letter in "abc"])
    facts = st.one_of(
        st.builds(Triple, nodes, st.just(iri(E + "parent")), nodes),
        st.builds(Triple, nodes, st.just(iri(E + "is")), st.just(iri(E + "Old"))),
    )
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 9), facts), max_size=6))
    events = [Event(time * 1000, (fact,)) for time, fact in sorted(pairs)]
    values = collected(data.draw(st.permutations(events)), Squall(plan_of(name)))
    assert plain(output for output, _ in values) == plain(squall.run(plan_of(name), events))


class Reading(NamedTuple):
    """A row."""

    room: str
    degrees: float
    at: int


@pytest.mark.more
def test_rows_are_mapped(caplog: pytest.LogCaptureFixture) -> None:
    from squall.beam import Squall

    plan = squall.plan(squall.compile(HOT, lexer="sparql"))
    rows = [{"room": "hall", "degrees": 31.5, "at": 2000}, Reading("attic", 25, 1000), {"room": "x", "degrees": 40}, 7]
    results = [(output.time, output.fact.values[0]) for output, _ in collected(rows, Squall(plan, MAPPING))]
    assert sorted(results) == [(1000, f"<{E}attic>"), (2000, f"<{E}hall>")]
    assert "the field `at` is missing" in caplog.text
    assert "a int is no event and no row: 7" in caplog.text
    untimed = MAPPING.removesuffix(" AT ?t").replace(', "at": ?t', "")
    results = [(output.time, output.fact.values[0]) for output, _ in collected(rows[:2], Squall(plan, untimed), [5, 6])]
    assert sorted(results) == [(5, f"<{E}hall>"), (6, f"<{E}attic>")]


def test_rows_may_be_triples_with_times_of_their_own_or_of_the_element() -> None:
    from squall.beam import Squall
    from squall.builders.distributed.io.row_source import Statement

    plan = squall.plan(squall.compile("SELECT ?s ?o { ?s <urn:p> ?o }", lexer="sparql"))
    rows = [Statement(7, "<urn:a>", "<urn:p>", '"x"'), {"subject": "urn:b", "predicate": "urn:p", "object": 5}]
    results = [(output.time, output.fact.values[0]) for output, _ in collected(rows, Squall(plan), [1, 2])]
    assert sorted(results) == [(2, "<urn:b>"), (7, "<urn:a>")]


def test_dead_letters_may_be_a_collection() -> None:
    import apache_beam as beam

    from squall.beam import Squall

    plan = squall.plan(squall.compile(HOT, lexer="sparql"))
    SEEN.clear()
    with beam.Pipeline(runner="BundleBasedDirectRunner") as pipeline:
        rows = pipeline | beam.Create([{"room": "hall"}])
        _, dead_letters = rows | Squall(plan, MAPPING, with_dead_letters=True)
        _ = dead_letters | beam.FlatMap(lambda value, at=beam.DoFn.TimestampParam: _see(value, at))
    ((text, _),) = SEEN
    assert text.startswith("the field `at` is missing, which has the time: {")


def test_what_is_refused() -> None:
    import apache_beam as beam
    from apache_beam.transforms.periodicsequence import PeriodicImpulse

    from squall.beam import Squall

    wrong: Any = "hot.rq"
    with pytest.raises(ArgumentError, match="the plan is a Plan, and not a str"):
        Squall(wrong)
    with pytest.raises(ArgumentError, match="is no unit of time"):
        Squall(plan_of("join"), MAPPING, unit="h")
    with pytest.raises(BuilderError, match="an unbounded collection has no end"):
        _ = beam.Pipeline() | PeriodicImpulse() | Squall(plan_of("join"))
