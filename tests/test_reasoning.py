"""Entailment by rewriting: each pattern has the solutions that it has in the closure of what it reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import squall
from squall import explain, plugins
from squall.builders.distributed.io.records import DeadLetter
from squall.builders.runtime.operators.scan import predicates_to_read
from squall.checking import lint
from squall.cli import command
from squall.contracts import Options
from squall.errors import SquallError, single_errors
from squall.model import warnings
from squall.plan import Plan
from squall.rdf import (
    ALWAYS,
    DEFAULT_STREAM,
    OWL,
    RDF,
    RDFS,
    XSD,
    Columns,
    Event,
    Triple,
    iri,
    is_iri,
    is_literal,
    literal,
)
from squall.reasoning.schema import REGIMES
from squall.streams import DeadLetterFile
from tests import in_memory
from tests.laws import examples, hold, on_engines
from tests.toy_engine import ToyJob

E = "http://example.org/"
A, B = E + "a", E + "b"
TYPE, PROPERTY = iri(RDF + "type"), iri(RDF + "Property")
SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE, RESOURCE, CLASS, DATATYPE, LITERAL = (
    iri(RDFS + name)
    for name in ("subClassOf", "subPropertyOf", "domain", "range", "Resource", "Class", "Datatype", "Literal")
)
EQUIVALENT_CLASS, EQUIVALENT_PROPERTY, INVERSE, SYMMETRIC = (
    iri(OWL + name) for name in ("equivalentClass", "equivalentProperty", "inverseOf", "SymmetricProperty")
)
CLASSES = [iri(E + name) for name in "CDFG"]
PROPERTIES = [iri(E + name) for name in "pqrs"]
INDIVIDUALS = [iri(E + name) for name in "xyz"]


def closure(triples: Iterable[Triple], regime: str) -> set[Triple]:
    """Returns the RDF triples of the closure of triples, by each rule over all pairs until nothing new comes."""
    result = set(triples)
    if regime == "rdfs":
        result |= {Triple(iri(name), TYPE, DATATYPE) for name in (RDF + "langString", XSD + "string")}
    new = result
    while new:
        derived = {conclusion for triple in new for conclusion in _from_one(triple, regime)}
        derived |= {conclusion for axiom in result for triple in new for conclusion in _from_two(axiom, triple)}
        derived |= {conclusion for axiom in new for triple in result for conclusion in _from_two(axiom, triple)}
        new = derived - result
        result |= new
    return {triple for triple in result if not is_literal(triple.subject) and is_iri(triple.predicate)}


def _from_one(triple: Triple, regime: str) -> Iterator[Triple]:
    s, p, o = triple
    if p == EQUIVALENT_CLASS:
        yield from (Triple(s, SUB_CLASS, o), Triple(o, SUB_CLASS, s))
    if p == EQUIVALENT_PROPERTY:
        yield from (Triple(s, SUB_PROPERTY, o), Triple(o, SUB_PROPERTY, s))
    if regime == "rdfs":
        yield from (Triple(s, TYPE, RESOURCE), Triple(o, TYPE, RESOURCE), Triple(p, TYPE, PROPERTY))
        if (p, o) == (TYPE, CLASS):
            yield from (Triple(s, SUB_CLASS, s), Triple(s, SUB_CLASS, RESOURCE))
        if (p, o) == (TYPE, PROPERTY):
            yield Triple(s, SUB_PROPERTY, s)
        if (p, o) == (TYPE, DATATYPE):
            yield Triple(s, SUB_CLASS, LITERAL)


def _from_two(axiom: Triple, triple: Triple) -> Iterator[Triple]:
    a, kind, b = axiom
    s, p, o = triple
    if kind == p and p in (SUB_CLASS, SUB_PROPERTY) and b == s:
        yield Triple(a, kind, o)
    if kind == SUB_CLASS and p == TYPE and o == a:
        yield Triple(s, TYPE, b)
    if p == a:
        if kind == SUB_PROPERTY:
            yield Triple(s, b, o)
        elif kind == DOMAIN:
            yield Triple(s, TYPE, b)
        elif kind == RANGE:
            yield Triple(o, TYPE, b)
        elif kind == INVERSE:
            yield Triple(o, b, s)
        elif kind == TYPE and b == SYMMETRIC:
            yield Triple(o, p, s)
    if p == b and kind == INVERSE:
        yield Triple(o, a, s)


def schemas() -> st.SearchStrategy[frozenset[Triple]]:
    classes, properties = st.sampled_from(CLASSES), st.sampled_from(PROPERTIES)
    axioms = (
        st.builds(Triple, classes, st.sampled_from([SUB_CLASS, SUB_CLASS, EQUIVALENT_CLASS]), classes)
        | st.builds(Triple, properties, st.sampled_from([SUB_PROPERTY, EQUIVALENT_PROPERTY, INVERSE]), properties)
        | st.builds(Triple, properties, st.sampled_from([DOMAIN, RANGE]), classes)
        | st.builds(Triple, properties, st.just(TYPE), st.sampled_from([SYMMETRIC, PROPERTY]))
        | st.builds(Triple, classes, st.just(TYPE), st.just(CLASS))
        | st.builds(Triple, properties, st.just(SUB_PROPERTY), st.just(TYPE))
        | st.builds(Triple, st.sampled_from([RESOURCE, PROPERTY]), st.just(SUB_CLASS), classes)
    )
    return st.frozensets(axioms, max_size=6)


def facts() -> st.SearchStrategy[Triple]:
    individuals, classes = st.sampled_from(INDIVIDUALS), st.sampled_from([*CLASSES, iri(E + "Unknown")])
    values = individuals | st.just(literal("v")) | classes
    return st.builds(Triple, individuals, st.just(TYPE), classes) | st.builds(
        Triple, individuals, st.sampled_from([*PROPERTIES, iri(E + "unknown")]), values
    )


def events() -> st.SearchStrategy[list[Event]]:
    drawn_facts = st.lists(facts(), min_size=1, max_size=2).map(tuple)
    event = st.tuples(st.integers(0, 12), drawn_facts, st.sampled_from([A, B])).map(lambda values: Event(*values))
    return st.lists(event, max_size=4).map(lambda drawn: sorted(drawn, key=lambda each: each.time))


PATTERNS = (
    "?x a :C", "?x :p ?y", "?x a ?c", "?x ?p ?y", "?x ?p ?x", "?x :p ?x", ":x ?p ?y", "?x a ?x", "?p ?p ?y", "?x ?p ?p",
    "?x :q :y", "?x ?p :C", "?x ?p :y", ":y a ?c", "?x rdfs:subClassOf ?y", "?x rdfs:subPropertyOf ?y",
    ":p rdfs:subPropertyOf ?y", "?x rdfs:subPropertyOf ?x", "?x rdfs:subPropertyOf :p", "?x a rdfs:Resource",
    "?x a rdf:Property", "?x a :F . ?x :q ?y", "?x :p \"v\"", "?x ?p \"v\"", "?x a :Unknown",
    "?x :p ?y FILTER NOT EXISTS { ?y a :C }", "?x ?p ?y MINUS { ?x a :C }", "?x :p ?y OPTIONAL { ?y a ?c }",
    "{ ?x a :C } UNION { ?y :q ?x }", "?x :p+ ?y", "?x (:p|^:q)* ?y",
)  # fmt: skip
SOURCES = {
    "sparql": "SELECT * {{ {} }}",
    "csparql": "SELECT * FROM STREAM <http://example.org/a> [RANGE 4ms STEP 2ms] {{ {} }}",
    "cqels": "SELECT * {{ STREAM <http://example.org/b> [RANGE 3ms] {{ {} }} }}",
    "rspql": """REGISTER RSTREAM <out> AS SELECT * FROM NAMED WINDOW :w ON <http://example.org/a>
        [RANGE PT0.003S STEP PT0.002S] {{ WINDOW :w {{ {} }} }}""",
}
PREFIXES = f"PREFIX : <{E}> PREFIX rdf: <{RDF}> PREFIX rdfs: <{RDFS}>\n"


def outputs(system: squall.System, stream: list[Event], static: Iterable[Triple]) -> list[tuple[int, str]]:
    triples = tuple(static)
    data = [Event(ALWAYS, triples, name) for name in ("", A, B)]
    return sorted((out.time, str(out.fact)) for out in squall.run(squall.plan(system), stream, static=data))


def check(pattern: str, language: str, regime: str, schema: frozenset[Triple], stream: list[Event]) -> None:
    """Checks that a pattern under entailment has the solutions of the plain pattern over the closure."""
    text = PREFIXES + SOURCES[language].format(pattern)
    compile_query = partial(squall.compile, text, lexer=language, window="RANGE 5ms")
    expected = outputs(
        compile_query(),
        [event._replace(facts=tuple(closure({*triples(event), *schema}, regime))) for event in stream],
        closure(schema, regime),
    )
    assert outputs(compile_query(entailment=regime, schema=schema), stream, ()) == expected, pattern


@examples(60)
@pytest.mark.parametrize("language", SOURCES)
@pytest.mark.parametrize("regime", REGIMES)
def test_a_pattern_has_the_solutions_of_the_closure(regime: str, language: str, many: int) -> None:
    def law(pattern: str, schema: frozenset[Triple], stream: list[Event]) -> None:
        check(pattern, language, regime, schema, stream)

    hold(law, many, pattern=st.sampled_from(PATTERNS), schema=schemas(), stream=events())


@pytest.mark.more
@pytest.mark.sampled(4)
@pytest.mark.parametrize("language", SOURCES)
@pytest.mark.parametrize("regime", REGIMES)
def test_every_pattern_over_a_schema_that_has_all(regime: str, language: str) -> None:
    (c, d, f, g), (p, q, r, s), (x, y, z) = CLASSES, PROPERTIES, INDIVIDUALS
    schema = frozenset(
        Triple(*axiom)
        for axiom in (
            (d, SUB_CLASS, c), (c, SUB_CLASS, f), (f, EQUIVALENT_CLASS, g), (q, SUB_PROPERTY, p), (q, INVERSE, r),
            (s, EQUIVALENT_PROPERTY, q), (p, TYPE, SYMMETRIC), (q, DOMAIN, d), (r, DOMAIN, c), (p, RANGE, c),
        )
    )  # fmt: skip
    facts_by_time = {
        1: ((x, TYPE, d), (x, TYPE, c)), 2: ((x, q, y), (x, s, y)), 4: ((z, r, y), (y, p, literal("v"))),
        5: ((y, TYPE, g), (z, iri(E + "unknown"), z)), 9: ((x, p, x), (y, q, y)),
    }  # fmt: skip
    stream = [
        Event(time, tuple(Triple(*fact) for fact in facts), name)
        for time, facts in facts_by_time.items()
        for name in (A, B)
    ]
    for pattern in PATTERNS:
        check(pattern, language, regime, schema, stream)


def triples(event: Event) -> list[Triple]:
    return [fact for fact in event.facts if isinstance(fact, Triple)]


CATS = [Triple(iri(E + "Cat"), SUB_CLASS, iri(E + "Animal"))]
QUERY = f"PREFIX : <{E}> SELECT ?x {{ ?x a :Animal }}"


def test_a_schema_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "zoo.nt"
    file.write_text(f"{CATS[0]}\n<{E}tom> {TYPE} <{E}Cat> .\n")
    system = squall.compile(QUERY, lexer="sparql", entailment="rhodf", schema=[file])
    assert outputs(system, [], ()) == [], "individuals of a schema are left out"
    kit = Event(1, (Triple(iri(E + "kit"), TYPE, iri(E + "Cat")),))
    assert outputs(system, [kit], ()) == [(1, f"?x=<{E}kit>")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"entailment": "rdf"}, "no entailment regime `rdf`"),
        ({"entailment": "rhodf", "rules": ["rdfs"]}, "exclude each other"),
        ({"schema": CATS}, "without an entailment regime"),
        ({"entailment": "rhodf", "schema": "zoo.ttl"}, "`schema` is a sequence"),
        ({"entailment": "rhodf", "schema": [("a", "b", "c")]}, "neither a file nor a Triple"),
        ({"entailment": "rhodf", "schema": [Triple(iri(E + "p"), SUB_PROPERTY, SUB_CLASS)]}, "would change the schema"),
        ({"entailment": "rhodf", "schema": [Triple(TYPE, DOMAIN, CLASS)]}, "gives rdf:type"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SquallError, match=message):
        squall.compile(QUERY, lexer="sparql", **arguments)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("jena", f"[r: (?x <{E}below> ?y) -> (?x <{RDFS}subClassOf> ?y)]"),
        ("sparql", f"INSERT DATA {{ <{E}Dog> <{RDFS}subClassOf> <{E}Animal> }}"),
        ("rspql", f"REGISTER STREAM <{B}> AS CONSTRUCT ISTREAM {{ ?x <{RDFS}domain> ?y }} WHERE {{ ?x <{E}of> ?y }}"),
    ],
)
def test_a_rule_that_derives_the_schema_is_an_error(language: str, text: str) -> None:
    with pytest.raises(SquallError, match="derives what a schema says"):
        squall.compile(text, lexer=language, entailment="rhodf", schema=CATS)


def test_a_class_that_is_almost_in_the_schema_is_warned_of() -> None:
    text = f"PREFIX : <{E}> SELECT ?x {{ ?x a :Animl }}"
    system = squall.compile(text, lexer="sparql", entailment="rhodf", schema=CATS)
    assert [str(warning.message) for warning in warnings(system)] == [f"the schema has no class <{E}Animl>"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--entailment", "rhodf", "--static", "-?format=nt"], "static data from standard input cannot be the schema"),
        (["--entailment", "rhodf", "--schema", "missing.nt"], "`missing.nt`"),
        (["--entailment", "rhodf", "--schema", "malformed.nt"], "malformed.nt:1"),
        (["--schema", "zoo.nt"], "`--schema` goes with `--entailment`"),
    ],
)
def test_wrong_options(options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("q.rq", QUERY), ("zoo.nt", f"{CATS[0]}\n"), ("malformed.nt", "<urn:a> <urn:b\n")):
        Path(name).write_text(text)
    with pytest.raises(SquallError, match=re.escape(message)):
        command.main(["run", "q.rq", *options], prog_name="squall", standalone_mode=False)


def test_malformed_static_data_are_dead_letters_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema is read from static data before the run, which reads them again: a dead letter counts once."""
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text(QUERY)
    Path("zoo.nt").write_text(f"{CATS[0]}\n<urn:a> <urn:b\n<{E}kit> {TYPE} <{E}Cat> .\n")
    options = ["--entailment", "rhodf", "--static", "zoo.nt", "--dead-letters", "lost.ndjson", "--sink", "out.ndjson"]
    with suppress(SystemExit):
        command.main(["run", "q.rq", *options], prog_name="squall", standalone_mode=False)
    assert len(Path("lost.ndjson").read_text().splitlines()) == 1
    assert f"{E}kit" in Path("out.ndjson").read_text()


