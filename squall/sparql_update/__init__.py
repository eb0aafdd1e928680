"""SPARQL 1.1 Update requests, applied once to a dataset. (`squall run` runs them as standing rules.)

The solutions of a pattern are the answer of a query over the current dataset (`squall.compile` and the later stages).
They bind the variables of the templates. Source: SPARQL 1.1 Update, sections 3 and 4.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import squall
from squall import arguments
from squall.contracts import Builder, Planner
from squall.errors import (
    ArgumentError,
    Origin,
    SourceError,
    SquallError,
    TranslatorError,
    TranslatorWarning,
    UpdateError,
    UsageError,
    did_you_mean,
    raise_all,
    single_errors,
)
from squall.functions.values import date_time
from squall.lexers.prefixes import Prefixes, as_prefixes
from squall.lexers.sparql import SparqlLexer
from squall.lexers.sparql import tree as q
from squall.model import Document, System, Variable
from squall.model import warnings as warnings_of
from squall.rdf import ALWAYS, Event, Solution, Term, Triple, blank, iri_text, is_blank, is_iri, is_literal
from squall.rdf.iris import is_absolute
from squall.sparql_update.datasets import Dataset, read
from squall.streams.sources import documents as places
from squall.translators.sparql import translator

DEFAULT = Term("<the default graph>")
"""The name under which the default graph is read. It is not an IRI, so no graph has it."""
_ANY = Term("<any graph>")

Bindings = Mapping[str, Term | None]
"""A solution: the values of variables by name."""
GraphTriple = tuple[Term, Triple]
"""A triple after the name of its graph."""


def parse(request: str | Path, prefixes: Prefixes = None) -> q.Program:
    """Parses a request: a file (a Path), whose address is the base of relative IRIs, or a text.

    It may use the prefixes without declaring them (see `squall.compile`).

    Raises:
        UsageError: There is no such file, or a prefix is none.
        LexerError: The text is not in the language.
        Errors: It has several errors.
    """
    arguments.check_prefixes(prefixes)
    namespaces = as_prefixes(prefixes)
    if isinstance(request, str):
        return SparqlLexer()(request, "<text>", namespaces)
    if not os.path.isfile(request):
        raise UsageError(f"the request `{request}` does not exist")
    try:
        text = request.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the request `{request}` cannot be read: {error}") from error
    return SparqlLexer(base=request.absolute().as_uri())(text, str(request), namespaces)


def check(request: q.Program) -> tuple[SquallError, ...]:
    """Checks a request before anything is applied, and returns warnings.

    Raises:
        TranslatorError: It has a query, data that are not RDF, or a pattern that is not supported.
        Errors: It has several of these.
    """
    errors: list[SquallError] = []
    warnings: list[SquallError] = []
    for statement in request.statements:
        try:
            warnings += _statement_warnings(statement)
        except SquallError as error:
            errors += single_errors(error)
    raise_all(_unique_errors(errors))
    return _unique_errors(warnings)


def apply_update(
    dataset: Dataset,
    request: str | Path | q.Program,
    documents: Mapping[str, str] | None = None,
    *,
    now: int | None = None,
    planner: str | Planner = "rete",
    builder: str | Builder = "iterator",
    prefixes: Prefixes = None,
) -> Dataset:
    """Returns the dataset after the operations of a request, one after the other. An error applies none of them.

    Args:
        dataset: The dataset before.
        request: A file (a Path), a text, or a tree (`parse`).
        documents: Files by IRI, for LOAD and for contexts of JSON-LD. ``file:`` IRIs and relative ones stand for
            themselves; nothing is fetched.
        now: The value of ``NOW()`` (integer ms since the epoch); by default, the time of the call.
        planner: The planner of patterns.
        builder: The builder that runs patterns.
        prefixes: Prefixes that a request which is no tree may use without declaring them (see `squall.compile`).

    Returns:
        The new dataset. Blank nodes that a request creates are new ones.

    Raises:
        UpdateError: An operation that is not ``SILENT`` cannot be done.
        PlannerError: A pattern cannot be planned.
        BuilderError: A pattern cannot be run.
        SquallError: What `parse` and `check` raise.
    """
    _check_arguments(dataset, request, now)
    program = request if isinstance(request, q.Program) else parse(request, prefixes)
    check(program)
    now_term = date_time(time.time_ns() // 1_000_000 if now is None else now)
    store = _Store(dataset, documents or {}, planner, builder)
    for statement in program.statements:
        store.apply(_with_now(statement, now_term))
    return store.dataset()


# Before


def _check_arguments(dataset: Any, request: Any, now: Any) -> None:
    """Checks arguments of `apply_update`. Raises ArgumentError."""
    if not isinstance(dataset, Dataset):
        hint = "`squall.sparql_update.datasets` has `Dataset`, and `read` for files"
        raise ArgumentError(f"the dataset is a Dataset, and not a {type(dataset).__name__}", hint=hint)
    if not isinstance(request, str | Path | q.Program):
        hint = "a request is a text, a `pathlib.Path`, or the tree that `squall.sparql_update.parse` returns"
        raise ArgumentError(f"the request is a text, a path or a tree, and not a {type(request).__name__}", hint=hint)
    arguments.check_moment(now)


def _unique_errors(errors: Iterable[SquallError]) -> tuple[SquallError, ...]:
    """Returns each error once: a pattern over several graphs is checked for each of them."""
    return tuple({str(error): error for error in errors}.values())


def _statement_warnings(statement: q.Statement) -> Iterator[SquallError]:
    """Yields the warnings of an operation."""
    match statement.body:
        case q.InsertData(quads=quads) | q.DeleteData(quads=quads):
            raise_all([TranslatorError(_NO_SUBJECT, quad.origin) for quad in quads if _is_literal(quad.subject)])
        case q.Modify() as modify:
            for quad in (*modify.delete, *modify.insert):
                yield from _template_warnings(quad, set(q.in_scope(modify.where)))
            graphs = [part.name for part in _tree_parts(modify.where) if isinstance(part, q.Graph)]
            graph_names = dict.fromkeys([_ANY, *(name for name in graphs if isinstance(name, str))])
            yield from warnings_of(translator(_query(modify, statement.base, _clauses(modify, graph_names), "check")))
        case q.Load() | q.Manage() | q.Transfer():
            return
        case query:
            kind = type(query).__name__.removesuffix("Query").upper()
            raise TranslatorError(f"`{kind}` is no update", query.origin, "`squall run` runs queries")


_NO_SUBJECT = "a literal cannot be the subject of a triple"


def _template_warnings(quad: q.QuadPattern, bound_variables: set[Variable]) -> Iterator[TranslatorWarning]:
    """Yields why a triple of a template is never made."""
    if _is_literal(quad.subject):
        yield TranslatorWarning(f"this triple is never made: {_NO_SUBJECT}", quad.origin)
    for slot in dict.fromkeys(_slots(quad)):
        if isinstance(slot, Variable) and slot not in bound_variables:
            hint = (
                did_you_mean(str(slot), map(str, bound_variables)) or "bind it in the pattern, or leave the triple out"
            )
            yield TranslatorWarning(f"`{slot}` is in the template, but nothing binds it", quad.origin, hint)


def _is_literal(slot: q.Slot) -> bool:
    return isinstance(slot, str) and is_literal(slot)


def _tree_parts(part: object) -> Iterator[object]:
    """Yields a part of a tree, and all that is in it."""
    yield part
    for inner in part if isinstance(part, tuple) else _inside(part).values():
        yield from _tree_parts(inner)


def _inside(part: Any) -> dict[str, Any]:
    """Returns the parts of a node by field name. Its origin is none of them."""
    if not is_dataclass(part) or isinstance(part, type | Variable | Origin):
        return {}
    return {
        part_field.name: getattr(part, part_field.name) for part_field in fields(part) if part_field.name != "origin"
    }


def _with_now(part: Any, now: Term) -> Any:
    """Returns the part of a tree with ``NOW()`` replaced by the time of the request (SPARQL 1.1 Query, section
    17.4.5.1).
    """
    if isinstance(part, q.Call) and part.function == "NOW":
        return now
    if isinstance(part, tuple):
        return tuple(_with_now(inner, now) for inner in part)
    parts = _inside(part)
    return replace(part, **{name: _with_now(inner, now) for name, inner in parts.items()}) if parts else part


# Patterns


def _clauses(modify: q.Modify, named: Iterable[Term]) -> tuple[q.From | q.FromNamed, ...]:
    """Returns the dataset clauses of an operation's pattern (section 3.1.3).

    They are those of USING, or else the graph of WITH or the default graph, and all named graphs.
    """
    return modify.using or (q.From(modify.graph or DEFAULT), *(q.FromNamed(graph, whole=True) for graph in named))


def _query(modify: q.Modify, base: str, clauses: tuple[q.DatasetClause, ...], name: str) -> q.Program:
    """Returns the query for the variables of an operation's templates.

    Its name distinguishes it from all others, so that what it creates (``BNODE()``, ``UUID()``) is unique.
    """
    used = {slot for quad in (*modify.delete, *modify.insert) for slot in _slots(quad)}
    items = tuple(q.SelectItem(variable) for variable in q.in_scope(modify.where) if variable in used)
    query = q.SelectQuery(items, modify.where, dataset=clauses, origin=modify.origin)
    return q.Program((q.Statement(query, q.Registration("QUERY", name), base),), name)


def _slots(quad: q.QuadPattern) -> tuple[q.Slot | None, ...]:
    return quad.subject, quad.predicate, quad.object, quad.graph


# Templates


def _instantiate(
    quads: Iterable[q.QuadPattern], solutions: Iterable[Bindings], graph: Term, new_node: Callable[[], Term]
) -> Iterator[GraphTriple]:
    """Yields the triples of templates and solutions; those without a graph are in `graph`.

    Blank nodes are new for each solution. A triple that has an unbound variable or is not RDF is left out (section
    4.1.2).
    """
    templates = [_slots(quad) for quad in quads]
    for solution in solutions:
        nodes: dict[Term, Term] = {}
        for slots in templates:
            terms = [graph if slot is None else _value(slot, solution, nodes, new_node) for slot in slots]
            subject, predicate, object, graph_name = terms
            if subject and predicate and object and graph_name and _is_quad(subject, predicate, graph_name):
                yield graph_name, Triple(subject, predicate, object)


def _value(slot: q.Slot, solution: Bindings, nodes: dict[Term, Term], new_node: Callable[[], Term]) -> Term | None:
    if isinstance(slot, Variable):
        return solution.get(slot.name)
    if not is_blank(slot):
        return slot
    if slot not in nodes:
        nodes[slot] = new_node()
    return nodes[slot]


def _is_quad(subject: Term, predicate: Term, graph: Term) -> bool:
    return not is_literal(subject) and is_iri(predicate) and is_iri(graph)


# Operations


class _Store:
    """A dataset that is being updated. The default graph, by its name, is always there."""

    def __init__(
        self, dataset: Dataset, documents: Mapping[str, str], planner: str | Planner, builder: str | Builder
    ) -> None:
        self._graphs = {name: set(graph) for name, graph in ((DEFAULT, dataset.default), *dataset.named.items())}
        self._documents = documents
        self._planner = planner
        self._builder = builder
        self._scope = secrets.token_hex(6)
        """Distinguishes the blank nodes of this request from those of others."""
        self._count = 0

    def dataset(self) -> Dataset:
        """Returns the current dataset."""
        named = {name: frozenset(self._graphs[name]) for name in self._named()}
        return Dataset(frozenset(self._graphs[DEFAULT]), named)

    def apply(self, statement: q.Statement) -> None:
        """Applies one operation. Raises UpdateError if it cannot be done."""
        operation = statement.body
        match operation:
            case q.InsertData(quads=quads):
                self._insert(_instantiate(quads, [{}], DEFAULT, self._node))
            case q.DeleteData(quads=quads):
                self._delete(_instantiate(quads, [{}], DEFAULT, self._node))
            case q.Modify():
                self._modify(operation, statement.base)
            case q.Load() | q.Manage() | q.Transfer():
                try:
                    self._manage_graphs(operation)
                except UpdateError:
                    if not operation.silent:
                        raise
            case _:
                raise AssertionError("`check` refuses queries")

    def _manage_graphs(self, operation: q.Load | q.Manage | q.Transfer) -> None:
        match operation:
            case q.Load():
                self._load(operation)
            case q.Manage(action="CREATE"):
                self._create(operation)
            case q.Manage():
                self._clear(operation)
            case q.Transfer():
                self._transfer(operation)

    def _unique(self) -> str:
        self._count += 1
        return f"{self._scope}n{self._count}"

    def _node(self) -> Term:
        return blank(f"u{self._unique()}")

    def _named(self) -> list[Term]:
        return [name for name in self._graphs if name != DEFAULT]

    def _insert(self, quads: Iterable[GraphTriple]) -> None:
        for graph, triple in quads:
            self._graphs.setdefault(graph, set()).add(triple)

    def _delete(self, quads: Iterable[GraphTriple]) -> None:
        for graph, triple in quads:
            self._graphs.get(graph, set()).discard(triple)

    # DELETE and INSERT (sections 3.1.3 and 4.2.2)

    def _modify(self, modify: q.Modify, base: str) -> None:
        """Deletes, then inserts. Both follow from the dataset before the operation."""
        solutions = self._solutions(modify, base)
        graph = modify.graph or DEFAULT
        deleted, inserted = (
            list(_instantiate(quads, solutions, graph, self._node)) for quads in (modify.delete, modify.insert)
        )
        self._delete(deleted)
        self._insert(inserted)

    def _solutions(self, modify: q.Modify, base: str) -> list[Bindings]:
        clauses = _clauses(modify, self._named())
        system: System = translator(_query(modify, base, clauses, f"update {self._unique()}"))
        graphs = dict.fromkeys(clause.graph for clause in clauses)
        events = [Event(ALWAYS, tuple(self._graphs.get(graph, ())), iri_text(graph)) for graph in graphs]
        outputs = squall.build(squall.plan(system, self._planner), self._builder).run([], events)
        facts = [output.fact for output in outputs]
        return [dict(zip(fact.names, fact.values, strict=True)) for fact in facts if isinstance(fact, Solution)]

    # LOAD (section 3.1.4)

    def _load(self, load: q.Load) -> None:
        document = Document(iri_text(load.source), load.origin)
        base = document.iri if is_absolute(document.iri) else None
        try:
            loaded = read(places.path_of(document, self._documents), base, self._unique(), self._documents)
        except (SourceError, UsageError) as error:
            raise UpdateError(error.message, load.origin, error.hint) from error
        if loaded.named:
            hint = "give it as data instead"
            raise UpdateError(f"the document {load.source} is no graph: it has named graphs", load.origin, hint)
        self._graphs.setdefault(load.graph or DEFAULT, set()).update(loaded.default)

    # CREATE, CLEAR and DROP (sections 3.1.5, 3.2.1 and 3.2.2)

    def _create(self, operation: q.Manage) -> None:
        graph = Term(operation.graph)
        if graph in self._graphs:
            hint = "`CREATE SILENT` leaves it as it is"
            raise UpdateError(f"there is a graph {graph} already", operation.origin, hint)
        self._graphs[graph] = set()

    def _clear(self, operation: q.Manage) -> None:
        for graph in self._target_graphs(operation):
            if operation.action == "CLEAR":
                self._graphs[graph] = set()
            else:
                self._drop(graph)

    def _target_graphs(self, operation: q.Manage) -> list[Term]:
        match operation.graph:
            case "ALL":
                return list(self._graphs)
            case "NAMED":
                return self._named()
            case graph:
                return [self._existing_graph(graph, operation)]

    def _existing_graph(self, graph: str, operation: q.Manage | q.Transfer) -> Term:
        """Returns the name of a graph that has to exist."""
        name = DEFAULT if graph == "DEFAULT" else Term(graph)
        if name not in self._graphs:
            hint = did_you_mean(name, self._named()) or f"`{operation.action} SILENT` goes on without"
            raise UpdateError(f"there is no graph {name}", operation.origin, hint)
        return name

    # ADD, COPY and MOVE (sections 3.2.3 to 3.2.5)

    def _transfer(self, operation: q.Transfer) -> None:
        source = self._existing_graph(operation.source, operation)
        target = DEFAULT if operation.target == "DEFAULT" else Term(operation.target)
        if source == target:
            return
        existing = self._graphs.get(target, set()) if operation.action == "ADD" else set()
        self._graphs[target] = existing | self._graphs[source]
        if operation.action == "MOVE":
            self._drop(source)

    def _drop(self, graph: Term) -> None:
        """Drops a graph. The default graph comes back empty."""
        del self._graphs[graph]
        self._graphs.setdefault(DEFAULT, set())
