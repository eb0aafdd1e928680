"""Faults that users met in RDF Patch, each with its own input, and the law that a patch is a log."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import squall
from squall.model import with_windows
from squall.model.windows import CountWindow
from squall.rdf import Event, Fact, Triple, iri
from squall.streams import DeadLetterFile, Sources, open_source
from squall.streams.clock import WallClock
from squall.streams.formats import BY_NAME
from squall.streams.formats.evaluations import Declarations
from squall.streams.formats.rdf_patch import PatchReader
from squall.streams.formats.reading import ReadProgress
from squall.streams.formats.timestamps import time_of
from squall.streams.live.messages import Message, _messages
from squall.streams.live.messages import read as read_message
from squall.testing import oracle
from tests import in_memory
from tests.conftest import Squall

E = "http://ex.org/"
COPY = f"[copy: (?x <{E}p> ?y) -> (?x <{E}q> ?y)]"


def t(subject: str, object: str = "o") -> Triple:
    return Triple(iri(E + subject), iri(E + "p"), iri(E + object))


A, B, C = t("a"), t("b"), t("c")


def read(folder: Path, text: str, options: str = "") -> tuple[list[Event], list[dict[str, Any]]]:
    """Returns the events of a patch, and its dead letters."""
    path = folder / "x.rdfp"
    path.write_text(text)
    return read_source(folder, f"{path}{options}")


def read_source(folder: Path, address: str) -> tuple[list[Event], list[dict[str, Any]]]:
    ledger = DeadLetterFile(folder / "lost")
    events = [event for batch in open_source(address, ledger).batches() for event in batch]
    ledger.close()
    return events, [json.loads(line) for line in (folder / "lost").read_text().splitlines()]


def statements(events: Iterable[Event]) -> list[Fact]:
    return [fact for event in events for fact in (*event.removed, *event.facts)]


# D9: a patch is a log


def answers(batches: Iterable[Sequence[Event]], output: str = "istream") -> list[tuple[int, str]]:
    system = squall.compile(COPY, lexer="jena", removals=True, output=output)
    return [(item.time, str(item.fact)) for item in squall.build(squall.plan(system)).run(batches)]


@pytest.mark.fault("D9")
def test_a_later_transaction_of_one_instant_takes_back_what_an_earlier_one_added(tmp_path: Path) -> None:
    events, _ = read(tmp_path, f"TX .\nA {A}\nA {B}\nTC .\nTX .\nD {A}\nTC .\n")
    assert answers([events]) == [(0, f"{B}".replace("/p>", "/q>"))]
    assert answers([[event] for event in events]) == answers([events])


@pytest.mark.fault("D9")
def test_a_later_file_of_one_instant_takes_back_what_an_earlier_one_added(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "1.rdfp").write_text(f"A {A}\nA {B}\n")
    (folder / "2.rdfp").write_text(f"D {A}\nA {C}\n")
    (folder / "3.rdfp").write_text(f"A {A}\nD {C}\n")
    events, _ = read_source(tmp_path, str(folder))
    assert {fact for _, fact in answers([events])} == {str(fact).replace("/p>", "/q>") for fact in (A, B)}


@pytest.mark.fault("D9")
def test_transactions_that_arrive_together_are_applied_in_order(tmp_path: Path) -> None:
    (tmp_path / "x.rdfp").write_text(f"TX .\nA {A}\nA {B}\nTC .\nTX .\nD {A}\nTC .\n")
    sources = Sources([open_source(f"{tmp_path}/x.rdfp")], clock=WallClock())
    assert [fact for _, fact in answers(sources)] == [str(B).replace("/p>", "/q>")]


Row = tuple[int, str, Triple]
"""When a row is applied (integer ms), its code and its triple."""
TRIPLES = (A, B, C)


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    pauses = draw(st.lists(st.sampled_from((0, 0, 0, 1, 2)), min_size=1, max_size=14))
    times = [sum(pauses[: index + 1]) for index in range(len(pauses))]
    return [(time, draw(st.sampled_from("AD")), draw(st.sampled_from(TRIPLES))) for time in times]


def applied(log: Iterable[Row]) -> list[tuple[int, set[Triple]]]:
    """Returns the dataset after each instant of a log, whose rows are applied one by one, as Jena does."""
    dataset: set[Triple] = set()
    snapshots = []
    for time, rows in groupby(log, key=lambda row: row[0]):
        for _, code, triple in rows:
            (dataset.add if code == "A" else dataset.discard)(triple)
        snapshots.append((time, set(dataset)))
    return snapshots


def written(rows: Sequence[Row], cuts: Iterable[int]) -> str:
    """Returns rows as a document, cut into transactions."""
    text, time = "", None
    for part in cut(rows, cuts):
        for own_time, own_rows in groupby(part, key=lambda row: row[0]):
            header = f'H time "{own_time}" .\n' if own_time != time else ""
            time = own_time
            text += header + "TX .\n" + "".join(f"{code} {triple}\n" for _, code, triple in own_rows) + "TC .\n"
    return text


def cut(items: Sequence[Any], cuts: Iterable[int]) -> list[Sequence[Any]]:
    places = [0, *sorted({place for place in cuts if 0 < place < len(items)}), len(items)]
    return [items[begin:end] for begin, end in pairwise(places)]


def _lose(line: int, reason: str, text: str) -> None:
    raise AssertionError((line, reason, text))


def parsed(document: str) -> list[Event]:
    reader = PatchReader("", 0, ".x", _lose)
    return [*reader.read(1, document.encode()), *reader.end()]


CUTS = st.sets(st.integers(1, 13))


@pytest.mark.fault("D9")
@pytest.mark.parametrize("engine", ["iterator", "memory"])
@given(log=logs(), documents=CUTS, transactions=CUTS, batches=CUTS)
def test_a_log_in_any_cut_equals_row_by_row_reading(
    engine: str, log: list[Row], documents: set[int], transactions: set[int], batches: set[int]
) -> None:
    """An RDF Patch log, cut into documents, transactions and batches, equals Jena's reading, row by row."""
    events = [event for rows in cut(log, documents) for event in parsed(written(rows, transactions))]
    system = squall.compile(COPY, lexer="jena", removals=True)
    snapshots = [(-1, set[Triple]()), *applied(log)]
    differences: dict[str, Callable[[set[Triple], set[Triple]], set[Triple]]] = {
        "istream": lambda before, after: after - before,
        "dstream": lambda before, after: before - after,
    }
    for output, difference in differences.items():
        expected = {
            (time, str(triple).replace("/p>", "/q>"))
            for (_, before), (time, after) in pairwise(snapshots)
            for triple in difference(before, after)
        }
        plan = squall.plan(replace(system, output=output))
        run = squall.build(plan).run if engine == "iterator" else lambda parts, plan=plan: in_memory.run(plan, parts)
        outputs = [(item.time, str(item.fact)) for item in run(cut(events, batches))]
        assert len(outputs) == len(set(outputs))
        assert set(outputs) == expected