DOGS = Triple(iri(E + "Dog"), SUB_CLASS, iri(E + "Animal"))
RECENT_ANIMALS = f"REGISTER QUERY q AS PREFIX : <{E}> SELECT ?x FROM STREAM :a [RANGE 4ms STEP 2ms] {{ ?x a :Animal }}"
COUNTED_ANIMALS = f"PREFIX : <{E}> SELECT ?x {{ STREAM :a [TRIPLES 3] {{ ?x a :Animal }} }}"
ANY_ANIMALS = f"PREFIX : <{E}> SELECT ?x {{ GRAPH ?g {{ ?x a :Animal }} }}"
FORMS: dict[str, Callable[[list[Event]], Iterable[Event]]] = {
    "batch": list, "events": iter, "columns": Columns.of, "static": lambda events: events[:1],
}  # fmt: skip


@pytest.mark.parametrize(
    ("query", "lexer"),
    [(QUERY, "sparql"), (RECENT_ANIMALS, "csparql"), (COUNTED_ANIMALS, "cqels"), (ANY_ANIMALS, "sparql")],
)
@pytest.mark.parametrize(
    "axiom",
    [DOGS, Triple(iri(E + "p"), TYPE, SYMMETRIC), Triple(iri(E + "p"), DOMAIN, iri(E + "Cat"))],
    ids=["subclass", "symmetric", "domain"],
)
@pytest.mark.parametrize("form", FORMS)
def test_a_stream_must_not_change_the_schema(query: str, lexer: str, axiom: Triple, form: str) -> None:
    plan = squall.plan(squall.compile(query, lexer=lexer, entailment="rhodf", schema=CATS))
    kit = Triple(iri(E + "kit"), TYPE, iri(E + "Cat"))
    assert list(squall.run(plan, [Event(1, (kit, *CATS), A)])), "what the schema says already changes nothing"
    events = [Event(1, (kit,), A), Event(2, (axiom,), A)]
    static = [Event(ALWAYS, (axiom,), A)] if form == "static" else []
    with pytest.raises(SquallError, match=re.escape(f"not: {axiom}")):
        list(squall.run(plan, FORMS[form](events), static=static))


