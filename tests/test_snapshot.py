"""The snapshot dataflow, which evaluates complete instants, and its switch to the incremental dataflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, pairwise, permutations
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import squall
from squall import functions
from squall.builders.local.job import IteratorJob
from squall.builders.runtime.creation_limit import CreationLimit
from squall.builders.runtime.operators import stateless as row_operators
from squall.builders.runtime.operators.factored import FactoredRows, Rows
from squall.builders.runtime.snapshot import MAX_MISSING_FACTS, SnapshotDataflow, fits
from squall.builders.runtime.snapshot.groups import KeyedRows
from squall.builders.runtime.snapshot.joins import SnapshotJoin
from squall.builders.runtime.snapshot.state import FactSet
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Delta, Row
from squall.contracts import Options
from squall.errors import SourceError
from squall.functions import lookup
from squall.model import Source, System
from squall.plan import Input, Node, Plan
from squall.plan import operators as ops
from squall.rdf import ALWAYS, Atom, Event, Term, Triple, iri
from squall.testing import assert_as_oracle
from squall.testing.strategies import event_streams, static_data, systems
from squall.testing.streams import static, stream
from tests.laws import examples_of, hold

E = "http://example.org/"
SCHEMA = """
[domain: (?x ?p ?y) (?p :domain ?c) -> (?x :type ?c)]
[range: (?x ?p ?y) (?p :range ?c) notLiteral(?y) -> (?y :type ?c)]
[inherited: (?x ?p ?y) (?p :below ?q) -> (?x ?q ?y)]
[class: (?x :type ?c) (?c :under ?d) -> (?x :type ?d)]
[up: (?x :under ?y) (?y :under ?z) -> (?x :under ?z)]
[same: (?x ?p ?y) (?z ?p ?x) -> (?z :likes ?y)]
[few: (?x :type :a) -> (?x :is :a)]
[every: -> (:a :under :b)]
"""
"""Rules with joins on predicates, of all kinds; with a closure; and with a rule without a body."""


def plan(text: str, planner: str = "rete") -> Plan:
    return squall.plan(squall.compile(f"@prefix : <{E}> .\n{text}", lexer="jena"), planner)


def job(plan: Plan, max_small_instants: int | None = None, tuning: Tuning = DEFAULT_TUNING) -> IteratorJob:
    """Returns a job. max_small_instants: after so many instants the incremental dataflow takes over; None: the
    default."""
    if max_small_instants is not None:
        tuning = replace(
            tuning, min_facts_per_instant=MAX_MISSING_FACTS // max_small_instants if max_small_instants else 1 << 60
        )
    return IteratorJob(plan, Options(), tuning)


either_form = pytest.mark.parametrize(
    "tuning",
    [
        pytest.param(DEFAULT_TUNING, id="few rows one by one"),
        pytest.param(Tuning(min_rows_per_object=1, min_rows_to_factor=1), id="all in one"),
    ],
)
"""Whether even few rows that differ in one cell only are stored as factored rows."""


@either_form
@pytest.mark.parametrize("planner", ["greedy", "rete"])
def test_a_program_of_any_kind(planner: str, tuning: Tuning) -> None:
    """The answer is the same whenever the incremental dataflow takes over."""

    def law(system: System, events: list[Event], facts: list[Event], instants: int, cuts: list[int]) -> None:
        query_plan = squall.plan(system, planner)
        assume(fits(query_plan))
        places = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
        batches = [events[begin:end] for begin, end in pairwise(places)]
        assert_as_oracle(system, list(job(query_plan, instants, tuning).run(batches, facts)), events, facts)

    data = {"events": event_streams(), "facts": static_data(), "cuts": st.lists(st.integers(0, 12), max_size=4)}
    hold(law, 60, system=systems(output="istream"), instants=st.integers(0, 9), **data)


WORDS = ("a", "b", "c", "domain", "range", "below", "under", "type", "likes")
TRIPLES = st.tuples(*[st.sampled_from([iri(E + word) for word in WORDS])] * 3).map(lambda found: Triple(*found))
EVENTS = st.lists(st.tuples(st.integers(0, 2), st.lists(TRIPLES, min_size=1, max_size=3)), max_size=4).map(
    lambda drawn: [Event(time, tuple(found)) for time, found in sorted(drawn, key=lambda one: one[0])]
)


@either_form
@pytest.mark.parametrize("planner", ["greedy", "rete"])
@given(events=EVENTS, facts=st.lists(TRIPLES, max_size=4), instants=st.integers(0, 4))
@settings(max_examples=examples_of(60), deadline=None)
def test_rules_about_predicates(
    planner: str, tuning: Tuning, events: list[Event], facts: list[Triple], instants: int
) -> None:
    """Facts about a predicate may come before its own facts, with them, or after them."""
    system = squall.compile(f"@prefix : <{E}> .\n{SCHEMA}", lexer="jena")
    query_plan = squall.plan(system, planner)
    given_facts = [Event(ALWAYS, tuple(facts))]
    assert_as_oracle(system, list(job(query_plan, instants, tuning).run([events], given_facts)), events, given_facts)


def read(*more: Node) -> Plan:
    nodes = Node("read", ops.Scan(Source())), *more
    return Plan((*nodes, Node("end", ops.Sink(), (Input(more[-1].id),))))


def test_atoms_are_distinguished_by_relation_and_arity() -> None:
    events = read(
        Node("match", ops.Match((Term("@r"), 0, 1)), (Input("read"),)),
        Node("emit", ops.Construct((1, Term("<urn:p>"), 0), ("rule",)), (Input("match"),)),
    )
    a, b = Term("<urn:a>"), Term("<urn:b>")
    facts = Atom(Term("r"), (a, b)), Atom(Term("r"), (a,)), Atom(Term("s"), (a, b)), Triple(a, b, a)
    work = SnapshotDataflow(events)
    work.read(Event(3, facts))
    work.run()
    assert [(out.fact, out.time, out.rule) for out in work.flush(3)] == [(Triple(b, Term("<urn:p>"), a), 3, "rule")]


def test_rows_of_unconstrained_predicates_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    tested: list[Sequence[object]] = []
    test = row_operators.filter_step

    def noted(op: ops.Filter) -> row_operators.Step:
        step = test(op)

        def run(rows: Sequence[Delta]) -> list[Delta]:
            tested.extend(rows)
            return step(rows)

        return run

    monkeypatch.setattr(row_operators, "filter_step", noted)
    domain = "[domain: (?x ?p ?y) (?p :domain ?c) -> (?x :type ?c)]"
    running = job(plan(f"{domain} [range: (?x ?p ?y) (?p :range ?c) notLiteral(?y) -> (?y :type ?c)]"))
    outputs = running.run([], static(":q :range :c . :a :q :b . :a :p :b . :c :p :d ."))
    assert [str(out.fact) for out in outputs] == [f"<{E}b> <{E}type> <{E}c> ."]
    assert len(tested) == 1, tested


def test_a_test_waits_for_a_projection_that_leaves_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    function = lookup("urn:x-squall:jena:notLiteral")

    def body(term: Term) -> Any:
        calls.append(term)
        return function.body(term)

    monkeypatch.setattr(
        functions, "lookup", lambda iri: replace(function, body=body) if iri == function.iri else lookup(iri)
    )
    domain = "[domain: (?x ?p ?y) (?p :domain ?c) -> (?x :type ?c)]"
    running = job(plan(f"{domain} [range: (?x ?p ?y) (?p :range ?c) notLiteral(?y) -> (?y :type ?c)]"))
    outputs = running.run([], static(":q :range :c . :a :q :b . :b :q :b . :c :q :b . :a :q 'x' . :b :q 'x' ."))
    assert [str(out.fact) for out in outputs] == [f"<{E}b> <{E}type> <{E}c> ."]
    assert calls == [f"<{E}b>", '"x"']


def test_what_two_sets_derive_is_output_once() -> None:
    """Duplicates are looked for only when both have derived facts of that predicate."""
    results = [str(out.fact) for out in job(plan(SCHEMA)).run([], static(
        ":a :p :b . :p :below :type . :a :type :c . :c :under :b ."
    ))]  # fmt: skip
    assert results.count(f"<{E}a> <{E}type> <{E}b> .") == 1
    assert len(set(results)) == len(results)


def test_rows_are_deduplicated_in_any_form() -> None:
    """Rows are single, or factored by their subject or by their object."""
    a, b, c = "<a>", "<b>", "<c>"
    forms: list[Rows] = [
        [(a, b, c)],
        FactoredRows((None, b, c), 0, {a: None}),
        FactoredRows((a, b, None), 2, {c: None}),
    ]
    for first, second in permutations(forms, 2):
        existing = FactSet()
        assert list(existing.fresh(first)) == [(a, b, c)]
        assert not existing.fresh(second)
        assert len(existing) == 1
        more = FactoredRows((None, b, c), 0, {b: None, a: None, c: None})
        assert list(existing.fresh(more)) == [(b, b, c), (c, b, c)]
        assert not existing.fresh(list(more))
        assert sorted(chain.from_iterable(existing.all())) == [(a, b, c), (b, b, c), (c, b, c)]


def test_rows_of_which_a_test_leaves_none_make_nothing() -> None:
    """This also holds where the only cell in which they differ is not stored."""
    rows = FactoredRows((None, "<b>"), 0, dict.fromkeys(["<a>", "<c>"]))
    assert rows.shaped((Term("<d>"), 1)) == [("<d>", "<b>")]
    assert rows.shaped((0, 1, 0)) == [("<a>", "<b>", "<a>"), ("<c>", "<b>", "<c>")]
    assert not rows.of(()).shaped((Term("<d>"), 1))
    facts = [Event(ALWAYS, tuple(Triple(iri(f"{E}{n}"), iri(E + "p"), iri(E + "a")) for n in range(100)))]
    assert not list(job(plan("[r: (?x :p ?y) equal(?x, :b) -> (:c :q ?y)]")).run([], facts))


@pytest.mark.parametrize("min_rows", [1, 8])
def test_facts_that_come_twice_at_first_are_output_once(min_rows: int) -> None:
    """The first facts of a predicate are not deduplicated unless a rule can observe duplicates."""
    text = "[r: (?x :p ?y) (?y :q ?z) -> (?x :r ?z)] [s: (?x :p ?y) -> (?y :t ?x)]"
    twice = static(":a :p :b . :b :q :c . " * 2)
    running = job(plan(text), tuning=Tuning(min_rows_to_factor=min_rows))
    outputs = Counter(str(out.fact) for out in running.run([stream("1 :b :q :d", "2 :a :p :b")], twice))
    assert outputs == {f"<{E}a> <{E}r> <{E}c> .": 1, f"<{E}b> <{E}t> <{E}a> .": 1, f"<{E}a> <{E}r> <{E}d> .": 1}


def test_facts_that_come_twice_are_stored_once() -> None:
    running = job(plan("[inherited: (?x ?p ?y) (?p :below ?q) -> (?x ?q ?y)]"))
    twice = ":a :p :b . :c :p :b . :p :below :q ." * 2
    list(running.run([stream("1 :a :p :b . :c :p :b")], static(twice)))
    assert running.snapshot_dataflow is not None
    (join,) = (node.id for node in running.plan.nodes if isinstance(node.op, ops.Join))
    assert running.node_metrics()[join].state == 3 + 1 + 2, (
        "what has been read, as facts and as what is said of properties, and what follows"
    )


@either_form
@given(events=EVENTS, facts=st.lists(TRIPLES, max_size=4))
@settings(max_examples=examples_of(60), deadline=None)
def test_a_join_makes_at_most_as_many_rows_as_it_says(tuning: Tuning, events: list[Event], facts: list[Triple]) -> None:
    apply = SnapshotJoin.apply

    def checked(self: SnapshotJoin, port: int, parts: Iterable[KeyedRows]) -> Iterator[KeyedRows]:
        for part in parts:
            most = next(number for number in count() if self.has_at_most(number, port, part))
            rows = [list(output.rows) for output in apply(self, port, [part])]
            assert sum(map(len, rows)) <= most
            yield from (KeyedRows(None, output) for output in rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SnapshotJoin, "apply", checked)
        list(job(plan(SCHEMA), 5, tuning).run([events], [Event(ALWAYS, tuple(facts))]))


@pytest.mark.parametrize(("people", "divided"), [(200, False), (300, True)])
def test_a_limited_recursion_divides_what_makes_many_rows_only(
    monkeypatch: pytest.MonkeyPatch, people: int, divided: bool
) -> None:
    """200 x 200 rows are made in one step, and 300 x 300 in several."""
    sizes: list[int] = []
    parts = CreationLimit.parts

    def noted(self: CreationLimit, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
        sizes.append(len(rows))
        return parts(self, rows)

    monkeypatch.setattr(CreationLimit, "parts", noted)
    rules = "[same: (?x :in ?c) (?y :in ?c) -> (?x :near ?y)] [next: (?x :near :me) makeSkolem(?z ?x) -> (?z :in :c)]"
    members = tuple(Triple(iri(f"{E}{n}"), iri(E + "in"), iri(E + "c")) for n in range(people))
    one_by_one = Tuning(min_rows_to_factor=people + 1)
    assert len(list(job(plan(rules), tuning=one_by_one).run([], [Event(ALWAYS, members)]))) == people**2
    assert (people in sizes) == divided


def test_functions_with_effects_run_once_per_fact(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "squall.print")
    running = job(plan("[r: (?x :p ?y) print(?x) -> (?x :q ?y)]"))
    list(running.run([], static(":a :p :b . :a :p :b .")))
    assert running.snapshot_dataflow is not None
    assert len(caplog.records) == 1


def test_classes_are_processed_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of their members are built for the output only."""
    factoreds: list[FactoredRows] = []
    iterate = FactoredRows.__iter__

    def noted(self: FactoredRows) -> Iterator[Row]:
        factoreds.append(self)
        return iterate(self)

    monkeypatch.setattr(FactoredRows, "__iter__", noted)
    classes = """
        [class: (?x :type ?c) (?c :under ?d) -> (?x :type ?d)]
        [up: (?x :under ?y) (?y :under ?z) -> (?x :under ?z)]
        [in: (?x :type ?c) (?c :in ?d) -> (?x :likes ?d)]
        [few: (?x :type :nothing) -> (?x :is :nothing)]"""
    members = tuple(Triple(iri(f"{E}{n}"), iri(E + "type"), iri(E + "a")) for n in range(1000))
    schema = static(":a :under :b . :b :under :c . :b :in :d .")[0].facts
    outputs = list(job(plan(classes)).run([], [Event(ALWAYS, (*schema, *members))]))
    assert len({out.fact for out in outputs}) == len(outputs) == 1 + 3 * len(members)
    assert len(factoreds) == 2 * 3, "whether there are literals, and then the facts"


