"""Where columns of rows are, in the rows that are made of them; and where facts have their subjects.

What lies together by some columns of a node's input lies so by those, in what the node makes. Planners choose grouping
columns by it, distributed builders where rows move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from squall.model.windows import CountWindow
from squall.plan import Node
from squall.plan.operators import (
    ConstantFilter,
    Construct,
    DerivedStream,
    Distinct,
    Expression,
    Extend,
    Filter,
    Match,
    Operator,
    Project,
    Select,
    Sink,
    TableFunction,
    columns_of,
    moved,
)
from squall.rdf import Term
from squall.rdf.row_tags import QUAD_MARK, answer_mark, mark_of

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
        case Construct(template=template):
            return places(template, columns)
        case Select(columns=shown):
            return places((None, *shown), columns)
        case ConstantFilter() | Filter() | Extend() | TableFunction():
            return columns
        case Project(columns=kept):
            return places(kept, columns)
    return None


def template_of(id: str, by_id: Mapping[str, Node]) -> Sequence[int | Term] | None:
    """The template of the facts that a rule makes, or of those that are made unique: these have one shape. None: it is
    a node of another kind."""
    node = by_id[id]
    match node.op:
        case Construct(template=template):
            return template
        case Distinct():
            return template_of(node.inputs[0].node, by_id)
    return None


def kind_of(id: str, by_id: Mapping[str, Node]) -> str:
    """How the rows of a node begin, of which those that are told may be alike: with the mark of a query, or with that
    of a relation; "": they are triples."""
    op, template = by_id[id].op, template_of(id, by_id)
    return answer_mark(op) if isinstance(op, Select) else (template and mark_of(template)) or ""


def is_sequence(told: DerivedStream | Sink, made: Iterable[Operator]) -> bool:
    """Whether rows of one kind that some operators make are told only if another sequence is to be told, which none of
    their parts can say: rows are put in order by what is not told of them, or in several orders."""
    if told.output != "rstream" or told.report.policy != "change":
        return False
    orders = {_told_order(op) for op in made if isinstance(op, Select)}
    return None in orders or len(orders) > 1


def _told_order(op: Select) -> tuple[tuple[Expression, bool], ...] | None:
    """The order of solutions by their values; None: it depends on what they do not have."""
    if any(column not in op.columns for value, _ in op.order for column in columns_of(value)):
        return None
    places = {column: place for place, column in enumerate(op.columns)}
    return tuple((moved(value, places), falls) for value, falls in op.order)


def is_whole(op: DerivedStream) -> bool:
    """Whether what a stream brings depends on all of its facts, which have to be in one place: on their order, or on
    whether any of them has changed."""
    return isinstance(op.source.window, CountWindow) or op.report.policy == "change"


def inputs_by_kind(node: Node, by_id: Mapping[str, Node]) -> Mapping[str, Sequence[int]]:
    """The numbers of the inputs of a node that tells rows, by `kind_of` what they bring."""
    found: dict[str, list[int]] = {}
    for port, edge in enumerate(node.inputs):
        found.setdefault(kind_of(edge.node, by_id), []).append(port)
    return found


def subject_in(template: Sequence[int | Term] | None) -> int:
    """The column of a fact's row in which its subject is; of an atom, its first argument. None: of a triple's."""
    if template is None or (mark := mark_of(template)) is None:
        return 0
    return 2 if mark == QUAD_MARK else min(1, len(template) - 1)


def read_again(op: DerivedStream, template: Sequence[int | Term] | None, columns: Columns) -> Columns | None:
    """Where columns of the facts of a template are in the rows as which a stream that is made (a `DerivedStream`) is read. None:
    they are not there, or it is not known."""
    if template is None or not (op.source.is_plain or op.source.begins):
        return None
    before = 2 if mark_of(template) == QUAD_MARK else 0
    if any(column < before for column in columns):
        return None
    return tuple(column - before + op.source.begins for column in columns)