DROPPING_BUILDERS = [
    "iterator",
    "toy",
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more]),
    pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.more]),
]


def dropping_plan(query: str, lexer: str) -> Plan:
    return squall.plan(
        squall.compile(query, lexer=lexer, entailment="rhodf", schema=CATS, schema_changes="dead-letters")
    )


KIT, TOM = (Triple(iri(E + name), TYPE, iri(E + "Cat")) for name in ("kit", "tom"))
P_IS_SYMMETRIC = Triple(iri(E + "p"), TYPE, SYMMETRIC)
CHANGING = [
    Event(1, (KIT, DOGS, P_IS_SYMMETRIC), A), Event(2, (P_IS_SYMMETRIC,), A), Event(7, (TOM, *CATS), A),
    Event(8, (DOGS,), B),
]  # fmt: skip
WITHOUT_CHANGES = [CHANGING[0]._replace(facts=(KIT,)), CHANGING[1]._replace(facts=()), CHANGING[2]]
READ_BY_QUERY = [
    (QUERY, "sparql", {A, B, DEFAULT_STREAM}), (RECENT_ANIMALS, "csparql", {A, DEFAULT_STREAM}),
    (COUNTED_ANIMALS, "cqels", {A}),
]  # fmt: skip
"""Queries with their languages, and the streams that they read; static data are of the default stream."""


