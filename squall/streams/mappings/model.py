"""The mapping of a record to triples, as a value: what RML and the short form are compiled to.

A mapping is a set of rules, each of which makes triples of one form. A reference of a rule has exactly one value: where
a notation goes through the elements of an array, the rule has a level of iteration for it, so that a rule is a loop
over its levels. Rules are in a normal form: levels are numbered in the order in which the terms use them, and rules are
sorted. So two mappings are equal as values if they are the same in different notations.

Sources: RML (https://w3id.org/rml/core/spec), "Mapping of references and templates"; R2RML (W3C 2012), sections 7, 10
and 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from squall.errors import Origin
from squall.rdf import Term

Path = tuple[str | int, ...]
"""The keys of objects, and the indexes in arrays (from 0), from an item to a value inside of it."""


class Level(NamedTuple):
    """A loop over the elements of an array.

    Attributes:
        parent: The number of the level in whose items the array is; 0 is the record.
        path: The path from an item to the array.
    """

    parent: int
    path: Path


class Reference(NamedTuple):
    """A place in a record, which has a value or none.

    Attributes:
        level: The number of the level in whose items it is, from 1; 0: it is in the record.
        path: The path from an item to the value.
    """

    level: int
    path: Path


@dataclass(frozen=True)
class Constant:
    """A term that does not depend on the record."""

    term: Term


@dataclass(frozen=True)
class Value:
    """A term whose text is the value of a reference, as it is.

    Attributes:
        reference: The reference.
        is_iri: Whether it is an IRI, and no literal.
        datatype: The IRI of the datatype of a literal; ``""``: it follows from the type of the JSON value.
        language: Its language tag, or ``""``.
    """

    reference: Reference
    is_iri: bool = False
    datatype: str = ""
    language: str = ""


@dataclass(frozen=True)
class Template:
    """A term whose text consists of parts, of which at least one is the value of a reference.

    Attributes:
        kind: ``iri`` (values are percent-encoded), ``blank`` (a blank node, with the parts as its label), or
            ``literal``.
        parts: Texts and references. No two texts are neighbours, and none is empty.
        datatype: The IRI of the datatype of a literal; ``""``: it is a string.
        language: Its language tag, or ``""``.
    """

    kind: str
    parts: tuple[str | Reference, ...]
    datatype: str = ""
    language: str = ""


TermMap = Constant | Value | Template


class TimeMap(NamedTuple):
    """The event time of triples.

    Attributes:
        reference: The reference of a number, or of a text in ISO 8601 (UTC if it names no zone).
        unit_ms: The unit of numbers, in milliseconds: 1 or 1000.
    """

    reference: Reference
    unit_ms: int = 1


class Condition(NamedTuple):
    """A condition: the value of a reference is a text, a number or a truth value (JSON, as its text)."""

    reference: Reference
    json: str


@dataclass(frozen=True)
class Rule:
    """What makes one triple of each combination of items of its levels.

    A triple of which a reference has no value is not made. If that is one of the subject, the record is malformed,
    unless the rule is optional.

    Attributes:
        levels: The loops. The parent of each is the record, or one before it.
        subject: The subject.
        predicate: The predicate.
        object: The object.
        graph: The name of the graph; None: the default graph.
        time: The event time; None: the time of the source.
        conditions: What the record, and the items, have to fulfil.
        is_optional: Whether there may be no subject.
    """

    levels: tuple[Level, ...]
    subject: TermMap
    predicate: TermMap
    object: TermMap
    graph: TermMap | None = None
    time: TimeMap | None = None
    conditions: tuple[Condition, ...] = ()
    is_optional: bool = False

    @property
    def terms(self) -> tuple[TermMap, ...]:
        """The maps of its terms."""
        graph = () if self.graph is None else (self.graph,)
        return (self.subject, self.predicate, self.object, *graph)

    def references(self) -> Iterator[Reference]:
        """Yields the references of its terms, of its conditions and of its time."""
        for term in self.terms:
            yield from references_of(term)
        yield from (condition.reference for condition in self.conditions)
        if self.time is not None:
            yield self.time.reference


@dataclass(frozen=True)
class Mapping:
    """A mapping of records to triples.

    Attributes:
        rules: The rules, each once, sorted.
        places: The fields of records, as paths (`path_text`), with the places in which the text of the mapping names
            them.
        unused: The variables that no triple uses, with their places.
        optional: The fields that the text marks as optional, as paths.
    """

    rules: tuple[Rule, ...]
    places: tuple[tuple[str, Origin], ...] = field(default=(), compare=False, repr=False)
    unused: tuple[tuple[str, Origin], ...] = field(default=(), compare=False, repr=False)
    optional: frozenset[str] = field(default=frozenset(), compare=False, repr=False)

    @property
    def is_timed(self) -> bool:
        """Whether the records have times."""
        return any(rule.time is not None for rule in self.rules)

    @property
    def has_graphs(self) -> bool:
        """Whether there are triples in named graphs."""
        return any(rule.graph is not None for rule in self.rules)

    def fields(self) -> dict[str, None]:
        """Returns the keys of a record that the mapping uses, in the order of the rules."""
        paths = (
            reference.path
            for rule in self.rules
            for reference in (*rule.references(), *(Reference(*level) for level in rule.levels))
            if reference.level == 0
        )
        return dict.fromkeys(path[0] for path in paths if path and isinstance(path[0], str))

    def nested(self) -> Path | None:
        """Returns a path of the mapping that a flat record, such as a row, does not have; None if there is none."""
        for rule in self.rules:
            if rule.levels:
                return rule.levels[0].path
            for reference in rule.references():
                if len(reference.path) != 1 or not isinstance(reference.path[0], str):
                    return reference.path
        return None


@dataclass(frozen=True)
class OutputMapping(Mapping):
    """The mapping of lines that the format ``ndjson`` has written (`squall.streams.mappings.outputs`)."""

    @property
    def is_timed(self) -> bool:
        return True

    @property
    def has_graphs(self) -> bool:
        return True


OUTPUTS = OutputMapping(())
OUTPUTS_NAME = "outputs"
"""The name of this mapping in the option ``map``."""


@dataclass(frozen=True)
class Records:
    """How the records of a source are read. It is the same in all processes of a run.

    Attributes:
        mapping: The mapping.
        columns: The names of the columns of CSV, if no header has them; ``()``: the first row is the header.
        separator: The character between the values of CSV.
        schema: The schema of single records of Avro (JSON); ``""``: documents have their schemas.
    """

    mapping: Mapping
    columns: tuple[str, ...] = ()
    separator: str = ","
    schema: str = field(default="", repr=False)

    @property
    def is_timed(self) -> bool:
        """Whether the records have times."""
        return self.mapping.is_timed


def without_places(records: Records) -> Records:
    """Returns the same without the text of the mapping, which workers and checkpoints do not need."""
    return replace(records, mapping=replace(records.mapping, places=(), unused=(), optional=frozenset()))


def references_of(term: TermMap) -> Iterator[Reference]:
    """Yields the references of a term."""
    if isinstance(term, Value):
        yield term.reference
    elif isinstance(term, Template):
        yield from (part for part in term.parts if isinstance(part, Reference))


def mapping_of(
    rules: Iterable[Rule],
    places: Iterable[tuple[str, Origin]] = (),
    unused: Iterable[tuple[str, Origin]] = (),
    optional: Iterable[str] = (),
) -> Mapping:
    """Returns the mapping of some rules in any order and form."""
    in_order = tuple(sorted({normal(rule) for rule in rules}, key=repr))
    return Mapping(in_order, tuple(places), tuple(unused), frozenset(optional))


def normal(rule: Rule, kept: Iterable[int] | None = None) -> Rule:
    """Returns a rule in normal form: its levels in the order of their use, those without a use at the end.

    Args:
        rule: The rule.
        kept: The numbers of the levels that stay though nothing uses them; None: all.
    """
    order: list[int] = []

    def use(level: int) -> None:
        if level and level not in order:
            use(rule.levels[level - 1].parent)
            order.append(level)

    for reference in rule.references():
        use(reference.level)
    unused = range(1, len(rule.levels) + 1) if kept is None else kept
    for level in sorted(unused, key=lambda number: path_text(whole_path(rule.levels, number))):
        use(level)
    numbers = {0: 0, **{level: number for number, level in enumerate(order, 1)}}

    def renumbered(reference: Reference) -> Reference:
        return Reference(numbers[reference.level], reference.path)

    def term_of(term: TermMap) -> TermMap:
        if isinstance(term, Value):
            return replace(term, reference=renumbered(term.reference))
        if isinstance(term, Template):
            return replace(
                term, parts=tuple(renumbered(part) if isinstance(part, Reference) else part for part in term.parts)
            )
        return term

    conditions = {Condition(renumbered(condition.reference), condition.json) for condition in rule.conditions}
    return replace(
        rule,
        levels=tuple(Level(numbers[rule.levels[level - 1].parent], rule.levels[level - 1].path) for level in order),
        subject=term_of(rule.subject),
        predicate=term_of(rule.predicate),
        object=term_of(rule.object),
        graph=None if rule.graph is None else term_of(rule.graph),
        time=None if rule.time is None else rule.time._replace(reference=renumbered(rule.time.reference)),
        conditions=tuple(sorted(conditions, key=repr)),
    )


def whole_path(levels: Sequence[Level], number: int) -> tuple[str | int | None, ...]:
    """Returns the steps from the record to the items of a level."""
    if not number:
        return ()
    level = levels[number - 1]
    return (*whole_path(levels, level.parent), *level.path, None)


def with_time(mapping: Mapping, steps: Sequence[str | int | None], unit_ms: int) -> Mapping:
    """Returns a mapping whose event time is at a path from the record; None in it is each element of an array.

    Where the path goes through an array of which a rule makes triples, the time is that of the same element.
    """
    rules = (timed(rule, steps, unit_ms) for rule in mapping.rules)
    return mapping_of(rules, mapping.places, mapping.unused, mapping.optional)


def timed(rule: Rule, steps: Sequence[str | int | None], unit_ms: int) -> Rule:
    """Returns a rule with an event time (see `with_time`)."""
    levels, parent, path = list(rule.levels), 0, list[str | int]()
    for step in steps:
        if step is not None:
            path.append(step)
            continue
        level = Level(parent, tuple(path))
        if level not in levels:
            levels.append(level)
        parent, path = levels.index(level) + 1, []
    return replace(rule, levels=tuple(levels), time=TimeMap(Reference(parent, tuple(path)), unit_ms))


def path_text(path: Iterable[str | int | None]) -> str:
    """Returns a path as people read it: ``a.b[0]``; the record itself is ``$``."""
    text = ""
    for step in path:
        if isinstance(step, str):
            text += f".{step}" if text else step
        else:
            text += "[*]" if step is None else f"[{step}]"
    return text or "$"
