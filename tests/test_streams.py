"""Sources, sinks, the merge of several sources, and the dead-letter ledger."""

from __future__ import annotations

import gzip
import json
import os
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyoxigraph
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from squall.contracts import Output
from squall.errors import PluginError, SinkError, SourceError, UsageError
from squall.model.windows import CountWindow, HoppingWindow, SlidingWindow
from squall.rdf import ALWAYS, XSD, Atom, Event, Fact, Quad, Solution, Term, Triple, iri, literal
from squall.streams import (
    DeadLetterFile,
    FileSink,
    Sources,
    address,
    formats,
    open_sink,
    open_source,
    open_static,
    parse_lines,
    windows,
)
from squall.streams.formats.limits import DEFAULT_LIMITS, ReadLimits
from squall.streams.formats.timestamps import time_of
from squall.streams.sources.files import FileSource, Stoppable
from tests.limits import open_limited

E = "http://example.org/"


def t(subject: str, object: str = "o") -> Triple:
    return Triple(iri(E + subject), iri(E + "p"), iri(E + object))


def lines(*triples: Triple) -> str:
    return "".join(f"{triple}\n" for triple in triples)


def facts(uri: str | Path, ledger: DeadLetterFile | None = None) -> list[Triple]:
    return [triple(fact) for event in events(uri, ledger) for fact in event.facts]


def triple(fact: Fact) -> Triple:
    assert isinstance(fact, Triple)
    return fact


Kept = tuple[DeadLetterFile, Callable[[], list[dict[str, Any]]]]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    """Yields a ledger with a file, and a function that reads the file."""
    ledger = DeadLetterFile(tmp_path / "lost")
    yield ledger, lambda: [json.loads(line) for line in (tmp_path / "lost").read_text().splitlines()]
    ledger.close()


def events(uri: str | Path, ledger: DeadLetterFile | None = None, limits: ReadLimits = DEFAULT_LIMITS) -> list[Event]:
    return [event for batch in open_limited(str(uri), limits, ledger).batches() for event in batch]


# Addresses


def test_addresses() -> None:
    plain = address.parse("a b.nt?stream=urn:s&format=nt", "stdin")
    assert (plain.scheme, plain.path, plain.get("stream")) == ("file", "a b.nt", "urn:s")
    assert address.parse("file:///d/a%20b.nt", "stdin").path == "/d/a b.nt"
    assert address.parse("-", "stdin").scheme == "stdin"
    assert address.parse("gopher://host/topic", "stdin").scheme == "gopher"
    assert address.parse("C:/x.nt", "stdin").scheme == "file"


@pytest.mark.parametrize(
    ("text", "stream", "path"),
    [
        ("obs=x.nt", "obs", "x.nt"),
        ("obs=-?format=nt", "obs", "-"),
        ("o-b_s.1=a=b.nt", "o-b_s.1", "a=b.nt"),
        ("urn:x:obs=x.nt", "urn:x:obs", "x.nt"),
        ("http://example.org/s#obs=in/x.nt?format=nt", "http://example.org/s#obs", "in/x.nt"),
        ("obs=file:///d/a%20b.nt", "obs", "/d/a b.nt"),
        ("x.nt?stream=urn:s", "urn:s", "x.nt"),
        ("x.nt?stream=a=b", "a=b", "x.nt"),
        ("data/day=1/x.nt", "", "data/day=1/x.nt"),
        ("./day=1.nt", "", "./day=1.nt"),
        ("/d/day=1.nt", "", "/d/day=1.nt"),
        ("file:///d/day=1.nt", "", "/d/day=1.nt"),
        ("1=x.nt", "", "1=x.nt"),
        ("C:/day=1.nt", "", "C:/day=1.nt"),
        ("obs=", "", "obs="),
    ],
)
def test_the_name_of_a_stream(text: str, stream: str, path: str) -> None:
    place = address.source(text)
    assert (place.get("stream"), place.path, place.text) == (stream, path, text)


def test_a_named_stream(tmp_path: Path) -> None:
    (tmp_path / "x.nt").write_text(lines(t("a")))
    assert events(f"obs={tmp_path}/x.nt") == [Event(0, (t("a"),), "obs")]
    assert list(open_static(f"known={tmp_path}/x.nt")) == [Event(ALWAYS, (t("a"),), "known")]


