"""Programs with several output specifications, and derived streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product, starmap
from pathlib import Path

import pytest

import squall
from squall.contracts import Output
from squall.errors import SquallError
from squall.model import (
    Construct,
    Delete,
    Insert,
    OutputSpec,
    Pattern,
    Report,
    Select,
    Source,
    System,
    Variable,
    derived_streams,
    output_specs,
    warnings,
    with_windows,
)
from squall.model.windows import EMPTY, CountWindow, SlidingWindow
from squall.plan import Plan
from squall.plan.operators import DerivedStream, Sink
from squall.rdf import ALWAYS, FOREVER, XSD, Evaluated, Event, Quad, Term, Triple, heartbeat, iri, literal
from squall.streams import Sources, open_source
from squall.testing import assert_as_oracle
from squall.testing.check import outputs
from tests import in_memory

PLANNERS = ("greedy", "rete")
BUILDERS = (
    "iterator",
    "in memory",
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.sampled(10)]),
    pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.sampled(10)]),
)
X, Y = Variable("x"), Variable("y")
EX = "http://example.org/"
P, Q, R, S = (iri(EX + name) for name in "pqrs")
PREFIX = f"PREFIX ex: <{EX}>\n"

HOT = """
REGISTER STREAM <http://example.org/hot> AS PREFIX ex: <http://example.org/>
CONSTRUCT { ?r ex:hot ?t } FROM STREAM <http://example.org/in> [RANGE 10s STEP 5s] WHERE { ?r ex:t ?t FILTER(?t > 20) }
"""
READINGS = [
    Event(1000, (Triple(iri(EX + "a"), iri(EX + "t"), literal("21", XSD + "integer")),), EX + "in"),
    Event(7000, (Triple(iri(EX + "b"), iri(EX + "t"), literal("25", XSD + "integer")),), EX + "in"),
]  # fmt: skip


def rule(body: tuple[Pattern, ...], *pattern: Pattern, name: str = "", source: Source | None = None) -> System:
    return System(name, (source or Source(),), body, consequences=(Construct(pattern),))


def output_rows(system: System, planner: str = "rete", events: list[Event] = READINGS) -> list[tuple[int, str, str]]:
    """Returns time, rule and fact of each output, and checks that they are those of the oracle."""
    results = outputs(squall.plan(system, planner), [events], (), "iterator")
    assert_as_oracle(system, results, events)
    return [(out.time, out.rule, str(out.fact)) for out in results]


def run(plan: Plan, batches: list[list[Event]], builder: str) -> list[Output]:
    """Returns the outputs of a builder's job. "in memory": as Spark's workers do it."""
    if builder == "in memory":
        return in_memory.run(plan, batches)
    return list(squall.build(plan, builder).run(batches))


def programs(folder: Path, **texts: str) -> System:
    """Returns the system of programs, each under its language."""
    paths = []
    for place, (name, text) in enumerate(texts.items()):
        kind = name.split("_")[0]
        path = folder / f"{name}{place}.{kind}"
        path.write_text(text)
        paths.append(path)
    return squall.compile(*paths)


def test_a_system_inherits_its_output_specification() -> None:
    a, b, c = (rule((Pattern(X, P, Y),), Pattern(X, Q, Y), name=name) for name in "abc")
    inner = System(subsystems=(b, System(subsystems=(c,))), report=Report("change"))
    results = output_specs(System(subsystems=(a, inner), output="rstream"))
    message = [([item.name for item in each.rules], each.output, each.report.policy) for each in results]
    assert message == [(["a"], "rstream", "close"), (["b", "c"], "rstream", "change")]


def test_a_snapshot_is_output_at_events_that_no_rule_reads_in_a_file_too(tmp_path: Path) -> None:
    """A file source may skip facts that no rule reads, but not the instants at which they come."""
    (tmp_path / "in.ntt").write_text(f"1 {P} {P} {Q} .\n2 {P} {R} {Q} .\n3 {S} {P} {Q} .\n")
    system = with_windows(replace(rule((Pattern(X, P, Y),), Pattern(Y, Q, X)), output="rstream"), SlidingWindow(10))
    job = squall.build(squall.plan(system))
    results = [output.time for output in job.run(Sources([open_source(str(tmp_path / "in.ntt"))]))]
    assert results == [1, 2, 3, 3, 11, 12]


def test_facts_of_a_query_have_its_name() -> None:
    query = System("query", subsystems=(rule((Pattern(X, P, Y),), Pattern(X, Q, Y), name="query"),), output="istream")
    several = System("several", subsystems=(*query.subsystems, replace(query.subsystems[0], name="b")), stream=EX)
    assert [spec.name for spec in output_specs(System(subsystems=(query, several)))] == ["", "query", ""]
    assert derived_streams(System(subsystems=(query, several))) == (EX,)


def test_output_specs_compare_by_identity() -> None:
    assert OutputSpec(()) != OutputSpec(())


@pytest.mark.parametrize("planner", PLANNERS)
def test_each_query_has_its_own_output_specification(planner: str, tmp_path: Path) -> None:
    window = "FROM NAMED WINDOW ex:w ON ex:in [RANGE PT10S STEP PT5S] WHERE { WINDOW ex:w { ?r ex:t ?t } }"
    system = programs(
        tmp_path,
        rspql_one=f"{PREFIX}REGISTER ISTREAM ex:new AS SELECT ?r {window}",
        rspql_two=f"{PREFIX}REGISTER RSTREAM ex:all AS SELECT ?r {window}",
        rspql_three=f"{PREFIX}REGISTER DSTREAM ex:gone AS SELECT ?r {window}",
    )
    results = output_rows(system, planner)
    by_query = {
        name: [(time, text) for time, rule, text in results if rule == EX + name] for name in ("new", "all", "gone")
    }
    assert by_query == {
        "new": [(5000, f"?r=<{EX}a>"), (10000, f"?r=<{EX}b>")],
        "all": [(5000, f"?r=<{EX}a>"), (10000, f"?r=<{EX}a>"), (10000, f"?r=<{EX}b>"), (15000, f"?r=<{EX}b>")],
        "gone": [(15000, f"?r=<{EX}a>"), (20000, f"?r=<{EX}b>")],
    }
    assert [time for time, _, _ in results] == sorted(time for time, _, _ in results)


@pytest.mark.parametrize("planner", PLANNERS)
def test_each_query_is_evaluated_at_the_steps_of_its_own_windows(planner: str, tmp_path: Path) -> None:
    query = (
        "REGISTER QUERY {} AS SELECT ?r FROM STREAM <http://example.org/in> [RANGE {} TUMBLING] WHERE {{ ?r ?p ?t }}"
    )
    system = programs(tmp_path, csparql_one=query.format("five", "5s"), csparql_two=query.format("three", "3s"))
    times = {
        name: [time for time, rule, _ in output_rows(system, planner) if rule == name] for name in ("five", "three")
    }
    assert times == {"five": [5000, 10000], "three": [3000, 9000]}


@pytest.mark.parametrize("planner", PLANNERS)
def test_two_queries_with_equal_facts_both_output_them(planner: str, tmp_path: Path) -> None:
    query = (
        "REGISTER QUERY {} AS CONSTRUCT {{ ?r <http://example.org/is> ?t }} "
        "FROM STREAM <http://example.org/in> [RANGE 5s] WHERE {{ ?r ?p ?t }}"
    )
    system = programs(tmp_path, csparql_one=query.format("one"), csparql_two=query.format("two"))
    results = output_rows(system, planner)
    assert sorted((time, rule) for time, rule, _ in results) == list(product((1000, 7000), ("one", "two")))
    assert len({text for _, _, text in results}) == 2


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_query_reads_the_derived_stream_of_another(planner: str, tmp_path: Path) -> None:
    count = (
        "REGISTER QUERY n AS SELECT (COUNT(*) AS ?n) "
        "FROM STREAM <http://example.org/hot> [RANGE 20s TUMBLING] WHERE { ?r ?p ?t }"
    )
    system = programs(tmp_path, csparql_hot=HOT, csparql_count=count)
    results = output_rows(system, planner)
    assert [(time, text) for time, rule, text in results if rule == "n"][1:] == [
        (20000, '?n="2"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        (40000, '?n="0"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    ]
    assert [time for time, rule, _ in results if rule == EX + "hot"] == [5000, 10000, 10000, 15000]


@pytest.mark.parametrize("planner", PLANNERS)
def test_rules_read_streams_that_queries_make_and_queries_what_rules_derive(planner: str, tmp_path: Path) -> None:
    rules = (
        "@prefix ex: <http://example.org/>.\n"
        "[warn: (?r ex:hot ?t) -> (?r ex:state ex:Warned)] [room: (?r ex:t ?t) -> (?r ex:kind ex:Room)]"
    )
    rooms = (
        f"{PREFIX}REGISTER ISTREAM ex:rooms AS SELECT ?r FROM NAMED WINDOW ex:w ON ex:hot [RANGE PT60S STEP PT60S] "
        "WHERE { WINDOW ex:w { ?r ex:hot ?t } ?r ex:kind ex:Room . ?r ex:state ex:Warned }"
    )
    system = programs(tmp_path, csparql_hot=HOT, jena_rules=rules, rspql_rooms=rooms)
    results = output_rows(system, planner)
    assert [(time, text) for time, rule, text in results if rule == "warn"] == [
        (5000, f"<{EX}a> <{EX}state> <{EX}Warned> ."),
        (10000, f"<{EX}b> <{EX}state> <{EX}Warned> ."),
    ]
    assert sorted((time, text) for time, rule, text in results if rule == EX + "rooms") == [
        (60000, f"?r=<{EX}a>"),
        (60000, f"?r=<{EX}b>"),
    ]


def test_a_derived_stream_may_have_a_window_from_the_options(tmp_path: Path) -> None:
    (tmp_path / "hot.csparql").write_text(HOT)
    (tmp_path / "warn.jena").write_text(
        "[warn: (?r <http://example.org/hot> ?t) -> (?r <http://example.org/is> 'hot')]"
    )
    both = (tmp_path / "hot.csparql", tmp_path / "warn.jena")
    system = squall.compile(*both, windows={EX + "hot": "RANGE 2s"})
    removals = replace(system, output="dstream")
    assert [time for time, rule, _ in output_rows(removals) if rule == "warn"] == [7000, 12000, 12000, 17000]
    assert [
        time for time, rule, _ in output_rows(replace(squall.compile(*both), output="dstream")) if rule == "warn"
    ] == []


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_stream_of_a_stream(planner: str) -> None:
    item, two = Source(EX + "one", SlidingWindow(3)), Source(EX + "two", CountWindow(2))
    first = System(subsystems=(rule((Pattern(X, P, Y),), Pattern(X, Q, Y), name="first"),), stream=item.iri)
    second = System(
        subsystems=(rule((Pattern(X, Q, Y),), Pattern(Y, R, X), name="second", source=item),), stream=two.iri
    )
    third = rule((Pattern(X, R, Y),), Pattern(Y, S, Y), name="third", source=two)
    # What is made is read as a stream only.
    system = System(subsystems=(_unread(first), _unread(second), third))
    a, b, c = (iri(EX + name) for name in "abc")
    events = [Event(time, (Triple(node, P, b),)) for time, node in ((1, a), (2, b), (5, c))]
    results = output_rows(system, planner, events)
    assert [(time, text[-4]) for time, rule, text in results if rule == "third"] == [(1, "a"), (2, "b"), (5, "c")]
    last = System(subsystems=(third,), output="dstream")
    removals = output_rows(replace(system, subsystems=(*system.subsystems[:2], last)), planner, events)
    assert [(time, text[-4]) for time, rule, text in removals if rule == "third"] == [(5, "a")]


def _unread(system: System) -> System:
    return replace(system, subsystems=tuple(replace(subsystem, reentrant=False) for subsystem in system.subsystems))


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("together", [1, 4])
def test_a_stream_is_output_at_each_event_of_another_that_changes_nothing(planner: str, together: int) -> None:
    """The second query has the same answer at each event of the first one's stream: no row reaches it, but an instant
    does."""
    arguments, item, two = Source(EX + "in"), Source(EX + "one"), Source(EX + "two", SlidingWindow(1))
    first = rule((Pattern(X, P, Y),), Pattern(X, Q, Y), name="first", source=arguments)
    second = rule((Pattern(X, Q, Y), Pattern(X, Q, X)), Pattern(Y, R, X), name="second", source=item)
    third = rule((Pattern(X, R, Y),), Pattern(Y, S, Y), name="third", source=two)
    program_system = [System(subsystems=(first,), output="rstream", stream=item.iri),
            System(subsystems=(second,), output="rstream", stream=two.iri)]  # fmt: skip
    system = System(subsystems=(*map(_unread, program_system), System(subsystems=(third,), output="rstream")))
    fact = Triple(iri(EX + "a"), P, iri(EX + "a"))
    events = [Event(time, (fact,), arguments.iri) for time in (10, 11, 12, 13)]
    batches = [events[place : place + together] for place in range(0, len(events), together)]
    results = outputs(squall.plan(system, planner), batches, (), "iterator")
    assert_as_oracle(system, results, events)
    assert [out.time for out in results if out.rule == "third"] == [10, 11, 12, 13]


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_retraction_at_an_instant_shows_in_all_answers(planner: str) -> None:
    system = System("gone", joinables=(Pattern(X, Q, Y),), consequences=(Delete((Pattern(X, P, Y),)),))
    all_there = System(subsystems=(rule((Pattern(X, P, Y),), Pattern(X, R, Y), name="there"),), output="rstream")
    a, b = iri(EX + "a"), iri(EX + "b")
    events = [Event(10, (Triple(a, P, b),)), Event(20, (Triple(a, Q, b),)), Event(30, (Triple(b, Q, b),))]
    results = output_rows(System(subsystems=(system, all_there)), planner, events)
    assert [time for time, _, _ in results] == [10, 20]


def test_the_plan_feeds_a_stream_once_for_each_window(tmp_path: Path) -> None:
    query = (
        "REGISTER QUERY {} AS SELECT ?r FROM STREAM <http://example.org/hot> [RANGE {}] "
        "WHERE {{ ?r <http://example.org/hot> ?t }}"
    )
    system = programs(
        tmp_path,
        csparql_hot=HOT,
        csparql_a=query.format("a", "5s"),
        csparql_b=query.format("b", "5s"),
        csparql_c=query.format("c", "6s"),
    )
    plan = squall.plan(system)
    feeds = [node.op for node in plan.nodes if isinstance(node.op, DerivedStream)]
    assert sorted(str(op.source.window) for op in feeds) == ["RANGE 5s", "RANGE 6s"]
    assert {op.source.iri for op in feeds} == {EX + "hot"}
    assert sorted(op.output for _, op in plan.sinks) == ["istream", "rstream"]


def test_no_stream_is_fed_to_what_cannot_fit_it(tmp_path: Path) -> None:
    other = (
        "REGISTER QUERY o AS SELECT ?r FROM STREAM <http://example.org/hot> [RANGE 5s] "
        "WHERE { ?r <http://example.org/cold> ?t }"
    )
    plan = squall.plan(programs(tmp_path, csparql_hot=HOT, csparql_other=other))
    assert not [node for node in plan.nodes if isinstance(node.op, DerivedStream)]


def test_a_stream_cannot_be_derived_from_itself(tmp_path: Path) -> None:
    again = HOT.replace("http://example.org/in", "http://example.org/hot").replace("ex:t ", "ex:hot ")
    with pytest.raises(SquallError, match=r"reads the stream <.*hot> that is derived from what depends on it"):
        programs(tmp_path, csparql_hot=again)


def test_a_stream_of_two_queries_cannot_be_derived_from_itself(tmp_path: Path) -> None:
    """The facts that one query derives from those of the other would be events for itself, without end."""
    again = HOT.replace("http://example.org/in", "http://example.org/hot").replace("ex:t ", "ex:hot ")
    again = again.replace("{ ?r ex:hot", "{ ?r ex:again", 1)
    with pytest.raises(SquallError, match=r"reads the stream <.*hot> that is derived from what depends on it"):
        programs(tmp_path, csparql_hot=HOT, csparql_again=again)


def test_a_stream_and_rules_cannot_be_derived_from_each_other(tmp_path: Path) -> None:
    rules = "[again: (?r <http://example.org/hot> ?t) -> (?r <http://example.org/t> ?t)]"
    with pytest.raises(SquallError, match="`again` reads the stream") as raised:
        programs(tmp_path, csparql_hot=HOT, jena_rules=rules)
    assert "`again` -> `http://example.org/hot` -> `again`" in str(raised.value)


def test_what_a_query_constructs_is_no_stream_unless_it_is_registered_as_one(tmp_path: Path) -> None:
    query = HOT.replace("REGISTER STREAM", "REGISTER QUERY")
    rules = "[warn: (?r <http://example.org/hot> ?t) -> (?r <http://example.org/is> 'hot')]"
    assert not [
        rule for _, rule, _ in output_rows(programs(tmp_path, csparql_hot=query, jena_rules=rules)) if rule == "warn"
    ]


def test_facts_of_a_stream_are_output_once_where_two_rules_derive_them() -> None:
    result = Pattern(X, Q, Y)
    parts = tuple(replace(rule((Pattern(X, P, Y),), result, name=name), reentrant=False) for name in ("one", "two"))
    system = System(subsystems=(System(subsystems=parts, stream=EX + "s"),))
    a = iri(EX + "a")
    assert len(output_rows(system, events=[Event(1, (Triple(a, P, a),))])) == 1
    assert sum(isinstance(node.op, Sink) for node in squall.plan(system).nodes) == 1


def test_the_background_has_no_derived_stream() -> None:
    program_system = System(
        subsystems=(replace(rule((Pattern(X, P, Y),), Pattern(X, Q, Y)), reentrant=False),), stream=EX + "s"
    )
    reader = rule((Pattern(X, Q, Y),), Pattern(X, R, Y), name="reader", source=Source("", EMPTY))
    a = iri(EX + "a")
    system = System(subsystems=(program_system, reader))
    assert [rule for _, rule, _ in output_rows(system, events=[Event(1, (Triple(a, P, a),))])] == [""]


# Graphs in templates

LOGGED = """
PREFIX ex: <http://example.org/>
REGISTER ISTREAM ex:log AS CONSTRUCT { GRAPH ?g { ?r ex:was ?t } GRAPH ex:all { ?r ex:is ex:seen } ?r ex:seen ?t }
FROM NAMED WINDOW ex:w ON ex:in [RANGE PT10S STEP PT5S]
WHERE { WINDOW ex:w { ?r ex:t ?t } BIND(IF(?t < 25, IRI(CONCAT(STR(?r), "-log")), "none") AS ?g) }
"""


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_template_constructs_triples_in_graphs(planner: str, tmp_path: Path) -> None:
    results = outputs(squall.plan(programs(tmp_path, rspql_log=LOGGED), planner), [READINGS], (), "iterator")
    quads = sorted((out.time, out.fact.subject[-2], out.fact.graph) for out in results if isinstance(out.fact, Quad))
    # A literal cannot be the name of a graph: of the second reading there is no quad in a graph of its own.
    assert quads == [
        (5000, "a", f"<{EX}a-log>"), (5000, "a", f"<{EX}all>"), (10000, "b", f"<{EX}all>"),
    ]  # fmt: skip
    assert sum(isinstance(out.fact, Triple) for out in results) == 2


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_stream_of_quads_is_read_as_one_of_triples(planner: str, tmp_path: Path) -> None:
    rules = "[old: (?r <http://example.org/was> ?t) -> (?r <http://example.org/old> ?t)]"
    results = output_rows(programs(tmp_path, rspql_log=LOGGED, jena_rules=rules), planner)
    assert [(time, text.split()[0]) for time, rule, text in results if rule == "old"] == [(5000, f"<{EX}a>")]


def test_an_unbound_graph_has_a_warning(tmp_path: Path) -> None:
    system = programs(tmp_path, rspql_log=LOGGED.replace("GRAPH ?g", "GRAPH ?h"))
    assert [str(warning) for warning in warnings(system) if "`?h` is in the template" in str(warning)]


# Where and when what is made comes from


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_derived_stream_is_a_named_graph_and_has_times(planner: str, tmp_path: Path) -> None:
    (tmp_path / "hot.csparql").write_text(HOT)
    (tmp_path / "where.rq").write_text(f"{PREFIX}SELECT ?g ?r {{ GRAPH ?g {{ ?r ex:hot ?t }} }}")
    (tmp_path / "when.csparql").write_text(
        "REGISTER QUERY when AS PREFIX ex: <http://example.org/> "
        "SELECT ?r (timestamp(?r, ex:hot, ?t) AS ?at) FROM STREAM ex:hot [RANGE 60s STEP 60s] WHERE { ?r ex:hot ?t }"
    )
    system = squall.compile(*(tmp_path / name for name in ("hot.csparql", "where.rq", "when.csparql")))
    results = output_rows(system, planner)
    assert sorted(text for _, rule, text in results if rule == "where") == [
        f"?g=<{EX}hot> ?r=<{EX}a>", f"?g=<{EX}hot> ?r=<{EX}b>",
    ]  # fmt: skip
    # The windows of the stream's own query hold `a` at 5000 and 10000, and `b` at 10000 and 15000.
    integer = f"^^<{XSD}integer>"
    assert sorted(text for time, rule, text in results if rule == "when" and time == 60000) == [
        f'?r=<{EX}a> ?at="10000"{integer}', f'?r=<{EX}b> ?at="15000"{integer}',
    ]  # fmt: skip


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_stepped_count_window_over_a_derived_stream(planner: str, tmp_path: Path) -> None:
    result = HOT.replace("[RANGE 10s STEP 5s]", "[RANGE 1s]")
    pairs = (
        "REGISTER QUERY pairs AS SELECT (COUNT(*) AS ?n) FROM STREAM <http://example.org/hot> [RANGE TRIPLES 2 STEP 2] "
        "WHERE { ?r ?p ?t }"
    )
    readings = [
        Event(time, (Triple(iri(f"{EX}{time}"), iri(EX + "t"), literal("30", XSD + "integer")),), EX + "in")
        for time in (1000, 2000, 3000, 4000, 5000)
    ]
    other_items = pairs.replace("pairs", "others").replace("TRIPLES 2 STEP 2", "3s")
    results = output_rows(
        programs(tmp_path, csparql_hot=result, csparql_pairs=pairs, csparql_others=other_items), planner, readings
    )
    assert [(time, text[4:5]) for time, rule, text in results if rule == "pairs"][1:] == [(2000, "2"), (4000, "2")]


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_stream_at_the_steps_of_a_stream(planner: str, tmp_path: Path) -> None:
    """The second stream has snapshot output at instants that only the first has, though no fact has arrived for it."""
    query = (
        "REGISTER STREAM <http://example.org/{}> AS PREFIX ex: <http://example.org/> "
        "CONSTRUCT {{ ?r ex:{} ?t }} FROM STREAM <http://example.org/{}> [RANGE {} STEP 2s] WHERE {{ ?r ex:{} ?t }}"
    )
    system = programs(
        tmp_path,
        csparql_a=query.format("a", "a", "in", "8s", "t"),
        csparql_b=query.format("b", "b", "a", "6s", "a"),
        csparql_c=query.format("c", "c", "b", "4s", "b"),
    )
    results = output_rows(system, planner)
    assert [time for time, rule, _ in results if rule == EX + "c"][:3] == [6000, 8000, 10000]


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.more
def test_a_stream_of_an_unread_rule_has_evaluation_instants(planner: str, builder: str) -> None:
    """The second rule is not part of a plan, but its pattern belongs to the query."""

    def rule(name: str, source: Source, read: Term, term: Term, internal: bool = False) -> System:
        heads = (Construct((Pattern(X, term, Y),), internal),)
        return System(name, (source,), (Pattern(X, read, Y),), consequences=heads, reentrant=False)

    making = System(
        subsystems=(rule("m", Source("urn:a", SlidingWindow(5)), P, Q),), output="dstream", stream="urn:made"
    )
    hidden = rule("hidden", Source("urn:made", SlidingWindow(7)), Q, iri("urn:t"), internal=True)
    reading_query = System(subsystems=(rule("r", Source("urn:b"), P, R), hidden), output="rstream")
    system = System(subsystems=(making, reading_query))
    events = [Event(time, (Triple(S, P, S),), stream) for time, stream in ((1, "urn:b"), (3, "urn:a"), (30, "urn:b"))]
    results = run(squall.plan(system, planner), [events[:2], events[2:]], builder)
    assert_as_oracle(system, results, events)
    assert [out.time for out in results if out.rule == "r"] == [1, 8, 15, 30]


@pytest.mark.parametrize("planner", PLANNERS)
def test_each_query_is_output_when_its_own_answer_has_changed(planner: str) -> None:
    """This also holds where both have the same output specification."""
    texts = ("SELECT ?r { ?r ex:t ?t }", "ASK { ?r ex:cold ?t }")
    compiled = [squall.compile(f"{PREFIX}{text}", lexer="sparql", window=SlidingWindow(100_000)) for text in texts]
    queries = [replace(query, output="rstream", report=None) for item in compiled for query in item.subsystems]
    both = System(subsystems=tuple(queries), output="rstream", report=Report("change"))
    results = output_rows(both, planner)
    assert [time for time, _, fact in results if "false" in fact] == [ALWAYS]
    assert [time for time, _, fact in results if "false" not in fact] == [1000, 7000, 7000, 101_000]


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("planner", PLANNERS)
def test_the_same_solutions_in_another_order_are_another_answer(planner: str, builder: str) -> None:
    """The answer is the same if the sort keys change and the order does not."""
    text = f"{PREFIX}SELECT ?x {{ ?x ex:p ?y }} ORDER BY ?y"
    query = squall.compile(text, lexer="sparql", window=SlidingWindow(2)).subsystems[0]
    system = replace(query, output="rstream", report=Report("change"))
    values = {1: (1, 5), 3: (2, 6), 5: (9, 7), 7: (9, 8), 9: (1, 8), 11: (8, 8), 13: (8, 8)}

    def event(time: int, values: tuple[int, int]) -> Event:
        terms = (literal(str(value), f"{XSD}integer") for value in values)
        return Event(time, tuple(Triple(who, P, term) for who, term in zip((S, Q), terms, strict=True)))

    events = [event(time, both) for time, both in values.items()]
    results = run(squall.plan(system, planner), [[event] for event in events], builder)
    assert_as_oracle(system, results, events)
    orders = {time: [str(out.fact) for out in results if out.time == time] for time in values}
    assert [time for time, output_rows in orders.items() if output_rows] == [1, 5, 9, 11]
    assert orders[1] == orders[5][::-1] == orders[9]


@pytest.mark.parametrize("cuts", [(), (1, 2, 3, 4)])
@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("planner", PLANNERS)
def test_facts_that_two_updates_insert_at_once_are_in_the_answer_of_each(
    planner: str, builder: str, cuts: tuple[int, ...]
) -> None:
    """The second update does not insert existing facts."""

    def update(name: str, predicate: Term, output: str) -> System:
        body = (Pattern(X, predicate, Y),)
        return System(name, (Source(),), body, consequences=(Insert((Pattern(X, S, Y),)),), output=output)

    ends = System("ends", (Source(),), (Pattern(X, R, Y),), consequences=(Delete((Pattern(X, S, Y),)),))
    system = System(subsystems=(update("comes", P, "istream"), update("goes", Q, "dstream"), ends))
    a, b, c, d = (iri(EX + name) for name in "abcd")
    arguments = {1: [(a, P, b), (a, Q, b), (c, P, d)], 2: [(c, Q, d)], 3: [(a, R, b), (c, R, d)], 4: [(c, Q, d)], 5: []}
    events = [Event(time, tuple(starmap(Triple, facts))) for time, facts in arguments.items()]
    results = run(squall.plan(system, planner), [events[i:j] for i, j in pairwise((0, *cuts, len(events)))], builder)
    assert_as_oracle(system, results, events)
    assert {(out.time, out.rule, str(out.fact)) for out in results} == {
        (2, "comes", str(Triple(a, S, b))), (2, "comes", str(Triple(c, S, d))), (4, "goes", str(Triple(a, S, b)))
    }  # fmt: skip


@pytest.mark.parametrize("planner", PLANNERS)
def test_each_query_has_an_end_marker_of_its_own_unless_its_answer_is_empty(planner: str) -> None:
    """This also holds where another query with the same output specification is not empty."""
    texts = ("SELECT ?r { ?r ex:t ?t }", "ASK { ?r ex:cold ?t }")
    compiled = [squall.compile(f"{PREFIX}{text}", lexer="sparql", window=SlidingWindow(100_000)) for text in texts]
    queries = [replace(query, output="rstream", report=None) for item in compiled for query in item.subsystems]
    both = System(subsystems=tuple(queries), output="rstream", report=Report("nonempty", empty=True))
    complete = [time for time, _, fact in output_rows(both, planner) if fact == str(Evaluated(()))]
    assert complete[:3] == [ALWAYS, 1000, 1000]


@pytest.mark.parametrize("says", ["event", "heartbeat"])
@pytest.mark.parametrize("planner", PLANNERS)
def test_periodic_output_is_in_order_with_other_output(planner: str, says: str) -> None:
    """Other streams and heartbeats advance time, too; other queries then output expired facts."""

    def query_with_output(source: Source, term: Term, output: str, report: Report | None) -> System:
        rule = System("r", (source,), (Pattern(X, P, Y),), consequences=(Construct((Pattern(X, term, Y),)),))
        return System(subsystems=(replace(rule, reentrant=False),), output=output, report=report)

    periodic = query_with_output(Source("urn:a"), Q, "rstream", Report("periodic", 4))
    ending = query_with_output(Source("urn:b", SlidingWindow(9)), R, "dstream", None)
    plan = squall.plan(System(subsystems=(periodic, ending)), planner)
    arrivals = [Event(time, (Triple(S, P, S),), stream) for time, stream in ((1, "urn:a"), (1, "urn:b"), (30, "urn:a"))]
    arrivals.insert(2, heartbeat(22) if says == "heartbeat" else Event(22, (), "urn:b"))
    times = [out.time for out in squall.build(plan).run([event] for event in arrivals)]
    assert times == [4, 8, 10, 12, 16, 20, 24, 28, 32]


@pytest.mark.parametrize("planner", PLANNERS)
def test_periodic_output_continues_while_time_does(planner: str) -> None:
    """It continues though no event comes that the query reads, and stops at the end of the input."""
    rule = System("r", (Source("urn:a"),), (Pattern(X, P, Y),), consequences=(Construct((Pattern(X, Q, Y),)),))
    system = System(subsystems=(rule,), output="rstream", report=Report("periodic", 4))
    arrivals = [Event(6, (Triple(S, P, S),), "urn:a"), heartbeat(17), heartbeat(26), Event(33, (), "urn:unread")]
    passed: list[int] = []

    def batches() -> Iterator[list[Event]]:
        for event in arrivals:
            passed.append(event.time)
            yield [event]
        passed.append(FOREVER)

    results = [(passed[-1], out.time) for out in squall.build(squall.plan(system, planner)).run(batches())]
    assert results == [(17, 8), (17, 12), (17, 16), (26, 20), (26, 24), (33, 28), (33, 32), (FOREVER, 36)]


@pytest.mark.parametrize("cuts", [[], [1], [1, 2, 3]], ids=str)
@pytest.mark.parametrize(
    "last",
    [heartbeat(33), Event(33, (), "urn:b"), Event(33, (Triple(S, P, S),), "urn:b")],
    ids=["heartbeat", "nothing", "a fact"],
)
@pytest.mark.parametrize("builder", BUILDERS)
def test_periodic_output_continues_in_all_builders(builder: str, last: Event, cuts: list[int]) -> None:
    rule = System("r", (Source("urn:a"),), (Pattern(X, P, Y),), consequences=(Select((X,)),))
    system = System(subsystems=(rule,), output="rstream", report=Report("periodic", 4))
    events = [Event(6, (Triple(S, P, S),), "urn:a"), heartbeat(17), Event(26, (Triple(S, P, S),), "urn:b"), last]
    results = run(squall.plan(system), in_memory.cut(events, cuts), builder)
    assert_as_oracle(system, results, events)
    assert [out.time for out in results] == [*range(8, 37, 4)]


@pytest.mark.parametrize("output", ["istream", "dstream", "rstream"])
@pytest.mark.parametrize("builder", BUILDERS)
def test_with_a_period_a_fact_lasts_from_one_multiple_to_the_next(builder: str, output: str) -> None:
    """It does not matter that the fact did not hold in between, and that another rule derives it now."""
    x, source = iri(EX + "x"), Source("", SlidingWindow(1))
    first = rule((Pattern(X, P, Y),), Pattern(X, S, Y), name="first", source=source)
    second = rule((Pattern(X, Q, Y),), Pattern(X, S, Y), name="second", source=source)
    system = System(subsystems=(first, second), output=output, report=Report("periodic", 2))
    events = [Event(0, (Triple(x, P, x),)), Event(2, (Triple(x, Q, x),)), Event(7, ())]
    results = run(squall.plan(system), [events], builder)
    assert_as_oracle(system, results, events)
    assert [result.time for result in results] == {"istream": [0], "dstream": [4], "rstream": [0, 2]}[output]