@pytest.mark.parametrize("builder", DROPPING_BUILDERS)
@pytest.mark.parametrize(("query", "lexer", "streams"), READ_BY_QUERY)
@pytest.mark.parametrize("form", ["batch", "columns"])
def test_what_would_change_the_schema_is_a_dead_letter_by_option(
    query: str, lexer: str, streams: set[str], form: str, builder: str
) -> None:
    plan, ledger = dropping_plan(query, lexer), DeadLetterFile()
    job = squall.build(plan, ToyJob if builder == "toy" else builder, Options(ledger=ledger))
    batches = [CHANGING] if form == "batch" else [Columns.of([event]) for event in CHANGING]
    static = [Event(ALWAYS, (DOGS,))]
    outputs = sorted((out.time, str(out.fact)) for out in job.run(batches, static))
    last = CHANGING[3] if B not in streams else CHANGING[3]._replace(facts=())
    assert outputs == sorted((out.time, str(out.fact)) for out in squall.run(plan, [*WITHOUT_CHANGES, last]))
    assert outputs
    expected = {("schema", A): 3, ("schema", B): 1, ("schema", DEFAULT_STREAM): 1}
    assert ledger.counts == {key: number for key, number in expected.items() if key[1] in streams}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("query", "lexer", "streams"), READ_BY_QUERY)
def test_dead_letters_do_not_depend_on_how_micro_batches_are_run(
    query: str, lexer: str, streams: set[str], seed: int
) -> None:
    plan, letters = dropping_plan(query, lexer), list[DeadLetter]()
    outputs = in_memory.run_anyhow(plan, [CHANGING[:2], CHANGING[2:]], (), seed, dead_letters=letters)
    last = CHANGING[3] if B not in streams else CHANGING[3]._replace(facts=())
    expected = squall.run(plan, [*WITHOUT_CHANGES, last])
    assert sorted((out.time, str(out.fact)) for out in outputs) == sorted((out.time, str(out.fact)) for out in expected)
    texts = [f"1 {DOGS}", f"1 {P_IS_SYMMETRIC}", f"2 {P_IS_SYMMETRIC}", *([f"8 {DOGS}"] if B in streams else [])]
    assert sorted(letter.text for letter in letters) == texts
    assert {letter.cause for letter in letters} == {"schema"}


