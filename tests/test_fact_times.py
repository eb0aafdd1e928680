"""Begin and end of facts in rules and queries, held against a look at every instant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

import squall
from squall.contracts import Output
from squall.errors import SquallError
from squall.lexers.sparql import lexer
from squall.rdf import ALWAYS, Event, Solution, Triple, iri
from squall.streams import Sources, open_source
from squall.testing import assert_as_oracle, stream
from tests import in_memory
from tests.laws import PLANNERS, examples, hold_with_outputs, on_engines
from tests.test_resume import Moving

E = "http://example.org/"
TIMES = {"start": ("s",), "end": ("e",), "interval": ("s", "e")}
"""The variables of the times, by what a rule asks for."""
LAST = 40
"""The instant (ms) at which nothing of a drawn stream holds any more."""


def jena(relation: str, mode: str) -> str:
    names = TIMES[mode]
    head = " ".join(f"(?x :{name} ?{name})" for name in names)
    return (
        f"@prefix : <{E}> .\n[d: (?x :p ?y) (?y :p ?z) -> (?x :d ?z)]\n"
        f"[r: (?x :{relation} ?y {mode}({' '.join(f'?{name}' for name in names)})) -> {head}]\n"
    )


def rif(relation: str, mode: str) -> str:
    names = " ".join(f"?{name}" for name in TIMES[mode])
    head = " ".join(f"?x[ex:{name} -> ?{name}]" for name in TIMES[mode])
    return (
        f"Document(Prefix(ex <{E}>) Prefix(win <urn:x-squall:window:>) Group("
        "(* ex:d *) Forall ?x ?y ?z (?x[ex:d -> ?z] :- And(?x[ex:p -> ?y] ?y[ex:p -> ?z]))"
        f"(* ex:r *) Forall ?x ?y {names} (And({head}) :- External(win:{mode}(?x ex:{relation} ?y {names})))))"
    )


def query(relation: str, mode: str) -> str:
    said = " ; ".join(f"<urn:x-squall:window:{'start' if name == 's' else 'end'}> ?{name}" for name in TIMES[mode])
    head = " . ".join(f"?x :{name} ?{name}" for name in TIMES[mode])
    return f"PREFIX : <{E}> CONSTRUCT {{ {head} }} {{ ?x :{relation} ?y {{| {said} |}} }}"


PROGRAMS = {"jena": jena, "rifps": rif, "sparql": query}


class Arrival(NamedTuple):
    """A triple ``subject :p value``, and when it comes (integer ms)."""

    time: int
    subject: str
    value: str


def events_of(arrivals: Sequence[Arrival]) -> list[Event]:
    ordered = sorted(arrivals)
    return [Event(time, (Triple(*(iri(E + name) for name in (s, "p", o))),)) for time, s, o in ordered]


def pairs_at(arrivals: Sequence[Arrival], length: int, relation: str, time: int) -> set[tuple[str, str]]:
    """Returns the pairs of a relation at an instant, of which each arrival is valid for a length (ms)."""
    pairs = {(s, o) for arrived, s, o in arrivals if arrived <= time < arrived + length}
    return pairs if relation == "p" else {(x, z) for (x, y), (w, z) in product(pairs, pairs) if y == w}


def expected(
    arrivals: Sequence[Arrival], length: int, relation: str, mode: str
) -> dict[int, set[tuple[str, str, int]]]:
    """Returns the facts (subject, time's name, time) at each instant: the definition, instant by instant."""
    facts: dict[int, set[tuple[str, str, int]]] = {}
    for now in range(LAST):
        held = pairs_at(arrivals, length, relation, now)
        read = held if mode == "start" else pairs_at(arrivals, length, relation, now - 1) - held
        for pair in read:
            begin = now - (mode != "start")
            while pair in pairs_at(arrivals, length, relation, begin - 1):
                begin -= 1
            times = {"s": begin, "e": now}
            facts.setdefault(now, set()).update((pair[0], name, times[name]) for name in TIMES[mode])
    return facts


def holding(outputs: Sequence[Output]) -> dict[int, set[tuple[str, str, int]]]:
    """Returns what a log of changes has at each instant, but for what rules derive in between."""
    facts: dict[int, set[tuple[str, str, int]]] = {}
    current: set[tuple[str, str, int]] = set()
    for now in range(LAST):
        for out in outputs:
            if out.time == now and isinstance(out.fact, Triple) and out.fact.predicate != iri(f"{E}d"):
                subject, predicate, value = out.fact
                fact = (subject[len(E) + 1 : -1], predicate[len(E) + 1 : -1], int(value.split('"')[1]))
                (current.add if out.change == "insert" else current.remove)(fact)
        if current:
            facts[now] = set(current)
    return facts


ARRIVALS = st.lists(st.builds(Arrival, st.integers(0, 12), st.sampled_from("ab"), st.sampled_from("abc")), max_size=8)
READ = st.sampled_from([("jena", "p"), ("jena", "d"), ("rifps", "p"), ("rifps", "d"), ("sparql", "p")])
DRAWN: dict[str, Any] = {
    "arrivals": ARRIVALS, "length": st.integers(1, 6), "read": READ, "mode": st.sampled_from(sorted(TIMES)),
}  # fmt: skip


def system_of(read: tuple[str, str], mode: str, length: int, output: str = "changes") -> squall.System:
    language, relation = read
    text = PROGRAMS[language](relation, mode)
    return squall.compile(text, lexer=language, window=f"RANGE {length}ms", output=output)


@examples(60)
@pytest.mark.parametrize("planner", PLANNERS)
def test_facts_have_the_times_of_a_look_at_every_instant(planner: str, many: int) -> None:
    def law(arrivals: list[Arrival], length: int, read: tuple[str, str], mode: str) -> Sequence[object]:
        plan = squall.plan(system_of(read, mode, length), planner)
        outputs = list(squall.run(plan, events_of(arrivals)))
        assert holding(outputs) == expected(arrivals, length, read[1], mode)
        return outputs

    hold_with_outputs(law, many, **DRAWN)


@examples(30)
def test_a_run_that_resumes_knows_when_facts_began(many: int) -> None:
    def law(arrivals: list[Arrival], length: int, read: tuple[str, str], mode: str, compacts: bool) -> Sequence[object]:
        plan = squall.plan(system_of(read, mode, length))
        batches = [[event] for event in events_of(arrivals)]
        outputs = list(Moving(plan, compacts).outputs(batches, ()))
        assert holding(outputs) == expected(arrivals, length, read[1], mode)
        return outputs

    hold_with_outputs(law, many, compacts=st.booleans(), **DRAWN)


@examples(20)
@pytest.mark.parametrize("output", ["istream", "dstream", "rstream"])
def test_the_oracle_agrees(output: str, many: int) -> None:
    def law(arrivals: list[Arrival], length: int, read: tuple[str, str], mode: str) -> Sequence[object]:
        system, events = system_of(read, mode, length, output), events_of(arrivals)
        outputs = list(squall.run(squall.plan(system), events))
        assert_as_oracle(system, outputs, events)
        return outputs

    hold_with_outputs(law, many, **DRAWN)


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    def law(arrivals: list[Arrival], length: int, read: tuple[str, str], mode: str, seed: int) -> Sequence[object]:
        plan = squall.plan(system_of(read, mode, length))
        outputs = in_memory.outputs_on(builder, plan, events_of(arrivals), seed, ())
        assert holding(outputs) == expected(arrivals, length, read[1], mode)
        return outputs

    hold_with_outputs(law, number, seed=st.integers(0, 1000), **DRAWN)


QUERIES = [
    "SELECT * { ?r :is ?h {| win:end ?e |} OPTIONAL { ?x :is ?h {| win:start ?s |} } }",
    "SELECT * { ?r :is ?h FILTER NOT EXISTS { ?r :is ?h {| win:start ?s |} FILTER(?s < 4) } }",
    "SELECT (MAX(?e - ?s) AS ?longest) { ?r :is ?h {| win:start ?s ; win:end ?e |} }",
    "SELECT ?g ?s { GRAPH ?g { ?r :is ?h {| win:start ?s |} } }",
    "SELECT ?r { GRAPH ?g { ?r :is ?h {| win:start ?g |} } }",
    "SELECT ?h { { SELECT ?h ?s { [] :is ?h {| win:start ?s |} } } FILTER(?s > 2) }",
    "ASK { ?r :is ?h {| win:start ?s |} . ?x :is ?h {| win:start ?t |} FILTER(?s < ?t) }",
]
STREAM = [
    Event(time, (Triple(iri(E + name), iri(f"{E}is"), iri(f"{E}Hot")),), graph=iri(E + graph))
    for time, name, graph in ((1, "a", "g"), (3, "b", "g"), (5, "a", "g"), (30, "c", "k"), (31, "c", "g"))
]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("window", ["RANGE 10ms", "RANGE 10ms STEP 4ms", "ELEMENT", "LANDMARK"])
@pytest.mark.parametrize("planner", PLANNERS)
def test_queries_have_times_wherever_patterns_are(text: str, window: str, planner: str) -> None:
    text = f"PREFIX : <{E}> PREFIX win: <urn:x-squall:window:> {text}"
    for output in ("istream", "changes", "rstream"):
        system = squall.compile(text, lexer="sparql", window=window, output=output)
        assert_as_oracle(system, list(squall.run(squall.plan(system, planner), STREAM)), STREAM)


def test_times_are_in_scope() -> None:
    text = f"SELECT * {{ ?r <{E}is> ?h {{| <urn:x-squall:window:start> ?s ; <urn:x-squall:window:end> ?e |}} }}"
    plan = squall.plan(squall.compile(text, lexer="sparql", window="RANGE 10ms"))
    (first, *_) = squall.run(plan, STREAM)
    assert isinstance(first.fact, Solution)
    assert set(first.fact.names) == {"r", "h", "s", "e"}


@pytest.mark.parametrize("profile", ["default", "instans"])
@pytest.mark.parametrize("dataset", [f"FROM NAMED <{E}g>", ""])
def test_a_time_that_is_the_name_of_a_graph_has_its_value(dataset: str, profile: str) -> None:
    """GRAPH binds its variable to an IRI, which is no time."""
    text = f"SELECT ?r {dataset} {{ GRAPH ?g {{ ?r <{E}is> ?h {{| <urn:x-squall:window:start> ?g |}} }} }}"
    system = squall.compile(text, lexer="sparql", window="RANGE 10ms", profile=profile)
    assert [*squall.run(squall.plan(system), STREAM)] == []
    plain = squall.compile(text.replace("start> ?g", "start> ?s"), lexer="sparql", window="RANGE 10ms")
    assert [*squall.run(squall.plan(plain), STREAM)]


def test_a_time_is_joined_as_a_term() -> None:
    rule = f"@prefix : <{E}> .\n[r: (?x :p ?y start(?s)) (?z :at ?s) -> (?x :z ?z)]"
    plan = squall.plan(squall.compile(rule, lexer="jena"))
    outputs = squall.run(
        plan, stream('1 :a :p :b .\n2 :u :at 1 .\n3 :v :at "01"^^<http://www.w3.org/2001/XMLSchema#integer> .')
    )
    assert [out.fact.object for out in outputs if isinstance(out.fact, Triple)] == [f"<{E}u>"]


def test_what_nothing_ends_has_its_begin() -> None:
    plan = squall.plan(squall.compile(jena("p", "start"), lexer="jena"))
    always = Event(ALWAYS, (Triple(iri(f"{E}a"), iri(f"{E}p"), iri(f"{E}c")),))
    outputs = squall.run(plan, stream("7 :a :p :b"), static=[always])
    assert [(out.time, str(out.fact.object)) for out in outputs if isinstance(out.fact, Triple)] == [
        (7, '"7"^^<http://www.w3.org/2001/XMLSchema#integer>')
    ]


def test_times_of_quintuples(tmp_path: Path) -> None:
    """The end of the intersection of two facts is known when it has come."""
    dated = '"{}-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    lines = [
        f"<{E}{s}> <{E}p> <{E}{o}> {dated.format(begin)} {dated.format(end)} .\n"
        for s, o, begin, end in [("a", "b", 2008, 2010), ("b", "c", 2009, 2011)]
    ]
    (tmp_path / "x.nt5").write_text("".join(lines))
    system = squall.compile(jena("d", "interval"), lexer="jena", removals=True)
    sources = Sources([open_source(f"{tmp_path}/x.nt5?valid=time")])
    outputs = list(squall.build(squall.plan(system)).run(sources))
    year_2009, year_2010 = 1230768000000, 1262304000000
    facts = [(out.time, out.fact.predicate, out.fact.object) for out in outputs if isinstance(out.fact, Triple)]
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert facts == [
        (year_2009, f"<{E}d>", f"<{E}c>"),
        (year_2010, f"<{E}s>", number.format(year_2009)),
        (year_2010, f"<{E}e>", number.format(year_2010)),
    ]


