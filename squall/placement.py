"""Where columns of rows are, in the rows that are made of them; and where facts have their subjects.

What lies together by some columns of a node's input lies so by those, in what the node makes. Planners choose grouping
columns by it, distributed builders where rows move.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from squall.operators import (
    QUAD_MARK,
    Answer,
    Apply,
    Distinct,
    Emit,
    Extend,
    Feed,
    Match,
    Operator,
    Project,
    Test,
    Where,
    mark_of,
)
from squall.plan import Node
from squall.rdf import Term
from squall.system import Arrivals, Graphs

Columns = tuple[int, ...]


def places(cells: Sequence[object], columns: Columns) -> Columns | None:
    """Where some columns are among cells; None: not all are."""
    return tuple(map(cells.index, columns)) if all(column in cells for column in columns) else None


def through(op: Operator, columns: Columns | None) -> Columns | None:
    """Where columns of the rows that come to an operator without memory are in those that it makes. None: there are
    none, or not all are there."""
    if columns is None:
        return None
    match op:
        case Match(cells=cells):
            found = tuple(cells[column] for column in columns if column < len(cells))
            numbers = tuple(cell for cell in found if isinstance(cell, int))
            return numbers if len(numbers) == len(columns) else None
        case Emit(template=template):
            return places(template, columns)
        case Answer(columns=shown):
            return places((None, *shown), columns)
        case Where() | Test() | Extend() | Apply():
            return columns
        case Project(columns=kept):
            return places(kept, columns)
    return None


def template_of(id: str, by_id: Mapping[str, Node]) -> Sequence[int | Term] | None:
    """The template of the facts that a rule makes, or of those that are made unique: these have one shape. None: it is
    a node of another kind."""
    node = by_id[id]
    match node.op:
        case Emit(template=template):
            return template
        case Distinct():
            return template_of(node.inputs[0].node, by_id)
    return None


def kind_of(id: str, by_id: Mapping[str, Node]) -> Hashable:
    """What is the same of all rows that are told and may be alike: of a query's solutions the query, of atoms the mark
    of their relation, of triples None."""
    op, template = by_id[id].op, template_of(id, by_id)
    if isinstance(op, Answer):
        return op.names, op.rules[:1], op.asks
    return None if template is None else mark_of(template)


def subject_in(template: Sequence[int | Term] | None) -> int:
    """The column of a fact's row in which its subject is; of an atom, its first argument. None: of a triple's."""
    mark = None if template is None else mark_of(template)
    if mark is None or template is None:
        return 0
    return 2 if mark == QUAD_MARK else min(1, len(template) - 1)


def as_read(op: Feed, template: Sequence[int | Term] | None, columns: tuple[int, ...]) -> tuple[int, ...] | None:
    """Where columns of the facts of a template are in the rows as which a stream that is made (a `Feed`) is read. None:
    they are not there, or it is not known."""
    before = 2 if template is not None and mark_of(template) == QUAD_MARK else 0
    source = op.source
    behind = 2 if isinstance(source, Graphs) else 3 if isinstance(source, Arrivals) else 0
    if template is None or not (source.is_plain or behind) or any(column < before for column in columns):
        return None
    return tuple(column - before + behind for column in columns)
