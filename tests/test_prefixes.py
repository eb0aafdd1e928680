"""Prefixes from outside of a program: in all languages, in Python and on the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

import squall
from squall import plugins, sparql_update
from squall.checking import lint
from squall.errors import ArgumentError, LexerError, SquallError, UsageError
from squall.lexers.prefixes import as_prefixes, read
from squall.plugins import PluginWarning
from squall.testing import run
from tests.conftest import Squall

EX = "http://example.org/"
PREFIXES = {"ex": EX, "": "http://other.org/"}

PROGRAMS = {
    "sparql": "{declared} SELECT ?x {{ ?x ex:p :b }}",
    "csparql": "{declared} REGISTER QUERY q AS SELECT ?x FROM STREAM ex:s [RANGE 1s STEP 1s] WHERE {{ ?x ex:p :b }}",
    "ctsparql": "{declared} SELECT ?x FROM STREAM ex:s WHERE {{ {{ ?x ex:p :b }} SEQ {{ ?x ex:q :b }} WITHIN 1m }}",
    "epsparql": "{declared} SELECT ?x FROM STREAM ex:s WHERE {{ ?x ex:p :b }} SEQ {{ ?x ex:q :b }}",
    "rspql": "{declared} SELECT ?x FROM NAMED WINDOW :w ON ex:s [RANGE PT1S] WHERE {{ WINDOW :w {{ ?x ex:p :b }} }}",
    "cqels": "{declared} SELECT ?x WHERE {{ STREAM ex:s [RANGE 1s] {{ ?x ex:p :b }} }}",
    "sparqlstream": "{declared} SELECT ?x FROM STREAM ex:s [NOW - 1 S] WHERE {{ ?x ex:p :b }}",
    "strider": "STREAMING {{ WINDOW [1 s] SLIDE [1 s] }} "
    "REGISTER {{ QUERYID [q] SPARQL [ {declared} SELECT ?x {{ ?x ex:p :b }} ] }}",
    "hfc": "{declared}\n\n?x ex:p :b\n->\n?x ex:q :b",
    "jena": "{declared}\n[r: (?x ex:p :b) -> (?x ex:q 1)]",
    "lars": "{declared}\nex:q(X, 1) :- ex:p(X, b) in [5].",
    "owl": "{declared} Ontology(SubClassOf(ObjectHasValue(ex:p :b) ex:Q))",
    "rifps": "Document({declared} Group(Forall ?x (?x[ex:q -> 1] :- ?x[ex:p -> ex:b])))",
}
"""A program in each language that uses the prefix `ex`, and, if the language has it, the empty prefix."""
DECLARATIONS = {
    "hfc": "@prefix {}: <{}>\n",
    "jena": "@prefix {}: <{}> .\n",
    "lars": "@prefix {}: <{}> .\n",
    "owl": "Prefix({}:=<{}>) ",
    "rifps": "Prefix({} <{}>) ",
}


def declared(language: str, **prefixes: str) -> str:
    """Returns the program of a language with declarations of prefixes; `EMPTY` is the empty one."""
    form = DECLARATIONS.get(language, "PREFIX {}: <{}> ")
    texts = (form.format(prefix.removeprefix("EMPTY"), namespace) for prefix, namespace in prefixes.items())
    return PROGRAMS[language].format(declared="".join(texts))


def test_each_language_with_prefixes_has_a_program() -> None:
    assert {*PROGRAMS, "rif"} == set(plugins.names(plugins.LEXERS))


@pytest.mark.fault("S15")
@pytest.mark.parametrize("language", PROGRAMS)
def test_a_program_means_the_same_with_prefixes_from_outside(language: str) -> None:
    """S15."""
    text = declared(language)
    assert squall.compile(text, lexer=language, prefixes=PREFIXES) == squall.compile(
        declared(language, ex=EX, EMPTY="http://other.org/"), lexer=language
    )
    assert squall.parse(text, language, PREFIXES)[0] == language
    assert "error" not in {item.severity for item in lint(text, lexer=language, prefixes=PREFIXES)}
    with pytest.raises(SquallError) as caught:
        squall.compile(text, lexer=language)
    assert "`--prefix ex=http://example.org/`" in str(caught.value)


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_prefix_of_the_program_wins(language: str) -> None:
    text = declared(language, ex=EX)
    outside = {"ex": "http://wrong.org/", "": "http://other.org/"}
    assert squall.compile(text, lexer=language, prefixes=outside) == squall.compile(
        text, lexer=language, prefixes=PREFIXES
    )


@pytest.mark.parametrize("language", ["jena", "rifps"])
def test_a_prefix_from_outside_wins_over_one_without_declaration(language: str) -> None:
    text = {"jena": "[r: (?x rdf:p ?y) -> (?x rdf:q ?y)]", "rifps": "Document(Group(rdf:a[rdf:p -> 1]))"}[language]
    mine = squall.compile(text, lexer=language, prefixes={"rdf": EX})
    assert mine == squall.compile(text.replace("rdf:", "ex:"), lexer=language, prefixes=PREFIXES)
    assert mine != squall.compile(text, lexer=language, prefixes=PREFIXES)


def test_included_files_have_the_prefixes_and_rule_sets_do_not(tmp_path: Path) -> None:
    (tmp_path / "inner.jena").write_text("[(?a ex:p ?b) -> (?a ex:q ?b)]")
    (tmp_path / "main.jena").write_text("@include <inner.jena>\n[(?a ex:q ?b) -> (?a ex:r ?b)]")
    (tmp_path / "rdfs.jena").write_text("@include <RDFS>\n[(?a ?p ?b) -> (?a ?p ?b)]")
    text = '1 :a :p "1"'
    outputs = run(tmp_path / "main.jena", text, prefixes=PREFIXES)
    assert {out.fact.predicate for out in outputs} == {f"<{EX}q>", f"<{EX}r>"}
    outside = {"rdfs": EX, "rdf": EX}
    assert squall.compile(rules=["rdfs"], prefixes=outside) == squall.compile(rules=["rdfs"])
    including = tmp_path / "rdfs.jena"
    assert squall.compile(including, prefixes=outside) == squall.compile(including)


def test_imported_documents_of_rif_have_the_prefixes(tmp_path: Path) -> None:
    (tmp_path / "inner.rifps").write_text("Document(Group(ex:a[ex:p -> 1]))")
    (tmp_path / "main.rifps").write_text("Document(Import(<inner.rifps>) Group(ex:a[ex:q -> 1]))")
    assert len(run(tmp_path / "main.rifps", "1 :x :y 1", lexer="rifps", prefixes=PREFIXES)) == 2


def test_a_lexer_without_prefixes_is_called_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    lexers = {"sparql": plugins.load(plugins.LEXERS, "sparql")}
    load = plugins.load

    def old(text: str, name: str) -> object:
        return lexers["sparql"](text, name)

    monkeypatch.setattr(plugins, "load", lambda group, name: old if group == plugins.LEXERS else load(group, name))
    with pytest.warns(PluginWarning, match="the language `sparql` takes no prefixes from outside"):
        system = squall.compile("ASK { ?s ?p 1 }", lexer="sparql", prefixes=PREFIXES)
    assert squall.compile("ASK { ?s ?p 1 }", lexer="sparql") == system


def test_prefixes_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "prefixes.ttl"
    path.write_text(
        f"\ufeff# all\n@prefix ex: <{EX}> . # Turtle\nPREFIX : <http://other.org/>\n@PREFIX a.b: <urn:\\u0061:>\n"
        "prefix é1:<http://e/#>@prefix ex: <http://example.org/>\n"
    )
    expected = {**PREFIXES, "a.b": "urn:a:", "é1": "http://e/#"}
    assert as_prefixes(path) == as_prefixes(str(path)) == as_prefixes(expected) == expected
    text = "INSERT DATA { ex:a ex:p :b }"
    assert sparql_update.parse(text, path) == sparql_update.parse(
        f"PREFIX ex: <{EX}> PREFIX : <{EX[:7]}other.org/> {text}"
    )
    assert read("", "empty") == as_prefixes(None) == {}


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("PREFIX ex: <a>", "1:1", "`a` is not an absolute IRI"),
        (f"PREFIX ex: <{EX}> .\n:a :p 1 .", "2:1", "`:a` declares no prefix"),
        ("@base <http://e/> .", "1:1", "`@base` declares no prefix"),
        ("PREFIX ex <http://e/>", "1:1", "`PREFIX` declares no prefix"),
        ("PREFIX -e: <http://e/>", "1:1", "`-e` is not a prefix"),
        ("PREFIX e.: <http://e/>", "1:1", "`e.` is not a prefix"),
        ("PREFIX e: <urn:a>\nPREFIX e: <urn:b>", "2:1", "the prefix `e:` stands for <urn:a> already"),
    ],
)
def test_what_declares_no_prefix_is_refused(text: str, place: str, message: str) -> None:
    with pytest.raises(LexerError, match=f"f:{place}: .*{re.escape(message)}"):
        read(text, "f")


def test_wrong_prefixes_of_python_are_refused(tmp_path: Path) -> None:
    for prefixes in ({"ex": "ex"}, {"e x": EX}, {"ex:": EX}, tmp_path, "nowhere.ttl"):
        with pytest.raises(UsageError):
            squall.compile("ASK {}", lexer="sparql", prefixes=prefixes)
    for wrong in ({"ex": 1}, {1: EX}, [("ex", EX)]):
        for function in (squall.compile, lint, squall.parse):
            with pytest.raises(ArgumentError):
                cast(Any, function)("ASK {}", lexer="sparql", prefixes=wrong)


# The command line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text("SELECT ?x { ?x ex:p ?y }")
    Path("u.ru").write_text("INSERT DATA { ex:a ex:q 1 }")
    Path("a.nt").write_text(f"<{EX}a> <{EX}p> <{EX}b> .\n")
    Path("ex.ttl").write_text(f"@prefix ex: <{EX}> .\n")
    Path("other.ttl").write_text("@prefix ex: <http://other.org/> .\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("options", [("--prefix", f"ex={EX}"), ("--prefix", f"ex:=<{EX}>"), ("--prefixes", "ex.ttl")])
def test_all_commands_take_prefixes(squall: Squall, options: tuple[str, ...]) -> None:
    commands = (
        ("run", "q.rq", "--static", "a.nt", "--format", "tsv-terms"), ("check", "q.rq"), ("explain", "q.rq"),
        ("explain", "q.rq", "--stage", "tree"), ("update", "u.ru"),
    )  # fmt: skip
    for command in commands:
        assert squall(*command)[0] == 2
        code, out, err = squall(*command, *options)
        assert code == 0, err
        assert f"<{EX}a>" in out or command[0] not in ("run", "update")


@pytest.mark.usefixtures("folder")
def test_an_option_wins_over_a_file_and_contradictions_are_refused(squall: Squall) -> None:
    run_it = "run", "q.rq", "--static", "a.nt", "--format", "tsv-terms", "--prefixes", "other.ttl"
    assert f"<{EX}a>" in squall(*run_it, "--prefix", f"ex={EX}")[1]
    assert f"<{EX}a>" not in squall(*run_it)[1]
    for options, message in (
        (("--prefixes", "ex.ttl"), "`--prefixes` gives `ex:` two meanings"),
        (("--prefix", "ex=urn:a", "--prefix", "ex=urn:b"), "`--prefix` gives `ex:` two meanings"),
        (("--prefix", "ex"), "`--prefix ex` is not NAME=IRI"),
        (("--prefix", "ex=a"), "`a` is not an absolute IRI"),
        (("--prefixes", "nowhere.ttl"), "the prefixes of `nowhere.ttl` cannot be read"),
    ):
        code, _, err = squall(*run_it, *options)
        assert (code, message in err) == (2, True), err


@pytest.mark.usefixtures("folder")
def test_a_run_without_outputs_is_explained_with_prefixes(squall: Squall) -> None:
    _, _, err = squall("run", "q.rq", "--source", "a.nt", "--prefixes", "other.ttl")
    assert "<http://other.org/p>" in err