def test_the_windows_of_addresses() -> None:
    uris = ["a=x.nt?window=RANGE 10s STEP 5s", "b=y.nt", "a=z.nt", "-?window=triples%205&format=nt"]
    assert windows(uris) == {"a": HoppingWindow(10_000, 5000), "": CountWindow(5)}
    assert windows(["a=x.nt?window=RANGE 1s", "a=y.nt?window=RANGE 1s"]) == {"a": SlidingWindow(1000)}
    with pytest.raises(UsageError, match="a has two windows: RANGE 1s and RANGE 2s"):
        windows(["a=x.nt?window=RANGE 1s", "a=y.nt?window=RANGE 2s"])
    with pytest.raises(UsageError, match="`RANGE soon` is not a window"):
        windows(["x.nt?window=RANGE soon"])


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("a=x.nt?stream=b", "the option `stream` twice"),
        ("x.nt?lateness=much", "`much` is not a length of time"),
        ("x.nt?windw=RANGE 1s", r"unknown option `windw`\nhint: did you mean `window`"),
        ("x.nt?time=<a:b c>", "neither a whole number nor an IRI"),
        ("x.nt?fromat=nt", r"unknown option `fromat`\nhint: did you mean `format`"),
        ("x.nt?time=1&time=2", "the option `time` twice"),
        ("x.nt?time=soon", "`time=soon` in .* is not a whole number"),
        ("x.nt?time=1_000", "`time=1_000` in .* is not a whole number"),
        ("x.nt?time=99999999999999999999", "`time=9+` in .* does not fit into 64 bits"),
        (f"x.nt?time={2**63 - 1}", "does not fit into 64 bits"),
        ("folder/?follow=yes&poll=9223372036855", "`poll=9223372036855` in .* is too large"),
        ("x.nt?idle=1000000000001", "is too large"),
        ("x.nt?format=foo", "there is no format `foo`"),
        ("?format=nt", "names no file"),
        ("x.foo", r"format of `.*x.foo` cannot be inferred(.|\n)*\.jsonld"),
        ("-", "format of `-` cannot be inferred"),
        ("folder?follow=perhaps", "neither yes nor no"),
        ("x.nt.gz?follow=yes", "cannot be followed: it is compressed"),
        ("x.ttl?follow=yes", "cannot be followed: it is of the format `ttl`"),
        ("x.rdfp?follow=yes", "cannot be followed: it is of the format `rdfp`"),
        ("pipe?format=nt&follow=yes", "is a pipe, which is followed anyway"),
    ],
)
def test_a_wrong_address(uri: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("x.nt", "x.foo", "x.nt.gz", "x.ttl", "x.rdfp"):
        (tmp_path / name).touch()
    os.mkfifo("pipe")
    with pytest.raises(UsageError, match=message):
        open_source(uri)


def test_a_source_that_is_not_there() -> None:
    with pytest.raises(SourceError, match=r"`nope\.nt` cannot be read: No such file"):
        open_source("nope.nt")


def test_an_unknown_scheme() -> None:
    with pytest.raises(PluginError, match="there is no source `gopher`"):
        open_source("gopher://host/topic")


# Lines


def test_parse_lines_of_each_kind() -> None:
    line = str(t("a"))
    assert parse_lines([line], "d") == ([(0, t("a"))], [])
    assert parse_lines([line.encode(), "# a comment", ""], "d", time=7) == ([(7, t("a"))], [])
    assert parse_lines([f"{t('a')}"[:-1] + f"<{E}g> ."], "d", format="nq") == ([(0, Quad(*t("a"), iri(f"{E}g")))], [])
    assert parse_lines([line], "d", format="nq") == ([(0, t("a"))], [])
    timed = [f"5 {line}\r\n", "", "# 6", f"-infinity  {line} # c", f"1970-01-01T00:00:01.5 {line}"]
    assert parse_lines(timed, "d", timed=True) == ([(5, t("a")), (ALWAYS, t("a")), (1500, t("a"))], [])


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("0", 0),
        ("-5", -5),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-02", 86_400_000),
        ("1969-12-31T23:59:59.9999", -1),
        ("-infinity", ALWAYS),
    ],
)
def test_times(stamp: str, expected: int) -> None:
    assert time_of(stamp) == expected


NO_TIMES = ["soon", "1.5", "1e3", "1_000", "\u0663", "9" * 30, str(2**63 - 1), "infinity", "2026-13-01"]


@pytest.mark.parametrize("stamp", NO_TIMES)
def test_no_times(stamp: str) -> None:
    result, bad = parse_lines([f"{stamp} {t('a')}"], "d", timed=True)
    assert not result
    assert stamp in bad[0][1]


def test_a_malformed_line_costs_itself_only() -> None:
    text = [str(t("a")), "<a> <b> <c> .", str(t("b")), '<http://e/a> <http://e/b> "open .', str(t("c"))]
    result, bad = parse_lines(text, "d")
    assert [fact for _, fact in result] == [t("a"), t("b"), t("c")]
    assert [(index, line) for index, _, line in bad] == [(1, text[1]), (3, text[3])]
    assert bad[0][1] == "No scheme found in an absolute IRI"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("format", ["nt", "ntt", "nq", "rdfp", "ttl", "trig", "jsonld", "nt-messages"])