# Texts


@pytest.mark.parametrize("mode", TIMES)
def test_a_query_prints_its_times(mode: str) -> None:
    tree = lexer(query("p", mode), "x.rq")
    assert lexer(str(tree), "x.rq") == tree
    assert ("start" in str(tree), "end" in str(tree)) == (mode != "end", mode != "start")
    assert tree != lexer(f"PREFIX : <{E}> CONSTRUCT {{ ?x :s ?s }} {{ ?x :p ?y }}", "x.rq")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("?r :is :Hot {| win:start 5 |}", "the start of a fact has to be a variable"),
        ("?r :is :Hot {| win:end [] |}", "the end of a fact has to be a variable"),
        ("?r :is :Hot {| win:begin ?s |}", "says nothing but the begin and the end of a fact here"),
        ("?r :is :Hot {| ?p ?s |}", "says nothing but the begin and the end of a fact here"),
        ("?r :is/:a :Hot {| win:start ?s |}", "a path has no begin and no end"),
        ("?r :is :Hot {| win:start ?r |}", "`?r` has a value already"),
        ("?r :is :Hot {| win:start ?s ; win:end ?s |}", "`?s` has a value already"),
        ("?r :is :Hot {| win:start ?s, ?t |}", "`?t` has a value already"),
        ("?r :is :Hot {| win:start ?s {| win:start ?t |} |}", "an annotation has no annotation"),
        ("?r :is :Hot {| |}", "`|}` cannot stand here"),
        ("<< ?r :is :Hot >> win:start ?s", "triples in triples (RDF 1.2) are not read"),
    ],
)
def test_what_says_no_times_is_an_error_of_the_query(pattern: str, message: str) -> None:
    text = f"PREFIX : <{E}>\nPREFIX win: <urn:x-squall:window:>\nSELECT * {{ {pattern} }}"
    with pytest.raises(SquallError) as error:
        squall.compile(text, lexer="sparql")
    assert message in str(error.value)
    assert ":3:" in str(error.value)
    assert "hint" in str(error.value)


