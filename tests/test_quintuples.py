"""Quintuples: triples with begin and end, as data and as validity, held against a look at every instant."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import strategies as st

import squall
from squall.contracts import CheckpointedSink, Output, TruncatableSink
from squall.errors import SinkError, UsageError
from squall.functions.values import date_time
from squall.plan import Plan
from squall.rdf import ALWAYS, OWL, TUPLE, XSD, Atom, Event, Quad, Solution, Term, Triple, iri, literal
from squall.streams import DeadLetterFile, Sources, open_sink, open_source, open_static
from squall.streams.formats.limits import DEFAULT_LIMITS, ReadLimits
from squall.streams.formats.quintuples import QuintupleEncoder
from squall.streams.formats.timestamps import moment
from squall.streams.live import http
from squall.testing import oracle
from tests import in_memory
from tests.conftest import Squall
from tests.laws import PLANNERS, examples, hold, on_engines
from tests.limits import open_limited

E = "http://example.org/"
PART = iri(f"{E}partOf")
TRANSITIVE = f"[t: (?x <{E}partOf> ?y) (?y <{E}partOf> ?z) -> (?x <{E}partOf> ?z)]"
DAY = 86_400_000


def part(subject: str, object: str) -> Triple:
    return Triple(iri(E + subject), PART, iri(E + object))


A, B = part("a", "b"), part("b", "c")


class Interval(NamedTuple):
    """A triple, and when it holds: [begin, end) in integer ms; None: always, and for ever."""

    triple: Triple
    begin: int | None = None
    end: int | None = None

    def __str__(self) -> str:
        times = (date_time(time) for time in (self.begin, self.end) if time is not None)
        return " ".join((*self.triple, *times, "."))

    def holds(self, time: int) -> bool:
        return (self.begin is None or self.begin <= time) and (self.end is None or time < self.end)


def events_of(source: squall.streams.Source) -> list[Event]:
    return [event for batch in source.batches() for event in batch]


def read(
    tmp_path: Path, *lines: object, options: str = "?valid=time", limits: ReadLimits = DEFAULT_LIMITS
) -> tuple[list[Event], list[tuple[int, str, str]]]:
    """Returns the events of lines, and (line, reason, text) for each dead letter."""
    path = tmp_path / "x.nt5"
    path.write_text("".join(f"{line}\n" for line in lines))
    ledger = DeadLetterFile(tmp_path / "lost")
    events = events_of(open_limited(f"{path}{options}", limits, ledger))
    ledger.close()
    entries = map(json.loads, (tmp_path / "lost").read_text().splitlines())
    return events, [(entry["line"], entry["reason"], entry["text"]) for entry in entries]


# As data


def test_as_data_the_times_are_arguments(tmp_path: Path) -> None:
    lines = [Interval(A), "", "# nothing", Interval(B, DAY, 2 * DAY), f"  {Interval(B, DAY)} # open"]
    events, dead_letters = read(tmp_path, *lines, options="?stream=urn:s&time=7")
    times = (date_time(DAY), date_time(2 * DAY))
    assert events == [Event(7, (A, Atom(TUPLE, (*B, *times)), Atom(TUPLE, (*B, times[0]))), "urn:s")]
    assert not dead_letters


def test_data_is_the_default_and_may_be_static(tmp_path: Path) -> None:
    assert read(tmp_path, Interval(A, 1, 2), options="") == read(tmp_path, Interval(A, 1, 2), options="?valid=data")
    (event,) = open_static(str(tmp_path / "x.nt5"))
    assert event == Event(ALWAYS, (Atom(TUPLE, (*A, date_time(1), date_time(2))),))


def test_literals_blank_nodes_and_escapes_are_those_of_n_triples(tmp_path: Path) -> None:
    days = " ".join(literal(f"1970-01-0{day}", f"{XSD}date") for day in (1, 2))
    line = f'_:x <urn:p> "a \\"b\\" . # \\u00e9"@en {days} .'
    (event,), dead_letters = read(tmp_path, line, '_:x <urn:p> "1"^^<urn:d>.', options="")
    atom, triple = event.facts
    assert isinstance(atom, Atom)
    assert isinstance(triple, Triple)
    assert not dead_letters
    assert atom.arguments[2] == '"a \\"b\\" . # é"@en'
    assert atom.arguments[0] == triple.subject
    assert atom.arguments[3:] == tuple(literal(f"1970-01-0{day}", f"{XSD}date") for day in (1, 2))


def test_lines_are_read_from_any_place_and_in_any_block(tmp_path: Path) -> None:
    lines = [Interval(part("a", f"b{number}"), number, number + 1) for number in range(50)]
    whole, _ = read(tmp_path, *lines, "bad", options="")
    parts, lost = read(tmp_path, *lines, "bad", options="", limits=ReadLimits(chunk_bytes=97))
    assert [fact for event in parts for fact in event.facts] == list(whole[0].facts)
    assert [line for line, _, _ in lost] == [51]
    (tmp_path / "x.nt5").write_text("".join(f"{line}\n" for line in lines))
    source = open_limited(str(tmp_path / "x.nt5"), ReadLimits(chunk_bytes=400))
    first = list(next(iter(source.batches())))
    offset = source.current_offset()  # type: ignore[attr-defined]
    again = open_source(str(tmp_path / "x.nt5"))
    again.resume(offset)  # type: ignore[attr-defined]
    assert [fact for event in (*first, *events_of(again)) for fact in event.facts] == list(whole[0].facts)


MALFORMED = {
    "<urn:a> <urn:p> .": "a line is a triple, perhaps with the begin and the end of its validity",
    "<urn:a> <urn:p> <urn:b> <urn:g> .": "a line is a triple, perhaps with the begin and the end of its validity",
    "<urn:a> <urn:p> <urn:b>": "a line is a triple, perhaps with the begin and the end of its validity",
    '<urn:a> <urn:p> <urn:b> "x" .': '`"x"` is no time: an xsd:dateTime is one',
    f'<urn:a> <urn:p> <urn:b> {date_time(1)} "" .': '`""` is no time: an xsd:dateTime is one',
    f"{Interval(A, 2, 1)}": "its validity ends before it begins",
    "<a> <urn:p> <urn:b> .": "No scheme found in an absolute IRI",
    '"a" <urn:p> <urn:b> .': "a line is a triple, perhaps with the begin and the end of its validity",
    "<< <urn:a> <urn:p> <urn:b> >> <urn:p> <urn:b> .": "triple terms (RDF 1.2) are not supported",
}


@pytest.mark.parametrize("options", ["", "?valid=time"])
@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_line_is_one_dead_letter(tmp_path: Path, text: str, options: str) -> None:
    events, dead_letters = read(tmp_path, Interval(A), text, Interval(B), options=options)
    assert [fact for event in events for fact in event.facts] == [A, B]
    assert dead_letters == [(2, MALFORMED[text], text)]


def test_a_server_of_quintuples_has_no_other_format() -> None:
    """The media type of a server does not replace the ending, since quintuples have none."""
    source = open_source("http://127.0.0.1:1/x.nt5")
    assert (source.format.name, source._is_format_open) == ("nt5", False)  # type: ignore[attr-defined]
    assert not any(text.startswith("text/plain") for text in http._MEDIA_TYPES)


def test_an_update_neither_reads_nor_writes_quintuples(tmp_path: Path, squall: Squall) -> None:
    (tmp_path / "x.nt5").write_text(f"{Interval(A, 1, 2)}\n")
    (tmp_path / "u.ru").write_text("INSERT DATA { <urn:a> <urn:p> <urn:b> }")
    code, _, err = squall("update", f"{tmp_path}/u.ru", "--data", f"{tmp_path}/x.nt5")
    assert code
    assert "it is no data set" in err
    code, _, err = squall("update", f"{tmp_path}/u.ru", "--output", f"{tmp_path}/y.nt5")
    assert code
    assert "cannot be written as `nt5`" in err


# As validity


def test_an_end_is_a_removal(tmp_path: Path) -> None:
    lines = [Interval(part("x", "y")), Interval(A, 1, 5), Interval(B, 2), Interval(part("c", "d"), 7, 9)]
    events, dead_letters = read(tmp_path, *lines, options="?valid=time&stream=urn:s")
    assert not dead_letters
    assert events == [
        Event(ALWAYS, (part("x", "y"),), "urn:s"),
        Event(1, (A,), "urn:s"),
        Event(2, (B,), "urn:s"),
        Event(5, (), "urn:s", (A,)),
        Event(7, (part("c", "d"),), "urn:s"),
        Event(9, (), "urn:s", (part("c", "d"),)),
    ]


def test_intervals_that_touch_or_overlap_are_one(tmp_path: Path) -> None:
    lines = [Interval(A, 1, 5), Interval(A, 2, 3), Interval(A, 5, 7), Interval(A, 6, 8), Interval(A, 9, 10)]
    events, _ = read(tmp_path, *lines)
    assert [(event.time, len(event.facts), len(event.removed)) for event in events] == [
        (1, 1, 0),
        (8, 0, 1),
        (9, 1, 0),
        (10, 0, 1),
    ]


def test_lines_out_of_order_and_empty_intervals_are_dead_letters(tmp_path: Path) -> None:
    lines = [Interval(A, 5, 9), Interval(B, 4, 6), Interval(B), Interval(B, 6, 6)]
    events, dead_letters = read(tmp_path, *lines)
    assert [event.time for event in events] == [5, 9]
    assert dead_letters == [
        (2, "it begins before the line in front of it: sort the lines by their begins", str(lines[1])),
        (3, "it always holds: such triples come first, or are static data", str(lines[2])),
        (4, "its validity ends when it begins, so that it never holds", str(lines[3])),
    ]


def test_a_compressed_file_is_read_and_written(tmp_path: Path, squall: Squall) -> None:
    (tmp_path / "x.nt5.gz").write_bytes(gzip.compress(f"{Interval(A, 1, 5)}\n{Interval(B, 2, 6)}\n".encode()))
    (tmp_path / "t.jena").write_text(TRANSITIVE)
    sink = tmp_path / "out.nt5.gz"
    arguments = ("run", f"{tmp_path}/t.jena", "--source", f"{tmp_path}/x.nt5.gz?valid=time", "--sink", str(sink))
    code, _, err = squall(*arguments, "--output", "changes")
    assert code == 0, err
    assert gzip.decompress(sink.read_bytes()).decode() == f"{Interval(part('a', 'c'), 2, 5)}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("?valid=both", "`valid=both` in"),
        ("?valid=time&time=5", "`time` in"),
        ("?valid=time&lateness=5s", "`lateness` in"),
        ("?valid=time&follow=yes", "cannot be followed"),
    ],
)
def test_options_that_contradict_are_refused(tmp_path: Path, options: str, message: str) -> None:
    (tmp_path / "x.nt5").touch()
    with pytest.raises(UsageError, match=message):
        open_source(f"{tmp_path}/x.nt5{options}")


def test_validity_is_of_one_file_of_quintuples(tmp_path: Path) -> None:
    for name in ("x.nt5", "x.nt"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match=r"for quintuples \(`nt5`\), and not for `nt`"):
        open_source(f"{tmp_path}/x.nt?valid=data")
    with pytest.raises(UsageError, match="have no order by which they hold"):
        open_source(f"{tmp_path}?valid=time")
    with pytest.raises(UsageError, match="is timed"):
        open_static(f"{tmp_path}/x.nt5?valid=time")
    with pytest.raises(UsageError, match="valid"):
        open_source("tcp://127.0.0.1:1?format=nt5&valid=time")


# As output


def change(fact: Triple, time: int, kind: str) -> Output:
    return Output(fact, time, "r", kind)


def encoded(encoder: QuintupleEncoder, *outputs: Output) -> list[str]:
    return b"".join([*map(encoder.write, outputs), encoder.end()]).decode().splitlines()


def test_a_line_is_a_closed_interval_or_an_open_one_at_the_end() -> None:
    encoder = QuintupleEncoder()
    outputs = [change(A, ALWAYS, "insert"), change(B, 1, "insert"), change(B, 5, "delete"), change(B, 7, "insert")]
    assert encoded(encoder, *outputs) == [str(Interval(B, 1, 5)), str(Interval(A)), str(Interval(B, 7))]


def test_an_encoder_continues_from_its_snapshot() -> None:
    encoder, other = QuintupleEncoder(), QuintupleEncoder()
    encoder.write(change(A, 1, "insert"))
    other.restore(json.loads(json.dumps(encoder.snapshot())))
    assert encoded(other, change(A, 5, "delete")) == [str(Interval(A, 1, 5))]


@pytest.mark.parametrize("ending", ["nt5", "nt5.gz"])
def test_a_sink_of_a_run_that_resumes_has_each_interval_once(tmp_path: Path, ending: str) -> None:
    """Open intervals are part of its checkpoint, and lines behind it are written again."""
    path = tmp_path / f"out.{ending}"
    first = open_sink(str(path))
    assert isinstance(first, CheckpointedSink)
    assert not isinstance(first, TruncatableSink), "a batch does not end the intervals that are open"
    first.start()
    first.write(change(A, 1, "insert"))
    first.write(change(B, 2, "insert"))
    first.write(change(B, 3, "delete"))
    state = json.loads(json.dumps(first.snapshot()))
    first.write(change(A, 5, "delete"))
    first.close()
    second = open_sink(str(path))
    assert isinstance(second, CheckpointedSink)
    second.start(resume=True)
    second.restore(state)
    second.write(change(A, 6, "delete"))
    second.close()
    data = path.read_bytes()
    text = (gzip.decompress(data) if ending.endswith("gz") else data).decode()
    assert text.splitlines() == [str(Interval(B, 2, 3)), str(Interval(A, 1, 6))]


@pytest.mark.parametrize(
    "uri", ["x-{time}.nt5", "x/?format=nt5", "tcp://127.0.0.1:1?format=nt5", "http://127.0.0.1:1?format=nt5"]
)
def test_sinks_of_instants_and_messages_have_no_intervals(tmp_path: Path, uri: str) -> None:
    with pytest.raises(
        UsageError, match=r"has files of instants|does not name the format|outlasts a connection|be written as `nt5`"
    ):
        open_sink(uri if "://" in uri else f"{tmp_path}/{uri}")


def test_a_tuple_is_its_own_line() -> None:
    times = (date_time(1), date_time(2))
    assert encoded(QuintupleEncoder(), Output(Atom(TUPLE, (*A, *times)), 9, "r")) == [str(Interval(A, 1, 2))]


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([Output(A, 1, "r")], "has the ends of what holds"),
        ([change(A, ALWAYS, "insert"), change(A, 1, "delete")], "has no begin that a quintuple could have"),
        ([change(A, 1, "insert"), change(A, 2, "insert")], "holds in two answers"),
        ([change(A, 1, "delete")], "has not begun"),
        ([Output(Atom(TUPLE, (*A, date_time(1), A.object)), 1, "r")], "is no triple with the begin"),
        ([Output(Atom(iri("urn:r"), (A.subject,)), 1, "r")], "is no triple with the begin"),
        ([Output(Atom(TUPLE, (*A, date_time(1))), 1, "r", "insert")], "does not end by a change"),
        ([Output(Quad(*A, A.object), 1, "r", "insert")], "in a named graph"),
        ([Output(Solution(("x",), (A.object,)), 1, "r", "insert")], "are no triples"),
    ],
)
def test_what_no_line_can_express_is_an_error(outputs: Sequence[Output], message: str) -> None:
    with pytest.raises(SinkError, match=message):
        encoded(QuintupleEncoder(), *outputs)


def test_a_program_without_ends_is_refused_before_the_run(tmp_path: Path, squall: Squall) -> None:
    (tmp_path / "t.jena").write_text(TRANSITIVE)
    (tmp_path / "t.hfc").write_text("?a <http://example.org/partOf> ?c ?s ?e\n->\n?c <urn:hasPart> ?a ?s ?e\n")
    (tmp_path / "x.nt5").write_text(f"{Interval(A, 1, 2)}\n")
    source, form = ("--source", f"{tmp_path}/x.nt5"), ("--format", "nt5")
    code, _, err = squall("run", f"{tmp_path}/t.jena", *source, *form)
    assert code
    assert "`--output changes`" in err
    code, _, err = squall("run", f"{tmp_path}/t.hfc", *source, *form, "--output", "changes")
    assert code
    assert "have the times of their validity themselves" in err
    code, out, _ = squall("run", f"{tmp_path}/t.hfc", *source, *form)
    assert (code, out) == (0, f"{Interval(Triple(A.object, iri('urn:hasPart'), A.subject), 1, 2)}\n")


# The law: what follows at an instant follows from what holds then

NAMES = "abcd"
LAST = 12
intervals = st.builds(
    Interval,
    st.builds(part, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.integers(0, LAST - 2),
    st.none() | st.integers(1, LAST),
).filter(lambda interval: interval.end is None or (interval.begin or 0) < interval.end)
timelines = st.lists(intervals, max_size=12).map(lambda drawn: sorted(drawn, key=lambda interval: interval.begin or 0))


def closure(triples: Iterable[Triple]) -> set[Triple]:
    """Returns the transitive closure, by joining until nothing is new."""
    pairs = set(triples)
    while True:
        longer = {part_of(x, z) for x, _, y in pairs for other, _, z in pairs if y == other}
        if longer <= pairs:
            return pairs
        pairs |= longer


def part_of(subject: Term, object: Term) -> Triple:
    return Triple(subject, PART, object)


def derived(triples: Iterable[Triple]) -> set[Triple]:
    """Returns the triples that the rule derives, some of which may be given as well."""
    pairs = closure(triples)
    return {part_of(x, z) for x, _, y in pairs for other, _, z in pairs if y == other}


def written(outputs: Iterable[Output]) -> list[Interval]:
    """Returns the lines that a sink writes of outputs."""
    encoder, lines = QuintupleEncoder(), list[Interval]()
    with TemporaryDirectory() as folder:
        sink = open_sink(f"{folder}/out.nt5")
        sink.start()
        for output in outputs:
            sink.write(output)
        sink.close()
        (event,) = [*events_of(open_source(f"{folder}/out.nt5")), Event(0, ())][:1]
    assert not encoder.snapshot()
    for fact in event.facts:
        assert isinstance(fact, Atom)
        times = [moment(term) for term in fact.arguments[3:]]
        lines.append(Interval(Triple(*fact.arguments[:3]), *times))
    return lines


def check(lines: Sequence[Interval], timeline: Sequence[Interval]) -> None:
    """Fails unless lines are the maximal intervals of what follows at each instant."""
    for time in range(LAST + 2):
        holding = {interval.triple for interval in timeline if interval.holds(time)}
        assert {line.triple for line in lines if line.holds(time)} == derived(holding), time
    for line in lines:
        neighbours = [other for other in lines if other is not line and other.triple == line.triple]
        touching = [other for other in neighbours if other.holds((line.begin or 0) - 1) or other.holds(line.begin or 0)]
        assert not touching, (line, touching)


def plan_of(planner: str) -> Plan:
    system = squall.compile(TRANSITIVE, lexer="jena", output="changes", removals=True)
    return squall.plan(system, planner)


def source_events(timeline: Sequence[Interval], chunk_bytes: int) -> list[Sequence[Event]]:
    """Returns the events of a file with a timeline, read in blocks of some bytes and resumed behind each block."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.nt5")
        path.write_text("".join(f"{interval}\n" for interval in timeline))
        batches: list[Sequence[Event]] = []
        offset = None
        while True:
            source = open_limited(f"{path}?valid=time", ReadLimits(chunk_bytes=chunk_bytes))
            if offset is not None:
                source.resume(offset)  # type: ignore[attr-defined]
            batch = next(iter(source.batches()), None)
            if batch is None:
                return batches
            batches.append(batch)
            offset = source.current_offset()  # type: ignore[attr-defined]


