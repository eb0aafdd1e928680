"""Fact shapes: the constants of patterns and templates, and which facts that rules derive may match which patterns."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

from squall.model import (
    ARRIVAL,
    GRAPH,
    Arrivals,
    AtomPattern,
    Construct,
    FactPattern,
    Graphs,
    Occurrences,
    Pattern,
    Source,
    System,
)
from squall.rdf import Term, iri
from squall.rdf.row_tags import QUAD_TAG, relation_tag, relation_tag_of

Shape = tuple[Term | None, ...]
"""The constants of a pattern or a template, None for variables. An atom starts with its relation, tagged ``@``."""


def shape(pattern: FactPattern) -> Shape:
    """Returns the shape of a pattern."""
    match pattern:
        case Pattern():
            return tuple(slot if isinstance(slot, str) else None for slot in pattern.slots)
        case AtomPattern(relation=relation):
            return (relation_tag(relation), *(slot if isinstance(slot, str) else None for slot in pattern.slots))


def overlaps(left: Shape, right: Shape) -> bool:
    """Returns whether some fact has both shapes. Literals agree by value (semantics.md 5)."""
    return (
        len(left) == len(right)
        and (relation_tag_of(left) is None) == (relation_tag_of(right) is None)
        and all(map(_agree, left, right))
    )


def _agree(left: Term | None, right: Term | None) -> bool:
    if left is None or right is None or left == right:
        return True
    return left[0] == right[0] == '"' and _value(left) == _value(right)


def _value(constant: Term | None) -> Hashable:
    """Returns what two constants share if they agree; None for a variable."""
    if constant is None or constant[0] != '"':
        return constant
    from squall.functions.values import value_key

    return value_key(constant)


T = TypeVar("T")


class Shapes(Generic[T]):
    """An index of items by shape. It is searched by the predicate (of an atom: the relation) and the last cell."""

    def __init__(self) -> None:
        self._groups: dict[Term | None, dict[Hashable, list[tuple[Shape, T]]]] = {}

    def add(self, item_shape: Shape, item: T) -> None:
        """Adds an item with its shape."""
        self._groups.setdefault(_predicate(item_shape), {}).setdefault(_value(item_shape[-1]), []).append(
            (item_shape, item)
        )

    def overlapping(self, shape: Shape) -> Iterator[T]:
        """Yields the items whose shape has a fact in common with this one."""
        for group in _near(self._groups, _predicate(shape)):
            for items in _near(group, _value(shape[-1])):
                yield from (item for item_shape, item in items if overlaps(item_shape, shape))


def _predicate(shape: Shape) -> Term | None:
    """Returns the constant that the index uses first. Shapes with different constants have no fact in common; None
    matches all.
    """
    return relation_tag_of(shape) or shape[1]


def _near(table: dict[Any, T], key: Hashable) -> Iterator[T]:
    if key is None:
        yield from table.values()
    else:
        yield from (table[candidate] for candidate in (key, None) if candidate in table)


def derived_shapes(rule: System) -> Iterator[Shape]:
    """Yields the shapes of the facts that a rule derives."""
    for consequence in rule.consequences:
        if isinstance(consequence, Construct):
            yield from map(shape, consequence.template)


def stream_shapes(rule: System, stream: str) -> Iterator[tuple[Shape, str | None]]:
    """Yields the shapes in which sources read the facts of a rule's answer, if these are a derived stream.

    Each comes with the name of the graph that the facts are in (see `split_graph`).
    """
    for consequence in rule.consequences:
        if isinstance(consequence, Construct) and not consequence.internal:
            for template in consequence.template:
                fact_shape = shape(template)
                for source in (Source(stream), Graphs(stream), Arrivals(stream), Occurrences(stream)):
                    yield from (
                        (read_shape, split_graph(fact_shape)[0]) for read_shape in shapes_read(fact_shape, source)
                    )


def split_graph(shape: Shape) -> tuple[str | None, Shape]:
    """Returns the name of the graph that facts of a shape are in, and the shape without it.

    The name is ``""`` for the default graph, and None if it may be any graph.
    """
    return (shape[1], shape[2:]) if shape[0] == QUAD_TAG else ("", shape)


def may_affect(source: Source, stream: str) -> bool:
    """Returns whether a source may read or count what a stream brings."""
    return source.follows(stream) or may_read(source, stream, None)


def shapes_read(shape: Shape, source: Source) -> tuple[Shape, ...]:
    """Returns the shapes in which a source of a stream reads the facts of a shape. There are none if it does not read
    them.
    """
    graph, triple = split_graph(shape)
    if not may_read(source, source.stream, graph):
        return ()
    only = source.only if isinstance(source, Graphs) else ""
    names: list[Term | None] = [] if only == "graphs" else [iri(source.stream)]
    if graph != "" and only != "streams":
        names.append(None if graph is None else Term(graph))
    match source:
        case Graphs():
            return tuple((relation_tag(GRAPH), name, *triple) for name in names)
        case Occurrences():
            is_atom = relation_tag_of(triple) is not None
            return ((triple[0], None, *triple[1:]),) if is_atom else ()
        case Arrivals():
            return tuple((relation_tag(ARRIVAL), name, None, *triple) for name in names)
        case _:
            return (triple,)


def may_read(source: Source, stream: str, graph: str | None) -> bool:
    """Returns whether a source reads what a stream brings in a graph (see `split_graph`)."""
    graphs = (graph,) if graph is not None else (iri(source.iri), "_:any")
    return any(source.reads(stream, graph_name) for graph_name in graphs)
