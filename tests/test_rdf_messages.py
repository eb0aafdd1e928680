"""RDF Messages and RDF Patch: grouped statements stay together, and survive a round trip."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from squall.contracts import DeadLetterLedger, Output
from squall.errors import SinkError, UsageError
from squall.rdf import ALWAYS, Boolean, Evaluated, Event, Quad, Solution, Term, Triple, iri, literal
from squall.sparql_update import datasets
from squall.streams import DeadLetterFile, open_sink, open_source, open_static
from squall.streams.formats import BY_NAME, Malformed, Message
from squall.streams.formats.limits import DEFAULT_LIMITS, ReadLimits
from squall.streams.formats.rdf_messages import messages
from tests import test_durable
from tests import test_live_http as http
from tests.laws import examples_of
from tests.limits import open_limited

E = "http://example.org/"
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
P = iri(E + "p")


def t(number: int) -> Triple:
    return Triple(iri(f"{E}s{number}"), P, iri(f"{E}o{number}"))


def read(path: Path | str, ledger: DeadLetterLedger | None = None, limits: ReadLimits = DEFAULT_LIMITS) -> list[Event]:
    return [event for batch in open_limited(str(path), limits, ledger).batches() for event in batch]


class Whole(io.BytesIO):
    """Bytes that come in pieces of one size."""

    def __init__(self, text: bytes, size: int) -> None:
        super().__init__(text)
        self.size = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.size)


def parsed(text: str, format: str = "ttl-messages", size: int = 1 << 17) -> list[list[str] | None]:
    """Returns the statements of each message, or None for one that is broken."""
    result = messages(Whole(text.encode(), size), BY_NAME[format], None, "x")
    return [
        [" ".join(statement) for statement in message.statements] if isinstance(message, Message) else None
        for message in result
        if message is not None
    ]


A, B = (f"<{E}s> <{E}p> {value} ." for value in ("1", "2"))
ONE, TWO = ([f'<{E}s> <{E}p> "{value}"{INTEGER}'] for value in ("1", "2"))
TURTLE = {
    "one message": (A, [ONE]),
    "two messages": (f'VERSION "1.2-messages"\n{A}\nMESSAGE\n{B}', [ONE, TWO]),
    "old style": (f'@version "1.2-messages" .\n@prefix e: <{E}> .\ne:s e:p 1 .\n@message .\ne:s e:p 2 .', [ONE, TWO]),
    "over lines": (f"{A}@message\n\n .{B}", [ONE, TWO]),
    "on one line": (f"{A}MESSAGE {B}message", [ONE, TWO]),
    "an empty first one": (f"MESSAGE\n{A}", [[], ONE]),
    "an empty one": (f"{A}\nMESSAGE\nMESSAGE\n{B}", [ONE, [], TWO]),
    "a last delimiter": (f"{A}\nMESSAGE\n", [ONE]),
    "prefixes that go on": (
        f"PREFIX e: <{E}>\ne:s e:p 1 .\nMESSAGE\ne:s e:p 2 .\nPREFIX e: <{E}x/>\ne:s e:p 2 .",
        [ONE, [*TWO, TWO[0].replace(E, E + "x/")]],
    ),
    "a base": (f"BASE <{E}> <s> <p> 1 . MESSAGE <s> <p> 2 .", [ONE, TWO]),
    "comments": (f"{A} # MESSAGE \" ' <\nMESSAGE# @message .\n{B}", [ONE, TWO]),
    "what is broken": (f"{A}\nMESSAGE\n{A} nonsense\nMESSAGE\n{B}", [ONE, None, TWO]),
    "a string that is broken": (f'{A}\nMESSAGE\n<a> <b> "x\nMESSAGE\n{B}', [ONE, None, TWO]),
    "a delimiter that is broken": (f"{A}\n@message <{E}>\nMESSAGE\n{B}", [None, TWO]),
    "a triple term": (f"{A}\nMESSAGE\n<{E}s> <{E}p> <<( <{E}s> <{E}p> 1 )>> .\nMESSAGE\n{B}", [ONE, None, TWO]),
}


@pytest.mark.parametrize(("text", "expected"), TURTLE.values(), ids=TURTLE.keys())
@pytest.mark.parametrize("size", [1, 7, 1 << 17])
def test_messages_of_turtle(text: str, expected: Any, size: int) -> None:
    """This holds however the log is cut into pieces."""
    for format in ("ttl-messages", "trig-messages"):
        assert parsed(text, format, size) == expected


STRINGS = [
    '"MESSAGE"', "'MESSAGE'", '"""a\n"MESSAGE""\nMESSAGE\n"""', "'''\n'MESSAGE\n''\nMESSAGE\n'''", '""', "''",
    r'"\" MESSAGE \" "', r'"""\""" MESSAGE """', "<MESSAGE>", "<http://x/#MESSAGE>", "e:MESSAGE", "e:a.MESSAGE",
    r"e:a\#MESSAGE", '"x"@message', '"x"^^e:MESSAGE', "[ e:p 'MESSAGE' ]", "( 'MESSAGE' 1 )", "e:message", "1.5",
]  # fmt: skip