def test_without_a_ledger_a_change_of_the_schema_is_an_error() -> None:
    with pytest.raises(SquallError, match=re.escape(f"not: {DOGS}")):
        list(squall.run(dropping_plan(QUERY, "sparql"), CHANGING))


def test_a_removal_of_what_the_schema_says_changes_nothing() -> None:
    system = squall.compile(QUERY, lexer="sparql", entailment="rhodf", schema=CATS, removals=True)
    events = [Event(1, (KIT,)), Event(2, (), removed=(*CATS, KIT))]
    assert outputs(system, events, ()) == [(1, f"?x=<{E}kit>")]


def test_the_command_puts_changes_of_the_schema_among_the_dead_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("q.rq", QUERY), ("zoo.nt", f"{CATS[0]}\n"), ("data.nt", f"{KIT}\n{DOGS}\n")):
        Path(name).write_text(text)
    options = [
        "--entailment",
        "rhodf",
        "--schema",
        "zoo.nt",
        "--source",
        "data.nt",
        "--dead-letters",
        "lost.ndjson",
        "--sink",
        "out.ndjson",
    ]
    changes = ["--schema-changes", "dead-letters"]
    for more in ([], changes, [*changes, "--strict"]):
        try:
            command.main(["run", "q.rq", *options, *more], prog_name="squall", standalone_mode=False)
            code: object = 0
        except SystemExit as error:
            code = error.code
        except SquallError as error:
            code = str(error)
        printed = capsys.readouterr().err
        if not more:
            assert "--schema-changes dead-letters" in f"{code}{printed}"
            continue
        assert code == int("--strict" in more)
        assert "kit" in Path("out.ndjson").read_text()
        assert "1 schema" in printed
        (line,) = Path("lost.ndjson").read_text().splitlines()
        assert json.loads(line)["text"].endswith(str(DOGS))


def test_readers_deliver_what_would_change_the_schema() -> None:
    plan = squall.plan(squall.compile(QUERY, lexer="sparql", entailment="rhodf", schema=CATS))
    predicates = predicates_to_read(plan)
    assert predicates is not None
    assert {SUB_CLASS, INVERSE, TYPE} <= predicates


def test_a_stream_that_no_pattern_reads_may_say_anything() -> None:
    plan = squall.plan(squall.compile(RECENT_ANIMALS, lexer="csparql", entailment="rhodf", schema=CATS))
    assert list(squall.run(plan, [Event(1, (DOGS,), B)])) == []


PRAGMAS = {
    "sparql": f"# pragma entailment rhodf\n{QUERY}",
    "csparql": f"{RECENT_ANIMALS}\n#pragma entailment rhodf",
    "cqels": f"  ## pragma entailment   rhodf\n{COUNTED_ANIMALS}",
    "jena": f"// pragma entailment rhodf\n[r: (?x rdf:type <{E}Animal>) -> (?x rdf:type <{E}Seen>)]",
    "rifps": f"(* pragma entailment rhodf *)\nDocument(Group(Forall ?x (?x # <{E}Seen> :- ?x # <{E}Animal>)))",
}


@pytest.mark.parametrize("language", PRAGMAS)
def test_a_program_names_its_regime(language: str) -> None:
    kit = Event(1, (Triple(iri(E + "kit"), TYPE, iri(E + "Cat")),), A)
    without = PRAGMAS[language].replace("rhodf", "none")
    for default, text in (("none", PRAGMAS[language]), ("rhodf", PRAGMAS[language]), ("rhodf", without)):
        system = squall.compile(text, lexer=language, entailment=default, schema=lambda _: CATS)
        assert bool(list(squall.run(squall.plan(system), [kit]))) == (text != without), (default, text)


def test_a_pragma_of_rif_is_on_a_line_of_its_own() -> None:
    with pytest.raises(SquallError, match="cannot stand here"):
        squall.compile(PRAGMAS["rifps"].replace("\n", " "), lexer="rifps")


ONTOLOGY = f"""@prefix : <{E}> . @prefix owl: <{OWL}> .
:Animal a owl:Class . :Zebra a owl:Class . :Cat <http://www.w3.org/2000/01/rdf-schema#subClassOf> :Animal ."""


@pytest.mark.parametrize("options", [{"entailment": "rhodf"}, {"entailment": "rdfs"},
                                     {"rules": ["rhodf"], "specialise": True}])  # fmt: skip