def test_terms_beyond_the_limit_of_the_parser_are_malformed(tmp_path: Path, format: str) -> None:
    """The parser raises a MemoryError, which must not reach the user."""
    begin = {"ntt": "5 ", "rdfp": "A "}.get(format, "")
    first = f"{begin}<urn:a> <urn:b> <urn:c> .\n"
    text = first + f'{begin}<urn:a> <urn:b> "' + "x" * ((1 << 24) - 1000 * (format == "nt-messages")) + "\n"
    if format == "jsonld":
        text = '[{"@id": "urn:a", "urn:b": {"@id": "urn:c"}},\n{"@id": "urn:a", "urn:b": "' + "x" * (1 << 25)
    path, ledger = tmp_path / "x", DeadLetterFile()
    path.write_text(text)
    full_result = 0 if format == "nt-messages" else 1
    assert len(facts(f"{path}?format={format}", ledger)) == full_result
    assert ledger.counts == {("malformed", str(path)): 1}


def test_malformed_timed_lines() -> None:
    two = f"{t('b')} {t('c')}"
    text = [f"1 {t('a')}", "2", "3 # nothing", f"4 {two}", f"5 {t('d')}\r{t('e')}", f"6 {t('f')}", str(t("g"))]
    result, bad = parse_lines(text, "d", timed=True)
    assert result == [(1, t("a")), (6, t("f"))]
    assert [index for index, _, _ in bad] == [1, 2, 3, 4, 6]


def test_bytes_that_are_no_utf8() -> None:
    result, bad = parse_lines([b'<http://e/a> <http://e/b> "\xff" .', str(t("a"))], "d")
    assert result == [(0, t("a"))]
    assert "\ufffd" in bad[0][2]


RDF_1_2 = {"triple terms": f"<<( <{E}s> <{E}p> <{E}o> )>>", "base directions": '"x"@en--ltr'}


@pytest.mark.parametrize("kind", RDF_1_2)
def test_terms_of_rdf_1_2_are_refused(kind: str) -> None:
    result, bad = parse_lines([f"<{E}s> <{E}p> {RDF_1_2[kind]} .", str(t("a"))], "d")
    assert result == [(0, t("a"))]
    assert kind in bad[0][1]


def test_blank_nodes_are_scoped_to_their_document() -> None:
    line = f"_:b <{E}p> _:c ."
    (_, here), (_, again) = parse_lines([line, line], "here")[0]
    ((_, existing_items),) = parse_lines([line], "there")[0]
    ((_, timed),) = parse_lines([f"1 {line}"], "here", timed=True)[0]
    assert here == again == timed
    assert here.subject.startswith("_:b.")
    assert not {here.subject, here.object} & {existing_items.subject, existing_items.object}
    assert parse_lines([str(here)], "again")[1] == []


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
IRIS = st.from_regex(r"(https?://[a-z.]+|urn:[a-z]+:)[A-Za-z0-9_./~:?&=;,+@#%-]{0,12}", fullmatch=True).map(iri)
LITERALS = st.one_of(
    st.builds(literal, TEXTS),
    st.builds(literal, TEXTS, IRIS.map(lambda term: term[1:-1])),
    st.builds(lambda text, tag: Term(f'"{text}"@{tag}'), st.just("x"), st.sampled_from(["en", "EN", "en-gb", "e"])),
    st.sampled_from(['"\\u0041"', f'"x"^^<{XSD}string>', '"\t"', '"a"b"', '"\x7f"']).map(Term),
)
LINES = st.builds("{} {} {} {}".format, IRIS | st.just("_:b1"), IRIS, IRIS | LITERALS | st.just("_:x"), st.just("."))


@given(st.lists(LINES, max_size=4))
def test_the_fast_path_agrees_with_the_parser(text: list[str]) -> None:
    own = formats.suffix("d")
    expected = []
    for line in text:
        try:
            expected += [(0, fact) for fact in formats._parsed(line.encode(), formats.BY_NAME["nt"].syntax, own)]
        except SyntaxError:
            continue
    result, bad = parse_lines(text, "d")
    assert result == expected
    assert len(result) + len(bad) == len(text)
    timed, worse = parse_lines([f"12 {line}" for line in text], "d", timed=True)
    assert timed == [(12, fact) for _, fact in expected]
    assert len(worse) == len(bad)


PIECES = st.sampled_from(
    [f"<{E}a>", f"<{E}b>", "_:b1", '"a b"', '"x"', '"a . b"@en', '"\\u0041"', '"', "<b>", "1", "# c", "\xa0"]
)
BLANKS = st.sampled_from([" ", " ", " ", " ", "  ", "\t", "", "\r", "\x0b"])
ODD = st.lists(st.tuples(PIECES, BLANKS), max_size=5).map(lambda cells: "".join(map("".join, cells)))
PLAIN = st.builds("{} {} {} .".format, IRIS | st.just("_:b1"), IRIS, IRIS | st.sampled_from(['"a b"', '"x"', "_:x"]))