@pytest.mark.fault("D9")
@given(log=logs(), first=CUTS, second=CUTS)
def test_no_cut_of_a_log_changes_what_a_window_of_triples_holds(
    log: list[Row], first: set[int], second: set[int]
) -> None:
    """How a log is cut into transactions makes no difference to a count window either, which the oracle confirms."""
    system = with_windows(squall.compile(COPY, lexer="jena", removals=True), CountWindow(2), removals=True)
    answers_by_cut = []
    for cuts in (first, second):
        events = parsed(written(log, cuts))
        outputs = sorted((item.time, str(item.fact)) for item in squall.build(squall.plan(system)).run([events]))
        expected = sorted((time, str(item)) for time, item, *_ in oracle.outputs(system, events, []))
        assert outputs == expected
        answers_by_cut.append(outputs)
    assert answers_by_cut[0] == answers_by_cut[1]


# D10: blank nodes keep their labels


@pytest.mark.fault("D10")
def test_blank_nodes_of_a_patch_keep_their_labels_across_documents(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "1.rdfp").write_text(f'H time "1" .\nA _:x <{E}p> <{E}o> .\n')
    (folder / "2.rdfp").write_text(f'H time "2" .\nD <_:x> <{E}p> <{E}o> .\n')
    (folder / "3.nt").write_text(f"_:x <{E}p> <{E}o> .\n")
    events, _ = read_source(tmp_path, str(folder))
    added, removed, other = sorted(events, key=lambda event: (event.time == 0, event.time))
    assert added.facts == removed.removed != other.facts


