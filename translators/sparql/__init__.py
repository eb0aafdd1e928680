"""SPARQL 1.1, C-SPARQL, RSP-QL, CQELS-QL and SPARQLStream to a Translated Production System.

Source: SPARQL 1.1 Query, section 18; SPARQL 1.1 Update, section 3; for streams see `datasets` and `outputs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from squall.errors import Origin, raise_all
from squall.lexers.sparql import tree as q
from squall.model import Document, Insert, Stream, System
from squall.rdf import iri_text, is_iri
from squall.translators.sparql.datasets import clauses, of_query
from squall.translators.sparql.outputs import told
from squall.translators.sparql.state import Notes, State
from squall.translators.sparql.updates import Updates


def translator(program: q.Program) -> System:
    """Translates a SPARQL program to a system: a subsystem for each query, operation and helper rule.

    A registered query is known by its name, others by that of the program, or of several by their position. Raises
    TranslatorError, or Errors with all of the program's errors.
    """
    notes = Notes()
    if not program.statements:
        notes.warn("there is no query and no update in the program", Origin(program.name, "", 1, 1))
    systems: dict[System, None] = {}
    for place, statement in enumerate(program.statements, 1):
        systems.update(dict.fromkeys(_translated(statement, _name(program, statement, place), notes)))
    raise_all(notes.errors)
    return System(
        PurePath(program.name).stem,
        subsystems=tuple(systems),
        documents=_documents(program, systems),
        streams=_streams(program),
        warnings=tuple(notes.warnings),
    )


def _translated(statement: q.Statement, name: str, notes: Notes) -> list[System]:
    """The rules of a statement; those of a query as one system, which has an answer of its own."""
    state = State(notes, str(statement), statement.base)
    updates = Updates(state)
    body = statement.body
    if isinstance(body, q.Operation):
        rules = updates.operation(body, name)
        return [*_relations(state), *rules]
    systems = updates.query(body, name, of_query(body, notes))
    spec = told(statement)
    stream = name if spec.is_stream else ""
    return [
        System(name, subsystems=(*_relations(state), *systems), output=spec.output, report=spec.report, stream=stream)
    ]


def _relations(state: State) -> Iterator[System]:
    return (rule for rules in state.relations.values() for rule in rules)


def _documents(program: q.Program, rules: Iterable[System]) -> tuple[Document, ...]:
    """The graphs that the data sets of queries name, but for those that updates write. Updates name those that are
    there."""
    written_graphs = {
        consequence.graph for rule in rules for consequence in rule.consequences if isinstance(consequence, Insert)
    }
    queries = (statement for statement in program.statements if not isinstance(statement.body, q.Operation))
    documents: list[Document] = []
    for statement in queries:
        for clause in clauses(statement):
            if isinstance(clause, q.From | q.FromNamed) and clause.graph not in written_graphs:
                documents.append(Document(iri_text(clause.graph), clause.origin))
    return tuple(dict.fromkeys(documents))


def _streams(program: q.Program) -> tuple[Stream, ...]:
    """The streams over which queries are."""
    streams: dict[Stream, None] = {}
    for statement in program.statements:
        for clause in clauses(statement):
            if isinstance(clause, q.FromStream | q.FromWindow):
                streams[Stream(iri_text(clause.stream), clause.origin)] = None
        for stream_window in q.stream_windows(statement.body):
            if isinstance(stream_window.name, str):
                streams[Stream(iri_text(stream_window.name), stream_window.origin)] = None
    return tuple(streams)


def _name(program: q.Program, statement: q.Statement, place: int) -> str:
    registration = statement.registration
    if registration is not None:
        return iri_text(registration.name) if is_iri(registration.name) else registration.name
    kind = "update" if isinstance(statement.body, q.Operation) else "query"
    return kind if len(program.statements) == 1 else f"{kind}{place}"