@given(
    st.lists(
        PLAIN | ODD | st.builds("{}{}".format, ODD, st.sampled_from([".", " .", " . ", " .\r", " .\x0b"])), max_size=9
    )
)
@example(["<urn:a:a> <urn:a:b>", "<urn:a:c> <urn:a:d> <urn:a:e> <urn:a:f> ."])
@example([f"<{E}a> <{E}b>", f"<{E}c> .", f"<{E}a> <{E}b> <{E}c> ."])
@example([f'"x" <{E}b> <{E}c> .', f"<{E}a> _:b <{E}c> .", f'<{E}a> <{E}b> "a . b" .'])
def test_a_block_agrees_with_its_lines(text: list[str]) -> None:
    for timed in (False, True):
        stamped = [f"{index // 2} {line}" if timed else line for index, line in enumerate(text)]
        each = [parse_lines([line], "d", timed) for line in stamped]
        result, bad = parse_lines(stamped, "d", timed)
        assert result == [pair for pairs, _ in each for pair in pairs]
        assert bad == [
            (index, *remainder) for index, (_, dead_letters) in enumerate(each) for _, *remainder in dead_letters
        ]


@pytest.mark.parametrize("stamp", ["2026-01-01\t10:00", "2026-01-01\x0b10:00", "#1"])
def test_blanks_end_a_time_and_a_comment_has_none(stamp: str) -> None:
    result, bad = parse_lines([f"{stamp} {t('a')}", f"1 {t('b')}"], "d", timed=True)
    assert result == [(1, t("b"))]
    assert len(bad) == (stamp != "#1")


def test_equal_terms_of_a_block_are_one_object() -> None:
    (_, first), (_, second) = parse_lines([f"1 {t('a', 'b')}", f"2 {t('b', 'a')}"], "d", timed=True)[0]
    assert first.subject is second.object
    assert first.predicate is second.predicate


# Files


@pytest.mark.parametrize("name", ["x.nt", "x.nq", "x.ttl", "x.trig", "x.rdf", "x.jsonld"])
@pytest.mark.parametrize("compressed", [False, True])
def test_every_format(name: str, compressed: bool, tmp_path: Path) -> None:
    quads = [pyoxigraph.Triple(*(pyoxigraph.NamedNode(cell[1:-1]) for cell in t(s))) for s in "ab"]
    syntax = formats.infer_format(name, "")[0].syntax
    data = pyoxigraph.serialize(quads, format=syntax)
    assert data is not None
    path = tmp_path / (name + (".gz" if compressed else ""))
    path.write_bytes(gzip.compress(data) if compressed else data)
    assert facts(path) == [t("a"), t("b")]


def test_a_block_without_times_is_one_event(tmp_path: Path) -> None:
    path = tmp_path / "x.nt"
    path.write_text(lines(t("a"), t("b")))
    assert events(path) == [Event(0, (t("a"), t("b")))]
    assert events(f"{path}?time=9&stream=urn:s") == [Event(9, (t("a"), t("b")), "urn:s")]


def test_timed_lines_of_one_time_are_one_event(tmp_path: Path) -> None:
    path = tmp_path / "x.ntt"
    path.write_text(f"1 {t('a')}\n1 {t('b')}\n\n2 {t('c')}\n1 {t('d')}")
    assert events(path) == [Event(1, (t("a"), t("b"))), Event(2, (t("c"),)), Event(1, (t("d"),))]


def test_line_numbers_count_over_blocks(kept: Kept, tmp_path: Path) -> None:
    path = tmp_path / "x.nt"
    path.write_text(lines(t("a"), t("b")) + "bad\n" + lines(t("c")) + "\n# c\nworse")
    ledger, entries = kept
    results = events(path, ledger, ReadLimits(chunk_bytes=100))
    assert [fact for event in results for fact in event.facts] == [t("a"), t("b"), t("c")]
    assert [(entry["line"], entry["text"], entry["source"]) for entry in entries()] == [
        (3, "bad", str(path)),
        (7, "worse", str(path)),
    ]
    assert ledger.counts == {("malformed", str(path)): 2}


def test_line_numbers_count_over_blocks_of_timed_lines(kept: Kept, tmp_path: Path) -> None:
    path = tmp_path / "x.ntt"
    path.write_text("".join(f"{time} {t('a')}\n" for time in range(10, 14)) + f"bad\n14 {t('b')}\n\nworse")
    for chunk in (100, 1000):
        ledger, entries = kept
        results = events(path, ledger, ReadLimits(chunk_bytes=chunk))
        assert [event.time for event in results if event.facts] == [10, 11, 12, 13, 14]
        assert [(entry["line"], entry["text"]) for entry in entries()][-2:] == [(5, "bad"), (8, "worse")]


def test_statements_before_an_error_are_read(kept: Kept, tmp_path: Path) -> None:
    path = tmp_path / "x.ttl"
    path.write_text(f"<{E}a> <{E}p> <{E}o> .\n<{E}b> <{E}p> .\n<{E}c> <{E}p> <{E}o> .\n")
    ledger, entries = kept
    assert facts(path, ledger) == [t("a")]
    (entry,) = entries()
    assert entry["line"] == 2
    assert entry["reason"].endswith(f"; the rest of {path} is left out (1 statement read)")