@pytest.mark.parametrize(
    "template", ["CONSTRUCT { ?r :is :Hot {| win:start ?s |} }", "INSERT { ?r :is (1) {| win:end ?s |} }"]
)
def test_a_template_has_no_times(template: str) -> None:
    text = f"PREFIX : <{E}>\nPREFIX win: <urn:x-squall:window:>\n{template} WHERE {{ ?r :is ?s }}"
    with pytest.raises(SquallError, match="a template has no begin and no end of facts"):
        squall.compile(text, lexer="sparql")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('win:im(?r ex:a ex:b "PT1S"^^xs:duration)', "there is no window `im`"),
        ('win:in(?r ex:a "PT1S"^^xs:duration)', "these are no arguments of the window `in`"),
        ("win:in()", "these are no arguments of the window `in`"),
        ("win:in(?r ex:a ex:b)", "these are no arguments of the window `in`"),
        ("win:in(?r ex:a ex:b 5)", "this is not a length of time"),
        ('win:in(?r ex:a ex:b "P1M"^^xs:duration)', "this is not a length of time"),
        ('win:in(ex:q(?r) "-PT1S"^^xs:duration)', "this is not a length of time"),
        ('win:in(ex:q(?r) "PT0.0001S"^^xs:duration)', "this is not a length of time"),
        ('win:in(ex:q(?r) "PT1S"^^xs:duration "PT0S"^^xs:duration)', "these are no arguments of the window `in`"),
        ('win:at(ex:q(?r) ex:a "PT1S"^^xs:duration)', "these are no arguments of the window `at`"),
        ("win:start(?r ex:a ex:b)", "these are no arguments of the window `start`"),
        ("win:start(?r ex:a ?s ?s)", "`?s` has a value already"),
        ("win:interval(ex:q(?r) ?s ?s)", "`?s` has a value already"),
        ("win:start(?r ex:a External(func:numeric-add(1 2)) ?s)", "no computed arguments"),
    ],
)
def test_what_is_no_window_is_an_error_of_the_document(call: str, message: str) -> None:
    with pytest.raises(SquallError) as error:
        squall.compile(document(f"ex:z(?r) :- And(ex:q(?r) External({call}))"), lexer="rifps")
    assert message in str(error.value)
    assert ":2:" in str(error.value)
    assert "hint" in str(error.value)


