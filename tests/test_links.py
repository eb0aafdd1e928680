"""owl:sameAs in streams: what streams say of it while a program runs changes how facts are read from then on.

The oracle runs the program once for each time with the cliques of that time, which are known before the run, and takes
the answers of that time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall.builders.local.job import IteratorJob
from squall.cli import command
from squall.contracts import Options
from squall.errors import SquallError
from squall.plan import Plan
from squall.rdf import ALWAYS, RDF, Event, Fact, Solution, Term, Triple, iri, literal
from squall.rdf.cliques import SAME_AS, Cliques
from squall.streams import DeadLetterFile
from tests import in_memory
from tests.laws import PLANNERS, examples, hold_with_outputs, on_engines
from tests.test_same_as import CLASSES, PREFIXES, PROPERTIES, SOURCES, A, B, E, projected

TYPE = iri(RDF + "type")
READ_BY_LANGUAGE = {"sparql": {A, B}, "csparql": {A}, "cqels": {B}, "rspql": {A}}
PATTERNS = (
    ("?x ?y", "?x a :C . ?x :p ?y", ""), ("?x ?y ?z", "?x :p ?y . ?y :q ?z", ""), ("?x ?p ?y", "?x ?p ?y", ""),
    ("?y", ":x2 :p ?y", ""), ("?x", "?x :p ?x", ""), ("?x ?y", "?x :p ?y FILTER NOT EXISTS { ?y a :C }", ""),
    ("?x ?c", "?x :p ?y OPTIONAL { ?y a ?c }", ""), ("?x", "?x :p ?y MINUS { ?x a :C }", ""),
    ("?x ?y", "?x :p+ ?y", ""), ("?x ?y", "?x :q ?y FILTER(?y = :y2)", ""), ("?x", "?x :q ?v FILTER(?v > 3)", ""),
    ("?x ?y", "?x :p ?y FILTER sameTerm(?x, ?y)", ""), ("?x", "{ ?x a :C } UNION { ?y :q ?x }", ""),
    ("(COUNT(?x) AS ?n)", "?x a :C", ""), ("?x (COUNT(?y) AS ?n)", "?x :p ?y", "GROUP BY ?x"),
    ("(COUNT(DISTINCT ?x) AS ?n)", "?x :q ?v", ""), ("DISTINCT ?y", "?x :p ?y", ""),
)  # fmt: skip
"""Queries: what they select, their patterns and their modifiers."""


def queries(languages: Iterable[str] = SOURCES) -> list[tuple[str, str]]:
    return [
        (language, PREFIXES + SOURCES[language].format(selection, pattern, modifiers))
        for language in languages
        for selection, pattern, modifiers in PATTERNS
    ]


INDIVIDUALS = [iri(E + name) for name in ("x1", "x2", "x3", "y2")]
NUMBER = literal("5", "http://www.w3.org/2001/XMLSchema#integer")
ABSENT = Triple(iri(E + "absent"), iri(E + "absent"), NUMBER)
"""A fact that no stream brings. Its removal changes nothing, but makes its time an instant, as that of a link does."""


def facts() -> st.SearchStrategy[Triple]:
    individuals = st.sampled_from(INDIVIDUALS)
    typing = st.builds(Triple, individuals, st.just(TYPE), st.sampled_from(CLASSES))
    return typing | st.builds(Triple, individuals, st.sampled_from(PROPERTIES), individuals | st.just(NUMBER))


def links() -> st.SearchStrategy[Triple]:
    """Draws triples of owl:sameAs."""
    kinds = (INDIVIDUALS, INDIVIDUALS, PROPERTIES, CLASSES)
    pairs = [Triple(left, SAME_AS, right) for kind in kinds for left in kind for right in kind if left < right]
    return st.sampled_from(pairs)


@st.composite
def streams(draw: st.DrawFn, read: Collection[str] = (A, B)) -> list[Event]:
    """Draws events with facts and links, and some that remove what came before. read: the streams that programs read,
    one of which is among those of the events.
    """
    events: list[Event] = []
    time = 0
    streams = draw(st.sampled_from([*((stream,) for stream in sorted(read)), (A, B)]))
    for _ in range(draw(st.integers(3, 7))):
        time += draw(st.integers(0, 1))
        stream = draw(st.sampled_from(streams))
        content = draw(st.lists(st.one_of(facts(), facts(), links()), min_size=2, max_size=4))
        brought = [fact for event in events if event.stream == stream for fact in event.facts]
        removed = draw(st.lists(st.sampled_from(brought), max_size=2)) if brought else []
        events.append(Event(time, tuple(content), stream, tuple(removed)))
    return events


def following(language: str, text: str, planner: str = "rete", **options: Any) -> Plan:
    options = {"window": "RANGE 4ms", "output": "rstream", **options}
    system = squall.compile(text, lexer=language, same_as="representative", schema_changes="follow", **options)
    return squall.plan(system, planner)


def links_at(time: int, stream: Sequence[Event], read: Iterable[str], known: Iterable[Triple] = ()) -> list[Triple]:
    """Returns the links that hold at a time: those known before the run, and those brought and not removed by then."""
    held: dict[tuple[str, Fact], None] = {}
    for event in stream:
        if event.time <= time and event.stream in read:
            for fact in event.removed:
                held.pop((event.stream, fact), None)
            held |= dict.fromkeys((event.stream, fact) for fact in event.facts if fact[1] == SAME_AS)
    return [*known, *(Triple(*fact) for _, fact in held)]


def cliques_of(triples: Iterable[Triple]) -> Cliques:
    return Cliques.of((triple.subject, triple.object) for triple in triples)


def named_terms(text: str) -> set[Term]:
    return {iri(E + name) for name in re.findall(r"(?<=[\s(]):(\w+)", text.split("WHERE")[-1].split("{", 1)[-1])}


def counted(answers: Iterable[tuple[int, Any]], cliques: Cliques) -> Counter[tuple[int, str]]:
    """Returns answers with representatives, and how often each comes."""
    return Counter(answer for output in answers for answer in projected([output], cliques))


def without_links_of(text: str, answers: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Returns answers without links, where a query asks for any predicate: links are facts of their stream, too."""
    return [answer for answer in answers if SAME_AS not in str(answer[1])] if "?p" in text else answers