def test_names_that_a_schema_has_almost_are_warned_of(tmp_path: Path, options: dict[str, Any]) -> None:
    """An ontology may be a schema, whichever syntax of RDF it is in. What it only declares is a name as well."""
    (file := tmp_path / "zoo.owl").write_text(ONTOLOGY)
    query = f"PREFIX : <{E}> SELECT * {{ ?x a :Animl . ?y a :Zebr . ?z a :Zebra . ?a a :Stone }}"
    system = squall.compile(query, lexer="sparql", schema=[file], **options)
    assert [(warning.message, warning.hint) for warning in warnings(system)] == [
        (f"the schema has no class <{E}Animl>", "did you mean `Animal`?"),
        (f"the schema has no class <{E}Zebr>", "did you mean `Zebra`?"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("zoo.owl", ONTOLOGY[:-2], r"malformed: .*zoo.owl:2: .*\nhint: correct it"),
        ("zoo.ttl", ONTOLOGY[:-2], r"malformed: .*zoo.ttl:2: .*\nhint: correct it"),
        ("zoo.ofn", "Ontology()", "is in functional-style syntax.*\nhint: give it as a program"),
    ],
)
def test_a_schema_that_cannot_be_read(tmp_path: Path, name: str, text: str, message: str) -> None:
    (file := tmp_path / name).write_text(text)
    with pytest.raises(SquallError, match=message):
        squall.compile(QUERY, lexer="sparql", entailment="rhodf", schema=[file])


CLAUSES = {
    "csparql": RECENT_ANIMALS.replace("SELECT", "REASONING [U] SELECT"),
    "cqels": COUNTED_ANIMALS.replace("SELECT", "reasoning [u] SELECT"),
    "rspql": f"""PREFIX : <{E}> REGISTER RSTREAM <out> AS # of subclasses
        REASONING [ U ] SELECT * FROM NAMED WINDOW :w ON :a [RANGE PT0.003S] {{ WINDOW :w {{ ?x a :Animal }} }}""",
    "sparqlstream": f"""REASONING [U] PREFIX : <{E}>
        SELECT ISTREAM ?x FROM NAMED STREAM :a [NOW-3 MS] WHERE {{ GRAPH :a {{ ?x a :Animal }} }}""",
}


@pytest.mark.parametrize("language", CLAUSES)
def test_a_query_names_its_reasoning(language: str) -> None:
    text = CLAUSES[language]
    without = re.sub(r"REASONING \[ ?U ?\]", "", text, flags=re.IGNORECASE)
    assert without != text
    printed = str(plugins.load(plugins.LEXERS, language)(text, "q"))
    kit = Event(1, (Triple(iri(E + "kit"), TYPE, iri(E + "Cat")),), A)
    ended = Event(9, (Triple(iri(E + "tom"), iri(E + "is"), iri(E + "tom")),), A)

    def answers(query: str, default: str) -> set[tuple[int, str]]:
        system = squall.compile(query, lexer=language, entailment=default, schema=lambda _: CATS)
        return {(out.time, str(out.fact)) for out in squall.run(squall.plan(system), [kit, ended])}

    expected = answers(without, "rhodf")
    assert expected
    assert answers(text, "none") == answers(printed, "none") == expected
    assert answers(without, "none") != expected


def test_the_reasoning_of_a_query_is_nearer_than_a_pragma(tmp_path: Path) -> None:
    """A pragma is for all queries of a program, beside a program with neither."""
    (tmp_path / "near.csparql").write_text(f"#pragma entailment none\n{CLAUSES['csparql']}")
    (tmp_path / "plain.csparql").write_text(RECENT_ANIMALS.replace("QUERY q", "QUERY plain"))
    system = squall.compile(*sorted(tmp_path.glob("*.csparql")), schema=lambda _: CATS)
    kit = Event(1, (Triple(iri(E + "kit"), TYPE, iri(E + "Cat")),), A)
    assert {out.rule for out in squall.run(squall.plan(system), [kit])} == {"q"}


@pytest.mark.parametrize(
    ("clause", "messages", "hint"),
    [
        ("REASONING [SM, sm]", ["the reasoning mode `SM` is written twice"], "leave one of them out"),
        ("REASONING [u, sm, x]", ["there is no reasoning mode `X`"], "`[U,SM]`"),
        ("REASONING [U, U]", ["`U` is written twice"], "leave one of them out"),
        ("REASONING []", ["`]` cannot stand here"], "expected a name"),
        ("REASONING U", ["`U` cannot stand here"], "expected `[`"),
        ("REASNING [U]", ["`REASNING` cannot stand here"], "did you mean `REASONING`?"),
    ],
)
def test_wrong_reasoning(clause: str, messages: list[str], hint: str) -> None:
    text = RECENT_ANIMALS.replace("SELECT", f"{clause} SELECT")
    with pytest.raises(SquallError) as caught:
        squall.compile(text, lexer="csparql", schema=lambda _: CATS)
    errors = single_errors(caught.value)
    assert len(errors) == len(messages)
    for error, message in zip(errors, messages, strict=True):
        assert message in error.message
        assert error.origin is not None
        assert error.origin.words in clause
    assert hint in str(caught.value)


def test_sparql_names_its_regime_by_a_pragma_only() -> None:
    with pytest.raises(SquallError, match=re.escape("# pragma entailment rhodf")):
        squall.compile(f"REASONING [U] {QUERY}", lexer="sparql")


def test_a_schema_without_triples_is_warned_of() -> None:
    (warning,) = warnings(squall.compile(QUERY, lexer="sparql", entailment="rhodf"))
    assert "the schema has no triples" in warning.message
    assert "--schema" in (warning.hint or "")


