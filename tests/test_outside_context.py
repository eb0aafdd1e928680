"""JSON-LD with a context from outside: the option ``context`` of sources."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import Graph

import squall
from squall.errors import UsageError
from squall.rdf import Event, Triple, term
from squall.sparql_update.datasets import read as read_dataset
from squall.streams import DeadLetterFile, Sources, open_source, open_static
from squall.streams.formats import BY_NAME
from squall.streams.formats.reading import ReadProgress, Settings, decode
from squall.streams.live.messages import Message
from squall.streams.live.messages import read as read_message

E = "http://example.org/"
OUTSIDE: dict[str, Any] = {"id": "@id", "p": f"{E}p", "q": {"@id": f"{E}q", "@type": "@id"}}
CONTEXT = json.dumps({"@context": OUTSIDE})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(CONTEXT)


class Pieces(io.RawIOBase):
    """A file of which each read returns at most so many bytes."""

    def __init__(self, data: bytes, most: int) -> None:
        self._data = io.BytesIO(data)
        self._most = most

    def read(self, size: int = -1) -> bytes:
        return self._data.read(self._most if size < 0 else min(size, self._most))


def decoded(text: bytes, context: Any, most: int = 1 << 17) -> tuple[set[tuple[str, ...]], DeadLetterFile]:
    """Returns the statements of a document with a context from outside, with their graphs, and its dead letters."""
    ledger = DeadLetterFile()
    settings = Settings("jsonld", "", 0, context=json.dumps(context))
    file: Any = Pieces(text, most)
    batches = decode(file, "x", BY_NAME["jsonld"], settings, ledger, ReadProgress())
    events = [event for batch in batches for event in batch]
    return {(*map(str, fact), event.graph) for event in events for fact in event.facts}, ledger


def expanded(document: Any, context: Any) -> set[tuple[str, ...]]:
    """Returns what rdflib reads of a document, with the context as the option that it has for that."""
    graph = Graph()
    graph.parse(data=json.dumps(document), format="json-ld", context=context)
    return {(*(str(term(node)) for node in statement), "") for statement in graph}


NODES = st.fixed_dictionaries(
    {"id": st.sampled_from([f"{E}a", f"{E}b"])},
    optional={
        "p": st.sampled_from(["x", "}", '"@context": {', "é", 7, True]),
        "q": st.fixed_dictionaries({"id": st.just(f"{E}n"), "p": st.sampled_from([1, "y"])}),
        "own": st.sampled_from([1, "z"]),
    },
)
OWN = st.sampled_from([{"own": f"{E}own"}, [{"p": f"{E}other"}, {"own": f"{E}own"}], {"p": None}, [None, OUTSIDE]])


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """Draws a node, a node with a context of its own, a graph, or an array."""
    node = draw(NODES)
    match draw(st.sampled_from(["node", "own", "graph", "array"])):
        case "own":
            return {"@context": draw(OWN), **node}
        case "graph":
            return {"@graph": [node, draw(NODES)]}
        case "array":
            return [node, {"@context": draw(OWN), **draw(NODES)}]
    return node


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@given(documents(), st.sampled_from(["", "\ufeff", " \r\n "]), st.sampled_from([None, 2]), st.integers(1, 40))
def test_it_is_the_expand_context_of_another_implementation(
    document: Any, before: str, indent: int | None, most: int
) -> None:
    text = (before + json.dumps(document, indent=indent, ensure_ascii=False)).encode()
    statements, ledger = decoded(text, OUTSIDE, most)
    assert statements == expanded(document, OUTSIDE)
    assert all("none of its keys" in reason for _, reason in ledger.first.values())


def sources(ledger: DeadLetterFile) -> Sources:
    return Sources([open_source("x.json?format=jsonld&context=c.json&time=5", ledger)])


@pytest.mark.parametrize("builder", ["iterator", pytest.param("beam", marks=pytest.mark.beam)])
def test_builders_agree(builder: str) -> None:
    Path("x.json").write_text(json.dumps([{"id": f"{E}{number}", "p": number} for number in range(5)]))
    plan = squall.plan(squall.compile(f"CONSTRUCT {{ ?s <{E}r> ?o }} {{ ?s <{E}p> ?o }}", lexer="sparql"))
    outputs = squall.build(plan, builder).run(sources(DeadLetterFile()))
    assert sorted(str(output.fact) for output in outputs) == [
        f'<{E}{number}> <{E}r> "{number}"^^<http://www.w3.org/2001/XMLSchema#integer> .' for number in range(5)
    ]


def test_files_folders_static_data_and_messages_have_it() -> None:
    fact = Triple(*map(term, (f"<{E}a>", f"<{E}p>", '"x"')))
    Path("in").mkdir()
    Path("in/x.json").write_text(json.dumps({"id": f"{E}a", "p": "x"}))
    for uri in ("in/x.json?format=jsonld&context=c.json", "in?format=jsonld&context=c.json"):
        assert [event for batch in open_source(uri).batches() for event in batch] == [Event(0, (fact,))]
    assert [event.facts for event in open_static("in/x.json?format=jsonld&context=c.json")] == [(fact,)]
    assert read_dataset("in/x.json?format=jsonld&context=c.json").default == {fact}
    opened: Any = open_source("ws://localhost:1/?format=jsonld&context=c.json")
    data = Message(Path("in/x.json").read_bytes(), "ws", "message 1")
    batches = read_message(data, opened.format, opened.settings, DeadLetterFile(), ReadProgress())
    assert [event.facts for batch in batches for event in batch] == [(fact,)]


def test_it_is_read_once_with_what_it_refers_to() -> None:
    Path("lib").mkdir()
    Path("lib/p.json").write_text(CONTEXT)
    Path("lib/all.json").write_text('{"@context": ["p.json", {"r": "http://example.org/r"}]}')
    Path("x.json").write_text(json.dumps({"id": f"{E}a", "p": "x", "r": 1}))
    source = open_source("x.json?format=jsonld&context=lib/all.json")
    Path("lib/all.json").unlink()
    assert sum(len(event.facts) for batch in source.batches() for event in batch) == 2


def test_what_it_does_not_define_is_a_dead_letter() -> None:
    statements, ledger = decoded(b'{"other": 1}', OUTSIDE)
    assert not statements
    assert "none of its keys is an IRI, or a term of its context" in ledger.first["malformed", "x"][1]


def test_a_context_of_its_own_has_to_be_the_first_key() -> None:
    statements, ledger = decoded(b'{"id": "urn:a", "@context": {}, "p": 1}', OUTSIDE)
    assert not statements
    assert "@context is defined twice" in ledger.first["malformed", "x"][1]


@pytest.mark.parametrize(
    ("uri", "message", "hint"),
    [
        ("x.json", "`x.json` is not RDF, and needs a mapping", "format=jsonld&context=FILE"),
        ("x.json", "`x.json` is not RDF, and needs a mapping", "format=json&map=FILE"),
        ("x.json.gz", "`x.json.gz` is not RDF, and needs a mapping", "format=jsonld&context=FILE"),
        ("x.json?format=json", "the format `json` is not RDF, and needs a mapping", "format=jsonld&context=FILE"),
        ("x.nt?context=c.json", "`context=c.json` in `x.nt?context=c.json` is for JSON-LD alone", "format=jsonld"),
        ("x.jsonld?context=none.json", "the context `none.json` cannot be read", "@context"),
        ("x.jsonld?context=x.nt", "the context `x.nt` is no JSON", "@context"),
        ("x.jsonld?context=x.json", "the context `x.json` has no `@context`", "@context"),
        ("x.jsonld?context=far.json", "the context <https://schema.org/> is not fetched", "@context"),
        ("ws://localhost:1/?format=nt&context=c.json", "is for JSON-LD alone", "leave `context` out"),
    ],
)
def test_errors_say_what_to_do(uri: str, message: str, hint: str) -> None:
    for name, text in {"x.json": "{}", "x.json.gz": "", "x.nt": "no", "x.jsonld": "{}"}.items():
        Path(name).write_text(text)
    Path("far.json").write_text('{"@context": "https://schema.org/"}')
    with pytest.raises(UsageError) as error:
        open_source(uri)
    assert message in error.value.message
    assert hint in (error.value.hint or "")