def expected_at(
    time: int, language: str, text: str, stream: Sequence[Event], planner: str, known: Sequence[Triple] = ()
) -> tuple[Counter[tuple[int, str]], Cliques]:
    """Returns the answers at a time by the oracle, and the cliques of that time."""
    triples = links_at(time, stream, READ_BY_LANGUAGE[language], known)
    options: dict[str, Any] = {"window": "RANGE 4ms", "output": "rstream", "removals": True}
    system = squall.compile(text, lexer=language, same_as="representative", schema=triples, **options)
    plain = [
        event._replace(
            facts=tuple(fact for fact in event.facts if fact[1] != SAME_AS),
            removed=tuple(ABSENT if fact[1] == SAME_AS else fact for fact in event.removed),
        )
        for event in stream
    ]
    outputs = [(out.time, out.fact) for out in squall.run(squall.plan(system, planner), plain)]
    answers = without_links_of(text, [output for output in outputs if output[0] == time])
    cliques = cliques_of(triples)
    return counted(answers, cliques), cliques


def without_links(stream: Iterable[Event]) -> list[Event]:
    return [event._replace(facts=tuple(fact for fact in event.facts if fact[1] != SAME_AS)) for event in stream]


def is_possible(text: str, language: str, stream: Sequence[Event], known: Sequence[Triple] = ()) -> bool:
    """Returns whether no two terms that a query names ever become the same."""
    named = named_terms(text)
    for event in stream:
        held = links_at(event.time, stream, READ_BY_LANGUAGE[language], known)
        held += [fact for fact in event.facts if fact[1] == SAME_AS and isinstance(fact, Triple)]
        if any(len(named & {*clique}) > 1 for clique in cliques_of(held).members.values()):
            return False
    return True