@pytest.mark.fault("D10")
def test_blank_nodes_of_a_patch_keep_their_labels_across_messages(tmp_path: Path) -> None:
    settings = open_source("redis://localhost/log?format=rdfp&time=1").settings  # type: ignore[attr-defined]
    facts = [
        statements(
            event
            for batch in read_message(message, BY_NAME[format], own, DeadLetterFile(), ReadProgress())
            for event in batch
        )
        for format, own in (("rdfp", settings), ("nq", replace(settings, format="nq")))
        for message in (
            Message(f"{'A ' * (format == 'rdfp')}_:x <{E}p> <{E}o> .\n".encode(), "log", "1"),
            Message(f"{'D ' * (format == 'rdfp')}_:x <{E}p> <{E}o> .\n".encode(), "log", "2"),
        )
    ]
    assert facts[0] == facts[1]
    assert facts[2] != facts[3]


# D11: times


@pytest.mark.fault("D11")
@pytest.mark.parametrize(
    "stamp", ["2026-01-01T24:00:00Z", "2026-01-01T24:00:00.000+00:00", "2026-01-01T24:00", "20260101T240000Z"]
)
def test_the_end_of_a_day_is_the_begin_of_the_next_one(stamp: str) -> None:
    assert time_of(stamp) == time_of("2026-01-02T00:00:00Z")


@pytest.mark.fault("D11")
@pytest.mark.parametrize("stamp", ["2026-01-01T24:00:01", "2026-01-01T24:30:00", "2026-01-01T25:00:00", "24:00:00"])
def test_other_times_behind_the_end_of_a_day_are_none(stamp: str) -> None:
    with pytest.raises(SyntaxError):
        time_of(stamp)


@pytest.mark.fault("D11")
def test_lines_and_headers_may_have_the_time_24_00(tmp_path: Path) -> None:
    (tmp_path / "x.ntt").write_text(f"2026-01-01T24:00:00Z {A}\n")
    (tmp_path / "x.nqt").write_text(f"2026-01-01T24:00:00Z {A}\n")
    (tmp_path / "y.rdfp").write_text(f'H time "2026-01-01T24:00:00Z" .\nA {A}\n')
    typed = '"2026-01-01T24:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    (tmp_path / "z.rdfp").write_text(f"H time {typed} .\nA {A}\n")
    for name in ("x.ntt", "x.nqt", "y.rdfp", "z.rdfp"):
        events, dead_letters = read_source(tmp_path, str(tmp_path / name))
        assert [event.time for event in events] == [1_767_312_000_000]
        assert dead_letters == []


@pytest.mark.fault("D11")
@pytest.mark.parametrize(
    "header", ['H time "soon" .', "H time soon .", "H time .", "H time <urn:x> .", 'H "time" "x" .']
)
def test_what_is_behind_a_time_that_cannot_be_read_is_a_dead_letter(header: str, tmp_path: Path) -> None:
    text = f'H time "1" .\nTX .\nA {A}\nTC .\n{header}\nTX .\nA {B}\nTC .\nTX .\nD {A}\nTC .\nH time "5" .\nA {C}\n'
    events, dead_letters = read(tmp_path, text)
    assert events == [Event(1, (A,)), Event(5, (C,))]
    assert [letter["line"] for letter in dead_letters] == [5, 7, 10]
    assert [letter["text"] for letter in dead_letters] == [header, f"A {B}", f"D {A}"]
    assert dead_letters[1]["reason"] == "the time of its header cannot be read"


