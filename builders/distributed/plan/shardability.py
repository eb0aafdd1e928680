"""Shardability: whether each task can run the whole plan for its own subjects (co-partitioning analysis).

A plan is shardable if no fact depends on facts of another subject. The analysis finds, for each node, the columns of
its rows that hold the subject of all facts that the row comes from. If every stateful node has such a column, rows of
two subjects never meet in a join, group or `Distinct`, and no update of a row concerns facts of another subject. So the
task that has all facts of a subject finds everything that follows from them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from squall.builders.distributed.plan.buckets import bucket_of
from squall.plan import Node, Plan
from squall.plan.operators import (
    Cell,
    DerivedStream,
    Distinct,
    Match,
    Operator,
    Quad,
    Scan,
    Sink,
    Unit,
    Update,
    is_stateful,
)
from squall.plan.partitioning import derived_stream_columns, inputs_by_kind, template_of
from squall.rdf import Atom, Fact
from squall.rdf.row_tags import relation_tag_of

SubjectColumns = frozenset[int]
"""The columns of a node's rows that hold the subject."""
_NONE: SubjectColumns = frozenset()


class Reason(NamedTuple):
    """Why a plan runs as it does: one of its nodes, and what that node does."""

    node: Node
    what: str

    def __str__(self) -> str:
        return f"{self.node.id} {self.what}"


def shard_of(fact: Fact, shards: int) -> int:
    """Returns the number of the shard, of so many, that a fact belongs to: by its subject, or by the first argument of
    an atom."""
    subject = (fact.relation, *fact.arguments)[:2][-1] if isinstance(fact, Atom) else fact.subject
    return bucket_of(subject, shards)


def why_not_shardable(plan: Plan) -> Reason | None:
    """Returns why one task needs the facts of all subjects, or None if the plan is shardable."""
    for node in plan.nodes:
        if isinstance(node.op, Scan) and node.op.source.follows_links:
            return Reason(node, "reads facts of one subject by links that another one has")
    subjects = _SubjectAnalysis(plan)
    reasons = (Reason(node, what) for node in plan.nodes if (what := subjects.why_mixed(node)) is not None)
    return next(reasons, None)


