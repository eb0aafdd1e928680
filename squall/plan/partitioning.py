"""Partitioning properties of operators: where input columns are in output rows, and where facts have their subjects.

If the input of a node is partitioned by some columns, its output is partitioned by the same columns at their new
places. Planners choose partitioning columns by this, and distributed builders find out which rows have to be shuffled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from squall.plan import Node
from squall.plan.operators import (
    Construct,
    DerivedStream,
    Distinct,
    Expression,
    Match,
    Operator,
    Select,
    Sink,
    Union,
    columns_of,
    remap_columns,
    select_tag,
)
from squall.rdf import Term
from squall.rdf.row_tags import QUAD_TAG, relation_tag_of

Columns = tuple[int, ...]


def positions(cells: Sequence[object], columns: Columns) -> Columns | None:
    """Returns the positions of some columns among cells, or None if some are not there."""
    return tuple(map(cells.index, columns)) if all(column in cells for column in columns) else None


def output_columns(op: Operator, columns: Columns | None) -> Columns | None:
    """Returns where columns of the input rows are in the output rows of a stateless operator, or None if not all are
    there.
    """
    if columns is None or isinstance(op, Union):  # the inputs of a union may be partitioned by different columns
        return None
    if isinstance(op, Match):
        cells = tuple(op.cells[column] for column in columns if column < len(op.cells))
        numbers = tuple(cell for cell in cells if isinstance(cell, int))
        return numbers if len(numbers) == len(columns) else None
    return positions(op.copied((1 + max(columns, default=-1),)), columns)


def template_of(id: str, by_id: Mapping[str, Node]) -> Sequence[int | Term] | None:
    """Returns the template of the facts that a node outputs, which a `Distinct` shares with its inputs, or None."""
    node = by_id[id]
    match node.op:
        case Construct(template=template):
            return template
        case Distinct():
            return template_of(node.inputs[0].node, by_id)
    return None


def kind_of(id: str, by_id: Mapping[str, Node]) -> str:
    """Returns the tag with which the rows of a node begin: that of a query or of a relation, or ``""`` for triples.

    Among the inputs of a sink only rows of one kind may be equal.
    """
    op, template = by_id[id].op, template_of(id, by_id)
    return select_tag(op) if isinstance(op, Select) else (template and relation_tag_of(template)) or ""


def is_sequence(op: DerivedStream | Sink, inputs: Iterable[Operator]) -> bool:
    """Returns whether rows of one kind are output only if their whole sequence has changed.

    No partition can tell that by itself: the rows are sorted by columns that are not output, or in several orders.
    """
    if op.output != "rstream" or not op.report.only_changes:
        return False
    orders = {_output_order(input) for input in inputs if isinstance(input, Select)}
    return None in orders or len(orders) > 1


def _output_order(op: Select) -> tuple[tuple[Expression, bool], ...] | None:
    """Returns the sort order of solutions over their output columns, or None if it depends on columns that are not
    output.
    """
    if any(column not in op.columns for value, _ in op.order for column in columns_of(value)):
        return None
    positions = {column: place for place, column in enumerate(op.columns)}
    return tuple((remap_columns(value, positions), falls) for value, falls in op.order)


def is_whole(op: DerivedStream) -> bool:
    """Returns whether what a stream brings depends on all of its facts together: on their order, or on any change in
    them.

    Such a stream needs a single partition.
    """
    return op.source.window.is_sequential or op.report.only_changes


def inputs_by_kind(node: Node, by_id: Mapping[str, Node]) -> Mapping[str, Sequence[int]]:
    """Groups the inputs (by number) of a node that outputs rows by `kind_of` their rows."""
    ports: dict[str, list[int]] = {}
    for port, edge in enumerate(node.inputs):
        ports.setdefault(kind_of(edge.node, by_id), []).append(port)
    return ports


def subject_column(template: Sequence[int | Term] | None) -> int:
    """Returns the column of the subject in a fact's row; of an atom, that of its first argument. None means a
    triple.
    """
    if template is None or (tag := relation_tag_of(template)) is None:
        return 0
    return 2 if tag == QUAD_TAG else min(1, len(template) - 1)


def derived_stream_columns(
    op: DerivedStream, template: Sequence[int | Term] | None, columns: Columns
) -> Columns | None:
    """Returns where columns of a template's facts are in the rows of a `DerivedStream`; None means unknown."""
    if template is None or op.source.cliques is not None or not (op.source.is_plain or op.source.prefix_width):
        return None
    tag = relation_tag_of(template)
    prefix = 2 if tag == QUAD_TAG else 0
    if any(column < prefix for column in columns):
        return None
    is_atom = tag not in (None, QUAD_TAG)  # whose relation stays in front of what the source puts before its terms
    return tuple(column if is_atom and column == 0 else column - prefix + op.source.prefix_width for column in columns)
