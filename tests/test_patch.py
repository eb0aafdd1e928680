"""RDF Patch as a source: additions and removals by transaction."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import squall
from squall.errors import UsageError
from squall.model import profiles
from squall.rdf import Event, Triple, iri
from squall.streams import DeadLetterFile, Sources, open_source
from squall.streams.formats.limits import DEFAULT_LIMITS, ReadLimits
from tests.limits import open_limited

E = "http://example.org/"


def t(subject: str, object: str = "o") -> Triple:
    return Triple(iri(E + subject), iri(E + "p"), iri(E + object))


A, B, C = t("a"), t("b"), t("c")


def read(
    tmp_path: Path, *rows: str, options: str = "", limits: ReadLimits = DEFAULT_LIMITS
) -> tuple[list[Event], list[tuple[int, str, str]]]:
    """Returns the events of a patch, and (line, reason, text) for each dead letter."""
    path = tmp_path / "x.rdfp"
    path.write_text("".join(f"{row}\n" for row in rows))
    ledger = DeadLetterFile(tmp_path / "lost")
    source = open_limited(f"{path}{options}", limits, ledger)
    events = [event for batch in source.batches() for event in batch]
    ledger.close()
    entries = map(json.loads, (tmp_path / "lost").read_text().splitlines())
    return events, [(entry["line"], entry["reason"], entry["text"]) for entry in entries]


def test_a_transaction_is_an_event(tmp_path: Path) -> None:
    rows = ["TX .", f"A {A}", f"D {B}", "TC .", "", "# and another", "TX . # here", f"  A\t{C} # c", "TC ."]
    events, dead_letters = read(tmp_path, *rows, options="?time=7&stream=urn:s")
    assert events == [Event(7, (A,), "urn:s", (B,)), Event(7, (C,), "urn:s")]
    assert not dead_letters


def test_a_header_sets_the_event_time(tmp_path: Path) -> None:
    stamp = '"1970-01-01T00:00:02Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    rows = ["H id <uuid:1> .", "TX .", f"A {A}", "TC .", 'H time "1000" .', f"A {B}", f"H time {stamp} .", f"D {B}"]
    events, dead_letters = read(tmp_path, *rows)
    assert [event.time for event in events] == [0, 1000, 2000]
    assert not dead_letters


def test_an_event_ends_where_a_row_deletes_what_it_adds(tmp_path: Path) -> None:
    events, _ = read(tmp_path, f"A {A}", f"D {A}", f"D {B}", f"A {B}", f"A {C}", f"A {C}")
    assert events == [Event(0, (A,)), Event(0, (B, C, C), "", (A, B))]


def test_aborted_transactions_have_no_effect(tmp_path: Path) -> None:
    assert read(tmp_path, "TX .", f"A {A}", "TA .", f"A {B}") == ([Event(0, (B,))], [])


def test_uncommitted_transactions_are_dead_letters(tmp_path: Path) -> None:
    events, dead_letters = read(tmp_path, f"A {A}", "TX .", f"D {B}", f"A {C}")
    assert events == [Event(0, (A,))]
    reason = "its transaction is not committed"
    assert dead_letters == [(3, reason, f"D {B}"), (4, reason, f"A {C}")]


def test_prefixes_are_passed_over(tmp_path: Path) -> None:
    rows = ['PA "e" "http://example.org/" .', f"A {A}", 'PD "e" .']
    assert read(tmp_path, *rows) == ([Event(0, (A,))], [])


def test_a_transaction_is_an_event_for_each_graph(tmp_path: Path) -> None:
    def row(code: str, fact: Triple) -> str:
        return f"{code} {fact}"[:-1] + f"<{E}g> ."

    assert read(tmp_path, row("A", A), row("D", B)) == ([Event(0, (A,), "", (B,), f"<{E}g>")], [])
    assert read(tmp_path, row("A", A), f"A {A}", f"D {B}", row("D", C), row("A", B)) == (
        [
            Event(0, (A,), "", (), f"<{E}g>"),
            Event(0, (A,), "", (B,)),
            Event(0, (B,), "", (C,), f"<{E}g>"),
        ],
        [],
    )


def test_blank_nodes_by_label(tmp_path: Path) -> None:
    events, dead_letters = read(tmp_path, f'A <_:b1> <{E}p> "<_:b1>" .', f'A _:b1 <{E}p> "<_:b1>" .')
    (fact, again), removed = events[0].facts, events[0].removed
    assert fact == again
    assert isinstance(fact, Triple)
    assert fact.subject.startswith("_:b1.")
    assert fact.object == '"<_:b1>"'
    assert not removed
    assert not dead_letters


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("A <a> <b> <c> .", "No scheme found"),
        ("A # nothing", "not a row"),
        (f"D {A} <urn:x>", "not a row"),
        ("A", "not a row"),
        ('A <urn:a> <urn:b> "c .', "not a row"),
        ("A <urn:a> <urn:b> <urn:c> <urn:d> <urn:e> .", "not a row"),
        ("A <urn:a> <urn:b> .", "not a row"),
        ('D "a" <urn:b> <urn:c> .', "a"),
        ("X <a> .", "not a row"),
        ("TX", "not a row"),
        ("Z . .", "not a row"),
        ("PA .", "not a row"),
        ('A <urn:a> <urn:b> "c"@en--ltr .', "base directions of texts (`@en--ltr`, RDF 1.2) are not supported"),
        ('A <urn:a> <urn:b> "c"@en--x .', "The allowed base directions are"),
        ("A <urn:a> <urn:b> <<( <urn:a> <urn:b> <urn:c> )>> .", "triple terms (RDF 1.2) are not supported"),
        ("D << <urn:a> <urn:b> <urn:c> >> <urn:b> <urn:c> .", "triple terms (RDF 1.2) are not supported"),
        ("TC .", "no transaction has begun"),
        ("TA .", "no transaction has begun"),
        ("H id .", "not a header"),
        ("H <urn:id> 1 .", "not a header"),
    ],
)
def test_a_malformed_row_costs_itself_only(row: str, reason: str, tmp_path: Path) -> None:
    events, dead_letters = read(tmp_path, f"A {A}", row, f"A {B}")
    assert [fact for event in events for fact in event.facts] == [A, B]
    ((line, why, text),) = dead_letters
    assert line == 2
    assert row.endswith(text)
    assert reason in why


@pytest.mark.parametrize(("row", "reason"), [("TX .", "has begun already"), ('H time "5" .', "comes in front of it")])
def test_rows_that_do_not_belong_into_a_transaction(row: str, reason: str, tmp_path: Path) -> None:
    events, ((line, why, _),) = read(tmp_path, "TX .", f"A {A}", row, f"A {B}", "TC .")
    assert events == [Event(0, (A, B))]
    assert line == 3
    assert reason in why


def test_cutting_into_blocks_does_not_matter(tmp_path: Path) -> None:
    rows = ["TX .", f"A {A}", f"D {B}", "TC .", f"A {C}", "bad"]
    events = read(tmp_path, *rows)
    assert read(tmp_path, *rows, limits=ReadLimits(chunk_bytes=10)) == events
    assert events[1] == [(6, "not a row of an RDF Patch here", "bad")]


def test_a_patch_source_has_removals(tmp_path: Path) -> None:
    (tmp_path / "x.rdfp").write_text(f"A {A}\nD {B}\n")
    (tmp_path / "y.nt").touch()
    source = open_source(f"{tmp_path}/x.rdfp")
    assert source.removals
    assert not open_source(f"{tmp_path}/y.nt").removals
    assert open_source(f"{tmp_path}").removals
    assert Sources([source]).removals
    list(source.batches())
    assert source.reading.statements == 2


def test_a_folder_that_grows_announces_removals(tmp_path: Path) -> None:
    ledger = DeadLetterFile()
    batches = open_source(f"{tmp_path}?follow=yes&poll=5", ledger).batches()
    (tmp_path / "a.rdfp").write_text(f"A {A}\n")
    (tmp_path / "b.nt").write_text(f"{B}\n")
    assert next(batches)[0].facts == (B,)
    assert ledger.total("malformed") == 1
    assert open_source(f"{tmp_path}?follow=yes&format=rdfp").removals


def test_what_a_patch_takes_back_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.rdfp"
    path.write_text(f'H time "1000" .\nA {A}\nH time "3000" .\nD {A}\n')
    system = squall.compile(f"[r: (?a <{E}p> ?b) -> (?b <{E}q> ?a)]", lexer="jena")
    sources = Sources([open_source(str(path))])
    system = profiles.apply_profile(system, removals=sources.removals, output="dstream")
    (out,) = squall.build(squall.plan(system)).run(sources)
    assert out.time == 3000


def test_a_patch_is_not_static(tmp_path: Path) -> None:
    (tmp_path / "x.rdfp").touch()
    with pytest.raises(UsageError, match="cannot be static"):
        squall.streams.open_static(f"{tmp_path}/x.rdfp")


@pytest.mark.parametrize("window", ["", " [RANGE 10s]", " [RANGE 4s STEP 1s]", " [TRIPLES 5]"])
def test_removals_reach_windows_that_a_query_names(window: str, tmp_path: Path) -> None:
    (tmp_path / "x.rdfp").write_text(f'H time "1000" .\nA {A}\nA {B}\nH time "3000" .\nD {A}\n')
    source = open_source(f"{tmp_path}/x.rdfp?stream=urn:s")
    query = f"SELECT ?x FROM STREAM <urn:s>{window} {{ ?x <{E}p> ?y }}"
    system = squall.compile(query, lexer="csparql", removals=source.removals)
    (query_,) = system.subsystems
    falling = replace(query_, output="dstream")
    outputs = list(squall.build(squall.plan(falling)).run(Sources([source])))
    assert (3000, f"?x=<{E}a>") in [(out.time, str(out.fact)) for out in outputs]
