"""Parsing of lines by the workers of a distributed builder, without an engine."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pytest

import squall
from squall.builders.distributed.exec.program import Program
from squall.builders.distributed.exec.worker import source_step
from squall.builders.distributed.io import ingest
from squall.builders.distributed.io.parsing import Document, Parsed, lines_parser
from squall.builders.distributed.io.records import (
    DEAD_LETTER,
    INSTANT,
    ROW,
    SOURCE_COUNT,
    WATERMARK,
    Record,
    from_arrow,
)
from squall.builders.distributed.io.splits import splits_of, splits_parser
from squall.builders.distributed.plan.physical_plan import physical_plan
from squall.model import with_windows
from squall.model.windows import SlidingWindow
from squall.rdf import ALWAYS, Columns
from squall.streams import DeadLetterFile, open_source

RULE = "@prefix : <http://example.org/>.\n[r: (?x :p ?y) (?y :p ?z) -> (?x :q ?z)]"
P, OTHER = "<http://example.org/p>", "<http://example.org/other>"


def line(time: int, predicate: str) -> str:
    return f"{time} <http://example.org/s{time}> {predicate} <http://example.org/o> ."


def batch(*parts: tuple[str, int, list[str]]) -> pyarrow.RecordBatch:
    """Returns lines as Spark passes them to workers: grouped by blocks of a file."""
    rows = [(text, f"file:/in/{name}", block, 0) for name, block, lines in parts for text in lines]
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pyarrow.RecordBatch.from_pydict(dict(zip(("value", "file", "block", "source"), columns, strict=True)))


def parsed(given: pyarrow.RecordBatch, wanted: set[str] | None, passed: int = ALWAYS) -> list[Parsed]:
    parse = lines_parser((Document("/in", folder=True),))
    return list(parse([given], wanted, passed))  # type: ignore[arg-type]


def test_fast_lines_are_read_by_column_without_unused_predicates() -> None:
    (tree,) = parsed(batch(("a.ntt", 0, [line(1, P), line(2, OTHER), line(3, OTHER)])), {P})
    assert isinstance(tree.events, Columns)
    assert [(event.time, len(event.facts)) for event in tree.events] == [(1, 1), (3, 0)]
    assert (tree.statements, tree.lost, tree.file, tree.block) == (3, [], "file:/in/a.ntt", 0)
    (tree,) = parsed(batch(("a.ntt", 0, [line(1, P), line(2, OTHER)])), None)
    assert [len(event.facts) for event in tree.events] == [1, 1]


def test_where_something_is_late_all_is_read() -> None:
    (tree,) = parsed(batch(("a.ntt", 0, [line(1, OTHER), line(5, P)])), {P}, passed=3)
    assert [(event.time, len(event.facts)) for event in tree.events] == [(1, 1), (5, 1)]


def test_lines_of_several_files_and_blocks_are_distinguished() -> None:
    inputs = batch(("a.ntt", 0, [line(1, P)]), ("a.ntt", 70, ["oops"]), ("b.ntt", 0, [line(2, P)]))
    tree = parsed(inputs, {P})
    assert [(item.file, item.block, item.statements) for item in tree] == [
        ("file:/in/a.ntt", 0, 1), ("file:/in/a.ntt", 70, 0), ("file:/in/b.ntt", 0, 1),
    ]  # fmt: skip
    assert [dead_letters.cause for item in tree for dead_letters in item.lost] == ["malformed"]


def test_the_records_of_a_worker_for_lines() -> None:
    plan = squall.plan(squall.compile(RULE, lexer="jena"))
    step = source_step(Program(physical_plan(plan)), 3, lines_parser((Document("/in", folder=True),)))
    records: list[Record] = list(
        from_arrow(step(iter([batch(("a.ntt", 0, [line(1, OTHER), line(5, P), line(6, OTHER)]))])))
    )
    by_kind = {
        kind: [item for item in records if item.type == kind] for kind in (ROW, DEAD_LETTER, WATERMARK, SOURCE_COUNT)
    }
    assert {item.start for item in by_kind[ROW]} == {5}
    assert [json.loads(item.row)[0] for item in by_kind[DEAD_LETTER]] == ["late"]
    assert [item.start for item in by_kind[WATERMARK]] == [6]
    assert [item.start for item in by_kind[SOURCE_COUNT]] == [3]


def test_a_worker_reports_each_instant_of_a_snapshot() -> None:
    system = with_windows(replace(squall.compile(RULE, lexer="jena"), output="rstream"), SlidingWindow(10))
    plan = squall.plan(system)
    step = source_step(Program(physical_plan(plan)), ALWAYS, lines_parser((Document("/in", folder=True),)))
    lines = [line(1, P), line(2, OTHER), line(3, OTHER), line(4, P)]
    records: list[Record] = list(from_arrow(step(iter([batch(("a.ntt", 0, lines))]))))
    assert {item.start for item in records if item.type == INSTANT} == {1, 2, 3, 4}


# The policy of docs/reading.md, as workers follow it

TEXT = "\ufeff1 <urn:a> <urn:p> <urn:o> .{end}nonsense{end}{end}2 <urn:b> <urn:p> <urn:o> .{end}nonsense{end}"


def read_in_process(path: Path) -> tuple[list[Any], list[tuple[Any, ...]]]:
    """Returns the facts of a file, and the line and text of each dead letter, as the source in process reads them."""
    ledger = DeadLetterFile(path.with_suffix(".lost"))
    facts = [fact for batch in open_source(str(path), ledger).batches() for event in batch for fact in event.facts]
    ledger.close()
    letters = map(json.loads, path.with_suffix(".lost").read_text().splitlines())
    return facts, [(letter["line"], letter["text"].strip()) for letter in letters]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block_bytes", [10, 60, 1 << 20])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_workers_read_lines_as_the_process_does(end: str, block_bytes: int, ending: str, tmp_path: Path) -> None:
    path, data = tmp_path / f"x.ntt{ending}", TEXT.format(end=end).encode()
    path.write_bytes(gzip.compress(data) if ending else data)
    parse = splits_parser([Document(str(path))], [splits_of(0, str(path), len(data), 1 << 30)], block_bytes)
    numbers = pyarrow.RecordBatch.from_pydict({"id": [0]})
    results = list(parse([numbers], None, ALWAYS))
    facts = [fact for result in results for event in result.events for fact in event.facts]
    letters = [(letter.line, letter.text.strip()) for result in results for letter in result.lost]
    assert (facts, letters) == read_in_process(path)
    assert (len(facts), letters) == (2, [(2, "nonsense"), (5, "nonsense")])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_that_come_by_way_of_an_engine_are_the_same(end: str, tmp_path: Path) -> None:
    """Engines cut at line feeds, some of them at CR as well."""
    text = TEXT.format(end=end)
    (tmp_path / "x.ntt").write_text(text, newline="")
    for lines in (text.split("\n"), text.splitlines()):
        results = parsed(batch(("x.ntt", 0, lines)), None)
        facts = [fact for result in results for event in result.events for fact in event.facts]
        assert len(facts) == 2
        assert [letter.line for result in results for letter in result.lost] == [2, 5]


def test_a_later_block_has_no_byte_order_mark() -> None:
    (result,) = parsed(batch(("x.ntt", 5, ["\ufeff1 <urn:a> <urn:p> <urn:o> ."])), None)
    assert len(result.lost) == 1


@pytest.mark.parametrize("name", ["x.ntt.bz2", "x.ntt.zst", "x.NTT.GZ"])
def test_the_driver_reads_what_workers_cannot_decompress(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    (tmp_path / "y.ntt.gz").write_bytes(b"")
    assert not ingest.is_readable_by_workers(open_source(str(tmp_path / name)))
    assert not ingest.is_readable_by_workers(open_source(str(tmp_path)))
    assert ingest.is_readable_by_workers(open_source(str(tmp_path / "y.ntt.gz")))
    (result,) = parsed(batch((name, 0, ["x", "y"])), None)  # it has come to a folder that is followed
    assert [letter.reason[:40] for letter in result.lost] == ["workers do not read files that are compr"]
