"""Specialised rule sets derive over data what the rule sets derive over the schema and the data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st

import squall
from squall import System
from squall.cli import command
from squall.errors import SquallError
from squall.model import rules
from squall.plan import Plan
from squall.rdf import ALWAYS, OWL, RDFS, Event, Solution, Triple, is_literal
from squall.rdf.vocabulary import TYPE, is_schema_triple
from squall.testing import static
from tests.in_memory import outputs_on
from tests.laws import PLANNERS, examples, hold
from tests.ontologies import FACTS, IN_OWL, IN_RDFS, SCHEMA_OF_USERS, Graph, graphs
from tests.test_reasoning import (
    PATTERNS,
    PREFIXES,
    SOURCES,
    A,
    B,
    E,
    events,
    outputs,
    schemas,
)

SETS = [
    ("rhodf",), ("rhodf", "inverse"), ("rdfs",), ("rdfs", "rdfs-axioms"),
    pytest.param(("rdfs", "datatypes"), marks=pytest.mark.more),
    pytest.param(("owl2rl",), marks=pytest.mark.more),
]  # fmt: skip


@contextmanager
def suppress_errors(message: str) -> Iterator[None]:
    """Suppresses errors with a message: data that change the schema are refused."""
    try:
        yield
    except SquallError as error:
        if message not in str(error):
            raise


@cache
def generic(planner: str, *sets: str) -> Plan:
    return squall.plan(squall.compile(rules=sets), planner)


def derived(plan: Plan, facts: Graph) -> Graph:
    outputs = squall.run(plan, [], static=[Event(ALWAYS, (triple,)) for triple in sorted(facts)])
    return facts | {out.fact for out in outputs if isinstance(out.fact, Triple)}


def valid(graph: Graph) -> list[str]:
    return sorted(str(triple) for triple in graph if not is_literal(triple.subject))


def check_law(sets: tuple[str, ...], planner: str, graph: Graph, data: Graph) -> None:
    """Checks the law for a graph whose schema triples are the schema, and whose others are data."""
    schema = frozenset(filter(is_schema_triple, graph))
    facts = data | (graph - schema)
    system = squall.compile(rules=sets, specialise=True, schema=graph)
    expected = derived(generic(planner, *sets), schema | facts)
    with suppress_errors("two names of the schema"):
        assert valid(derived(squall.plan(system, planner), facts) | schema) == valid(expected)


@examples(60)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("sets", SETS, ids="+".join)
def test_a_specialised_rule_set_derives_what_the_generic_one_derives(
    sets: tuple[str, ...], planner: str, many: int
) -> None:
    def law(graph: Graph, data: Graph) -> None:
        check_law(sets, planner, graph, data)

    is_large = not {"owl2rl", "datatypes"}.isdisjoint(sets)
    axioms = IN_OWL if "owl2rl" in sets else IN_RDFS
    hold(law, many // 4 if is_large else many, graph=graphs(axioms), data=graphs(FACTS))


OF_THE_SCHEMA_LANGUAGE = [
    (("rdfs",), "rdf:Property rdfs:subClassOf :C .", ":x :p :y ."),
    (("rdfs",), "rdfs:Class rdfs:subClassOf :C . :p rdfs:range rdfs:Class .", ":x :p :y . :z a :y ."),
    (("rdfs",), ":p rdfs:subPropertyOf rdfs:subClassOf .", ":x :p :y . :z a :x ."),
    (("rdfs", "rdfs-axioms"), ":E rdfs:subClassOf :E .", ":x rdf:_1 :y ; :p :y ."),
]  # fmt: skip
"""Rule sets with a schema and data: classes and properties of the language of schemas have some above them."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("sets", "schema", "data"), OF_THE_SCHEMA_LANGUAGE)
def test_what_is_above_the_language_of_schemas(sets: tuple[str, ...], schema: str, data: str) -> None:
    """An instance of a rule may read in its turn what data say of classes and properties."""
    with suppress_errors("what the schema says"):
        check_law(sets, "rete", frozenset(triples_of(schema)), frozenset(triples_of(data)))


