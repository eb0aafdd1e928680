"""Warnings about queries with unbounded state, and about streams without a source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import squall
from squall import cli
from squall.errors import Errors, UsageError
from squall.model import Stream, streams, with_windows
from squall.model.unbounded_state import unbounded_state_warnings
from squall.model.windows import CountWindow, HoppingWindow, SlidingWindow
from squall.streams.sources.documents import check_streams

PREFIX = "PREFIX : <http://example.org/>\n"
S, T = "http://example.org/s", "http://example.org/t"


def warnings_of(query: str, given: Sequence[str] | None = None, lexer: str = "csparql", **windows: object) -> list[str]:
    """Returns the reasons why the state of queries grows."""
    system = squall.compile(PREFIX + query, lexer=lexer, **windows)  # type: ignore[arg-type]
    warnings = unbounded_state_warnings(system, given)
    assert all(warning.origin and warning.hint for warning in warnings)
    return [warning.message.partition(" stores all matches of ")[2] for warning in warnings]


def warning_texts(pattern: str, why: str) -> list[str]:
    return [f"`{pattern}` in streams without a window, {why}"]


# Queries


@pytest.mark.parametrize(
    ("query", "pattern", "why"),
    [
        ("SELECT * FROM STREAM :s { ?x :p ?y . ?y :q ?z }", "?y :q ?z", "to join it with `?x :p ?y`"),
        ("SELECT * FROM STREAM :s { ?x :p ?y ; :q ?z }", ":q ?z", "to join it with `?x :p ?y`"),
        ("SELECT * FROM STREAM :s { ?x :p/:q ?z }", "?x :p/:q ?z", "to join it with `?x :p/:q ?z`"),
        ("SELECT * FROM NAMED STREAM :s FROM NAMED STREAM :t { GRAPH :s { ?x :p ?y } GRAPH :t { ?x :q ?y } }",
         "?x :q ?y", "to join it with `?x :p ?y`"),
        ("SELECT * FROM STREAM :s { ?x :p ?y { ?x :q ?z } UNION { ?x :r ?z } }", "?x :q ?z",
         "to join it with `?x :p ?y`"),
        ("SELECT (COUNT(*) AS ?n) FROM STREAM :s { ?x :p ?y }", "?x :p ?y", "to aggregate it"),
        ("SELECT * FROM STREAM :s { { SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x } }", "?x :p ?y",
         "to aggregate it"),
        ("SELECT * FROM STREAM :s { ?x :p ?y OPTIONAL { ?x :q ?z } }", "?x :q ?z", "for an `OPTIONAL`"),
        ("SELECT * FROM STREAM :s FROM NAMED <d> { ?x :p ?y OPTIONAL { GRAPH <d> { ?x :q ?z } } }", "?x :p ?y",
         "for an `OPTIONAL`"),
        ("SELECT * FROM STREAM :s FROM NAMED <d> { GRAPH <d> { ?x :p ?y } MINUS { ?x :q ?z } }", "?x :q ?z",
         "for a `MINUS`"),
        ("SELECT * FROM STREAM :s { ?x :p ?y FILTER NOT EXISTS { ?x :q ?z } }", "?x :q ?z", "for an `EXISTS`"),
        ("SELECT (timestamp(?x, :p, ?y) AS ?t) FROM STREAM :s { ?x :p ?y }", "timestamp(?x, :p, ?y)",
         "for `timestamp`"),
        ("CONSTRUCT { ?x :r ?z } FROM STREAM :s { ?x :p ?y . ?y :q ?z }", "?y :q ?z", "to join it with `?x :p ?y`"),
        ("ASK FROM STREAM :s { ?x :p ?y . ?y :q ?z }", "?y :q ?z", "to join it with `?x :p ?y`"),
    ],
)  # fmt: skip
def test_queries_with_unbounded_state_have_a_warning(query: str, pattern: str, why: str) -> None:
    assert warnings_of(query) == warning_texts(pattern, why)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM STREAM :s [RANGE 1s] { ?x :p ?y . ?y :q ?z OPTIONAL { ?x :q ?w } }",
        "SELECT * FROM STREAM :s [TRIPLES 9] { ?x :p ?y . ?y :q ?z MINUS { ?x :q ?w } }",
        "SELECT ?x (COUNT(*) AS ?n) FROM STREAM :s [RANGE 1s STEP 1s] { ?x :p ?y } GROUP BY ?x",
        "SELECT * FROM STREAM :s { ?x :p ?y FILTER (?y > 3) }",
        "SELECT * FROM STREAM :s { { ?x :p ?y } UNION { ?x :q ?y } }",
        "SELECT * FROM STREAM :s FROM NAMED <d> { ?x :p ?y GRAPH <d> { ?y :q ?z } }",
        "SELECT (COUNT(*) AS ?n) FROM <d> { ?x :p ?y . ?y :q ?z OPTIONAL { ?x :r ?w } MINUS { ?x :s ?w } }",
        "SELECT * { ?x :p ?y . ?y :q ?z }",
    ],
)
def test_bounded_queries_have_no_warning(query: str) -> None:
    assert warnings_of(query) == []


def test_each_query_is_warned_of_once() -> None:
    query = "SELECT (COUNT(*) AS ?n) FROM STREAM :s { ?x :p ?y . ?y :q ?z OPTIONAL { ?x :r ?w } }"
    warnings = unbounded_state_warnings(squall.compile(PREFIX + query, lexer="csparql"))
    assert [warning.message.split()[0] for warning in warnings] == ["`query`"]


def test_the_place_is_that_of_the_pattern() -> None:
    (warning,) = unbounded_state_warnings(
        squall.compile(f"{PREFIX}SELECT * FROM STREAM :s {{ ?x :p ?y .\n  ?y :q ?z }}", lexer="csparql")
    )
    assert warning.origin is not None
    assert (warning.origin.line, warning.origin.column) == (3, 3)
    assert str(warning).startswith("<text>:3:3: translation warning: `query` stores all matches of `?y :q ?z`")


def test_the_default_graph_has_the_streams_that_are_given() -> None:
    query = "SELECT * { ?x :p ?y . ?y :q ?z }"
    assert warnings_of(query, []) == []
    assert (
        warnings_of(query, [""]) == warnings_of(query, [S]) == warning_texts("?y :q ?z", "to join it with `?x :p ?y`")
    )
    assert warnings_of("SELECT * { GRAPH ?g { ?x :p ?y . ?y :q ?z } }", [""]) == []
    assert warnings_of("SELECT * { GRAPH ?g { ?x :p ?y . ?y :q ?z } }", [S]) == warning_texts(
        "?y :q ?z", "to join it with `?x :p ?y`"
    )


def test_windows_that_are_given_from_outside() -> None:
    query = "SELECT * { ?x :p ?y . ?y :q ?z }"
    assert warnings_of(query, [S], window=SlidingWindow(5)) == []
    assert warnings_of(query, [S], windows={S: HoppingWindow(5, 5)}) == []
    assert warnings_of(query, [S, T], windows={S: CountWindow(5)}) == warning_texts(
        "?y :q ?z", "to join it with `?x :p ?y`"
    )
    assert warnings_of("SELECT * FROM STREAM :s { ?x :p ?y . ?y :q ?z }", [S], windows={S: CountWindow(5)}) == []


def test_reentrant_rules_have_no_warning() -> None:
    system = squall.compile("@prefix : <urn:>.\n[r: (?x :p ?y) (?y :q ?z) noValue(?x, :r) -> (?x :s ?z)]", lexer="jena")
    assert unbounded_state_warnings(with_windows(system), [""]) == ()


# Streams that are named


def test_the_streams_that_a_program_names() -> None:
    both = "SELECT * FROM STREAM :s FROM NAMED STREAM :t [RANGE 1s] FROM <d> { ?x :p ?y GRAPH :u { ?x :q ?y } }"
    assert streams(squall.compile(PREFIX + both, lexer="csparql")) == (Stream(S), Stream(T))
    window = "SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT1S] { WINDOW :w { ?x :p ?y } }"
    assert streams(squall.compile(PREFIX + window, lexer="rspql")) == (Stream(S),)


def test_a_stream_that_is_not_given() -> None:
    system = squall.compile(PREFIX + "SELECT * FROM STREAM :s FROM STREAM :t { ?x :p ?y }", lexer="csparql")
    check_streams(system, {S, T, ""})
    with pytest.raises(UsageError) as caught:
        check_streams(system, {"", S, "http://example.org/tt"})
    assert caught.value.message == f"the stream <{T}> is not given; given: the default stream, `{S}`, `{T}t`"
    assert caught.value.hint == f"did you mean `{T}t` or `{S}`?"
    assert caught.value.origin is not None
    with pytest.raises(Errors) as all_missing:
        check_streams(system, set())
    assert [(error.message, error.hint) for error in all_missing.value.errors] == [
        (f"the stream <{name}> is not given; given: none", f"name a source so: `--source '{name}=FILE'`")
        for name in (S, T)
    ]


# On the command line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("named.csparql").write_text(f"{PREFIX}SELECT * FROM STREAM :s {{ ?x :p ?y . ?y :q ?z }}")
    Path("any.rq").write_text(f"{PREFIX}SELECT * {{ ?x :p ?y . ?y :q ?z }}")
    Path("data.nt").write_text("<urn:a> <urn:p> <urn:b> .\n")
    Path("data.ntt").write_text("1 <urn:a> <urn:p> <urn:b> .\n")
    return tmp_path


def build_messages(*arguments: str) -> str:
    return CliRunner().invoke(cli.command, ["build", *arguments, "--sink", "out.csv"]).stderr


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "warned"),
    [
        (("any.rq", "--source", "data.ntt"), True),
        (("any.rq", "--source", "data.ntt?window=RANGE 1s"), False),
        (("any.rq", "--source", "data.ntt", "--window", "RANGE 1s"), False),
        (("any.rq", "--source", "data.nt"), False),
        (("any.rq", "--source", "data.nt?time=urn:at"), True),
        (("any.rq", "--source", "data.nt", "--source", "u=data.ntt"), True),
        (("any.rq", "--static", "data.nt"), False),
        (("named.csparql", "--source", f"{S}=data.ntt"), True),
        (("named.csparql", "--source", f"{S}=data.ntt?window=TRIPLES 5"), False),
        (("named.csparql", "--static", f"data.nt?stream={S}"), False),
    ],
)
def test_the_command_line_warns(arguments: tuple[str, ...], warned: bool) -> None:
    output = build_messages(*arguments)
    assert ("stores all matches of `?y :q ?z`" in output) == warned
    assert "error" not in output


@pytest.mark.usefixtures("folder")
def test_the_command_line_reports_streams_that_are_not_given() -> None:
    process = CliRunner().invoke(cli.command, ["build", "named.csparql", "--source", "data.ntt"])
    assert isinstance(process.exception, UsageError)
    assert process.exception.message == f"the stream <{S}> is not given; given: the default stream"