@examples(100)
@pytest.mark.parametrize("planner", PLANNERS)
def test_what_follows_holds_over_the_intersection(planner: str, many: int) -> None:
    def law(timeline: list[Interval], chunk_bytes: int) -> None:
        events = [event for batch in source_events(timeline, chunk_bytes) for event in batch]
        assert [event.time for event in events] == sorted(event.time for event in events)
        check(written(squall.run(plan_of(planner), events)), timeline)

    hold(law, many, timeline=timelines, chunk_bytes=st.integers(1, 1000))


@on_engines
def test_engines_agree_on_the_intersection(builder: str, number: int) -> None:
    def law(timeline: list[Interval], seed: int) -> None:
        events = [event for batch in source_events(timeline, 1000) for event in batch]
        check(written(in_memory.outputs_on(builder, plan_of("rete"), events, seed)), timeline)

    hold(law, number, timeline=timelines, seed=st.integers(0, 1000))


def test_the_oracle_reads_the_events_of_a_timeline() -> None:
    timeline = [Interval(A, 1, 5), Interval(B, 2, 7), Interval(A, 5, 6)]
    system = squall.compile(TRANSITIVE, lexer="jena", output="changes", removals=True)
    events = [event for batch in source_events(timeline, 1000) for event in batch]
    outputs = [(time, fact) for time, fact, *_ in oracle.outputs(system, events, ())]
    assert outputs == [(2, part("a", "c")), (6, part("a", "c"))]


