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
    """The system of a program: a subsystem for each query and operation, and for each rule that these need.

    A registered query is known by its name, others by that of the program, or of several by their position. Raises
    TranslatorError, or Errors with all of the program's errors.
    """
    notes = Notes()
    if not program.statements:
        notes.warn("there is no query and no update in the program", Origin(program.name, "", 1, 1))
    found: dict[System, None] = {}
    for place, statement in enumerate(program.statements, 1):
        found.update(dict.fromkeys(_translated(statement, _name(program, statement, place), notes)))
    raise_all(notes.errors)
    return System(
        PurePath(program.name).stem,
        subsystems=tuple(found),
        documents=_documents(program, found),
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
    made = updates.query(body, name, of_query(body, notes))
    said = told(statement)
    stream = name if said.is_stream else ""
    return [System(name, subsystems=(*_relations(state), *made), output=said.output, report=said.report, stream=stream)]


def _relations(state: State) -> Iterator[System]:
    return (rule for rules in state.relations.values() for rule in rules)


def _documents(program: q.Program, rules: Iterable[System]) -> tuple[Document, ...]:
    """The graphs that the data sets of queries name, but for those that updates write. Updates name those that are
    there."""
    written = {one.graph for rule in rules for one in rule.consequences if isinstance(one, Insert)}
    queries = (statement for statement in program.statements if not isinstance(statement.body, q.Operation))
    found: list[Document] = []
    for statement in queries:
        for clause in clauses(statement):
            if isinstance(clause, q.From | q.FromNamed) and clause.graph not in written:
                found.append(Document(iri_text(clause.graph), clause.origin))
    return tuple(dict.fromkeys(found))


def _streams(program: q.Program) -> tuple[Stream, ...]:
    """The streams over which queries are."""
    found: dict[Stream, None] = {}
    for statement in program.statements:
        for clause in clauses(statement):
            if isinstance(clause, q.FromStream | q.FromWindow):
                found[Stream(iri_text(clause.stream), clause.origin)] = None
        for one in q.stream_windows(statement.body):
            if isinstance(one.name, str):
                found[Stream(iri_text(one.name), one.origin)] = None
    return tuple(found)


def _name(program: q.Program, statement: q.Statement, place: int) -> str:
    registration = statement.registration
    if registration is not None:
        return iri_text(registration.name) if is_iri(registration.name) else registration.name
    kind = "update" if isinstance(statement.body, q.Operation) else "query"
    return kind if len(program.statements) == 1 else f"{kind}{place}"
