"""Plans in which no fact has to do with another subject's: each task may run all of such a plan for its own subjects.

Known of each node are the columns of its rows in which the subject is of the facts that they come of, all of these
having the same one: so rows of two subjects meet in no join, group or set, and no update of a row concerns facts of
another. What a row of one subject may lead to is found by whoever has all facts of that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from squall.builders.distributed.exec.routing import bucket_of
from squall.builders.distributed.plan.shardability_reasons import Reason
from squall.model.windows import CountWindow
from squall.plan import Node, Plan
from squall.plan.operators import (
    AntiJoin,
    Cell,
    ConstantFilter,
    Construct,
    DerivedStream,
    Distinct,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Match,
    Operator,
    Project,
    Quad,
    Scan,
    Select,
    Sink,
    Slice,
    TableFunction,
    Union,
    Unit,
    Update,
    is_stateful,
)
from squall.plan.partitioning import derived_stream_columns, inputs_by_kind, template_of
from squall.rdf import Atom, Fact
from squall.rdf.row_tags import relation_tag_of

SubjectColumns = frozenset[int]
"""Columns of a node's rows, each of which holds the subject."""
_NONE: SubjectColumns = frozenset()


def shard_of(fact: Fact, shares: int) -> int:
    """The number of the share, of so many, in which a fact is: that of its subject; of an atom's first argument."""
    subject = (fact.relation, *fact.arguments)[:2][-1] if isinstance(fact, Atom) else fact.subject
    return bucket_of(subject, shares)


def why_not_shardable(plan: Plan) -> Reason | None:
    """Why one task has to have the facts of all subjects; None: it need not."""
    subjects = _SubjectAnalysis(plan)
    reasons = (Reason(node, what) for node in plan.nodes if (what := subjects.mixes(node)) is not None)
    return next(reasons, None)


class _SubjectAnalysis:
    """Where the subject is in the rows of a plan's nodes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @cached_property
    def known(self) -> Mapping[str, SubjectColumns]:
        """By the node. (The greatest fixpoint: facts that are read again are made of others, in the end of those that
        sources bring.)"""
        subject_columns = {node.id: frozenset(range(self.plan.widths[node.id])) for node in self.plan.nodes}
        has_changed = True
        while has_changed:
            has_changed = False
            for node in self.plan.nodes:
                places = subject_columns[node.id] & self._made(node, subject_columns)
                has_changed |= places != subject_columns[node.id]
                subject_columns[node.id] = places
        return subject_columns

    def _made(self, node: Node, subject_columns: Mapping[str, SubjectColumns]) -> SubjectColumns:
        """Where the subject is in what a node makes. known: the same of others, as far as it is known."""
        op = node.op
        input_columns = [subject_columns[edge.node] for edge in node.inputs]
        match op:
            case Scan(source=source):
                return frozenset([source.prefix_width])
            case Match(cells=cells):
                return _intersection(self._matched(cells, edge.node, subject_columns) for edge in node.inputs)
            case Join(on=on, keep=keep):
                right = frozenset(self.plan.widths[node.inputs[0].node] + place for place in input_columns[1])
                return _projected(keep, input_columns[0] | right) if _join_on_subject(on, *input_columns) else _NONE
            case LeftJoin(on=on, keep=keep):
                return _projected(keep, input_columns[0]) if _join_on_subject(on, *input_columns) else _NONE
            case AntiJoin(on=on):
                return input_columns[0] if _join_on_subject(on, *input_columns) else _NONE
            case Union():
                return _intersection(input_columns)
            case Distinct(by=by):
                return _intersection(input_columns) & frozenset(range(by))
            case Project(columns=cells) | Construct(template=cells) | Group(keys=cells):
                return _projected(cells, input_columns[0])
            case Select(columns=columns):
                return _projected((None, *columns), input_columns[0])
            case Slice(keys=keys):
                return input_columns[0] if input_columns[0] & {*keys} else _NONE
            case ConstantFilter() | Filter() | Extend() | TableFunction():
                return input_columns[0]
            case Update():
                return frozenset([0])
            case DerivedStream():
                return _intersection(self._read_again(op, edge.node, subject_columns) for edge in node.inputs)
        return _NONE

    def _matched(self, cells: Sequence[Cell], id: str, subject_columns: Mapping[str, SubjectColumns]) -> SubjectColumns:
        places: Collection[int] = subject_columns[id]
        read = self.plan.by_id[id].op
        if isinstance(read, Scan) and not read.source.prefix_width and relation_tag_of(cells) is not None:
            places = [1]  # an atom's first argument
        matched_cells = (cells[place] for place in places if place < len(cells))
        return frozenset(cell for cell in matched_cells if isinstance(cell, int))

    def _read_again(self, op: DerivedStream, id: str, subject_columns: Mapping[str, SubjectColumns]) -> SubjectColumns:
        """Where the subject is of facts that are told, as a stream that the program makes is read."""
        template = template_of(id, self.plan.by_id)
        derived_columns = (derived_stream_columns(op, template, (place,)) for place in subject_columns[id])
        return frozenset(place for places in derived_columns if places is not None for place in places)

    def mixes(self, node: Node) -> str | None:
        """For which reason a node needs facts of several subjects; None: it does not."""
        op = node.op
        match op:
            case Scan(source=source) if any(isinstance(window, CountWindow) for window in source.all_windows):
                return "reads through a window of triples"
            case Unit():
                consumers = (self.plan.by_id[id].op for id, _ in self.plan.consumers[node.id])
                return None if all(map(_is_ground, consumers)) else "holds for all subjects"
            case Update():
                input_columns = _intersection(self.known[edge.node] for edge in node.inputs)
                return (
                    None
                    if _is_ground(op) or _keeps_subject(op, input_columns)
                    else "acts on other subjects than that of its row"
                )
            case Sink(output="rstream") | DerivedStream(output="rstream"):
                return "is told whole"
            case DerivedStream() if (
                isinstance(op.source.window, CountWindow) or op.source.prefix_width not in self.known[node.id]
            ):
                return "makes a stream of facts of other subjects"
            case Sink() | DerivedStream():
                return None if self._tell_apart(node) else "tells what may come of several subjects"
        return "brings several subjects together" if is_stateful(op) and not self.known[node.id] else None

    def _tell_apart(self, node: Node) -> bool:
        """Whether what two subjects lead to is not the same."""
        kinds = inputs_by_kind(node, self.plan.by_id).values()
        return all(_intersection(self.known[node.inputs[port].node] for port in ports) for ports in kinds)


def _intersection(places: Iterable[SubjectColumns]) -> SubjectColumns:
    """Those in which it is in all rows of some inputs."""
    place_sets = list(places)
    return frozenset.intersection(*place_sets) if place_sets else _NONE


def _projected(cells: Sequence[object], places: SubjectColumns) -> SubjectColumns:
    return frozenset(place for place, cell in enumerate(cells) if isinstance(cell, int) and cell in places)


def _join_on_subject(on: Iterable[tuple[int, int]], left: SubjectColumns, right: SubjectColumns) -> bool:
    """Whether rows that are joined are of one subject."""
    return any(left_column in left and right_column in right for left_column, right_column in on)


def _is_ground(op: Operator) -> bool:
    """Whether an update does nothing but to insert what is there from the start."""
    return isinstance(op, Update) and op.initial and not op.deletes


def _keeps_subject(op: Update, places: SubjectColumns) -> bool:
    """Whether all that an update inserts or deletes has the subject of its row."""
    quads: tuple[Quad, ...] = (*op.deletes, *op.inserts)
    return all(isinstance(subject, int) and subject in places for _, subject, _, _ in quads)
