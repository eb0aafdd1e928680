"""Faults that users ran into when something was read: each input as it was, and what is right.

Each docstring names the entry in the list of faults for which the test stands. docs/reading.md states the policy.
"""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import io
import json
import lzma
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from squall.errors import BuilderError, PluginError, SourceError, UsageError
from squall.rdf import Triple, iri, literal
from squall.sparql_update.datasets import read as read_dataset
from squall.streams import DeadLetterFile, contexts_of, formats, open_sink, open_source, open_static
from squall.streams.formats import compression
from squall.streams.formats.reading import ReadProgress, Settings, decode
from squall.streams.live import messages
from tests.conftest import Squall
from tests.test_live_http import serving, status

E = "http://ex/"
TRIPLE = f"<{E}a> <{E}p> <{E}o> ."
OTHER = f"<{E}b> <{E}p> <{E}o> ."
FACTS = [Triple(iri(E + "a"), iri(E + "p"), iri(E + "o")), Triple(iri(E + "b"), iri(E + "p"), iri(E + "o"))]
QUERY = "SELECT ?s ?o { ?s ?p ?o }"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XML = f"""<rdf:RDF xmlns:rdf="{RDF}" xmlns:e="{E}">
<rdf:Description rdf:about="{E}a"><e:p rdf:resource="{E}o"/></rdf:Description>
<rdf:Description rdf:about="{E}b"><e:p rdf:resource="{E}o"/></rdf:Description>
</rdf:RDF>
"""
JSONLD = json.dumps([{"@id": E + name, E + "p": {"@id": E + "o"}} for name in "ab"])
DOCUMENTS = {
    "nt": f"{TRIPLE}\n{OTHER}\n",
    "ntt": f"1 {TRIPLE}\n1 {OTHER}\n",
    "nq": f"{TRIPLE}\n{OTHER}\n",
    "nqt": f"1 {TRIPLE}\n1 {OTHER}\n",
    "nt5": f"{TRIPLE}\n{OTHER}\n",
    "rdfp": f"A {TRIPLE}\nA {OTHER}\n",
    "ttl": f"{TRIPLE}\n{OTHER}\n",
    "trig": f"{TRIPLE}\n{OTHER}\n",
    "rdf": XML,
    "jsonld": JSONLD,
    "nt-messages": f"{TRIPLE}\nMESSAGE\n{OTHER}\nMESSAGE\n",
    "nq-messages": f"{TRIPLE}\nMESSAGE\n{OTHER}\nMESSAGE\n",
    "ttl-messages": f"{TRIPLE}\nMESSAGE\n{OTHER}\nMESSAGE\n",
    "trig-messages": f"{TRIPLE}\nMESSAGE\n{OTHER}\nMESSAGE\n",
}
"""Two statements in each text format."""
LINES = ("nt", "ntt", "nq", "nqt", "nt5", "rdfp", "nt-messages", "nq-messages")
COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    Path("q.rq").write_text(QUERY)


def read(uri: str, ledger: DeadLetterFile | None = None) -> list[Any]:
    return [fact for batch in open_source(uri, ledger).batches() for event in batch for fact in event.facts]


def named(format: str, path: str = "x") -> str:
    return f"{path}?format={format}"


# D1: static data from a server


@pytest.mark.fault("D1")
def test_static_data_of_a_server_are_fetched_once(squall: Squall) -> None:
    """D1."""
    with serving(status(200, DOCUMENTS["nt"].encode()), status(500)) as server:
        code, out, _ = squall("run", "q.rq", "--static", server.at("x.nt?format=nt"), "--format", "srcsv")
        assert code == 0
        assert len(out.splitlines()) == 3
        assert len(server.asked) == 1


@pytest.mark.fault("D1")
def test_a_graph_may_be_fetched(squall: Squall) -> None:
    """D1, its kind."""
    Path("g.rq").write_text(f"SELECT ?s FROM <{E}g> {{ ?s ?p ?o }}")
    with serving(status(200, b"<a> <p> <o> .")) as server:
        code, out, _ = squall("run", "g.rq", "--graph", f"{E}g={server.at('dir/x.ttl')}", "--format", "srcsv")
        assert code == 0
        assert out.split() == ["s", server.at("dir/a")]


@pytest.mark.fault("D1")
@pytest.mark.parametrize("uri", ["mqtt://localhost/t?format=nt", "tcp://localhost:1?format=nt", "ws://h/?format=nt"])
def test_what_is_live_cannot_be_static(uri: str) -> None:
    """D1."""
    with pytest.raises(UsageError, match="is live: it cannot be static"):
        open_static(uri)


@pytest.mark.fault("D1")
def test_a_stream_of_events_cannot_be_static() -> None:
    """D1."""
    with serving(status(200, b"data: x\n\n", **{"Content-Type": "text/event-stream"})) as server:
        data = open_static(server.at("?format=nt"))
        with pytest.raises(SourceError, match="is a stream of events: it cannot be static"):
            list(data)


@pytest.mark.fault("D1")
def test_timed_data_of_a_server_cannot_be_static() -> None:
    """D1, its kind."""
    with pytest.raises(UsageError, match="is timed: it cannot be static"):
        open_static("http://localhost/x.ntt")


@pytest.mark.fault("D1")
@pytest.mark.parametrize("code", [404, 503])
def test_static_data_that_a_server_does_not_have_are_an_error(code: int) -> None:
    """D1."""
    with serving(status(code)) as server, pytest.raises(SourceError, match=f"the server answers {code}"):
        list(open_static(server.at("x.nt")))


@pytest.mark.fault("D1")
def test_static_data_of_a_server_that_are_cut_off_are_an_error() -> None:
    """D1."""

    def half(request: Any) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        request.wfile.write(f"{TRIPLE}\n".encode())
        request.close_connection = True

    with serving(half) as server, pytest.raises(SourceError, match="bytes too early"):
        list(open_static(server.at("x.nt")))


# D2 and its kind: what XML allows


