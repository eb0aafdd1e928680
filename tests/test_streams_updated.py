"""Updates that delete what a program has told of streams of its own, beside the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.rdf import ALWAYS, Event, Term, Triple, iri
from squall.system import Construct, Delete, Pattern, Source, System, Variable
from squall.testing import assert_as_oracle
from squall.windows import LANDMARK, Count, Range, Stepped, Window
from tests import in_memory

X, Y = Variable("x"), Variable("y")
P, Q, R, STOP = (iri(f"http://example.org/{name}") for name in ("p", "q", "r", "stop"))
MADE = "urn:made"
A, B = iri("urn:a"), iri("urn:b")
WINDOWS: st.SearchStrategy[Window] = st.sampled_from([LANDMARK, Range(3), Stepped(4, 2), Count(2), Count(3, 2)])
OUTPUTS = st.sampled_from(["istream", "dstream", "rstream"])


@st.composite
def programs(draw: st.DrawFn) -> System:
    """A rule that makes a stream, one that deletes of it, and one that reads it through a window of its own. What an
    update that acts leads to is told whole again, so that one that reads such a stream would never come to rest."""
    copy = System("copy", (Source("", draw(WINDOWS)),), (Pattern(X, P, Y),), reentrant=False, consequences=_makes(Q))
    told = draw(OUTPUTS)
    maker = System(subsystems=(copy,), stream=MADE, output=told)
    where = (Source(MADE, draw(WINDOWS)),)
    asked = System("asked", where, (Pattern(X, Q, Y),))
    either = draw(st.sampled_from([(), (asked,)])) if told != "rstream" else ()
    graph = draw(st.sampled_from([None, iri(MADE), iri("urn:other")]))
    deletes = (Delete((Pattern(X, Q, Y),), graph),)
    stop = System("stop", (Source(),), (Pattern(X, STOP, Y), *either), consequences=deletes)
    reads = System("reads", (Source(MADE, draw(WINDOWS)),), (Pattern(X, Q, Y),), consequences=_makes(R))
    return System(subsystems=(maker, stop, System(subsystems=(reads,), output=draw(OUTPUTS))))


def _makes(predicate: Term) -> tuple[Construct]:
    return (Construct((Pattern(X, predicate, Y),)),)


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    facts = st.builds(Triple, st.sampled_from([A, B]), st.sampled_from([P, P, STOP]), st.sampled_from([A, B]))
    times = sorted(draw(st.lists(st.integers(0, 12), max_size=8)))
    return [Event(time, tuple(draw(st.lists(facts, min_size=1, max_size=2)))) for time in times]


@pytest.mark.parametrize("planner", ["rete", "greedy"])
@settings(max_examples=150, deadline=None)
@given(system=programs(), came=events(), cuts=st.lists(st.integers(0, 12), max_size=3))
def test_what_was_told_of_a_stream_can_be_deleted(
    planner: str, system: System, came: list[Event], cuts: list[int]
) -> None:
    plan = squall.plan(system, planner)
    assert_as_oracle(system, list(squall.run(plan, came)), came)
    assert_as_oracle(system, in_memory.run(plan, in_memory.cut(came, cuts)), came)


def test_what_is_told_of_static_data_can_be_deleted() -> None:
    texts = {
        "REGISTER STREAM :made AS CONSTRUCT { ?x :q ?y } { ?x :p ?y }": "csparql",
        "DELETE { ?x :q ?y } WHERE { ?x :stop ?z . ?x :q ?y }": "sparql",
        "REGISTER QUERY Asked AS SELECT ?x { ?x :q ?y . ?x :then ?z }": "csparql",
    }
    prefix = "PREFIX : <http://example.org/>\n"
    system = System(subsystems=tuple(squall.compile(prefix + text, lexer=lexer) for text, lexer in texts.items()))
    then = iri("http://example.org/then")
    static = [Event(ALWAYS, (Triple(A, P, B), Triple(B, P, B)))]
    came = [Event(1, (Triple(A, STOP, A),)), Event(3, (Triple(A, then, A), Triple(B, then, A)))]
    for planner in ("rete", "greedy"):
        found = list(squall.run(squall.plan(system, planner), came, static=static))
        assert_as_oracle(system, found, came, static)
        assert [str(one.fact) for one in found if one.time == 3] == ["?x=<urn:b>"]
