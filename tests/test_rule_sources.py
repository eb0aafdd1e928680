"""Rules that name the streams which they read: `@source` in Jena rules, and addresses of programs and rule sets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import squall
from squall.checking import lint
from squall.errors import Errors, LexerError, SquallError, TranslatorError, UsageError
from squall.lexers.jena import lexer
from squall.model import streams
from squall.rdf import ALWAYS, Event
from squall.testing import stream
from squall.testing.strategies import event_streams, jena_texts, static_data
from tests import in_memory
from tests.laws import PLANNERS, examples, hold

E = "http://example.org/"
PREFIX = f"@prefix : <{E}>.\n"
EVENTS = stream("1 @:obs :a :in :b\n2 @:other :b :in :x\n3 @:obs :b :in :c\n4 @:other :o :in :p\n9 @:obs :c :in :d")


def texts(plan: squall.Plan, events: list[Event], static: list[Event] | None = None) -> list[tuple[int, str]]:
    """Returns the times and facts of the outputs of a run."""
    return sorted((out.time, str(out.fact)) for out in squall.run(plan, events, static=static or []))


def facts(text: str, output: str = "istream", **options: Any) -> list[tuple[int, str]]:
    """Returns the outputs of Jena rules over `EVENTS`, by local names."""
    plan = squall.plan(squall.compile(PREFIX + text, lexer="jena", output=output, **options))
    return [(time, fact.replace(f"<{E}", "").replace(">", "")) for time, fact in texts(plan, EVENTS)]


@examples(60)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("planner", PLANNERS)
def test_rules_over_a_stream_answer_as_in_a_run_that_has_no_other(planner: str, many: int) -> None:
    def law(program: tuple[str, Any], own: list[Event], other: list[Event], static: list[Event], seed: int) -> None:
        text, _ = program
        alone = squall.plan(squall.compile(text, lexer="jena", window="RANGE 3ms"), planner)
        expected = texts(alone, own, static)
        restricted = squall.compile(f"@source <urn:own> [RANGE 3ms].\n{text}", lexer="jena", window="RANGE 9ms")
        plan = squall.plan(restricted, planner)
        merged = [*(event._replace(stream="urn:own") for event in own), *other]
        merged.sort(key=lambda event: event.time)
        assert texts(plan, merged, static) == expected
        if seed % 4 == 0:
            outputs = in_memory.run_anyhow(plan, in_memory.cut(merged, [seed % 7]), static, seed)
            assert sorted((out.time, str(out.fact)) for out in outputs) == expected

    others = event_streams().map(lambda events: [event._replace(stream="urn:other") for event in events])
    hold(
        law, many, program=jena_texts(), own=event_streams(), other=others | event_streams(), static=static_data(),
        seed=st.integers(0, 100),
    )  # fmt: skip


def test_a_directive_holds_for_the_rules_behind_it() -> None:
    text = """
        [first: (?x :in ?y) -> (?x :first ?y)]
        @source :obs [RANGE 5ms]
        [second: (?x :in ?y) (?y :in ?z) -> (?x :second ?z)]
        @source *.
        [third: (?x :second ?y) -> (?x :third ?y)]"""
    assert [fact for fact in facts(text) if "first" not in fact[1]] == [(3, "a second c ."), (3, "a third c .")]
    assert facts(text, "dstream") == [(6, "a second c ."), (6, "a third c .")]
    assert len([fact for fact in facts(text) if "first" in fact[1]]) == len(EVENTS)


def test_several_streams_have_their_windows() -> None:
    text = "@source :obs [RANGE 2ms], :other\n[(?x :in ?y) -> (?x :seen ?y)]"
    ended = facts(text, "dstream", windows={E + "other": "RANGE 4ms"})
    assert ended == [(3, "a seen b ."), (5, "b seen c ."), (6, "b seen x ."), (8, "o seen p ."), (11, "c seen d .")]


def test_rules_read_what_others_derive_and_static_data() -> None:
    text = "[(?x :in ?y) -> (?y :of ?x)]\n@source :other [RANGE 1ms]\n[(?x :of ?y) (?y :is :known) -> (?x :known ?y)]"
    plan = squall.plan(squall.compile(PREFIX + text, lexer="jena"))
    static = [event._replace(time=ALWAYS) for event in stream("0 :a :is :known")]
    assert [str(out.fact) for out in squall.run(plan, EVENTS, static=static) if out.fact.predicate.endswith("known>")]


def test_lists_are_those_of_the_streams() -> None:
    events = stream("1 @:obs :l rdf:first :a ; rdf:rest rdf:nil\n1 @:obs :x :has :l")
    text = "@source <http://example.org/{}> [RANGE 2ms].\n[(?x :has ?l) listLength(?l, ?n) -> (?x :length ?n)]\n"
    both = squall.compile(PREFIX + text.format("obs") + text.format("other").replace(":length", ":none"), lexer="jena")
    assert [(out.time, out.fact.predicate) for out in squall.run(squall.plan(both), events)] == [(1, f"<{E}length>")]
    ends = squall.compile(PREFIX + text.format("obs"), lexer="jena", output="dstream")
    assert [out.time for out in squall.run(squall.plan(ends), [*events, Event(9, ())])] == [3]


def test_an_included_file_reads_the_streams_of_the_directive_before_it(tmp_path: Path) -> None:
    (tmp_path / "inner.jena").write_text(PREFIX + "[(?x :in ?y) -> (?x :seen ?y)]\n@source :third.\n[() -> ]"[:43])
    (tmp_path / "outer.jena").write_text(PREFIX + "@source :other [RANGE 5s].\n@include <inner.jena>.\n")
    system = squall.compile(tmp_path / "outer.jena")
    assert [item.iri for item in streams(system)] == [E + "other"]
    assert len(texts(squall.plan(system), EVENTS)) == 2


def test_a_tree_prints_its_directives() -> None:
    text = "[a: -> (:a :b :c)]\n@source :x [RANGE 5s], <urn:y> // two\n[b: (?x :p ?y) -> (?y :p ?x)]\n@source *\n"
    tree = lexer(f"{PREFIX}{text}[c: (?x :p ?y) -> (?y :p ?x)]", "text")
    assert [list(map(str, rule.sources)) for rule in tree.rules] == [[], [f"<{E}x> [RANGE 5s]", "<urn:y>"], []]
    assert lexer(str(tree), "text") == tree


@pytest.mark.parametrize(
    ("directive", "message"),
    [
        ("@source", "names no stream"), ("@source :a *", "`*` is all streams"), ("@source no:a", "prefix `no:`"),
        ("@source [RANGE 5s]", "`[RANGE 5s]` is no stream"), ("@source :a [RANGE 1s] [RANGE 2s]", "is no stream"),
        ("@source :a [", "`[` is no stream"), ("@source a", "`a` is no stream"), ("@source <a b>", "`<a b>` is no"),
        ("@source :a []", "`[]` is no stream"), ("@sources :a", "`s` is no stream"),
    ],
)  # fmt: skip
def test_a_wrong_directive(directive: str, message: str) -> None:
    with pytest.raises((LexerError, Errors)) as raised:
        squall.compile(f"{PREFIX}{directive}\n[(?x :p ?y) -> (?y :p ?x)]", lexer="jena")
    assert message in str(raised.value)
    assert "<text>:2:" in str(raised.value)


def test_a_window_that_is_none() -> None:
    with pytest.raises(TranslatorError, match="`RANGE 5` is not a window") as raised:
        squall.compile(f"{PREFIX}@source :a [RANGE 5]\n[(?x :p ?y) -> (?y :p ?x)]", lexer="jena")
    assert raised.value.origin is not None
    assert (raised.value.origin.line, raised.value.origin.column) == (2, 9)


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "near.jena"
    path.write_text(f"{PREFIX}[near: (?x :near ?y) -> (?x :n ?y)]\n")
    return str(path)


SCHEMA = [
    event._replace(time=ALWAYS) for event in stream("0 :in <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> :near")
]


def subjects(system: squall.System) -> list[tuple[int, str]]:
    outputs = squall.run(squall.plan(system), EVENTS, static=SCHEMA)
    return [(out.time, out.fact.subject[len(E) + 1 : -1]) for out in outputs]


def test_the_address_of_a_rule_set_may_have_a_stream(program: str) -> None:
    address = f"rhodf?stream={E}obs&window=RANGE 2ms"
    assert subjects(squall.compile(program, rules=[address])) == [(1, "a"), (3, "b"), (9, "c")]
    assert subjects(squall.compile(program, rules=[address], output="dstream")) == [(3, "a"), (5, "b"), (11, "c")]


def test_rule_sets_over_other_streams_meet_in_what_they_derive(program: str) -> None:
    addresses = [f"rhodf?stream={E}obs&window=RANGE 2ms", f"rhodf?stream={E}other&window=RANGE 1ms"]
    assert len(subjects(squall.compile(program, rules=addresses))) == len(EVENTS)


def test_the_address_of_a_program_may_have_a_stream(program: str) -> None:
    near = f"{program}?stream={E}other&window=RANGE 5ms"
    assert subjects(squall.compile(near, rules=["rhodf"])) == [(2, "b"), (4, "o")]
    assert subjects(squall.compile(near, rules=["rhodf"], output="dstream")) == [(7, "b"), (9, "o")]
    assert lint(near, streams=[E + "other"]) is not None


def test_a_rifps_program_over_a_stream(tmp_path: Path) -> None:
    text = f"Document( Prefix(e <{E}>) Group( Forall ?x ?y ( ?x[e:seen -> ?y] :- ?x[e:in -> ?y] ) ) )"
    (tmp_path / "seen.rifps").write_text(text)
    system = squall.compile(f"{tmp_path / 'seen.rifps'}?stream={E}other&window=RANGE 5ms")
    assert [(out.time, out.fact.subject) for out in squall.run(squall.plan(system), EVENTS)] == [
        (2, f"<{E}b>"), (4, f"<{E}o>"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ("stram=x", "unknown option `stram`", "did you mean `stream`?"),
        ("window=RANGE 5s", "a window without a stream", "?stream=IRI"),
        ("stream=urn:a&window=RANGE", "is not a window", "RANGE 10s"),
    ],
)
def test_a_wrong_address(program: str, options: str, message: str, hint: str) -> None:
    for arguments in ((f"{program}?{options}", ()), (program, (f"rhodf?{options}",))):
        with pytest.raises(UsageError) as raised:
            squall.compile(arguments[0], rules=arguments[1])
        assert message in raised.value.message
        assert hint in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("name", "text"),
    [("q.rq", "SELECT * { ?s ?p ?o }"), ("r.jena", "@source <urn:x>.\n[(?x <urn:p> ?y) -> (?y <urn:p> ?x)]")],
)
def test_a_program_that_says_what_it_reads_takes_no_other_stream(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(SquallError, match="says itself which streams"):
        squall.compile(f"{tmp_path / name}?stream=urn:a")


@pytest.mark.more
def test_a_stream_of_an_address_has_to_be_given(program: str) -> None:
    command = [sys.executable, "-m", "squall", "run", f"{program}?stream=urn:none", "--source", "-?format=nt"]
    result = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "the stream <urn:none> is not given" in result.stderr


QUERIES_OF_A_STREAM = {
    "csparql": "REGISTER QUERY q AS SELECT * FROM NAMED STREAM <urn:a> [RANGE 2s] { GRAPH <urn:a> { ?x a <urn:A> } }",
    "cqels": "SELECT * { STREAM <urn:a> [RANGE 2s] { ?x a <urn:A> } }",
    "rspql": "REGISTER RSTREAM <urn:o> AS SELECT * FROM NAMED WINDOW <urn:w> ON <urn:a> [RANGE PT2S] "
    "{ WINDOW <urn:w> { ?x a <urn:A> } }",
    "sparqlstream": "SELECT ISTREAM ?x FROM NAMED STREAM <urn:a> [NOW-2 S] { GRAPH <urn:a> { ?x a <urn:A> } }",
    "rq": "SELECT * { GRAPH ?g { ?x a <urn:A> } }",
}


@pytest.mark.parametrize("language", QUERIES_OF_A_STREAM)
@pytest.mark.parametrize("as_program", [False, True])
def test_a_pattern_that_sees_nothing_of_a_rule_set_is_warned_of(
    language: str, as_program: bool, tmp_path: Path
) -> None:
    (ontology := tmp_path / "o.ofn").write_text("Prefix(:=<urn:>) Ontology(SubClassOf(:B :A))")
    text = QUERIES_OF_A_STREAM[language]
    address = f"{ontology}?stream=urn:a"

    def messages(query: str) -> list[str]:
        (path := tmp_path / f"q.{language}").write_text(query)
        findings = lint(path, address) if as_program else lint(path, rules=[address])
        return [finding.message for finding in findings if finding.code == "translation"]

    expected = ["this pattern reads a window, stream or graph by name, and nothing of what the rule sets derive"]
    assert messages(text) == expected
    assert messages(text.replace("urn:A>", "urn:C>")) == []