@pytest.mark.fault("D2")
@pytest.mark.parametrize("quote", ["'", '"'])
def test_an_entity_may_be_in_either_quotes(quote: str) -> None:
    """D2."""
    head = f"""<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [
  <!-- <!ENTITY ex 'http://wrong/'> -->
  <!ENTITY ex {quote}http://ex/{quote}>
  <!ENTITY said '"so"'>
]>
"""
    text = XML.replace(f'rdf:about="{E}', 'rdf:about="&ex;').replace("</rdf:RDF>", "")
    text += '<rdf:Description rdf:about="&ex;c"><e:p>it is &said;</e:p></rdf:Description></rdf:RDF>'
    Path("x.rdf").write_text(head + text)
    assert read("x.rdf") == [*FACTS, Triple(iri(E + "c"), iri(E + "p"), literal('it is "so"'))]


@pytest.mark.fault("D2")
@pytest.mark.parametrize("encoding", ["ISO-8859-1", "windows-1252", "UTF-16", "utf-8", "UTF-32", "US-ASCII"])
def test_xml_has_the_encoding_that_it_declares(encoding: str) -> None:
    """D2, its kind."""
    letter = "e" if encoding == "US-ASCII" else "é"
    text = f"<?xml version='1.0' encoding='{encoding}'?>\n" + XML.replace(f"{E}o", f"{E}{letter}")
    Path("x.rdf").write_bytes(text.encode(encoding))
    assert [fact.object for fact in read("x.rdf")] == [iri(f"{E}{letter}")] * 2


@pytest.mark.fault("D2")
def test_xml_in_utf_16_needs_no_declaration() -> None:
    """D2, its kind."""
    Path("x.rdf").write_bytes(XML.encode("utf-16"))
    assert read("x.rdf") == FACTS


@pytest.mark.fault("D2")
def test_an_unknown_encoding_of_xml_is_named() -> None:
    """D2, its kind."""
    ledger = DeadLetterFile()
    Path("x.rdf").write_text(f"<?xml version='1.0' encoding='klingon'?>{XML}")
    assert read("x.rdf", ledger) == []
    assert ledger.first["malformed", "x.rdf"] == (1, "its encoding `klingon` is unknown; nothing of x.rdf is read")


@pytest.mark.fault("D2")
@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_a_line_end_in_xml_is_a_line_feed(end: str) -> None:
    """D2, its kind: XML 1.0, section 2.11."""
    text = XML.replace("</rdf:RDF>", f'<rdf:Description rdf:about="{E}c"><e:p>1\n2</e:p></rdf:Description></rdf:RDF>')
    Path("x.rdf").write_bytes(text.replace("\n", end).encode())
    assert read("x.rdf")[2].object == literal("1\n2")


# D3 and D19: what is said of documents that are cut by an error


@pytest.mark.fault("D3")
def test_a_run_that_could_read_nothing_fails_and_says_why(squall: Squall) -> None:
    """D3."""
    Path("x.ttl").write_text(f"@prefix : <{E}> .\n:a :b .\n:c :d :e .\n")
    code, _, said = squall("run", "q.rq", "--source", "x.ttl")
    assert code == 1
    assert "1 malformed in x.ttl; line 2: . is not a valid RDF object; nothing of x.ttl is read" in said
    assert "nothing could be read of `x.ttl`" in said


@pytest.mark.fault("D3")
@pytest.mark.parametrize("option", ["--static", "--graph"])
def test_a_run_fails_if_nothing_of_its_static_data_could_be_read(option: str, squall: Squall) -> None:
    """D3."""
    Path("x.nt").write_text(TRIPLE)
    Path("bad.nt").write_text("nonsense")
    Path("g.rq").write_text(f"SELECT ?s FROM <{E}g> {{ ?s ?p ?o }}")
    file = "bad.nt" if option == "--static" else f"{E}g=bad.nt"
    program = "q.rq" if option == "--static" else "g.rq"
    code, _, said = squall("run", program, "--source", "x.nt", option, file)
    assert code == 1
    assert "1 malformed in bad.nt; line 1: " in said


@pytest.mark.fault("D3")
def test_a_run_fails_if_no_statement_has_the_time_that_it_should_have(squall: Squall) -> None:
    """D3, its kind: the time is that of a property."""
    Path("x.nt").write_text(TRIPLE)
    code, _, said = squall("run", "q.rq", "--source", f"x.nt?time={E}at")
    assert code == 1
    assert f"nothing could be read of `x.nt?time={E}at`" in said


@pytest.mark.fault("D3")
def test_a_run_that_could_read_something_goes_well(squall: Squall) -> None:
    """D3: a malformed line is no failure; `--strict` makes it one."""
    Path("x.nt").write_text(f"{TRIPLE}\nnonsense\nnonsense\n")
    code, _, said = squall("run", "q.rq", "--source", "x.nt")
    assert code == 0
    assert "2 malformed in x.nt; the first: line 2: " in said
    assert "nothing could be read" not in said
    assert squall("run", "q.rq", "--source", "x.nt", "--strict")[0] == 1


@pytest.mark.fault("D3")
def test_an_empty_source_is_no_failure(squall: Squall) -> None:
    """D3: nothing is there, and nothing is malformed."""
    Path("x.ttl").write_text("")
    assert squall("run", "q.rq", "--source", "x.ttl")[0] == 0


CUT = {
    "a.ttl": ("\n".join(f"<{E}{number}> <{E}p> 1 ." for number in range(617)) + "\n<a> <b> .\n", 618),
    "a.trig": ("\n".join(f"<{E}{number}> <{E}p> 1 ." for number in range(617)) + "\n<a> <b> .\n", 618),
    "a.rdf": (
        XML.partition("\n")[0]
        + "\n"
        + "".join(f'<rdf:Description rdf:about="{E}{number}"><e:p>1</e:p></rdf:Description>\n' for number in range(617))
        + "</rdf:Description>\n</rdf:RDF>\n",
        619,
    ),
    "a.jsonld": (
        "[" + "\n".join(f'{{"@id": "{E}{number}", "{E}p": 1}},' for number in range(617)) + '\n{"@id" 1}]',
        618,
    ),
}


