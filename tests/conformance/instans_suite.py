"""The suite ``instans``: SPARQL Update rules of event processing agents, each read, planned and run over its input.

INSTANS takes an input triple by triple (TriG: graph by graph), and acts on one solution at a time. Here a triple or a
graph is an event, a second after the one before it, and all solutions of an instant act together (docs/decisions/0011).
What INSTANS has written down as the output of a case is compared up to blank nodes and the spelling of numbers.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pyoxigraph
import pytest
from pyoxigraph import NamedNode, RdfFormat

import squall
from squall.contracts import Options, Output
from squall.errors import BuilderError, Errors, SquallError
from squall.lexers.sparql import SparqlLexer
from squall.model import System, profiles
from squall.rdf import Event, Solution, Term, Triple, is_literal, parts, term
from squall.testing import isomorphic
from squall.translators.sparql import translator
from tests.conformance import Case, LeftOut, Stages
from tests.conformance.programs import translated

BASE = "http://instans.org/"
PREFIXES = "".join(
    f"PREFIX {name}: <http://www.w3.org/{place}#>\n"
    for name, place in (("rdf", "1999/02/22-rdf-syntax-ns"), ("rdfs", "2000/01/rdf-schema"), ("xsd", "2001/XMLSchema"))
)
"""The prefixes that INSTANS declares implicitly."""

INPUTS = {
    "cep2sparql/queries/EPA3_local.rq": ["cep2sparql/data/CEP2SPARQL_SampleEvents.trig"],
    "cep2sparql/queries/EPA4.rq": ["cep2sparql/data/EPA3_SampleEvents.trig"],
    "cep2sparql/queries/EPA7.rq": ["cep2sparql/data/EPA5_SampleEvents.trig"],
    "couplecount/couplecount/queries/couplecount_basic_v1.rq": [
        f"couplecount/couplecount/input/{name}.ttl" for name in ("pois", "social", "stream1")
    ],
    "tests-input/CloseFriends/CF-Queries-default.rq": ["tests-input/CloseFriends/5actors100events.ttl"],
    "tests-input/construct-test.rq": ["tests-input/construct-test.trig"],
    "tests-input/events.rq": ["tests-input/init-sensor1.ttl", "tests-input/sensor1events20.trig"],
    "tests-input/p1.rq": ["tests-input/pdata.trig"],
    "tests-input/p2.rq": ["tests-input/pdata.trig"],
    "tests-input/update-rules.rq": ["tests-input/update-init.ttl", "tests-input/update-events2.trig"],
    "tests-input/update-rules2.rq": ["tests-input/update-init.ttl", "tests-input/update-events2.trig"],
    "windowlibrary/queries/aggr-dbg.rq": ["windowlibrary/input/ex_int_events.ttl"],
    "windowlibrary/queries/aggr-lib.rq": ["windowlibrary/config/ex_windef.ttl", "windowlibrary/input/ex_events.ttl"],
}
"""The input documents whose names differ from that of their program."""
FOLDERS = {
    "cep2sparql/queries": "cep2sparql/data/CEP2SPARQL_SampleEvents.trig",
    "reasoning/rules": "reasoning/rules/valid-rdfs.ttl",
    "tests-input": "tests-input/simple.ttl",
    "tests-input/removing-two-ways": "tests-input/removing-two-ways/test.ttl",
}
"""The input document for the other programs of a folder."""
COUNTED = {f"tests-input/removing-two-ways/test{number}.rq": count for number, count in ((1, 2), (2, 1), (3, 0))}
"""The number of solutions, according to the comment in the program."""
OTHERWISE = {
    "tests-input/issues/issue14.rq": "a string and a number are not comparable in INSTANS, and unequal here",
    "tests-input/removing-two-ways/test4.rq": "its comment counts on one solution acting before the next one",
}
"""The programs that have another meaning in INSTANS."""
ENDLESS = {
    "tests-input/issues/issue18-uuid.rq": "acts on what it has written itself, with a new UUID each time",
}
"""The programs that do not terminate, which is an error."""
STEPS = 200
"""The number of steps without an event after which a program counts as endless."""
OWN = "there is no function <http://instans.org/extensions/"


def cases(folder: Path) -> Iterator[Case]:
    """Yields one case for each program, by its path."""
    for path in sorted(folder.rglob("*.r[qu]")):
        yield Case(str(path.relative_to(folder)), partial(_run, folder, path))


def _run(folder: Path, path: Path, stages: Stages) -> None:
    name = str(path.relative_to(folder))
    plan = squall.plan(_compiled(path, name), stages.planner)
    events = list(_events(_inputs(folder, path)))
    job = squall.build(plan, stages.builder, Options(max_update_steps=STEPS))
    if name in ENDLESS:
        with pytest.raises(BuilderError, match="steps without an event"):
            list(job.run([[event] for event in events]))
        raise LeftOut(ENDLESS[name])
    outputs = list(job.run([[event] for event in events]))
    if name in OTHERWISE:
        raise LeftOut(OTHERWISE[name])
    correct = path.with_suffix(".correct")
    if correct.exists():
        _compare(outputs, correct)
    if name in COUNTED:
        solutions = [out for out in outputs if isinstance(out.fact, Solution)]
        assert len(solutions) == COUNTED[name], f"came: {solutions}"


def _compiled(path: Path, name: str) -> System:
    program = SparqlLexer(base=BASE)(PREFIXES + path.read_text(encoding="utf-8"), name)
    try:
        return profiles.apply_profile(translated(program, translator), "instans")
    except SquallError as error:
        reasons = [item.message for item in (error.errors if isinstance(error, Errors) else (error,))]
        if not all(reason.startswith(OWN) for reason in reasons):
            raise
        raise LeftOut(", ".join(dict.fromkeys(reasons))) from error


def _inputs(folder: Path, path: Path) -> list[Path]:
    name = str(path.relative_to(folder))
    if name in INPUTS:
        return [folder / document for document in INPUTS[name]]
    own = path.with_suffix(".ttl")
    if own.exists():
        return [own]
    document = FOLDERS.get(str(Path(name).parent))
    return [folder / document] if document else []


def _events(documents: Iterable[Path]) -> Iterator[Event]:
    """Yields an event for each triple of the default graph, or for each graph, one every second."""
    time = 0
    for path in documents:
        text = PREFIXES + path.read_text(encoding="utf-8")
        form = RdfFormat.TRIG if path.suffix == ".trig" else RdfFormat.TURTLE
        graph, facts = "", list[Triple]()
        for quad in pyoxigraph.parse(text, format=form, base_iri=BASE):
            fact = Triple(term(quad.subject), term(quad.predicate), term(quad.object))
            name = quad.graph_name.value if isinstance(quad.graph_name, NamedNode) else ""
            if facts and (name != graph or not name):
                time += 1000
                yield Event(time, tuple(facts), graph)
                facts = []
            graph = name
            facts.append(fact)
        if facts:
            time += 1000
            yield Event(time, tuple(facts), graph)


def _compare(outputs: Iterable[Output], correct: Path) -> None:
    """Compares the solutions with a table whose cells are text, blank nodes, or ``UNBOUND``."""
    names, *rows = csv.reader(correct.read_text(encoding="utf-8").splitlines())
    facts = [out.fact for out in outputs if isinstance(out.fact, Solution)]
    results = [
        tuple(_cell(dict(zip(item.names, item.values, strict=True)).get(name)) for name in names) for item in facts
    ]
    expected = [tuple(map(_text, row)) for row in rows]
    assert isomorphic(results, expected), f"came: {results}, not {expected}"


def _cell(value: Term | None) -> Term:
    if value is None:
        return _text("UNBOUND")
    if value[0] == "_":
        return value
    return _text(parts(value).lexical if is_literal(value) else value[1:-1])


def _text(cell: str) -> Term:
    """Returns a cell as something that compares like a term, with numbers compared by value."""
    if cell.startswith("_:"):
        return Term(cell)
    number = re.fullmatch(r"-?\d+(\.\d+)?", cell)
    return Term(f'"{float(cell) if number else cell}"')