@examples(80)
@pytest.mark.sampled(4)
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("language", SOURCES)
def test_answers_are_those_by_the_cliques_of_their_time(language: str, planner: str, many: int) -> None:
    def law(stream: list[Event], program: tuple[str, str], known: list[Triple]) -> Sequence[object]:
        _, text = program
        assume(is_possible(text, language, stream, known))
        plan = following(language, text, planner, schema=known)
        static = [Event(ALWAYS, tuple(known))] if known else []
        outputs = [(out.time, out.fact) for out in squall.run(plan, stream, static=static)]
        for time in sorted({time for time, _ in outputs} | {event.time for event in stream}):
            expected, cliques = expected_at(time, language, text, stream, planner, known)
            at_time = without_links_of(text, [output for output in outputs if output[0] == time])
            assert counted(at_time, cliques) == expected
        unlinked = squall.run(following(language, text, planner, schema=known), without_links(stream), static=static)
        return outputs if [(out.time, out.fact) for out in unlinked] != outputs else []

    hold_with_outputs(
        law, many, 0.08, stream=streams(READ_BY_LANGUAGE[language]), program=st.sampled_from(queries([language])),
        known=st.just([]) | st.lists(links(), max_size=2),
    )  # fmt: skip


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    def law(stream: list[Event], program: tuple[str, str], known: list[Triple], seed: int) -> Sequence[object]:
        language, text = program
        assume(is_possible(text, language, stream, known))
        plan = following(language, text, schema=known)
        static = [Event(ALWAYS, tuple(known))] if known else []
        actual = sorted((out.time, str(out.fact)) for out in in_memory.outputs_on(builder, plan, stream, seed, static))
        expected = sorted((out.time, str(out.fact)) for out in squall.run(plan, stream, static=static))
        assert actual == expected
        return expected if builder == "in memory" else [law]

    hold_with_outputs(
        law, number, stream=streams(), program=st.sampled_from(queries()),
        known=st.just([]) | st.lists(links(), max_size=2), seed=st.integers(0, 1000),
    )  # fmt: skip


RULES = """@prefix : <http://example.org/> .
[r: (?x :p ?y) (?y :q ?z) -> (?x :linked ?z)]
[s: (?x :linked ?y) (?y :linked ?z) -> (?x :linked ?z)]
[t: (?x :linked ?y) equal(?y, :x2) -> (?y :open :y2)]
"""


@examples(60)
@pytest.mark.parametrize("planner", PLANNERS)
def test_rules_read_what_they_derive(planner: str, many: int) -> None:
    """What rules have derived in the end, of all that ever came, is what they derive if the links are known before."""

    def law(stream: list[Event], seed: int) -> Sequence[object]:
        stream = [event._replace(removed=()) for event in stream]
        same = links_at(stream[-1].time, stream, {A, B})
        cliques = cliques_of(same)
        assume(is_possible(RULES, "sparql", stream))
        plan = following("jena", RULES, planner, window="LANDMARK", output=None)
        actual = [(0, out.fact) for out in squall.run(plan, stream)]
        on_batches = [(0, out.fact) for out in in_memory.outputs_on("in memory", plan, stream, seed)]
        assert sorted(map(str, on_batches)) == sorted(map(str, actual))
        system = squall.compile(RULES, lexer="jena", same_as="representative", schema=same, window="LANDMARK")
        expected = [(0, out.fact) for out in squall.run(squall.plan(system, planner), without_links(stream))]
        assert projected(actual, cliques) == projected(expected, cliques)
        return expected if same else []

    hold_with_outputs(law, many, 0.1, stream=streams(), seed=st.integers(0, 1000))


# Examples


def link(left: str, right: str) -> Triple:
    return Triple(iri(E + left), SAME_AS, iri(E + right))