@pytest.mark.fault("D19")
@pytest.mark.parametrize("name", CUT)
def test_a_document_that_is_cut_by_an_error_says_what_is_left_out(name: str) -> None:
    """D19."""
    text, line = CUT[name]
    Path(name).write_text(text)
    ledger = DeadLetterFile()
    assert len(read(name, ledger)) == 617
    place, reason = ledger.first["malformed", name]
    assert reason.endswith(f"; the rest of {name} is left out (617 statements read)")
    assert place == line


@pytest.mark.fault("D19")
def test_the_summary_says_what_is_left_out_behind_another_error(squall: Squall) -> None:
    """D19, its kind: the error that cuts the document is not the first one."""
    Path("x.ttl").write_text(f'{TRIPLE}\n<{E}a> <{E}p> "x"@toolonglanguage .\nnonsense\n{OTHER}\n')
    code, _, said = squall("run", "q.rq", "--source", "x.ttl")
    assert code == 0
    assert "2 malformed in x.ttl; the first: line 2: `toolonglanguage` is not a language tag" in said
    assert "; the last: line 3: " in said
    assert "; the rest of x.ttl is left out (1 statement read)" in said


BAD_TERMS = {
    "ttl": f'<{E}a> <{E}p> "x"@toolonglanguage, <{E}o> .\n<{E}c> <{E}p> <{E}x y> .\n{OTHER}\n',
    "trig": f'<{E}g> {{ <{E}a> <{E}p> "x"@toolonglanguage, <{E}o> .\n<{E}c> <{E}p> <{E}x y> .\n{OTHER} }}\n',
    "rdf": XML.replace(
        f'<rdf:Description rdf:about="{E}a">',
        f'<rdf:Description rdf:about="{E}a"><e:p xml:lang="toolonglanguage">x</e:p>\n<e:p rdf:resource="{E}x y"/>',
    ),
}


@pytest.mark.fault("D19")
@pytest.mark.parametrize("format", BAD_TERMS)
def test_a_malformed_term_costs_its_statement_only(format: str) -> None:
    """D19: one bad language tag need not end a document."""
    Path(f"x.{format}").write_text(BAD_TERMS[format])
    ledger = DeadLetterFile(Path("lost"))
    assert sorted(fact[:3] for fact in read(f"x.{format}", ledger)) == [tuple(fact) for fact in FACTS]
    ledger.close()
    tag, name = map(json.loads, Path("lost").read_text().splitlines())
    assert tag["reason"].startswith("`toolonglanguage` is not a language tag: ")
    assert name["reason"].startswith(f"<{E}x y> is not an IRI: ")
    first = 2 if format == "rdf" else 1
    assert (tag["line"], name["line"]) == (first, first + 1)


@pytest.mark.fault("D19")
@pytest.mark.parametrize("format", BAD_TERMS)
def test_a_malformed_term_does_not_end_a_live_document(format: str) -> None:
    """D19, its kind: a pipe, a connection, or the response of a server cannot be read twice."""
    text, settings = BAD_TERMS[format].encode(), Settings("", "", 0)
    for longest in (None, 1 << 20):
        ledger = DeadLetterFile()
        file: Any = Once(text)
        batches = decode(file, "x", formats.BY_NAME[format], replace(settings, longest=longest), ledger, ReadProgress())
        facts = [fact for batch in batches for event in batch for fact in event.facts]
        assert sorted(fact[:3] for fact in facts) == [tuple(fact) for fact in FACTS]
        assert ledger.counts == {("malformed", "x"): 2}