@pytest.mark.fault("D11")
def test_rows_before_a_time_that_cannot_be_read_keep_theirs(tmp_path: Path) -> None:
    events, _ = read(tmp_path, f'H time "1" .\nA {A}\nH time .\nA {B}\n')
    assert events == [Event(1, (A,))]


@pytest.mark.fault("D11")
def test_what_always_holds_cannot_be_deleted(tmp_path: Path) -> None:
    events, (dead_letter,) = read(tmp_path, f'H time "-infinity" .\nA {A}\nD {A}\n')
    assert statements(events) == [A]
    assert dead_letter["line"] == 3
    assert "does not end" in dead_letter["reason"]


# D17: tokens


INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
DECIMAL = "<http://www.w3.org/2001/XMLSchema#decimal>"
DOUBLE = "<http://www.w3.org/2001/XMLSchema#double>"
BOOLEAN = "<http://www.w3.org/2001/XMLSchema#boolean>"


@pytest.mark.fault("D17")
@pytest.mark.parametrize(
    ("row", "object"),
    [
        ("1 .", f'"1"^^{INTEGER}'),
        ("-1.", f'"-1"^^{INTEGER}'),
        ("1.5.", f'"1.5"^^{DECIMAL}'),
        (".5 .", f'".5"^^{DECIMAL}'),
        ("1e3.", f'"1e3"^^{DOUBLE}'),
        ("true.", f'"true"^^{BOOLEAN}'),
        ("'it' .", '"it"'),
        (r"'it\'s \"' .", r'"it' + r"'s \"" + '"'),
        ("'a'@EN .", '"a"@en'),
        ("'1' ^^ <http://www.w3.org/2001/XMLSchema#integer> .", f'"1"^^{INTEGER}'),
        ('"""two\n# lines""" .', r'"two\n# lines"'),
        ("'''it's''' .", '"it' + "'s" + '"'),
        ("<urn:o>.", "<urn:o>"),
        ("\n # a comment\n\n<urn:o>\n.", "<urn:o>"),
        ('"". # nothing', '""'),
    ],
)
def test_terms_may_have_any_form_of_turtle(row: str, object: str, tmp_path: Path) -> None:
    events, dead_letters = read(tmp_path, f"TX.\nA <urn:s> <urn:p> {row}\nTC.\n")
    assert statements(events) == [Triple(iri("urn:s"), iri("urn:p"), squall.rdf.Term(object))]
    assert dead_letters == []


@pytest.mark.fault("D17")
def test_rows_need_no_blanks_and_no_lines_of_their_own(tmp_path: Path) -> None:
    text = f"H time 7 . TB.A{A.subject}{A.predicate}{A.object}.D {B} A {C}TC.TX .D {C} TC ."
    events, dead_letters = read(tmp_path, text)
    assert events == [Event(7, (A, C), "", (B,)), Event(7, (), "", (C,))]
    assert dead_letters == []


@pytest.mark.fault("D17")
def test_dead_letters_have_their_lines_behind_rows_of_several_lines(tmp_path: Path) -> None:
    _, dead_letters = read(tmp_path, f"A <urn:a>\n<urn:b>\n1 . oops\nA {A} A\n{B} no\n")
    assert [(letter["line"], letter["text"]) for letter in dead_letters] == [(3, "oops"), (5, "no")]


@pytest.mark.fault("D17")
def test_a_row_in_a_graph_may_have_terms_in_any_form(tmp_path: Path) -> None:
    events, _ = read(tmp_path, f"A <urn:s> <urn:p> 'o' <{E}g> . A <_:s> <urn:p> 1 <_:g> .\n")
    assert events[0] == Event(0, (Triple(iri("urn:s"), iri("urn:p"), squall.rdf.literal("o")),), graph=f"<{E}g>")
    assert events[1].graph.startswith("_:g.")


@pytest.mark.fault("D17")
@pytest.mark.parametrize("rows", ["Z .", 'PA "e" <urn:e> .', "PD 'e' .", 'PA "e" "urn:e" <urn:g> .', "H id <urn:x> ."])
def test_segments_prefixes_and_other_headers_have_no_effect(rows: str, tmp_path: Path) -> None:
    assert read(tmp_path, f"{rows} A {A}\n") == ([Event(0, (A,))], [])
    assert read(tmp_path, f"TX . {rows} A {A} TC .\n") == ([Event(0, (A,))], [])


