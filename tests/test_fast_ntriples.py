"""The fast N-Triples reader, compared with the parser, and sources into which predicates are pushed down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import squall
from squall.contracts import Options
from squall.rdf import ALWAYS, XSD, Event, Term, Triple, iri
from squall.streams import DeadLetterFile, ObservedSources, Sources, open_source, parse_lines
from squall.streams.clock import VirtualClock, WallClock
from squall.streams.formats import fast_ntriples
from squall.streams.formats.limits import DEFAULT_LIMITS, ReadLimits
from squall.streams.formats.reading import grouped
from tests.limits import open_limited

E = "http://example.org/"
WANTED = (iri(E + "p"),)

TERMS = st.sampled_from([f"<{E}a>", f"<{E}b#c>", "<urn:x:y>", "_:b1"])
PREDICATES = st.sampled_from([f"<{E}p>", f"<{E}q>"])
OBJECTS = TERMS | st.sampled_from(['"x"', '"a b"', '"a . b"@en', f'"1"^^<{XSD}int>', '"_:é"', f'"x"^^<{XSD}string>'])
ODD = st.sampled_from(
    ["", "# a comment", "bad", f'<{E}a>  <{E}p> "x" .', f"<a> <{E}p> _:x .", f'<{E}a> <{E}p> "\\u0041" .', '"x\n"\n']
)
STATEMENTS = st.builds("{} {} {} .".format, TERMS, PREDICATES, OBJECTS)
STAMPS = st.sampled_from(["5", "6", "6", "7", "07", "10", "11", "11", "12", "-infinity", "1970-01-01", "x", "1_0", "²"])
LINES = st.lists(st.builds("{} {}".format, STAMPS, STATEMENTS | ODD) | ODD, max_size=12)
ORDERED = st.lists(st.tuples(st.integers(10, 14), STATEMENTS), max_size=12).map(
    lambda lines: [f"{time} {statement}" for time, statement in sorted(lines, key=lambda line: line[0])]
)

PLAIN = st.lists(st.builds("{} {}".format, st.integers(8, 12), STATEMENTS), max_size=6)


class Kept:
    """A dead-letter ledger in memory."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, int | None, str, str]] = []

    def record(self, cause: str, source: str, line: int | None, reason: str, text: str) -> None:
        self.entries.append((cause, line, reason, text))


def read(
    path: Path, wanted: Sequence[Term] | None, chunk_bytes: int = DEFAULT_LIMITS.chunk_bytes
) -> tuple[list[Event], Kept, int]:
    """Returns the events of a file, its dead letters, and the number of its statements."""
    ledger = Kept()
    sources = Sources([open_limited(str(path), ReadLimits(chunk_bytes=chunk_bytes), ledger)])
    if wanted is not None:
        sources.push_down(wanted)
    results = [event for batch in sources for event in batch]
    return results, ledger, sources.sources[0].reading.statements


def pairs(events: Sequence[Event]) -> Iterator[tuple[int, Triple]]:
    """Yields each fact with its time."""
    return ((event.time, fact) for event in events for fact in event.facts if isinstance(fact, Triple))


def late(events: Sequence[Event]) -> list[tuple[int, Triple]]:
    """Returns the facts that come after a later event, from the point of view of a job."""
    latest, result = ALWAYS, []
    for event in events:
        if event.time < latest:
            result += list(pairs([event]))
        latest = max(latest, event.time)
    return result


@given(LINES | ORDERED | PLAIN)
@example(["12 <urn:x:a> <urn:x:p> <urn:x:b>", "12 <urn:x:a> .", "12 <urn:x:a> <urn:x:p> <urn:x:b> ."])
@example(['1 <urn:x:a> <urn:x:p> "a b" .', '2 <urn:x:a> <urn:x:p> "a\tb" .', "1 <urn:x:a> <urn:x:p> _:b ."])
@example(["1 <urn:x:a> <urn:x:p> <urn:x:b> .\n5 <urn:x:a> <urn:x:p> <urn:x:b> ."])
@example(["1 <urn:x:a> <urn:x:p> <urn:x:b> xx5 <urn:x:a> <urn:x:p> <urn:x:b> ."])
@example(["1 <urn:x:a> <urn:x:p> <urn:x:b>\n<urn:x:c> .", "2 <urn:x:a> <urn:x:p> <urn:x:b> ."])
def test_events_are_those_of_the_pairs(lines: list[str]) -> None:
    result = fast_ntriples.events("\n".join(lines).encode(), ".d", "urn:s")
    split = [part for line in lines for part in line.split("\n")]
    with patch.multiple("squall.streams.formats", suffix=lambda _: ".d", statements=lambda *_, **__: None):
        timed, bad = parse_lines(split, "d", timed=True)  # by the parser alone
    if result is not None:
        assert not bad
        assert (list(result[0]), result[1]) == (grouped(timed, "urn:s"), len(timed))


@given(ORDERED)
def test_plain_lines_in_order_need_no_parser(lines: list[str]) -> None:
    canonical = [line for line in lines if "string>" not in line]
    if canonical:
        result = fast_ntriples.events("\n".join(canonical).encode(), ".d", "")
        assert result is not None
        assert result[1] == len(canonical)


@pytest.mark.parametrize("block", ["1 {}\n2 {}", '1 {}\n2 <urn:x:a> <urn:x:p> "a b" .\n3 {}'])
@pytest.mark.parametrize(
    "broken", ["<urn:x:a>", '"x" <urn:x:p> "y" .', "<urn:x:a> _:p _:b .", "<urn:x:a> <p> _:b .", "   ."]
)
def test_one_line_that_is_not_plain_is_seen(block: str, broken: str) -> None:
    fine = "<urn:x:a> <urn:x:p> _:b ."
    assert fast_ntriples.statements(block.format(fine, fine).encode(), timed=True) is not None
    assert fast_ntriples.statements(block.format(fine, broken).encode(), timed=True) is None
    assert fast_ntriples.statements(block.format(broken, fine).encode(), timed=True) is None


