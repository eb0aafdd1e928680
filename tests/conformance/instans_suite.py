"""The suite ``instans``: SPARQL Update rules of event processing agents, each read, planned and run over its input.

INSTANS takes an input triple by triple (TriG: graph by graph), and acts on one solution at a time. Here a triple or a
graph is an event, a second after the one before it, and all solutions of an instant act together (docs/decisions/0011).
What INSTANS has written down as the output of a case is compared up to blank nodes and the spelling of numbers: a table
(``.correct``), or the quads of a recorded run, in which each input block was removed after its rules had run. A program
without a recorded output has to answer what our oracle answers (`squall.testing.oracle`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import pyoxigraph
from pyoxigraph import NamedNode, RdfFormat

import squall
from squall.contracts import Options, Output
from squall.errors import BuilderError, Errors, SquallError
from squall.lexers.sparql import SparqlLexer
from squall.model import System, profiles
from squall.plan.seeds import FIXED_SEED
from squall.rdf import Event, Quad, Solution, Term, Triple, is_literal, parts, term
from squall.testing import assert_as_oracle, isomorphic
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
RECORDS = Path("cep2sparql", "sample-output")
"""The recorded outputs of runs, several in a file."""
RECORD = re.compile(r"^(EPA\d+) \([^)]*\)( local)?.*\n\n?At .*Parameter: (\S+)\n(?s:(.*?))^At \S+: Done", re.MULTILINE)
"""A recorded run: the name of its program, its input, and its output in TriG."""
KEEPS_INPUT = 'not work with an automatic "remove"-policy'
"""What a program says that removes its input itself."""
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
MAX_EVENTS = 50
"""The number of events over which programs are compared with the oracle."""
STEPS = 200
"""The number of steps without an event after which a program counts as endless."""
OWN = "there is no function <http://instans.org/extensions/"


def cases(folder: Path) -> Iterator[Case]:
    """Yields one case for each program, by its path."""
    for path in sorted(folder.rglob("*.r[qu]")):
        yield Case(str(path.relative_to(folder)), partial(_run, folder, path))


def _run(folder: Path, path: Path, stages: Stages) -> None:
    name = str(path.relative_to(folder))
    record = _records(folder).get(path.stem)
    if record is not None:
        _run_as_recorded(path, name, record, stages)
        return
    system = _compiled(path, name)
    events = list(_events(_inputs(folder, path)))
    is_compared = path.with_suffix(".correct").exists() or name in COUNTED
    events = events if is_compared else events[:MAX_EVENTS]
    try:
        outputs = _outputs(system, events, stages)
    except BuilderError as error:
        if name in ENDLESS and "steps without an event" in error.message:
            raise LeftOut(ENDLESS[name]) from error
        raise
    assert name not in ENDLESS, "it ends"
    if name in OTHERWISE:
        raise LeftOut(OTHERWISE[name])
    correct = path.with_suffix(".correct")
    if correct.exists():
        _compare(outputs, correct)
    elif name in COUNTED:
        solutions = [out for out in outputs if isinstance(out.fact, Solution)]
        assert len(solutions) == COUNTED[name], f"came: {solutions}"
    else:
        assert_as_oracle(system, outputs, events)


def _outputs(system: System, events: Sequence[Event], stages: Stages) -> list[Output]:
    job = squall.build(
        squall.plan(system, stages.planner), stages.builder, Options(max_update_steps=STEPS, seed=FIXED_SEED)
    )
    return list(job.run([[event] for event in events]))


class Record(NamedTuple):
    """A recorded run: the document that was its input, and the quads that came out."""

    document: Path
    quads: list[tuple[Term, ...]]


@cache
def _records(folder: Path) -> dict[str, Record]:
    """Returns the recorded runs by the names of their programs."""
    records: dict[str, Record] = {}
    for path in (folder / RECORDS).glob("*.txt"):
        for program, variant, document, output in RECORD.findall(path.read_text(encoding="utf-8")):
            quads = pyoxigraph.parse(output, format=RdfFormat.TRIG, base_iri=BASE)
            rows = [tuple(map(term, (quad.subject, quad.predicate, quad.object, quad.graph_name))) for quad in quads]
            place = path.parent.parent / "data" / Path(document).name
            records[program + variant.replace(" ", "_")] = Record(place, rows)
    return records


def _run_as_recorded(path: Path, name: str, record: Record, stages: Stages) -> None:
    """Runs a program over the input of a recorded run, block by block, and compares what it constructs."""
    keeps_input = KEEPS_INPUT in path.read_text(encoding="utf-8")
    events: list[Event] = []
    for event in _events([record.document]):
        events.append(event)
        if not keeps_input:
            events.append(Event(event.time + 500, (), event.stream, removed=event.facts))
    outputs = _outputs(_compiled(path, name, removals=True), events, stages)
    quads = {(*out.fact[:3], Term(out.fact.graph)) for out in outputs if isinstance(out.fact, Quad)}
    assert isomorphic(quads, set(record.quads)), f"{len(quads)} quads, not {len(set(record.quads))}"


def _compiled(path: Path, name: str, removals: bool = False) -> System:
    program = SparqlLexer(base=BASE)(PREFIXES + path.read_text(encoding="utf-8"), name)
    try:
        system = translated(program, partial(translator, profile="instans"))
        return profiles.apply_profile(system, "instans", removals=removals)
    except SquallError as error:
        reasons = [item.message for item in (error.errors if isinstance(error, Errors) else (error,))]
        if not all(reason.startswith(OWN) for reason in reasons):
            raise
        raise LeftOut(", ".join(dict.fromkeys(reasons))) from error


def _inputs(folder: Path, path: Path) -> list[Path]:
    name = str(path.relative_to(folder))
    if name in INPUTS:
        return [folder / document for document in INPUTS[name]]
    own_documents = [own for ending in (".ttl", ".trig") if (own := path.with_suffix(ending)).exists()]
    if own_documents:
        return own_documents
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