class _SubjectAnalysis:
    """Finds the subject columns of a plan's nodes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @cached_property
    def columns(self) -> Mapping[str, SubjectColumns]:
        """The subject columns by node. (They are the greatest fixpoint, since derived facts come in the end from those
        of sources.)"""
        subject_columns = {node.id: frozenset(range(self.plan.widths[node.id])) for node in self.plan.nodes}
        has_changed = True
        while has_changed:
            has_changed = False
            for node in self.plan.nodes:
                places = subject_columns[node.id] & self._output_columns(node, subject_columns)
                has_changed |= places != subject_columns[node.id]
                subject_columns[node.id] = places
        return subject_columns

    def _output_columns(self, node: Node, subject_columns: Mapping[str, SubjectColumns]) -> SubjectColumns:
        """Returns the subject columns of a node's output. subject_columns: those of other nodes so far."""
        op, widths = node.op, [self.plan.widths[edge.node] for edge in node.inputs]
        input_columns = [subject_columns[edge.node] for edge in node.inputs]
        match op:
            case Scan(source=source):
                return frozenset([source.prefix_width]) if source.cliques is None else _NONE  # it has representatives
            case Update():
                return frozenset([0])
            case Match(cells=cells):
                return _intersection(self._matched(cells, edge.node, subject_columns) for edge in node.inputs)
            case DerivedStream():
                return _intersection(self._read_again(op, edge.node, subject_columns) for edge in node.inputs)
            case Distinct(by=by):
                columns = _intersection(input_columns) & frozenset(range(by))
            case _ if op.join_keys:
                columns = _joined_columns(op, widths, input_columns)
            case _:
                columns = _intersection(input_columns)
                if is_stateful(op) and columns.isdisjoint(op.grouping(widths[0] if widths else 0)):
                    columns = _NONE
        return _projected(op.copied(widths), columns) - {*op.unbinds(widths)}

    def _matched(self, cells: Sequence[Cell], id: str, subject_columns: Mapping[str, SubjectColumns]) -> SubjectColumns:
        places: Collection[int] = subject_columns[id]
        read = self.plan.by_id[id].op
        if isinstance(read, Scan) and not read.source.prefix_width and relation_tag_of(cells) is not None:
            places = [1] if places else []  # an atom's first argument
        matched_cells = (cells[place] for place in places if place < len(cells))
        return frozenset(cell for cell in matched_cells if isinstance(cell, int))

    def _read_again(self, op: DerivedStream, id: str, subject_columns: Mapping[str, SubjectColumns]) -> SubjectColumns:
        """Returns the subject columns of output facts as a derived stream is read."""
        template = template_of(id, self.plan.by_id)
        derived_columns = (derived_stream_columns(op, template, (place,)) for place in subject_columns[id])
        return frozenset(place for places in derived_columns if places is not None for place in places)

    def why_mixed(self, node: Node) -> str | None:
        """Returns why a node needs facts of several subjects, or None if it does not."""
        op = node.op
        match op:
            case Scan(source=source) if any(window.mixes_subjects for window in source.all_windows):
                return "reads through a window that follows its stream"
            case Unit():
                consumers = (self.plan.by_id[id].op for id, _ in self.plan.consumers[node.id])
                return None if all(map(_is_ground, consumers)) else "holds for all subjects"
            case Update():
                input_columns = _intersection(self.columns[edge.node] for edge in node.inputs)
                return (
                    None
                    if _is_ground(op) or _keeps_subject(op, input_columns)
                    else "acts on other subjects than that of its row"
                )
            case Sink() | DerivedStream():
                return self._why_output_mixed(node, op)
            case _ if op.is_event_time and op.join_keys:
                return "takes rows of several inputs in the order of time"
        return "brings several subjects together" if is_stateful(op) and not self.columns[node.id] else None

    def _why_output_mixed(self, node: Node, op: Sink | DerivedStream) -> str | None:
        """Returns why an output needs facts of several subjects, or None if two never lead to the same one."""
        if op.output == "rstream":
            return "outputs snapshots"
        if isinstance(op, DerivedStream):
            source = op.source
            if source.window.is_sequential or source.prefix_width not in self.columns[node.id]:
                return "derives a stream with facts of other subjects"
        kinds = inputs_by_kind(node, self.plan.by_id).values()
        is_distinct = all(_intersection(self.columns[node.inputs[port].node] for port in ports) for ports in kinds)
        return None if is_distinct else "outputs what several subjects may lead to"


def _intersection(places: Iterable[SubjectColumns]) -> SubjectColumns:
    """Returns the columns that hold the subject in all inputs."""
    place_sets = list(places)
    return frozenset.intersection(*place_sets) if place_sets else _NONE


def _projected(cells: Sequence[object], places: SubjectColumns) -> SubjectColumns:
    return frozenset(place for place, cell in enumerate(cells) if isinstance(cell, int) and cell in places)


def _joined_columns(op: Operator, widths: Sequence[int], places: Sequence[SubjectColumns]) -> SubjectColumns:
    """Returns the subject columns of the rows of all inputs one after the other, if rows that meet have the same
    subject. widths, places: the widths and the subject columns of the inputs.
    """
    if not any(all(map(frozenset.__contains__, places, key)) for key in zip(*op.join_keys, strict=True)):
        return _NONE
    starts = (op.first_column(port, widths) for port in range(len(widths)))
    return frozenset(start + column for start, columns in zip(starts, places, strict=True) for column in columns)


def _is_ground(op: Operator) -> bool:
    """Returns whether an operator is an update that only inserts initial facts."""
    return isinstance(op, Update) and op.initial and not op.deletes


def _keeps_subject(op: Update, places: SubjectColumns) -> bool:
    """Returns whether all quads that an update inserts or deletes have the subject of its row."""
    quads: tuple[Quad, ...] = (*op.deletes, *op.inserts)
    return all(isinstance(subject, int) and subject in places for _, subject, _, _ in quads)
