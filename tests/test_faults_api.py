"""Faults that users ran into in the Python API: each input as it was, and what is right.

Each docstring names the entry in the list of faults for which the test stands.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
import rdflib

import squall
import squall.checking
from squall import rdf
from squall.contracts import Interval, Options
from squall.errors import ArgumentError, BuilderError, UsageError
from squall.rdf import ALWAYS, Event, Triple, iri, literal
from squall.sparql_update import apply_update
from squall.sparql_update.datasets import Dataset
from squall.streams import DeadLetterFile, Sources

E = "http://example.org/"
WITHOUT_PYTEST = """
import sys
sys.modules["pytest"] = sys.modules["hypothesis"] = None
from squall import testing
from squall.errors import PluginError
testing.assert_outputs("(?x <http://example.org/p> ?y) -> (?y <http://example.org/q> ?x) .", "1 :a :p :b", "1 :b :q :a")
for name in ("strategies", "PlannerSuite"):
    try:
        getattr(testing, name)
    except PluginError as error:
        assert "squall[test]" in str(error)
"""
A, P, B = iri(E + "a"), iri(E + "p"), iri(E + "b")
FACT = Triple(A, P, B)
SYSTEM = squall.compile(f"[r: (?x <{E}p> ?y) -> (?y <{E}q> ?x)]", lexer="jena")
PLAN = squall.plan(SYSTEM)


def run(events: Any, **arguments: Any) -> list[Any]:
    return list(squall.run(PLAN, events, **arguments))


async def arriving() -> AsyncIterator[Event]:
    yield Event(1, (FACT,))


def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Calls a function with arguments that its types forbid."""
    return function(*arguments, **named)


WRONG_EVENTS: dict[str, tuple[Any, str]] = {
    "a fact without its tuple": ([Event(1, FACT)], r"Event\(1, \(triple,\)\)"),  # type: ignore[arg-type]
    "removed without a tuple": ([Event(1, (), "", FACT)], r"tuple"),  # type: ignore[arg-type]
    "a set of facts": ([Event(1, {FACT})], r"tuple\(facts\)"),  # type: ignore[arg-type]
    "a datetime": ([Event(datetime(2026, 1, 1), (FACT,))], r"timestamp\(\) \* 1000"),  # type: ignore[arg-type]
    "a float": ([Event(1.5, (FACT,))], "whole milliseconds"),  # type: ignore[arg-type]
    "a boolean": ([Event(True, (FACT,))], "not an integer"),
    "a time beyond 64 bits": ([Event(2**63, (FACT,))], "milliseconds|out of range"),
    "a plain tuple": ([Event(1, ((A, P, B),))], "squall.rdf.triple"),  # type: ignore[arg-type]
    "texts that are no terms": ([Event(1, (Triple(E + "a", P, B),))], "squall.rdf.iri"),  # type: ignore[arg-type]
    "a number as an object": ([Event(1, (Triple(A, P, 5),))], "squall.rdf.literal"),  # type: ignore[arg-type]
    "an empty text": ([Event(1, (Triple(A, P, ""),))], "squall.rdf.iri"),  # type: ignore[arg-type]
    "a stream in brackets": ([Event(1, (FACT,), f"<{E}s>")], "leave the angle brackets out"),
    "a graph without brackets": ([Event(1, (FACT,), "", (), E + "g")], "squall.rdf.iri"),
    "a literal as a graph": ([Event(1, (FACT,), "", (), literal("g"))], "named graph"),
    "triples": ([FACT], "squall.rdf.Event"),
    "an event that is not in a list": (Event(1, (FACT,)), "put it into a list"),
    "one triple": (FACT, "squall.rdf.Event"),
    "a graph": (rdflib.Graph(), "squall.rdf.events"),
    "a store": (pyoxigraph.Store(), "squall.rdf.events"),
    "a path": ("data.ttl", "open_source"),
    "sources": (Sources([]), r"squall.build\(plan\).run"),
    "an asynchronous generator": (arriving(), r"squall\.arun"),
    "nothing": (None, "squall.rdf.Event"),
}


@pytest.mark.fault("P2", "P4")
@pytest.mark.parametrize("case", WRONG_EVENTS)
@pytest.mark.parametrize("is_static", [False, True])
def test_wrong_events_are_refused_with_a_remedy(case: str, is_static: bool) -> None:
    """P2, P4."""
    events, hint = WRONG_EVENTS[case]
    with pytest.raises(ArgumentError, match=hint):
        run([], static=events) if is_static else run(events)