def fact(subject: str, predicate: str, object: str) -> Triple:
    return Triple(iri(E + subject), iri(E + predicate), iri(E + object))


def answers(plan: Plan, stream: Sequence[Event], **options: Any) -> list[tuple[int, str]]:
    return [(out.time, str(out.fact)) for out in squall.run(plan, stream, **options)]


def select(pattern: str, language: str = "sparql", **options: Any) -> Plan:
    return following(language, PREFIXES + SOURCES[language].format("*", pattern, ""), output=None, **options)


def test_a_link_that_is_removed_divides_the_terms_again() -> None:
    plan = following("sparql", f"{PREFIXES} SELECT (COUNT(?x) AS ?n) {{ ?x :p ?y }}", window="LANDMARK")
    stream = [
        Event(1, (fact("a", "p", "z"), fact("b", "p", "z"), fact("c", "p", "z"))),
        Event(2, (link("a", "b"),)), Event(3, (link("b", "c"),)), Event(4, (link("b", "c"),), A),
        Event(5, (), "", (link("b", "c"),)), Event(6, (), A, (link("b", "c"),)), Event(7, (), "", (link("a", "b"),)),
    ]  # fmt: skip
    _, *counts = [(time, re.sub(r'.*"(\d)".*', r"\1", text)) for time, text in answers(plan, stream)]
    assert counts == [(1, "3"), (2, "2"), (3, "1"), (4, "1"), (5, "1"), (6, "2"), (7, "3")]


def test_a_name_of_a_predicate_and_of_a_constant() -> None:
    plan = select("?x :p :z", window="LANDMARK")
    stream = [Event(1, (fact("b", "p9", "z9"),)), Event(2, (link("p9", "p"),)), Event(3, (link("z9", "z"),))]
    assert answers(plan, stream) == [(3, f"?x=<{E}b>")]


def test_named_graphs_and_count_windows() -> None:
    stream = [Event(1, (fact("b", "p", "z"),), A, (), f"<{E}g>"), Event(2, (link("a", "b"),), A, (), f"<{E}g>")]
    in_graphs = following(
        "sparql", f"{PREFIXES} SELECT ?g ?x {{ GRAPH ?g {{ ?x :p ?y }} }}", window="LANDMARK", output=None
    )
    names = {f"?g=<{graph}> ?x=<{E}{name}>" for graph in (A, E + "g") for name in "ab"}
    assert {text for _, text in answers(in_graphs, stream)} == names
    counted = f"{PREFIXES} SELECT ?x FROM STREAM :a [RANGE TRIPLES 2] {{ ?x :p ?y }}"
    plan = following("csparql", counted, output=None)
    later = [*stream, Event(3, (fact("c", "q", "z"),), A), Event(4, (), A)]
    assert answers(plan, later)[-1][1] == f"?x=<{E}a>"
    assert f"?x=<{E}b>" in {text for time, text in answers(plan, later) if time == 1}


