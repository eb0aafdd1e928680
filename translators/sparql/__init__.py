"""SPARQL 1.1, C-SPARQL and RSP-QL to a Translated Production System.

Source: SPARQL 1.1 Query, section 18; SPARQL 1.1 Update, section 3; for streams see `datasets` and `outputs`.
"""

from __future__ import annotations

from pathlib import PurePath

from squall.errors import raise_all
from squall.lexers.sparql import tree as q
from squall.rdf import iri_text, is_iri
from squall.system import Document, Stream, System
from squall.translators.sparql.datasets import clauses, dataset
from squall.translators.sparql.outputs import OUTPUT, Told, told
from squall.translators.sparql.state import Notes, State
from squall.translators.sparql.updates import Updates


def translator(program: q.Program) -> System:
    """The system of a program: a subsystem for each query and operation, and for each rule that these need.

    A registered query is known by its name, others by that of the program, or of several by their position. Raises
    TranslatorError, or Errors with all of the program's errors.
    """
    notes = Notes()
    rules: dict[System, None] = {}
    answers: list[Told] = []
    for place, statement in enumerate(program.statements, 1):
        rules.update(dict.fromkeys(_translated(statement, _name(program, statement, place), notes)))
        if not isinstance(statement.body, q.Operation):
            answers.append(told(statement))
    said = _agreed(program, answers, notes)
    raise_all(notes.errors)
    name = PurePath(program.name).stem
    return System(
        name,
        subsystems=tuple(rules),
        output=said.output,
        report=said.report,
        documents=_documents(program),
        streams=_streams(program),
        warnings=tuple(notes.warnings),
    )


def _translated(statement: q.Statement, name: str, notes: Notes) -> list[System]:
    state = State(notes, str(statement), statement.base)
    updates = Updates(state)
    if isinstance(statement.body, q.Operation):
        made = updates.operation(statement.body, name)
    else:
        made = list(updates.query(statement.body, name, dataset(statement.body.dataset, notes)))
    return [*(rule for rules in state.relations.values() for rule in rules), *made]


def _documents(program: q.Program) -> tuple[Document, ...]:
    """The graphs that the data sets of queries and updates name."""
    found: list[Document] = []
    for statement in program.statements:
        for clause in clauses(statement):
            if isinstance(clause, q.From | q.FromNamed):
                found.append(Document(iri_text(clause.graph), clause.origin))
    return tuple(dict.fromkeys(found))


def _streams(program: q.Program) -> tuple[Stream, ...]:
    """The streams over which queries are."""
    named = (one for statement in program.statements for one in clauses(statement))
    found = (Stream(iri_text(one.stream), one.origin) for one in named if isinstance(one, q.FromStream | q.FromWindow))
    return tuple(dict.fromkeys(found))


def _name(program: q.Program, statement: q.Statement, place: int) -> str:
    registration = statement.registration
    if registration is not None:
        return iri_text(registration.name) if is_iri(registration.name) else registration.name
    kind = "update" if isinstance(statement.body, q.Operation) else "query"
    return kind if len(program.statements) == 1 else f"{kind}{place}"


def _agreed(program: q.Program, answers: list[Told], notes: Notes) -> Told:
    """How the program is told, by all of its queries alike."""
    if len(set(answers)) > 1:
        last = program.statements[-1]
        hint = "put them in programs that are run each by itself"
        notes.fail("queries that are told in different ways cannot be in one program yet", last.body.origin, hint)
    return answers[0] if answers else OUTPUT