PATTERNS_OF_RULES = {
    "schema": (
        "(?c rdfs:subClassOf ?d)", "(?p rdfs:subPropertyOf ?q)", "(?p rdfs:domain ?c)", "(:C rdfs:subClassOf ?d)",
        "(?p rdf:type owl:SymmetricProperty)", "(?p rdfs:range ?d)",
    ),
    "data": ("(?x rdf:type ?c)", "(?x ?p ?y)", "(?x :p ?y)", "(?y rdf:type ?d)", "(?y ?q ?x)", "(?d :q ?x)"),
    "test": ("", "", "notEqual(?x ?y)", "notLiteral(?y)", "notEqual(?c ?d)", "notBNode(?q)"),
    "head": (
        "(?x rdf:type ?d)", "(?x ?q ?y)", "(?y ?p ?x)", "(?y rdf:type ?c)", "(?x :r ?y)", "(?x rdf:type :D)",
        "(?c rdfs:subClassOf ?d)", "(?x rdfs:subClassOf :D)",
    ),
}  # fmt: skip
_VARIABLE = re.compile(r"\?\w")


@st.composite
def rule_texts(draw: st.DrawFn) -> str:
    """Returns rules that read a schema, as Jena rules."""
    lines = [f"@prefix : <{E}>.", f"@prefix owl: <{OWL}>."]
    for number in range(draw(st.integers(1, 4))):
        kinds = ("schema", "data", *(("data",) if draw(st.booleans()) else ()))
        body = [draw(st.sampled_from(PATTERNS_OF_RULES[kind])) for kind in kinds]
        bound = {*_VARIABLE.findall(" ".join(body))}
        ends = [
            [part for part in PATTERNS_OF_RULES[kind] if bound.issuperset(_VARIABLE.findall(part))]
            for kind in ("test", "head")
        ]
        assume(ends[1])
        test, head = (draw(st.sampled_from(parts)) for parts in ends)
        lines.append(f"[r{number}: {' '.join(body)} {test} -> {head}]")
    return "\n".join(lines)


@examples(200)
def test_rules_of_users_derive_the_same(tmp_path: Path, many: int) -> None:
    """Those by which data would change the schema are refused, before the run or by it."""
    path = tmp_path / "own.jena"

    def law(text: str, graph: Graph, data: Graph) -> None:
        path.write_text(text)
        generic.cache_clear()
        with suppress_errors("what the schema says"):
            check_law((str(path),), "rete", graph, data)

    hold(law, many, text=rule_texts(), graph=graphs(SCHEMA_OF_USERS), data=graphs(FACTS))


@examples(24)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("language", SOURCES)
@pytest.mark.parametrize("sets", [("rhodf", "inverse"), ("rdfs",)], ids="+".join)
def test_queries_over_windows_have_the_answers_of_the_generic_rule_set(
    sets: tuple[str, ...], language: str, many: int
) -> None:
    def law(pattern: str, schema: frozenset[Triple], stream: list[Event]) -> None:
        text = PREFIXES + SOURCES[language].format(pattern)
        compile_query = partial(squall.compile, text, lexer=language, window="RANGE 5ms", rules=sets)
        with suppress_errors("what the schema says"):
            system = compile_query(specialise=True, schema=schema)
            assert outputs(system, stream, ()) == outputs(compile_query(), stream, schema)

    hold(law, many, pattern=st.sampled_from(PATTERNS), schema=schemas(), stream=events())


PREFIXES_OF_OWL = f"@prefix : <{E}>. @prefix owl: <{OWL}>. @prefix rdfs: <{RDFS}>. "
ZOO = """:Cat rdfs:subClassOf :Animal . :Kitten rdfs:subClassOf :Cat . :keeps rdfs:range :Animal .
:grandparent owl:propertyChainAxiom (:parent :parent) .
:Keeper owl:equivalentClass [ owl:onProperty :keeps ; owl:someValuesFrom :Cat ] .
:Parent owl:intersectionOf (:Cat [ owl:onProperty :parent ; owl:someValuesFrom owl:Thing ]) .
:Red owl:onProperty :colour ; owl:hasValue "red" . :Even owl:onProperty :number ; owl:hasValue 2 .
"""
KEY = ":Twin owl:hasKey (:parent :number) . :C rdfs:subClassOf :D ."
CASES = {
    "?x a :Animal": (":a a :Kitten . :b :keeps :c .", ["a", "c"]),
    "?x a :Keeper": (":a :keeps :b . :b a :Kitten .", ["a"]),
    "?x :grandparent :c": (":a :parent :b . :b :parent :c .", ["a"]),
    "?x a :Parent": (":a a :Kitten ; :parent :b . :b a :Cat .", ["a"]),
    "?x a :Red": (':a :colour "red" . :b :colour "blue" .', ["a"]),
    "?x a :Even": (':a :number 2.0 . :b :number 3 .', ["a"]),
    "?x rdfs:subClassOf :Animal": (":a :likes :b .", ["Cat", "Kitten", "Parent"]),
}  # fmt: skip