BUILDERS = [
    "iterator",
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more]),
    pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.more]),
]


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("valid", ["data", "time"])
def test_a_file_means_the_same_to_every_builder(tmp_path: Path, builder: str, valid: str) -> None:
    lines = [
        str(Interval(A, 1, 5)),
        "bad",
        str(Interval(B, 2, 6)),
        str(Interval(B, 9, 7)),
        str(Interval(part("c", "d"), 3)),
    ]
    (tmp_path / "x.nt5").write_text("".join(f"{line}\n" for line in lines))
    ledger = DeadLetterFile(tmp_path / "lost")
    rules = TRANSITIVE if valid == "time" else "?x ?p ?y ?s ?e\n?y ?p ?z ?s2 ?e2\n->\n?x ?p ?z ?s2 ?e\n"
    language, output = ("jena", "changes") if valid == "time" else ("hfc", "istream")
    system = squall.compile(rules, lexer=language, output=output, removals=valid == "time")
    sources = Sources([open_source(f"{tmp_path}/x.nt5?valid={valid}", ledger)])
    outputs = written(squall.build(squall.plan(system), builder).run(sources))
    ledger.close()
    letters = [json.loads(line)["line"] for line in (tmp_path / "lost").read_text().splitlines()]
    assert sorted(letters) == [2, 4]
    if valid == "data":
        assert outputs == [Interval(part("a", "c"), 2, 5)]
    else:
        assert sorted(outputs) == sorted(
            [Interval(part("a", "c"), 2, 5), Interval(part("b", "d"), 3, 6), Interval(part("a", "d"), 3, 5)]
        )