@settings(deadline=None)
@given(LINES | ORDERED | PLAIN, st.sampled_from([40, 200, 1 << 17]))
def test_only_unused_predicates_are_skipped(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], chunk: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "chosen.ntt"
    path.write_text("\n".join(lines))
    every, events, statements = read(path, None, chunk)
    predicate_filter, lost_too, statements_too = read(path, WANTED, chunk)
    assert (events.entries, statements) == (lost_too.entries, statements_too)
    assert [pair for pair in pairs(every) if pair[1].predicate in WANTED] == [
        pair for pair in pairs(predicate_filter) if pair[1].predicate in WANTED
    ]
    assert late(every) == late(predicate_filter)
    assert [event.time for event in every[-1:]] == [event.time for event in predicate_filter[-1:]]


def test_skipped_statements_are_checked_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.ntt"
    path.write_text(f"1 <{E}a> <{E}q> _:b .\n2 <{E}a> <{E}p> _:c .\n3 <{E}a> <{E}q> _:b .\n4 <{E}a> <{E}q> _:b .\n")
    events, ledger, statements = read(path, WANTED)
    assert [(event.time, len(event.facts)) for event in events] == [(2, 1), (4, 0)]
    assert (statements, ledger.entries) == (4, [])
    path.write_text(f"1 <{E}a> <{E}q> _:b .\n2 <{E}a> <{E}q> b .\n")
    events, ledger, statements = read(path, WANTED)
    assert (statements, [(cause, line) for cause, line, *_ in ledger.entries]) == (1, [("malformed", 2)])


@pytest.mark.parametrize("fine", ["{} <urn:x:a> <urn:x:p> _:b .\n", "{}  <urn:x:a> <urn:x:p> <urn:x:b> .\n"])
def test_lines_are_numbered_whichever_way_those_before_were_read(fine: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ntt"
    path.write_text("".join(map(fine.format, range(9))) + "\n9 b .\n")
    for chunk in (30, 100, 1 << 17):
        _, ledger, statements = read(path, None, chunk)
        assert (statements, [(cause, line) for cause, line, *_ in ledger.entries]) == (9, [("malformed", 11)])


RULES = "@prefix e: <http://example.org/> .\n[r: (?x e:p ?y) (?y e:p ?z) -> (?x e:r ?z)]"


@settings(deadline=None)
@given(
    LINES | ORDERED, st.sampled_from([40, 1 << 17]), st.sampled_from(["LANDMARK", "RANGE 2ms", "RANGE 4ms STEP 2ms"])
)
@pytest.mark.more
def test_outputs_do_not_depend_on_push_down(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], chunk: int, window: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "run.ntt"
    path.write_text("\n".join(lines))
    job = squall.plan(squall.compile(RULES, lexer="jena", window=window))
    results = []
    for expected in (None, WANTED):
        ledger = Kept()
        sources = Sources([open_limited(str(path), ReadLimits(chunk_bytes=chunk), ledger)])
        if expected is not None:
            sources.push_down(expected)
        outputs = list(squall.build(job, options=Options(ledger=ledger)).run(sources))
        results.append((sorted(outputs), ledger.entries))
    assert results[0] == results[1]


@pytest.mark.parametrize("times", [(10, 9), (5, 6, 5), (2, 1)])
def test_late_statements_are_recorded_although_unused(times: tuple[int, ...], tmp_path: Path) -> None:
    path = tmp_path / "x.ntt"
    path.write_text("".join(f"{time} <{E}a> <{E}q> _:b .\n" for time in times))
    events, _, _ = read(path, WANTED)
    assert [time for time, _ in late(events)] == [times[-1]]


def test_a_folder_is_in_the_order_of_time_across_files(tmp_path: Path) -> None:
    (tmp_path / "1.ntt").write_text(f"5 <{E}a> <{E}q> _:b .\n")
    (tmp_path / "2.ntt").write_text(f"4 <{E}a> <{E}q> _:c .\n")
    events, _, _ = read(tmp_path, WANTED)
    assert [(event.time, len(event.facts)) for event in events] == [(5, 0), (4, 1)]


def source(path: Path, lateness: int = 0) -> squall.streams.Source:
    path.write_text(f"1 <{E}a> <{E}q> _:b .\n")
    return open_source(str(path), DeadLetterFile(), lateness)


def count(sources: Sources) -> int:
    sources.push_down(WANTED)
    return sum(len(event.facts) for batch in sources for event in batch)


def test_nothing_is_skipped_where_lateness_is_decided_later(tmp_path: Path) -> None:
    path = tmp_path / "x.ntt"
    assert count(Sources([source(path)])) == 0
    assert count(Sources([source(path), source(tmp_path / "y.ntt")])) == 0
    assert count(Sources([source(path, lateness=5)])) == 1
    assert count(Sources([source(path)], WallClock())) == 1
    live = source(path)
    live.live = True
    assert count(Sources([live, source(tmp_path / "y.ntt")], VirtualClock())) == 2


def test_all_is_read_where_it_is_watched(tmp_path: Path) -> None:
    events: list[Event] = []
    assert count(ObservedSources(Sources([source(tmp_path / "x.ntt")]), lambda: None, events.extend)) == 1
    assert len(events) == 1
    assert count(ObservedSources(Sources([source(tmp_path / "x.ntt")]), lambda: None)) == 0
