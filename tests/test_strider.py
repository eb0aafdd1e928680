"""Programs of Strider: several queries over one window of all streams, held against loops over what the window holds.

The queries are those of an evaluation of Strider over observations of a water network (Q4 to Q7 and Q9), written anew.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.contracts import Options
from squall.errors import BuilderError, SquallError
from squall.lexers import strider
from squall.lexers.sparql import tree as q
from squall.model import System
from squall.model.systems import batch_interval_of
from squall.model.windows import HoppingWindow
from squall.rdf import RDF, XSD, Event, Solution, Term, Triple, iri, literal
from tests.bench import waves
from tests.bench.waves import PREFIXES, QUDT, REASONING, SSN, WATER
from tests.conftest import Squall
from tests.laws import examples_of

QUERIES = {name: text for name, text in waves.QUERIES.items() if name != REASONING}
TYPE = iri(RDF + "type")
PRODUCER, VALUE, START = (iri(SSN + name) for name in ("isProducedBy", "hasValue", "startTime"))
UNIT, NUMBER = iri(QUDT + "unit"), iri(QUDT + "numericValue")
KINDS = [iri(WATER + kind) for kind in ("flow", "temperature", "chlorine")]
Rows = Counter[tuple[Term | None, ...]]


def program(size: str, step: str, queries: dict[str, str], batch: str = "") -> str:
    blocks = (f"REGISTER {{ QUERYID [{name}] SPARQL [ {PREFIXES} {text} ] }}" for name, text in queries.items())
    return "\n".join((f"STREAMING {{ WINDOW [{size}] SLIDE [{step}]{batch and f' BATCH [{batch}]'} }}", *blocks))


def solutions(name: str, triples: set[Triple]) -> Iterator[tuple[Term | None, ...]]:
    """Yields the solutions of a query over a set of triples, by loops in the order in which it is written."""

    def objects(subject: Term, predicate: Term) -> list[Term]:
        return [triple.object for triple in triples if (triple.subject, triple.predicate) == (subject, predicate)]

    subjects = {triple.subject for triple in triples}
    match name:
        case "Q4":
            for s in subjects:
                yield from ((s, producer) for _ in objects(s, TYPE) for producer in objects(s, PRODUCER))
        case "Q5":
            for s in subjects:
                values = [(o1, o2) for _ in objects(s, TYPE) for o1 in objects(s, PRODUCER) for o2 in objects(s, VALUE)]
                yield from ((s, o1, o2, None, None, None) for o1, o2 in values)
                for kind in objects(s, TYPE):
                    for start in objects(s, START):
                        yield from ((None, None, s, kind, start, number) for number in objects(s, NUMBER))
        case "Q6":
            for s in subjects:
                values = [(o1, o2) for _ in objects(s, TYPE) for o1 in objects(s, PRODUCER) for o2 in objects(s, VALUE)]
                for o1, o2 in values:
                    for kind in objects(o2, TYPE):
                        for start in objects(o2, START):
                            for unit in objects(o2, UNIT):
                                yield from ((s, o1, o2, kind, start, unit, number) for number in objects(o2, NUMBER))
        case "Q7":
            for s in subjects:
                flow, temperature, chlorine = (
                    [value for value in objects(s, VALUE) if kind in objects(value, TYPE)] for kind in KINDS
                )
                yield from ((s, a, b, c) for a in flow for b in temperature for c in chlorine)
        case "Q9":
            for _, *parts in solutions("Q7", triples):
                a, b, c = ([] if part is None else objects(part, NUMBER) for part in parts)
                yield from ((x, y, z) for x in a for y in b for z in c)


def expected(name: str, events: Sequence[Event], size: int, step: int) -> dict[int, Rows]:
    """Returns the answers that are not empty, by the time at which the window ends."""
    ends = range(step, max(event.time for event in events) + size + step + 1, step)
    answers = {end: Counter(solutions(name, _content(events, end - size, end))) for end in ends}
    return {end: rows for end, rows in answers.items() if rows}


def _content(events: Sequence[Event], start: int, end: int) -> set[Triple]:
    facts = (fact for event in events if start <= event.time < end for fact in event.facts)
    return {fact for fact in facts if isinstance(fact, Triple)}


def answers(system: System, events: Sequence[Event], planner: str = "rete") -> dict[str, dict[int, Rows]]:
    """Returns the answers of the queries of a system by name and time."""
    by_query: dict[str, dict[int, Rows]] = {}
    for output in squall.run(squall.plan(system, planner), events, of=Solution):
        by_query.setdefault(output.rule, {}).setdefault(output.time, Counter())[tuple(output.fact.values)] += 1
    return by_query


STREAMS = ["", "urn:one", "urn:two"]
OBSERVATIONS = [iri(f"urn:o{number}") for number in range(2)]
VALUES = [iri(f"urn:v{number}") for number in range(4)]
NUMBERS = [literal(number, XSD + "double") for number in ("1.5", "2.5")]
triples = st.one_of(
    st.builds(Triple, st.sampled_from(OBSERVATIONS), st.just(TYPE), st.just(iri(SSN + "SensorOutput"))),
    st.builds(Triple, st.sampled_from(OBSERVATIONS), st.just(PRODUCER), st.sampled_from(VALUES[:2])),
    st.builds(Triple, st.sampled_from(OBSERVATIONS), st.just(VALUE), st.sampled_from(VALUES)),
    st.builds(Triple, st.sampled_from(VALUES), st.just(TYPE), st.sampled_from(KINDS)),
    st.builds(Triple, st.sampled_from(VALUES), st.just(START), st.sampled_from(NUMBERS)),
    st.builds(Triple, st.sampled_from(VALUES), st.just(UNIT), st.just(iri("urn:unit"))),
    st.builds(Triple, st.sampled_from(VALUES), st.just(NUMBER), st.sampled_from(NUMBERS)),
)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    facts = draw(st.lists(triples, min_size=10, max_size=40))
    times = sorted(draw(st.lists(st.integers(0, 25_000), min_size=len(facts), max_size=len(facts))))
    names = draw(st.lists(st.sampled_from(STREAMS), min_size=len(facts), max_size=len(facts)))
    return [Event(time, (fact,), name) for time, fact, name in zip(times, facts, names, strict=True)]


@settings(max_examples=examples_of(15), deadline=None)
@given(streams(), st.sampled_from([(10, 10), (10, 5), (15, 5)]), st.sampled_from(["rete", "greedy"]))
def test_all_queries_are_answered_over_one_window_of_all_streams(
    events: list[Event], window: tuple[int, int], planner: str
) -> None:
    size, step = window
    system = squall.compile(program(f"{size} Seconds", f"{step} Seconds", QUERIES), lexer="strider")
    outputs = answers(system, events, planner)
    for name in QUERIES:
        assert outputs.get(name, {}) == expected(name, events, size * 1000, step * 1000)


def test_a_dense_stream_has_answers_of_all_queries() -> None:
    """The law above would hold if there never were any."""
    facts = [Triple(OBSERVATIONS[0], TYPE, KINDS[0]), Triple(OBSERVATIONS[0], PRODUCER, VALUES[0])]
    for value, kind in zip(VALUES, KINDS, strict=False):
        facts += [Triple(OBSERVATIONS[0], VALUE, value), Triple(value, TYPE, kind), Triple(value, START, NUMBERS[0])]
        facts += [Triple(value, UNIT, iri("urn:unit")), Triple(value, NUMBER, NUMBERS[0])]
    events = [Event(1000, tuple(facts))]
    outputs = answers(squall.compile(program("10 s", "10 s", QUERIES), lexer="strider"), events)
    assert outputs == {name: expected(name, events, 10_000, 10_000) for name in QUERIES}
    assert {name: sum(rows[10_000].values()) for name, rows in outputs.items()} == {
        "Q4": 1, "Q5": 6, "Q6": 3, "Q7": 1, "Q9": 1,
    }  # fmt: skip


def test_a_query_is_that_of_c_sparql_over_a_stream() -> None:
    text = "SELECT ?s { ?s ssn:hasValue ?v FILTER NOT EXISTS { ?v a water:flow } }"
    (own,) = squall.compile(program("10 s", "5 s", {"Q": text}), lexer="strider").subsystems
    registered = f"REGISTER QUERY Q AS {PREFIXES} {text.replace('{', 'FROM STREAM <urn:s> [RANGE 10s STEP 5s] {', 1)}"
    (other,) = squall.compile(registered, lexer="csparql").subsystems
    assert (own.name, own.output, own.report) == (other.name, other.output, other.report)
    sources = [source for rule in own.subsystems for source in rule.sources]
    assert {source.window for source in sources} == {HoppingWindow(10_000, 5000)}


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("1 Minute", 60_000), ("2 MINUTES", 120_000), ("1 second", 1000), ("3 Seconds", 3000), ("1 Millisecond", 1),
        ("50 milliseconds", 50), ("50 ms", 50), ("2 s", 2000), ("1 m", 60_000),
        ("1 Hour", 3_600_000), ("1 d", 86_400_000),
    ],
)  # fmt: skip
def test_units_of_time(written: str, milliseconds: int) -> None:
    text = program(written, written, {"Q": "ASK {}"}, batch=written)
    tree = strider.lexer(text, "test")
    assert tree.streaming == q.Streaming(q.FromStreams(q.TimeRange(milliseconds, milliseconds)), milliseconds)
    assert batch_interval_of(squall.compile(text, lexer="strider")) == milliseconds


def test_prefixes_belong_to_their_query() -> None:
    text = program("1 s", "1 s", {"Q": "ASK { ?x water:p 1 }"})
    text += " REGISTER { QUERYID [R] SPARQL [ ASK { ?x water:p 1 } ] }"
    with pytest.raises(SquallError, match=r"test:2:.*the prefix `water:` is not declared") as caught:
        strider.lexer(text.replace("PREFIX water", "PREFIX wet", 0), "test")
    assert str(caught.value).count("is not declared") == 1


def test_two_queries_have_different_ids() -> None:
    text = program("1 s", "1 s", {"Q": "ASK {}"})
    again = text + "\n" + text.splitlines()[1].replace("ASK {}", "ASK { ?a ?b ?c }")
    with pytest.raises(SquallError, match=r"(?s):3:12: .*the same name as another query: `Q`.*rename"):
        squall.compile(again, lexer="strider")


def test_reasoning_is_of_one_query() -> None:
    text = f"STREAMING {{ WINDOW [1 s] SLIDE [1 s] }} REGISTER {{ QUERYID [Plain] SPARQL [ {PREFIXES} "
    text += "SELECT ?s { ?s a water:Reading } ] } REGISTER { QUERYID [Entailed] REASONING [U] SPARQL [ "
    text += f"{PREFIXES} SELECT ?s {{ ?s a water:Reading }} ] }}"
    subclass = Triple(KINDS[0], iri("http://www.w3.org/2000/01/rdf-schema#subClassOf"), iri(WATER + "Reading"))
    events = [Event(10, (Triple(VALUES[0], TYPE, KINDS[0]),), "urn:s")]
    assert answers(squall.compile(text, lexer="strider", schema=[subclass]), events) == {
        "Entailed": {1000: Counter({(VALUES[0],): 1})}
    }


def test_same_as_is_read_by_representatives() -> None:
    text = "STREAMING { WINDOW [1 s] SLIDE [1 s] } REGISTER { QUERYID [Q] REASONING [SM] SPARQL [ "
    text += "SELECT ?s { ?s <urn:p> <urn:v0> } ] }"
    same = Triple(VALUES[0], iri("http://www.w3.org/2002/07/owl#sameAs"), VALUES[1])
    events = [Event(10, (Triple(OBSERVATIONS[0], iri("urn:p"), VALUES[1]),), "urn:s")]
    assert answers(squall.compile(text, lexer="strider", schema=[same]), events) == {
        "Q": {1000: Counter({(OBSERVATIONS[0],): 1})}
    }
    assert answers(squall.compile(text.replace("REASONING [SM] ", ""), lexer="strider"), events) == {}


def test_a_mode_of_reasoning_that_does_not_exist_is_refused_with_its_place() -> None:
    text = "STREAMING { WINDOW [1 s] SLIDE [1 s] }\nREGISTER { QUERYID [Q] REASONING [U,XM] SPARQL [ ASK {} ] }"
    with pytest.raises(SquallError, match=r"(?s):2:37: .*there is no reasoning mode `XM`.*hint: "):
        squall.compile(text, lexer="strider")


def test_static_data_are_in_the_window(tmp_path: Path, squall: Squall) -> None:
    text = program("1 s", "1 s", {"Q": "SELECT ?s { ?s ssn:hasValue ?v . ?v a water:flow }"})
    (tmp_path / "q.strider").write_text(text)
    (tmp_path / "flow.nt").write_text(f"{VALUES[0]} {TYPE} {KINDS[0]} .\n")
    (tmp_path / "in.ntt").write_text(f"10 {OBSERVATIONS[0]} {VALUE} {VALUES[0]} .\n")
    data = "--source", str(tmp_path / "in.ntt"), "--static", str(tmp_path / "flow.nt"), "--format", "tsv-terms"
    code, out, _ = squall("run", str(tmp_path / "q.strider"), *data)
    assert (code, out) == (0, f"time\ts\n1000\t{OBSERVATIONS[0]}\n")


# The batch interval


def test_a_builder_without_micro_batches_refuses_an_interval_but_not_the_program() -> None:
    system = squall.compile(
        program("10 s", "10 s", {"Q": "SELECT ?s { ?s ?p ?o }"}, batch="5 Seconds"), lexer="strider"
    )
    with pytest.raises(BuilderError, match=r"(?s)processes events as they arrive.*hint: leave `--batch-interval` out"):
        squall.build(squall.plan(system), options=Options(batch_interval=5000))
    plain = squall.compile(program("10 s", "10 s", {"Q": "SELECT ?s { ?s ?p ?o }"}), lexer="strider")
    events = [Event(time, (Triple(VALUES[time % 3], TYPE, KINDS[0]),)) for time in range(0, 30_000, 700)]
    assert answers(system, events) == answers(plain, events)


def test_the_shortest_batch_of_several_programs_counts() -> None:
    parts = [System(subsystems=(System(batch_interval=500), System())), System(batch_interval=700)]
    assert batch_interval_of(System(subsystems=tuple(parts))) == 500
    assert batch_interval_of(System(subsystems=(System(),))) is None


@pytest.mark.spark
@pytest.mark.more
def test_spark_gathers_the_events_of_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    intervals: list[Any] = []
    trigger: Callable[..., Any] = DataStreamWriter.trigger

    def record(writer: Any, *arguments: Any, **keywords: Any) -> Any:
        intervals.append(keywords)
        return trigger(writer, *arguments, **keywords)

    monkeypatch.setattr(DataStreamWriter, "trigger", record)
    text = program("2 Seconds", "2 Seconds", {"Q": "SELECT ?s { ?s ?p ?o }"})
    plan = squall.plan(squall.compile(text, lexer="strider"))
    events = [Event(time, (Triple(VALUES[time // 500 % 3], TYPE, KINDS[0]),)) for time in range(0, 5000, 500)]

    def arriving() -> Iterator[list[Event]]:
        for event in events:
            yield [event]
            time.sleep(0.1)

    outputs = list(squall.build(plan, "spark", Options(batch_interval=700)).run(arriving()))
    assert {"processingTime": "700 milliseconds"} in intervals
    assert sorted((output.time, str(output.fact)) for output in outputs) == sorted(
        (output.time, str(output.fact)) for output in squall.run(plan, events)
    )