@pytest.mark.parametrize(
    ("program", "source", "is_reported"),
    [
        ("a.jena", "x.nt5", True),
        ("a.jena", "x.txt?format=nt5&stream=urn:s", True),
        ("a.jena", "x.nt5?valid=time", False),
        ("a.hfc", "x.nt5", False),
        ("a.rifps", "x.nt5", False),
        ("a.jena", "x.nt", False),
        ("a.jena", "folder", True),
        ("a.jena", "folder?stream=urn:s", True),
        ("a.jena", "folder?format=nt5", True),
        ("a.jena", "x.nt5?time=1000", True),
        ("a.hfc", "folder", False),
        ("a.jena", "empty", False),
    ],
)
def test_tuples_that_no_rule_reads_are_reported(
    tmp_path: Path, squall: Squall, monkeypatch: pytest.MonkeyPatch, program: str, source: str, is_reported: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jena").write_text(TRANSITIVE)
    Path("a.hfc").write_text("?x ?p ?y ?s\n->\n?x ?p ?y\n")
    Path("a.rifps").write_text(
        "Document(Group(Forall ?x ?y ?s (?x[<urn:q> -> ?y] :- <urn:x-squall:tuple>(?x <urn:p> ?y ?s))))"
    )
    for folder in ("folder", "empty"):
        Path(folder).mkdir()
    Path("empty/.x.nt5").write_text("")
    for name in ("x.nt5", "x.txt", "x.nt", "folder/a.nt", "folder/b.nt5"):
        Path(name).write_text(f"{Interval(A)}\n")
    words = f"no rule reads the facts of `{source}` that have a begin or an end"
    _, out, _ = squall("check", program, "--source", source)
    assert (words in out) is is_reported
    code, _, err = squall("run", program, "--source", source, "--output", "changes" if "time" in source else "istream")
    assert code == 0
    assert (words in err) is is_reported
    if not is_reported:
        return
    option = f"`{source}{'&' if '?' in source else '?'}valid=time`"
    assert (option in err) is ("folder" not in source and "time" not in source)
    assert (option in err) or "where a source is a file or standard input, and all of it is there: `valid=time`" in err


# Functional properties

FUNCTIONAL = Triple(PART, iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), iri(f"{OWL}FunctionalProperty"))
VALUES_THAT_MEET = {
    "nodes": f"CONSTRUCT {{ ?a <{E}meets> ?b }} {{ ?a <{OWL}sameAs> ?b FILTER(?a != ?b) }}",
    "literals": f"CONSTRUCT {{ ?rule <{E}meets> ?value }} {{ ?rule <urn:x-squall:violatedBy> ?value }}",
}


