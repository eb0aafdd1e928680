"""The translator of SPARQL 1.1, C-SPARQL, CT-SPARQL, EP-SPARQL, RSP-QL, CQELS-QL, SPARQLStream and Strider.

Sources: SPARQL 1.1 Query, section 18; SPARQL 1.1 Update, section 3; for streams see `datasets` and `outputs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePath

from squall.errors import Origin, SquallError, file_name, raise_all, single_errors
from squall.lexers.sparql import tree as q
from squall.model import Document, Insert, Stream, System
from squall.model.profiles import by_name
from squall.rdf import iri_text, is_iri
from squall.translators.sparql import sequences
from squall.translators.sparql.datasets import clauses, of_query
from squall.translators.sparql.named_events import with_pattern
from squall.translators.sparql.outputs import check_changes, output_of
from squall.translators.sparql.reasoning import Reasoning, reasoning_of_modes
from squall.translators.sparql.state import Notes, State
from squall.translators.sparql.updates import Updates


def translator(program: q.Program, profile: str = "default") -> System:
    """Translates a SPARQL program to a system with a subsystem for each query, operation and helper rule.

    A registered query is named by its registration. Others are named by the program's file, or without one ``query`` or
    ``update``, with their position if there are several: ``alarms``, ``alarms-2``.

    Args:
        program: The tree of the program.
        profile: The name of the profile: it says what ``GRAPH ?g`` means inside of its pattern.

    Raises:
        TranslatorError: The program cannot be translated.
        Errors: There are several errors. All of a program's errors are raised at once.
    """
    notes = Notes()
    is_graph_in_scope = by_name(profile).is_graph_in_scope
    if not program.statements:
        notes.warn("there is no query and no update in the program", Origin(program.name, "", 1, 1))
    statements = tuple(with_pattern(statement, notes) for statement in _over_streams(program))
    raise_all(notes.errors)
    systems: dict[System, None] = {}
    for place, statement in enumerate(statements, 1):
        name = _registered_name(statement) or _default_name(program, statement, place)
        systems.update(dict.fromkeys(_translated(statement, name, notes, is_graph_in_scope)))
    raise_all(notes.errors)
    return System(
        PurePath(program.name).stem,
        subsystems=tuple(systems),
        documents=_documents(program, systems),
        streams=_streams(statements),
        batch_interval=None if program.streaming is None else program.streaming.batch,
        warnings=tuple(notes.warnings),
    )


def _over_streams(program: q.Program) -> Iterator[q.Statement]:
    """Yields the statements; those of Strider read all streams through the window of the program."""
    for statement in program.statements:
        if program.streaming is None or isinstance(statement.body, q.Operation):
            yield statement
        else:
            dataset = (program.streaming.window, *statement.body.dataset)
            yield replace(statement, body=replace(statement.body, dataset=dataset))


def _translated(statement: q.Statement, name: str, notes: Notes, is_graph_in_scope: bool) -> list[System]:
    """Returns the rules of a statement. Those of a query form one system, which has its own output."""
    state = State(notes, str(statement), statement.base, is_graph_in_scope)
    sequences.check(statement, state)
    for length, origin in statement.bare_lengths:
        hint = f"write the unit: `{length} ms`, or `{length} s` for seconds"
        notes.warn(f"the length of time `{length}` has no unit: it is {length} ms", origin, hint)
    updates = Updates(state)
    body = statement.body
    if isinstance(body, q.Operation):
        rules = updates.operation(body, name)
        return [*_relations(state), *rules]
    systems = updates.query(body, name, of_query(body, notes))
    check_changes(statement, notes)
    spec = output_of(statement)
    stream = name if spec.is_stream else ""
    reasoning = _reasoning(statement, notes)
    return [
        System(
            name,
            subsystems=(*_relations(state), *state.sequences, *systems),
            output=spec.output,
            report=spec.report,
            stream=stream,
            is_named=bool(_registered_name(statement)),
            entailment=reasoning.entailment,
            same_as=reasoning.same_as,
            origin=None if statement.registration is None else statement.registration.origin,
        )
    ]


def _reasoning(statement: q.Statement, notes: Notes) -> Reasoning:
    """Returns what a query says by `REASONING`."""
    try:
        return reasoning_of_modes((mode.name, mode.origin) for mode in statement.reasoning)
    except SquallError as error:
        notes.errors += single_errors(error)
        return Reasoning()


def _relations(state: State) -> Iterator[System]:
    return (rule for rules in state.relations.values() for rule in rules)


def _documents(program: q.Program, rules: Iterable[System]) -> tuple[Document, ...]:
    """Returns the graphs in the datasets of queries, except for those that updates write. Updates refer to existing
    graphs.
    """
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


def _streams(statements: Iterable[q.Statement]) -> tuple[Stream, ...]:
    """Returns the streams that queries read."""
    streams: dict[Stream, None] = {}
    for statement in statements:
        for clause in clauses(statement):
            if isinstance(clause, q.FromStream | q.FromWindow):
                streams[Stream(iri_text(clause.stream), clause.origin)] = None
        for stream_window in q.stream_windows(statement.body):
            if isinstance(stream_window.name, str):
                streams[Stream(iri_text(stream_window.name), stream_window.origin)] = None
    return tuple(streams)


def _registered_name(statement: q.Statement) -> str:
    registration = statement.registration
    if registration is None or not registration.name:
        return ""
    return iri_text(registration.name) if is_iri(registration.name) else registration.name


def _default_name(program: q.Program, statement: q.Statement, place: int) -> str:
    name = file_name(program.name) or ("update" if isinstance(statement.body, q.Operation) else "query")
    return name if len(program.statements) == 1 else f"{name}-{place}"
