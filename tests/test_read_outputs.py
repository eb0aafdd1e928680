"""What the format ndjson writes is read back by ``map=outputs``: facts of all kinds, with their times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import strategies as st

import squall
from squall.contracts import Output
from squall.errors import UsageError
from squall.rdf import ALWAYS, Atom, Fact, Quad, Term, Triple, iri, literal
from squall.streams import DeadLetterFile, Sources, open_sink, open_source
from tests.laws import examples, hold

IRIS = st.sampled_from(["urn:a", "http://example.org/é"]).map(iri)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
LITERALS = TEXTS.map(literal) | st.builds(literal, TEXTS, language=st.sampled_from(["en", "de-AT"])) | st.builds(
    literal, TEXTS, st.sampled_from(["urn:t", "http://www.w3.org/2001/XMLSchema#integer"])
)  # fmt: skip
TERMS = IRIS | LITERALS
TRIPLES = st.builds(Triple, IRIS, IRIS, TERMS)
FACTS: st.SearchStrategy[Fact | Quad] = (
    TRIPLES
    | st.builds(Quad, IRIS, IRIS, TERMS, IRIS)
    | st.builds(Atom, IRIS, st.lists(TERMS, max_size=5).map(lambda terms: tuple(terms)))
)
TIMED = st.tuples(st.sampled_from([ALWAYS, -5, 0, 1_700_000_000_000]), FACTS)


def written(folder: Path, facts: Sequence[tuple[int, Fact | Quad]]) -> Path:
    path = folder / "out.ndjson"
    sink = open_sink(str(path))
    sink.start()
    for time, fact in facts:
        sink.write(Output(fact, time, "rule"))
    sink.close()
    return path


def read(address: object) -> list[tuple[int, Fact | Quad]]:
    events = [event for batch in open_source(str(address)).batches() for event in batch]
    return [
        (event.time, Quad(*fact, Term(event.graph)) if event.graph and isinstance(fact, Triple) else fact)
        for event in events
        for fact in event.facts
    ]


@examples(100)
def test_what_is_written_is_read(many: int) -> None:
    def law(facts: list[tuple[int, Fact | Quad]]) -> None:
        with TemporaryDirectory() as folder:
            path = written(Path(folder), facts)
            assert read(f"{path}?map=outputs") == facts

    hold(law, many, facts=st.lists(TIMED, max_size=6))


def test_blank_nodes_are_those_of_the_document(tmp_path: Path) -> None:
    node = Term("_:b0")
    path = written(tmp_path, [(1, Triple(node, iri("urn:p"), node)), (2, Atom(iri("urn:r"), (node,)))])
    (_, triple), (_, atom) = read(f"{path}?map=outputs")
    assert isinstance(triple, Triple)
    assert isinstance(atom, Atom)
    assert {triple.subject, triple.object} == {*atom.arguments} != {node}


P = {"type": "uri", "value": "urn:p"}
TEXT = {"type": "literal", "value": "x"}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ([1], "it is no output, which is an object with a `time`"),
        ({}, "its `time` is neither an integer (ms) nor null"),
        ({"time": True}, "its `time` is neither an integer (ms) nor null"),
        ({"time": 1, "solution": {}}, "it has no fact: neither a `subject` nor a `relation`"),
        ({"time": 1, "change": "delete", "subject": P}, "it says that a fact ends, which lines of `ndjson` cannot: "
         "read a log, `rdfp`"),
        ({"time": 1, "subject": TEXT, "predicate": P, "object": P}, 'its `subject` is `"x"`, which cannot stand there'),
        ({"time": 1, "subject": P, "predicate": P}, "its `object` is no term, which is an object with `type` and "
         "`value`"),
        ({"time": 1, "subject": P, "predicate": P, "object": {"type": "uri", "value": "a b"}},
         "its `object`: `a b` is not an IRI: it has the character ' '"),
        ({"time": 1, "relation": P, "arguments": {}}, "its `arguments` are no array"),
        ({"time": 1, "relation": P, "arguments": [P, 5]}, "its `arguments[1]` is no term, which is an object with "
         "`type` and `value`"),
    ],
    ids=repr,
)  # fmt: skip
def test_another_line_is_a_dead_letter(tmp_path: Path, record: Any, reason: str) -> None:
    path = tmp_path / "in.ndjson"
    good = {"time": 1, "subject": P, "predicate": P, "object": TEXT}
    path.write_text("".join(f"{json.dumps(value)}\n" for value in (good, record, good)))
    ledger = DeadLetterFile(tmp_path / "lost")
    events = [event for batch in open_source(f"{path}?map=outputs", ledger).batches() for event in batch]
    ledger.close()
    (lost,) = map(json.loads, (tmp_path / "lost").read_text().splitlines())
    assert (lost["line"], lost["reason"]) == (2, reason)
    assert sum(len(event.facts) for event in events) == 2


@pytest.mark.parametrize("name", ["x.csv", "x.json", "x.ndjson?format=json&"])
def test_only_lines_of_json_are_read_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / name.partition("?")[0]
    path.touch()
    options = name.partition("?")[2]
    with pytest.raises(UsageError, match="is for lines that squall has written as `ndjson`") as caught:
        open_source(f"{path}?{options}map=outputs")
    assert "map=./outputs" in str(caught.value.hint)


PROGRAM = "Document(Group(Forall ?x ?y (<urn:r>(?y ?x 5) :- <urn:q>(?x ?y))))"


BUILDERS = [
    "iterator",
    pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.more]),
    pytest.param("beam", marks=[pytest.mark.beam, pytest.mark.more]),
]


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_program_reads_the_atoms_of_another_one(tmp_path: Path, builder: str) -> None:
    path = written(tmp_path, [(1, Atom(iri("urn:q"), (iri("urn:a"), literal("b"))))])
    plan = squall.plan(squall.compile(PROGRAM, lexer="rifps"))
    outputs = list(squall.build(plan, builder).run(Sources([open_source(f"{path}?map=outputs")])))
    five = literal("5", "http://www.w3.org/2001/XMLSchema#integer")
    assert [(out.time, out.fact) for out in outputs] == [(1, Atom(iri("urn:r"), (literal("b"), iri("urn:a"), five)))]