@pytest.mark.fault("P2")
@pytest.mark.parametrize("case", [case for case in WRONG_EVENTS if isinstance(WRONG_EVENTS[case][0], list)])
def test_wrong_events_of_a_generator_are_refused(case: str) -> None:
    """P2."""
    events, hint = WRONG_EVENTS[case]
    with pytest.raises(ArgumentError, match=hint):
        run(event for event in events)


@pytest.mark.fault("P4")
def test_static_data_have_no_time() -> None:
    """P4."""
    with pytest.raises(ArgumentError, match=r"squall\.ALWAYS"):
        run([], static=[Event(1000, (FACT,))])


@pytest.mark.fault("P4")
@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: call(squall.run, SYSTEM, []), r"squall.plan\(system\)"),
        (lambda: call(squall.build, "family.jena"), "compile and plan"),
        (lambda: call(squall.plan, "family.jena"), "squall.compile"),
        (lambda: call(squall.plan, PLAN), "squall.compile"),
        (lambda: call(squall.plan, SYSTEM, 5), "squall list planners"),
        (lambda: call(squall.build, PLAN, 5), "squall list builders"),
        (lambda: call(squall.build, PLAN, options={}), r"squall.Options"),
        (lambda: call(squall.build, PLAN, options=call(Options, conf={"a": "b"})), "conf="),
        (lambda: call(squall.build, PLAN, options=call(Options, checkpoint_interval=5)), "Interval"),
        (lambda: call(squall.build, PLAN, options=call(Options, now=1.5)), "whole milliseconds"),
        (lambda: call(squall.compile, ["a.jena"]), "one by one"),
        (lambda: call(squall.compile, rules="rdfs"), r'rules=\["rdfs"\]'),
        (lambda: call(squall.compile, rules=5), "rules="),
        (lambda: call(squall.compile, rules=[None]), "squall list rule-sets"),
        (lambda: call(squall.compile, rules=iter(["rdfs"])), "rules="),
        (lambda: call(squall.compile, rules=["rdfs"], window=5), "RANGE 10s"),
        (lambda: call(squall.compile, rules=["rdfs"], windows="RANGE 5s"), "windows="),
        (lambda: call(squall.compile, rules=["rdfs"], windows={f"<{E}s>": "RANGE 5s"}), "angle brackets"),
        (lambda: call(squall.compile, rules=["rdfs"], windows={E: 5}), "RANGE 10s"),
        (lambda: call(squall.compile, rules=["rdfs"], output=5), "istream"),
        (lambda: call(squall.compile, rules=["rdfs"], report=5), "periodic"),
        (lambda: call(squall.compile, rules=["rdfs"], profile=None), "squall list profiles"),
        (lambda: call(squall.compile, rules=["rdfs"], documents="a"), "leave it out"),
        (lambda: call(squall.checking.lint, None), "one by one"),
        (lambda: call(Sources, None), "open_source"),
        (lambda: call(Sources, "a.nt"), "open_source"),
        (lambda: call(Sources, ["a.nt"]), "open_source"),
        (lambda: list(call(squall.build(PLAN).run, [Event(1, (FACT,))])), r"job.run\(\[events\]\)"),
        (lambda: call(apply_update, rdflib.Graph(), ""), "datasets"),
        (lambda: call(apply_update, Dataset(), None), "pathlib.Path"),
        (lambda: call(apply_update, Dataset(), "", now=1.5), "whole milliseconds"),
        (lambda: call(rdf.Columns.of, None), r"squall.rdf.Event\("),
        (lambda: call(rdf.Columns.of, [FACT]), r"squall.rdf.Event\("),
        (lambda: call(rdf.to_rdflib, None), "bound"),
    ],
)
def test_wrong_arguments_of_the_stages_are_refused_with_a_remedy(wrong: Callable[[], object], hint: str) -> None:
    """P4."""
    with pytest.raises(ArgumentError, match=hint):
        wrong()


@pytest.mark.fault("P4")
def test_a_job_that_has_run_does_not_end_silently() -> None:
    """P4, its kind: the second run had no outputs."""
    job = squall.build(PLAN)
    assert list(job.run([[Event(1, (FACT,))]]))
    with pytest.raises(BuilderError, match=r"squall.build\(plan\)"):
        list(job.run([[Event(1, (FACT,))]]))