def test_a_stream_that_is_read_again() -> None:
    programs = (
        f"{PREFIXES} REGISTER STREAM <urn:derived> AS CONSTRUCT {{ ?x :r ?y }} FROM STREAM :a [RANGE 10ms STEP 1ms] "
        "WHERE { ?x :p ?y }",
        f"{PREFIXES} REGISTER QUERY q AS SELECT ?x FROM STREAM <urn:derived> [RANGE 10ms STEP 1ms] "
        "WHERE { ?x :r ?y . ?y :r ?x }",
    )
    stream = [
        Event(1, (fact("a", "p", "b"),), A),
        Event(3, (fact("b2", "p", "a"),), A),
        Event(5, (link("b", "b2"),), A),
    ]
    system = squall.compile(*programs, lexer="csparql", same_as="representative", schema_changes="follow")
    solutions = {output for output in answers(squall.plan(system), [*stream, Event(8, (), A)]) if "?x" in output[1]}
    assert min(time for time, _ in solutions) in (5, 6)
    assert {text for _, text in solutions} == {f"?x=<{E}a>", f"?x=<{E}b2>"}  # "2" is less than ">"


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("size", [1, 2, 9])
def test_a_derived_stream_before_and_behind_a_link(planner: str, size: int) -> None:
    """Facts that are derived later than they came are read with the representatives of the time at which they are."""
    system = squall.compile(
        PREFIXES + "REGISTER STREAM <urn:d> AS CONSTRUCT { ?x :q ?y } FROM STREAM :s [RANGE 2ms STEP 1ms] { ?x :p ?y }",
        PREFIXES + "REGISTER QUERY r AS SELECT ?x FROM STREAM <urn:d> [RANGE 4ms STEP 1ms] { ?x :q ?y }",
        lexer="csparql",
        same_as="representative",
        schema_changes="follow",
        schema=[],
    )
    x1, x2, p = iri(E + "x1"), iri(E + "x2"), iri(E + "p")
    triples = {1: Triple(x2, p, p), 5: Triple(x1, SAME_AS, x2), 6: Triple(x2, p, p)}
    events = [Event(time, (triple,), E + "s") for time, triple in triples.items()]
    batches = [events[first : first + size] for first in range(0, len(events), size)]
    outputs = list(IteratorJob(squall.plan(system, planner), Options()).run(batches))
    rows = [(out.time, out.fact.values[0]) for out in outputs if isinstance(out.fact, Solution)]
    assert rows == [(3, x2), (4, x2), *((time, x1) for time in range(5, 13))]


def test_facts_that_updates_insert() -> None:
    text = f"{PREFIXES} INSERT {{ ?x :q ?y }} WHERE {{ ?x :p ?y }}"
    query = f"{PREFIXES} SELECT ?x {{ ?x :q ?y ; :r ?y }}"
    system = squall.compile(text, query, lexer="sparql", same_as="representative", schema_changes="follow")
    stream = [Event(1, (fact("b", "p", "z"),)), Event(3, (fact("a", "r", "z"),)), Event(5, (link("a", "b"),))]
    texts = [output for output in answers(squall.plan(system), stream) if "?x" in output[1]]
    assert texts == [(5, f"?x=<{E}a>")]


@pytest.mark.parametrize("options", [{"entailment": "rhodf"}, {"rules": ["rhodf"]}], ids=str)
def test_schemas_and_rule_sets(options: dict[str, Any]) -> None:
    subclass = Triple(iri(E + "C"), iri("http://www.w3.org/2000/01/rdf-schema#subClassOf"), iri(E + "D"))
    options = {"schema": [subclass], **options} if "entailment" in options else options
    plan = select("?x a :D ; :p ?y", window="LANDMARK", **options)
    stream = [
        Event(1, (Triple(iri(E + "b"), TYPE, iri(E + "C9")), fact("a", "p", "z"))),
        Event(2, (link("C9", "C"),)), Event(3, (link("a", "b"),)),
    ]  # fmt: skip
    static = [Event(ALWAYS, (subclass,))]
    assert answers(plan, stream, static=static) == [(3, f"?x=<{E}a> ?y=<{E}z>")]


def test_a_run_resumes_with_its_links(tmp_path: Path) -> None:
    plan = select("?x :p ?y . ?y :q ?x", window="LANDMARK")
    stream = [
        Event(1, (fact("a", "p", "b"), link("b", "b2"))), Event(2, (link("c", "a"),)),
        Event(3, (), "", (link("b", "b2"),)), Event(4, (fact("b2", "q", "c"),)), Event(5, (link("b", "b2"),)),
        Event(6, (fact("c", "p", "c"), fact("a", "q", "c"))),
    ]  # fmt: skip
    expected = answers(plan, stream)
    assert len(expected) == 2
    for cut in range(1, len(stream)):
        options = Options(checkpoint=tmp_path / str(cut))
        parts = (stream[:cut], stream)  # what has been read is skipped
        outputs = [out for part in parts for out in squall.build(plan, "iterator", options).run([part])]
        assert [(out.time, str(out.fact)) for out in outputs] == expected


