"""Scans: events through windows become deltas (stream to relation; semantics.md, sections 1 and 2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import attrgetter, ge

from squall.builders.runtime.operators.state import SlotChanges, Stateful, sum_weights
from squall.builders.runtime.operators.valid_facts import Arrival, ValidFacts, change_of
from squall.builders.runtime.operators.window_contents import WindowContents
from squall.builders.runtime.schema_changes import describe_schema, refuse_other_cliques, refuse_schema_change
from squall.builders.runtime.tuning import DEFAULT_TUNING, Tuning
from squall.builders.runtime.zset import Boxes, ColumnarPairs, Delta, fact_row
from squall.errors import SourceError
from squall.model import Source
from squall.model.fixed_schema import FixedSchema
from squall.model.windows import Window
from squall.plan import Plan
from squall.plan.operators import DerivedStream, Match, Operator, Scan, Sink, Update
from squall.rdf import ALWAYS, FOREVER, Columns, Event, Fact, Term, Triple, iri
from squall.rdf.cliques import SAME_AS, renamed

_PLACE = attrgetter("stream", "graph")
MAX_PREDICATES_IN_COLUMNS = 4
"""Triples stay in columns, until their predicate is asked for, if a plan reads so many predicates or fewer. Otherwise
one loop divides them by predicate."""


@dataclass
class ScannedFacts:
    """The facts of some events as deltas.

    Attributes:
        boxes: Triples by predicate, of the predicates that the plan uses.
        triples: All triples with an empty rule name, if the plan needs all.
        atoms: All atoms with an empty rule name, if the plan needs atoms.
        columnar: The triples by predicate in place of `boxes`, if they stay in columns.
    """

    boxes: Boxes = field(default_factory=dict)
    triples: list[Delta] = field(default_factory=list)
    atoms: list[Delta] = field(default_factory=list)
    columnar: Mapping[Term, ColumnarPairs] = field(default_factory=dict)

    def put(self, deltas: Iterable[Delta], predicates: Collection[Term], all_triples: bool, with_atoms: bool) -> None:
        """Adds deltas of any facts."""
        for delta in deltas:
            if delta[0][0] == "@":
                if with_atoms:
                    self.atoms.append(delta)
                continue
            if all_triples:
                self.triples.append(delta)
            if delta[1] in predicates:
                self.boxes.setdefault(delta[1], []).append((delta[0], delta[2], *delta[4:]))


Validity = Callable[[int], tuple[int, int]]
"""Maps the time of an event to the interval over which its facts are valid."""


Place = tuple[str, str, bool]
"""The stream and the named graph ("": none) of events, and whether they are static data."""


def places_of(events: Sequence[Event]) -> set[Place]:
    """Returns the places of events, which are in the order of time."""
    if type(events) is Columns:  # exactly, since `isinstance` of an abstract class runs Python code
        return {(events.stream, "", time == ALWAYS) for time in (events.times[0], events.times[-1])}
    is_static = {event.time == ALWAYS for event in (events[0], events[-1])} if events else ()
    return {(stream, graph, static) for stream, graph in set(map(_PLACE, events)) for static in is_static}


def _not_read(time: int) -> tuple[int, int]:
    """Marks a stream that the node does not read."""
    raise NotImplementedError


def _end_unknown(time: int) -> tuple[int, int]:
    """Marks a stream whose facts may end earlier than their window says."""
    raise NotImplementedError


def predicates_used(plan: Plan) -> frozenset[Term] | None:
    """Returns the predicates of the triples that a plan uses; None if it uses any, or if each triple counts."""
    predicates: set[Term] = set()
    for node in plan.nodes:
        if isinstance(node.op, Update) or _counts(node.op):
            return None
        if isinstance(node.op, Scan):
            if node.op.fixed_schema is not None:
                predicates |= node.op.fixed_schema.read_predicates
            if node.op.source.cliques is not None:
                predicates.add(SAME_AS)
            if node.op.source.removals or node.op.source.is_sequential:
                return None
            for id, _ in plan.consumers[node.id]:
                op = plan.by_id[id].op
                if not isinstance(op, Match) or len(op.cells) != 3 or not isinstance(op.cells[1], str):
                    return None
                predicates.update(node.op.source.names_of(Term(op.cells[1])))
    return frozenset(predicates)


def _counts(op: Operator) -> bool:
    """Returns whether the instants of an rstream depend on all triples, whichever they are."""
    sources = op.sources if isinstance(op, Sink | DerivedStream) and op.output == "rstream" else ()
    return any(source.is_sequential for source in sources)


def predicates_to_read(plan: Plan) -> frozenset[Term] | None:
    """Returns the predicates of the triples that a reader has to deliver for a plan; None for any."""
    return None if emits_snapshots(plan) else predicates_used(plan)


def emits_snapshots(plan: Plan) -> bool:
    """Returns whether each event may be an evaluation instant of an rstream."""
    return any(isinstance(node.op, Sink | DerivedStream) and node.op.output == "rstream" for node in plan.nodes)


def unexpected_removal(event: Event) -> SourceError:
    """Returns the error for a removal in a stream that was not declared to have any."""
    return SourceError(
        f"the stream `{event.stream}` carries a removal at {event.time}",
        hint="declare that the source has removals (`removals`), so that the plan supports them",
    )


def foreign_event(event: Event) -> SourceError:
    """Returns the error for an event from elsewhere in a derived stream that does not admit it."""
    if event.removed:
        return SourceError(
            f"the derived stream `{event.stream}` carries a removal at {event.time}",
            hint="only the program can retract what it derives: send removals in a stream of their own",
        )
    return SourceError(
        f"the derived stream `{event.stream}` brings an event from elsewhere at {event.time}",
        hint="its window follows derived triples only: send others in a stream of their own, or read it through a time "
        "window (`RANGE`) whose steps do not begin with the first triple",
    )


def facts_read(source: Source, event: Event, is_derived: bool = False) -> list[Fact]:
    """Returns the facts of an event as patterns read them through a source.

    Args:
        source: The source.
        event: The event.
        is_derived: Whether its stream is a derived stream.
    """
    return [
        fact_read
        for fact in event.facts
        for fact_read in source.facts_read(fact, event.stream, event.time, event.graph, is_derived)
    ]


class ScanOperator(Stateful):
    """Reads the events of one `Scan` node.

    Args:
        source: The streams and windows to read.
        predicates: The predicates that the plan uses.
        reads_all_triples: Whether the plan uses triples of any predicate.
        reads_atoms: Whether the plan uses atoms.
        tracks_facts: Whether facts may be removed, so that the operator keeps those that are valid.
        deletes_static: Whether updates may remove facts, static data included.
        is_derived: Whether the operator reads a derived stream, which has no static data.
        derived_streams: The derived streams of the program. Other events may not come in them through windows that
            follow a stream, and nobody else may remove their facts.
        fixed_schema: The schema that facts must not change, if any.
        tuning: The tuning values of the runtime.
    """

    kind = "scan"

    def __init__(
        self,
        source: Source,
        predicates: Collection[Term],
        reads_all_triples: bool,
        reads_atoms: bool,
        tracks_facts: bool,
        deletes_static: bool = False,
        is_derived: bool = False,
        derived_streams: Collection[str] = (),
        fixed_schema: FixedSchema | None = None,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        super().__init__()
        self.source = source
        self.predicates = predicates if fixed_schema is None else fixed_schema.read_predicates.union(predicates)
        self.reads_all_triples = reads_all_triples
        self.reads_atoms = reads_atoms
        self.is_derived = is_derived
        self.derived_streams = derived_streams
        self.fixed_schema = fixed_schema
        self.validity_by_stream: dict[str | tuple[str, str, bool], Validity] = {}
        """How the events of each stream are read; in a named graph, by (stream, graph, whether the event is static)."""
        self.valid_facts = ValidFacts(tracks_facts, deletes_static, tuning.min_rows_to_sweep)
        self.followed = WindowContents(source, self.entries, self.note)

    def read(self, events: Sequence[Event]) -> ScannedFacts:
        """Returns the facts of events, which come in the order of time.

        Every statement of every stream passes here. Most are of no interest and have to cost little.
        """
        # One loop for all cases, since a call for each event would cost more than the rest.
        boxes: defaultdict[Term, list[Delta]] = defaultdict(list)
        facts, predicates, is_plain = ScannedFacts(boxes), self.predicates, self.source.is_plain
        cliques = self.source.cliques
        if cliques is not None:
            refuse_other_cliques(self.source, events)
        for event in events:
            time, event_facts, stream, removals, graph = event
            if graph:
                validity = self._validity(stream, graph, event.is_static and not self.is_derived)
            else:
                validity = self.validity_by_stream.get(stream) or self._validity(stream)
            if validity is _not_read:
                continue
            if validity is _end_unknown or removals:
                facts.put(self._tracked(event), predicates, self.reads_all_triples, self.reads_atoms)
                continue
            start, end = (ALWAYS, FOREVER) if time == ALWAYS else validity(time)
            if start >= end:
                continue
            if not is_plain:
                self._add_facts(facts_read(self.source, event, self.is_derived), start, end, facts)
                continue
            if cliques is not None:
                event_facts = tuple(cliques.facts(event_facts))
            for fact in event_facts:
                if (predicate := fact[1]) in predicates:
                    boxes[predicate].append((fact[0], fact[2], start, end, 1))  # type: ignore[index, misc]
            if self.reads_all_triples or self.reads_atoms:
                self._add_facts(event_facts, start, end, facts)
        facts.put(self.followed.drain_new(), predicates, self.reads_all_triples, self.reads_atoms)
        if self.fixed_schema is not None and (not is_plain or describe_schema(boxes, self.fixed_schema)):
            refuse_schema_change(self.fixed_schema, self.source, events)
        return facts

    def read_columns(self, columns: Columns) -> ScannedFacts:
        """Returns the facts of columnar events. It does the same as `read` with less work per triple."""
        validity = self.validity_by_stream.get(columns.stream) or self._validity(columns.stream)
        if (
            validity in (_not_read, _end_unknown)
            or self.reads_all_triples
            or self.reads_atoms
            or not self.source.is_plain
        ):
            return self.read(columns)
        starts, ends = self._window(columns.stream).validities(columns.times)
        if any(map(ge, starts, ends)):
            return self.read(columns)
        if self.source.cliques is not None:
            if SAME_AS in columns.predicates:
                return self.read(columns)
            columns = self.source.cliques.columns(columns)
        if len(self.predicates) <= MAX_PREDICATES_IN_COLUMNS and not columns.period and self.fixed_schema is None:
            return ScannedFacts(columnar=_columnar_pairs(columns, starts, ends, self.predicates))
        boxes = _divided(columns, starts, ends, self.predicates)
        if self.fixed_schema is not None and describe_schema(boxes, self.fixed_schema):
            refuse_schema_change(self.fixed_schema, self.source, columns)
        return ScannedFacts(boxes)

    def _add_facts(self, event_facts: Sequence[Fact], start: int, end: int, facts: ScannedFacts) -> None:
        if self.reads_all_triples:
            suffix = ("", start, end, 1)
            facts.triples += [fact + suffix for fact in event_facts if isinstance(fact, Triple)]
        if self.reads_atoms:
            facts.atoms += [(*fact_row(fact), start, end, 1) for fact in event_facts if not isinstance(fact, Triple)]

    def _validity(self, stream: str, graph: str = "", static: bool = False) -> Validity:
        """Returns how events of a stream in a named graph, or in none (""), are read."""
        key = (stream, graph, static) if graph else stream
        if key in self.validity_by_stream:
            return self.validity_by_stream[key]
        window = self._window(stream)
        is_followed = window.is_sequential and self.source.follows(stream)
        if not self.source.reads(stream, graph, static) and (static or not is_followed):
            validity: Validity = _not_read
        elif self.valid_facts.is_needed or is_followed or window.depends_on_later_facts:
            validity = _end_unknown
        else:
            validity = window.validity
        self.validity_by_stream[key] = validity
        return validity

    def _window(self, stream: str) -> Window:
        """Returns the window of a stream. If its first triple has come, so has the origin of its grid."""
        window = self.source.window_of(stream)
        if stream in self.followed.first_times:
            return window.begun_at(self.followed.first_times[stream])
        return window

    # Facts that may be removed

    def _tracked(self, event: Event) -> Iterator[Delta]:
        """Yields the deltas of an event that removes facts, or whose facts may be removed before they end."""
        if self.followed.sessions:
            yield from self.followed.advance(event.time - 1)
        if event.removed and event.stream in self.derived_streams:
            raise foreign_event(event)
        if event.removed and not self.valid_facts.is_needed:
            raise unexpected_removal(event)
        for fact in event.removed:
            yield from self._remove(event.stream, fact, event.time, event.graph)
        if event.facts:
            yield from self._added(event)

    def _added(self, event: Event) -> Iterator[Delta]:
        """Yields the deltas of the facts that an event adds, some at least."""
        window = self._window(event.stream)
        if window.depends_on_later_facts and event.time != ALWAYS:
            if event.stream in self.derived_streams:
                raise foreign_event(event)
            content = self.followed.of(event.stream)
            for fact in event.facts:
                yield from content.add(fact, event.time, event.graph)
            return
        if event.time != ALWAYS and window.is_sequential:  # its grid begins with this first triple
            if event.stream in self.derived_streams:
                raise foreign_event(Event(event.time, (), event.stream))
            self.followed.first_times[event.stream] = event.time
            self.validity_by_stream = {}
            window = self._window(event.stream)
        start, end = (ALWAYS, FOREVER) if event.time == ALWAYS else window.validity(event.time)
        for fact in event.facts if start < end else ():
            if self.valid_facts.includes(event.time):
                arrival = Arrival(event.stream, event.graph, event.time, start, end)
                self.valid_facts.add(fact, arrival)
                if self.log is not None:
                    self.note(0, (change_of(fact, arrival, 1),))
            yield from self.entries(event.stream, fact, event.time, event.graph, (start, end), 1)

    @property
    def positions(self) -> dict[str, int]:
        """What windows have to know of each stream that they follow (`WindowContents.positions`)."""
        return self.followed.positions

    def entries(
        self, stream: str, fact: Fact, arrival: int, graph: str, valid: tuple[int, int], weight: int
    ) -> Iterator[Delta]:
        """Yields the deltas of a fact that a stream brought, as patterns read it."""
        representatives = self.valid_facts.representatives
        is_static = arrival == ALWAYS and not self.is_derived
        if self.source.window_of(stream).is_sequential and not self.source.reads(stream, graph, is_static):
            return
        for fact_read in self.source.facts_read(fact, stream, arrival, graph, self.is_derived):
            if representatives:
                fact_read = renamed(fact_read, representatives, max(self.source.prefix_width - 1, 0))
            yield (*fact_row(fact_read), *valid, weight)

    def remove(self, fact: Fact, time: int, stream: str | None = None) -> list[Delta]:
        """Ends a fact in the graph of a stream, static data included.

        That are facts that the stream brought, and facts of other streams in a named graph of its name. None: in all
        streams that the node reads.
        """
        name = None if stream is None else iri(stream)
        streams = {*self.valid_facts.streams_of(fact), *self.followed.by_stream}
        return [delta for source_stream in sorted(streams) for delta in self._delete(source_stream, fact, time, name)]

    def insert(self, stream: str, fact: Fact, arrival: int, time: int, weight: int) -> list[Delta]:
        """Begins (weight 1) or ends (-1) a fact that updates inserted into a stream at the time `arrival`. Windows do
        not end it."""
        unread = not self.source.reads(stream)
        return [] if unread else list(self.entries(stream, fact, arrival, "", (time, FOREVER), weight))

    def _remove(self, stream: str, fact: Fact, time: int, graph: str) -> Iterator[Delta]:
        """Ends a fact that the stream has brought so far, at this time included, in the named graph or in none ("").

        A stream is a sequence, also of events of one time (docs/decisions/0065-removals-in-order.md).
        """

        def ends(arrival: Arrival) -> bool:
            return arrival.stream == stream and arrival.graph == graph and arrival.time > ALWAYS

        if stream in self.followed.by_stream:
            yield from self.followed.of(stream).remove(fact, time, lambda own, _: own == graph)
        yield from self._end_facts(fact, time, ends)

    def _delete(self, stream: str, fact: Fact, time: int, name: Term | None) -> Iterator[Delta]:
        """Ends a fact that the stream brought before this time, static data included.

        Args:
            stream: The stream.
            fact: The fact.
            time: Integer ms.
            name: Only facts in the graph of this name end; None for all.
        """

        def is_meant(graph: str) -> bool:
            return name in (None, iri(stream), graph)

        def ends(arrival: Arrival) -> bool:
            is_earlier = arrival.time == ALWAYS or arrival.time < time
            return is_earlier and arrival.stream == stream and is_meant(arrival.graph)

        if stream in self.followed.by_stream:
            content = self.followed.of(stream)
            yield from content.remove(fact, time, lambda own, arrival: is_meant(own) and arrival < time)
        yield from self._end_facts(fact, time, ends)

    def _end_facts(self, fact: Fact, time: int, ends: Callable[[Arrival], bool]) -> Iterator[Delta]:
        """Ends those arrivals of a fact that the predicate selects."""
        for arrival in self.valid_facts.end(fact, ends):
            if self.log is not None:
                self.note(0, (change_of(fact, arrival, -1),))
            if arrival.end > time:
                valid = max(arrival.start, time), arrival.end
                yield from self.entries(arrival.stream, fact, arrival.time, arrival.graph, valid, -1)

    def drain_changelog(self) -> Iterator[SlotChanges]:
        yield from super().drain_changelog()
        if self.log is not None:
            yield from self.followed.changelog()

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        if slot == 0:
            self.valid_facts.restore(sum_weights(deltas))
            return
        self.followed.restore(slot, deltas)
        self.validity_by_stream = {}

    def expire(self, now: int) -> None:
        if self.valid_facts.arrivals:
            self.valid_facts.expire(now)
        self.followed.expire(now)

    def size(self) -> int:
        return self.valid_facts.size() + self.followed.size()


def _holds_static_data_only(window: Window) -> bool:
    return window.is_static or window.is_empty


def reads_any(scan: ScanOperator, places: Iterable[Place]) -> bool:
    """Returns whether any events of these places may bring something that a scan reads."""
    return any(
        scan._validity(stream, graph, is_static and not scan.is_derived) is not _not_read
        and (is_static or not _holds_static_data_only(scan._window(stream)))
        for stream, graph, is_static in places
    )


def _for_each_triple(columns: Columns, values: Sequence[int]) -> Sequence[int]:
    """Returns values of times as values of the triples of these times."""
    if len(values) == len(columns.subjects) and 0 not in columns.sizes:
        return values
    return list(chain.from_iterable(map(repeat, values, columns.sizes)))


def _columnar_pairs(
    columns: Columns, starts: Sequence[int], ends: Sequence[int], predicates: Collection[Term]
) -> dict[Term, ColumnarPairs]:
    """Returns triples by predicate, as they are. starts, ends: since when, and until when, those of each time are
    valid."""
    facts = columns.subjects, columns.objects, *(_for_each_triple(columns, side) for side in (starts, ends))
    return {predicate: ColumnarPairs(predicate, columns.predicates, facts) for predicate in predicates}


def _divided(columns: Columns, starts: Sequence[int], ends: Sequence[int], predicates: Collection[Term]) -> Boxes:
    """Returns triples by predicate, divided by a loop. starts, ends: since when, and until when, those of each time are
    valid."""
    deltas_by_predicate: defaultdict[Term, list[Delta]] = defaultdict(list)
    if period := columns.period:
        first, behind = columns.sizes[0], len(columns.subjects) - columns.sizes[-1]
        _add_triples(columns, slice(first), repeat(starts[0]), repeat(ends[0]), deltas_by_predicate)
        alike, valid = slice(first, behind, period), (starts[1:-1], ends[1:-1])
        _add_periodic(columns, alike, *valid, predicates, deltas_by_predicate)
        _add_triples(columns, slice(behind, None), repeat(starts[-1]), repeat(ends[-1]), deltas_by_predicate)
    else:
        since, until = (chain.from_iterable(map(repeat, side, columns.sizes)) for side in (starts, ends))
        _add_triples(columns, slice(None), since, until, deltas_by_predicate)
    return {predicate: box for predicate, box in deltas_by_predicate.items() if predicate in predicates}


def _add_triples(
    columns: Columns,
    which: slice,
    starts: Iterable[int],
    ends: Iterable[int],
    deltas_by_predicate: defaultdict[Term, list[Delta]],
) -> None:
    """Adds triples one by one. starts, ends: since when, and until when, each is valid."""
    pairs = zip(columns.subjects[which], columns.objects[which], starts, ends, repeat(1), strict=False)
    for predicate, pair in zip(columns.predicates[which], pairs, strict=False):
        deltas_by_predicate[predicate].append(pair)


def _add_periodic(
    columns: Columns,
    which: slice,
    starts: Sequence[int],
    ends: Sequence[int],
    predicates: Collection[Term],
    deltas_by_predicate: defaultdict[Term, list[Delta]],
) -> None:
    """Adds the triples of events that have the same predicates in the same order.

    Args:
        columns: The events.
        which: The slice of their triples; its step is the number of triples per event.
        starts: Since when the triples of each event are valid.
        ends: Until when they are.
        predicates: The predicates that are used.
        deltas_by_predicate: Receives the triples.
    """
    for place in range(which.start, which.start + which.step):
        if (predicate := columns.predicates[place]) in predicates:
            alike = slice(place, which.stop, which.step)
            pairs = zip(columns.subjects[alike], columns.objects[alike], starts, ends, repeat(1), strict=False)
            deltas_by_predicate[predicate].extend(pairs)