def triples_of(text: str) -> list[Triple]:
    return [fact for event in static(PREFIXES_OF_OWL + text) for fact in event.facts if isinstance(fact, Triple)]


def compiled(query: str, schema: str = ZOO, *sets: str, **options: Any) -> System:
    text = f"PREFIX : <{E}> PREFIX owl: <{OWL}> PREFIX rdfs: <{RDFS}> SELECT ?x {{ {query} }}"
    names = sets or ("owl2rl",)
    return squall.compile(text, lexer="sparql", rules=names, specialise=True, schema=triples_of(schema), **options)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("pattern", CASES)
@pytest.mark.parametrize("builder", ["iterator", pytest.param("in memory", marks=pytest.mark.more)])
def test_examples_of_owl_2_rl(pattern: str, builder: str) -> None:
    data, expected = CASES[pattern]
    stream = [Event(time, (triple,)) for time, triple in enumerate(triples_of(data))]
    outputs = outputs_on(builder, squall.plan(compiled(pattern)), stream, 3)
    answers = {str(out.fact.values[0]) for out in outputs if isinstance(out.fact, Solution)}
    assert {answer for answer in answers if answer.startswith(f"<{E}")} == {f"<{E}{name}>" for name in expected}


def test_rules_that_a_query_does_not_read_are_left_out() -> None:
    """A class of the hierarchy needs a rule for each subclass, and no lists, no equality and no restrictions."""
    hierarchy = ":Cat rdfs:subClassOf :Animal . :Kitten rdfs:subClassOf :Cat . :keeps rdfs:range :Tree ."
    for sets in (("rhodf",), ("owl2rl",)):
        names = [rule.name for rule in rules(compiled("?x a :Animal", hierarchy, *sets))]
        assert [name for name in names if name != "query"] == ["rdfs9" if sets == ("rhodf",) else "cax-sco"] * 3


def test_without_a_specialised_rule_there_is_none_for_the_query() -> None:
    assert [rule.name for rule in rules(compiled("?x :likes ?y"))] == ["query"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (":Dog rdfs:subClassOf :Animal .", "what the schema does not"),
        (":a owl:sameAs :b .", "what the schema does not"),
        (":keeps a owl:FunctionalProperty .", "what the schema does not"),
    ],
)
def test_a_stream_must_not_change_the_schema(data: str, message: str) -> None:
    plan = squall.plan(compiled("?x a :Animal", ZOO))
    with pytest.raises(SquallError, match=message):
        list(squall.run(plan, [Event(1, tuple(triples_of(data)))]))


def test_what_the_schema_says_already_changes_nothing() -> None:
    events = [Event(1, tuple(triples_of(":Cat rdfs:subClassOf :Animal . :a a :Cat .")))]
    assert list(squall.run(squall.plan(compiled("?x a :Animal")), events))


def test_lists_of_the_data_are_data() -> None:
    """A list of a stream is none of the schema, and may come."""
    events = [Event(1, tuple(triples_of(":a :parts (:b :c) ; a :Cat .")))]
    assert list(squall.run(squall.plan(compiled("?x a :Animal")), events))


@pytest.mark.more
def test_names_of_the_schema_must_not_come_to_be_equal() -> None:
    """The key makes two individuals equal; that two classes are equal would change the schema."""
    plan = squall.plan(compiled("?x a :D", KEY))
    same = ":a a :Twin ; :parent :p ; :number 1 . :b a :Twin ; :parent :p ; :number 1 . :a a :C ."
    answers = {str(out.fact) for out in squall.run(plan, [Event(1, tuple(triples_of(same)))])}
    assert answers == {f"?x=<{E}a>", f"?x=<{E}b>"}
    with pytest.raises(SquallError, match="two names of the schema, which is fixed, are equal"):
        list(squall.run(plan, [Event(1, tuple(triples_of(same.replace(":a", ":C").replace(":b", ":D"))))]))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("(?x :below ?y) -> (?x rdfs:subClassOf ?y)", "derives what the schema says"),
        ("(?x :of ?y) -> (?x rdf:type owl:SymmetricProperty)", "derives what the schema says"),
    ],
)
def test_a_program_must_not_derive_the_schema(rule: str, message: str) -> None:
    text = f"@prefix : <{E}>.\n@prefix owl: <{OWL}>.\n[r: {rule}]"
    with pytest.raises(SquallError, match=message):
        squall.compile(text, lexer="jena", rules=["owl2rl"], specialise=True, schema=triples_of(ZOO))