@examples(40)
@pytest.mark.parametrize("kind", VALUES_THAT_MEET)
def test_values_of_a_functional_property_are_the_same_or_reported_while_they_meet(kind: str, many: int) -> None:
    query = VALUES_THAT_MEET[kind]
    system = squall.compile(query, lexer="sparql", rules=["owl2rl"], output="changes", removals=True)
    plan = squall.plan(system)

    def law(drawn: list[tuple[str, str, int, int]]) -> None:
        timeline = [Interval(FUNCTIONAL)]
        for subject, name, begin, length in sorted(drawn, key=itemgetter(2)):
            value = iri(E + name) if kind == "nodes" else literal(name)
            timeline.append(Interval(Triple(iri(E + subject), PART, value), begin, begin + length))
        events = [event for batch in source_events(timeline, 1000) for event in batch]
        lines = written(squall.run(plan, events))
        for time in range(LAST + 2):
            valid = {interval.triple for interval in timeline[1:] if interval.holds(time)}
            meeting = {part_of(a, b) for x, _, a in valid for y, _, b in valid if x == y and a != b}
            same = {pair for pair in closure(meeting) if pair.subject != pair.object}
            conclusions = {line.triple for line in lines if line.holds(time)}
            if kind == "nodes":
                assert {part_of(a, b) for a, _, b in conclusions} == same, time
            else:
                assert {value for _, _, value in conclusions} == {value for value, _, _ in same}, time

    lines = st.tuples(st.sampled_from("xy"), st.sampled_from("abc"), st.integers(0, 6), st.integers(1, 5))
    hold(law, many, drawn=st.lists(lines, max_size=5))