def test_programs_of_one_run_have_regimes_of_their_own(tmp_path: Path) -> None:
    for name, regime in (("animals", "rhodf"), ("plain", "none")):
        (tmp_path / f"{name}.csparql").write_text(
            f"#pragma entailment {regime}\n{RECENT_ANIMALS.replace('QUERY q', f'QUERY {name}')}"
        )
    system = squall.compile(*sorted(tmp_path.glob("*.csparql")), schema=lambda _: CATS)
    kit = Event(1, (Triple(iri(E + "kit"), TYPE, iri(E + "Cat")),), A)
    assert {out.rule for out in squall.run(squall.plan(system), [kit])} == {"animals"}


def test_what_only_plain_patterns_read_may_say_anything(tmp_path: Path) -> None:
    (tmp_path / "animals.csparql").write_text(f"#pragma entailment rhodf\n{RECENT_ANIMALS}")
    (tmp_path / "axioms.csparql").write_text(
        f"REGISTER QUERY axioms AS SELECT ?x FROM STREAM <{B}> [RANGE 4ms STEP 2ms] {{ ?x <{RDFS}subClassOf> ?y }}"
    )
    plan = squall.plan(squall.compile(*sorted(tmp_path.glob("*.csparql")), schema=lambda _: CATS))
    assert {out.rule for out in squall.run(plan, [Event(1, (DOGS,), B)])} == {"axioms"}
    with pytest.raises(SquallError, match="what the schema does not"):
        list(squall.run(plan, [Event(1, (DOGS,), A)]))


@pytest.mark.parametrize(
    ("pragma", "message", "hint"),
    [
        ("# pragma entailmnt rhodf", "no pragma `entailmnt`", "did you mean `entailment`?"),
        ("# pragma entailment rhodfs", "no entailment regime `rhodfs`", "did you mean"),
        ("# pragma entailment", "no entailment regime ``", "write `pragma entailment none|rhodf|rdfs`"),
        ("# pragma entailment rhodf rdfs", "no entailment regime `rhodf rdfs`", ""),
        ("#pragma entailment none\n#pragma entailment rdfs", "not both `none` and `rdfs`", "leave one"),
    ],
)
def test_wrong_pragmas(pragma: str, message: str, hint: str) -> None:
    with pytest.raises(SquallError, match=re.escape(message)) as caught:
        squall.compile(f"{pragma}\n{QUERY}", lexer="sparql")
    assert hint in str(caught.value)
    assert caught.value.origin is not None
    assert caught.value.origin.line == pragma.count("\n") + 1


def test_the_programs_of_a_run_have_one_regime(tmp_path: Path) -> None:
    for regime in REGIMES:
        (tmp_path / f"{regime}.rq").write_text(f"# pragma entailment {regime}\n{QUERY}")
    with pytest.raises(SquallError, match="not both `rdfs` and `rhodf`"):
        squall.compile(*tmp_path.glob("*.rq"))


ANIMAL, BEAST = iri(E + "Animal"), iri(E + "Beast")
ZOO = [
    *CATS,
    Triple(ANIMAL, SUB_CLASS, BEAST),
    Triple(BEAST, SUB_CLASS, ANIMAL),
    Triple(iri(E + "sees"), DOMAIN, BEAST),
]


def test_check_says_what_the_schema_lacks_and_what_it_makes_the_same() -> None:
    text = f"PREFIX : <{E}> SELECT ?x {{ ?x a :Animl ; :see ?y ; :sees ?y ; :name ?n . ?y a :Beast , :Sees }}"
    findings = lint(text, lexer="sparql", entailment="rhodf", schema=ZOO)
    assert [(finding.code, finding.severity) for finding in findings] == [
        ("schema-cycle", "info"), ("translation", "warning"), ("translation", "warning"),
    ]  # fmt: skip
    assert findings[0].message == f"the schema makes <{E}Animal> and <{E}Beast> the same"
    assert findings[1].hint is not None
    assert "`Animal`" in findings[1].hint
    assert findings[2].message == f"the schema has no property <{E}see>"


def test_check_refuses_what_a_run_refuses() -> None:
    (finding,) = lint(QUERY, lexer="sparql", schema=CATS)
    assert "without an entailment regime" in finding.message
    rule = f"[r: (?x <{E}below> ?y) -> (?x <{RDFS}subClassOf> ?y)]"
    (finding,) = lint(rule, lexer="jena", entailment="rhodf", schema=CATS)
    assert finding.severity == "error"
    assert "derives what a schema says" in finding.message
    (finding,) = lint(QUERY, lexer="sparql", entailment="rhodf", schema=["missing.ttl"])
    assert "missing.ttl" in finding.message


def test_check_finds_no_fault_in_patterns_of_what_is_entailed() -> None:
    rules = f"[a: (?x <{E}p> ?y) -> (?x rdf:type <{E}Cat>)] [b: (?x rdf:type <{E}Animal>) -> (?x <{E}is> <{E}b>)]"
    sample = [Event(1, (Triple(iri(E + "x"), iri(E + "p"), iri(E + "y")),))]
    assert [finding.code for finding in lint(rules, lexer="jena", sample=sample)] == ["never-fires"]
    assert lint(rules, lexer="jena", sample=sample, entailment="rhodf", schema=CATS) == ()