class Once(io.RawIOBase):
    """Bytes that can be read once, some at a time."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._file.read(min(size, 50))


@pytest.mark.fault("D19")
@pytest.mark.parametrize(
    ("term", "is_right"),
    [
        ("<http://e.org/a-b_c.d~e/f?g=h&i;j,k+l@m!n$o'p(q)*r#s>", True),
        ("<http://localhost:8080/a>", True),
        ("<http://e.org/é>", True),
        ("<mailto:a@b.org>", True),
        ("<http://a:xx/>", False),
        ("<http://e.org/a#b#c>", False),
        ("<http://e.org/a|b>", False),
        ('"x"@en', True),
        ('"x"@de-at', True),
        ('"x"@zh-hans-cn', True),
        ('"x"@abcdefghi', False),
        ('"a \\"quoted\\" \\\\ é\\n"', True),
        ('"1"^^<http://e.org/integer>', True),
        ('"1"^^<http://e.org/inte ger>', False),
    ],
)
def test_terms_of_a_live_document_are_checked(term: str, is_right: bool) -> None:
    """D19, its kind."""
    ledger = DeadLetterFile()
    data = f"<{E}a> <{E}p> {term} .\n{TRIPLE}\n".encode()
    file: Any = Once(data)
    batches = decode(file, "x", formats.BY_NAME["ttl"], Settings("", "", 0, longest=1000), ledger, ReadProgress())
    count = sum(len(event.facts) for batch in batches for event in batch)
    assert (count, ledger.total("malformed")) == ((2, 0) if is_right else (1, 1))


@pytest.mark.fault("D19")
def test_blank_nodes_keep_their_names_behind_a_malformed_term() -> None:
    """D19: the document is read again from its beginning then."""
    good = f"[] <{E}p> [ <{E}p> _:x ] .\n_:x <{E}p> [] .\n"
    Path("x.ttl").write_text(good + good)
    expected = read("x.ttl")
    Path("x.ttl").write_text(f'{good}<{E}a> <{E}p> "x"@toolonglanguage .\n{good}')
    assert read("x.ttl", DeadLetterFile()) == expected


# D4: byte order marks


@pytest.mark.fault("D4")
@pytest.mark.parametrize("format", DOCUMENTS)
def test_a_byte_order_mark_is_left_out(format: str) -> None:
    """D4."""
    Path("x").write_bytes(codecs.BOM_UTF8 + DOCUMENTS[format].encode())
    assert [tuple(fact)[:3] for fact in read(named(format))] == [tuple(fact) for fact in FACTS]


@pytest.mark.fault("D4")
def test_static_data_with_a_byte_order_mark(squall: Squall) -> None:
    """D4."""
    Path("x.ttl").write_bytes(codecs.BOM_UTF8 + DOCUMENTS["ttl"].encode())
    code, out, _ = squall("run", "q.rq", "--static", "x.ttl", "--format", "tsv")
    assert code == 0
    assert len(out.splitlines()) == 3
    assert read_dataset("x.ttl").default == set(FACTS)


@pytest.mark.fault("D4")
@pytest.mark.parametrize("format", ["nt", "ntt", "rdfp"])
def test_a_run_resumes_behind_a_byte_order_mark(format: str) -> None:
    """D4, its kind: positions count the bytes of the file."""
    text = f"TX .\n{DOCUMENTS[format]}TC .\n" if format == "rdfp" else DOCUMENTS[format]
    Path(f"x.{format}").write_bytes(codecs.BOM_UTF8 + text.encode())
    source: Any = open_source(f"x.{format}")
    assert [fact for batch in source.batches() for event in batch for fact in event.facts] == FACTS
    with Path(f"x.{format}").open("a") as file:
        file.write(text.replace(f"{E}a", f"{E}c").replace(f"{E}b", f"{E}c"))
    offset = list(source.current_offset())
    offset[-1] = False  # the file has grown
    other: Any = open_source(f"x.{format}")
    other.resume(offset)
    facts = [fact for batch in other.batches() for event in batch for fact in event.facts]
    assert {fact.subject for fact in facts} == {iri(f"{E}c")}


@pytest.mark.fault("D4")
def test_text_in_utf_16_is_named() -> None:
    """D4, its kind."""
    Path("x.nt").write_bytes(DOCUMENTS["nt"].encode("utf-16"))
    ledger = DeadLetterFile()
    assert read("x.nt", ledger) == []
    reason = "the text is UTF-16 or UTF-32, and not UTF-8; nothing of x.nt is read"
    assert ledger.first["malformed", "x.nt"] == (None, reason)
    assert sum(ledger.counts.values()) == 1


# D5: the format of what a server has


@pytest.mark.fault("D5")
@pytest.mark.parametrize(
    ("path", "media_type", "format"),
    [
        ("data.ttl", "text/plain", "ttl"),
        ("data.RDF?query.x=1", "application/octet-stream", "rdf"),
        ("data", "text/turtle; charset=utf-8", "ttl"),
        ("data.rdf", "text/turtle", "ttl"),
        ("data", "application/rdf+xml", "rdf"),
        ("data.ttl", "application/ld+json", "jsonld"),
        ("data", "application/n-triples", "nt"),
        ("data", "application/n-quads", "nq"),
        ("data", "application/trig", "trig"),
        ("data?format=ttl", "application/ld+json", "ttl"),
    ],
)
def test_the_media_type_or_the_ending_says_the_format(path: str, media_type: str, format: str) -> None:
    """D5."""
    with serving(status(200, DOCUMENTS[format].encode(), **{"Content-Type": media_type}), status(404)) as server:
        assert [fact for event in open_static(server.at(path)) for fact in event.facts] == FACTS
    with serving(status(200, DOCUMENTS[format].encode(), **{"Content-Type": media_type}), status(404)) as server:
        uri = server.at(f"{path}{'&' if '?' in path else '?'}poll=0")
        assert [fact for event in next(iter(open_source(uri).batches())) for fact in event.facts] == FACTS


@pytest.mark.fault("D5")
def test_a_timed_format_of_a_server_has_its_ending() -> None:
    """D5, its kind: it has no media type."""
    with serving(status(200, b"5 " + TRIPLE.encode(), **{"Content-Type": "text/plain"}), status(404)) as server:
        batches = open_source(server.at("x.ntt?poll=0")).batches()
        assert [event.time for event in next(iter(batches))] == [5]


@pytest.mark.fault("D5")
def test_an_unknown_media_type_is_named() -> None:
    """D5."""
    with serving(status(200, b"{}", **{"Content-Type": "application/json"})) as server:
        with pytest.raises(SourceError, match="its media type `application/json` is none of RDF") as failure:
            list(open_static(server.at("data")))
        assert failure.value.hint == "name it: `?format=ttl`"


@pytest.mark.fault("D5", "D18")
@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zst"])
def test_what_a_server_has_may_be_compressed(ending: str) -> None:
    """D5 and D18."""
    data = COMPRESSED[ending](DOCUMENTS["nt"].encode())
    with serving(status(200, data), status(404)) as server:
        assert [fact for event in open_static(server.at(f"x.nt.{ending}")) for fact in event.facts] == FACTS
    with serving(status(200, data), status(404)) as server:
        batch = next(iter(open_source(server.at(f"x?format=nt.{ending}")).batches()))
        assert [fact for event in batch for fact in event.facts] == FACTS


@pytest.mark.fault("D5", "D18")
@pytest.mark.parametrize("path", ["x.nt", "x.nt.gz"])
def test_a_server_may_say_that_its_content_is_compressed(path: str) -> None:
    """D5 and D18: a server that has `x.nt.gz` may say so by its encoding."""
    data = gzip.compress(DOCUMENTS["nt"].encode())
    with serving(status(200, data, **{"Content-Encoding": "gzip"})) as server:
        assert [fact for event in open_static(server.at(path)) for fact in event.facts] == FACTS


# D6: redirects and proxies; see tests/test_http_client.py


@pytest.mark.fault("D6")
def test_a_server_that_redirects_is_followed(squall: Squall) -> None:
    """D6."""
    with serving(status(301, Location="/b.nt"), status(200, DOCUMENTS["nt"].encode())) as server:
        assert squall("run", "q.rq", "--static", server.at("a"), "--format", "srcsv")[0] == 0


# D7, D15, D16: contexts of JSON-LD

CONTEXT = {"@context": {"@base": "http://wrong/", "p": {"@id": f"{E}p", "@type": "@id"}}}
SCHEMA = "https://schema.example"


def jsonld(context: Any) -> str:
    return json.dumps({"@context": context, "@graph": [{"@id": f"{E}{name}", "p": f"{E}o"} for name in "ab"]}, indent=1)


@pytest.mark.fault("D7")
@pytest.mark.parametrize("text", ['{"a": 1}', '[{"a": {"b": [1]}}]', '{"a": 1, "b": "' + "x" * 1_000_000 + '"}'])
def test_json_without_a_context_is_malformed(text: str, squall: Squall) -> None:
    """D7."""
    Path("x.jsonld").write_text(text)
    code, _, said = squall("run", "q.rq", "--source", "x.jsonld")
    assert code == 1
    assert "it has no `@context`, so that its keys are no IRIs; nothing of x.jsonld is read" in said


@pytest.mark.fault("D7")
def test_an_update_does_not_read_json_without_a_context(squall: Squall) -> None:
    """D7, its kind: it would be replaced by nothing."""
    Path("x.ru").write_text("DELETE WHERE { ?s ?p ?o }")
    Path("x.jsonld").write_text('{"a": 1}')
    code, _, said = squall("update", "x.ru", "--data", "x.jsonld", "--output", "x.jsonld")
    assert code != 0
    assert "it has no `@context`" in said
    assert Path("x.jsonld").read_text() == '{"a": 1}'


@pytest.mark.fault("D7")
def test_json_of_which_a_context_has_no_key_is_malformed() -> None:
    """D7, its kind."""
    Path("x.jsonld").write_text(json.dumps({"@context": {"name": f"{E}name"}, "nam": "x"}))
    ledger = DeadLetterFile()
    assert read("x.jsonld", ledger) == []
    reason = "none of its keys is an IRI, or a term of its context; nothing of x.jsonld is read"
    assert ledger.first["malformed", "x.jsonld"] == (None, reason)


@pytest.mark.fault("D7")
@pytest.mark.parametrize(
    "document", [{}, [], {"@context": {"p": f"{E}p"}, "@graph": []}, {"@id": f"{E}a"}, {f"{E}p": []}]
)
def test_json_without_a_value_is_empty(document: Any) -> None:
    """D7, its kind: nothing is lost."""
    Path("x.jsonld").write_text(json.dumps(document))
    assert read("x.jsonld") == []


@pytest.mark.fault("D7")
def test_a_message_without_a_context_is_malformed() -> None:
    """D7, its kind."""
    ledger, reading = DeadLetterFile(), ReadProgress()
    message = messages.Message(b'{"temperature": 20}', "mqtt://host/topic", "message 1")
    settings = Settings("jsonld", "", 0)
    assert not any(messages.read(message, formats.BY_NAME["jsonld"], settings, ledger, reading))
    assert reading.is_unreadable
    assert "it has no `@context`" in ledger.first["malformed", "mqtt://host/topic"][1]


@pytest.mark.fault("D16")
@pytest.mark.parametrize(
    "context", ["c.jsonld", ["c.jsonld"], [None, "c.jsonld", {"q": f"{E}q"}], {"@import": "c.jsonld"}]
)
def test_a_relative_context_is_read_beside_its_document(context: Any) -> None:
    """D16."""
    Path("in").mkdir()
    Path("in/c.jsonld").write_text(json.dumps(CONTEXT))
    Path("in/x.jsonld").write_text(jsonld(context))
    assert read("in/x.jsonld") == FACTS
    assert [fact for event in open_static("in/x.jsonld") for fact in event.facts] == FACTS
    assert read_dataset("in/x.jsonld").default == set(FACTS)


@pytest.mark.fault("D16")
def test_a_context_may_refer_to_others() -> None:
    """D16."""
    Path("sub").mkdir()
    Path("x.jsonld").write_text(jsonld(["sub/a.jsonld"]))
    Path("sub/a.jsonld").write_text(json.dumps({"@context": [{"q": f"{E}q"}, "../b.jsonld"]}))
    Path("b.jsonld").write_text(json.dumps(CONTEXT))
    assert read("x.jsonld") == FACTS


@pytest.mark.fault("D16")
def test_a_term_may_have_a_context_of_another_file() -> None:
    """D16."""
    Path("c.jsonld").write_text(json.dumps(CONTEXT))
    inner = {"@context": {"has": {"@id": f"{E}has", "@context": "c.jsonld"}}, "@id": f"{E}x"}
    Path("x.jsonld").write_text(json.dumps({**inner, "has": {"@id": f"{E}a", "p": f"{E}o"}}))
    assert FACTS[0] in read("x.jsonld")


@pytest.mark.fault("D16")
@pytest.mark.parametrize("option", ["--source", "--static"])
@pytest.mark.parametrize("name", [SCHEMA, f"{SCHEMA}/"])
def test_a_context_may_be_named_with_its_file(option: str, name: str, squall: Squall) -> None:
    """D16."""
    Path("schema.jsonld").write_text(json.dumps(CONTEXT))
    Path("x.jsonld").write_text(jsonld(SCHEMA))
    graph = f"{name}=schema.jsonld"
    code, out, _ = squall("run", "q.rq", option, "x.jsonld", "--graph", graph, "--format", "srcsv")
    assert code == 0
    assert len(out.splitlines()) == 3


@pytest.mark.fault("D16")
def test_an_update_reads_contexts_that_are_named(squall: Squall) -> None:
    """D16, its kind."""
    Path("schema.jsonld").write_text(json.dumps(CONTEXT))
    Path("x.jsonld").write_text(jsonld(SCHEMA))
    Path("x.ru").write_text("LOAD <x.jsonld>")
    graph = f"{SCHEMA}=schema.jsonld"
    for arguments in (("--data", "x.jsonld"), ()):
        code, out, said = squall("update", "x.ru", *arguments, "--graph", graph)
        assert code == 0, said
        assert out.count("\n") == 2


@pytest.mark.fault("D16")
def test_a_message_may_have_a_context_that_is_named() -> None:
    """D16, its kind: NGSI-LD over MQTT."""
    Path("schema.jsonld").write_text(json.dumps(CONTEXT))
    source: Any = open_source("mqtt://localhost/t?format=jsonld", documents={SCHEMA: "schema.jsonld"})
    events = source.events([messages.Message(jsonld(SCHEMA).encode(), "mqtt://localhost/t", "message 1")])
    assert [fact for event in events for fact in event.facts] == FACTS


@pytest.mark.fault("D15", "D16")
def test_a_context_that_is_not_named_is_not_fetched(squall: Squall) -> None:
    """D15 and D16."""
    with serving(status(200, json.dumps(CONTEXT).encode())) as server:
        iri = server.at("c.jsonld")
        Path("x.jsonld").write_text(jsonld(iri))
        code, _, said = squall("run", "q.rq", "--source", "x.jsonld")
        assert code == 1
        reason = f"line 2: the context <{iri}> is not fetched: name its file by `--graph {iri}=FILE`"
        assert f"1 malformed in x.jsonld; {reason}; nothing of x.jsonld is read" in said
        assert server.asked == []


@pytest.mark.fault("D16")
@pytest.mark.parametrize("reference", ["c.jsonld", "/etc/passwd", "file:///etc/passwd"])
def test_a_message_does_not_lead_to_files(reference: str) -> None:
    """D16: strangers write messages."""
    Path("c.jsonld").write_text(json.dumps(CONTEXT))
    ledger, reading = DeadLetterFile(), ReadProgress()
    message = messages.Message(jsonld(reference).encode(), "mqtt://host/topic", "message 1")
    settings = Settings("jsonld", "", 0)
    assert not any(messages.read(message, formats.BY_NAME["jsonld"], settings, ledger, reading))
    assert "is not fetched" in ledger.first["malformed", "mqtt://host/topic"][1]


@pytest.mark.fault("D16")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "the context `{}` cannot be read: No such file or directory"),
        ("nonsense", "the context `{}` is no JSON: "),
        ("{}", "the context `{}` has no `@context`"),
        ('{"@context": "c.jsonld"}', "the context <file://{}> includes itself"),
        ('{"@context": {"@import": 1}}', "`1` is no reference to a context"),
    ],
)
def test_a_context_that_cannot_be_used_is_named(text: str | None, reason: str) -> None:
    """D16."""
    if text is not None:
        Path("c.jsonld").write_text(text)
    Path("x.jsonld").write_text(jsonld("c.jsonld"))
    ledger = DeadLetterFile()
    assert read("x.jsonld", ledger) == []
    line, said = ledger.first["malformed", "x.jsonld"]
    assert said.startswith(reason.format(Path("c.jsonld").absolute()))
    assert line == 2


@pytest.mark.fault("D16")
@pytest.mark.parametrize("size", [1, 7, 64, 1 << 16])
def test_a_context_is_replaced_wherever_the_input_is_cut(size: int) -> None:
    """D16."""
    Path("c.jsonld").write_text(json.dumps(CONTEXT))
    text = jsonld(["c.jsonld", {"é": f"{E}é"}]).replace('"@context": ', '"@context" \n : ') + "\n\n"

    class Slow(io.BytesIO):
        def read(self, _: int | None = -1) -> bytes:
            return super().read(size)

    base = Path("x.jsonld").absolute().as_uri()
    batches = decode(Slow(text.encode()), "x", formats.BY_NAME["jsonld"], Settings("", "", 0), DeadLetterFile(),
                     ReadProgress(), base=base)  # fmt: skip
    assert [fact for batch in batches for event in batch for fact in event.facts] == FACTS


@pytest.mark.fault("D16")
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_context_is_fetched_once_if_that_is_asked_for(ending: str) -> None:
    """D16: `--graph IRI=http://...`."""
    data = json.dumps(CONTEXT).encode()
    with serving(status(200, gzip.compress(data) if ending else data), status(500)) as server:
        mark = "?format=jsonld.gz" if ending else ""
        documents = {SCHEMA: server.at(f"c{mark}")}
        for name in ("x.jsonld", "y.jsonld"):
            Path(name).write_text(jsonld([SCHEMA, {"q": f"{E}q"}]))
            batches = open_source(name, documents=documents).batches()
            assert [fact for batch in batches for event in batch for fact in event.facts] == FACTS
        assert len(server.asked) == 1


@pytest.mark.fault("D16")
def test_a_context_that_a_server_does_not_have_is_named() -> None:
    """D16."""
    Path("x.jsonld").write_text(jsonld(SCHEMA))
    for answer, reason in ((status(404), "the server answers 404"), (status(200, b"<html>"), "is no JSON: ")):
        ledger = DeadLetterFile()
        with serving(answer) as server:
            assert not any(open_source("x.jsonld", ledger, documents={SCHEMA: server.at("c")}).batches())
        assert reason in ledger.first["malformed", "x.jsonld"][1]


@pytest.mark.fault("D16")
def test_a_context_is_no_live_source() -> None:
    """D16."""
    Path("x.jsonld").write_text(jsonld(SCHEMA))
    ledger = DeadLetterFile()
    assert not any(open_source("x.jsonld", ledger, documents={SCHEMA: "mqtt://localhost/t"}).batches())
    assert "is neither a file nor a document of a server" in ledger.first["malformed", "x.jsonld"][1]


@pytest.mark.fault("D16", "D19")
def test_an_error_behind_a_context_has_the_line_of_the_document() -> None:
    """D16 and D19."""
    Path("c.jsonld").write_text(json.dumps(CONTEXT, indent=1))
    text = jsonld(["c.jsonld"])
    Path("x.jsonld").write_text(text[:-4] + "nonsense")
    ledger = DeadLetterFile()
    read("x.jsonld", ledger)
    assert ledger.first["malformed", "x.jsonld"][0] == text[:-4].count("\n") + 1


@pytest.mark.fault("D16")
@pytest.mark.parametrize("option", ["--source", "--static"])
def test_a_folder_has_the_contexts_of_an_index(option: str, squall: Squall) -> None:
    """D16: a set of well-known contexts; `--graph` wins."""
    Path("known").mkdir()
    Path("known/contexts.json").write_text(json.dumps({SCHEMA: "s.jsonld"}))
    Path("known/s.jsonld").write_text(json.dumps(CONTEXT))
    Path("x.jsonld").write_text(jsonld(SCHEMA))
    Path("q.rq").write_text(f"SELECT ?o {{ ?s <{E}p> ?o }}")
    run = ("run", "q.rq", option, "x.jsonld", "--contexts", "known", "--format", "srcsv")
    assert squall(*run)[1].split() == ["o", f"{E}o", f"{E}o"]
    Path("other.jsonld").write_text(json.dumps({"@context": {"p": f"{E}other"}}))
    assert squall(*run, "--graph", f"{SCHEMA}=other.jsonld")[:2] == (0, "")
    contexts = contexts_of("known")
    assert [fact for event in open_static("x.jsonld", documents=contexts) for fact in event.facts] == FACTS
    Path("x.ru").write_text("INSERT DATA {}")
    code, out, _ = squall("update", "x.ru", "--data", "x.jsonld", "--contexts", "known")
    assert (code, out) == (0, "".join(f"{' '.join(fact)} .\n" for fact in sorted(FACTS)))


@pytest.mark.fault("D16")
@pytest.mark.parametrize(
    ("index", "message"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[]", "is no JSON object"),
        ('{"a": "s.jsonld"}', "no absolute IRI"),
        ('{"http://ex/c": 1}', "has no file"),
        ('{"http://ex/c": "no.jsonld"}', "which is no file"),
    ],
)
def test_a_folder_of_contexts_without_a_proper_index_is_refused(index: str | None, message: str) -> None:
    """D16."""
    if index is not None:
        Path("contexts.json").write_text(index)
    with pytest.raises(UsageError, match=message):
        contexts_of(".")


# D8: the version directive


@pytest.mark.fault("D8")
@pytest.mark.parametrize("format", ["nt", "ntt", "nq", "nqt", "ttl", "trig"])
@pytest.mark.parametrize("version", ['VERSION "1.2"', "VERSION '1.2-basic' # RDF 1.2", '  VERSION "1.1"\r'])
def test_a_version_directive_is_no_statement(format: str, version: str) -> None:
    """D8."""
    Path("x").write_text(f"{version}\n{DOCUMENTS[format]}")
    assert [tuple(fact)[:3] for fact in read(named(format))] == [tuple(fact) for fact in FACTS]


# D12: line ends


@pytest.mark.fault("D12")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("format", DOCUMENTS)
def test_each_line_end_is_one(format: str, end: str) -> None:
    """D12."""
    text = f"# a comment\n{DOCUMENTS[format]}" if format not in ("rdf", "jsonld") else DOCUMENTS[format]
    Path("x").write_bytes(text.replace("\n", end).encode())
    assert [tuple(fact)[:3] for fact in read(named(format))] == [tuple(fact) for fact in FACTS]


@pytest.mark.fault("D12")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("format", ["nt", "ntt", "rdfp"])
def test_lines_count_whatever_ends_them(format: str, end: str) -> None:
    """D12."""
    first, second = DOCUMENTS[format].splitlines()
    Path("x").write_bytes(end.join([first, "nonsense", "", second, "nonsense"]).encode())
    ledger = DeadLetterFile(Path("lost"))
    assert read(named(format), ledger) == FACTS
    ledger.close()
    letters = [json.loads(line) for line in Path("lost").read_text().splitlines()]
    assert [(letter["line"], letter["text"].strip()) for letter in letters] == [(2, "nonsense"), (5, "nonsense")]


# D13: endings in capitals


@pytest.mark.fault("D13")
@pytest.mark.parametrize("format", ["nt", "ntt", "nq", "nqt", "rdfp", "ttl", "trig", "rdf", "jsonld"])
def test_endings_may_be_in_capitals(format: str) -> None:
    """D13."""
    Path(f"ONE.{format.upper()}").write_text(DOCUMENTS[format])
    assert [tuple(fact)[:3] for fact in read(f"ONE.{format.upper()}")] == [tuple(fact) for fact in FACTS]
    Path(f"ONE.{format.upper()}.GZ").write_bytes(gzip.compress(DOCUMENTS[format].encode()))
    assert [tuple(fact)[:3] for fact in read(f"ONE.{format.upper()}.GZ")] == [tuple(fact) for fact in FACTS]


@pytest.mark.fault("D13")
def test_endings_of_sinks_may_be_in_capitals() -> None:
    """D13, its kind."""
    assert [getattr(open_sink(name), "format", "") for name in ("OUT.NT", "Out.CSV.GZ", "x.JSONL")] == [
        "nt", "csv", "ndjson",
    ]  # fmt: skip


@pytest.mark.fault("D13")
@pytest.mark.parametrize("name", ["Q.RQ", "Q.Rq"])
def test_endings_of_programs_may_be_in_capitals(name: str, squall: Squall) -> None:
    """D13, its kind."""
    Path(name).write_text(QUERY)
    Path("x.nt").write_text(TRIPLE)
    assert squall("run", name, "--source", "x.nt")[0] == 0


# D14: empty messages


@pytest.mark.fault("D14")
@pytest.mark.parametrize("format", formats.BY_NAME)
@pytest.mark.parametrize("data", [b"", b" \r\n\t\n", codecs.BOM_UTF8])
def test_an_empty_message_is_nothing(format: str, data: bytes) -> None:
    """D14: a retained message of MQTT that was cleared, a tombstone of Kafka."""
    if formats.BY_NAME[format].binary and data:
        return
    ledger, reading = DeadLetterFile(), ReadProgress()
    message = messages.Message(data, "mqtt://host/topic", "message 1")
    batches = messages.read(message, formats.BY_NAME[format], Settings(format, "", 0), ledger, reading)
    assert [event for batch in batches for event in batch] == []
    assert not ledger.counts
    assert not reading.is_unreadable


@pytest.mark.fault("D14")
@pytest.mark.parametrize("format", [format.name for format in formats.FORMATS if not format.records])
def test_an_empty_file_is_nothing(format: str, squall: Squall) -> None:
    """D14, its kind."""
    Path("x").write_bytes(b"")
    assert squall("run", "q.rq", "--source", named(format))[0] == 0
    assert read(named(format)) == []


# D18: compressed files


@pytest.mark.fault("D18")
@pytest.mark.parametrize("ending", COMPRESSED)
@pytest.mark.parametrize("format", ["nt", "ntt", "ttl", "rdf", "rdfp"])
def test_compressed_files_are_read_by_their_ending(format: str, ending: str) -> None:
    """D18."""
    data = DOCUMENTS[format].encode()
    Path(f"a.{format}.{ending}").write_bytes(COMPRESSED[ending](data))
    assert read(f"a.{format}.{ending}") == FACTS
    assert read(f"a.{format}.{ending}?format={format}") == FACTS
    Path("b").write_bytes(COMPRESSED[ending](data[:-100]) + COMPRESSED[ending](data[-100:]))
    assert read(named(f"{format}.{ending}", "b")) == FACTS
    if format in ("nt", "ttl", "rdf"):
        assert list(open_static(f"a.{format}.{ending}"))
        assert read_dataset(f"a.{format}.{ending}").default == set(FACTS)


@pytest.mark.fault("D18")
@pytest.mark.parametrize("ending", COMPRESSED)
def test_a_compressed_file_that_is_cut_is_an_error(ending: str, squall: Squall) -> None:
    """D18, its kind."""
    data = COMPRESSED[ending](b"".join(f"<{E}{number}> <{E}p> <{E}o> .\n".encode() for number in range(1000)))
    Path(f"a.nt.{ending}").write_bytes(data[:-9])
    code, _, said = squall("run", "q.rq", "--source", f"a.nt.{ending}")
    assert code == 1
    assert f"`a.nt.{ending}` cannot be read: " in said


@pytest.mark.fault("D18")
@pytest.mark.parametrize("ending", COMPRESSED)
def test_compressed_data_under_another_name_are_recognised(ending: str) -> None:
    """D18: the hint to name the format led to the loss of all."""
    Path("x.nt").write_bytes(COMPRESSED[ending](DOCUMENTS["nt"].encode()))
    ledger = DeadLetterFile()
    assert read("x.nt", ledger) == []
    _, reason = ledger.first["malformed", "x.nt"]
    assert reason.startswith(f"it is compressed; name that by the ending `.{ending}`, or by the format, such as ")
    assert sum(ledger.counts.values()) == 1


@pytest.mark.fault("D18")
def test_zstandard_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """D18."""
    monkeypatch.setattr(compression, "find_spec", lambda name: None)
    Path("a.nt.zst").write_bytes(b"")
    with pytest.raises(PluginError, match=r"`.zst` needs `zstandard`, which is not installed") as failure:
        open_source("a.nt.zst")
    assert failure.value.hint is not None
    assert "squall[zstd]" in failure.value.hint


@pytest.mark.fault("D18")
@pytest.mark.parametrize("name", ["out.nt.bz2", "out.nt.zst?format=nt", "out?format=nt.xz"])
def test_sinks_compress_by_gzip_only(name: str) -> None:
    """D18, its kind."""
    with pytest.raises(UsageError, match="outputs are compressed by gzip only"):
        open_sink(name)


@pytest.mark.fault("D18")
@pytest.mark.parametrize("ending", COMPRESSED)
def test_a_dataset_is_written_compressed(ending: str, squall: Squall) -> None:
    """D18, its kind."""
    Path("x.ru").write_text(f"INSERT DATA {{ {TRIPLE} }}")
    assert squall("update", "x.ru", "--output", f"out.nt.{ending}")[0] == 0
    assert read(f"out.nt.{ending}") == FACTS[:1]


# H3: a file system that refuses


REFUSALS = [OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EROFS, "Read-only file system")]


def refuse(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, failure: OSError, calls: int = 0) -> None:
    """Replaces a function by one that raises an error after some calls."""
    original, count = getattr(owner, name), iter(range(calls))

    def refusing(*arguments: Any, **options: Any) -> Any:
        if next(count, None) is None:
            raise failure
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, refusing)


@pytest.mark.fault("H3")
@pytest.mark.parametrize("failure", REFUSALS)
@pytest.mark.parametrize("calls", [0, 1, 2, 3, 4, 5])
def test_a_checkpoint_that_cannot_be_saved_is_an_error(
    failure: OSError, calls: int, squall: Squall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H3: whichever file is synced when the file system refuses: checkpoint, sink or dead letters."""
    Path("x.ntt").write_text(f"1 {TRIPLE}\nnonsense\n2 {OTHER}\n")
    Path("c.rq").write_text("CONSTRUCT { ?s <urn:q> ?o } { ?s ?p ?o }")
    refuse(monkeypatch, os, "fsync", failure, calls)
    options = "--checkpoint", "cp", "--checkpoint-interval", "1", "--dead-letters", "lost", "--sink", "out.nt"
    code, _, said = squall("run", "c.rq", "--source", "x.ntt", *options)
    assert code == 1
    assert str(failure.strerror) in said
    assert "cannot be saved" in said or "cannot be written" in said