OWN = f"""@prefix : <{E}>.
[up: (?p :isA :Transitive) (?c rdfs:subClassOf ?d) (?x rdf:type ?c) (?x ?p ?y) -> (?y rdf:type ?d)]
[lonely: (?c rdfs:subClassOf :Animal) (?x rdf:type ?c) noValue(?x :friend ?y) -> (?x rdf:type :Lonely)]
"""


def test_a_rule_set_of_a_file(tmp_path: Path) -> None:
    """A rule with a negation reads the schema while it runs; the others are specialised, and all derive the same."""
    (tmp_path / "own.jena").write_text(OWN)
    schema = ":Cat rdfs:subClassOf :Animal ."
    data = static(PREFIXES_OF_OWL + ":has :isA :Transitive . :a a :Cat ; :has :b . :c a :Cat ; :friend :a .")
    system = compiled("?x ?p ?o", schema, str(tmp_path / "own.jena"))
    assert system.fixed_schema is not None
    assert any("`lonely` is as it was: it has negation" in note for note in system.fixed_schema.notes)
    text = f"PREFIX : <{E}> SELECT ?x ?p ?o {{ ?x ?p ?o }}"
    compile_query = partial(squall.compile, text, lexer="sparql", rules=[str(tmp_path / "own.jena")])
    results = [
        {str(out.fact) for out in squall.run(squall.plan(item), [], static=[*data, *static(PREFIXES_OF_OWL + schema)])}
        for item in (compile_query(), compile_query(specialise=True, schema=triples_of(schema)))
    ]
    assert results[0] == results[1]
    assert {f"?x=<{E}{x}> ?p={TYPE} ?o=<{E}{o}>" for x, o in (("a", "Lonely"), ("b", "Animal"))} <= results[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[r: (?x <urn:p> ?c) -> (?x rdfs:subClassOf ?c)] [s: (?c rdfs:subClassOf ?d) (?x rdf:type ?c) -> "
         "(?x rdf:type ?d)] [t: (?a rdfs:subClassOf ?b) (?b rdfs:subClassOf ?c) -> (?a rdfs:subClassOf ?c)]",
         "the rule `[rt]` derives of data what the schema says"),
        ("[r: (?x <urn:p> ?y) noValue(?x <urn:q> ?y) -> (?x rdfs:subClassOf ?y)] "
         "[s: (?c rdfs:subClassOf ?d) (?x rdf:type ?c) -> (?x rdf:type ?d)]",
         "the rule `r` derives of data what the schema says"),
    ],
)  # fmt: skip
def test_rule_sets_by_which_data_change_the_schema_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "own.jena").write_text(text)
    with pytest.raises(SquallError, match=message):
        squall.compile(rules=[str(tmp_path / "own.jena")], specialise=True, schema=triples_of(ZOO))


def test_a_query_is_no_rule_set(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(f"SELECT ?x {{ ?x a <{E}C> }}")
    with pytest.raises(SquallError, match="derives nothing that others read"):
        squall.compile(rules=[str(tmp_path / "q.rq")])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"specialise": True}, "no rule set to specialise"),
        ({"rules": ["rhodf"], "specialise": "yes"}, "`specialise`"),
        ({"rules": ["rhodf"], "schema": []}, "without an entailment regime"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SquallError, match=message):
        squall.compile(ANIMALS, lexer="sparql", **arguments)


ANIMALS = f"PREFIX : <{E}> SELECT ?x {{ ?x a :Animal }}"


def test_a_rule_set_over_one_stream() -> None:
    """`rhodf?stream=` is specialised, too, and reads that stream alone."""
    schema = triples_of(":Cat rdfs:subClassOf :Animal .")
    system = squall.compile(
        ANIMALS, lexer="sparql", rules=[f"rhodf?stream={A}&window=RANGE 5ms"], specialise=True, schema=schema
    )
    events = [Event(1, tuple(triples_of(":a a :Cat .")), A), Event(2, tuple(triples_of(":b a :Cat .")), B)]
    assert {str(out.fact) for out in squall.run(squall.plan(system), events)} == {f"?x=<{E}a>"}