# Bad input


def test_terms_that_programs_name_stay_apart() -> None:
    plan = select("?x :p :y . ?x :q :z", window="LANDMARK")
    with pytest.raises(SquallError) as caught:
        answers(plan, [Event(1, (link("y", "w"),)), Event(2, (link("w", "z"),), A)])
    assert f"the stream `{A}` says at 2 what makes <{E}y> and <{E}z> the same" in str(caught.value)
    assert "`--same-as axioms`" in (caught.value.hint or "")


def test_what_no_clique_can_have_is_a_dead_letter() -> None:
    plan, ledger = select("?x :p :y . ?x :q :z", window="LANDMARK"), DeadLetterFile()
    bad = [Triple(iri(E + "a"), SAME_AS, literal("a")), Triple(iri(E + "C"), SAME_AS, TYPE), link("y", "z")]
    stream = [Event(1, (*bad, fact("a", "p", "y"), link("a", "b"))), Event(2, (fact("b", "q", "z"),))]
    outputs = list(squall.build(plan, "iterator", Options(ledger=ledger)).run([stream]))
    assert [(out.time, str(out.fact)) for out in outputs] == [(2, f"?x=<{E}a>")]
    assert ledger.counts == {("schema", "the default stream"): 3}
    with pytest.raises(SquallError, match="cannot be the same"):
        answers(plan, stream)


@pytest.mark.parametrize(
    ("pattern", "options", "expected"),
    [
        ("?x :p ?y", {"same_as": "provenance"}, "goes with owl:sameAs by representative, not with `provenance`"),
        ("?x :p ?y", {"same_as": None}, "not with `none`"),
        ("?x :p ?y", {"same_as": "axioms"}, "the axioms read what streams say"),
        ("?x :p ?y", {"same_as_answers": "members"}, "need cliques that no stream changes"),
        ('?x :p ?y FILTER(STRENDS(STR(?x), "1"))', {}, "a function that depends on the names of a term"),
        ("?x :p ?y BIND(IRI(?y) AS ?z)", {}, "a function that depends on the names of a term"),
    ],
)
def test_what_is_refused(pattern: str, options: dict[str, Any], expected: str) -> None:
    text = PREFIXES + SOURCES["sparql"].format("*", pattern, "")
    with pytest.raises(SquallError) as caught:
        squall.compile(text, lexer="sparql", **{"same_as": "representative", "schema_changes": "follow", **options})
    assert expected in f"{caught.value} {caught.value.hint}"


def test_explain_and_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.rq").write_text(f"{PREFIXES} SELECT ?x {{ ?x :p ?y ; :q ?y }}")
    facts_in_order = (fact("b", "p", "z"), fact("a", "q", "z"), link("a", "b"))
    (tmp_path / "s.ntt").write_text("\n".join(f"{time} {triple}" for time, triple in enumerate(facts_in_order)))
    program, options = str(tmp_path / "q.rq"), ["--same-as", "representative", "--schema-changes", "follow"]

    def printed(*arguments: str) -> str:
        with suppress(SystemExit):
            command.main([*arguments, *options], standalone_mode=False)
        return capsys.readouterr().out

    sink = tmp_path / "out.tsv"
    printed("run", program, "--source", str(tmp_path / "s.ntt"), "--sink", str(sink))
    assert f"{E}a" in sink.read_text()
    assert "which streams may change" in printed("explain", program, "--stage", "tps")
    assert "links of owl:sameAs" in printed("explain", program, "--stage", "job", "--builder", "spark")
    (tmp_path / "q.rq").write_text(f"{PREFIXES} SELECT ?x {{ ?x :p ?y FILTER(STRLEN(STR(?x)) > 1) }}")
    assert "depends on the names of a term" in printed("check", program)
