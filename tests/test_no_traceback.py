"""No input ends in a traceback: programs, data, addresses, options and arguments of the Python API, right ones changed
at random places, give a result, a `SquallError` or an error of usage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import strategies as st

import squall
from squall import rdf
from squall.cli import command
from squall.contracts import Interval, Options
from squall.errors import SquallError
from squall.rdf import Event, Triple, iri
from squall.streams import DeadLetterFile, open_sink, open_source, open_static
from squall.testing import cases
from tests.laws import hold

HERE = Path(__file__).parent
A, P, B = (iri(f"http://example.org/{name}") for name in "apb")
FACT = Triple(A, P, B)
PLAN = squall.plan(squall.compile("(?x ?p ?y) -> (?y ?p ?x) .", lexer="jena"))

PROGRAMS: dict[str, list[str]] = {
    "jena": ["@prefix : <http://e/>.\n[r: (?a :p ?b), notEqual(?a, ?b) -> (?b :q 'x'^^xsd:int)]"],
    "sparql": [
        "PREFIX : <http://e/> SELECT ?a (COUNT(?b) AS ?n) { GRAPH ?g { ?a :p/:q* ?b } OPTIONAL { ?b :r 5 } "
        "FILTER(STRLEN(?b) > 1 && ?a IN (:x, 2.5e3)) BIND(NOW() AS ?t) } "
        "GROUP BY ?a HAVING(?n > 1) ORDER BY ?n LIMIT 3",
        "PREFIX : <http://e/> DELETE { ?a :p ?b } INSERT { GRAPH :g { ?a :q [ :r 1 ] } } WHERE { ?a :p ?b }",
    ],
    "csparql": [
        "REGISTER QUERY q AS CONSTRUCT { ?a <urn:b> ?c } FROM STREAM <urn:s> [RANGE 5s STEP 1s] { ?a ?b ?c "
        "MINUS { ?c ?b ?a } VALUES ?a { <urn:x> UNDEF } }",
    ],
    "rspql": [
        "REGISTER RSTREAM <urn:o> AS SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT5S STEP PT1S] "
        "WHERE { WINDOW <urn:w> { ?a ?b ?c } }",
        "PREFIX : <urn:> SELECT ?a (start(?e) AS ?s) FROM NAMED WINDOW :w ON :s [RANGE PT5S] WHERE { EVENT ?e ON :w "
        "{ ?a :p ?x } EVENT ?f ON :w { ?b :q ?x } EVENT ?g ON :w { ?a :r ?y } "
        "MATCH LAST (?e SEQ FIRST ?f WITHIN PT1S) SEQ ?g WITHIN 2s . FILTER(end(?g) > ?y) }",
    ],
    "cqels": [
        "SELECT ?a { STREAM <urn:s> [RANGE 5s SLIDE 1s] { ?a ?b ?c } GRAPH <urn:g> { ?a ?d 5 } }",
        "PREFIX : <urn:> SELECT ?a (start(?a) AS ?s) FROM STREAM :s [RANGE 5s] { ?a :p ?x . ?n :q ?x . ?b :r ?y "
        "FILTER(SEQ(?a ; NOT ?n ; ?b) && ?y > ?x) BIND(?b AS ?c) }",
    ],
    "sparqlstream": ["SELECT RSTREAM ?a FROM NAMED STREAM <urn:s> [NOW - 5 S TO NOW - 1 S SLIDE 1 S] { ?a ?b ?c }"],
    "ctsparql": [
        "PREFIX : <urn:> SELECT ?a (start(?e) AS ?s) FROM STREAM <urn:s> { NOT { ?a :d [] } WITHIN 5s "
        "{ ?a :b ?c } AS ?e NOT { ?a :n 1 } EACH SEQ { ?a :b ?d } AS ?f AFTER 1s BEFORE 10s WHEN (?d > ?c) WITHIN 1m . "
        "FILTER(before(?e, ?f)) }",
        "SELECT * { { { ?a ?b 1 } SEQ { ?a ?b 2 } WITHIN 5s } AND NOT { ?a ?b 3 } OR { ?a ?b 4 } }",
    ],
    "epsparql": [
        "PREFIX : <urn:> SELECT ?a (getSTARTTIME() AS ?s) FROM STREAM <urn:s> { ?a :b ?c FILTER(getENDTIME() < ?c) } "
        "SEQ { { ?a :b ?d } OPTIONALSEQ { ?a :n ?f } FILTER(getDURATION() < 5) } EQUALSOPTIONAL { ?a :b ?e } "
        "FILTER(?c > ?d && getDURATION() <= 9)",
    ],
    "hfc": [
        '@prefix : <urn:>\n$r\n?a :b ?c ?s "x"@en # c\n->\n?d rdf:type <owl:Thing>\n@test\n?a != ?c\nDTLess ?s ?s\n'
        "@action\n?d = MakeBlankNode\n\nSELECT DISTINCT ?a WHERE ?a ?b ?c & ?c ?b ?a FILTER ?a == ?b",
    ],
    "strider": [
        "STREAMING { WINDOW [10 Seconds] SLIDE [5 Seconds] BATCH [1 Second] } REGISTER { QUERYID [q] REASONING [U] "
        "SPARQL [ PREFIX : <urn:> SELECT ?a { ?a :b [ :c ?d ] FILTER(?d > 2) } ] }",
    ],
    "lars": [
        "@prefix ex: <http://e/>.\n@tick 1 sec.\np(X) at T + 1 :- ex:q(X, Y) at T in [10 sec step 5 sec], not r(X) "
        "always in [2], Y >= 2 * (T - 1), s(_, a) [# 5], (u(X), v) in [1 min]. % comment",
    ],
    "rifps": [
        "Document( Prefix(ex <http://e/>) Group ( Forall ?x ?y ( ex:p(?x ?y) :- And( ?x[ex:q -> ?y] "
        'External(pred:numeric-greater-than(?y "5"^^xs:integer)) ) ) ) )',
    ],
}
DATA = {
    "nt": '<urn:a> <urn:p> "x"@en .\n_:b <urn:p> "5"^^<urn:int> .\n',
    "ntt": "1000 <urn:a> <urn:p> <urn:b> .\n2020-01-01T00:00:00Z <urn:a> <urn:p> <urn:c> .\n",
    "nq": "<urn:a> <urn:p> <urn:b> <urn:g> .\n",
    "nqt": "1000 <urn:a> <urn:p> <urn:b> <urn:g> .\n",
    "nt5": '<urn:a> <urn:p> "x"@en "1970-01-01"^^<http://www.w3.org/2001/XMLSchema#date> .\n_:b <urn:p> <urn:c> .\n',
    "ttl": "@prefix : <urn:> .\n:a :p [ :q ( 1 2.5 'x'@en ) ] ; a :C .\n",
    "trig": "@prefix : <urn:> .\n:g { :a :p :b , true }\n",
    "rdf": '<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [<!ENTITY e "urn:">]>\n<rdf:RDF xmlns:rdf='
    '"http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:">\n'
    '<rdf:Description rdf:about="&e;a"><e:p xml:lang="en">x</e:p></rdf:Description>\n</rdf:RDF>',
    "jsonld": '{"@context": {"p": "urn:p"}, "@id": "urn:a", "p": [{"@id": "urn:b"}, 5, '
    '{"@value": "x", "@language": "e"}]}',
    "rdfp": "H time <urn:x> .\nPA \"e\" <urn:> .\nTX .\nA <urn:a> <urn:p> 'x' .\nD <urn:a> <urn:p> _:b .\nTC .\n",
    "nt-messages": 'VERSION "1.2-messages"\n<urn:a> <urn:p> <urn:b> .\nMESSAGE\n<urn:a> <urn:p> <urn:c> .\n',
    "ttl-messages": 'VERSION "1.2-messages"\nPREFIX : <urn:>\n:a :p :b .\nMESSAGE\n:a :p :c .\n',
    "jelly": "\x0a\x08jelly",
}
ADDRESSES = [
    "data.nt",
    "-?format=nt",
    "in/?follow=yes&poll=500",
    "a.nt?stream=urn:a&time=1000",
    "obs=a.ntt?window=RANGE 10s",
    "a.nt?time=http://e.org/at&lateness=5s",
    "tcp://127.0.0.1:1?format=ntt&timestamp=now",
    "x.csv?format=tsv&timed=yes",
    "unix:x?listen=yes&connections=1",
    "answers-{time}.srj",
    "out/?format=parquet",
    "data.nt.gz",
    "x.nt5?valid=time",
    "mqtt://x/t?qos=1",
    "kafka://h:1/t?group=g&start=earliest",
    "redis://h/s?group=g",
    "ws://h:1/x",
    "http://[::1",
    "data.nt?window=[RANGE 5s]",
]
ODD = [
    "",
    "\x00",
    "\ud800",
    "\U0001f600",
    "9" * 5000,
    "-1",
    "é",
    "\u2028",
    "%",
    "\\",
    '"',
    "<",
    ">",
    "{",
    "}",
    "(",
    ")",
    "?",
    "&",
    "=",
    "#",
    "\\u",
    "\\U00110000",
    "^^",
    "@",
    "_:",
    "NaN",
    "1e999",
    "0x",
    "[",
    "]",
    "\ufeff",
    ";",
    ".",
]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def words(text: str) -> list[str]:
    """Splits a text into words, blanks and single other characters."""
    return re.findall(r"\w+|\s+|[^\w\s]", text)


def mutants(texts: Iterable[str]) -> st.SearchStrategy[str]:
    """Strategy of texts in which some words are left out, doubled, exchanged or replaced."""
    split = [words(text) for text in texts]
    pieces = sorted({word for text in split for word in text} | set(ODD))

    @st.composite
    def mutant(draw: st.DrawFn) -> str:
        result = list(draw(st.sampled_from(split)))
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(result)))
            end = at + draw(st.integers(0, 2))
            result[at:end] = draw(st.lists(st.sampled_from(pieces), max_size=2))
        return "".join(result)

    return mutant()


def programs_of(language: str) -> list[str]:
    """Returns the programs of this language: the small ones, and those of the cases."""
    of_cases = (case.programs for file in (HERE / "cases").glob("*.case") for case in cases.load(file))
    texts = (text.strip() for programs in of_cases for name, text in programs if name == language)
    return PROGRAMS[language] + sorted(text for text in texts if len(text) < 2000)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("language", PROGRAMS)
def test_programs(language: str) -> None:
    def law(text: str) -> None:
        with suppress(SquallError):
            list(squall.run(squall.plan(squall.compile(text, lexer=language)), [Event(1, (FACT,))]))

    hold(law, 400, text=mutants(programs_of(language)))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("format", DATA)
def test_data(format: str) -> None:
    def law(text: str) -> None:
        Path("data").write_bytes(text.encode("utf-8", "surrogatepass"))
        with suppress(SquallError):
            list(open_source(f"data?format={format}", DeadLetterFile(), 0).batches())
        with suppress(SquallError):
            list(open_static(f"data?format={format}", DeadLetterFile()))

    hold(law, 400, text=mutants([DATA[format]]))


def test_addresses() -> None:
    def law(uri: str) -> None:
        for opener in (lambda: open_source(uri, DeadLetterFile(), 0), lambda: open_static(uri, DeadLetterFile()),
                       lambda: open_sink(uri)):  # fmt: skip
            with suppress(SquallError):
                opener()

    hold(law, 400, uri=mutants(ADDRESSES))


OPTIONS = [
    "--window",
    "--lateness",
    "--heartbeat",
    "--now",
    "--clock",
    "--format",
    "--typed",
    "--output",
    "--report",
    "--checkpoint-interval",
    "--max-depth",
    "--rules",
    "--profile",
    "--graph",
    "--static",
    "--sink",
    "--planner",
    "--conf",
    "--lexer",
    "--statistics",
    "--dead-letters",
    "--strict",
    "--timed",
    "--builder",
]
VALUES = [
    "RANGE 10s STEP 2s ORIGIN 1s",
    "5s",
    "event",
    "2026-01-01T00:00:00Z",
    "nt",
    "x=double",
    "istream",
    "periodic:5s",
    "1000",
    "rdfs",
    "csparql",
    "urn:g=data.nt",
    "data.nt",
    "rete",
    "a=b",
    "jena",
    "iterator",
    "ROWS 5",
    "srj",
]


def test_options() -> None:
    def law(name: str, pairs: list[tuple[str, str]]) -> None:
        Path("rules.jena").write_text("(?x ?p ?y) -> (?y ?p ?x) .")
        Path("data.nt").write_text(DATA["nt"])
        source = ["--source", "data.nt"] if name == "run" else []
        arguments = [name, "rules.jena", *source, *(part for pair in pairs for part in pair)]
        with suppress(SquallError, click.ClickException, SystemExit, click.exceptions.Exit):
            command.main(arguments, prog_name="squall", standalone_mode=False)

    options = st.lists(
        st.tuples(st.sampled_from(OPTIONS), st.one_of(st.sampled_from(VALUES), mutants(VALUES))), max_size=3
    )
    hold(law, 200, name=st.sampled_from(["run", "run", "check", "explain"]), pairs=options)


WRONG = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.just(10**400),
        st.floats(),
        st.binary(max_size=3),
        st.text(max_size=4),
        st.sampled_from(
            [
                A,
                P,
                FACT,
                PLAN,
                Event(1, (FACT,)),
                Event(2, ()),
                datetime(2026, 1, 1),
                Path("nowhere"),
                object(),
                "jena",
                "RANGE 5s",
                "istream",
                "rete",
                "iterator",
                "data.nt",
                rdf,
                Options(),
                Interval(1),
            ]
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=2),
        st.builds(Event, inner, inner),
        st.builds(Triple, inner, inner, inner),
    ),
    max_leaves=4,
)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "compile": lambda a, b: squall.compile(a, lexer=b),
    "compile rules": lambda a, b: squall.compile(rules=a, window=b),
    "compile windows": lambda a, b: squall.compile(rules=["rdfs"], windows=a, documents=b),
    "compile output": lambda a, b: squall.compile(rules=["rdfs"], output=a, report=b),
    "compile profile": lambda a, b: squall.compile(rules=["rdfs"], profile=a, removals=b),
    "plan": squall.plan,
    "plan planner": lambda a, b: squall.plan(squall.compile(rules=["rhodf"]), a, b),
    "build": lambda a, b: squall.build(PLAN, a, b),
    "run": lambda a, b: list(squall.run(PLAN, a, static=b)),
    "run events": lambda a, b: list(squall.run(PLAN, [Event(a, b)])),
    "run facts": lambda a, b: list(squall.run(PLAN, [Event(1, (Triple(A, P, a),), b)])),
    "run graphs": lambda a, b: list(squall.run(PLAN, [Event(1, (FACT,), "", a, b)])),
    "run of": lambda a, b: list(squall.run(PLAN, [Event(1, (FACT,))], of=a, options=b)),
    "options": lambda a, b: squall.build(PLAN, options=Options(checkpoint_interval=a, conf=b)),
    "options now": lambda a, b: squall.build(PLAN, options=Options(now=a, max_depth=b)),
    "iri": lambda a, b: (rdf.iri(a), rdf.blank(b)),
    "literal": rdf.literal,
    "literal language": lambda a, b: rdf.literal("x", language=a),
    "parts": lambda a, b: (rdf.term(a), rdf.parts(b)),
    "triple": lambda a, b: rdf.triple(a, P, b),
    "events": lambda a, b: list(rdf.events(a, time=b)),
    "heartbeat": lambda a, b: rdf.heartbeat(a),
    "open_source": lambda a, b: open_source(a, DeadLetterFile(), 0),
    "open_static": lambda a, b: open_static(a, DeadLetterFile()),
    "open_sink": lambda a, b: open_sink(a),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments(name: str) -> None:
    def law(a: Any, b: Any) -> None:
        with suppress(SquallError):
            FUNCTIONS[name](a, b)

    hold(law, 200, a=WRONG, b=WRONG)


LONG = "x" * 400
TOO_LONG = [
    ["run", f"{LONG}.jena"],
    ["run", "rules.jena", "--source", f"{LONG}.nt"],
    ["run", "rules.jena", "--source", f"{LONG}/?follow=yes"],
    ["run", "rules.jena", "--static", f"{LONG}.nt"],
    ["run", "rules.jena", "--graph", f"urn:x={LONG}"],
    ["run", "rules.jena", "--checkpoint", LONG],
    ["run", "rules.jena", "--sink", f"{LONG}.nt"],
    ["run", "rules.jena", "--sink", f"{LONG}/?format=parquet"],
    ["run", "rules.jena", "--profile-nodes", LONG],
    ["run", "rules.jena", "--source", f"unix:{LONG}?listen=yes&format=ntt"],
    ["update", f"{LONG}.ru"],
    ["update", "request.ru", "--output", f"{LONG}.nq"],
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arguments", TOO_LONG, ids=lambda arguments: " ".join(arguments).replace(LONG, "LONG"))
def test_names_that_are_too_long(arguments: list[str]) -> None:
    Path("rules.jena").write_text("(?x ?p ?y) -> (?y ?p ?x) .")
    Path("request.ru").write_text("INSERT DATA { <urn:a> <urn:p> <urn:b> }")
    with suppress(SquallError, click.ClickException, SystemExit):
        command.main(arguments, prog_name="squall", standalone_mode=False)