@pytest.mark.fault("H3")
def test_a_checkpoint_that_cannot_be_opened_again_is_an_error(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    """H3."""
    Path("x.ntt").write_text(f"1 {TRIPLE}\n")
    arguments = "run", "q.rq", "--source", "x.ntt", "--checkpoint", "cp", "--sink", "out.tsv"
    assert squall(*arguments)[0] == 0
    opened = Path.open

    def refusing(path: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if path.name == "checkpoint.jsonl" and mode == "r+b":
            raise REFUSALS[1]
        return opened(path, mode, *rest, **options)

    monkeypatch.setattr(Path, "open", refusing)
    code, _, said = squall(*arguments)
    assert code == 1
    assert "the checkpoint `cp` cannot be used: Read-only file system" in said


@pytest.mark.fault("H3")
@pytest.mark.parametrize("failure", REFUSALS)
def test_what_an_engine_cannot_save_is_an_error(failure: OSError) -> None:
    """H3: the errors of Spark's JVM are texts."""
    pytest.importorskip("pyspark")
    from squall.builders.distributed.io.records import WorkerError
    from squall.builders.spark.disk_errors import disk_errors

    with (
        pytest.raises(BuilderError, match=f"the state of the run cannot be saved: {failure.strerror}"),
        WorkerError.retold(),
    ):
        raise RuntimeError(f"java.io.IOException: {failure.strerror}\n  at somewhere")
    with (
        pytest.raises(BuilderError, match=f"the checkpoint cannot be saved in `cp`: {failure.strerror}"),
        disk_errors(Path("cp")),
    ):
        raise failure


def test_every_format_has_an_example_here() -> None:
    """Those of records are in `tests/test_record_sources.py`."""
    plain_formats = (format for format in formats.FORMATS if not (format.binary or format.records))
    names: Sequence[str] = [format.name for format in plain_formats]
    assert list(DOCUMENTS) == names