@pytest.mark.fault("S14")
@pytest.mark.parametrize("kind", RDF_1_2)
@pytest.mark.parametrize("syntax", ["ttl", "trig", "nt"])
def test_a_term_of_rdf_1_2_costs_its_statement_only(kept: Kept, tmp_path: Path, syntax: str, kind: str) -> None:
    """S14 of the reported faults: `"x"@en--ltr` was taken as the language `en--ltr`."""
    path = tmp_path / f"x.{syntax}"
    message = f"<{E}s> <{E}p> {RDF_1_2[kind]} .\n"
    path.write_text(f"{t('a')}\n{message}{t('b')}\n")
    ledger, entries = kept
    assert facts(path, ledger) == [t("a"), t("b")]
    (entry,) = entries()
    assert entry["cause"] == "malformed"
    assert entry["reason"].startswith(kind)
    assert entry["text"].startswith(f"<{E}s> <{E}p> {RDF_1_2[kind][:3]}")


def test_strict_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x.nt"
    path.write_text(lines(t("a")) + "bad\n")
    with pytest.raises(SourceError, match=r"x.nt:2: .*\nhint: the statement is: bad"):
        facts(path, DeadLetterFile(strict=True))


def test_anonymous_nodes_have_the_same_names_in_every_run(tmp_path: Path) -> None:
    path = tmp_path / "x.ttl"
    path.write_text(f"[] <{E}p> [ <{E}p> _:x ] .")
    assert facts(path) == facts(path)
    assert len({cell for fact in facts(path) for cell in (fact.subject, fact.object)}) == 3


def test_relative_iris_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.ttl"
    path.write_text(f"<#a> <{E}p> <{E}o> .")
    assert facts(path)[0].subject == f"<{path.as_uri()}#a>"


def test_a_broken_archive_fails_and_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "x.nt.gz"
    path.write_bytes(gzip.compress(lines(*(t(str(n)) for n in range(1000))).encode())[:-20])
    with pytest.raises(SourceError, match=r"x.nt.gz` cannot be read"):
        facts(path)


def test_a_pipe_outputs_available_events(tmp_path: Path) -> None:
    path = tmp_path / "pipe.nt"
    os.mkfifo(path)
    step = threading.Event()

    def feed() -> None:
        with path.open("w") as pipe:
            pipe.write(lines(t("a")) + str(t("b"))[:9])
            pipe.flush()
            step.wait(10)
            pipe.write(str(t("b"))[9:])

    threading.Thread(target=feed, daemon=True).start()
    batches = open_source(str(path)).batches()
    assert next(batches)[0].facts == (t("a"),)
    step.set()
    assert next(batches)[0].facts == (t("b"),)
    assert list(batches) == []


@pytest.mark.parametrize("format", ["nt-messages", "nt.gz", "nt-messages.gz"])
def test_a_pipe_that_is_read_no_further_is_cut_off(tmp_path: Path, format: str) -> None:
    """Complete statements are read. Of messages, those with an end are read."""
    path, ledger = tmp_path / "pipe", DeadLetterFile()
    full_result = lines(t("a")) + "MESSAGE\n" * format.startswith("nt-messages")
    compress = zlib.compressobj(wbits=31)
    begun = (full_result + lines(t("b"))).encode()
    data = compress.compress(begun) + compress.flush(zlib.Z_SYNC_FLUSH) if format.endswith(".gz") else begun
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    os.write(writer, data)
    source = open_source(f"{path}?format={format}", ledger)
    batches = source.batches()
    results = list(next(batches))
    assert isinstance(source, Stoppable)
    source.stop()
    results += [event for batch in batches for event in batch]
    os.close(writer)
    cut = format.startswith("nt-messages")
    assert [fact for event in results for fact in event.facts] == [t("a"), *([] if cut else [t("b")])]
    assert ledger.total("malformed") == cut


# Folders


def test_a_folder_in_the_order_of_names(tmp_path: Path) -> None:
    for name, subject in (("b.nt", "b"), ("a.nt", "a"), ("c.nt.tmp", "c"), (".d.nt", "d"), ("_e.nt", "e")):
        (tmp_path / name).write_text(lines(t(subject)))
    (tmp_path / "inner").mkdir()
    assert facts(tmp_path) == [t("a"), t("b")]


def test_a_folder_with_a_file_of_no_known_format(tmp_path: Path) -> None:
    (tmp_path / "README").touch()
    with pytest.raises(UsageError, match="README"):
        open_source(str(tmp_path))