@pytest.mark.fault("P3", "P4")
@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: iri("hello world"), "hello%20world"),
        (lambda: iri(f"<{E}b>"), "leave the angle brackets out"),
        (lambda: iri("a\ud800"), "not an IRI"),
        (lambda: call(iri, None), "iri"),
        (lambda: call(literal, 5), r'literal\("5", XSD \+ "integer"\)'),
        (lambda: call(literal, True), 'XSD . "boolean"'),
        (lambda: call(literal, None), "literal"),
        (lambda: literal("5", f"<{E}int>"), "leave the angle brackets out"),
        (lambda: literal("a", language="en us"), "de-AT"),
        (lambda: rdf.blank("_:a"), "leave `_:` out"),
        (lambda: rdf.blank("a b"), "letters"),
        (lambda: rdf.parts(A), "is_literal"),
        (lambda: call(rdf.parts, 5), "is_literal"),
        (lambda: rdf.term(E + "a"), "squall.rdf.iri"),
        (lambda: rdf.term("<\ud800>"), "squall.rdf.iri"),
        (lambda: rdf.term(5), "squall.rdf.iri"),
        (lambda: rdf.term(rdflib.Graph()), "squall.rdf.iri"),
        (lambda: rdf.triple(E + "a", P, B), "squall.rdf.iri"),
        (lambda: rdf.events([], time=call(lambda: 1.5)), "whole milliseconds"),
        (lambda: rdf.events("a.ttl"), "rdflib"),
        (lambda: list(rdf.events([5])), "a triple, or a quad"),
        (lambda: list(rdf.events([(A, P)])), "a triple, or a quad"),
    ],
)
def test_wrong_terms_are_refused_with_a_remedy(wrong: Callable[[], object], hint: str) -> None:
    """P3, P4. It is a ValueError as well, as Python has it."""
    with pytest.raises(ArgumentError, match=hint) as caught:
        wrong()
    assert isinstance(caught.value, UsageError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.fault("P3")
def test_labels_of_all_letters_are_blank_nodes() -> None:
    """P3: what N-Triples has as a label is one."""
    assert rdf.blank("é.b-1") == "_:é.b-1"


@pytest.mark.fault("P5")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:rdflib")
def test_a_dataset_of_rdflib_is_events_in_its_graphs() -> None:
    """P5."""
    dataset = rdflib.Dataset()
    a, p = rdflib.URIRef(A[1:-1]), rdflib.URIRef(P[1:-1])
    dataset.add((a, p, rdflib.URIRef(B[1:-1])))
    dataset.graph(rdflib.URIRef(E + "g")).add((a, p, rdflib.URIRef(B[1:-1])))
    expected = {Event(ALWAYS, (FACT,)), Event(ALWAYS, (FACT,), graph=iri(E + "g"))}
    assert set(rdf.events(dataset)) == set(rdf.events(dataset.quads())) == expected


@pytest.mark.fault("P5")
def test_a_store_of_pyoxigraph_is_events_in_its_graphs() -> None:
    """P5."""
    store = pyoxigraph.Store()
    a, p, b = (pyoxigraph.NamedNode(term[1:-1]) for term in FACT)
    store.extend([pyoxigraph.Quad(a, p, b), pyoxigraph.Quad(a, p, b, pyoxigraph.NamedNode(E + "g"))])
    expected = {Event(5, (FACT,), "s"), Event(5, (FACT,), "s", (), iri(E + "g"))}
    assert set(rdf.events(store, 5, "s")) == set(rdf.events(pyoxigraph.Dataset(store), 5, "s")) == expected
    assert list(rdf.events([pyoxigraph.Triple(a, p, b), rdf.Quad(*FACT, iri(E + "g"))], 5, "s")) == [
        Event(5, (FACT,), "s"), Event(5, (FACT,), "s", (), iri(E + "g")),
    ]  # fmt: skip


@pytest.mark.fault("P13")
def test_paths_may_be_texts(tmp_path: Path) -> None:
    """P13."""
    ledger = DeadLetterFile(str(tmp_path / "lost.ndjson"))
    ledger.close()
    assert ledger.path == tmp_path / "lost.ndjson"
    options = call(Options, checkpoint=str(tmp_path / "state"), checkpoint_interval=Interval(statements=1))
    assert options.checkpoint == tmp_path / "state"
    assert len(run([Event(1, (FACT,))], options=options)) == 1
    assert (tmp_path / "state").is_dir()


@pytest.mark.fault("P6")
def test_streams_written_by_hand_need_neither_pytest_nor_hypothesis() -> None:
    """P6."""
    run = subprocess.run([sys.executable, "-c", WITHOUT_PYTEST], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
