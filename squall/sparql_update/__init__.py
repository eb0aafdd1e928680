"""Requests of SPARQL 1.1 Update, applied once to a data set; `squall build` runs them as standing rules.

What a pattern matches is the answer of a query over the data set as it is (`squall.compile` and what follows), which
binds the variables of the templates. Source: SPARQL 1.1 Update, sections 3 and 4.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import squall
from squall.contracts import Builder, Planner
from squall.errors import (
    Origin,
    SourceError,
    SquallError,
    TranslatorError,
    TranslatorWarning,
    UpdateError,
    UsageError,
    single_errors,
    did_you_mean,
    raise_all,
)
from squall.functions.values import date_time
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
"""The name under which the default graph is read. It is no IRI, so no graph has it."""
_ANY = Term("<any graph>")

Bound = Mapping[str, Term | None]
"""A solution: the values of variables by name."""
Place = tuple[Term, Triple]
"""A triple behind the name of its graph."""


def parse(request: str | Path) -> q.Program:
    """The tree of a request: of a file (a Path), against whose address relative IRIs are resolved, or of a text.

    Raises UsageError if there is no such file, LexerError, or Errors with all that are found.
    """
    if isinstance(request, str):
        return SparqlLexer()(request, "<text>")
    if not request.is_file():
        raise UsageError(f"the request `{request}` does not exist")
    try:
        text = request.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the request `{request}` cannot be read: {error}") from error
    return SparqlLexer(base=request.absolute().as_uri())(text, str(request))


def check(request: q.Program) -> tuple[SquallError, ...]:
    """What may not be meant as it is written, before anything is applied.

    Raises TranslatorError, or Errors with all of them, for queries, for data that are no RDF, and for what a pattern
    asks for that is not supported.
    """
    errors: list[SquallError] = []
    warnings: list[SquallError] = []
    for statement in request.statements:
        try:
            warnings += _checked(statement)
        except SquallError as error:
            errors += single_errors(error)
    raise_all(_once(errors))
    return _once(warnings)


def updated(
    dataset: Dataset,
    request: str | Path | q.Program,
    documents: Mapping[str, str] | None = None,
    *,
    now: int | None = None,
    planner: str | Planner = "rete",
    builder: str | Builder = "iterator",
) -> Dataset:
    """The data set after the operations of a request, one after the other: all of them, or an error and none.

    request: a file (a Path), a text, or the tree of one (`parse`). documents: files by the IRIs for which they stand,
    for LOAD; ``file:`` IRIs and relative ones stand for themselves, and nothing is fetched. now: what ``NOW()`` is
    (integer ms since the epoch; by default, when it is called). Blank nodes that a request makes are new ones.

    Raises UpdateError where an operation cannot be done and is not ``SILENT``; what `parse` and `check` raise; and
    PlannerError or BuilderError where these stages refuse a pattern.
    """
    program = request if isinstance(request, q.Program) else parse(request)
    check(program)
    at = date_time(time.time_ns() // 1_000_000 if now is None else now)
    store = _Store(dataset, documents or {}, planner, builder)
    for statement in program.statements:
        store.apply(_with_now(statement, at))
    return store.dataset()


# Before


def _once(errors: Iterable[SquallError]) -> tuple[SquallError, ...]:
    """Each once: a pattern over several graphs is looked at for each of them."""
    return tuple({str(error): error for error in errors}.values())


def _checked(statement: q.Statement) -> Iterator[SquallError]:
    """The warnings of an operation."""
    match statement.body:
        case q.InsertData(quads=quads) | q.DeleteData(quads=quads):
            raise_all([TranslatorError(_NO_SUBJECT, quad.origin) for quad in quads if _is_literal(quad.subject)])
        case q.Modify() as modify:
            for quad in (*modify.delete, *modify.insert):
                yield from _never(quad, set(q.in_scope(modify.where)))
            graphs = [part.name for part in _walk(modify.where) if isinstance(part, q.Graph)]
            named = dict.fromkeys([_ANY, *(name for name in graphs if isinstance(name, str))])
            yield from warnings_of(translator(_query(modify, statement.base, _clauses(modify, named), "check")))
        case q.Load() | q.Manage() | q.Transfer():
            return
        case query:
            kind = type(query).__name__.removesuffix("Query").upper()
            raise TranslatorError(f"`{kind}` is no update", query.origin, "`squall build` runs queries")


_NO_SUBJECT = "a literal cannot be the subject of a triple"


def _never(quad: q.QuadPattern, known: set[Variable]) -> Iterator[TranslatorWarning]:
    """Why a triple of a template is never made."""
    if _is_literal(quad.subject):
        yield TranslatorWarning(f"this triple is never made: {_NO_SUBJECT}", quad.origin)
    for slot in dict.fromkeys(_slots(quad)):
        if isinstance(slot, Variable) and slot not in known:
            hint = did_you_mean(str(slot), map(str, known)) or "bind it in the pattern, or leave the triple out"
            yield TranslatorWarning(f"`{slot}` is in the template, but nothing binds it", quad.origin, hint)


def _is_literal(slot: q.Slot) -> bool:
    return isinstance(slot, str) and is_literal(slot)


def _walk(part: object) -> Iterator[object]:
    """A part of a tree, and all that is in it."""
    yield part
    for inner in part if isinstance(part, tuple) else _inside(part).values():
        yield from _walk(inner)


def _inside(part: Any) -> dict[str, Any]:
    """The parts of a node by the names of its fields; where it was written is none of them."""
    if not is_dataclass(part) or isinstance(part, type | Variable | Origin):
        return {}
    return {one.name: getattr(part, one.name) for one in fields(part) if one.name != "origin"}


def _with_now(part: Any, now: Term) -> Any:
    """The part of a tree with the time of the request for ``NOW()`` (SPARQL 1.1 Query, section 17.4.5.1)."""
    if isinstance(part, q.Call) and part.function == "NOW":
        return now
    if isinstance(part, tuple):
        return tuple(_with_now(one, now) for one in part)
    inside = _inside(part)
    return replace(part, **{name: _with_now(one, now) for name, one in inside.items()}) if inside else part


# Patterns


def _clauses(modify: q.Modify, named: Iterable[Term]) -> tuple[q.From | q.FromNamed, ...]:
    """What the pattern of an operation reads: what USING says, or else the graph of WITH or the default graph, and all
    named graphs (section 3.1.3)."""
    return modify.using or (q.From(modify.graph or DEFAULT), *(q.FromNamed(graph, whole=True) for graph in named))


def _query(modify: q.Modify, base: str, clauses: tuple[q.DatasetClause, ...], name: str) -> q.Program:
    """The query for the variables of an operation's templates. By its name it is another query than all others: what
    it makes (``BNODE()``, ``UUID()``) no other one does."""
    used = {slot for quad in (*modify.delete, *modify.insert) for slot in _slots(quad)}
    items = tuple(q.SelectItem(variable) for variable in q.in_scope(modify.where) if variable in used)
    query = q.SelectQuery(items, modify.where, dataset=clauses, origin=modify.origin)
    return q.Program((q.Statement(query, q.Registration("QUERY", name), base),), name)


def _slots(quad: q.QuadPattern) -> tuple[q.Slot | None, ...]:
    return quad.subject, quad.predicate, quad.object, quad.graph


# Templates


def _made(
    quads: Iterable[q.QuadPattern], solutions: Iterable[Bound], graph: Term, new: Callable[[], Term]
) -> Iterator[Place]:
    """The triples that templates make of solutions, those without a graph in `graph`. Blank nodes are new for each
    solution; what has an unbound variable or is no RDF triple is left out (section 4.1.2)."""
    templates = [_slots(quad) for quad in quads]
    for bound in solutions:
        nodes: dict[Term, Term] = {}
        for slots in templates:
            terms = [graph if slot is None else _value(slot, bound, nodes, new) for slot in slots]
            subject, predicate, object, place = terms
            if subject and predicate and object and place and _is_quad(subject, predicate, place):
                yield place, Triple(subject, predicate, object)


def _value(slot: q.Slot, bound: Bound, nodes: dict[Term, Term], new: Callable[[], Term]) -> Term | None:
    if isinstance(slot, Variable):
        return bound.get(slot.name)
    if not is_blank(slot):
        return slot
    if slot not in nodes:
        nodes[slot] = new()
    return nodes[slot]


def _is_quad(subject: Term, predicate: Term, graph: Term) -> bool:
    return not is_literal(subject) and is_iri(predicate) and is_iri(graph)


# Operations


class _Store:
    """A data set that is being updated. The default graph, by its name, is always there."""

    def __init__(
        self, dataset: Dataset, documents: Mapping[str, str], planner: str | Planner, builder: str | Builder
    ) -> None:
        self._graphs = {name: set(graph) for name, graph in ((DEFAULT, dataset.default), *dataset.named.items())}
        self._documents = documents
        self._planner = planner
        self._builder = builder
        self._scope = secrets.token_hex(6)
        """Tells what this request makes from what others make."""
        self._count = 0

    def dataset(self) -> Dataset:
        """What it is now."""
        named = {name: frozenset(self._graphs[name]) for name in self._named()}
        return Dataset(frozenset(self._graphs[DEFAULT]), named)

    def apply(self, statement: q.Statement) -> None:
        """Does one operation. Raises UpdateError if it cannot be done."""
        operation = statement.body
        match operation:
            case q.InsertData(quads=quads):
                self._insert(_made(quads, [{}], DEFAULT, self._node))
            case q.DeleteData(quads=quads):
                self._delete(_made(quads, [{}], DEFAULT, self._node))
            case q.Modify():
                self._modify(operation, statement.base)
            case q.Load() | q.Manage() | q.Transfer():
                try:
                    self._managed(operation)
                except UpdateError:
                    if not operation.silent:
                        raise
            case _:
                raise AssertionError("`check` refuses queries")

    def _managed(self, operation: q.Load | q.Manage | q.Transfer) -> None:
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

    def _insert(self, places: Iterable[Place]) -> None:
        for graph, triple in places:
            self._graphs.setdefault(graph, set()).add(triple)

    def _delete(self, places: Iterable[Place]) -> None:
        for graph, triple in places:
            self._graphs.get(graph, set()).discard(triple)

    # DELETE and INSERT (sections 3.1.3 and 4.2.2)

    def _modify(self, modify: q.Modify, base: str) -> None:
        """Deletes before it inserts; both follow from the data set as it is before."""
        solutions = self._solutions(modify, base)
        graph = modify.graph or DEFAULT
        deleted, inserted = (
            list(_made(quads, solutions, graph, self._node)) for quads in (modify.delete, modify.insert)
        )
        self._delete(deleted)
        self._insert(inserted)

    def _solutions(self, modify: q.Modify, base: str) -> list[Bound]:
        clauses = _clauses(modify, self._named())
        system: System = translator(_query(modify, base, clauses, f"update {self._unique()}"))
        read = dict.fromkeys(clause.graph for clause in clauses)
        events = [Event(ALWAYS, tuple(self._graphs.get(graph, ())), iri_text(graph)) for graph in read]
        outputs = squall.build(squall.plan(system, self._planner), self._builder).run([], events)
        facts = [output.fact for output in outputs]
        return [dict(zip(fact.names, fact.values, strict=True)) for fact in facts if isinstance(fact, Solution)]

    # LOAD (section 3.1.4)

    def _load(self, load: q.Load) -> None:
        document = Document(iri_text(load.source), load.origin)
        base = document.iri if is_absolute(document.iri) else None
        try:
            found = read(places.path_of(document, self._documents), base, self._unique())
        except (SourceError, UsageError) as error:
            raise UpdateError(error.message, load.origin, error.hint) from error
        if found.named:
            hint = "give it as data instead"
            raise UpdateError(f"the document {load.source} is no graph: it has named graphs", load.origin, hint)
        self._graphs.setdefault(load.graph or DEFAULT, set()).update(found.default)

    # CREATE, CLEAR and DROP (sections 3.1.5, 3.2.1 and 3.2.2)

    def _create(self, operation: q.Manage) -> None:
        graph = Term(operation.graph)
        if graph in self._graphs:
            hint = "`CREATE SILENT` leaves it as it is"
            raise UpdateError(f"there is a graph {graph} already", operation.origin, hint)
        self._graphs[graph] = set()

    def _clear(self, operation: q.Manage) -> None:
        for graph in self._meant(operation):
            if operation.action == "CLEAR":
                self._graphs[graph] = set()
            else:
                self._drop(graph)

    def _meant(self, operation: q.Manage) -> list[Term]:
        match operation.graph:
            case "ALL":
                return list(self._graphs)
            case "NAMED":
                return self._named()
            case graph:
                return [self._known(graph, operation)]

    def _known(self, graph: str, operation: q.Manage | q.Transfer) -> Term:
        """The name of a graph that has to be there."""
        name = DEFAULT if graph == "DEFAULT" else Term(graph)
        if name not in self._graphs:
            hint = did_you_mean(name, self._named()) or f"`{operation.action} SILENT` goes on without"
            raise UpdateError(f"there is no graph {name}", operation.origin, hint)
        return name

    # ADD, COPY and MOVE (sections 3.2.3 to 3.2.5)

    def _transfer(self, operation: q.Transfer) -> None:
        source = self._known(operation.source, operation)
        target = DEFAULT if operation.target == "DEFAULT" else Term(operation.target)
        if source == target:
            return
        kept = self._graphs.get(target, set()) if operation.action == "ADD" else set()
        self._graphs[target] = kept | self._graphs[source]
        if operation.action == "MOVE":
            self._drop(source)

    def _drop(self, graph: Term) -> None:
        """The default graph comes back empty."""
        del self._graphs[graph]
        self._graphs.setdefault(DEFAULT, set())
