"""Reading: events through windows, as entries (stream to relation; semantics.md, sections 1 and 2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, repeat
from operator import ge, itemgetter
from typing import NamedTuple, cast

from squall.builders.runtime.operators.count_window import CountWindowContent
from squall.builders.runtime.operators.state import MIN_ROWS_TO_SWEEP, SlotChanges, SnapshotDiff, Stateful, sum_weights
from squall.builders.runtime.zset import Boxes, Delta, fact_row, row_fact
from squall.errors import SourceError
from squall.model import Source
from squall.model.windows import CountWindow
from squall.plan import Plan
from squall.plan.operators import DerivedStream, Match, Operator, Scan, Sink, Update
from squall.rdf import ALWAYS, FOREVER, Columns, Event, Fact, Term, Triple, iri

_FIRST = itemgetter(0)


@dataclass
class ScannedFacts:
    """The facts of some events as entries.

    boxes: triples by predicate, of the predicates that are wanted. triples, atoms: all of them, if they are wanted,
    with an empty name of a rule.
    """

    boxes: Boxes = field(default_factory=dict)
    triples: list[Delta] = field(default_factory=list)
    atoms: list[Delta] = field(default_factory=list)

    def put(self, deltas: Iterable[Delta], predicates: Collection[Term], every: bool, atoms: bool) -> None:
        """Adds entries of any facts."""
        for delta in deltas:
            if delta[0][0] == "@":
                if atoms:
                    self.atoms.append(delta)
                continue
            if every:
                self.triples.append(delta)
            if delta[1] in predicates:
                self.boxes.setdefault(delta[1], []).append((delta[0], delta[2], *delta[4:]))


class _ReadFact(NamedTuple):
    """A stream brought a fact, in a named graph or none: when, and since when and until when it is valid."""

    stream: str
    graph: str
    arrival: int
    start: int
    end: int


Validity = Callable[[int], tuple[int, int]]
"""From the time of an event to the interval over which its facts are valid."""


def _not_read(time: int) -> tuple[int, int]:
    """The stream is not read."""
    raise NotImplementedError


def _end_unknown(time: int) -> tuple[int, int]:
    """When the facts end is not known in advance."""
    raise NotImplementedError


def predicates_used(plan: Plan) -> frozenset[Term] | None:
    """The predicates of the triples that a plan does something with; None: any, or each triple counts."""
    predicates: set[Term] = set()
    for node in plan.nodes:
        if isinstance(node.op, Update) or _counts(node.op):
            return None
        if isinstance(node.op, Scan):
            if node.op.source.removals or any(isinstance(window, CountWindow) for window in node.op.source.all_windows):
                return None
            for id, _ in plan.consumers[node.id]:
                op = plan.by_id[id].op
                if not isinstance(op, Match) or len(op.cells) != 3 or not isinstance(op.cells[1], str):
                    return None
                predicates.add(op.cells[1])
    return frozenset(predicates)


def _counts(op: Operator) -> bool:
    """Whether it is told whole when so many triples have come, whichever they are."""
    sources = op.sources if isinstance(op, Sink | DerivedStream) and op.output == "rstream" else ()
    return any(isinstance(window, CountWindow) for source in sources for window in source.all_windows)


def predicates_to_read(plan: Plan) -> frozenset[Term] | None:
    """The predicates of the triples that who reads for a plan has to hand on; None: any."""
    return None if emits_snapshots(plan) else predicates_used(plan)


def emits_snapshots(plan: Plan) -> bool:
    """Whether each event is an instant at which something may be told."""
    return any(isinstance(node.op, Sink | DerivedStream) and node.op.output == "rstream" for node in plan.nodes)


def unexpected_removal(event: Event) -> SourceError:
    """The error for a removal in a stream of which it was not said that it has any."""
    return SourceError(
        f"the stream `{event.stream}` carries a removal at {event.time}",
        hint="say of the source that it does (`removals`), so that the plan is prepared for it",
    )


def foreign_event(event: Event) -> SourceError:
    """The error for what comes from elsewhere in a stream that the program makes, where that cannot be."""
    if event.removed:
        return SourceError(
            f"the stream `{event.stream}`, which the program makes, carries a removal at {event.time}",
            hint="nobody else can take back what a program makes: let removals come in a stream of their own",
        )
    return SourceError(
        f"the stream `{event.stream}`, which the program makes, brings something else at {event.time}",
        hint="its window of triples is of those that the program makes: let others come in a stream of their own, or "
        "read it through a window of time (`RANGE`)",
    )


def facts_read(source: Source, event: Event, is_derived: bool = False) -> list[Fact]:
    """The facts of an event as patterns read them through a source. made: of a stream that the program makes."""
    return [
        fact_read
        for fact in event.facts
        for fact_read in source.facts_read(fact, event.stream, event.time, event.graph, is_derived)
    ]


class ScanOperator(Stateful):
    """What one `Scan` node reads. wanted: the predicates that anything is done with; every, atoms: whether something is
    done with triples of any predicate, with atoms. remembers: whether facts may be taken back; updated: by updates, so
    that static data may be as well. made: it is what a `DerivedStream` reads of a stream that the program makes, in
    which nothing is static data. own: the streams that the program makes: nothing else may come in them through windows
    of triples, and nothing may be taken back."""

    def __init__(
        self,
        source: Source,
        predicates: Collection[Term],
        every: bool,
        atoms: bool,
        remembers: bool,
        updated: bool = False,
        is_derived: bool = False,
        own: Collection[str] = (),
    ) -> None:
        super().__init__()
        self.source = source
        self.predicates = predicates
        self.reads_all_triples = every
        self.reads_atoms = atoms
        self.tracks_facts = remembers
        self.deletes_static = updated
        self.is_derived = is_derived
        self.derived_streams = own
        self.validity_by_stream: dict[str | tuple[str, str, bool], Validity] = {}
        """How the events of each stream are read; those in a named graph by its name, too, and whether it is static."""
        self.count_windows: dict[str, CountWindowContent] = {}
        self.valid_facts: dict[Fact, list[_ReadFact]] = {}
        """What streams have brought of each fact that may be removed, where it has not ended."""
        self.diff = SnapshotDiff()
        self.sweep_rows = MIN_ROWS_TO_SWEEP

    def read(self, events: Iterable[Event]) -> ScannedFacts:
        """The facts of events in the order of time.

        Every statement of every stream passes here: most are of no interest, and have to cost little.
        """
        boxes: defaultdict[Term, list[Delta]] = defaultdict(list)
        facts, predicates, is_plain = ScannedFacts(boxes), self.predicates, self.source.is_plain
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
            for fact in event_facts:
                if (predicate := fact[1]) in predicates:
                    boxes[predicate].append((fact[0], fact[2], start, end, 1))  # type: ignore[index, misc]
            if self.reads_all_triples or self.reads_atoms:
                self._add_facts(event_facts, start, end, facts)
        for count_window in self.count_windows.values():
            facts.put(count_window.drain_new(), predicates, self.reads_all_triples, self.reads_atoms)
        return facts

    def read_columns(self, columns: Columns) -> ScannedFacts:
        """The facts of events that come as columns: as `read`, but with less to do for each triple."""
        validity = self.validity_by_stream.get(columns.stream) or self._validity(columns.stream)
        if (
            validity in (_not_read, _end_unknown)
            or self.reads_all_triples
            or self.reads_atoms
            or not self.source.is_plain
        ):
            return self.read(columns)
        starts, ends = zip(*map(validity, columns.times), strict=True)
        if any(map(ge, starts, ends)):
            return self.read(columns)
        deltas_by_predicate: defaultdict[Term, list[Delta]] = defaultdict(list)
        if period := columns.period:
            first, behind = columns.sizes[0], len(columns.subjects) - columns.sizes[-1]
            _add_triples(columns, slice(first), repeat(starts[0]), repeat(ends[0]), deltas_by_predicate)
            self._add_periodic(columns, slice(first, behind, period), starts[1:-1], ends[1:-1], deltas_by_predicate)
            _add_triples(columns, slice(behind, None), repeat(starts[-1]), repeat(ends[-1]), deltas_by_predicate)
        else:
            since, until = (chain.from_iterable(map(repeat, side, columns.sizes)) for side in (starts, ends))
            _add_triples(columns, slice(None), since, until, deltas_by_predicate)
        return ScannedFacts(
            {
                predicate: deltas_by_predicate[predicate]
                for predicate in deltas_by_predicate
                if predicate in self.predicates
            }
        )

    def _add_periodic(
        self,
        columns: Columns,
        which: slice,
        starts: Sequence[int],
        ends: Sequence[int],
        deltas_by_predicate: defaultdict[Term, list[Delta]],
    ) -> None:
        """Takes the triples of events that have the same predicates in the same order. which: from the first one to the
        last, and of how many there are each time. starts, ends: since when, and until when, those of each event are
        valid."""
        for place in range(which.start, which.start + which.step):
            if (predicate := columns.predicates[place]) in self.predicates:
                alike = slice(place, which.stop, which.step)
                pairs = zip(columns.subjects[alike], columns.objects[alike], starts, ends, repeat(1), strict=False)
                deltas_by_predicate[predicate].extend(pairs)

    def _add_facts(self, event_facts: Sequence[Fact], start: int, end: int, facts: ScannedFacts) -> None:
        if self.reads_all_triples:
            suffix = ("", start, end, 1)
            facts.triples += [fact + suffix for fact in event_facts if isinstance(fact, Triple)]
        if self.reads_atoms:
            facts.atoms += [(*fact_row(fact), start, end, 1) for fact in event_facts if not isinstance(fact, Triple)]

    def _validity(self, stream: str, graph: str = "", static: bool = False) -> Validity:
        """How the events of a stream are read that are in a named graph or none."""
        key = (stream, graph, static) if graph else stream
        if key in self.validity_by_stream:
            return self.validity_by_stream[key]
        window = self.source.window_of(stream)
        if not self.source.reads(stream, graph, static) and (static or not self.source.counts(stream)):
            validity: Validity = _not_read
        elif self.tracks_facts or isinstance(window, CountWindow):
            validity = _end_unknown
        else:
            validity = window.validity
        self.validity_by_stream[key] = validity
        return validity

    # What may be taken back

    def _tracked(self, event: Event) -> Iterator[Delta]:
        """The entries of an event whose facts may be taken back before they end, or which takes back others."""
        if event.removed and event.stream in self.derived_streams:
            raise foreign_event(event)
        if event.removed and not self.tracks_facts:
            raise unexpected_removal(event)
        for fact in event.removed:
            yield from self._remove(event.stream, fact, event.time, event.graph)
        window = self.source.window_of(event.stream)
        if isinstance(window, CountWindow) and event.time != ALWAYS:
            if event.facts and event.stream in self.derived_streams:
                raise foreign_event(event)
            count_window = self._count_window(event.stream)
            for fact in event.facts:
                yield from count_window.add(fact, event.time, event.graph)
            return
        start, end = (ALWAYS, FOREVER) if event.time == ALWAYS else window.validity(event.time)  # type: ignore[union-attr]
        for fact in event.facts if start < end else ():
            if event.time != ALWAYS or self.deletes_static:
                arrival = _ReadFact(event.stream, event.graph, event.time, start, end)
                self.valid_facts.setdefault(fact, []).append(arrival)
                self._note(fact, arrival, 1)
            yield from self._entries(event.stream, fact, event.time, event.graph, (start, end), 1)

    @property
    def window_counts(self) -> dict[str, int]:
        """How many triples have come through windows of them, by the stream."""
        return {stream: count_window.fact_count for stream, count_window in self.count_windows.items()}

    def _count_window(self, stream: str) -> CountWindowContent:
        """What a stream has in its window of triples."""
        if stream not in self.count_windows:
            window = self.source.window_of(stream)
            assert isinstance(window, CountWindow)
            self.count_windows[stream] = CountWindowContent(window, partial(self._entries, stream))
        return self.count_windows[stream]

    def _entries(
        self, stream: str, fact: Fact, arrival: int, graph: str, valid: tuple[int, int], weight: int
    ) -> Iterator[Delta]:
        """The entries of a fact that a stream brought, as patterns read it."""
        is_static = arrival == ALWAYS and not self.is_derived
        if isinstance(self.source.window_of(stream), CountWindow) and not self.source.reads(stream, graph, is_static):
            return
        for fact_read in self.source.facts_read(fact, stream, arrival, graph, self.is_derived):
            yield (*fact_row(fact_read), *valid, weight)

    def remove(self, fact: Fact, time: int, stream: str | None = None) -> list[Delta]:
        """What is in the graph of a stream of a fact ends now, static data too: what the stream brought, and others in
        a named graph of this name. None: all that this node reads."""
        name = None if stream is None else iri(stream)
        streams = {arrival.stream for arrival in self.valid_facts.get(fact, ())} | self.count_windows.keys()
        return [delta for source_stream in sorted(streams) for delta in self._delete(source_stream, fact, time, name)]

    def insert(self, stream: str, fact: Fact, arrival: int, time: int, weight: int) -> list[Delta]:
        """A fact that rules put into a stream at the time `came` begins (weight 1) or ends (-1) now. Windows do not end
        it."""
        unread = not self.source.reads(stream)
        return [] if unread else list(self._entries(stream, fact, arrival, "", (time, FOREVER), weight))

    def _remove(self, stream: str, fact: Fact, time: int, graph: str) -> Iterator[Delta]:
        """What the stream brought of a fact before this time, in a named graph or none, ends now."""

        def ends(arrival: _ReadFact) -> bool:
            return arrival.stream == stream and arrival.graph == graph and ALWAYS < arrival.arrival < time

        if stream in self.count_windows:
            yield from self.count_windows[stream].remove(fact, time, lambda own: own == graph)
        yield from self._end_facts(fact, time, ends)

    def _delete(self, stream: str, fact: Fact, time: int, name: Term | None) -> Iterator[Delta]:
        """What the stream brought of a fact before this time, static data too, ends now. name: if it is in the graph of
        this name."""

        def is_meant(graph: str) -> bool:
            return name in (None, iri(stream), graph)

        def ends(arrival: _ReadFact) -> bool:
            return (
                arrival.stream == stream
                and is_meant(arrival.graph)
                and (arrival.arrival == ALWAYS or arrival.arrival < time)
            )

        if stream in self.count_windows:
            yield from self.count_windows[stream].remove(fact, time, is_meant)
        yield from self._end_facts(fact, time, ends)

    def _end_facts(self, fact: Fact, time: int, ends: Callable[[_ReadFact], bool]) -> Iterator[Delta]:
        """What was given of a fact ends now, if it is meant."""
        remaining = []
        for arrival in self.valid_facts.pop(fact, ()):
            if not ends(arrival):
                remaining.append(arrival)
                continue
            self._note(fact, arrival, -1)
            if arrival.end > time:
                valid = max(arrival.start, time), arrival.end
                yield from self._entries(arrival.stream, fact, arrival.arrival, arrival.graph, valid, -1)
        if remaining:
            self.valid_facts[fact] = remaining

    def _note(self, fact: Fact, arrival: _ReadFact, weight: int) -> None:
        if self.log is not None:
            stream, graph, time, *valid = arrival
            self.note(0, [(stream, graph, str(time), *fact_row(fact)[:-1], *valid, weight)])

    def drain_changelog(self) -> Iterator[SlotChanges]:
        yield from super().drain_changelog()
        count_window = (
            (stream, *row) for stream, count_window in self.count_windows.items() for row in count_window.rows()
        )
        if self.log is not None and (changes := self.diff.update((*row, ALWAYS, FOREVER, 1) for row in count_window)):
            yield 1, changes

    def restore(self, slot: int, deltas: Sequence[Delta]) -> None:
        if slot == 0:
            for (stream, graph, time, *cells, start, end), count in sum_weights(deltas).items():
                arrival = _ReadFact(stream, graph, int(time), start, end)
                self._count(cast(Fact, row_fact(cells)), arrival, count)
            return
        for stream, rows in groupby(sorted(delta[:-3] for delta in self.diff.restore(deltas)), key=_FIRST):
            self._count_window(stream).load_rows([row[1:] for row in rows])

    def _count(self, fact: Fact, arrival: _ReadFact, count: int) -> None:
        """So many more are known of a fact, or less; of what has ended, none may be."""
        arrivals = self.valid_facts.setdefault(fact, [])
        arrivals += [arrival] * count
        for _ in range(min(-count, arrivals.count(arrival))):
            arrivals.remove(arrival)
        if not arrivals:
            del self.valid_facts[fact]

    def expire(self, now: int) -> None:
        if len(self.valid_facts) < self.sweep_rows:
            return
        for fact in list(self.valid_facts):
            left = [arrival for arrival in self.valid_facts[fact] if arrival.end > now]
            if left:
                self.valid_facts[fact] = left
            else:
                del self.valid_facts[fact]
        self.sweep_rows = max(MIN_ROWS_TO_SWEEP, 2 * len(self.valid_facts))

    def size(self) -> int:
        return sum(map(len, self.valid_facts.values())) + sum(
            count_window.size() for count_window in self.count_windows.values()
        )


def _add_triples(
    columns: Columns,
    which: slice,
    starts: Iterable[int],
    ends: Iterable[int],
    deltas_by_predicate: defaultdict[Term, list[Delta]],
) -> None:
    """Takes triples one by one. starts, ends: since when, and until when, each is valid."""
    pairs = zip(columns.subjects[which], columns.objects[which], starts, ends, repeat(1), strict=False)
    for predicate, pair in zip(columns.predicates[which], pairs, strict=False):
        deltas_by_predicate[predicate].append(pair)