def test_check_warns_of_patterns_that_rule_sets_do_not_reach() -> None:
    (finding,) = lint(ANY_ANIMALS, lexer="sparql", rules=["rhodf"])
    assert "without what the rule sets derive" in finding.message


def test_the_command_checks_with_a_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text(QUERY.replace("Animal", "Animl"))
    Path("zoo.nt").write_text(f"{CATS[0]}\n")
    for option in ("--schema", "--static"):
        with suppress(SystemExit):
            command.main(["check", "q.rq", "--entailment", "rhodf", option, "zoo.nt"], standalone_mode=False)
        assert f"the schema has no class <{E}Animl>" in capsys.readouterr().out


def test_explain_says_what_is_rewritten() -> None:
    system = squall.compile(QUERY, lexer="sparql", entailment="rhodf", schema=CATS)
    text = explain.text(system)
    assert "entailment with a schema of 1 triple, which is fixed" in text
    assert "match       what entails ?x rdf:type :Animal" in text
    assert "match       ?x rdf:type :Cat" in text
    plan = explain.text(squall.plan(system))
    assert "scan the default graph, with a fixed schema" in plan
    assert "match $0 rdf:type one of (:Animal :Cat)" in plan


@on_engines
def test_engines_agree(builder: str, number: int) -> None:
    def law(
        pattern: str, language: str, regime: str, schema: frozenset[Triple], stream: list[Event], seed: int
    ) -> None:
        text = PREFIXES + SOURCES[language].format(pattern)
        plan = squall.plan(squall.compile(text, lexer=language, window="RANGE 5ms", entailment=regime, schema=schema))
        actual = sorted((out.time, str(out.fact)) for out in in_memory.outputs_on(builder, plan, stream, seed))
        assert actual == sorted((out.time, str(out.fact)) for out in squall.run(plan, stream))

    hold(
        law, number, pattern=st.sampled_from(PATTERNS), language=st.sampled_from([*SOURCES]),
        regime=st.sampled_from(REGIMES), schema=schemas(), stream=events(), seed=st.integers(0, 1000),
    )  # fmt: skip


@pytest.mark.parametrize("head", ["?x ?p ?y", "?x rdf:type ?y"])
def test_a_rule_that_may_derive_the_schema_is_warned_of(head: str) -> None:
    system = squall.compile(f"[r: (?p ?x ?y) -> ({head})]", lexer="jena", entailment="rhodf", schema=CATS)
    (warning,) = warnings(system)
    assert "nothing follows from what `r` derives of classes" in str(warning.message)


def run_with_checkpoint(capsys: pytest.CaptureFixture[str], builder: str, *arguments: str) -> str:
    """Runs `QUERY`, in a file, over one cat, and returns what the run says."""
    Path("q.rq").write_text(QUERY)
    Path("data.nt").write_text(f"<{E}kit> {TYPE} <{E}Cat> .\n")
    files = ("--source", "data.nt", "--sink", "out.ndjson", "--checkpoint", "saved")
    try:
        command.main(["run", *arguments, *files, "--builder", builder], prog_name="squall", standalone_mode=False)
    except (SystemExit, SquallError) as error:
        return f"{error} {capsys.readouterr().err}"
    return capsys.readouterr().err


@pytest.mark.parametrize("builder", ["iterator", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more])])
def test_a_checkpoint_of_another_schema_is_refused_with_what_changed(
    builder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*axioms: Triple) -> str:
        """Runs the query with a schema, and returns what the run says."""
        Path("zoo.nt").write_text("".join(f"{axiom}\n" for axiom in axioms))
        return run_with_checkpoint(capsys, builder, "q.rq", "--entailment", "rhodf", "--schema", "zoo.nt")

    run(*CATS)
    unread = Triple(iri(E + "Pine"), SUB_CLASS, iri(E + "Tree"))
    assert "that of another run" not in run(*CATS, unread), "the query does not read it"
    message = run(DOGS)
    assert "changed rules `q`" in message
    assert f"its schema is without `{CATS[0]}`" in message
    assert f"its schema is with `{DOGS}`" in message


@pytest.mark.parametrize("builder", ["iterator", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more])])
def test_a_checkpoint_of_another_ontology_is_refused_with_the_axioms_that_changed(
    builder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*axioms: str) -> str:
        """Runs the query with an ontology, and returns what the run says."""
        Path("zoo.ofn").write_text(f"Prefix(:=<{E}>) Ontology({' '.join(axioms)})")
        return run_with_checkpoint(capsys, builder, "zoo.ofn", "q.rq")

    cats, dogs = "SubClassOf(:Cat :Animal)", "SubClassOf(:Dog :Animal)"
    run(cats, 'AnnotationAssertion(:note :Cat "a")')
    assert "that of another run" not in run('AnnotationAssertion(:note :Cat "b")', cats), "annotations mean nothing"
    message = run(cats, dogs)
    assert "that of another run" in message
    assert f"its schema is with `SubClassOf(<{E}Dog> <{E}Animal>)`" in message
    assert "without `SubClassOf" not in message
    assert f"its schema is without `SubClassOf(<{E}Cat> <{E}Animal>)`" in run(dogs)
