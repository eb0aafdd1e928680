"""The Python API: compilation, its errors, and what importing it does not load."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

import squall
from squall.builders.local.job import IteratorJob
from squall.contracts import Output
from squall.errors import BuilderError, Errors, PluginError, UsageError, single_errors
from squall.model import rules
from squall.rdf import Columns, Event, Triple, iri

FAMILY = "@prefix : <http://example.org/>.\n[up: (?a :parent ?b) -> (?b :child ?a)]\n"
DOWN = "@prefix : <http://example.org/>.\n[down: (?b :child ?a) -> (?a :parent ?b)]\n"


def fact(subject: str, predicate: str, object: str) -> Triple:
    return Triple(*(iri(f"http://example.org/{name}") for name in (subject, predicate, object)))


def test_a_path_and_a_text_compile_to_the_same(tmp_path: Path) -> None:
    path = tmp_path / "family.jena"
    path.write_text(FAMILY)
    by_path, by_name = squall.compile(path), squall.compile(str(path))
    assert by_path == by_name
    assert list(rules(by_path)) == list(rules(squall.compile(FAMILY, lexer="jena")))


def test_a_long_text_on_one_line_is_no_path() -> None:
    text = " ".join(f"(?a <http://example.org/p{n}> ?b) -> (?b <http://example.org/q{n}> ?a)." for n in range(200))
    assert len(list(rules(squall.compile(text, lexer="jena")))) == 200


def test_several_programs_read_what_each_other_derive() -> None:
    plan = squall.plan(squall.compile(FAMILY, DOWN, lexer="jena"))
    outputs = squall.run(plan, [Event(1, (fact("ann", "parent", "bob"),))])
    assert {(out.fact, out.rule) for out in outputs} == {
        (fact("bob", "child", "ann"), "up"),
        (fact("ann", "parent", "bob"), "down"),
    }


def test_all_errors_of_all_programs_are_reported_at_once(tmp_path: Path) -> None:
    first, second = tmp_path / "first.jena", tmp_path / "second.jena"
    unknown = "[a: (?x rdf:type ?y) sume(?x ?y ?z) -> (?x rdf:type ?z)]"
    undeclared = "[b: (?x exx:p ?y) -> (?x rdf:type ?y)]"
    first.write_text(f"{unknown}\n{undeclared}\n")
    second.write_text("[c: (?x rdf:type ?y) sum(?y ?v ?w) -> (?x rdf:type ?w)]\n")
    with pytest.raises(Errors) as caught:
        squall.compile(first, second)
    results = [
        (error.origin.name, error.origin.line, error.stage) for error in single_errors(caught.value) if error.origin
    ]
    assert results == [(str(first), 1, "translation"), (str(first), 2, "syntax"), (str(second), 1, "translation")]


def test_a_rule_that_cannot_be_read_is_not_judged_further() -> None:
    with pytest.raises(squall.SquallError) as caught:
        squall.compile("[a: (?x exx:p ?y) -> (?x rdf:type ?nothing)]", lexer="jena")
    assert [error.stage for error in single_errors(caught.value)] == ["syntax"]


def test_a_missing_thing_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        squall.compile(tmp_path / "none.jena")
    with pytest.raises(UsageError, match="no program"):
        squall.compile()
    with pytest.raises(PluginError, match="ret"):
        squall.plan(squall.compile(FAMILY, lexer="jena"), planner="retee")


def test_a_generator_is_answered_event_by_event() -> None:
    numbers: list[int] = []

    def events() -> Iterator[Event]:
        for time in range(3):
            numbers.append(time)
            yield Event(time, (fact(f"p{time}", "parent", f"p{time + 1}"),))

    outputs = squall.run(squall.plan(squall.compile(FAMILY, lexer="jena")), events())
    assert next(outputs).time == 0
    assert numbers == [0]


def test_columns_are_processed_as_one_batch() -> None:
    events = [Event(time, (fact(f"p{time}", "parent", f"p{time + 1}"),)) for time in range(3)]
    plan = squall.plan(squall.compile(FAMILY, lexer="jena"))
    batches: list[Sequence[Event]] = []

    class Noted(IteratorJob):
        def run(self, inputs: Iterable[Sequence[Event]], static: Iterable[Event] = ()) -> Iterator[Output]:
            batches.extend(inputs)
            return super().run(batches, static)

    outputs = list(squall.run(plan, columns := Columns.of(events), builder=Noted))
    assert batches == [columns]
    assert outputs == list(squall.run(plan, events))


def test_a_late_event_needs_a_ledger() -> None:
    plan = squall.plan(squall.compile(FAMILY, lexer="jena"))
    with pytest.raises(BuilderError, match="comes after a later one"):
        list(squall.run(plan, [Event(2, (fact("a", "parent", "b"),)), Event(1, (fact("b", "parent", "c"),))]))


def test_importing_loads_no_engine_and_no_grammar() -> None:
    heavy = {
        "lark",
        "pyspark",
        "pyarrow",
        "pandas",
        "rdflib",
        "networkx",
        "apache_beam",
        "http.client",
        "urllib3",
        "ctypes",
    }
    code = f"import sys, squall; print(sorted({heavy} & set(sys.modules)))"
    root = Path(squall.__file__).parents[1]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert run.stdout.strip() == "[]"