@pytest.mark.fault("D17")
def test_a_malformed_row_costs_what_is_behind_it_in_its_line(tmp_path: Path) -> None:
    events, dead_letters = read(tmp_path, f"A {A} oops {B}\nA {C}\n")
    assert statements(events) == [A, C]
    assert [(letter["line"], letter["text"]) for letter in dead_letters] == [(1, f"oops {B}")]


@pytest.mark.fault("D17")
def test_a_row_of_several_lines_that_is_malformed_costs_the_lines_before(tmp_path: Path) -> None:
    events, dead_letters = read(tmp_path, f"A <urn:a>\n<urn:b>\nA {C}\n")
    assert statements(events) == [C]
    assert [(letter["line"], letter["text"]) for letter in dead_letters] == [(1, "A <urn:a>\n<urn:b>")]


@pytest.mark.fault("D17")
def test_a_string_that_is_not_closed_costs_the_rest(tmp_path: Path) -> None:
    events, (dead_letter,) = read(tmp_path, f'A {A}\nA <urn:a> <urn:b> """c\nA {B}\nA {C}\n')
    assert statements(events) == [A]
    assert dead_letter["line"] == 2
    assert "the rest is left out" in dead_letter["reason"]


@pytest.mark.fault("D17")
@given(cuts=st.sets(st.integers(1, 12)))
def test_rows_may_be_cut_into_blocks_of_lines_anywhere(cuts: set[int]) -> None:
    text = f'TX\n.\nA\n{A.subject}\n{A.predicate}\n"""two\n\nlines"""@en\n. D {B} A\n{C}\nTC.\n# end\n'
    whole = parsed(text)
    reader, events, number = PatchReader("", 0, ".x", _lose), list[Event](), 1
    for lines in cut(text.split("\n"), cuts):
        events += reader.read(number, "\n".join(lines).encode())
        number += len(lines)
    assert [*events, *reader.end()] == whole
    assert len(statements(whole)) == 3


# W6: what is written


QUERY = f"CONSTRUCT {{ ?x <{E}in> <{E}W> }} WHERE {{ ?x a <{E}A> }}"
EVENTS = "".join(
    f"{time} <{E}{name}> <{squall.rdf.RDF}type> <{E}A> .\n" for time, name in ((1000, "a"), (100_000, "b"))
)
OPTIONS = ("--source", "s.ntt?window=RANGE 10s")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.rq").write_text(QUERY)
    Path("s.ntt").write_text(EVENTS)
    return tmp_path


def patch_of(code: str, *events: tuple[int, str]) -> str:
    row = "TX .\n{} <{}{}> <{}in> <{}W> .\nTC .\n"
    return "".join(f'H time "{time}" .\n' + row.format(code, E, name, E, E) for time, name in events)


@pytest.mark.fault("W6")
@pytest.mark.parametrize(
    ("output", "code", "times"), [("istream", "A", (1000, 100_000)), ("dstream", "D", (11_000, 110_000))]
)
def test_what_has_ended_is_written_as_deleted(
    output: str, code: str, times: tuple[int, int], folder: Path, squall: Squall
) -> None:
    expected = patch_of(code, (times[0], "a"), (times[1], "b"))
    assert squall("run", "a.rq", *OPTIONS, "--output", output, "--format", "rdfp")[:2] == (0, expected)
    for name in ("out.rdfp", "out.rdfp.gz"):
        assert squall("run", "a.rq", *OPTIONS, "--output", output, "--sink", name)[0] == 0
        data = Path(name).read_bytes()
        assert (gzip.decompress(data) if name.endswith("gz") else data).decode() == expected
    assert squall("run", "a.rq", *OPTIONS, "--output", output, "--sink", "each-{time}.rdfp")[0] == 0
    assert Path(f"each-{times[0]}.rdfp").read_text() == patch_of(code, (times[0], "a"))