def test_small_instants_are_for_the_machine_and_large_ones_are_not() -> None:
    rule = plan("[r: (?x :p ?y) -> (?y :q ?x)]")
    small = [Event(time, (Triple(iri(f"{E}{time}"), iri(E + "p"), iri(E + "o")),)) for time in range(100)]
    large = [Event(time, tuple(Triple(iri(f"{E}{time}x{n}"), iri(E + "p"), iri(E + "o")) for n in range(300)))
             for time in range(30)]  # fmt: skip
    for events, stays in ((small, False), (large, True), (small[:9], True)):
        running = job(rule)
        assert len(list(running.run([[event] for event in events]))) == sum(len(event.facts) for event in events)
        assert (running.snapshot_dataflow is not None) is stays


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("[r: (?x :p ?y) noValue(?x :q ?y) -> (?y :q2 ?x)]", "LANDMARK"),
        ("[r: (?x :p ?y) now(?t) -> (?y :q ?t)]", "LANDMARK"),
        ("[r: (?x :p ?y) -> (?y :q ?x)]", "RANGE 10s"),
    ],
    ids=["negation", "time", "a window"],
)
def test_expiry_and_retraction_need_the_incremental_dataflow(text: str, window: str) -> None:
    system = squall.compile(f"@prefix : <{E}> .\n{text}", lexer="jena", window=window)
    assert not fits(squall.plan(system))


def test_what_measures_is_a_machine() -> None:
    result = squall.build(plan("[r: (?x :p ?y) -> (?y :q ?x)]"), "iterator", Options(measure=True))
    list(result.run([stream("1 :a :p :b")]))
    assert isinstance(result, IteratorJob)
    assert {figures.rows for figures in result.node_metrics().values()} == {1}


def test_node_metrics_have_the_size_of_state() -> None:
    running = job(plan(SCHEMA))
    list(running.run([], static(":a :under :b . :b :under :c .")))
    assert running.snapshot_dataflow is not None
    results = {running.plan.by_id[id].op.__class__: figures.state for id, figures in running.node_metrics().items()}
    assert results[ops.TransitiveClosure] == 3


def test_a_removal_is_refused_where_the_plan_is_not_prepared_for_it() -> None:
    event = Event(1, (), removed=(Triple(iri(E + "a"), iri(E + "p"), iri(E + "b")),))
    with pytest.raises(SourceError, match="carries a removal at 1"):
        list(job(plan("[r: (?x :p ?y) -> (?y :q ?x)]")).run([[event]]))