SPARKWAVE = """:StatusUpdate rdfs:subClassOf :MicroPost . :Tweet rdfs:subClassOf :MicroPost .
:MicroPost rdfs:subClassOf :Post . :from rdfs:subPropertyOf :creator ; rdfs:domain :StatusUpdate .
:author rdfs:subPropertyOf :creator ; rdfs:domain :Tweet . :checkin rdfs:subPropertyOf :discusses ; rdfs:range :Place .
:geo rdfs:subPropertyOf :discusses ; rdfs:range :Place . :accountOf owl:inverseOf :account .
:near a owl:SymmetricProperty ."""
SAME_PLACE = f"""REGISTER QUERY same AS PREFIX : <{E}> SELECT ?person ?place FROM STREAM <{A}> [RANGE 60s]
WHERE {{ ?p1 a :StatusUpdate ; :creator ?u1 ; :discusses ?place . ?p2 a :Tweet ; :creator ?u2 ; :discusses ?place .
?place a :Place . ?person :account ?u1 , ?u2 }}"""


def test_the_schema_of_sparkwave_is_compiled() -> None:
    """The example of Komazec, Cerri and Fensel (DEBS 2012): micro-posts of two services about one place.

    Each link of the epsilon network that the query needs is a rule with one pattern, and no other rule remains.
    """
    options: dict[str, Any] = {"lexer": "csparql", "rules": ["rhodf", "inverse"]}
    schema = triples_of(SPARKWAVE)
    system = squall.compile(SAME_PLACE, specialise=True, schema=schema, **options)
    conclusions = Counter(
        rule.name for rule in rules(system) if rule.name in ("rdfs2", "rdfs3", "rdfs7", "rdfs9", "prp-inv1")
    )
    assert conclusions == {"rdfs2": 2, "rdfs3": 2, "rdfs7": 4, "prp-inv1": 1}
    data = (
        ":s1 :from :u1 ; :checkin :cafe . :u1 :accountOf :ann . :t1 :author :u2 ; :geo :cafe . :u2 :accountOf :ann .",
        ":s2 :from :u3 ; :checkin :park . :u3 :accountOf :bob . :t2 :author :u2 ; :geo :park .",
    )
    events = [Event(time, tuple(triples_of(text)), A) for time, text in enumerate(data, 1)]
    static_data = [Event(ALWAYS, tuple(schema))]
    generic_plan = squall.plan(squall.compile(SAME_PLACE, **options))
    answers = [
        {(out.time, str(out.fact)) for out in outputs}
        for outputs in (squall.run(squall.plan(system), events), squall.run(generic_plan, events, static=static_data))
    ]
    assert answers[0] == answers[1] == {(1, f"?person=<{E}ann> ?place=<{E}cafe>")}


def run(*arguments: str) -> None:
    command.main([*arguments], prog_name="squall", standalone_mode=False)


def test_the_rules_that_are_written_derive_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("zoo.ttl").write_text(PREFIXES_OF_OWL + ZOO)
    Path("animals.rq").write_text(ANIMALS)
    run("specialise", "zoo.ttl", "--rules", "owl2rl", "--for", "animals.rq")
    text = capsys.readouterr().out
    assert "cls-int1-step" in text
    assert "eq-rep" not in text
    Path("zoo.jena").write_text(text)
    data = [Event(1, tuple(triples_of(":a a :Kitten . :b a :Parent . :c :keeps :d .")))]
    plan = squall.plan(squall.compile("zoo.jena", "animals.rq"))
    outputs = {str(out.fact) for out in squall.run(plan, data) if isinstance(out.fact, Solution)}
    assert outputs == {f"?x=<{E}{name}>" for name in "abd"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["zoo.ttl"], "no rule set is given"),
        (["zoo.ttl", "--rules", "rhodf", "--format", "jna"], "did you mean `jena`"),
        (["zoo.ttl", "--rules", "rhofd"], "did you mean `rhodf`"),
        (["missing.ttl", "--rules", "rhodf"], "missing.ttl"),
    ],
)
def test_wrong_options(options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("zoo.ttl").write_text(PREFIXES_OF_OWL + ZOO)
    with pytest.raises(SquallError, match=message):
        run("specialise", *options)