@pytest.mark.fault("W6")
def test_messages_with_what_has_ended_delete_it() -> None:
    messages = _messages("rdfp", Declarations({"gone"}))
    fact = squall.rdf.Triple(iri("urn:s"), iri("urn:p"), iri("urn:o"))
    data = [
        *messages.add(squall.Output(fact, 5, "gone")),
        *messages.add(squall.Output(fact, 6, "new")),
        *messages.end(),
    ]
    assert [message.decode().split("\n")[2][0] for message in data] == ["D", "A"]


@pytest.mark.fault("W6")
def test_outputs_of_one_program_are_added_or_deleted_each_by_itself(folder: Path, squall: Squall) -> None:
    for name in ("ISTREAM", "DSTREAM"):
        head = f"REGISTER RSTREAM <{E}out/{name}> AS CONSTRUCT {name} {{ ?x <{E}in> <{E}W> }}"
        window = f"FROM NAMED WINDOW <{E}w> ON <{E}s> [RANGE PT10S]"
        Path(f"{name}.rspql").write_text(f"{head} {window} WHERE {{ WINDOW <{E}w> {{ ?x a <{E}A> }} }}")
    code, out, err = squall("run", "ISTREAM.rspql", "DSTREAM.rspql", "--source", f"{E}s=s.ntt", "--format", "rdfp")
    assert code == 0, err
    assert sorted(row[0] for row in out.split("\n") if row.startswith(("A ", "D "))) == ["A", "A", "D", "D"]


@pytest.mark.fault("W6")
def test_whole_answers_are_no_log_of_changes(folder: Path, squall: Squall) -> None:
    code, _, err = squall("run", "a.rq", *OPTIONS, "--output", "rstream", "--format", "rdfp")
    assert code == 2
    assert "outputs whole answers (rstream)" in err
    assert "`--output istream`" in err


@pytest.mark.fault("W6")
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "a.rq", "--output", "dstream", "--output", "istream"),
        ("run", "a.rq", "--format", "nt", "--format=nt"),
        ("explain", "a.rq", "--stage", "tps", "--stage", "pps"),
        ("check", "a.rq", "--format", "json", "--format", "text"),
        ("update", "a.ru", "--output", "x.nt", "--output", "y.nt"),
    ],
)
def test_an_option_with_one_value_is_given_once(arguments: tuple[str, ...], folder: Path, squall: Squall) -> None:
    code, _, err = squall(*arguments)
    assert code == 2
    assert f"`{arguments[2].split('=')[0]}` is given 2 times" in err


@pytest.mark.fault("W6")
def test_options_with_several_values_may_be_given_again(folder: Path, squall: Squall) -> None:
    Path("t.ntt").write_text(EVENTS.replace("/a>", "/c>"))
    code, out, _ = squall("run", "a.rq", "--source", "s.ntt", "--source", "t.ntt", "--quiet", "--quiet")
    assert code == 0
    assert out.count("\n") == 3


@pytest.mark.fault("W6")
@pytest.mark.parametrize(
    "builder",
    [
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more]),
        pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.more]),
    ],
)
def test_a_patch_is_a_log_on_other_engines(builder: str, tmp_path: Path) -> None:
    pytest.importorskip({"spark": "pyspark", "beam": "apache_beam"}[builder])
    (tmp_path / "log").mkdir()
    for number in range(12):
        rows = f"A {A}\nA {B}\nD {C}\n" if number % 2 else f"D {A}\nTX .\nD {B}\nA {C}\nTC .\n"
        (tmp_path / "log" / f"{number:02}.rdfp").write_text(f'H time "7" .\n{rows}')
    system = squall.compile(COPY, lexer="jena", removals=True)
    sources = Sources([open_source(str(tmp_path / "log"))])
    outputs = squall.build(squall.plan(system), builder).run(sources)
    expected = {(7, str(fact).replace("/p>", "/q>")) for fact in (A, B)}
    assert {(item.time, str(item.fact)) for item in outputs} == expected