@pytest.mark.parametrize("size", [1, 5, 1 << 17])
@pytest.mark.parametrize("value", STRINGS)
def test_what_looks_like_a_delimiter_and_is_none(value: str, size: int) -> None:
    prefix = f"PREFIX e: <{E}> BASE <{E}> "
    tree = parsed(f"{prefix}e:s e:p {value} . MESSAGE e:s e:p 2 .", size=size)
    assert len(tree) == 2
    assert tree[0]
    assert tree[1] == TWO


def test_a_delimiter_inside_of_a_graph_is_an_error() -> None:
    assert parsed(f"<{E}g> {{ {A}\nMESSAGE\n{B} }}\nMESSAGE {A}", "trig-messages") == [None, None, ONE]


def test_messages_of_lines() -> None:
    quad = f'<{E}s> <{E}p> "MESSAGE" <{E}g> .'
    text = f'VERSION "1.2-messages" # now\n{quad}\nMESSAGE\nVERSION "1.1-messages"\nMESSAGE\n{quad}\nnonsense\n'
    message = [quad.removesuffix(" .")]
    assert parsed(f"{text}MESSAGE\n{quad}", "nq-messages") == [message, [], None, message]
    message, text = ([message[0].replace(f" <{E}g>", "")], text.replace(f" <{E}g>", ""))
    assert parsed(text, "nt-messages") == [message, [], None]


def test_blank_nodes_are_those_of_a_message() -> None:
    tree = parsed(f"_:a <{E}p> _:a . MESSAGE _:a <{E}p> 1 .")
    (first,), (second,) = ([*filter(None, item or [])] for item in tree)
    assert first.split(" ")[0] == first.split(" ")[2] != second.split(" ")[0]


PIECES = ['"', "'", '"""', "'''", "<", ">", "<a>", "#", "\n", "\\", "MESSAGE", "@message", ".", " ", "a", "{", "e:"]


@settings(max_examples=examples_of(300), deadline=None)
@given(st.lists(st.sampled_from(PIECES)), st.integers(1, 5))
@example(['"', "\\", "#", "\\", "\n", "MESSAGE", "#", '"', '"', "<", " "], 1)
def test_any_input_is_read_or_counted(pieces: Sequence[str], size: int) -> None:
    """The places of the cuts between pieces make no difference."""
    text = "".join(pieces)
    assert parsed(text, size=size) == parsed(text)


