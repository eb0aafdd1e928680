"""Updates that delete facts of derived streams, compared with the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import squall
from squall.model import Construct, Delete, Insert, Pattern, Source, System, Variable
from squall.model.windows import LANDMARK, CountWindow, HoppingWindow, SlidingWindow, Window
from squall.rdf import ALWAYS, Event, Term, Triple, iri
from squall.testing import assert_as_oracle
from tests import in_memory
from tests.laws import examples_of

X, Y = Variable("x"), Variable("y")
P, Q, R, STOP = (iri(f"http://example.org/{name}") for name in ("p", "q", "r", "stop"))
MADE = "urn:made"
A, B = iri("urn:a"), iri("urn:b")
CONTINUOUS: list[Window] = [LANDMARK, SlidingWindow(3)]
WINDOWS: st.SearchStrategy[Window] = st.sampled_from(
    [*CONTINUOUS, HoppingWindow(4, 2), CountWindow(2), CountWindow(3, 2)]
)
OUTPUTS = st.sampled_from(["istream", "dstream", "rstream"])


@st.composite
def programs(draw: st.DrawFn) -> System:
    """Draws a rule that derives a stream, an update, and a rule that reads the stream through a window of its own.

    The update deletes from the stream or from its input, or inserts into that. An update's result is output as a
    snapshot again. So an update that reads such a stream through a hopping window may never terminate, which
    `squall check` reports.
    """
    copy = System("copy", (Source("", draw(WINDOWS)),), (Pattern(X, P, Y),), reentrant=False, consequences=_makes(Q))
    outputs = draw(OUTPUTS)
    maker = System(subsystems=(copy,), stream=MADE, output=outputs)
    where = (Source(MADE, draw(st.sampled_from(CONTINUOUS) if outputs == "rstream" else WINDOWS)),)
    system = System("asked", where, (Pattern(X, Q, Y),))
    body = draw(st.sampled_from([(Pattern(X, STOP, Y),), (Pattern(X, STOP, Y), system), (system,)]))
    graph = draw(st.sampled_from([None, iri(MADE), iri("urn:other")]))
    result = draw(st.sampled_from([Pattern(X, P, Y), Pattern(Y, P, X), Pattern(X, Q, Y), Pattern(A, P, Y)]))
    change = Delete((result,), graph) if draw(st.booleans()) else Insert((result,), graph)
    stop = System("stop", (Source(),), body, consequences=(change,))
    reads = System("reads", (Source(MADE, draw(WINDOWS)),), (Pattern(X, Q, Y),), consequences=_makes(R))
    return System(subsystems=(maker, stop, System(subsystems=(reads,), output=draw(OUTPUTS))))


def _makes(predicate: Term) -> tuple[Construct]:
    return (Construct((Pattern(X, predicate, Y),)),)


FACTS = st.builds(Triple, st.sampled_from([A, B]), st.sampled_from([P, P, STOP]), st.sampled_from([A, B]))


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    times = sorted(draw(st.lists(st.integers(0, 12), max_size=8)))
    return [Event(time, tuple(draw(st.lists(FACTS, min_size=1, max_size=2)))) for time in times]


@pytest.mark.parametrize("planner", ["rete", "greedy"])
@settings(max_examples=examples_of(150), deadline=None)
@given(
    system=programs(),
    came=events(),
    always=st.lists(FACTS, max_size=2),
    cuts=st.lists(st.integers(0, 12), max_size=3),
)
def test_updates_act_on_derived_streams(
    planner: str, system: System, came: list[Event], always: list[Triple], cuts: list[int]
) -> None:
    plan, static = squall.plan(system, planner), [Event(ALWAYS, tuple(always))]
    assert_as_oracle(system, list(squall.run(plan, came, static=static)), came, static)
    assert_as_oracle(system, in_memory.run(plan, in_memory.cut(came, cuts), static), came, static)


def test_facts_derived_from_static_data_can_be_deleted() -> None:
    texts = {
        "REGISTER STREAM :made AS CONSTRUCT { ?x :q ?y } { ?x :p ?y }": "csparql",
        "DELETE { ?x :q ?y } WHERE { ?x :stop ?z . ?x :q ?y }": "sparql",
        "REGISTER QUERY Asked AS SELECT ?x { ?x :q ?y . ?x :then ?z }": "csparql",
    }
    prefix = "PREFIX : <http://example.org/>\n"
    system = System(subsystems=tuple(squall.compile(prefix + text, lexer=lexer) for text, lexer in texts.items()))
    then = iri("http://example.org/then")
    static = [Event(ALWAYS, (Triple(A, P, B), Triple(B, P, B)))]
    event = [Event(1, (Triple(A, STOP, A),)), Event(3, (Triple(A, then, A), Triple(B, then, A)))]
    for planner in ("rete", "greedy"):
        outputs = list(squall.run(squall.plan(system, planner), event, static=static))
        assert_as_oracle(system, outputs, event, static)
        assert [str(item.fact) for item in outputs if item.time == 3] == ["?x=<urn:b>"]


def test_facts_derived_from_static_data_are_updated_before_other_outputs() -> None:
    texts = {
        "REGISTER STREAM :made AS CONSTRUCT { ?x :q ?y } { ?x :p ?y }": "csparql",
        "DELETE { ?x :p ?y ; :q ?y } INSERT { ?y :kept ?x } WHERE { ?x :q ?y }": "sparql",
        "REGISTER STREAM :more AS CONSTRUCT { ?x :r ?y } { ?x :kept ?y }": "csparql",
        "INSERT { ?x :done ?y } WHERE { ?x :r ?y }": "sparql",
        "REGISTER QUERY Asked AS SELECT ?x ?y { { ?x :p ?y } UNION { ?x :q ?y } UNION { ?x :done ?y } }": "csparql",
    }
    prefix = "PREFIX : <http://example.org/>\n"
    system = System(subsystems=tuple(squall.compile(prefix + text, lexer=lexer) for text, lexer in texts.items()))
    static = [Event(ALWAYS, (Triple(A, P, B),))]
    for planner in ("rete", "greedy"):
        outputs = list(squall.run(squall.plan(system, planner), [], static=static))
        assert_as_oracle(system, outputs, [], static)
        assert "?x=<urn:b> ?y=<urn:a>" in {str(item.fact) for item in outputs}
        assert {item.time for item in outputs} == {ALWAYS}
        assert not {str(item.fact) for item in outputs} & {"?x=<urn:a> ?y=<urn:b>", str(Triple(A, Q, B))}