def document(rule: str, *others: str) -> str:
    rules = "\n".join(f"Forall ?r ?s ?t ({text})" for text in (rule, *others))
    return f"Document(Prefix(ex <{E}>) Prefix(win <urn:x-squall:window:>) Group(\n{rules}))"


def test_no_window_sees_what_is_derived_on_demand() -> None:
    on_demand = "ex:tax(?r ?s) :- ?s = External(func:numeric-multiply(?r 2))"
    demand = "ex:v(?r ?s) :- And(ex:q(?r) ex:tax(?r ?s))"
    window = 'ex:z(?r) :- External(win:in(ex:tax(?r ?s) "PT1S"^^xs:duration))'
    with pytest.raises(SquallError, match="a window cannot read what rules derive on demand only"):
        squall.compile(document(on_demand, demand, window), lexer="rifps")


def test_windows_and_equations_that_rules_conclude() -> None:
    window = 'ex:z(?r) :- External(win:in(ex:q(?r) "PT1S"^^xs:duration))'
    with pytest.raises(SquallError, match="windows cannot stand beside rules that conclude `=`"):
        squall.compile(document("?r = ?s :- ex:same(?r ?s)", window), lexer="rifps")


def test_a_relation_in_a_window_is_a_relation() -> None:
    """An atom in a window is written as a term is, but it is no function: contexts, and the order of strata."""
    window = 'ex:z(?r) :- External(win:in(ex:q(?r) "PT1S"^^xs:duration))'
    squall.compile(document("ex:q(?r) :- ex:z(?r)", window), lexer="rifps")
    with pytest.raises(SquallError, match="is a predicate here, and a function before"):
        squall.compile(document("ex:z(ex:q(?r)) :- ex:y(?r)", window), lexer="rifps")
    with pytest.raises(SquallError, match="let the rule read something that does not follow from its own conclusion"):
        squall.compile(document("ex:q(?r) :- External(win:end(ex:q(?r) ?s))"), lexer="rifps")