def test_a_folder_that_grows(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(lines(t("a")))
    ledger = DeadLetterFile()
    batches = open_source(f"{tmp_path}?follow=yes&poll=5", ledger).batches()
    assert next(batches)[0].facts == (t("a"),)
    (tmp_path / "b.foo").touch()
    (tmp_path / "c.nt.tmp").write_text(lines(t("c")))
    (tmp_path / "c.nt.tmp").rename(tmp_path / "c.nt")
    assert next(batches)[0].facts == (t("c"),)
    assert ledger.total("malformed") == 1


def test_a_file_that_grows(tmp_path: Path) -> None:
    """A line counts when its end has been written; a line without an end is left out when reading is stopped."""
    path, ledger = tmp_path / "a.nt", DeadLetterFile()
    path.write_text(lines(t("a")))
    source = open_source(f"{path}?follow=yes&poll=5", ledger)
    assert (source.live, source.size) == (True, None)
    batches = source.batches()
    assert next(batches)[0].facts == (t("a"),)
    with path.open("a", encoding="utf-8") as file:

        def add(text: str) -> None:
            file.write(text)
            file.flush()

        add(str(t("b"))[:9])
        threading.Timer(0.05, add, [f"{str(t('b'))[9:]}\n{t('c')}"]).start()
        assert next(batches)[0].facts == (t("b"),)
        cast(Stoppable, source).stop()
        assert list(batches) == []
    assert not ledger.counts


@pytest.mark.parametrize("whole", [True, False])
def test_a_line_that_is_too_long_in_a_file_that_grows(whole: bool, kept: Kept, tmp_path: Path) -> None:
    """The line is counted once its end has been written; until then, the offset of the source is in front of it."""
    path = tmp_path / "a.nt"
    path.write_text(lines(t("a")) + "<" * 400_000 + ("\n" + lines(t("b")) if whole else ""))
    ledger, entries = kept
    source = open_source(f"{path}?follow=yes&poll=5", ledger)
    assert isinstance(source, FileSource)
    source.settings = replace(source.settings, longest=200_000)
    threading.Timer(0.3, source.stop).start()
    results = [fact for batch in source.batches() for event in batch for fact in event.facts]
    assert results == ([t("a"), t("b")] if whole else [t("a")])
    assert [(entry["line"], entry["text"]) for entry in entries()] == ([(2, "<" * 500)] if whole else [])
    read = path.stat().st_size if whole else len(lines(t("a")))
    assert source.current_offset()[:2] == (read, 4 if whole else 2)


@pytest.mark.parametrize("change", ["", "other"])
def test_a_file_that_grows_stays_the_same(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.nt"
    path.write_text(lines(t("a"), t("b")))
    batches = open_source(f"{path}?follow=yes&poll=5").batches()
    next(batches)
    if change:
        (tmp_path / "b.nt").write_text(lines(t("a"), t("b"), t("c")))
        (tmp_path / "b.nt").rename(path)
    else:
        path.write_text(lines(t("c")))
    with pytest.raises(SourceError, match="is not the file that has been read so far, or is shorter now"):
        next(batches)


# Static data


def test_static_data_hold_always(tmp_path: Path) -> None:
    (tmp_path / "x.nt").write_text(lines(t("a")))
    assert list(open_static(str(tmp_path / "x.nt"))) == [Event(ALWAYS, (t("a"),))]


@pytest.mark.parametrize(
    "uri",
    [
        "x.ntt",
        "x.rdfp",
        "x.nt?time=5",
        "x.nt?time=urn:at",
        "x.nt?window=RANGE 1s",
        "x.nt?lateness=1s",
        ".?follow=yes",
        "x.nt?follow=yes",
        ".",
    ],
)
def test_static_data_have_no_time(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("x.nt", "x.ntt", "x.rdfp"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match="cannot be static"):
        open_static(uri)


# Several sources


def timed_file(path: Path, *times: int) -> str:
    path.write_text("".join(f"{time} {t('a')}\n" for time in times))
    return str(path)


@given(st.lists(st.lists(st.integers(0, 20)).map(sorted), max_size=4))
def test_files_are_merged_by_time(tmp_path_factory: pytest.TempPathFactory, streams: list[list[int]]) -> None:
    folder = tmp_path_factory.mktemp("merge")
    sources = [open_source(timed_file(folder / f"{n}.ntt", *times)) for n, times in enumerate(streams)]
    results = [event.time for batch in Sources(sources) for event in batch for _ in event.facts]
    assert results == sorted(time for times in streams for time in times)


def test_no_source_is_no_event() -> None:
    assert list(Sources([])) == []


def test_read_statements_are_counted(tmp_path: Path) -> None:
    sources = Sources([open_source(timed_file(tmp_path / f"{n}.ntt", *range(n))) for n in (2, 3)])
    assert sources.size == sum(path.stat().st_size for path in tmp_path.iterdir())
    list(sources)
    assert [source.reading.statements for source in sources.sources] == [2, 3]
    assert sum(source.reading.bytes for source in sources.sources) == sources.size
    assert not sources.live


# The ledger


def test_a_ledger_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        DeadLetterFile(tmp_path / "no" / "file")


def test_late_is_counted_also_when_strict() -> None:
    ledger = DeadLetterFile(strict=True)
    ledger.record("late", "s", None, "behind", "x")
    assert ledger.total("late") == ledger.total("late", "s") == 1
    assert ledger.total("malformed") == ledger.total("late", "other") == 0
    assert ledger.failed
    assert not DeadLetterFile(strict=True).failed


def test_a_loss_is_no_failure_unless_strict() -> None:
    ledger = DeadLetterFile()
    ledger.record("evicted", "s", None, "the limit of 1 is reached", "x")
    assert ledger.counts == {("evicted", "s"): 1}
    assert not ledger.failed


# Sinks

OUTPUTS = (
    Output(Triple(iri("urn:s"), iri("urn:p"), literal('a"\n,', language="en")), 5, "r, 1"),
    Output(Triple(Term("_:b"), iri("urn:p"), literal("1", "urn:d")), ALWAYS, "r2"),
    Output(Atom(iri("urn:r"), (iri("urn:a"), literal("x"))), 6, "r3"),
)
WRITTEN = {
    "nt": '<urn:s> <urn:p> "a\\"\\n,"@en .\n_:b <urn:p> "1"^^<urn:d> .\n# <urn:r>(<urn:a>, "x") .\n',
    "ntt": '5 <urn:s> <urn:p> "a\\"\\n,"@en .\n-infinity _:b <urn:p> "1"^^<urn:d> .\n# 6 <urn:r>(<urn:a>, "x") .\n',
    "ndjson": '{"time": 5, "rule": "r, 1", "subject": {"type": "uri", "value": "urn:s"}, '
    '"predicate": {"type": "uri", "value": "urn:p"}, '
    '"object": {"type": "literal", "value": "a\\"\\n,", "language": "en"}}\n'
    '{"time": null, "rule": "r2", "subject": {"type": "bnode", "value": "b"}, '
    '"predicate": {"type": "uri", "value": "urn:p"}, '
    '"object": {"type": "literal", "value": "1", "datatype": "urn:d"}}\n'
    '{"time": 6, "rule": "r3", "relation": {"type": "uri", "value": "urn:r"}, '
    '"arguments": [{"type": "uri", "value": "urn:a"}, {"type": "literal", "value": "x"}]}\n',
    "csv": "time,rule,subject,predicate,object\r\n"
    '5,"r, 1",urn:s,urn:p,"a""\n,"\r\n'
    ",r2,_:b,urn:p,1\r\n"
    "6,r3,,urn:r,urn:a x\r\n",
    "csv-terms": "time,rule,subject,predicate,object\r\n"
    '5,"r, 1",<urn:s>,<urn:p>,"""a\\""\\n,""@en"\r\n'
    ',r2,_:b,<urn:p>,"""1""^^<urn:d>"\r\n'
    '6,r3,,<urn:r>,"<urn:a> ""x"""\r\n',
}
WRITTEN["nq"] = WRITTEN["nt"]
WRITTEN["tsv-terms"] = (
    "time\trule\tsubject\tpredicate\tobject\n"
    '5\tr, 1\t<urn:s>\t<urn:p>\t"a\\"\\n,"@en\n'
    '\tr2\t_:b\t<urn:p>\t"1"^^<urn:d>\n'
    '6\tr3\t\t<urn:r>\t<urn:a> "x"\n'
)
SOLUTIONS = (
    Output(Solution(("a", "b"), (iri("urn:a"), literal("x\ty"))), 5, "q"),
    Output(Solution(("a", "b"), (None, literal("z"))), ALWAYS, "q"),
)
SOLVED = {
    "ndjson": '{"time": 5, "rule": "q", "solution": {"a": {"type": "uri", "value": "urn:a"}, '
    '"b": {"type": "literal", "value": "x\\ty"}}}\n'
    '{"time": null, "rule": "q", "solution": {"a": null, "b": {"type": "literal", "value": "z"}}}\n',
    "csv": "time,rule,a,b\r\n5,q,urn:a,x\ty\r\n,q,,z\r\n",
    "csv-terms": 'time,rule,a,b\r\n5,q,<urn:a>,"""x\\ty"""\r\n,q,,"""z"""\r\n',
    "tsv": "time\trule\ta\tb\n5\tq\turn:a\tx\\ty\n\tq\t\tz\n",
    "tsv-terms": 'time\trule\ta\tb\n5\tq\t<urn:a>\t"x\\ty"\n\tq\t\t"z"\n',
}


def write(uri: str | Path, *outputs: Output, resume: bool = False) -> None:
    sink = open_sink(str(uri))
    with closing(sink):
        sink.start(resume)
        for output in outputs:
            sink.write(output)


@pytest.mark.parametrize("format", WRITTEN)
@pytest.mark.parametrize("compressed", [False, True])
def test_what_sinks_write(format: str, compressed: bool, tmp_path: Path) -> None:
    path = tmp_path / f"out.{format}{'.gz' if compressed else ''}"
    write(f"{path}?format={format}", *OUTPUTS)
    data = path.read_bytes()
    assert (gzip.decompress(data) if compressed else data).decode() == WRITTEN[format]


@pytest.mark.parametrize("format", ["nt", "ntt"])
def test_written_events_can_be_read(format: str, tmp_path: Path) -> None:
    write(tmp_path / f"out.{format}", *OUTPUTS)
    ledger = DeadLetterFile()
    assert len(facts(tmp_path / f"out.{format}", ledger)) == 2
    assert not ledger.counts


@pytest.mark.parametrize("format", SOLVED)
def test_solutions_have_a_column_for_each_variable(format: str, tmp_path: Path) -> None:
    write(f"{tmp_path}/out.{format}?format={format}", *SOLUTIONS)
    assert (tmp_path / f"out.{format}").read_bytes().decode() == SOLVED[format]


@pytest.mark.parametrize("format", ["rdfp", "ru"])
def test_solutions_are_no_facts_of_a_log(format: str, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=r"other things than triples and quads\n.*ndjson"):
        write(tmp_path / f"out.{format}", *SOLUTIONS)


def test_a_table_has_one_head(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=r"other columns than a, b\n.*ndjson"):
        write(tmp_path / "out.csv", *SOLUTIONS, OUTPUTS[0])


def test_a_table_that_is_cut_back_to_nothing_has_a_head_again(tmp_path: Path) -> None:
    sink = open_sink(str(tmp_path / "out.csv"))
    assert isinstance(sink, FileSink)
    sink.start()
    assert sink.position() == 0
    sink.write(OUTPUTS[0])
    sink.truncate(0)
    for output in SOLUTIONS:
        sink.write(output)
    sink.close()
    assert (tmp_path / "out.csv").read_bytes().decode() == SOLVED["csv"]


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz"])
def test_a_resumed_sink_appends(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, OUTPUTS[0])
    write(tmp_path / name, *OUTPUTS[1:], resume=True)
    data = (tmp_path / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    assert text == WRITTEN["csv"]


def test_a_sink_is_cut_back_to_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "out.nt"
    sink = open_sink(str(path))
    assert isinstance(sink, FileSink)
    sink.start()
    sink.write(OUTPUTS[0])
    mark = sink.position()
    assert path.stat().st_size == mark
    sink.write(OUTPUTS[1])
    sink.truncate(mark)
    sink.write(OUTPUTS[2])
    sink.close()
    first, _, third = WRITTEN["nt"].splitlines(keepends=True)
    assert path.read_text() == first + third


def test_a_resumed_sink_is_cut_back_to_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "out.nt"
    write(path, *OUTPUTS[:2])
    sink = open_sink(str(path))
    assert isinstance(sink, FileSink)
    sink.start(resume=True)
    assert sink.position() == path.stat().st_size
    first, _, third = WRITTEN["nt"].splitlines(keepends=True)
    sink.truncate(len(first))
    sink.write(OUTPUTS[2])
    sink.close()
    assert path.read_text() == first + third


def test_a_prompt_sink_does_not_wait(tmp_path: Path) -> None:
    path = tmp_path / "out.nt"
    sink = open_sink(str(path))
    sink.start(prompt=True)
    sink.write(OUTPUTS[0])
    assert path.read_text() == WRITTEN["nt"].splitlines(keepends=True)[0]
    sink.close()


def test_opening_a_sink_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.nt"
    path.write_text("kept")
    open_sink(str(path))
    open_sink(str(tmp_path / "new.nt"))
    assert path.read_text() == "kept"
    assert not (tmp_path / "new.nt").exists()


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("out.foo", r"format of `out.foo` cannot be inferred(.|\n)*\.ndjson"),
        ("no/out.nt", "there is no folder `no`"),
        ("folder?format=nt", "it is a folder"),
        ("out.ttl?format=ttl", "cannot be written as `ttl`"),
        ("-?format=ttl", "cannot be written as `ttl`"),
        ("-?format=nt.gz", "cannot be written as `nt.gz`"),
        ("out.x?format=ttl.gz", "cannot be written as `ttl`"),
        ("out.nt?append=yes", "unknown option `append`"),
    ],
)
def test_a_sink_that_cannot_be_written(uri: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=message):
        open_sink(uri)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_an_error_of_the_sink() -> None:
    sink = open_sink("/dev/full?format=nt")
    sink.start()
    sink.write(OUTPUTS[0])
    with pytest.raises(SinkError, match="No space left"):
        sink.close()


def test_broken_gzip_header_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.nt.gz"
    path.write_bytes(b"not compressed")
    with pytest.raises(SourceError, match="cannot be read"):
        facts(path)
