"""Answers of queries in formats of RDF: result sets, read back by the library rdflib."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib.plugins.sparql.results.rdfresults import RDFResult

from squall.contracts import Output
from squall.rdf import ALWAYS, Boolean, Evaluated, Quad, Solution, Term, Triple, iri, literal
from squall.streams import Sources, open_sink, open_source
from squall.streams.formats.evaluations import Declarations, evaluation_iri
from squall.streams.formats.output_formats import BINARY, FACTS, MESSAGES
from tests.conftest import Squall
from tests.laws import examples_of
from tests.test_live_http import serving, status

RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
XSD = "http://www.w3.org/2001/XMLSchema#"
FORMATS = sorted(FACTS | {*MESSAGES, *BINARY})
TIMED = ("ntt", "nqt", "jelly-messages", "trig-messages")
"""The formats whose statements have times; that of a message of TriG is a statement."""
TERMS = st.sampled_from(
    [iri("urn:a"), iri("urn:b"), literal('a "b"\n\tc'), literal("x", language="en"), literal("5", f"{XSD}integer")]
)
SOLUTIONS = st.lists(st.tuples(st.none() | TERMS, st.none() | TERMS), max_size=4)


def write(path: Path, format: str, outputs: Sequence[Output], ordered: Sequence[str] = ()) -> bytes:
    with closing(open_sink(f"{path}?format={format}")) as sink:
        sink.declare(Declarations(ordered=ordered))  # type: ignore[attr-defined]
        sink.start()
        for output in outputs:
            sink.write(output)
    return path.read_bytes()


def result_at(path: Path, format: str, time: int, query: str = "q") -> RDFResult | None:
    """Returns the result set of an evaluation in a file, as rdflib reads it; None if it has none."""
    if format.startswith("jelly"):
        pytest.importorskip("pyjelly")
    option = "" if format in TIMED[:3] else "&time=0"
    events = [event for batch in Sources([open_source(f"{path}?format={format}{option}")]) for event in batch]
    facts = [fact for event in events for fact in event.facts if isinstance(fact, Triple)]
    reachable = {str(evaluation_iri(time, query))}
    while more := {fact[2] for fact in facts if fact[0] in reachable and fact[2].startswith("_:")} - reachable:
        reachable |= more
    graph = rdflib.Graph()
    lines = (f"{fact}\n" for fact in facts if fact[0] in reachable)
    graph.parse(data="".join(lines), format="nt")
    return RDFResult(graph) if graph else None


def node(term: Term) -> rdflib.term.Node:
    graph = rdflib.Graph()
    graph.parse(data=f"<urn:s> <urn:p> {term} .", format="nt")
    return next(iter(graph.objects()))


def rows(solutions: Sequence[tuple[Term | None, ...]]) -> Counter[frozenset[tuple[str, object]]]:
    return Counter(
        frozenset((name, node(value)) for name, value in zip("xy", solution, strict=True) if value is not None)
        for solution in solutions
    )


def answers(time: int, solutions: Sequence[tuple[Term | None, ...]], query: str = "q") -> list[Output]:
    return [Output(Solution(("x", "y"), solution), time, query) for solution in solutions]


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=examples_of(20), deadline=None)
@given(first=SOLUTIONS, second=SOLUTIONS, truth=st.booleans(), marked=st.booleans())
def test_a_result_set_has_the_solutions(
    format: str,
    first: Sequence[tuple[Term | None, ...]],
    second: Sequence[tuple[Term | None, ...]],
    truth: bool,
    marked: bool,
) -> None:
    """With marks, an empty answer has a result set; without, there is none."""
    fact = Output(Triple(iri("urn:s"), iri("urn:p"), iri("urn:o")), 5, "rule")
    marks = [[Output(Evaluated(("x", "y")), time, "q")] if marked else [] for time in (5, 7)]
    boolean_output = Output(Boolean(truth), 5, "ask")
    outputs = [*answers(5, first), fact, *marks[0], boolean_output, *answers(7, second), *marks[1]]
    with TemporaryDirectory() as folder:
        path = Path(folder, "out")
        write(path, format, outputs)
        for time, solutions in ((5, first), (7, second)):
            result = result_at(path, format, time)
            if not solutions and not marked:
                assert result is None
                continue
            assert result is not None
            assert sorted(map(str, result.vars or ())) == ["x", "y"]
            actual = Counter(frozenset((str(name), row[name]) for name in row) for row in result.bindings)
            assert actual == rows(solutions)
        boolean = result_at(path, format, 5, "ask")
        assert boolean is not None
        assert boolean.askAnswer is truth


@settings(max_examples=examples_of(60), deadline=None)
@given(data=st.data(), solutions=SOLUTIONS)
def test_equal_answers_have_equal_result_sets(data: st.DataObject, solutions: list[tuple[Term | None, ...]]) -> None:
    again = data.draw(st.permutations(solutions))
    with TemporaryDirectory() as folder:
        texts = {write(Path(folder, "out"), "nt", answers(5, order)) for order in (solutions, again)}
    assert len(texts) == 1


def test_solutions_of_an_ordered_query_are_numbered(tmp_path: Path) -> None:
    solutions = [(iri("urn:b"), None), (iri("urn:a"), None), (iri("urn:b"), None)]
    outputs = answers(5, solutions) + answers(5, solutions, "other")
    graph = rdflib.Graph().parse(data=write(tmp_path / "out", "nt", outputs, ordered=["q"]), format="nt")
    binding, value, index = (rdflib.URIRef(f"{RS}{name}") for name in ("binding", "value", "index"))
    places = {
        int(str(number)): str(graph.value(graph.value(solution, binding), value))
        for solution, number in graph.subject_objects(index)
    }
    assert places == {1: "urn:b", 2: "urn:a", 3: "urn:b"}


@pytest.mark.parametrize("format", ["nt", "trig", "nq-messages"])
def test_a_result_set_has_its_time(format: str, tmp_path: Path) -> None:
    outputs = [*answers(ALWAYS, [(iri("urn:a"), None)]), *answers(1500, [(iri("urn:a"), None)])]
    text = write(tmp_path / "out", format, outputs).decode()
    generated = "<http://www.w3.org/ns/prov#generatedAtTime>"
    times = {line for line in text.split("\n") if generated in line}
    assert times == {f'{evaluation_iri(1500, "q")} {generated} "1970-01-01T00:00:01.5Z"^^<{XSD}dateTime> .'}


@pytest.mark.parametrize("format", sorted(FACTS - {"jelly"}))
def test_what_is_buffered_is_part_of_a_checkpoint(format: str, tmp_path: Path) -> None:
    quad = Output(Quad(iri("urn:s"), iri("urn:p"), iri("urn:o"), iri("urn:g")), 7, "rule")
    outputs = [*answers(5, [(iri("urn:a"), None), (None, iri("urn:b"))]), *answers(7, [(iri("urn:a"), None)])]
    outputs += [quad] if format in ("nq", "nqt", "trig") else [Output(Triple(*quad.fact[:3]), 7, "rule")]
    path = tmp_path / "out"
    whole = write(path, format, outputs)
    for cut in range(len(outputs) + 1):
        first, second = (open_sink(f"{path}?format={format}") for _ in range(2))
        with closing(first):
            first.start()
            for output in outputs[:cut]:
                first.write(output)
            state = json.loads(json.dumps(first.snapshot()))  # type: ignore[attr-defined]
        with closing(second):
            second.start(resume=True)
            second.restore(state)  # type: ignore[attr-defined]
            for output in outputs[cut:]:
                second.write(output)
        assert path.read_bytes() == whole


@pytest.mark.parametrize("format", ["nt", "nq-messages"])
def test_a_result_set_is_one_message(format: str) -> None:
    """Blank nodes are those of a message, so that a result set must not be cut."""
    with serving(*[status(200)] * 3) as server:
        with closing(open_sink(server.at(f"in?format={format}"))) as sink:
            sink.start()
            outputs = answers(5, [(iri("urn:a"), None), (None, iri("urn:b"))])
            for output in [*outputs, Output(Triple(iri("urn:s"), iri("urn:p"), iri("urn:o")), 6, "rule")]:
                sink.write(output)
        bodies = [body.decode() for _, _, body in server.asked]
    assert [body.count(f"<{RS}solution>") for body in bodies] == [2, 0]
    result = RDFResult(rdflib.Graph().parse(data=bodies[0], format="nt"))
    assert len(result.bindings) == 2


def test_queries_are_written_as_rdf_by_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squall: Squall
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.ntt").write_text('1000 <urn:a> <urn:p> "2" .\n1000 <urn:b> <urn:p> "1" .\n2000 <urn:c> <urn:p> "0" .\n')
    Path("q.rq").write_text("SELECT ?x ?y { ?x <urn:p> ?y } ORDER BY ?y")
    assert squall("run", "q.rq", "--source", "in.ntt", "--sink", "out.trig")[0] == 0
    result = result_at(Path("out.trig"), "trig", 2000)
    assert result is not None
    assert Counter(frozenset((str(name), row[name]) for name in row) for row in result.bindings) == rows(
        [(iri(f"urn:{name}"), literal(value)) for name, value in (("a", "2"), ("b", "1"), ("c", "0"))]
    )
    assert Path("out.trig").read_text().count(f"<{RS}index>") == 5
    assert squall("run", "q.rq", "--source", "in.ntt", "--output", "istream", "--sink", "new.trig")[0] == 0
    assert f"<{RS}index>" not in Path("new.trig").read_text(), "what is new has no order"
    for name in ("out.rdfp", "out.ru"):
        code, _, err = squall("run", "q.rq", "--source", "in.ntt", "--output", "istream", "--sink", name)
        assert (code, "the answers of `q` are no triples" in err) == (2, True)