def test_a_malformed_message_is_one_dead_letter(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(f"{A}\n\nMESSAGE\n{A}\n{A} x\nMESSAGE\n{B}")
    with closing(DeadLetterFile(tmp_path / "lost")) as ledger:
        events = read(f"{tmp_path}/x?format=ttl-messages", ledger)
    assert sum(len(event.facts) for event in events) == 2
    entry = json.loads((tmp_path / "lost").read_text())
    assert entry["line"] == 5
    assert entry["reason"].startswith("message 2: ")


def test_a_message_that_is_too_long_is_skipped(tmp_path: Path) -> None:
    limits = ReadLimits(chunk_bytes=50, max_unit_bytes=100)
    (tmp_path / "x").write_text(f"{A}\nMESSAGE\n" + "x" * 1000)
    ledger = DeadLetterFile()
    assert len(read(f"{tmp_path}/x?format=ttl-messages", ledger, limits)) == 1
    assert ledger.counts == {("malformed", f"{tmp_path}/x"): 1}


# Times


AT = f"<{E}m{{0}}> <{E}at> {{0}} . <{E}s{{0}}> <{E}p> <{E}o{{0}}> ."


def test_the_time_of_a_message_is_a_property_of_anything_in_it(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(f"{AT.format(7)} MESSAGE {A} MESSAGE {AT.format(9)} MESSAGE <{E}m> <{E}at> <{E}p> .")
    ledger = DeadLetterFile()
    uri = f"{tmp_path}/x?format=ttl-messages"
    source = open_source(f"{uri}&time={E}at&stream=urn:s", ledger)
    assert source.earliest == ALWAYS
    events = [event for batch in source.batches() for event in batch]
    assert [(event.time, event.stream, len(event.facts)) for event in events] == [(7, "urn:s", 2), (9, "urn:s", 2)]
    assert ledger.counts == {("malformed", f"{tmp_path}/x"): 2}
    assert source.reading.statements == 4
    assert [event.time for event in read(f"{uri}&time=5")] == [5] * 4


def test_a_log_may_be_static_and_is_no_data_set(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(f"{A} MESSAGE {B}")
    assert [event.time for event in open_static(f"{tmp_path}/x?format=ttl-messages")] == [ALWAYS, ALWAYS]
    with pytest.raises(UsageError, match="a log of messages"):
        datasets.read(f"{tmp_path}/x?format=ttl-messages")


# Sinks


def write(path: Path, format: str, *outputs: Output, resume: bool = False) -> Path:
    with closing(open_sink(f"{path}?format={format}")) as sink:
        sink.start(resume)
        for output in outputs:
            sink.write(output)
    return path


QUAD = Quad(iri(E + "s"), P, literal("x"), iri(E + "g"))
OUTPUTS: list[Output] = [
    Output(t(1), 1000, "a"), Output(t(2), 1000, "a"), Output(t(3), 1000, "b"), Output(t(4), 2000, "a"),
    Output(Evaluated(()), 3000, "a"), Output(t(5), 4000, "a"),
]  # fmt: skip


def event_rows(path: Path, options: str) -> list[tuple[int, list[Any], list[Any]]]:
    return [(event.time, sorted(event.facts), sorted(event.removed)) for event in read(f"{path}?{options}")]


@pytest.mark.parametrize("format", ["nt-messages", "nq-messages", "rdfp", "jelly-messages"])
def test_an_evaluation_is_a_message(tmp_path: Path, format: str) -> None:
    if format.startswith("jelly"):
        pytest.importorskip("pyjelly")
    path = write(tmp_path / "x", format, *OUTPUTS[:3])
    write(tmp_path / "x", format, *OUTPUTS[3:], resume=True)
    times = [1000, 1000, 2000, 4000] if format in ("rdfp", "jelly-messages") else [7] * 4
    facts = [[t(1), t(2)], [t(3)], [t(4)], [t(5)]]
    outputs = event_rows(path, f"format={format}&time=7")
    assert [item for item in outputs if item[1]] == [(time, item, []) for time, item in zip(times, facts, strict=True)]
    if format == "jelly-messages":
        assert (3000, [], []) in outputs  # how far time has come
    if format.startswith("n"):
        assert path.read_text().count("VERSION") == 1
        assert len(parsed(path.read_text(), format)) == 5


def test_graphs_say_when_they_were_generated(tmp_path: Path) -> None:
    path = write(tmp_path / "x", "trig-messages", *OUTPUTS, Output(QUAD, 5000, "c"))
    uri = f"{path}?format=trig-messages&time=http://www.w3.org/ns/prov%23generatedAtTime"
    results = [(event.time, event.graph) for event in read(uri) if event.graph]
    assert [time for time, _ in results] == [1000, 1000, 2000, 4000, 5000]
    assert results[-1][1] == QUAD.graph
    assert read(uri)[1].facts == (t(1), t(2))


@pytest.mark.parametrize("format", ["nq-messages", "rdfp", "jelly-messages"])
def test_quads_are_read_again(tmp_path: Path, format: str) -> None:
    if format.startswith("jelly"):
        pytest.importorskip("pyjelly")
    path = write(tmp_path / "x", format, Output(QUAD, 5, "a"), Output(t(1), 5, "a"))
    events = [(event.facts, event.graph) for event in read(f"{path}?format={format}")]
    assert sorted(events) == sorted([((t(1),), ""), ((Triple(*QUAD[:3]),), QUAD.graph)])


@pytest.mark.parametrize("format", ["rdfp", "ru"])
@pytest.mark.parametrize("fact", [Solution(("x",), (P,)), Boolean(True)])
def test_answers_of_queries_are_no_part_of_a_log(tmp_path: Path, format: str, fact: Any) -> None:
    with pytest.raises(SinkError, match="triples and quads"):
        write(tmp_path / "x", format, Output(fact, 1, "q"))


def test_static_facts_have_no_time(tmp_path: Path) -> None:
    path = write(tmp_path / "x.rdfp", "rdfp", Output(t(1), ALWAYS, "a"))
    assert event_rows(path, "") == [(ALWAYS, [t(1)], [])]


@pytest.mark.parametrize("format", ["nt-messages", "trig-messages", "rdfp", "jelly-messages"])
def test_a_broker_brings_a_message_at_a_time(format: str) -> None:
    """This is not a log: the broker delimits the messages."""
    if format.startswith("jelly"):
        pytest.importorskip("pyjelly")
    with http.serving(http.status(200)) as server:
        with closing(open_sink(server.at(f"?format={format}"))) as sink:
            sink.start()
            for output in OUTPUTS:
                sink.write(output)
        bodies = [body for *_, body in server.asked]
    assert len(bodies) == (5 if format == "jelly-messages" else 4)
    assert not any(b"MESSAGE" in body or body.endswith(b"\n\n") for body in bodies)
    reader = {"nt-messages": "nt", "trig-messages": "trig"}.get(format, format)
    with http.serving(http.status(200, bodies[0])) as server:
        source = server.opened(f"?format={reader}&time=1000&poll=1")
        facts = [fact for event in next(source.batches()) for fact in event.facts]
    assert {t(1), t(2)} <= {*facts}


def test_a_reconnected_source_declares_messages_again() -> None:
    from squall.streams.formats.rdf_messages import MessageLogEncoder, lines

    log = MessageLogEncoder(lines, alone=True)
    assert b"".join(map(log.write, OUTPUTS)).count(b"VERSION") == 4


@pytest.mark.more
@pytest.mark.parametrize("format", ["ttl-messages", "jelly-messages"])
def test_a_killed_run_resumes(tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run reads a log and writes one."""
    if format.startswith("jelly"):
        pytest.importorskip("pyjelly")
    text = test_durable.described(400, 1)
    if format == "jelly-messages":
        (tmp_path / "a.ttl").write_text(text)
        facts = [fact for event in open_static(f"{tmp_path}/a.ttl", DeadLetterFile()) for fact in event.facts]
        rules = [Output(fact, number // 3, "r") for number, fact in enumerate(facts)]
        write(tmp_path / "a", format, *rules)
    else:
        (tmp_path / "a").write_text(text.replace(" .\n", " .\nMESSAGE\n"))
    lines = test_durable.lines

    def written(path: Path) -> list[str]:
        return sorted(map(str, event_rows(path, "format=rdfp"))) if path.name in "ws" else lines(path)

    monkeypatch.setattr(test_durable, "lines", written)
    addresses = [f"{tmp_path}/a?format={format}&time={E}at"]
    test_durable.Setting(tmp_path, addresses, limits=test_durable.SMALL_BLOCKS).holds("rdfp")


def test_a_frame_has_its_event_time(tmp_path: Path) -> None:
    pytest.importorskip("pyjelly")
    from pyjelly.integrations.generic.parse import parse_jelly_flat

    path = write(tmp_path / "x.jelly", "jelly-messages", *OUTPUTS)
    with path.open("rb") as file:
        assert len([*parse_jelly_flat(file)]) == 5
    assert [event.time for event in read(f"{path}?time=7")] == [7]  # without `format`, frames are nothing


def test_blank_nodes_of_frames(tmp_path: Path) -> None:
    """A blank node is also kept if a frame omits it as the subject of the frame before."""
    pytest.importorskip("pyjelly")
    node = Term("_:b1")
    outputs = [Output(Triple(node, P, Term(f"_:b{time}")), time, "a") for time in (1, 2, 3)]
    path = write(tmp_path / "x", "jelly-messages", *outputs)
    nodes = [Triple(*event.facts[0]) for event in read(f"{path}?format=jelly-messages")]
    assert nodes[0][0] == nodes[0][2]
    assert len({fact[0] for fact in nodes}) == 3
    assert all(fact[0] != fact[2] for fact in nodes[1:])


def test_a_time_that_is_none_is_counted(tmp_path: Path) -> None:
    pytest.importorskip("pyjelly")
    path = write(tmp_path / "x", "jelly-messages", OUTPUTS[0])
    path.write_bytes(path.read_bytes().replace(b"1000", b"1x00"))
    ledger = DeadLetterFile()
    assert read(f"{path}?format=jelly-messages", ledger) == []
    assert ledger.counts == {("malformed", str(path)): 1}


def test_a_malformed_message_has_its_place() -> None:
    (results,) = [
        message for message in messages(io.BytesIO(b"\n\nx"), BY_NAME["nt-messages"], None, "") if message is not None
    ]
    assert isinstance(results, Malformed)
    assert results.line == 3
